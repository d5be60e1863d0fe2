"""Bench of the links: every choice of partners among streams, and that nobody else notices."""

import cocotb
from amaranth.hdl import Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from cocotb.triggers import Timer

from actcodec.rtl.common.stream_mux import StreamMux
from tb.harness import PATTERNS, SEED, STALLS, Bench, pack, rng, simulate, unpack


def rows(width):
    """Eight lanes and ``last``, as streams of a CDU have them."""
    return data.StructLayout({"data": data.ArrayLayout(width, 8), "last": 1})


WIDTHS = {"a": 4, "b": 6, "x": 4, "y": 6, "z": 6}
# Which of a and b each bit of ``chosen`` leads where; with the fields of the payload by name, the data inverted.
ROUTES = [("a", "x", False), ("b", "x", False), ("a", "y", True), ("b", "y", False), ("b", "z", True)]


class Partners(wiring.Component):
    """Two sources and three sinks, of which the last one has but one source."""

    a: In(stream.Signature(rows(4)))
    b: In(stream.Signature(rows(6)))
    x: Out(stream.Signature(rows(4)))
    y: Out(stream.Signature(rows(6)))
    z: Out(stream.Signature(rows(6)))
    chosen: In(len(ROUTES))

    def elaborate(self, platform):
        m = Module()
        links = StreamMux(m, platform)
        for k, (source, sink, named) in enumerate(ROUTES):
            source, sink = getattr(self, source), getattr(self, sink)
            fields = {"data": ~source.payload.data.as_value()} if named else {}  # last is 0
            links.link(self.chosen[k], source, sink, **fields)
        links.finish()
        return m


def test_links():
    simulate(Partners(), __file__, [every_choice_of_partners])


def test_links_of_luts():
    simulate(Partners(), __file__, [every_choice_moves_a_beat_in_every_cycle], target="lut")


def choices():
    """Values of ``chosen`` with their routes."""
    for chosen in range(1 << len(ROUTES)):
        routes = [route for k, route in enumerate(ROUTES) if chosen >> k & 1]
        if any(len({route[end] for route in routes}) < len(routes) for end in (0, 1)):
            continue  # two at once is nobody's to say
        yield chosen, routes


@cocotb.test
async def every_choice_of_partners(dut):
    random, seen = rng(), set()
    for chosen, routes in choices():
        dut.chosen.value = chosen
        for _ in range(60):
            lanes = {name: [int(value) for value in random.integers(0, 1 << WIDTHS[name], 8)] for name in "ab"}
            last, valid, ready = (dict(zip("abxyz", map(int, random.integers(0, 2, 5)), strict=True)) for _ in range(3))
            for name in "ab":
                payload = pack(lanes[name], WIDTHS[name]) | last[name] << 8 * WIDTHS[name]
                getattr(dut, f"{name}__payload").value = payload
                getattr(dut, f"{name}__valid").value = valid[name]
            for name in "xyz":
                getattr(dut, f"{name}__ready").value = ready[name]
            await Timer(1, "ns")
            what = f"SEED={SEED}: {routes}, {lanes}, last {last}, valid {valid}, ready {ready}"
            for name in "ab":
                takers = [sink for source, sink, _ in routes if source == name]
                got = int(getattr(dut, f"{name}__ready").value)
                assert got == any(ready[sink] for sink in takers), f"{what}: ready of {name}"
            for name in "xyz":
                givers = [(source, named) for source, sink, named in routes if sink == name]
                got = int(getattr(dut, f"{name}__valid").value)
                assert got == any(valid[source] for source, _ in givers), f"{what}: valid of {name}"
                for source, named in givers:
                    width, most = WIDTHS[name], (1 << WIDTHS[name]) - 1
                    payload = int(getattr(dut, f"{name}__payload").value)
                    if named:
                        flat = ~pack(lanes[source], WIDTHS[source]) & (1 << 8 * WIDTHS[source]) - 1
                        assert payload == flat, f"{what}: payload of {name}"
                    else:
                        expected = [value & most for value in lanes[source]]
                        assert unpack(payload, width, 8) == expected and payload >> 8 * width == last[source], (
                            f"{what}: payload of {name}")
            seen.add(tuple(routes))
    assert len(seen) == 10, seen


def sent(beat, source, sink, named):
    """What the sink gets of a beat of the source."""
    wide, narrow = WIDTHS[source], WIDTHS[sink]
    if named:
        return ~beat & (1 << 8 * wide) - 1
    lanes = [value & (1 << narrow) - 1 for value in unpack(beat, wide, 8)]
    return pack(lanes, narrow) | beat >> 8 * wide << 8 * narrow


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def every_choice_moves_a_beat_in_every_cycle(dut, idle, stall):
    random = rng()
    bench = await Bench.started(dut)
    for chosen, routes in choices():
        dut.chosen.value = chosen
        beats = {source: [int.from_bytes(random.bytes(7)) % (1 << 8 * WIDTHS[source] + 1) for _ in range(40)]
                 for source, _, _ in routes}
        run = await bench.run(beats, {sink: 40 for _, sink, _ in routes}, random, idle, stall, 2000)
        for source, sink, named in routes:
            expected = [sent(beat, source, sink, named) for beat in beats[source]]
            bench.equal(run[sink], expected, f"{routes}: {sink}")
            if idle == stall == "never":
                assert run.cycles[source] == list(range(40)) and run.cycles[sink] == list(range(1, 41)), sink
