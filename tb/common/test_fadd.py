"""Bench of the float32 adder: every sum equals golden's, above all where operands nearly cancel or lie at a tie."""

from collections import Counter

import cocotb
import numpy as np

from actcodec.golden.common import fadd
from actcodec.rtl.common.fadd import LATENCY, Fadd
from tb.harness import PATTERNS, STALLS, Bench, rng, simulate

CORNERS = [0, 1, 0x7F_FFFF, 0x80_0000, 0x80_0001, 0xFF_FFFF, 0x100_0000, 0x3F80_0000, 0x3F80_0001, 0x7F00_0000,
           0x7F7F_FFFF, 0x7F80_0000, 0x7F80_0001, 0x7FC0_0000, 0x7FFF_FFFF]


def test_fadd():
    simulate(Fadd(), __file__)


def pairs(random, count):
    """Words [count, 2], most of them with exponents close to each other, short fractions and opposite signs."""
    words = random.integers(0, 2**32, (count, 2), np.uint32)
    kind = random.random(count)
    # Exponents at most 27 apart, anywhere, the ends of the range included.
    exponent = random.integers(0, 256, count)
    near = np.clip(exponent + np.rint(random.normal(0, 1, count) * random.choice([1, 8], count)), 0, 255).astype(int)
    fractions = random.integers(0, 2**23, (count, 2))
    short = random.random((count, 2)) < 0.4  # few bits set at either end: ties, and carries through all of a sum
    bits = random.integers(0, 8, (count, 2))
    ends = (bits << random.choice([0, 20], (count, 2))) ^ random.choice([0, 2**23 - 1], (count, 2))
    fractions = np.where(short, ends, fractions)
    close = random.integers(0, 2, (count, 2)) << 31 | np.stack([exponent, near], 1) << 23 | fractions
    words = np.where((kind < 0.8)[:, None], close, words)
    # The same magnitude but for the last bits, and the other sign: cancellation.
    last = random.integers(0, 2**24, count) >> random.integers(0, 26, count)
    twin = words[:, 0].astype(np.int64) ^ 1 << 31 ^ last
    words[:, 1] = np.where((kind >= 0.6) & (kind < 0.8), twin, words[:, 1])
    corner = random.random((count, 2)) < np.where(kind < 0.95, 0, 0.5)[:, None]
    signed = random.choice(CORNERS, (count, 2)) | random.integers(0, 2, (count, 2)) << 31
    return np.where(corner, signed, words).astype(np.uint32)


def sums(words):
    return fadd.add(*words.astype(np.uint32).view(np.float32).T).view(np.uint32)


async def check(bench, random, words, idle="never", stall="never"):
    sources = {"i": [int(a) | int(b) << 32 for a, b in words]}
    run = await bench.run(sources, {"o": len(words)}, random, idle, stall)
    bench.equal(run["o"], sums(words).tolist(), f"{len(words)} sums")
    return run


def classes(words):
    """Counts what happens to pairs of normal numbers: how far apart they are, how far a sum moves, how it rounds."""
    seen = Counter()
    a, b = words.astype(np.uint32).view(np.float32).T.astype(np.float64)
    with np.errstate(invalid="ignore"):
        exact = a + b  # in float64: right to the last bit for exponents up to 28 apart
    exponents = (words >> 23 & 0xFF).astype(int)
    normal = ((exponents > 0) & (exponents < 255)).all(axis=1)
    apart, minus = np.abs(exponents[:, 0] - exponents[:, 1]), (words[:, 0] ^ words[:, 1]) >> 31
    result = sums(words)
    moved = (result >> 23 & 0xFF).astype(int) - exponents.max(axis=1)
    finite = normal & (apart < 28) & (result << 1 < 0xFF00_0000) & (result << 1 != 0)
    total = result.view(np.float32).astype(np.float64)
    half = np.ldexp(0.5, (result >> 23 & 0xFF).astype(int) - 150)
    error = np.abs(np.where(finite, total - exact, 0))
    rounding = np.where(error == 0, "exact", np.where(error == half, "tie", "inexact"))
    for key in zip(minus[normal].tolist(), np.minimum(apart[normal], 30).tolist(), strict=True):
        seen["apart", *key] += 1
    for key in zip(minus[finite].tolist(), moved[finite].tolist(), strict=True):
        seen["moved", *key] += 1
    for key in zip(minus[finite].tolist(), rounding[finite].tolist(), (result[finite] & 1).tolist(), strict=True):
        seen["rounded", *key] += 1
    for name, case in {
        "overflow": normal & (result << 1 == 0xFF00_0000), "flushed": normal & (result << 1 == 0) & (exact != 0),
        "cancelled": normal & (exact == 0), "NaN of infinities": np.isinf(a) & np.isinf(b) & np.isnan(exact),
        "NaN": np.isnan(a) | np.isnan(b), "infinite": np.isinf(a) ^ np.isinf(b),
        "subnormal": (np.abs(a) < 2.0**-126) & (a != 0), "-0": result == 1 << 31,
    }.items():
        seen[name] += int(case.sum())
    return seen


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def equals_golden(dut, idle, stall):
    random = rng()
    bench = await Bench.started(dut)
    for count in (1, 7, 60):
        await check(bench, random, pairs(random, count), idle, stall)


@cocotb.test
async def equals_golden_on_a_hundred_thousand_pairs(dut):
    random = rng()
    bench = await Bench.started(dut)
    corners = np.array(CORNERS + [word | 1 << 31 for word in CORNERS], np.uint32)
    # Differences that lose 1 to 24 leading bits.
    cancel = [(0x3F80_0000 | 1 << 23 - by, 0xBF80_0000) for by in range(1, 24)] + [(0x3F80_0000, 0xBF7F_FFFF)]
    # A fraction of one bit is a NaN's.
    nans = [pair for bit in range(23) for pair in ((0x7F80_0000 | 1 << bit, 0x3F80_0000),
                                                   (0x3F80_0000, 0x7F80_0000 | 1 << bit))]
    words = np.concatenate([np.stack(np.meshgrid(corners, corners), -1).reshape(-1, 2),
                            np.array(cancel + nans, np.uint32), pairs(random, 100_000)])
    run = await check(bench, random, words)
    assert run.cycles["i"] == list(range(len(words)))
    assert run.cycles["o"] == list(range(LATENCY, LATENCY + len(words)))

    seen = classes(words)
    wanted = [("apart", minus, distance) for minus in (0, 1) for distance in range(31)]
    wanted += [("moved", 0, by) for by in (0, 1)] + [("moved", 1, -by) for by in range(25)]
    wanted += [("rounded", minus, kind, odd) for minus in (0, 1) for kind in ("exact", "inexact") for odd in (0, 1)]
    wanted += [("rounded", minus, "tie", 0) for minus in (0, 1)]
    wanted += ["overflow", "flushed", "cancelled", "NaN of infinities", "NaN", "infinite", "subnormal", "-0"]
    assert not [case for case in wanted if not seen[case]]
    assert not seen["rounded", 0, "tie", 1] and not seen["rounded", 1, "tie", 1]


@cocotb.test
async def forgets_everything_at_reset(dut):
    random = rng()
    bench = await Bench.started(dut)
    for fill in range(1, LATENCY + 1):
        await bench.run({"i": [int(a) | int(b) << 32 for a, b in pairs(random, fill)]}, {}, random)
        await bench.reset()
        assert dut.o__valid.value == 0
        await check(bench, random, pairs(random, 5))
