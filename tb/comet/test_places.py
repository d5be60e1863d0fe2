"""Bench of the places in the walk: they pass in order, and the rounds that they begin are known at once."""

import cocotb
import numpy as np

from actcodec.rtl.comet.places import DEPTH, Places
from tb.harness import PATTERNS, STALLS, Bench, after, rng, simulate


def test_places():
    simulate(Places(), __file__)


def edges(random, counts):
    last = np.arange(len(counts)) == len(counts) - 1
    return [int(n) | int(random.integers(16)) << 4 | int(end) << 8 for n, end in zip(counts, last, strict=True)]


async def begin(dut):
    bench = Bench(dut)
    await bench.start()
    await bench.pulse("start")
    return bench


def begun(counts):
    """The rounds that these sectors begin."""
    return -(-sum(counts) // 8)


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def pass_in_order(dut, idle, stall):
    random = rng()
    bench = await begin(dut)
    for _ in range(3):
        places = edges(random, random.integers(0, 9, 30))
        run = await bench.run({"i": places}, {"o": 30}, random, idle=idle, stall=stall)
        bench.equal(run["o"], places, "places")
        await bench.pulse("start")


@cocotb.test
async def tell_of_every_round_as_it_begins(dut):
    """Behind any number of values that wait, whether or not the places leave."""
    random = rng()
    bench = await begin(dut)
    for first in range(9):
        for counts in ([first, 0, 0, 8, 1, 0, 7], [first, 8, 8, 3], [first, *random.integers(0, 9, 5).tolist()]):
            came, rounds, places = [], 0, edges(random, counts)
            for count, place in zip(counts, places, strict=True):
                await bench.run({"i": [place]}, {}, random)
                came.append(count)
                while random.random() < 0.7 and begun(came) > rounds:
                    assert (dut.some.value, dut.ended.value) == (1, 0), f"{came}, {rounds} taken"
                    await bench.pulse("next")
                    rounds += 1
                assert dut.some.value == (begun(came) > rounds), f"{came}, {rounds} taken"
                assert dut.ended.value == (len(came) == len(counts) and begun(came) == rounds)
            run = await bench.run({}, {"o": len(counts)}, random)
            bench.equal(run["o"], places, "places")
            await bench.pulse("start")
            assert (dut.some.value, dut.ended.value) == (0, 0)


@cocotb.test
async def run_ahead_and_wait_for_the_next_tensor(dut):
    random = rng()
    bench = await begin(dut)
    run = await bench.run({"i": edges(random, [8] * 40)}, {}, random, until=after(40))
    assert run.cycles["i"] == list(range(DEPTH))
    await bench.reset()
    run = await bench.run({"i": [1]}, {}, random, until=after(10))
    assert not run.cycles["i"]
    await bench.pulse("start")
    places = edges(random, [8] * 40)
    run = await bench.run({"i": [*places, 1]}, {"o": 40}, random, until=after(60))
    assert run.cycles["i"] == list(range(40)) and run.cycles["o"] == list(range(1, 41))


@cocotb.test
async def wait_in_every_place(dut):
    """However many there are, and with their end in any place."""
    random = rng()
    bench = await begin(dut)
    for count in [*range(1, DEPTH + 1)] * 4:
        places = edges(random, random.integers(0, 9, count))
        await bench.run({"i": places}, {}, random, until=after(count + 2))
        run = await bench.run({}, {"o": count}, random)
        bench.equal(run["o"], places, "places")
        await bench.pulse("start")


@cocotb.test
async def tell_of_rounds_whose_places_have_left(dut):
    random = rng()
    bench = await begin(dut)
    for count in (7, 8, 12, 15, 16, 24, 31):
        places = edges(random, [8] * count)
        run = await bench.run({"i": places}, {"o": count}, random)
        bench.equal(run["o"], places, "places")
        for _ in range(count):
            assert (dut.some.value, dut.ended.value) == (1, 0), count
            await bench.pulse("next")
        assert (dut.some.value, dut.ended.value) == (0, 1), count
        await bench.pulse("start")
