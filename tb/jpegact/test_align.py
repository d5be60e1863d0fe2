"""Bench of the alignment buffer: words come out in the other order, for every width and number of tiles."""

import cocotb
import numpy as np
import pytest
from cocotb.triggers import FallingEdge

from golden.jpegact import blocks
from rtl.jpegact.align import Align
from tb.harness import PATTERNS, Bench, rng, simulate

WIDTHS = (1, 2, 3, 4, 5, 7, 28)  # tiles in a row of the tensor
# Cycles from the first word in to the first word out, by (decompress, layout), where the first group is whole.
LATENCY = {(0, 0): 9, (0, 1): 16, (0, 2): 30, (1, 0): 2, (1, 1): 10, (1, 2): 26}
LAST = 1 << 64


def test_align():
    simulate(Align(), __file__)


def layout_of(width):
    return min(width, 3) - 1


def sector_order(layout, count):
    """Tile order index of every word in sector order: the definition, group by group, word by word."""
    order = []
    for group in range(0, count, 4):
        tiles = range(group, min(group + 4, count))
        parts = {0: [[tile] for tile in tiles], 1: [tiles[:2], tiles[2:]], 2: [tiles]}[layout]
        order += [8 * tile + row for part in parts for row in range(8) for tile in part]
    return order


@pytest.mark.parametrize("width", WIDTHS)
def test_the_order_of_this_bench_is_that_of_golden(width):
    for high in (1, 2, 3, 4, 5):
        view = blocks.view((1, 1, 8 * high, 8 * width))
        sectors = np.arange(8 * high * width)
        expected = blocks.split(np.repeat(sectors, 8), view, True)[:, :, 0].reshape(-1)[
            sector_order(layout_of(width), high * width)]
        assert np.array_equal(blocks.order(view, True), expected)


class Aligner(Bench):
    """Starts tensors and knows what has to come out."""

    async def begin(self, decompress, layout, count):
        self.dut.decompress.value, self.dut.layout.value, self.dut.blocks.value = decompress, layout, count
        self.dut.start.value = 1
        await FallingEdge(self.clk)
        self.dut.start.value = 0

    async def tensor(self, random, decompress, layout, count, idle="never", stall="never", settle=4):
        """One tensor through the buffer, compared word by word. ``last`` at the input is noise."""
        await self.begin(decompress, layout, count)
        for _ in range(settle):
            await FallingEdge(self.clk)
        words = [int(word) for word in random.integers(0, 1 << 64, 8 * count, np.uint64)]
        order = sector_order(layout, count)
        sectors = [words[index] for index in order]
        sent, expected = (words, sectors) if decompress else (sectors, words)
        noise = random.integers(0, 2, len(sent))
        sent = [word | int(bit) * LAST for word, bit in zip(sent, noise, strict=True)]
        expected = expected[:-1] + [expected[-1] | LAST]
        run = await self.run({"i": sent}, {"o": len(sent)}, random, idle, stall)
        self.equal(run["o"], expected, f"decompress={decompress} layout={layout} {count} tiles {idle} {stall}")
        return run


async def prepared(dut):
    bench = Aligner(dut)
    dut.start.value = 0
    await bench.start()
    return bench


@cocotb.test
async def gives_every_word_its_place(dut):
    random = rng()
    bench = await prepared(dut)
    for width in WIDTHS:
        layout = layout_of(width)
        for count in (1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 22, 28, 56):
            if layout != 1 or count % 2 == 0:
                for decompress in (0, 1):
                    await bench.tensor(random, decompress, layout, count)
