"""The commands, one file each; the group of :mod:`actcodec.cli` loads the ``command`` in it."""
