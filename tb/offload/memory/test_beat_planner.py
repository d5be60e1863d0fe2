"""Bench of the decisions beat by beat: the steps of places, equal to golden."""

import cocotb
import numpy as np
import pytest

from actcodec.golden.offload.memory import traffic as golden
from actcodec.rtl.offload.memory.beat_planner import BeatPlanner
from tb.harness import PATTERNS, STALLS, Bench, parameters, regress, rng, simulate, synthesised
from tb.offload.memory import places as make

WIDTH = synthesised("beat_planner", "address_width", 24)  # bits of an address
LATENCY = 2


def test_beats():
    simulate(BeatPlanner(WIDTH), __file__, without=[equals_golden_with_values_of_other_sizes], sizes=[4])


@pytest.mark.regress
def test_beats_of_16_bits():
    simulate(BeatPlanner(WIDTH, halves=True), __file__, without=[sees_every_bit_of_a_place], sizes=[4, 2])


@pytest.mark.parametrize("sizes", [[4, 2, 1], *regress([4, 1])])
def test_beat_planner_of_8_bits(sizes):
    simulate(BeatPlanner(WIDTH, 2 in sizes, codes=True), __file__, without=[sees_every_bit_of_a_place], sizes=sizes)


def far(random):
    """Sectors and lines of scales anywhere: each one again, then but for one bit, whichever; the beat behind it, that
    one but for a bit; and carries up to every bit."""
    beats, bits, lines = [], WIDTH - 5, 29
    for bit in [*range(bits)] * 2:
        other, start = 1 << bit, int(random.integers(1 << bits)) & ~1  # even: the next beat is in the same 256 bytes
        beats += [(one, 0) for one in (start, start, start ^ other, start, start + 1, start, (start + 1) ^ other)]
        carries = start & -2 * other | other - 1
        beats += [(carries, int(random.integers(1, 8))), (carries + 1, 0)]
    held = [(line ^ change, slot) for bit in range(lines) for pair in [random.integers(1 << lines, size=2)]
            for change in (0, 0, 1 << bit) for slot, line in enumerate(pair)]
    index, offset = np.array(beats).T
    line, slot = np.resize(held, (index.size, 2)).T
    return golden.Places(32 * index + 4 * offset, np.full(index.size, 8), 8 * line + random.integers(0, 8, index.size),
                         slot)


def expect(places, gather, table, size):
    """Steps as payloads: a step for each beat of a sector, the final one with what the sector is."""
    beats = golden.beats(places, table, bool(gather), size)
    count = len(places.words)
    data = np.bincount(beats.sector[~beats.scale], minlength=count)
    # A sector without a beat of data has a final step without a beat.
    sector = np.sort(np.concatenate([beats.sector, np.flatnonzero(data == 0)]), kind="stable")
    final = np.append(np.diff(sector), 1) > 0
    beat = ~(final & (data[sector] == 0))
    assert beat.sum() == beats.index.size

    joins, index, scale = (np.zeros(sector.size, int) for _ in range(3))
    index[beat], scale[beat] = beats.index % (1 << WIDTH - 5), beats.scale
    _, lengths = golden.bursts(beats)
    joins[beat] = ~np.isin(np.arange(beats.index.size), np.cumsum(lengths) - lengths)
    word = min(parameters()["sizes"])
    finer = {4: 0, 2: 1, 1: 2}[word]
    offset = places.address % 32 // word
    end = offset + places.words * (size // word)
    last = (np.arange(sector.size) == sector.size - 1).astype(int)
    fields = [(index, WIDTH - 5, beat), (beat, 1, True), (joins, 1, beat), (last, 1, True), (scale, 1, beat),
              (final, 1, True), ((end * word > 32)[sector] & bool(gather), 1, True),
              (offset[sector], 3 + finer, True), (end[sector], 4 + finer, True),
              (np.asarray(places.slot)[sector], 1, True), (places.channel[sector] % 8, 3, True)]
    value, mask, place = np.zeros(sector.size, object), np.zeros(sector.size, object), 0
    for field, width, matters in fields:
        value += np.array([int(one) << place for one in field], object)
        mask += np.array([((1 << width) - 1) * int(one) << place for one in np.broadcast_to(matters, sector.size)],
                         object)
        place += width
    return value & mask, mask


async def check(bench, random, places, gather, scaled, idle="never", stall="never", table=make.TABLE, size=4):
    bench.dut.gather.value, bench.dut.scaled.value, bench.dut.table.value = gather, scaled, table // 32
    make.tell_size(bench.dut, size)
    expected, mask = expect(places, gather, table if scaled else None, size)
    run = await bench.run({"i": make.payloads(places, WIDTH)}, {"o": len(expected)}, random, idle, stall)
    got = [one & care for one, care in zip(run["o"], mask, strict=True)]
    bench.equal(got, expected.tolist(), f"gather={gather} scaled={scaled} size={size}")
    return run


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def equals_golden(dut, idle, stall):
    random = rng()
    bench = Bench(dut)
    await bench.start()
    for kind in make.KINDS:
        for gather in (0, 1):
            for scaled in (0, 1):
                await check(bench, random, make.some(random, kind), gather, scaled, idle, stall)


@cocotb.test
async def equals_golden_with_values_of_other_sizes(dut):
    """Sectors of every number of values at every place in a beat."""
    random, sizes = rng(), parameters()["sizes"]
    bench = Bench(dut)
    await bench.start()
    for kind in make.KINDS * 2:
        for gather, scaled in ((0, 1), (1, 0), (1, 1)):
            for size in sizes:
                await check(bench, random, make.some(random, kind, size), gather, scaled, "seldom", "half", size=size)
    for size in sizes[1:]:
        words, offset = (grid.ravel() for grid in np.meshgrid(np.arange(9), np.arange(32 // size)))
        order = random.permutation(words.size)
        every = golden.Places(32 * random.integers(0, 8, words.size) + size * offset[order], words[order],
                              random.integers(0, 20, words.size), random.integers(0, 2, words.size))
        for scaled in (0, 1):
            run = await check(bench, random, every, 1, scaled, size=size)
            assert run.cycles["o"] == list(range(LATENCY, LATENCY + len(run["o"])))


@cocotb.test
@cocotb.parametrize(gather=[0, 1])
async def sees_every_bit_of_a_place(dut, gather):
    random = rng()
    bench = Bench(dut)
    await bench.start()
    for _ in range(2):
        table = 32 * int(random.integers(1 << WIDTH - 5))
        await check(bench, random, far(random), gather, 1, "half", "half", table)


@cocotb.test
async def gives_a_step_every_cycle_after_two(dut):
    random = rng()
    bench = Bench(dut)
    await bench.start()
    for kind in make.KINDS * 4:
        run = await check(bench, random, make.some(random, kind), 1, 1)
        assert run.cycles["o"] == list(range(LATENCY, LATENCY + len(run["o"])))


@cocotb.test
async def knows_nothing_of_the_tensor_before_reset(dut):
    random = rng()
    bench = Bench(dut)
    await bench.start()
    for fill in range(1, 12):
        stream = make.payloads(make.rows(0x100, 8, 20, height=1), WIDTH)
        await bench.run({"i": stream[:fill]}, {"o": None}, random)
        await bench.reset()
        await check(bench, random, make.rows(0x100 + 32 * (fill - 1), 8, 20, height=1), 1, 1)
