"""The commands, a file for each; ``command`` is what the group finds."""
