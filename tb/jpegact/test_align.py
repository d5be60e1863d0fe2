"""Bench of the alignment buffer: words come out in the other order, for every width and number of tiles."""

import cocotb
import numpy as np
import pytest
from cocotb.triggers import FallingEdge

from actcodec.golden.offload import blocks
from actcodec.rtl.jpegact.align import Align
from tb.harness import PATTERNS, STALLS, Bench, after, regress, rng, simulate, target

WIDTHS = (1, 2, 3, 4, 5, 7, 28)  # tiles in a row of the tensor
COUNTS = {0: range(1, 14), 1: range(2, 15, 2), 2: range(1, 26)}  # tiles of a tensor, by layout
READY = 3  # cycles from start to the first word, of which the bench uses two
LAST = 1 << 64


@pytest.mark.parametrize("target", ["cells", *regress("lut")])
def test_align(target):
    simulate(Align(), __file__, target=target, inside={
        moves_a_word_every_cycle_for_every_width_and_size: ("write_rotation", "read_rotation")})


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


def latency(decompress, layout, count):
    """Cycles from the first word in to the first word out: those before the word that completes the first tile
    (compress), or the first row over the tiles of the group (decompress), and two; for LUTs three."""
    present, more = min(count, 4, (1, 2, 4)[layout]), target() == "lut"
    if not decompress:
        return 7 * present + 2 + more
    # A single group that lacks tiles is waited for as a whole.
    return 8 * count + 1 + more if layout == 2 and count < 4 else 8 * (present - 1) + 2 + more


@pytest.mark.parametrize("width", WIDTHS)
def test_the_order_of_this_bench_is_that_of_golden(width):
    for high in (1, 2, 3, 4, 5):
        view = blocks.view((1, 1, 8 * high, 8 * width))
        sectors = np.arange(8 * high * width)
        expected = blocks.split(np.repeat(sectors, 8), view, True)[:, :, 0].reshape(-1)[
            sector_order(layout_of(width), high * width)]
        assert np.array_equal(blocks.order(view, True), expected)


class Aligner(Bench):
    """Starts tensors, and knows what has to come out and when."""

    async def begin(self, decompress, layout, count):
        self.dut.decompress.value, self.dut.layout.value, self.dut.blocks.value = decompress, layout, count
        self.dut.start.value = 1
        await FallingEdge(self.clk)
        self.dut.start.value = 0

    def words(self, random, decompress, layout, count):
        """What to send, with noise for ``last``, and what to expect."""
        words = [int(word) for word in random.integers(0, 1 << 64, 8 * count, np.uint64)]
        sectors = [words[index] for index in sector_order(layout, count)]
        sent, expected = (words, sectors) if decompress else (sectors, words)
        return ([word | int(bit) * LAST for word, bit in zip(sent, random.integers(0, 2, len(sent)), strict=True)],
                expected[:-1] + [expected[-1] | LAST])

    async def tensor(self, random, decompress, layout, count, idle="never", stall="never", until=None):
        """One tensor through the buffer, compared word by word."""
        sent, expected = self.words(random, decompress, layout, count)
        await self.begin(decompress, layout, count)
        run = await self.run({"i": sent}, {"o": len(sent)}, random, idle, stall, until=until)
        self.equal(run["o"], expected, f"decompress={decompress} layout={layout} {count} tiles, {idle}, {stall}")
        return run


async def prepared(dut):
    bench = Aligner(dut)
    await bench.start()
    return bench


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def gives_every_word_its_place(dut, idle, stall):
    random = rng()
    bench = await prepared(dut)
    # Direction and layout change from tensor to tensor, and the next one starts as soon as one is through.
    tensors = [(decompress, layout, count) for decompress in (0, 1) for layout, counts in COUNTS.items()
               for count in random.choice(counts, 6)]
    for decompress, layout, count in random.permutation(tensors):
        await bench.tensor(random, int(decompress), int(layout), int(count), idle, stall)


@cocotb.test
async def moves_a_word_every_cycle_for_every_width_and_size(dut):
    random = rng()
    bench = await prepared(dut)
    groups, rotations = set(), set()
    for width in WIDTHS:
        layout = layout_of(width)
        for count in (*range(1, 14), 14, 20, 23, 28, 32, 56, 260):
            if layout == 1 and count % 2:
                continue
            for decompress in (0, 1):
                def watch(decompress=decompress):
                    rotations.add((decompress, int(dut.write_rotation.value), int(dut.read_rotation.value)))

                run = await bench.tensor(random, decompress, layout, count, until=watch)
                groups.add((decompress, layout, (count - 1) % 4 + 1))
                first, waited = run.cycles["i"][0], latency(decompress, layout, count)
                what = f"decompress={decompress} layout={layout} {count} tiles"
                assert first == READY - 2, what
                assert run.cycles["o"] == list(range(first + waited, first + waited + 8 * count)), what
                # Only a last group with absent tiles may have to wait for its places.
                free = 8 * (count - count % 4 if layout == 2 and not decompress else count)
                assert run.cycles["i"][:free] == list(range(first, first + free)), what
    assert len(groups) == 2 * (4 + 2 + 4), "every layout with every size of the last group"
    for decompress in (0, 1):
        for port in (1, 2):
            assert {seen[port] for seen in rotations if seen[0] == decompress} == {1, 2, 4, 8, 16}


@cocotb.test
async def fills_up_and_goes_on_at_full_rate(dut):
    random = rng()
    bench = await prepared(dut)
    for decompress in (0, 1):
        for layout in (0, 1, 2):
            sent, expected = bench.words(random, decompress, layout, 24)
            await bench.begin(decompress, layout, 24)
            run = await bench.run({"i": sent}, {}, random, until=after(60))
            held = len(run.cycles["i"])
            assert held == (32 if layout == 1 else 33), f"decompress={decompress} layout={layout}: holds {held}"
            run = await bench.run({"i": sent[held:]}, {"o": len(sent)}, random)
            bench.equal(run["o"], expected, f"decompress={decompress} layout={layout} after a long stall")
            assert run.cycles["o"] == list(range(len(sent)))
            first = run.cycles["i"][0]
            assert run.cycles["i"] == list(range(first, first + len(sent) - held))


@cocotb.test
async def counts_the_groups_of_a_long_tensor(dut):
    await (await prepared(dut)).tensor(rng(), 0, 0, 4 * 514)


@cocotb.test
async def takes_nothing_before_the_start_and_after_the_end(dut):
    random = rng()
    bench = await prepared(dut)
    for decompress in (0, 1):
        for layout, counts in COUNTS.items():
            for count in counts[:4]:
                sent, expected = bench.words(random, decompress, layout, count)
                await bench.begin(decompress, layout, count)
                run = await bench.run({"i": sent * 2}, {"o": None}, random,
                                      until=after(20 * count + 100))
                assert len(run.cycles["i"]) == len(sent)
                bench.equal(run["o"], expected, f"decompress={decompress} layout={layout} {count} tiles")


@cocotb.test
async def counts_blocks_of_any_number_of_bits(dut):
    random = rng()
    bench = await prepared(dut)
    for bit in range(5, 32):
        for layout in (0, 2):
            sent, expected = bench.words(random, 0, layout, 8)
            await bench.begin(0, layout, (1 << bit) + 1)
            run = await bench.run({"i": sent}, {"o": 32}, random)
            bench.equal(run["o"][:32], expected[:32], f"2^{bit} + 1 tiles")
            await bench.reset()


@cocotb.test
async def forgets_everything_at_reset(dut):
    random = rng()
    bench = await prepared(dut)
    for fill in (0, 1, 7, 8, 29, 31, 32, 33, 40, 63, 100):
        for decompress in (0, 1):
            for layout in (0, 1, 2):
                sent, _ = bench.words(random, decompress, layout, 14)
                await bench.begin(decompress, layout, 14)
                await bench.run({"i": sent[:fill]}, {"o": None}, random)
                await bench.reset()
                await bench.tensor(random, int(random.integers(2)), layout, 10)


@cocotb.test
async def every_bit_of_the_count_counts(dut):
    """Tensors that are far from their end after two groups do not end there, nor begin to."""
    random = rng()
    bench = await prepared(dut)
    counts = [(1 << bit) + more for bit in range(4, 32) for more in (0, int(random.integers(1, 12)) & -2)]
    for index, count in enumerate([*counts, (1 << 32) - 2]):
        decompress, layout = index // 2 % 2, int(random.integers(3))
        sent, expected = bench.words(random, decompress, layout, 12)
        await bench.begin(decompress, layout, count)
        run = await bench.run({"i": sent[:80]}, {"o": 64}, random)
        bench.equal(run["o"][:64], expected[:64], f"decompress={decompress} layout={layout} {count} tiles")
        await bench.reset()
