"""A unit's place in a CDU: where a tensor enters it and leaves it in both directions, and what it can know of it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

from actcodec.rtl.offload.control import setting

__all__ = ["Hop", "Stage", "StageContext"]


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
    # What the coder gets of a row's mask, and whether it is empty, by a function of these and of whether the row moves.
    head: Callable | None = None


class StageContext:
    """What a unit of a CDU needs to know of where it stands.

    ``m`` is the CDU's module, ``ports`` the CDU, ``config`` the tensor's configuration, ``start`` the pulse that starts
    it, ``tiled`` whether its blocks are tiles, ``platform`` what it is elaborated for, ``coders`` those of the CDU,
    ``passing`` the modes that pass the unit. A function adds to ``uncut`` sinks that need no skid buffer when made for
    LUTs, as registers are near.
    """

    def __init__(self, m, ports, config, start, tiled, platform):
        self.m, self.ports, self.config, self.start, self.tiled = m, ports, config, start, tiled
        self.platform = platform
        self.coders = ports.coders
        self.passing = ()
        self.uncut = []
        self._units, self._counts = {}, {}

    def setting(self, name):
        """The bits of the tensor's configuration that a mode declares under that name."""
        return setting.part(self.ports.modes, self.config.settings, name)

    def count(self, nans, saturated):
        """What a unit counts, once for each of its signals; a unit that the tensor does not pass has zeros."""
        self._counts[id(nans)] = nans, saturated

    @property
    def counts(self):
        """NaNs and saturated values of the tensor."""
        return [reduce(or_, one) for one in zip(*self._counts.values(), strict=True)]

    def add(self, name, build):
        """The submodule ``name``, which ``build`` makes unless it is there."""
        if name not in self._units:
            self._units[name] = self.m.submodules[name] = build()
        return self._units[name]

    def once(self, build):
        """What the function ``build`` makes of this context, the first time."""
        if build not in self._units:
            self._units[build] = build(self)
        return self._units[build]
