"""Options of a mode, declared as data, from which checks, the command line's options and fields of files follow."""

import operator
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Self

__all__ = ["Option"]


@dataclass(frozen=True)
class Option:
    """An option of a mode.

    Its values are of a ``type``: ``int`` or ``float`` with a ``range`` (both ends included), ``int`` or ``str`` with
    ``choices``, ``bool``, or a class of its own as ``"package.module:Class"``. Such a class has ``check(value)``, which
    makes an instance of a value of the Python API, or raises ValueError; ``parse(text)``, the same for the command
    line; ``pack()`` and ``unpack(take)``, where ``take(size, what)`` returns the next bytes of a file; and ``str()``.
    If it also has ``read(text)``, ``parse`` gets what that returns: an object whose ``options`` are defaults of other
    options, from a file. A default of None means that the option may be absent; files cannot store such an option. An
    option that ``needs`` a value of another option is None without it.

    Raises ValueError if range or choices are missing, or the default is not legal.
    """

    name: str
    type: Any  # int, float, bool, str; or the place of a class of its own
    default: Any
    help: str
    range: Any = None  # the least and the largest number
    choices: Any = None
    metavar: str = ""  # on the command line
    stored: bool = True  # in files: False for what only compression has to know
    needs: tuple[str, object] | None = None  # the name of another option and the value that gives this one a meaning

    def __post_init__(self) -> None:
        limits = {int: (self.range is None) != (self.choices is None), float: self.range and self.choices is None,
                  str: self.choices and self.range is None}
        if not limits.get(self.type, self.range is None and self.choices is None):
            raise ValueError(f"option {self.name}: numbers have a range, words and some integers have choices, and "
                             f"nothing else has")
        if self.default is None:
            if self.stored:
                raise ValueError(f"option {self.name}: it is stored in files, so it needs a default")
        elif not isinstance(self.type, str):
            self.check(self.default)

    @property
    def own(self) -> Any:
        """The class of an option that has one of its own."""
        module, _, name = self.type.partition(":")
        return getattr(import_module(module), name)

    def union(self, other: Self) -> Self:
        """An option of that name and type that takes what either of two does; of numbers with a range and with choices,
        the range that has them all."""
        stored = self.stored or other.stored
        if self.choices and other.choices:
            return replace(self, choices=tuple(dict.fromkeys((*self.choices, *other.choices))), stored=stored)
        if not (self.range or self.choices):
            return replace(self, stored=stored)
        ends = [*(self.range or self.choices), *(other.range or other.choices)]
        return replace(self, range=(min(ends), max(ends)), choices=None, stored=stored)

    @property
    def legal(self) -> str:
        """What values it takes, as text."""
        if self.range:
            low, high = self.range
            return f"{low}" if low == high else f"{low} to {high}"
        if self.choices:
            return ", ".join(map(str, self.choices))
        return "true or false" if self.type is bool else self.metavar

    def check(self, value: Any) -> Any:
        """``value`` as this option has it. Raises ValueError."""
        if isinstance(self.type, str):
            return self.own.check(value)
        try:
            return {int: self._int, float: self._float, bool: self._bool, str: self._chosen}[self.type](value)
        except (TypeError, ValueError):
            raise ValueError(f"{self.name} is {value!r}, must be {self.legal}") from None

    def _int(self, value):
        if isinstance(value, bool):
            raise TypeError
        return self._chosen(operator.index(value)) if self.choices else self._inside(operator.index(value))

    def _float(self, value):
        if isinstance(value, bool | str):
            raise TypeError
        return self._inside(float(value))

    def _inside(self, value):
        if not self.range[0] <= value <= self.range[1]:
            raise ValueError
        return value

    def _bool(self, value):
        if value not in (False, True):
            raise ValueError
        return bool(value)

    def _chosen(self, value):
        if value not in self.choices:
            raise ValueError
        return value

    # --------------------------------------------------------------------------------------------------------- in files
    @property
    def _format(self):
        """Of an integer: as few bytes as its range, or the largest of its choices, needs."""
        low, high = self.range or (min(self.choices), max(self.choices))
        if low < 0:
            return next(code for code, bits in (("<b", 8), ("<h", 16), ("<i", 32), ("<q", 64))
                        if -1 << bits - 1 <= low and high < 1 << bits - 1)
        return next(code for code, bits in (("<B", 8), ("<H", 16), ("<I", 32), ("<Q", 64)) if high < 1 << bits)

    def pack(self, value: Any) -> bytes:
        """The bytes of a value in a file."""
        if isinstance(self.type, str):
            return value.pack()
        if self.type is str:
            return bytes([self.choices.index(value)])
        return struct.pack({int: lambda: self._format, float: lambda: "<d", bool: lambda: "<?"}[self.type](), value)

    def unpack(self, take: Callable[[int, str], bytes]) -> Any:
        """The reverse of :meth:`pack`; ``take(size, what)`` gives the next bytes of the file. Raises ValueError."""
        if isinstance(self.type, str):
            return self.own.unpack(take)
        if self.type is int:
            data = take(struct.calcsize(self._format), self.name)
            return self.check(struct.unpack(self._format, data)[0])
        if self.type is float:
            return self.check(struct.unpack("<d", take(8, self.name))[0])
        number = take(1, self.name)[0]
        if number >= (2 if self.type is bool else len(self.choices)):
            raise ValueError(f"{self.name} has the code {number}")
        return bool(number) if self.type is bool else self.choices[number]
