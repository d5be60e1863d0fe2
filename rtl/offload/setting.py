"""What a mode's units have to be told of each tensor, beyond its place and size. Imports nothing but the standard
library."""

from dataclasses import dataclass, field

__all__ = ["BITS", "Setting", "check_settings", "part", "width"]

BITS = 1024  # that there is room for in the register map


@dataclass(frozen=True)
class Setting:
    """A number for each tensor: ``width`` bits of the register SETTINGS from bit ``low`` on, which a mode's units find
    under ``name``. Modes share the bits; a name has the same place in all modes of a device. ``check``, for software
    alone, is the name of a function of a number and of whether it is to decompress with it, which raises ValueError for
    one that is not legal.

    Raises ValueError if there is no such place.
    """

    name: str
    width: int
    low: int = 0
    meaning: str = field(default="", repr=False, compare=False, kw_only=True)
    # Whether files keep it beside the payload; if not, it follows from an option that they keep.
    stored: bool = field(default=True, repr=False, compare=False, kw_only=True)
    check: str | None = field(default=None, repr=False, compare=False, kw_only=True)

    def __post_init__(self):
        if self.width < 1 or not 0 <= self.low <= BITS - self.width:
            raise ValueError(f"setting {self.name} has the bits {self.low} to {self.low + self.width - 1}, must be one "
                             f"or more of 0 to {BITS - 1}")

    @property
    def bytes(self):
        """Bytes that it takes with a stored tensor."""
        return -(-self.width // 8)


def check_settings(settings):
    """Raises ValueError if a name has two places among ``settings``."""
    places = {}
    for setting in settings:
        if places.setdefault(setting.name, setting) != setting:
            raise ValueError(f"modes must agree on the place of setting {setting.name}, not have {setting} and "
                             f"{places[setting.name]}")


def width(modes):
    """Bits of SETTINGS that a unit with ``modes`` needs."""
    return max((setting.low + setting.width for mode in modes for setting in mode.told), default=0)


def part(modes, settings, name):
    """The bits of ``settings`` that one of ``modes`` declares under ``name``."""
    found = next(found for mode in modes for found in mode.told if found.name == name)
    return settings[found.low :][: found.width]
