"""A tensor in parts: what is computed of one stays in a cache, and memory is that of the tensor and little more."""

import math
from collections.abc import Iterator

from actcodec.golden.division import view as views
from actcodec.golden.division.view import Segments, View
from actcodec.golden.offload.blocks import GROUP, LANES

PART = 1 << 16  # values, about


def pieces(view: View, values: int) -> Iterator[tuple[View, slice, slice]]:
    """Views of consecutive planes that are a tensor's View together, of so many values, about, and the slices of planes
    and rows.

    Each one but the last has whole groups of blocks, so that its blocks, segments and random numbers are those that the
    tensor has there; it is a plane at least. A View whose planes come back, or have rows missing, is one piece.
    """
    if view.rows != view.planes * view.height:
        yield view, slice(0, view.planes), slice(0, view.rows)
        return
    height = -(-view.height // LANES) * LANES if view.tiled else view.height
    sectors = height * view.sectors  # of a plane
    unit = GROUP * LANES // math.gcd(GROUP * LANES, sectors)
    step = unit * max(1, values // (unit * sectors * LANES))
    for first in range(0, view.planes, step):
        last = min(first + step, view.planes)
        rows = slice(first * view.height, last * view.height)
        yield view._replace(rows=rows.stop - rows.start, planes=last - first), slice(first, last), rows


def parts(view: View) -> Iterator[tuple[View, Segments, slice, slice]]:
    """What :func:`pieces` gives, each with its segments."""
    known: dict[View, Segments] = {}
    for part, planes, rows in pieces(view, PART):
        if part not in known:
            known = {part: views.segments(part)}
        yield part, known[part], planes, rows
