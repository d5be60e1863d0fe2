"""Bench of the coalescer: the bursts of any stream of steps, with and without a window."""

import re

import cocotb
import numpy as np
import pytest

from actcodec.rtl.common.bursts import LIMIT, Bursts
from tb.harness import PATTERNS, STALLS, Bench, parameters, regress, rng, simulate, synthesised

WIDTH = synthesised("bursts", "address_width", 20)  # bits of an address


@pytest.mark.parametrize("window", [None, *regress(5, 1)])
def test_bursts(window):
    simulate(Bursts(WIDTH, window), __file__, window=window)


@pytest.mark.parametrize("arguments", [{"address_width": 11}, {"address_width": 65}, {"window": 0}, {"window": 1.5}])
def test_parameters_out_of_range_are_refused(arguments):
    (name, value), = arguments.items()
    with pytest.raises(ValueError, match=rf"{name} must be .*not {re.escape(repr(value))}"):
        Bursts(**arguments)


def stimulus(random, count):
    """Steps of a tensor: index, beat, joins; often the next index, and joins wherever that is allowed."""
    beat = random.random(count) < random.choice([0.3, 0.9, 1.0])
    index = np.cumsum(beat) + np.cumsum((random.random(count) < 0.15) * random.integers(0, 40, count))
    index += random.integers(0, (1 << WIDTH - 5) - index[-1])
    place = np.flatnonzero(beat)
    joins = np.zeros(count, bool)
    joins[place[1:]] = (np.diff(index[place]) == 1) & (index[place[1:]] % LIMIT != 0)
    return index, beat, joins


def expect(index, beat, joins, window):
    """Each burst, and the cycle in which it leaves if a step comes in every cycle: that of the beat that does not join
    it, or the one after the last step of the tensor or of its window."""
    bursts, cycles, start = [], [], -np.inf
    window = window or np.inf
    for step, (where, there, join) in enumerate(zip(index.tolist(), beat.tolist(), joins.tolist(), strict=True)):
        if there and join and step < start + window:
            bursts[-1][1] += 1
        elif there:
            cycles.append(min(step, start + window))
            bursts.append([where, 0])
            start = step
    cycles.append(min(len(index), start + window))
    return [where << 5 | length << WIDTH for where, length in bursts], cycles[1:]


def payloads(index, beat, joins):
    width = WIDTH - 5
    return [int(where) | int(there) << width | int(join) << width + 1 | (k == len(index) - 1) << width + 2
            for k, (where, there, join) in enumerate(zip(index, beat, joins, strict=True))]


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def equals_expectation(dut, idle, stall):
    random = rng()
    bench = await Bench.started(dut)
    window = parameters()["window"]
    lengths = set()
    for _ in range(6):
        tensor = stimulus(random, int(random.integers(1, 80)))
        expected, _ = expect(*tensor, window)
        run = await bench.run({"i": payloads(*tensor)}, {"o": len(expected)}, random, idle, stall)
        bench.equal(run["o"], expected, f"window={window}")
        lengths |= {value >> WIDTH for value in expected}
    assert max(lengths) == min(LIMIT, window or LIMIT) - 1 or len(lengths) > 2


@cocotb.test
async def takes_a_step_every_cycle_and_lets_bursts_go_at_once(dut):
    random = rng()
    bench = await Bench.started(dut)
    window = parameters()["window"]
    for _ in range(20):
        tensor = stimulus(random, 60)
        expected, cycles = expect(*tensor, window)
        run = await bench.run({"i": payloads(*tensor)}, {"o": len(expected)}, random)
        assert run.cycles["i"] == list(range(60))
        assert run.cycles["o"] == cycles


@cocotb.test
async def nothing_joins_behind_the_last_step(dut):
    random = rng()
    bench = await Bench.started(dut)
    window = parameters()["window"]
    for cut in range(1, 12):
        index, beat = np.arange(12), np.ones(12, bool)
        joins = index % LIMIT != 0
        steps = payloads(index[:cut], beat[:cut], joins[:cut]) + payloads(index[cut:], beat[cut:], joins[cut:])
        expected, _ = expect(index[:cut], beat[:cut], joins[:cut], window)
        expected += expect(index[cut:], beat[cut:], joins[cut:] & (index[cut:] != cut), window)[0]
        run = await bench.run({"i": steps}, {"o": len(expected)}, random)
        bench.equal(run["o"], expected, f"{cut} steps in front")


@cocotb.test
async def forgets_its_burst_in_reset(dut):
    random = rng()
    bench = await Bench.started(dut)
    for count in range(1, 12):
        index = np.arange(count)
        steps = payloads(index, index >= 0, index % LIMIT != 0)
        await bench.run({"i": steps[:-1] or steps}, {"o": None}, random)
        await bench.reset()
        assert dut.o__valid.value == 0
        tensor = stimulus(random, 30)
        expected, _ = expect(*tensor, parameters()["window"])
        run = await bench.run({"i": payloads(*tensor)}, {"o": len(expected)}, random)
        bench.equal(run["o"], expected, "after reset")
