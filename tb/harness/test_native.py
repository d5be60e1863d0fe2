"""The library that drives streams does in each cycle what Source and Sink do: the same transfers in the same cycles."""

import cocotb
import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.skid import Skid
from tb.harness import PATTERNS, STALLS, Bench, Sink, Source, after, rng, simulate

WIDTH = 70  # bits: three words, the last of them not full


class Faults(wiring.Component):
    """A skid buffer whose output is withdrawn, or changed, while an input is high."""

    def __init__(self):
        super().__init__({"i": In(stream.Signature(WIDTH)), "o": Out(stream.Signature(WIDTH)), "withdraw": In(1),
                          "change": In(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.skid = skid = Skid(WIDTH)
        wiring.connect(m, wiring.flipped(self.i), skid.i)
        m.d.comb += [self.o.valid.eq(skid.o.valid & ~self.withdraw), skid.o.ready.eq(self.o.ready),
                     self.o.p.eq(skid.o.p ^ (self.change << WIDTH - 1))]
        return m


def test_native():
    simulate(Faults(), __file__)


async def reference(bench, beats, count, patterns):
    """What :meth:`Bench.run` does, with an end in Python for each port."""
    source, sink, cycle = Source(bench.dut, "i"), Sink(bench.dut, "o"), 0
    source.send_nowait(beats)
    for end, pattern in zip((source, sink), patterns, strict=True):
        end.set_pause_generator(pattern)
    await bench.clk.falling_edge
    while sink.count() < count or not source.idle():
        source.drive()
        sink.drive()
        await bench.clk.rising_edge
        source.sample(cycle)
        sink.sample(cycle)
        cycle += 1
        await bench.clk.falling_edge
    source.clear()
    sink.clear()
    return {"o": sink.beats}, {"i": source.cycles, "o": sink.cycles}


def pattern(name, random):
    return PATTERNS[name](np.random.default_rng(random.integers(2**63))) if name != "shy" else None


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def transfers_in_the_same_cycles(dut, idle, stall):
    bench, random = await Bench.started(dut), rng()
    seed, beats = random.integers(2**63), [int.from_bytes(random.bytes(9), "little") >> 2 for _ in range(1500)]
    for count in (len(beats), 700):  # and with fewer that are waited for
        one = np.random.default_rng(seed)
        expected = await reference(bench, beats[:count], count, [pattern(idle, one), pattern(stall, one)])
        run = await bench.run({"i": beats[:count]}, {"o": count}, np.random.default_rng(seed), idle, stall)
        assert (run.beats, run.cycles) == expected


@cocotb.test
async def ends_as_it_is_told(dut):
    bench, random = await Bench.started(dut), rng()
    run = await bench.run({"i": range(9)}, {"o": None}, random)
    assert run["o"] == list(range(8)), "a sink without a number ends with the last source"
    assert (await bench.run({}, {"o": 1}, random)).cycles == {"o": [0]}
    for moment in (1, 5):
        run = await bench.run({"i": range(100)}, {"o": 100}, random, until=after(moment))
        assert len(run.cycles["i"]) == moment + 1
        assert dut.i__valid.value == 0 and dut.o__ready.value == 0
        await bench.reset()
    assert (await bench.run({}, {}, random)).cycles == {}


async def fails(bench, error, match, *arguments, **options):
    with pytest.raises(error, match=match):
        await bench.run(*arguments, rng(), **options)
    await bench.reset()


@cocotb.test
async def says_what_is_wrong(dut):
    bench = await Bench.started(dut)
    await fails(bench, AssertionError, r"no end after 30 cycles; transfers so far: {'i': 9, 'o': 9}", {"i": range(9)},
                {"o": 10}, limit=30)
    await fails(bench, ZeroDivisionError, "", {"i": range(9)}, {"o": 9}, until=lambda: 1 / 0)
    await fails(bench, AttributeError, "dut has no stream p|contains no object named p__payload", {}, {"p": 1})
    await fails(bench, ValueError, "i: a beat that has not 70 bits", {"i": [1 << WIDTH]}, {})
    await fails(bench, ValueError, "i: a beat that has not 70 bits", {"i": [-1]}, {})


@cocotb.test
@cocotb.parametrize(fault=["withdraw", "change"])
async def sees_a_broken_rule(dut, fault):
    bench = await Bench.started(dut)

    async def breaks():
        while True:
            for level in 0, 1:
                getattr(dut, fault).value = level
                await bench.clk.falling_edge

    cocotb.start_soon(breaks())
    what = {"withdraw": "valid withdrawn before the beat", "change": "payload changed before it"}[fault]
    await fails(bench, AssertionError, rf"o: {what} was taken, cycle \d", {"i": range(99)}, {"o": 99},
                stall="mostly")
