"""Bench of the code book: golden's tables for books of all kinds, and whether a book is complete."""

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles, FallingEdge

from actcodec.golden.comet.book import Book as Golden
from actcodec.rtl.comet.book import Book
from tb.harness import Bench, pack, rng, simulate

LATENCY = 9  # cycles from start to done


def test_book():
    simulate(Book(), __file__)


def some(random):
    """A complete book's counts: at each length any share of what is left."""
    left, counts = 1, []
    for length in range(1, 9):
        left *= 2
        n = left if length == 8 else int(random.integers(0, left + 1)) if random.random() < 0.4 else 0
        counts.append(n)
        left -= n
    return counts


EDGES = [[2, 0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 256], [1, 1, 1, 1, 1, 1, 1, 2], [0, 0, 0, 0, 0, 0, 128, 0],
         [1, 0, 0, 0, 0, 0, 0, 128], [0, 4, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 127, 2]]


def tables(book, decompress):
    """What the unit should give: limits, full, delta, escape."""
    numbers = book.end[:7] % 256 if decompress else np.cumsum(book.counts)[:7]
    delta = (book.delta if decompress else -book.delta.astype(int)) % 256
    return (pack(map(int, numbers), 8) | pack(map(int, book.end[:7] == 256), 1) << 56
            | pack(map(int, delta), 8) << 63 | book.U << 127)


async def work(dut, counts, decompress):
    dut.counts.value, dut.decompress.value, dut.start.value = pack(counts[:7], 8), decompress, 1
    await FallingEdge(dut.clk)
    dut.start.value = 0
    for cycle in range(1, LATENCY + 1):
        assert dut.done.value == (cycle == LATENCY)
        await FallingEdge(dut.clk)
    result = int(dut.tables.value), int(dut.bad.value)
    await ClockCycles(dut.clk, 3)
    await FallingEdge(dut.clk)
    assert result == (int(dut.tables.value), int(dut.bad.value))
    return result


@cocotb.test
async def gives_goldens_tables(dut):
    random = rng()
    bench = Bench(dut)
    await bench.start()
    seen = set()
    single = [[0] * k + [2 << k] + [0] * (7 - k) for k in range(8)]  # all codes of one length
    for counts in EDGES + single + [some(random) for _ in range(400)]:
        for decompress in (0, 1):
            got, bad = await work(dut, counts, decompress)
            assert not bad, counts
            book = Golden(counts)
            bench.equal([got], [tables(book, decompress)], f"tables of {book}, decompress={decompress}")
            seen.add(book.U)
    assert min(seen) == 1 and max(seen) == 255 and len(seen) > 40


@cocotb.test
async def flags_books_that_are_not_complete(dut):
    random = rng()
    bench = Bench(dut)
    await bench.start()
    wrong = 0
    for _ in range(600):
        counts = some(random)[:7]
        place = int(random.integers(7))
        counts[place] = int(random.choice([counts[place] + 1, random.integers(256), 255])) & 0xFF
        left = 256 - sum(n << 7 - k for k, n in enumerate(counts))
        _, bad = await work(dut, counts, 0)
        assert bad == (left < 0), counts
        wrong += bad
    assert wrong > 50
    for place in range(7):
        for bit in range(8):
            counts = [0] * 7
            counts[place] = 1 << bit
            assert (await work(dut, counts, 0))[1] == (counts[place] << 7 - place > 256), counts
    counts = [255] * 7
    assert (await work(dut, counts, 0))[1]


@cocotb.test
@cocotb.parametrize(cycles=range(LATENCY))
async def a_reset_ends_a_book(dut, cycles):
    bench = Bench(dut)
    await bench.start()
    dut.counts.value = pack(EDGES[2][:7], 8)
    await bench.pulse("start")
    for _ in range(cycles):
        await FallingEdge(dut.clk)
    await bench.reset(1)
    for _ in range(LATENCY + 1):
        assert not dut.done.value
        await FallingEdge(dut.clk)
