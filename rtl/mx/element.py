"""The element formats of MX, as the units know them (OCP Microscaling Formats v1.0, section 5.3). Imports nothing but
the standard library."""

from dataclasses import dataclass

__all__ = ["FORMATS", "HALF", "NAN", "Format", "check_elements"]

NAN = 255  # the scale of 32 values of which one is not a number, where elements cannot say so
HALF = 4  # rows that share a scale


@dataclass(frozen=True)
class Format:
    """An element format: bits of a code, and of its mantissa; the bias and the greatest value's exponent; the codes of
    the greatest value, of infinity and of NaN, without a sign. Integers are floats whose exponent is always 0, in two's
    complement."""

    name: str
    width: int
    mantissa: int
    bias: int
    emax: int
    largest: int
    infinity: int | None = None
    nan: int | None = None

    @property
    def integer(self):
        return self.mantissa == self.width - 2


FORMATS = {one.name: one for one in (
    Format("int8", 8, 6, 1, 0, 0x7F),
    Format("e4m3", 8, 3, 7, 8, 0x7E, nan=0x7F),
    Format("e5m2", 8, 2, 15, 15, 0x7B, infinity=0x7C, nan=0x7E),
    Format("e3m2", 6, 2, 3, 4, 0x1F),
    Format("e2m3", 6, 3, 1, 2, 0x1F),
    Format("e2m1", 4, 1, 1, 2, 0x07),
)}
"""By their names."""


def check_elements(elements):
    """The formats of these names, as a tuple. Raises ValueError unless ``elements`` is a tuple of one or more names."""
    if not isinstance(elements, tuple | list) or not elements or any(
            not isinstance(name, str) or name not in FORMATS for name in elements):
        raise ValueError(f"elements must be one or more of {', '.join(FORMATS)}, in a tuple, not {elements!r}")
    return tuple(FORMATS[name] for name in dict.fromkeys(elements))

