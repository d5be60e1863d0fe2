"""The quantization table of mode jpeg-act, as an option has it."""

from dataclasses import dataclass

import numpy as np

from actcodec.golden.jpegact import quantize

__all__ = ["Dqt"]

BYTES = 24  # of 64 shifts


@dataclass(frozen=True, eq=False)
class Dqt:
    """A table: its name, which is only a label, and the shifts, uint8 [8, 8], that are log2 of its values.

    Raises ValueError for a name that cannot be printed or has more than 255 bytes, and for other shifts than 0 to 7.
    """

    name: str
    shifts: np.ndarray

    def __post_init__(self):
        if not self.name.isprintable() or len(self.name.encode()) > 255:
            raise ValueError(f"name of the DQT is {self.name!r}, must be printable and have at most 255 bytes")
        s = self.shifts
        if not isinstance(s, np.ndarray) or s.shape != (8, 8) or s.dtype != np.uint8 or np.any(s > 7):
            raise ValueError("a DQT needs a table of 8 x 8 shifts, uint8, 0 to 7")

    def __str__(self):
        return self.name

    def __repr__(self):
        return repr(self.name)

    def __eq__(self, other):
        if isinstance(other, str):
            return self.name == other
        return isinstance(other, Dqt) and self.name == other.name and np.array_equal(self.shifts, other.shifts)

    def __hash__(self):
        return hash(self.name)

    @property
    def table(self):
        """Its values, powers of two: float64 [8, 8]."""
        return 2.0**self.shifts

    @classmethod
    def check(cls, value):
        """Of a name of the paper's tables, or of 64 numbers."""
        if isinstance(value, cls):
            return value
        if isinstance(value, str):
            return cls(value, quantize.shifts(quantize.table(value)))
        return cls("custom", quantize.shifts(value))

    @classmethod
    def parse(cls, text):
        """Of a name, or of the file called ``text``. Raises :class:`~actcodec.files.UserError`."""
        from actcodec.files import UserError, read_dqt

        if text in quantize.TABLES:
            return cls.check(text)
        try:
            name, values = read_dqt(text)
        except OSError as error:
            names = ", ".join(quantize.TABLES)
            raise UserError(f"unknown DQT {text!r}: not one of {names}, nor a file: {error.strerror}") from error
        return cls(name, quantize.shifts(values))

    def pack(self):
        """Length of the name, name, and 64 shifts of three bits, row-major, least significant bit first."""
        name = self.name.encode()
        bits = self.shifts.reshape(64, 1) >> np.arange(3, dtype=np.uint8) & 1
        return bytes([len(name)]) + name + np.packbits(bits.ravel(), bitorder="little").tobytes()

    @classmethod
    def unpack(cls, take):
        name = take(take(1, "DQT's name")[0], "DQT's name").decode()
        bits = np.unpackbits(np.frombuffer(take(BYTES, "DQT"), np.uint8), bitorder="little").reshape(8, 8, 3)
        return cls(name, (bits << np.arange(3, dtype=np.uint8)).sum(axis=-1, dtype=np.uint8))
