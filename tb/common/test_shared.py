"""Bench of shared modules: written once in Verilog, and the same hardware."""

import cocotb
from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.common.shared import shared
from rtl.common.skid import Skid
from rtl.units import verilog
from tb.harness import Bench, rng, simulate


class Chain(wiring.Component):
    """Three skid buffers in a row."""

    i: In(stream.Signature(8))
    o: Out(stream.Signature(8))

    def elaborate(self, platform):
        m = Module()
        source = flipped(self.i)
        for k in range(3):
            m.submodules[f"skid_{k}"] = skid = shared("skid", lambda: Skid(8))
            connect(m, source, skid.i)
            source = skid.o
        connect(m, source, flipped(self.o))
        return m


def test_is_written_once():
    text = verilog(Chain(), "top")
    assert text.count("module top_skid") == 1 and text.count("  top_skid ") == 3
    assert "top_skid" not in verilog(Chain(), "top", flatten=True)


def test_is_the_same_hardware():
    simulate(Chain(), __file__)


@cocotb.test
async def passes_beats_through(dut):
    bench, random = Bench(dut), rng()
    await bench.start()
    for idle, stall in (("never", "never"), ("half", "half"), ("seldom", "shy")):
        beats = [int(value) for value in random.integers(256, size=500)]
        result = await bench.run({"i": beats}, {"o": len(beats)}, random, idle, stall)
        bench.equal(result["o"], beats, f"idle {idle}, stall {stall}")
        if idle == stall == "never":
            assert result.cycles["o"][0] - result.cycles["i"][0] == 3
