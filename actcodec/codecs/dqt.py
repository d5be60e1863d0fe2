"""The quantization tables of modes jpeg-act, with either quantizer, and jpeg-base, as an option has them."""

from dataclasses import dataclass

import numpy as np

from actcodec.golden.jpegact import div, quantize, steps

__all__ = ["Divisors", "Dqt", "Steps"]


@dataclass(frozen=True, eq=False)
class Table:
    """A table: its name, which is only a label, and 64 numbers as a file has them, uint8 [8, 8].

    What kind of numbers, the classes below say: ``bits`` of each in a file, ``named``, the golden model's module with
    ``TABLES`` and ``table(name)``, ``numbers_of(values)``, its function for 64 values, and ``least`` of these. Raises
    ValueError for a name that cannot be printed or has more than 255 bytes, and for numbers that are not legal.
    """

    name: str
    numbers: np.ndarray

    least = 1

    def __post_init__(self):
        if not self.name.isprintable() or len(self.name.encode()) > 255:
            raise ValueError(f"name of the DQT is {self.name!r}, must be printable and have at most 255 bytes")
        n = self.numbers
        if not isinstance(n, np.ndarray) or n.shape != (8, 8) or n.dtype != np.uint8:
            raise ValueError("a DQT needs a table of 8 x 8 numbers, uint8")

    def __str__(self):
        return self.name

    def __repr__(self):
        return repr(self.name)

    def __eq__(self, other):
        if isinstance(other, str):
            return self.name == other
        return type(other) is type(self) and self.name == other.name and np.array_equal(self.numbers, other.numbers)

    def __hash__(self):
        return hash(self.name)

    @classmethod
    def check(cls, value):
        """Of a name of the paper's tables, or of 64 numbers."""
        if isinstance(value, cls):
            return value
        if isinstance(value, str):
            return cls(value, cls.numbers_of(cls.named.table(value)))
        return cls("custom", cls.numbers_of(value))

    @classmethod
    def parse(cls, text):
        """Of a name, or of the file called ``text``. Raises :class:`~actcodec.files.UserError`."""
        from actcodec.files import UserError, read_dqt

        if text in cls.named.TABLES:
            return cls.check(text)
        try:
            name, values = read_dqt(text, cls.least)
            return cls(name, cls.numbers_of(values))
        except OSError as error:
            names = ", ".join(cls.named.TABLES)
            raise UserError(f"unknown DQT {text!r}: not one of {names}, nor a file: {error.strerror}") from error
        except ValueError as error:
            raise UserError(f"{text}: {error}") from error

    def pack(self):
        """Length of the name, name, and the numbers, row-major, least significant bit first."""
        name = self.name.encode()
        bits = self.numbers.reshape(64, 1) >> np.arange(self.bits, dtype=np.uint8) & 1
        return bytes([len(name)]) + name + np.packbits(bits.ravel(), bitorder="little").tobytes()

    @classmethod
    def unpack(cls, take):
        name = take(take(1, "DQT's name")[0], "DQT's name").decode()
        bits = np.unpackbits(np.frombuffer(take(8 * cls.bits, "DQT"), np.uint8), bitorder="little")
        weights = 1 << np.arange(cls.bits, dtype=np.uint8)
        return cls(name, (bits.reshape(8, 8, cls.bits) * weights).sum(axis=-1, dtype=np.uint8))


class Dqt(Table):
    """Of jpeg-act: the numbers are shifts, log2 of its values, 0 to 7."""

    bits, named = 3, quantize
    numbers_of = staticmethod(quantize.shifts)

    def __post_init__(self):
        super().__post_init__()
        if np.any(self.numbers > 7):
            raise ValueError("a DQT of jpeg-act needs shifts, 0 to 7")

    @property
    def shifts(self):
        return self.numbers

    @property
    def table(self):
        """Its values, powers of two: float64 [8, 8]."""
        return 2.0**self.numbers


class Divisors(Table):
    """Of jpeg-base: the numbers are its values, 1 to 255."""

    bits, named = 8, div
    numbers_of = staticmethod(div.divisors)

    def __post_init__(self):
        super().__post_init__()
        if not np.all(self.numbers):
            raise ValueError("a DQT of jpeg-base needs values of 1 to 255")

    @property
    def table(self):
        return self.numbers


class Steps(Table):
    """Of jpeg-act with quantizer div: the numbers are quarters of a step, 2 to 255. One step may stand for all."""

    bits, named, least = 8, steps, steps.LEAST / 4
    numbers_of = staticmethod(steps.steps)

    def __post_init__(self):
        super().__post_init__()
        if np.any(self.numbers < steps.LEAST):
            raise ValueError(f"a DQT of steps needs quarters, {steps.LEAST} to {steps.MOST}")

    @classmethod
    def check(cls, value):
        if not isinstance(value, cls | str) and np.ndim(value) == 0:
            return cls(f"{value:g}", cls.numbers_of(value))
        return super().check(value)

    @classmethod
    def parse(cls, text):
        from actcodec.files import UserError

        try:
            step = float(text)
        except ValueError:
            return super().parse(text)
        try:
            return cls.check(step)
        except ValueError as error:
            raise UserError(f"--dqt {text}: {error}") from error

    @property
    def table(self):
        """Its steps: float64 [8, 8]."""
        return self.numbers / 4
