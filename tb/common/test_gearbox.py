"""Bench of splitting words into pieces and of joining pieces to words."""

import cocotb
import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.gearbox import Join, Split
from actcodec.rtl.common.packer import chunk_layout
from tb.harness import PATTERNS, STALLS, Bench, after, chunks, parameters, regress, rng, simulate


class Both(wiring.Component):
    """The two beside each other."""

    def __init__(self, size):
        self.size = size
        words, pieces = stream.Signature(chunk_layout(32)), stream.Signature(chunk_layout(size))
        super().__init__({"words": In(words), "cut": Out(pieces), "pieces": In(pieces), "joined": Out(words)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.split = split = Split(self.size)
        m.submodules.join = join = Join(self.size)
        for source, sink in ((wiring.flipped(self.words), split.i), (split.o, wiring.flipped(self.cut)),
                             (wiring.flipped(self.pieces), join.i), (join.o, wiring.flipped(self.joined))):
            wiring.connect(m, source, sink)
        return m


@pytest.mark.parametrize("size", [8, *regress(1, 2)])
def test_pieces(size):
    simulate(Both(size), __file__, size=size)


@pytest.mark.parametrize("unit", [Join, Split])
@pytest.mark.parametrize("size", [0, 3, 32, 64, -8, "8", None])
def test_other_sizes_are_refused(unit, size):
    with pytest.raises(ValueError, match="size must be 1, 2, 4, 8 or 16"):
        unit(size)


def tensors(random, lengths):
    """Arrays of bytes, and all of them as words and as pieces."""
    contents = [random.integers(0, 256, length, np.uint8) for length in lengths]
    size = parameters()["size"]
    return ([beat for content in contents for beat in chunks(content, 32)],
            [beat for content in contents for beat in chunks(content, size)])


async def check(dut, random, lengths, idle="never", stall="never"):
    bench = Bench(dut)
    words, pieces = tensors(random, lengths)
    run = await bench.run({"words": words, "pieces": pieces}, {"cut": len(pieces), "joined": len(words)}, random,
                          idle, stall)
    bench.equal(run["cut"], pieces, "pieces")
    bench.equal(run["joined"], words, "words")
    return run


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def pieces_and_words_are_the_same_bytes(dut, idle, stall):
    """Of every length, directly one behind the other."""
    random = rng()
    await Bench(dut).start()
    await check(dut, random, random.permutation(100)[:40], idle, stall)


@cocotb.test
async def every_length_is_told_right(dut):
    random = rng()
    await Bench(dut).start()
    await check(dut, random, range(130))


@cocotb.test
async def an_empty_end_is_passed_on(dut):
    """Full words and pieces before it."""
    random = rng()
    bench = await Bench.started(dut)
    size = parameters()["size"]
    words, pieces = tensors(random, [96])
    tops = 262, 8 * size + size.bit_length()
    words, pieces = ([beat & ~(1 << top) for beat in beats] + [1 << top]
                     for beats, top in zip((words, pieces), tops, strict=True))
    run = await bench.run({"words": words, "pieces": pieces}, {"cut": len(pieces), "joined": len(words)}, random)
    bench.equal(run["cut"], pieces, "pieces")
    bench.equal(run["joined"], words, "words")


@cocotb.test
async def a_piece_moves_every_cycle(dut):
    random = rng()
    await Bench(dut).start()
    run = await check(dut, random, [64, 77, 320])
    count = len(run["cut"])
    assert run.cycles["cut"] == run.cycles["pieces"] == list(range(count))
    assert run.cycles["joined"] == [cycle + 1 for cycle in run.cycles["words"]], "where the last piece of a word goes"


@cocotb.test
async def everything_is_forgotten_at_reset(dut):
    random = rng()
    bench = await Bench.started(dut)
    words, pieces = tensors(random, [300])
    for fill in range(1, 40, 3):
        await bench.run({"words": words, "pieces": pieces}, {"cut": None}, random,
                        until=after(fill))
        await bench.reset()
        assert dut.joined__valid.value == 0
        await check(dut, random, [50])
