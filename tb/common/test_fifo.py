"""Bench of the FIFO in a memory: every beat once, in order, at full rate; packets leave whole, and never before."""

import re

import cocotb
import pytest
from amaranth.lib import data
from cocotb.triggers import FallingEdge, Timer

from actcodec.rtl.common.fifo import Fifo
from tb.harness import PATTERNS, STALLS, Bench, after, parameters, regress, rng, simulate

PACKET = data.StructLayout({"content": 15, "last": 1})


@pytest.mark.parametrize("depth", [2, *regress(8, 13)])
def test_fifo(depth):
    simulate(Fifo(16, depth), __file__, depth=depth, latency=3, without=[
        a_packet_leaves_when_its_last_beat_is_there_and_then_without_a_pause, packets_follow_each_other_at_full_rate])


@pytest.mark.parametrize("depth", [13, *regress(8, 16)])
def test_fifo_of_packets(depth):
    simulate(Fifo(PACKET, depth, packets=True), __file__, without=[moves_a_beat_every_cycle], depth=depth, latency=4)


@pytest.mark.parametrize("arguments, name", [
    ({"depth": 1}, "depth"), ({"depth": 8.0}, "depth"), ({"depth": 8, "packets": True}, "shape")])
def test_parameters_out_of_range_are_refused(arguments, name):
    with pytest.raises(ValueError, match=rf"{name} must .*not {re.escape(repr(arguments.get(name, 16)))}"):
        Fifo(16, **arguments)


def packets(random, lengths):
    """Beats of packets of these lengths."""
    return [int(random.integers(1 << 15)) | (k == length - 1) << 15 for length in lengths for k in range(length)]


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def passes_every_beat_once_and_in_order(dut, idle, stall):
    random = rng()
    bench = await Bench.started(dut)
    sent = packets(random, random.integers(1, parameters()["depth"] + 1, 80).tolist())
    run = await bench.run({"i": sent}, {"o": len(sent)}, random, idle, stall)
    bench.equal(run["o"], sent, f"idle={idle} stall={stall}")


@cocotb.test
async def moves_a_beat_every_cycle(dut):
    random = rng()
    bench = await Bench.started(dut)
    count, latency = 5 * parameters()["depth"], parameters()["latency"]
    run = await bench.run({"i": range(count)}, {"o": count}, random)
    if parameters()["depth"] > 2:  # of two places one is free again only a cycle later
        assert run.cycles["i"] == list(range(count))
        assert run.cycles["o"] == list(range(latency, latency + count))
    assert run.cycles["o"][0] == latency


@cocotb.test
@cocotb.parametrize(early=[0, 1, 2])
async def holds_its_beats_and_then_refuses(dut, early):
    random, beats = rng(), parameters()["depth"] + 2
    bench = await Bench.started(dut)
    sent = packets(random, [1] * (beats + 5))
    await bench.run({"i": sent[:early]}, {}, random)
    for _ in range(10):  # until the first ones are behind the memory
        await FallingEdge(dut.clk)
    run = await bench.run({"i": sent[early:]}, {}, random, until=lambda: dut.i__ready.value == 0, limit=60)
    assert len(run.cycles["i"]) == beats - early
    dut.o__ready.value = 1
    await Timer(500, "ps")  # no edge of the clock
    assert dut.i__ready.value == 0, "ready does not pass through"
    dut.o__ready.value = 0
    run = await bench.run({}, {"o": beats}, random)
    bench.equal(run["o"], sent[:beats], "held")
    assert run.cycles["o"] == list(range(beats)), "without a pause"
    run = await bench.run({"i": sent[:beats]}, {}, random)
    await bench.reset()
    run = await bench.run({"i": sent[beats:]}, {"o": 5}, random)
    bench.equal(run["o"], sent[beats:], "reset empties it")


@cocotb.test
async def a_packet_leaves_when_its_last_beat_is_there_and_then_without_a_pause(dut):
    random = rng()
    bench = await Bench.started(dut)
    for length in range(1, parameters()["depth"] + 1):
        *front, last = packets(random, [length])
        run = await bench.run({"i": front}, {"o": 1}, random, until=after(length + 20))
        assert not run["o"], "nothing before the last beat"
        run = await bench.run({"i": [last]}, {"o": length}, random)
        bench.equal(run["o"], [*front, last], f"length={length}")
        latency = run.cycles["i"][0] + parameters()["latency"]
        assert run.cycles["o"] == list(range(latency, latency + length))


@cocotb.test
async def packets_follow_each_other_at_full_rate(dut):
    random, depth = rng(), parameters()["depth"]
    bench = await Bench.started(dut)
    for length in range(1, depth + 1):
        sent = packets(random, [length] * 40)
        run = await bench.run({"i": sent}, {"o": len(sent)}, random)
        bench.equal(run["o"], sent, f"length={length}")
        if depth >= 2 * length:
            assert run.cycles["i"] == list(range(len(sent)))

