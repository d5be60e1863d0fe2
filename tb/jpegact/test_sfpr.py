"""Bench of SFPR: every sector equals the golden model bit for bit, in both directions, and so do the counters."""

from collections import Counter
from pathlib import Path

import cocotb
import numpy as np
import pytest
from cocotb.triggers import ClockCycles

import actcodec
from actcodec.golden.jpegact import sfpr
from actcodec.rtl.jpegact.sfpr import Sfpr
from tb.harness import PATTERNS, STALLS, Bench, after, beats, regress, rng, simulate, target

LATENCY = {"cells": 4, "lut": 6}
INFINITY = 0x7F80_0000
ACTIVATIONS = Path(actcodec.__file__).parent / "data" / "resnet20.npz"


@pytest.mark.parametrize("target", ["cells", *regress("lut")])
def test_sfpr(target):
    simulate(Sfpr(), __file__, target=target)


# ------------------------------------------------------------------------------------------------------------ the judge
def floats(words):
    return np.asarray(words, np.uint32).view(np.float32)


def bits(values):
    return np.asarray(values, np.float32).view(np.uint32)


def compressed(words, scales, signs=False):
    """What the unit gives for sectors [n, 8] with the scales [n]: int8 in the low byte."""
    return sfpr.quantize(floats(words), k(scales), signs).view(np.uint8).astype(np.uint32)


def decompressed(words, scales, signs=False):
    y = (words & 0xFF).astype(np.uint8).view(np.int8)
    return bits(sfpr.dequantize(y, sfpr.decompressing(np.asarray(scales, np.uint32))[:, None]))


def counts(words, scales):
    return sfpr.counts(floats(words), k(scales))


def k(scales):
    return sfpr.compressing(np.asarray(scales, np.uint32))[:, None]


# ------------------------------------------------------------------------------------------------------------- the unit
def scaled(words, scales):
    """Sectors [n, 8], each with its scale, as beats."""
    return beats(np.column_stack([words, scales]), 32)


async def start(dut):
    bench = Bench(dut)
    await bench.start()
    return bench


async def check(bench, random, decompress, words, scales, idle="never", stall="never", signs=0):
    """Sectors through the unit, compared beat by beat."""
    bench.dut.decompress.value, bench.dut.signs.value = decompress, signs
    expected = beats((decompressed if decompress else compressed)(words, scales, bool(signs)), 32)
    run = await bench.run({"i": scaled(words, scales)}, {"o": len(words)}, random, idle, stall)
    bench.equal(run["o"], expected, f"decompress={decompress}, signs={signs}")
    return run


async def count(bench):
    """The counters, once the last sector has reached them."""
    await ClockCycles(bench.clk, 3)
    return int(bench.dut.nans.value), int(bench.dut.saturated.value)


async def clear(bench):
    bench.dut.clear.value = 1
    await ClockCycles(bench.clk, 2)
    bench.dut.clear.value = 0
    await ClockCycles(bench.clk, 1)
    assert await count(bench) == (0, 0)


# ---------------------------------------------------------------------------------------------------------- the stimuli
def sectors(words, scales):
    """Values, each with its own scale, as sectors: the value in a lane that moves along, its negative and others in the
    rest."""
    words, scales = np.asarray(words, np.uint32).reshape(-1), np.asarray(scales, np.uint32).reshape(-1)
    lanes = np.stack([np.roll(words, 97 * k) ^ np.uint32((k & 1) << 31) for k in range(8)], axis=1)
    turn = np.arange(len(words)) % 8
    lanes[np.arange(len(words)), turn] = words
    return lanes, scales


def stimulus(random, decompress, count):
    """Random words and scales; values mostly in range, since among random bits hardly any are."""
    scales = random.integers(0, 2**32, count, np.uint32)
    words = random.integers(0, 2**32, (count, 8), np.uint32)
    if not decompress:
        near = random.random((count, 8)) < 0.75
        exponent = np.clip(FIRST - (scales >> 23 & 0xFF).astype(int)[:, None] + random.integers(-2, 12, (count, 8)),
                           0, 255)
        words = np.where(near, words & 0x807F_FFFF | (exponent << 23).astype(np.uint32), words).astype(np.uint32)
    return words, scales


FIRST = 252  # sum of biased exponents for products from 1/4 to 1
# Fractions of r whose product with 43, 77, or 25 and 50 rounds up to a power of two.
CARRIES = (0x3E_82FA, 0x54_C77B, 0x23_D70A)


def classes(words, scales):
    """Counts what a compressed value is: how its product rounds and where, or what special thing it is."""
    words, scales = np.asarray(words), np.broadcast_to(np.asarray(scales)[:, None], np.shape(words))
    seen = Counter()
    for x, k in zip(words.reshape(-1).tolist(), scales.reshape(-1).tolist(), strict=True):
        sign, exponent, fraction = "-" if x >> 31 else "+", x >> 23 & 0xFF, x & 0x7FFFFF
        if exponent in (0, 255):
            seen[sign, {(0, 0): "zero", (0, 1): "subnormal", (255, 0): "infinite", (255, 1): "nan"}
                       [exponent, int(fraction > 0)]] += 1
            continue
        if not k >> 23 & 0xFF:
            seen["no scale"] += 1
            continue
        place = exponent + (k >> 23 & 0xFF) - FIRST
        if not 0 <= place <= 9:
            seen[sign, "below" if place < 0 else "above", place if -2 <= place <= 11 else "far"] += 1
            continue
        product = (1 << 23 | fraction) * (1 << 7 | k >> 16 & 0x7F)
        half, rest = 1 << (31 - place), product & ((1 << (32 - place)) - 1)
        odd = "odd" if product >> (32 - place) & 1 else "even"
        seen[sign, place, "exact" if not rest else f"tie at {odd}" if rest == half else "up" if rest > half
             else "down"] += 1
    return seen


# ------------------------------------------------------------------------------------------------------------ the tests
@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def equals_golden(dut, idle, stall):
    random = rng()
    bench = await start(dut)
    for number in (1, 2, 40):
        for decompress, signs in ((0, 0), (1, 0), (0, 1), (1, 1)):
            await clear(bench)
            words, scales = stimulus(random, decompress, number)
            await check(bench, random, decompress, words, scales, idle, stall, signs)
            assert await count(bench) == ((0, 0) if decompress else counts(words, scales))


@cocotb.test
async def moves_a_sector_every_cycle_after_its_latency(dut):
    random, latency = rng(), LATENCY[target()]
    bench = await start(dut)
    for decompress in (0, 1):
        run = await check(bench, random, decompress, *stimulus(random, decompress, 3000))
        assert run.cycles["i"] == list(range(3000))
        assert run.cycles["o"] == list(range(latency, latency + 3000))


@cocotb.test
async def compresses_every_class_of_values(dut):
    random = rng()
    bench = await start(dut)
    significands = [0, 1, 0x40_0000, 0x7F_FFFF, *random.integers(0, 2**23, 3).tolist()]
    specials = [0, 1, 0x7F_FFFF, INFINITY, INFINITY + 1, 0x7FC0_0000, 0x7FFF_FFFF]
    words, scales = [], []
    for exponent in (0, 1, 2, 60, 127, 134, 200, 252, 253, 254):
        for fraction in (0, 1, 0x55, 0x7F):
            k = exponent << 23 | fraction << 16 | int(random.integers(2**16))  # the lower half must not matter
            near = [e for place in range(-2, 12) if 1 <= (e := FIRST + place - exponent) <= 254]
            values = [e << 23 | s for e in {1, 254, *near} for s in significands] + specials
            words += values + [1 << 31 | value for value in values]
            scales += [k] * 2 * len(values)
    words, scales = sectors(words, scales)
    for signs in (0, 1):
        await clear(bench)
        await check(bench, random, 0, words, scales, signs=signs)
        assert await count(bench) == counts(words, scales)

    seen = classes(words, scales)
    wanted = [(sign, kind) for sign in "+-" for kind in ("zero", "subnormal", "infinite", "nan")]
    wanted += [(sign, "below", place) for sign in "+-" for place in (-2, -1, "far")]
    wanted += [(sign, "above", place) for sign in "+-" for place in (10, 11, "far")]
    wanted += [(sign, place, kind) for sign in "+-" for place in range(10) for kind in ("up", "down")]
    assert not [case for case in [*wanted, "no scale"] if not seen[case]]


@cocotb.test
async def rounds_every_tie_to_even(dut):
    random = rng()
    bench = await start(dut)
    words, scales, ties = [], [], set()
    for doubled in range(-261, 262, 2):  # 2 * (n + 1/2)
        for divisor in range(1, 256, 2):
            if doubled % divisor:
                continue
            for power in random.integers(-100, 100, 2).tolist() + [0]:
                k, x = np.float32(divisor * 2.0**power), np.float32(doubled // divisor * 2.0 ** (-1 - power))
                assert float(k) * float(x) == doubled / 2
                ties.add(doubled)
                words += bits([x, np.nextafter(x, np.float32(np.inf)), np.nextafter(x, np.float32(-np.inf))]).tolist()
                scales += [int(bits(k))] * 3
    assert ties == set(range(-261, 262, 2))
    words, scales = np.array(words, np.uint32)[:, None].repeat(8, axis=1), np.array(scales, np.uint32)
    for signs in (0, 1):
        await clear(bench)
        await check(bench, random, 0, words, scales, signs=signs)
        assert await count(bench) == counts(words, scales)
    seen = classes(words, scales)
    # 1/2 is 1 * 1/2 and 5/2 is 5 * 1/2: no products of significands of 2 or more
    places = [(1, "even"), (2, "odd"), *((place, odd) for place in range(3, 10) for odd in ("even", "odd"))]
    wanted = [(sign, place, f"tie at {odd}") for sign in "+-" for place, odd in places]
    assert not [case for case in wanted if not seen[case]]


@cocotb.test
async def sees_the_lowest_bits_beside_a_tie(dut):
    random = rng()
    bench = await start(dut)
    words, scales, seen = [], [], set()
    for place in range(10):
        for integer in range((1 << place) >> 2, 1 << min(place, 8)):
            tie = (2 * integer + 1) << (31 - place)
            for k in range(128 + integer % 5, 256, 1 if place < 4 else 5):
                for x in (tie // k, tie // k + 1):  # significands whose product is less than one of k away
                    away = x * k - tie
                    if 1 << 23 <= x < 1 << 24 and 0 < abs(away) < 64:
                        sign, exponent = int(random.integers(2)), int(random.integers(10, 240))
                        words.append(sign << 31 | (FIRST + place - exponent) << 23 | x & 0x7F_FFFF)
                        scales.append(exponent << 23 | (k & 0x7F) << 16)
                        seen.add((place, away > 0, integer & 1))
    # The first place has only integer 0, the second only 1: 0 and a half is the smallest product there, none near it.
    assert len(seen) == 2 + 2 + 8 * 4, seen
    words, scales = sectors(words, scales)
    await check(bench, random, 0, words, scales)
    assert await count(bench) == counts(words, scales)


@cocotb.test
async def tells_saturation_from_the_ends_of_the_range(dut):
    random = rng()
    bench = await start(dut)
    values = np.arange(-1100, 1100).astype(np.float32) / 4  # -275 to 275, over all of int8 and its ties
    for k in (1, 0.5, 4, 1.5 * 2.0**-60):
        x = (values / np.float32(k)).reshape(-1, 1).repeat(8, axis=1)
        scales = np.full(len(x), bits(k))
        for row, scale in ((x, scales), (x[::-1], scales)):
            await clear(bench)
            await check(bench, random, 0, bits(row), scale)
            assert await count(bench) == counts(bits(row), scale)
    # one value at a time: -128 is in the range, -128.5 goes to it, 127.5 does not go to 127
    for value, saturates in ((-128, 0), (-128.5, 0), (-128.75, 1), (127, 0), (127.25, 0), (127.5, 1), (128, 1),
                             (255.75, 1), (-255.75, 1), (256, 1), (-256, 1), (np.inf, 1), (-np.inf, 1)):
        await clear(bench)
        words = np.zeros((1, 8), np.uint32)
        words[0, 5] = bits(value)
        await check(bench, random, 0, words, bits([1.0]))
        assert await count(bench) == (0, saturates), value


@cocotb.test
async def decompresses_every_integer(dut):
    random = rng()
    bench = await start(dut)
    scales = [exponent << 23 | fraction for exponent in (1, 2, 100, 127, 246, 247, 248, 253, 254)
              for fraction in (0, 1, 2, 3, 0x2A_AAAA, 0x55_5555, 0x7F_FFFE, 0x7F_FFFF, *CARRIES)]
    scales += [0, 1, 0x7F_FFFF, INFINITY, 0x7FC0_0001, 1 << 31, 0xBF80_0000]
    scales += random.integers(1 << 23, 254 << 23, 60).tolist()
    words = np.arange(-128, 128).astype(np.int32).view(np.uint32).reshape(32, 8)
    words = np.concatenate([random.permuted(words.reshape(-1)).reshape(32, 8) for _ in scales])
    words ^= random.integers(0, 2**24, words.shape, np.uint32) << 8  # only the low bytes matter
    scales = np.repeat(np.array(scales, np.uint32), 32)
    await check(bench, random, 1, words, scales)
    assert await count(bench) == (0, 0)

    seen = Counter()
    y = (words & 0xFF).astype(np.uint8).view(np.int8).astype(int)
    for row, r in zip(y.tolist(), scales.tolist(), strict=True):
        for value in row:
            exponent = r >> 23 & 0xFF
            if not value or exponent in (0, 255):
                seen["y is 0" if not value else "r is 0" if not exponent else "r is infinite"] += 1
                continue
            product = (1 << 23 | r & 0x7FFFFF) * abs(value)
            drop = product.bit_length() - 24
            half, rest = (1 << drop) >> 1, product & ((1 << drop) - 1)
            rounded = (product >> drop) + (rest > half or (rest == half > 0 and product >> drop & 1))
            seen["exact" if not rest else "tie" if rest == half else "up" if rest > half else "down"] += 1
            seen["carry"] += rounded == 1 << 24
            biased = exponent + drop + (rounded == 1 << 24)
            seen["largest"] += biased == 254
            seen["overflow"] += biased >= 255
            seen["overflow by the rounding alone"] += biased == 255 and rounded == 1 << 24
            seen[value] += 1
    wanted = ["y is 0", "r is 0", "r is infinite", "exact", "tie", "up", "down", "carry", "largest", "overflow",
              "overflow by the rounding alone"]
    assert not [case for case in (*wanted, *range(-128, 0), *range(1, 128)) if not seen[case]]


@cocotb.test
async def carries_into_the_exponent_only_from_a_full_significand(dut):
    random = rng()
    bench = await start(dut)
    words, scales, seen = [], [], Counter()
    for y in range(1, 129):
        factor = y << (8 - y.bit_length())
        for edge in (2**31, 3 * 2**30):  # products that are a little less
            for fraction in range((edge - 600) // factor, edge // factor + 1):
                if not 2**23 <= fraction < 2**24:
                    continue
                words.append(-y & 0xFF if y == 128 or random.integers(2) else y)
                scales.append(int(random.integers(1, 240)) << 23 | fraction & 0x7F_FFFF)
                product = fraction * factor
                drop = product.bit_length() - 24
                half, rest = 1 << (drop - 1), product & ((1 << drop) - 1)
                seen[product >> drop, "up" if rest > half else "down" if rest < half else "tie"] += 1
    wanted = [(significand, way) for significand in (0xFF_FFFF, 0xFF_FFFE, 0xBF_FFFF) for way in ("up", "down")]
    assert not [case for case in wanted if not seen[case]], seen
    await check(bench, random, 1, *sectors(words, scales))


@cocotb.test
async def carries_real_activations_there_and_back(dut):
    random = rng()
    bench = await start(dut)
    with np.load(ACTIVATIONS) as tensors:
        assert len(tensors) > 1
        for x in tensors.values():
            x = x[:1]
            k, r = sfpr.scales(x)
            per_sector = x[0].size // 8 // len(k)
            words = bits(x).reshape(-1, 8)
            scales = [np.repeat(bits(scale), per_sector) for scale in (k, r)]
            await clear(bench)
            run = await check(bench, random, 0, words, scales[0])
            assert await count(bench) == sfpr.counts(x, k)
            y = np.array([[beat >> (32 * lane) & 0xFF for lane in range(8)] for beat in run["o"]], np.uint32)
            assert np.array_equal(y.astype(np.uint8).view(np.int8).reshape(x.shape), sfpr.quantize(x, k))
            await check(bench, random, 1, y, scales[1])
            run = await check(bench, random, 0, words, scales[0], signs=1)
            y = np.array([[beat >> (32 * lane) & 0xFF for lane in range(8)] for beat in run["o"]], np.uint32)
            assert np.array_equal(y.astype(np.uint8).view(np.int8).reshape(x.shape) > 0, x > 0)


@cocotb.test
async def forgets_everything_at_reset_and_counts_at_clear(dut):
    random, latency = rng(), LATENCY[target()]
    bench = await start(dut)
    nans = np.full((3, 8), INFINITY + 1, np.uint32)
    for fill in range(1, 10):
        for decompress in (0, 1):
            dut.decompress.value = decompress
            await bench.run({"i": scaled(*stimulus(random, decompress, min(fill, latency)))}, {}, random)
            await bench.run({}, {"o": None}, random, until=after(fill - 1))
            await bench.reset()
            assert await count(bench) == (0, 0)
            words, scales = stimulus(random, decompress, 6)
            await check(bench, random, decompress, words, scales)
            assert await count(bench) == ((0, 0) if decompress else counts(words, scales))
    # a clear right after the last sector forgets that one too
    await check(bench, random, 0, nans, np.zeros(3, np.uint32))
    await clear(bench)
