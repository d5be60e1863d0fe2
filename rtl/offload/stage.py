"""What a unit tells of its place in a CDU: where a tensor enters it and leaves it, in both directions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["Hop", "Stage"]


@dataclass(frozen=True)
class Hop:
    """A way through a unit."""

    sink: Any  # the stream that goes in
    source: Any  # the one that comes out
    # What the sink's payload is, {field: value}, by the payload that comes; None: the data lane by lane (low bits to
    # low bits), and ``last`` with them.
    fields: Callable | None = None


@dataclass(frozen=True)
class Stage:
    """A unit of a CDU. A direction in which it is left out is None.

    The last stage of a path makes the block's chunks. A coder gives them itself; of any other, ``chunk`` has the fields
    {data, count, last} by its payload, or a chunk is its lanes' low bits, as many as the block's format has.
    """

    compress: Hop | None = None
    decompress: Hop | None = None
    inner: tuple = ()  # streams of its own that are linked in both directions: source, sink, and fields as of a Hop
    registered: bool = False  # decompressing, it wants a register between itself and what takes rows apart
    coder: Any = None  # the component with ``chunks``, ``rows`` and ``empty``; its ``decompress`` has no sink
    chunk: Callable | None = None
    malformed: Any = None  # a signal: a block of this tensor was; in time for its last sector
