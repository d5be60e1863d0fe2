"""``actcodec bench``: what the simulated accelerator reaches, and the golden model beside others."""
