"""All modes, by names and codes."""

from collections.abc import Sequence
from typing import Any

from actcodec.codecs.mode import Mode
from actcodec.codecs.option import Option
from actcodec.golden.offload.memory.formats import CODES, HALVES

__all__ = ["MODES", "aliases", "by_code", "codes", "effective", "find", "host_mode", "lane_modes", "options",
           "refused", "register", "unregister"]

MODES: dict[str, Mode] = {}
"""The modes by their names, in the order of their codes."""


def register(*modes: Mode) -> None:
    """Adds modes. Raises ValueError for a name or a code that another mode has or that no file can have, and for an
    option that has another type in another mode; classes of their own may differ."""
    for mode in modes:
        others = _with_halves(MODES.values())
        for one in _with_halves([mode]):
            if clashes := [other.name for other in others
                           if _names(one) & _names(other) or _codes(one) & _codes(other)]:
                raise ValueError(f"mode {one.name} has the name or the code {one.code} of mode {clashes[0]}")
            if not 0 <= one.code < 256:
                raise ValueError(f"mode {one.name} has the code {one.code}, must be 0 to 255")
            others.append(one)
        for option in mode.options:
            types = {option.type, options().get(option.name, option).type}
            same = len(types) == 1 or all(isinstance(type, str) for type in types)
            if not same or option.name in ("engine", "mode"):
                raise ValueError(f"option {option.name} of mode {mode.name} has the name of another option")
        MODES[mode.name] = mode
        for one in sorted(MODES.values(), key=lambda mode: mode.code):
            MODES[one.name] = MODES.pop(one.name)


def unregister(*names: str) -> None:
    """Removes modes; for tests."""
    for name in names:
        del MODES[name]


def find(name: str) -> Mode:
    """The mode with this name or alias. Raises ValueError."""
    every = MODES | aliases()
    if name not in every:
        raise ValueError(f"unknown mode {name!r}, legal are {', '.join(every)}")
    return every[name]


def aliases() -> dict[str, Mode]:
    """Other names of modes, and the modes."""
    return {name: mode for mode in MODES.values() for name in mode.aliases}


def by_code(code: int) -> tuple[Mode | None, dict[str, Any]]:
    """The mode with this code, or with a variant of this code that files can have, and the values of options that the
    code implies; None and {} if there is none. Old codes count."""
    for mode in MODES.values():
        if code in dict(mode.old_codes):
            return mode, {}
        for values, one in mode.file_modes:
            if one.code == code:
                return mode, mode.variant_options | values
    return None, {}


def codes() -> dict[int, Mode]:
    """{code: mode}, with variants, modes of 16-bit words, and old codes, in the order of the codes."""
    return dict(sorted(((code, mode) for mode in _with_halves(MODES.values()) for code in _codes(mode)),
                       key=lambda pair: pair[0]))


def _with_variants(modes):
    return [one for mode in modes for one in (mode, *(variant for _, variant in mode.variants))]


def _with_halves(modes):
    return [one for mode in _with_variants(modes) for one in (mode, mode.halves) if one]


def _names(mode):
    return {mode.name, *mode.aliases}


def _codes(mode):
    return {mode.code, *dict(mode.old_codes)}


def options() -> dict[str, Option]:
    """The options of all modes by name. One that several modes have takes every value that one of them does; the mode
    checks the value."""
    options: dict[str, Option] = {}
    for mode in MODES.values():
        for option in mode.options:
            options[option.name] = options[option.name].union(option) if option.name in options else option
    return options


def lane_modes(*names: str) -> tuple[Mode, ...]:
    """The modes of a lane with these names, as units take them, including variants; without names all of them. Raises
    ValueError for a name that no lane's mode has."""
    legal = {name: mode for mode in _with_variants(MODES.values()) if mode.stages is not None
             for name in (mode.name, *mode.aliases)}
    if unknown := [name for name in names if name not in legal]:
        raise ValueError(f"modes must be one or more of {', '.join(legal)}, not {unknown[0]!r}")
    return tuple(dict.fromkeys(legal[name] for name in names or legal))


def host_mode(lane: Mode) -> Mode:
    """The mode of a host for a lane's mode: itself, or the one whose 16-bit words, or codes, it moves."""
    return next((mode for mode in lane_modes() if lane in (mode.halves, mode.codes)), lane)


def effective(mode: Mode, shape: Sequence[int], dtype: str = "float32") -> Mode:
    """The lane's mode for a tensor of ``shape`` and type: ``mode``, its fallback where there are no tiles, or its mode
    of 16-bit words or of codes. Raises ValueError if it takes no codes."""
    if mode.halves and dtype in HALVES:
        return mode.halves
    mode = lane_modes(mode.fallback)[0] if mode.tiled and not mode.model.view(shape).tileable else mode
    if dtype != CODES:
        return mode
    if not (codes := mode.codes):
        raise ValueError(refused(mode))
    return codes


def refused(mode: Mode) -> str:
    """Why there is no tensor of int8 in a mode."""
    return (f"mode {mode.name} takes no {CODES}: these are codes of SFPR, for modes that begin with it, except "
            "those of DIVISION")

