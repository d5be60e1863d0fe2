"""Bench of DIV: every divisor at every position, in both directions, equal to golden; and its arithmetic for all
coefficients."""

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles, FallingEdge

from actcodec.golden.jpegact import div
from actcodec.rtl.jpegact.div import CUT, FRACTION, ROUNDING, ROWS, Div, reciprocal
from tb.harness import PATTERNS, STALLS, Bench, beats, pack, rng, simulate, unpack

LATENCY = 1


def test_div():
    simulate(Div(), __file__)


def product(x, number, below):
    """What the multiplier makes of x (12 bits) and a number: the sum of six rows without their lower columns. Rows of
    negative digits are inverted, and those named in ``below`` get the one that then is missing."""
    total = 0
    for row in range(ROWS):
        low, middle, high = (x >> 2 * row + bit & 1 if 2 * row + bit >= 0 else 0 for bit in (-1, 0, 1))
        digit, negative = low + middle - 2 * high, high & (1 - (low & middle))
        shown = digit * number - negative
        cut = CUT - 2 * row
        total = total + (shown >> cut if cut > 0 else shown << -cut) + (negative << max(0, -cut)) * (row in below)
    return total


def test_every_quotient_is_exact():
    """Of every C, of which 12 bits count, and every D."""
    x = np.arange(-2048, 2048)
    for d in range(1, 256):
        far = d.bit_length() - 1
        number = reciprocal(d << 7 - far)
        assert 2**FRACTION <= number < 2 ** (FRACTION + 1)
        got = product(x, number, range(2, ROWS)) + ROUNDING + (16 << far) >> far + 5
        assert np.array_equal(np.clip(got, -128, 127), div.quantize(x << 5, d)), d
        q = np.arange(-128, 128)
        assert np.array_equal(product(16 * q, d << FRACTION - 7, range(2, ROWS)), q * d), d


def columns(blocks):
    """Blocks in the order in which the unit sees them: column by column."""
    return blocks.transpose(0, 2, 1)


def clipped(blocks, table):
    return np.clip(div.dequantize(blocks, table), -2048, 2047)


async def begin(bench, table, decompress):
    bench.dut.decompress.value = decompress
    bench.dut.table.value = pack(table.reshape(-1), 8)
    bench.dut.start.value = 1
    await FallingEdge(bench.clk)
    bench.dut.start.value = 0
    await ClockCycles(bench.clk, 2)


async def check(bench, random, blocks, table, decompress, idle="never", stall="never"):
    """Coefficients with 6 fraction bits, or quantized values, as golden divides or multiplies them."""
    await begin(bench, table, decompress)
    given = 16 * blocks if decompress else blocks >> 5
    run = await bench.run({"i": beats(columns(given), 12)}, {"o": 8 * len(blocks)}, random, idle, stall)
    expected = clipped(blocks, table) if decompress else div.quantize(blocks, table)
    got = np.array([unpack(beat, 12, 8, signed=True) for beat in run["o"]]) >> (0 if decompress else 4)
    wrong = np.argwhere(got != columns(expected).reshape(-1, 8))
    for beat, lane in wrong[:1]:
        block, column = divmod(beat, 8)
        raise AssertionError(
            f"index {beat}, lane {lane}: expected {expected[block, lane, column]}, got {got[beat, lane]}, of "
            f"{blocks[block, lane, column]} and {table[lane, column]}, decompress={decompress}")
    assert [beat >> 96 for beat in run["o"]] == [0] * (8 * len(blocks) - 1) + [1]
    return run, expected


def stimulus(random, decompress, count):
    """Values of every magnitude, and often the ends."""
    shape = (count, 8, 8)
    if decompress:
        values, ends = random.integers(-128, 128, shape), [-128, 127]
    else:
        values, ends = random.integers(-65536, 65536, shape) >> random.integers(0, 16, shape), [-65536, 65535]
    return np.where(random.random(shape) < 0.1, random.choice(ends, shape), values)


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def equals_golden(dut, idle, stall):
    random = rng()
    bench = Bench(dut)
    await bench.start()
    for decompress in (0, 1):
        for count in (1, 5):
            await check(bench, random, stimulus(random, decompress, count), random.integers(1, 256, (8, 8)),
                        decompress, idle, stall)


@cocotb.test
async def takes_each_divisor_from_its_position(dut):
    random = rng()
    bench = Bench(dut)
    await bench.start()
    seen = {0: set(), 1: set()}
    for decompress in (0, 1):
        for turn in range(20):
            # All positions differ, and each has a divisor of every size in some turn.
            table = 1 + (np.arange(64).reshape(8, 8) * 37 + 13 * turn) % 255
            _, expected = await check(bench, random, stimulus(random, decompress, 6), table, decompress)
            seen[decompress] |= set(expected.reshape(-1).tolist())
    assert {-128, -1, 0, 1, 127} <= seen[0] and {-2048, 2047} <= seen[1]
    for name in div.TABLES:
        for decompress in (0, 1):
            table = div.divisors(div.table(name)).astype(int)
            await check(bench, random, stimulus(random, decompress, 8), table, decompress)


@cocotb.test
async def rounds_every_quotient_as_golden(dut):
    """Every divisor: around each rounding boundary, and both ends; and every product."""
    random = rng()
    bench = Bench(dut)
    await bench.start()
    for d in range(1, 256):
        ties = (2 * np.arange(-129, 130)[:, None] + 1) * 32 * d + np.arange(-33, 34, 11)
        values = np.concatenate([ties.reshape(-1), np.arange(-65536, -65500, 5), np.arange(65500, 65536, 5)])
        values = np.unique(values[(values >= -65536) & (values < 65536)])
        values = np.resize(random.permutation(values), (-(-len(values) // 64), 8, 8))
        table = np.full((8, 8), d)
        await check(bench, random, values, table, 0)
        await check(bench, random, np.arange(-128, 128).reshape(4, 8, 8), table, 1)


@cocotb.test
async def moves_a_vector_every_cycle_after_one(dut):
    random = rng()
    bench = Bench(dut)
    await bench.start()
    for decompress in (0, 1):
        run, _ = await check(bench, random, stimulus(random, decompress, 20), random.integers(1, 256, (8, 8)),
                             decompress)
        assert run.cycles["i"] == list(range(160))
        assert run.cycles["o"] == list(range(LATENCY, LATENCY + 160))


@cocotb.test
async def starts_with_the_first_column(dut):
    random = rng()
    bench = Bench(dut)
    await bench.start()
    for fill in range(1, 12):
        for decompress in (0, 1):
            for again in (True, False):  # what was begun before does not matter, with a reset between or without
                await begin(bench, random.integers(1, 256, (8, 8)), decompress)
                given = beats(columns(stimulus(random, decompress, 2) >> 5), 12)
                await bench.run({"i": given[:fill]}, {"o": fill}, random)
                if again:
                    await bench.reset()
                await check(bench, random, stimulus(random, decompress, 2), random.integers(1, 256, (8, 8)), decompress)
