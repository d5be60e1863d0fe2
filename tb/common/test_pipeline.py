"""Bench of the rigid pipeline: any number of stages keeps every beat, in order, whatever the ports do; and of one that
changes nothing."""

import cocotb
import pytest
from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.pipeline import Pipeline, Register
from tb.harness import PATTERNS, STALLS, Bench, parameters, regress, rng, simulate


class Increment(wiring.Component):
    """Adds one in each of some stages."""

    i: In(stream.Signature(16))
    o: Out(stream.Signature(16))

    def __init__(self, stages):
        self.stages = stages
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        pipe = Pipeline(m, self.i, self.o)
        value = self.i.payload
        for _ in range(self.stages):
            (value,) = pipe.stage((value + 1)[:16])
        pipe.finish()
        m.d.comb += self.o.payload.eq(value)
        return m


@pytest.mark.parametrize("stages", [5, *regress(1)])
def test_pipeline(stages):
    simulate(Increment(stages), __file__, stages=stages, added=stages, every=1)


@pytest.mark.parametrize("slow", [False, True])
def test_register(slow):
    simulate(Register(16, slow), __file__, stages=1, added=0, every=1 + slow)


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def keeps_every_beat_in_order(dut, idle, stall):
    random = rng()
    bench = await Bench.started(dut)
    sent = [int(value) for value in random.integers(0, 1 << 16, 200)]
    run = await bench.run({"i": sent}, {"o": len(sent)}, random, idle, stall)
    bench.equal(run["o"], [(value + parameters()["added"]) % 65536 for value in sent], f"idle={idle} stall={stall}")


@cocotb.test
async def takes_a_cycle_a_stage_and_a_beat_a_cycle(dut):
    """Or two, where ready comes from a register."""
    bench = await Bench.started(dut)
    run = await bench.run({"i": range(50)}, {"o": 50}, rng())
    assert run.cycles["i"] == list(range(0, 50 * parameters()["every"], parameters()["every"]))
    assert run.cycles["o"] == [parameters()["stages"] + cycle for cycle in run.cycles["i"]]


@cocotb.test
async def is_empty_after_reset(dut):
    random = rng()
    bench = await Bench.started(dut)
    await bench.run({"i": range(parameters()["stages"])}, {}, random)
    await bench.reset()
    run = await bench.run({"i": [9]}, {"o": 1}, random)
    assert run["o"] == [9 + parameters()["added"]]
