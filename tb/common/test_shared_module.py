"""Bench of shared modules: written once in Verilog, and the same hardware."""

import cocotb
import pytest
from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from actcodec.elaboration import flat, verilog
from actcodec.rtl.common.shared_module import shared
from actcodec.rtl.common.skid import Skid
from tb.harness import Bench, rng, simulate


class Chain(wiring.Component):
    """Three skid buffers in a row."""

    i: In(stream.Signature(8))
    o: Out(stream.Signature(8))

    def elaborate(self, platform):
        m = Module()
        source = flipped(self.i)
        for k in range(3):
            m.submodules[f"skid_{k}"] = skid = shared(platform, "skid", lambda: Skid(8))
            connect(m, source, skid.i)
            source = skid.o
        connect(m, source, flipped(self.o))
        return m


def test_is_written_once():
    text = verilog(Chain(), "top")
    assert text.count("module top_skid") == 1 and text.count("  top_skid ") == 3
    assert "top_skid" not in flat(Chain(), "top")


def test_is_the_same_hardware():
    simulate(Chain(), __file__)


class Waiting(wiring.Component):
    """Has a port that no C++ variable can be called after."""

    wait: In(1)

    def elaborate(self, platform):
        return Module()


class Top(wiring.Component):
    i: In(1)

    def elaborate(self, platform):
        m = Module()
        m.submodules.part = shared(platform, "part", Waiting)
        return m


def test_names_of_ports_that_verilator_cannot_use_are_told():
    with pytest.raises(ValueError, match=r"ports of part must not be words .*: wait"):
        verilog(Top(), "top")


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
