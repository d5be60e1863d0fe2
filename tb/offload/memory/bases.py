"""Where a memory begins in its address space."""

__all__ = ["WHERE", "drawn"]

WHERE = ("any", "zero", "carry")


def drawn(random, where, width, size, carry):
    """The address of a memory of ``size`` bytes, with ``width`` bits: a random multiple of that size, 0, or one from
    which the memory's second half begins at a multiple of 2 to the ``carry``."""
    if where == "carry":
        return (int(random.integers(1, 1 << width - carry)) << carry) - size // 2
    return int(random.integers((1 << width) // size)) * size if where == "any" else 0
