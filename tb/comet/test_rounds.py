"""Bench of rounds: symbols keep their order whatever sectors have how many of them."""

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles

from actcodec.rtl.comet.rounds import Rounds
from tb.comet import walks
from tb.harness import PATTERNS, STALLS, Bench, rng, simulate


def test_rounds():
    simulate(Rounds(), __file__)


def counts(random, kind):
    n = int(random.integers(1, 40))
    chosen = {"full": [8], "one": [1], "any": range(9), "ragged": [8, 8, 8, 3], "seldom": [0, 0, 0, 1]}[kind]
    return np.array([*random.choice(chosen, n - 1), max(1, int(random.choice(chosen)))])


KINDS = ("full", "one", "any", "ragged", "seldom")


def sectors(random, sizes, u, flags):
    """Symbols of a stream in sectors of these sizes, with anything in the other lanes."""
    lanes, outliers = random.integers(0, 4096, (len(sizes), 8)), random.random((len(sizes), 8)) < 0.5
    used = np.arange(8) < sizes[:, None]
    lanes[used], outliers[used] = u, flags
    last = np.arange(len(sizes)) == len(sizes) - 1
    edges = [int(size) | int(random.integers(16)) << 4 | int(end) << 8 for size, end in zip(sizes, last, strict=True)]
    return lanes, outliers, used, edges


def stream(random, sizes):
    u, flags = random.integers(0, 4096, sizes.sum()), random.random(sizes.sum()) < 0.3
    rounds = [np.pad(part, (0, -len(part) % 8)).reshape(-1, 8) for part in (u, flags)]
    return u, flags, walks.lanes(rounds[0], 12, rounds[1])


async def towards(bench, decompress):
    bench.dut.decompress.value = decompress
    await ClockCycles(bench.clk, 2)


async def gathers(bench, random, sizes, **patterns):
    await towards(bench, 0)
    u, flags, rounds = stream(random, sizes)
    lanes, outliers, _, edges = sectors(random, sizes, u, flags)
    run = await bench.run({"sectors_i": walks.place(walks.lanes(lanes, 12, outliers), edges, 104)},
                          {"rounds_o": len(rounds) + 1, "sectors_o": None}, random, **patterns)
    bench.equal(run["rounds_o"], [*rounds, 1 << 104], f"rounds of sectors {sizes.tolist()}")
    assert not run["sectors_o"]
    return run


async def scatters(bench, random, sizes, **patterns):
    await towards(bench, 1)
    u, flags, rounds = stream(random, sizes)
    _, _, used, edges = sectors(random, sizes, u, flags)
    run = await bench.run({"rounds_i": rounds, "walk": edges}, {"sectors_o": len(sizes), "rounds_o": None}, random,
                          **patterns)
    got, got_flags = walks.unpack(run["sectors_o"], 12)
    bench.equal([payload >> 104 for payload in run["sectors_o"]], edges, "edges")
    bench.equal(got[used].tolist(), u.tolist(), f"symbols in sectors {sizes.tolist()}")
    assert np.array_equal(got_flags[used], flags) and not run["rounds_o"]
    return run


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def gathers_and_scatters_whatever_the_ports_do(dut, idle, stall):
    random = rng()
    bench = await Bench.started(dut)
    for kind in KINDS:
        for check in random.permutation([gathers, scatters]):
            await check(bench, random, counts(random, kind), idle=idle, stall=stall)


@cocotb.test
@cocotb.parametrize(stall=["never", "half"])
async def joins_tensors_that_wait_behind_each_other(dut, stall):
    """While one ends, the first sector of the next is on offer."""
    random = rng()
    bench = await Bench.started(dut)
    sent, expected = [], []
    for size in [*range(1, 17)] * 4:
        sizes = np.array([8, 8, min(size, 8), max(size - 8, 0)])
        u, flags, rounds = stream(random, sizes)
        lanes, outliers, _, edges = sectors(random, sizes, u, flags)
        sent += walks.place(walks.lanes(lanes, 12, outliers), edges, 104)
        expected += [*rounds, 1 << 104]
    run = await bench.run({"sectors_i": sent}, {"rounds_o": len(expected)}, random, stall=stall)
    bench.equal(run["rounds_o"], expected, "rounds")


@cocotb.test
@cocotb.parametrize(check=[gathers, scatters])
async def goes_on_after_sectors_of_all_sizes(dut, check):
    """Every size behind every number of symbols that wait."""
    random = rng()
    bench = await Bench.started(dut)
    for waiting in range(8):
        for size in range(9):
            await check(bench, random, np.array([waiting, size, 8, size, 1]))


@cocotb.test
@cocotb.parametrize(check=[gathers, scatters])
async def takes_a_sector_a_cycle(dut, check):
    random = rng()
    bench = await Bench.started(dut)
    for kind in ("full", "ragged", "any", "one"):
        sizes = np.concatenate([counts(random, kind), counts(random, kind)])
        run = await check(bench, random, sizes)
        if check is scatters:
            assert run.cycles["walk"] == list(range(len(sizes)))
            assert run.cycles["sectors_o"] == list(range(2, len(sizes) + 2))
        else:
            assert run.cycles["sectors_i"] == list(range(len(sizes)))
            ends = np.flatnonzero(np.diff(np.cumsum(sizes) // 8, prepend=0)) + 1
            assert run.cycles["rounds_o"][: len(ends)] == ends.tolist()
            assert run.cycles["rounds_o"][-1] == len(sizes) + 1 + (sizes.sum() % 8 > 0)
