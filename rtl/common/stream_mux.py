"""Streams between units that stand in one order for one job and in another for the next."""

from amaranth.hdl import Cat, Module, Signal, Value

from actcodec.rtl.common.skid import Skid
from actcodec.rtl.common.target import target

__all__ = ["StreamMux"]


class StreamMux:
    """The connections of streams with several possible partners, of which a register chooses one at a time.

    All is ANDs and ORs of what the partners offer with their registers, and a payload with one source takes no gate.
    Between jobs, when nothing is chosen, nobody is valid or ready.

    Throughput, latency: those of a wire. Combinational paths: ``valid`` and ``payload`` forwards, ``ready`` backwards.
    When it is made for LUTs, where a level of logic costs more than a register, each sink except those in ``uncut`` is
    preceded by a skid buffer, which adds a cycle of latency and cuts all combinational paths.

    Parameters
    ----------
    m : Module
        The module that gets the gates, with :meth:`finish`.
    platform : platform of Amaranth, optional
        With the target (:class:`~actcodec.rtl.common.target.Target`); without it, wires.
    uncut : streams
        Sinks without a skid buffer.
    """

    def __init__(self, m: Module, platform=None, uncut=()):
        self._m, self._uncut = m, {id(sink) for sink in uncut}
        self._cuts = {} if target(platform) == "lut" else None
        self._sinks, self._sources = {}, {}

    def link(self, when, source, sink, **fields):
        """Connects two streams while ``when`` holds. Of links with the same source, or the same sink, no two may hold
        at once.

        ``fields`` are those of the sink's payload; what is not named is 0. Without any, the data go lane by lane (low
        bits to low bits) and ``last`` with them.
        """
        m, sink = self._m, self._cut(sink)
        offer = Signal(sink.p.shape(), name="offer")
        if fields:
            m.d.comb += [Value.cast(offer[name]).eq(value) for name, value in fields.items()]
        else:
            m.d.comb += [offer.data[k].eq(source.p.data[k]) for k in range(8)]
            m.d.comb += offer.last.eq(source.p.last)
        self._sinks.setdefault(id(sink), (sink, []))[1].append((when, source.valid, Value.cast(offer)))
        self._sources.setdefault(id(source), (source, []))[1].append(when & sink.ready)

    def _cut(self, sink):
        # The input of the skid in front of a sink, or the sink itself.
        if self._cuts is None or id(sink) in self._uncut:
            return sink
        if id(sink) not in self._cuts:
            skid = Skid(sink.p.shape())
            self._m.submodules[f"cut_{len(self._cuts)}"] = skid
            self._m.d.comb += [sink.valid.eq(skid.o.valid), Value.cast(sink.p).eq(Value.cast(skid.o.p)),
                               skid.o.ready.eq(sink.ready)]
            self._cuts[id(sink)] = skid.i, sink  # which lives as long, so that its number stays its own
        return self._cuts[id(sink)][0]

    def finish(self):
        """Drives ``valid`` and ``payload`` of the sinks and ``ready`` of the sources."""
        for sink, sources in self._sinks.values():
            payload = sources[0][2]
            if len(sources) > 1:
                payload = 0
                for when, _, offer in sources:
                    payload = payload | (offer & when.replicate(len(offer)))
            self._m.d.comb += [sink.valid.eq(Cat(when & valid for when, valid, _ in sources).any()),
                               Value.cast(sink.p).eq(payload)]
        for source, sinks in self._sources.values():
            self._m.d.comb += source.ready.eq(Cat(sinks).any())
