"""A mode's settings, numbers of each tensor beyond its place and size, and which are legal. Imports
nothing but the standard library."""

from dataclasses import dataclass, field

__all__ = ["BITS", "Limit", "Setting", "check_settings", "entries", "part", "width"]

BITS = 1024  # that there is room for in the register map


@dataclass(frozen=True)
class Limit:
    """What the fields of a setting keep: the sum of ``terms`` is at most ``most``. A term (low, width, sign, shift) is
    the unsigned field of ``width`` bits from bit ``low`` on, times 2^shift, added for a sign of 1 and taken off for one
    of -1. ``compressing``: only then. ``text`` says it in a formula.

    Written so that numbers and hardware's values go through the same sums.
    """

    terms: tuple[tuple[int, int, int, int], ...]
    most: int
    text: str = field(default="", repr=False, compare=False)
    compressing: bool = False

    def broken(self, piece):
        """Whether it is not kept; ``piece(low, width)`` is a field, a Python or an Amaranth number."""
        above, below = [max(-self.most, 0)], [max(self.most, 0)]
        for low, bits, sign, shift in self.terms:
            (above if sign > 0 else below).append(piece(low, bits) << shift)
        return sum(above) > sum(below)


    def around(self, number):
        """Two numbers that differ from ``number`` in the fields of this limit: one at it, one just beyond."""
        step = 1 << min(shift for *_, shift in self.terms)
        least = self.most // step * step
        for target in (least, least + step):
            candidate = number
            for low, bits, sign, shift in sorted(self.terms, key=lambda term: -term[3]):
                total = sum(sign * (candidate >> low & (1 << bits) - 1) << shift
                            for low, bits, sign, shift in self.terms)
                old = candidate >> low & (1 << bits) - 1
                new = min(max(old + sign * (target - total >> shift), 0), (1 << bits) - 1)
                candidate ^= (old ^ new) << low
            yield candidate


def entries(width, count=1, least=0, most=None):
    """The limits of ``count`` entries of ``width`` bits from bit 0 on: from ``least`` to ``most``."""
    limits = []
    last = (1 << width) - 1 if most is None else most
    text = (f"{least} to {last}" if least < last else f"{last}") + (" each" if count > 1 else "")
    for low in range(0, width * count, width):
        if least:
            limits.append(Limit(((low, width, -1, 0),), -least, text))
        if most is not None:
            limits.append(Limit(((low, width, 1, 0),), most, text))
    return tuple(limits)


@dataclass(frozen=True)
class Setting:
    """A number for each tensor: ``width`` bits of the register SETTINGS from bit ``low`` on, which a mode's units find
    under ``name``. Modes share the bits; a name has the same place in all modes of a device.

    ``limits`` are what a legal number keeps: hardware refuses any other one, as does the driver, and the registers'
    page and the benches have them from here. ``default`` is a number that works, if not best.

    Raises ValueError if there is no such place, and if the default is not legal.
    """

    name: str
    width: int
    low: int = 0
    limits: tuple[Limit, ...] = field(default=(), repr=False, kw_only=True)
    default: int = field(default=0, repr=False, compare=False, kw_only=True)
    meaning: str = field(default="", repr=False, compare=False, kw_only=True)
    # Whether files keep it beside the payload; if not, it follows from an option that they keep.
    stored: bool = field(default=True, repr=False, compare=False, kw_only=True)

    def __post_init__(self):
        if self.width < 1 or not 0 <= self.low <= BITS - self.width:
            raise ValueError(f"setting {self.name} has the bits {self.low} to {self.low + self.width - 1}, must be one "
                             f"or more of 0 to {BITS - 1}")
        if self.broken(self.default):
            raise ValueError(f"setting {self.name} has the default {self.default:#x}, must be legal")

    @property
    def bytes(self):
        """Bytes that it takes with a stored tensor."""
        return -(-self.width // 8)

    def broken(self, number, decompress=False):
        """The first limit that a number does not keep, or None. One that does not fit breaks the bits' own."""
        if not 0 <= number < 1 << self.width:
            return Limit(((0, self.width, 1, 0),), (1 << self.width) - 1, f"{self.width} bits")
        return next((limit for limit in self.limits if not (limit.compressing and decompress)
                     and limit.broken(lambda low, bits: number >> low & (1 << bits) - 1)), None)

    def around(self, number):
        """Numbers at each of its limits and just beyond, made from a legal one. Which are legal, :meth:`broken`
        says."""
        for limit in self.limits:
            yield from limit.around(number)


def check_settings(settings):
    """Raises ValueError if a name has two places among ``settings``."""
    places = {}
    for setting in settings:
        place = setting.low, setting.width
        if places.setdefault(setting.name, place) != place:
            raise ValueError(f"modes must agree on the place of setting {setting.name}, not have {place} and "
                             f"{places[setting.name]}, its lowest bit and its width")


def width(modes):
    """Bits of SETTINGS that a unit with ``modes`` needs."""
    return max((setting.low + setting.width for mode in modes for setting in mode.settings), default=0)


def part(modes, settings, name):
    """The bits of ``settings`` that one of ``modes`` declares under ``name``."""
    one = next(one for mode in modes for one in mode.settings if one.name == name)
    return settings[one.low :][: one.width]
