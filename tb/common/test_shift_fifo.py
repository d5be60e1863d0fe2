"""Bench of the FIFO whose words move on: every word once, in order, at full rate; it tells what it holds."""

import cocotb
import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from cocotb.triggers import FallingEdge

from actcodec.rtl.common.shift_fifo import shift_fifo
from tb.harness import PATTERNS, STALLS, Bench, parameters, regress, rng, simulate


class ShiftFifo(wiring.Component):
    """The FIFO between two streams; ``behind``: more than one word is there."""

    i: In(stream.Signature(16))
    o: Out(stream.Signature(16))
    behind: Out(1)

    def __init__(self, depth):
        super().__init__()
        self.depth = depth

    def elaborate(self, platform):
        m = Module()
        full = Signal()
        word, some, behind, filled = shift_fifo(m, self.depth, self.i.p, self.i.valid & self.i.ready, self.o.ready, "w")
        m.d.sync += full.eq(filled)
        m.d.comb += [self.i.ready.eq(~full), self.o.p.eq(word), self.o.valid.eq(some), self.behind.eq(behind)]
        return m


@pytest.mark.parametrize("depth", [9, *regress(3, 4)])
def test_shift_fifo(depth):
    simulate(ShiftFifo(depth), __file__, depth=depth)


def words(random, count):
    return [int(word) for word in random.integers(1 << 16, size=count)]


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def passes_every_word_once_and_in_order(dut, idle, stall):
    random = rng()
    bench = await Bench.started(dut)
    sent = words(random, 40 * parameters()["depth"])
    run = await bench.run({"i": sent}, {"o": len(sent)}, random, idle, stall)
    bench.equal(run["o"], sent, f"idle={idle} stall={stall}")


@cocotb.test
async def moves_a_word_every_cycle(dut):
    random = rng()
    bench = await Bench.started(dut)
    sent = words(random, 50)
    run = await bench.run({"i": sent}, {"o": len(sent)}, random)
    assert run.cycles == {"i": list(range(50)), "o": list(range(1, 51))}


@cocotb.test
async def holds_as_many_words_as_it_is_deep_and_tells_of_more_than_one(dut):
    random, depth = rng(), parameters()["depth"]
    bench = await Bench.started(dut)
    for _ in range(4):
        sent = words(random, depth + 1)
        for held, word in enumerate(sent[:depth]):
            assert dut.behind.value == (held > 1)
            await bench.run({"i": [word]}, {}, random)
        run = await bench.run({"i": sent[depth:]}, {}, random, until=lambda: dut.i__ready.value == 0, limit=10)
        assert not run.cycles["i"]
        run = await bench.run({}, {"o": depth - 1}, random)
        bench.equal(run["o"], sent[: depth - 1], "held")
        assert not dut.behind.value and dut.o__valid.value and dut.i__ready.value
        run = await bench.run({}, {"o": 1}, random)
        bench.equal(run["o"], sent[depth - 1 : depth], "the last one")
        await bench.run({"i": words(random, 3)}, {}, random)
        await bench.reset()
        await FallingEdge(dut.clk)
        assert not dut.behind.value and not dut.o__valid.value
