"""Python's collector while Amaranth elaborates."""

import gc
from contextlib import contextmanager

__all__ = ["rare_collection"]


@contextmanager
def rare_collection():
    """While this is open, Python looks for garbage rarely. Elaboration makes millions of objects that live until its
    end; half of its time would go into looking through them again and again."""
    before = gc.get_threshold()
    gc.set_threshold(100_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)
