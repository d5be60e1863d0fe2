"""Bench of Binarize: a bit for each value greater than zero, and 1.0 or +0.0 for each bit."""

import cocotb
import numpy as np
from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.golden.gist import binarize
from actcodec.rtl.gist.binarize import Binarize, Unbinarize, words
from tb.harness import PATTERNS, STALLS, Bench, beats, pack, parameters, rng, simulate

CORNERS = {
    "+0": 0, "-0": 1 << 31, "+subnormal": 1, "-subnormal": 1 << 31 | 1, "+largest subnormal": 0x7F_FFFF,
    "+smallest normal": 0x80_0000, "+1": 0x3F80_0000, "-1": 0xBF80_0000, "+largest": 0x7F7F_FFFF,
    "-largest": 0xFF7F_FFFF, "+infinity": 0x7F80_0000, "-infinity": 0xFF80_0000, "+signalling NaN": 0x7F80_0001,
    "-signalling NaN": 0xFF80_0001, "+NaN": 0x7FC0_0000, "-NaN": 0xFFC0_0000, "+last NaN": 0x7FFF_FFFF,
}


class ThereAndBack(wiring.Component):
    """Both directions in a row: the one that is combinational has no clock of its own to run a bench by."""

    i: In(stream.Signature(words))
    o: Out(stream.Signature(words))

    def elaborate(self, platform):
        m = Module()
        m.submodules.there = there = Binarize()
        m.submodules.back = back = Unbinarize()
        wiring.connect(m, wiring.flipped(self.i), there.i)
        wiring.connect(m, there.o, back.i)
        wiring.connect(m, back.o, wiring.flipped(self.o))
        return m


def test_binarize():
    simulate(Binarize(), __file__, back=False)


def test_binarize_and_unbinarize():
    simulate(ThereAndBack(), __file__, back=True)


def stimulus(random, count):
    """Sectors of random bits, of single ones, and of corner cases, which differ from word to word."""
    words = random.integers(0, 2**32, (count, 8), np.uint32)
    kind = random.integers(4, size=(count, 8))
    words = np.where(kind == 0, 1 << random.integers(0, 32, (count, 8)), words)
    return np.where(kind < 2, words, random.choice(list(CORNERS.values()), (count, 8)))


async def check(bench, random, words, idle="never", stall="never"):
    """Sectors to masks, or on to ones and zeros, compared beat by beat."""
    positive = words.astype(np.uint32).view(np.float32) > 0
    assert binarize.forward(words.astype(np.uint32).view(np.float32)).tolist() == [
        pack(row, 1) for row in positive.tolist()]
    ones = np.where(positive, np.float32(1), np.float32(0)).view(np.uint32)
    expected = beats(ones, 32) if parameters()["back"] else beats(positive, 1)
    run = await bench.run({"i": beats(words, 32)}, {"o": len(words)}, random, idle, stall)
    bench.equal(run["o"], expected, f"{len(words)} sectors")
    return run


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def equals_golden(dut, idle, stall):
    random = rng()
    bench = await Bench.started(dut)
    for count in (1, 2, 50):
        await check(bench, random, stimulus(random, count), idle, stall)


@cocotb.test
async def every_bit_alone_tells_a_value_from_zero_and_a_nan_from_infinity(dut):
    bench = await Bench.started(dut)
    bits = 1 << np.arange(32, dtype=np.uint32)
    words = np.concatenate([bits, 0xFF << 23 | bits])
    await check(bench, rng(), np.array([np.roll(words, k)[:8] for k in range(len(words))]))


@cocotb.test
async def equals_golden_on_every_corner_in_every_lane(dut):
    random = rng()
    bench = await Bench.started(dut)
    for name, word in CORNERS.items():
        words = np.full((9, 8), 0xBF80_0000)
        words[np.arange(8), np.arange(8)] = word
        words[8] = word
        run = await check(bench, random, words)
        if not parameters()["back"]:
            greater = name.startswith("+") and "NaN" not in name and name != "+0"
            assert run["o"] == [greater << lane for lane in range(8)] + [256 | greater * 255], name


@cocotb.test
async def moves_a_sector_every_cycle(dut):
    random = rng()
    bench = await Bench.started(dut)
    run = await check(bench, random, stimulus(random, 1000))
    assert run.cycles["i"] == list(range(1000))
    assert run.cycles["o"] == list(range(1, 1001)), "and the way back takes no cycle"


@cocotb.test
async def forgets_everything_at_reset(dut):
    random = rng()
    bench = await Bench.started(dut)
    await bench.run({"i": beats(stimulus(random, 1), 32)}, {}, random)
    assert dut.o__valid.value == 1
    await bench.reset()
    assert dut.o__valid.value == 0
    await check(bench, random, stimulus(random, 5))
