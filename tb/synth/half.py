"""A file of which only the first half is written, as if somebody had pulled the plug."""

from contextlib import contextmanager
from pathlib import Path

import pytest

__all__ = ["half"]


@contextmanager
def half(start):
    """While this is open, whoever writes a text that begins with ``start`` is interrupted; fails if nobody does."""
    def write_text(path, text, write=Path.write_text):
        if not text.startswith(start):
            return write(path, text)
        write(path, text[:len(text) // 2])
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patches, pytest.raises(KeyboardInterrupt):
        patches.setattr(Path, "write_text", write_text)
        yield
