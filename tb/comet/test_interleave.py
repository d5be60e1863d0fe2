"""Bench of interleaving: golden's bytes, and FIFOs that are as deep as they have to be."""

import itertools

import cocotb
import numpy as np
import pytest

from actcodec.golden.comet import interleave
from actcodec.rtl.comet.interleave import BYTES, SPARE, STEPS, Interleave
from tb.harness import PATTERNS, STALLS, Bench, pack, regress, rng, simulate

END = 1 << 88


def test_interleave():
    simulate(Interleave(), __file__, without=[locks_up], bytes=BYTES + SPARE, steps=STEPS + SPARE)


def test_the_least_depths_do_not_lock_up():
    simulate(Interleave(BYTES, STEPS), __file__, without=[takes_a_step_a_cycle, locks_up], bytes=BYTES,
             steps=STEPS)


@pytest.mark.parametrize(("bytes", "steps"), regress((BYTES - 1, STEPS), (BYTES, STEPS - 1)))
def test_one_less_locks_up(bytes, steps):
    simulate(Interleave(bytes, steps), __file__, [locks_up], bytes=bytes, steps=steps)


@pytest.mark.parametrize("depth", [0, 2, -1, 24.0, None])
def test_other_depths_are_refused(depth):
    with pytest.raises(ValueError, match="bytes"):
        Interleave(depth)
    with pytest.raises(ValueError, match="steps"):
        Interleave(steps=depth)


# ------------------------------------------------------------------- the depths, by counting and by exhaustion
START = (0, 0), (0, 0), ((1, 1),), (1, 1)


def after(state, sizes, unit):
    """Two lanes with bytes of ``unit`` bits and no limit to what waits, after a step in which they give ``sizes`` bits
    and whatever can leave has left. A state: bits that are no byte yet; bytes that wait; what the steps that wait ask
    for, the first of all being the bytes at the beginning; what the next step will ask for."""
    part, stored, waiting, asks = state
    total = [r + size for r, size in zip(part, sizes, strict=True)]
    waiting, stored = [*waiting, asks], [n + (t >= unit) for n, t in zip(stored, total, strict=True)]
    asks = tuple(int(r == 0 or t > unit) for r, t in zip(part, total, strict=True))
    while waiting and all(n >= asked for n, asked in zip(stored, waiting[0], strict=True)):
        stored = [n - asked for n, asked in zip(stored, waiting.pop(0), strict=True)]
    return tuple(t % unit for t in total), tuple(stored), tuple(waiting), asks


def bound(unit):
    """Most steps, and most bytes of a lane, that wait, by the argument of `Interleave` for bytes of ``unit`` bits."""
    steps = 2 * unit + (unit - 1) - 1
    return steps, steps + 1 - 2


@pytest.mark.parametrize("unit", [2, 3])
def test_the_bound_is_exact_for_small_bytes(unit):
    """In all states that two lanes can reach."""
    seen, new = {START}, [START]
    while new:
        states = {after(state, sizes, unit) for state in new
                  for sizes in itertools.product(range(1, unit + 1), repeat=2)}
        new = states - seen
        seen |= new
    assert len(seen) > 50
    assert (max(len(waiting) for _, _, waiting, _ in seen), max(max(stored) for _, stored, _, _ in seen)) == bound(unit)


def test_the_bound_for_bytes_is_the_depth_less_one():
    """There is room for one more of what waits; and so much does, with one bit a step against a byte."""
    assert tuple(n + 1 for n in bound(8)) == (STEPS, BYTES)
    state, most = START, [0, 0]
    random = np.random.default_rng(1)
    for k in range(20000):
        sizes = (1, 8) if k < 100 else random.choice([1, 8, int(random.integers(1, 9))], 2)
        state = after(state, tuple(int(n) for n in sizes), 8)
        most = [max(pair) for pair in zip(most, (len(state[2]), max(state[1])), strict=True)]
    assert tuple(most) == bound(8)


# ----------------------------------------------------------------------------------------------------- the unit
def sizes(random, count, kind):
    """Bits of each lane in each step."""
    if kind == "one":
        return np.ones((count, 8), int)
    if kind == "eight":
        return np.full((count, 8), 8)
    if kind == "worst":  # one lane gives one bit a step, the others eight
        return np.where(np.arange(8) == random.integers(8), 1, 8) * np.ones((count, 1), int)
    if kind == "shifts":  # first so, then the other way round
        bits = np.where(np.arange(8) < 4, 1, 8) * np.ones((count, 1), int)
        bits[count // 2 :] = 9 - bits[count // 2 :]
        return bits
    return random.integers(1, 9 if kind == "any" else 4, (count, 8))


def phases(random):
    """Lanes that give one bit or eight, in phases of all lengths."""
    return np.concatenate([np.repeat(random.choice([1, 8], (1, 8)), int(random.integers(1, 50)), axis=0)
                           for _ in range(6)])


KINDS = ("one", "eight", "worst", "shifts", "any", "small")


class Interleaver(Bench):
    async def begin(self):
        await self.start()
        return self

    def payloads(self, bits, random):
        values = random.integers(0, 1 << bits)
        payloads = [pack(map(int, row), 8) | pack(map(int, size - 1), 3) << 64
                    for row, size in zip(values, bits, strict=True)]
        return values, [*payloads, END | int(random.integers(1 << 24)) << 64]

    async def check(self, bits, random, **patterns):
        values, sent = self.payloads(bits, random)
        expected = interleave.interleave(values, bits)
        counts = interleave.demands(bits).sum(axis=1)
        run = await self.run({"i": sent}, {"o": len(bits) + 2 if len(bits) else 1}, random, **patterns)
        got = b"".join((beat & (1 << 64) - 1).to_bytes(8, "little")[: beat >> 64 & 15] for beat in run["o"])
        for beat in run["o"]:
            assert not (beat & (1 << 64) - 1) >> 8 * (beat >> 64 & 15), "bytes behind the end"
        self.equal([beat >> 64 & 15 for beat in run["o"]], [*([8] if len(bits) else []), *map(int, counts), 0], "sizes")
        self.equal(list(got), list(expected), f"bytes of {len(bits)} steps")
        self.equal([beat >> 68 for beat in run["o"]], [0] * (len(run["o"]) - 1) + [1], "last")
        return run


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def gives_goldens_bytes_whatever_the_ports_do(dut, idle, stall):
    random = rng()
    bench = await Interleaver(dut).begin()
    for kind in KINDS:
        await bench.check(sizes(random, 40, kind), random, idle=idle, stall=stall)


@cocotb.test
async def gives_goldens_bytes_of_all_lengths(dut):
    random = rng()
    bench = await Interleaver(dut).begin()
    for count in (*range(26), 100, 300):
        for kind in KINDS:
            await bench.check(sizes(random, count, kind), random)


@cocotb.test
async def never_waits_for_itself(dut):
    """Lanes that give one bit or eight, in phases of all lengths."""
    random = rng()
    bench = await Interleaver(dut).begin()
    for _ in range(60):
        await bench.check(phases(random), random)


@cocotb.test
async def takes_a_step_a_cycle(dut):
    random = rng()
    bench = await Interleaver(dut).begin()
    for bits in (*(sizes(random, 200, kind) for kind in KINDS), *(phases(random) for _ in range(60))):
        run = await bench.check(bits, random)
        assert run.cycles["i"] == list(range(len(bits) + 1))


@cocotb.test
async def locks_up(dut):
    random = rng()
    bench = await Interleaver(dut).begin()
    _, sent = bench.payloads(sizes(random, 60, "worst"), random)
    try:
        await bench.run({"i": sent}, {"o": 62}, random, limit=400)
    except AssertionError as error:
        assert "no end" in str(error)
    else:
        raise AssertionError("it should have locked up")
