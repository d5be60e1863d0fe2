"""The quantization tables of modes jpeg-act, with either quantizer, and jpeg-base, as an option has them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from actcodec.golden.jpegact import div, quantize, steps

__all__ = ["Divisors", "Dqt", "Steps"]


NAMES = (*quantize.TABLES, *div.TABLES)


@dataclass(frozen=True)
class Source:
    """What ``text`` on the command line stands for: a name, a number, or a file, of which ``file`` is what
    :func:`~actcodec.files.read_dqt` returns, or ``error`` why it cannot be opened."""

    text: str
    file: tuple | None = None
    error: str | None = None

    @property
    def options(self) -> dict[str, Any]:
        """What the file says of other options."""
        return self.file[2] if self.file else {}

    @property
    def number(self) -> float | None:
        try:
            return float(self.text)
        except ValueError:
            return None


@dataclass(frozen=True, eq=False)
class Table:
    """A table: its name, which is only a label, and 64 numbers as a file has them, uint8 [8, 8].

    What kind of numbers, the classes below say: ``bits`` of each in a file, ``named``, the golden model's module with
    ``TABLES`` and ``table(name)``, ``numbers_of(values)``, its function for 64 values, and ``least`` of these;
    ``quantizer``, the one of jpeg-act that they are for; ``one``, what to do with a single number. Raises ValueError
    for a name that cannot be printed or has more than 255 bytes, and for numbers that are not legal.
    """

    name: str
    numbers: np.ndarray

    least: ClassVar[float] = 1
    # Of each kind of table:
    bits: ClassVar[int]  # of a number
    named: ClassVar[Any]  # golden's module, with the tables that have a name
    numbers_of: ClassVar[Any]
    quantizer: ClassVar[str | None]
    purpose: ClassVar[str]  # what it is for, in messages
    one: ClassVar[str]  # why a single number is none

    def __post_init__(self) -> None:
        if not self.name.isprintable() or len(self.name.encode()) > 255:
            raise ValueError(f"name of the DQT is {self.name!r}, must be printable and have at most 255 bytes")
        n = self.numbers
        if not isinstance(n, np.ndarray) or n.shape != (8, 8) or n.dtype != np.uint8:
            raise ValueError("a DQT needs a table of 8 x 8 numbers, uint8")

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return repr(self.name)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            return self.name == other
        return type(other) is type(self) and self.name == other.name and np.array_equal(self.numbers, other.numbers)

    def __hash__(self) -> int:
        return hash(self.name)

    @classmethod
    def check(cls, value: Any) -> Any:
        """Of a name of the paper's tables, or of 64 numbers."""
        if isinstance(value, cls):
            return value
        if isinstance(value, Table):
            raise ValueError(f"DQT {value} is a table {value.purpose}, not {cls.purpose}")
        if isinstance(value, str):
            return cls(value, cls.numbers_of(cls.named.table(value)))
        if np.ndim(value) == 0:
            raise ValueError(f"DQT is the number {value!r}: {cls.one}")
        return cls("custom", cls.numbers_of(value))

    @staticmethod
    def read(text: str) -> Source:
        """The :class:`Source` of ``text``, read once. Raises :class:`~actcodec.files.UserError`."""
        from actcodec.files import read_dqt

        if text in NAMES or Source(text).number is not None:
            return Source(text)
        try:
            return Source(text, read_dqt(text))
        except OSError as error:
            return Source(text, error=error.strerror)

    @classmethod
    def parse(cls, source: Any) -> Any:
        """Of a name, or of a file; ``source`` is a :class:`Source` or its text. Raises
        :class:`~actcodec.files.UserError`."""
        from actcodec.files import UserError

        source = cls.read(source) if isinstance(source, str) else source
        if source.text in cls.named.TABLES:
            return cls.check(source.text)
        if source.number is not None:
            raise UserError(f"unknown DQT {source.text!r}: {cls.one}")
        if not source.file:
            more = f", nor a file: {source.error}" if source.error else ""
            raise UserError(f"unknown DQT {source.text!r}: not one of {', '.join(cls.named.TABLES)}{more}")
        name, values, options = source.file
        if options.get("quantizer", cls.quantizer) != cls.quantizer:
            raise UserError(f"{source.text}: a table for quantizer {options['quantizer']} of jpeg-act, not "
                            f"{cls.purpose}")
        wrong = values[~(np.isfinite(values) & (values >= cls.least))]
        if wrong.size:
            raise UserError(f"{source.text}: {wrong[0]:g} is not a DQT value: they are finite, and {cls.least} or more")
        try:
            return cls(name, cls.numbers_of(values))
        except ValueError as error:
            raise UserError(f"{source.text}: {error}") from error

    def pack(self) -> bytes:
        """Length of the name, name, and the numbers."""
        name = self.name.encode()
        return bytes([len(name)]) + name + self.packed()

    @classmethod
    def unpack(cls, take: Callable[[int, str], bytes]) -> Any:
        name = take(take(1, "DQT's name")[0], "DQT's name").decode()
        return cls(name, cls.unpacked(take).reshape(8, 8))

    def packed(self) -> bytes:
        """The numbers, row-major, least significant bit first."""
        bits = self.numbers.reshape(64, 1) >> np.arange(self.bits, dtype=np.uint8) & 1
        return np.packbits(bits.ravel(), bitorder="little").tobytes()

    @classmethod
    def unpacked(cls, take: Callable[[int, str], bytes]) -> NDArray[np.uint8]:
        """The numbers of what ``take`` returns: uint8 [64]."""
        bits = np.unpackbits(np.frombuffer(take(8 * cls.bits, "DQT"), np.uint8), bitorder="little")
        weights = 1 << np.arange(cls.bits, dtype=np.uint8)
        return (bits.reshape(64, cls.bits) * weights).sum(axis=-1, dtype=np.uint8)


class Dqt(Table):
    """Of jpeg-act: the numbers are shifts, log2 of its values, 0 to 7."""

    bits, named, quantizer, purpose = 3, quantize, "sh", "for quantizer sh"  # type: ignore[misc]
    one = "a step for all frequencies needs quantizer div"
    numbers_of = staticmethod(quantize.shifts)

    def __post_init__(self) -> None:
        super().__post_init__()
        if np.any(self.numbers > 7):
            raise ValueError("a DQT of jpeg-act needs shifts, 0 to 7")

    @property
    def shifts(self) -> NDArray[np.uint8]:
        return self.numbers

    @property
    def table(self) -> NDArray[np.float64]:
        """Its values, powers of two: float64 [8, 8]."""
        return 2.0**self.numbers


class Divisors(Table):
    """Of jpeg-base: the numbers are its values, 1 to 255."""

    bits, named, quantizer, purpose = 8, div, None, "for jpeg-base"  # type: ignore[misc]
    one = "jpeg-base needs 64 of them"
    numbers_of = staticmethod(div.divisors)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not np.all(self.numbers):
            raise ValueError("a DQT of jpeg-base needs values of 1 to 255")

    @property
    def table(self) -> NDArray[np.uint8]:
        return self.numbers


class Steps(Table):
    """Of jpeg-act with quantizer div: the numbers are quarters of a step, 2 to 255. One step may stand for all."""

    bits, named, least, quantizer, purpose = 8, steps, steps.LEAST / 4, "div", "for quantizer div"  # type: ignore[misc]
    numbers_of = staticmethod(steps.steps)

    def __post_init__(self) -> None:
        super().__post_init__()
        if np.any(self.numbers < steps.LEAST):
            raise ValueError(f"a DQT of steps needs quarters, {steps.LEAST} to {steps.MOST}")

    @classmethod
    def check(cls, value: Any) -> Any:
        if not isinstance(value, Table | str) and np.ndim(value) == 0:
            numbers = cls.numbers_of(value)  # first: not all that it refuses can be a name
            return cls(f"{value:g}", numbers)
        return super().check(value)

    @classmethod
    def parse(cls, source: Any) -> Any:
        from actcodec.files import UserError

        source = cls.read(source) if isinstance(source, str) else source
        if source.number is None:
            return super().parse(source)
        try:
            return cls.check(source.number)
        except ValueError as error:
            raise UserError(f"--dqt {source.text}: {error}") from error

    def packed(self) -> bytes:
        """If all steps are equal, a 0, which is no legal step, and that step; otherwise all 64."""
        one = self.numbers[0, 0]
        return bytes([0, one]) if np.all(self.numbers == one) else super().packed()

    @classmethod
    def unpacked(cls, take: Callable[[int, str], bytes]) -> NDArray[np.uint8]:
        first = take(1, "DQT")
        if first == b"\0":
            return np.full(64, take(1, "DQT")[0], np.uint8)
        return super().unpacked(lambda size, what: first + take(size - 1, what))

    @property
    def table(self) -> NDArray[np.float64]:
        """Its steps: float64 [8, 8]."""
        return self.numbers / 4
