"""Bench of the skid buffer: every beat once, in order, at full rate, with nothing combinational from end to end."""

import cocotb
import pytest
from cocotb.triggers import Timer

from actcodec.rtl.common.skid import Skid
from tb.harness import PATTERNS, STALLS, Bench, parameters, rng, simulate


@pytest.mark.parametrize("half", [False, True])
def test_skid(half):
    simulate(Skid(16, half), __file__, half=half)


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def passes_every_beat_once_and_in_order(dut, idle, stall):
    random = rng()
    bench = await Bench.started(dut)
    sent = [int(value) for value in random.integers(0, 1 << 16, 300)]
    run = await bench.run({"i": sent}, {"o": len(sent)}, random, idle, stall)
    bench.equal(run["o"], sent, f"idle={idle} stall={stall}")


@cocotb.test
async def moves_a_beat_every_cycle(dut):
    random = rng()
    bench = await Bench.started(dut)
    run = await bench.run({"i": range(100)}, {"o": 100}, random)
    assert run.cycles["i"] == list(range(100))
    latency = not parameters()["half"]
    assert run.cycles["o"] == list(range(latency, latency + 100))


@cocotb.test
async def holds_its_beats_and_then_refuses(dut):
    random, beats = rng(), 1 if parameters()["half"] else 2
    bench = await Bench.started(dut)
    run = await bench.run({"i": range(5)}, {}, random, until=lambda: dut.i__ready.value == 0, limit=20)
    assert len(run.cycles["i"]) == beats
    dut.o__ready.value = 1
    await Timer(500, "ps")  # no edge of the clock
    assert dut.i__ready.value == 0, "ready does not pass through"
    await bench.reset()
    run = await bench.run({"i": [7]}, {"o": 1}, random)
    assert run["o"] == [7], "reset empties it"
