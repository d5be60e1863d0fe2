"""The scan: what an accelerator finds out of a tensor before it compresses it."""
