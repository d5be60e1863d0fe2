"""A tensor in parts: what is computed of one stays in a cache, and memory is that of the tensor and little more."""

import math
from collections.abc import Iterator

from actcodec.golden.division import view as views
from actcodec.golden.division.view import Segments, View
from actcodec.golden.offload.blocks import GROUP, LANES

PART = 1 << 16  # values, about


def parts(view: View) -> Iterator[tuple[View, Segments, slice, slice]]:
    """Views of consecutive planes that are a tensor's View together, their segments, and the slices of planes and rows.

    Each part but the last one has whole groups of blocks, so that its blocks, segments and random numbers are those
    that the tensor has there; it is a plane at least. A View whose planes come back, or have rows missing, is one part.
    """
    if view.rows != view.planes * view.height:
        yield view, views.segments(view), slice(0, view.planes), slice(0, view.rows)
        return
    height = -(-view.height // LANES) * LANES if view.tiled else view.height
    sectors = height * view.sectors  # of a plane
    unit = GROUP * LANES // math.gcd(GROUP * LANES, sectors)
    step = unit * max(1, PART // (unit * sectors * LANES))
    known: dict[View, Segments] = {}
    for first in range(0, view.planes, step):
        last = min(first + step, view.planes)
        rows = slice(first * view.height, last * view.height)
        part = view._replace(rows=rows.stop - rows.start, planes=last - first)
        if part not in known:
            known = {part: views.segments(part)}
        yield part, known[part], slice(first, last), rows
