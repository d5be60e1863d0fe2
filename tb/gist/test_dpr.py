"""Bench of DPR: every rounding boundary, every code, every length, and arrays that end too soon or go on; and of its
conversions alone, as a lane has them."""

import cocotb
import numpy as np
import pytest

from actcodec import demo
from actcodec.golden.gist import dpr
from actcodec.rtl.common.minifloat import Format
from actcodec.rtl.gist.dpr import DprDecode, DprEncode, DprExpand, DprReduce
from tb.common.arrays import SECTOR, interrupts, packs, unpacks, unpacks_any_length, words
from tb.harness import PATTERNS, STALLS, Bench, chunks, parameters, regress, rng, sectors, simulate

PER_SECTOR = {"fp16": 16, "fp10": 24, "fp8": 32}  # values
ALL = tuple(form.name for form in Format)


@pytest.mark.parametrize("formats", [ALL, *regress((("FP8", "FP10"),))])
def test_encode(formats):
    simulate(DprEncode(tuple(Format[name] for name in formats)), __file__, decodes=False, formats=formats, without=[
        *SECTORS, decodes_subnormal_codes_in_every_lane, decodes_tensors_of_any_length,
        decodes_tensors_whose_lengths_queue, decodes_what_ends_too_soon, decodes_what_goes_on])


@pytest.mark.parametrize("formats", [ALL])
def test_decode(formats):
    simulate(DprDecode(tuple(Format[name] for name in formats)), __file__, decodes=True, formats=formats, without=[
        *SECTORS, encodes_ends_of_ranges_and_of_roundings_in_every_lane, encodes_a_tensor_whose_last_beat_is_empty,
        encodes_tensors_back_to_back])


@pytest.mark.parametrize("formats", [ALL, *regress((("FP10",),))])
def test_reduce(formats):
    simulate(DprReduce(tuple(Format[name] for name in formats)), __file__, SECTORS, expands=False, formats=formats)


@pytest.mark.parametrize("formats", [ALL, *regress((("FP10",),))])
def test_expand(formats):
    simulate(DprExpand(tuple(Format[name] for name in formats)), __file__, SECTORS, expands=True, formats=formats)


@pytest.mark.parametrize("unit", [DprEncode, DprDecode, DprReduce, DprExpand])
@pytest.mark.parametrize("formats", [(), Format.FP8, "FP8", ("FP8",), (Format.FP8, 1)])
def test_other_formats_are_refused(unit, formats):
    with pytest.raises(ValueError, match="formats must be"):
        unit(formats)


def names():
    return [name.lower() for name in parameters()["formats"]]


def stimulus(random, count):
    """Values of every kind: bit patterns, and numbers around the range of the formats."""
    patterns = random.integers(0, 2**32, count, np.uint32).view(np.float32)
    numbers = np.ldexp(random.normal(0, 1, count), random.integers(-18, 18, count)).astype(np.float32)
    return np.where(random.random(count) < 0.3, patterns, numbers)


async def encode(bench, random, x, name, *patterns, **options):
    bench.dut.format.value = Format[name.upper()].value
    return await packs(bench, random, x, dpr.encode(x, name), name, *patterns, **options)


async def decode(bench, random, content, name, count, *patterns, **faults):
    bench.dut.format.value = Format[name.upper()].value
    return await unpacks(bench, random, content, count, lambda have, count: dpr.decode(have, name, count), name,
                         *patterns, **faults)


def codes_of(random, name, count):
    """An array of any codes at all."""
    return packed(random.integers(0, 1 << dpr.named(name).width, count), name)


def packed(codes, name):
    """The array of these codes."""
    per_word, width = dpr.named(name).per_word, dpr.named(name).width
    array = np.pad(codes, (0, -codes.size % per_word)).reshape(-1, per_word) << width * np.arange(per_word)
    return array.sum(axis=1).astype("<u4").view(np.uint8)


def in_every_lane(values):
    """All of them in each of the eight places of a sector."""
    return np.stack([np.roll(values, 37 * lane) for lane in range(8)], axis=1).reshape(-1)


async def check(bench, random, count, name, idle="never", stall="never"):
    if parameters()["decodes"]:
        return await decode(bench, random, codes_of(random, name, count), name, count, idle, stall)
    return await encode(bench, random, stimulus(random, count), name, idle, stall)


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def both_equal_golden(dut, idle, stall):
    random = rng()
    bench = await Bench.started(dut)
    for name in random.permutation(names()):
        for count in (1, int(random.integers(2, 64)), int(random.integers(64, 300))):
            await check(bench, random, count, str(name), idle, stall)


@cocotb.test
async def both_take_every_length(dut):
    random = rng()
    bench = await Bench.started(dut)
    for name in names():
        for count in range(100):
            await check(bench, random, count, name)


@cocotb.test
async def both_move_a_sector_every_cycle(dut):
    random = rng()
    bench = await Bench.started(dut)
    for name in names():
        beats = PER_SECTOR[name] // 8  # in a packed sector
        run = await check(bench, random, 64 * PER_SECTOR[name], name)
        if parameters()["decodes"]:
            assert run.cycles["length"] == [0], name
            assert run.cycles["o"] == list(range(3, 3 + 64 * beats)), name
            assert run.cycles["i"] == list(range(beats, 64 * beats + 1, beats)), name
        else:
            assert run.cycles["i"] == list(range(64 * beats)), name
            assert run.cycles["o"] == list(range(beats + 1, 64 * beats + 2, beats)), name


@cocotb.test
async def both_carry_real_activations(dut):
    random = rng()
    bench = await Bench.started(dut)
    for name in names():
        for x in demo.sample().values():
            x = x.reshape(-1)[: 1000 + int(random.integers(32))]
            if parameters()["decodes"]:
                await decode(bench, random, dpr.encode(x, name), name, x.size)
            else:
                await encode(bench, random, x, name)


@cocotb.test
async def both_forget_everything_at_reset(dut):
    random = rng()
    bench = await Bench.started(dut)
    for name in names():
        for fill in range(1, 8):
            dut.format.value = Format[name.upper()].value
            if parameters()["decodes"]:
                sent = chunks(codes_of(random, name, 200), SECTOR)[: -(-8 * fill // PER_SECTOR[name])]
                await interrupts(bench, random, sent, 200)
            else:
                await interrupts(bench, random, sectors(words(stimulus(random, 200)))[:fill])
            await check(bench, random, 77, name)


@cocotb.test
async def both_take_a_format_that_they_lack_for_their_last(dut):
    random = rng()
    bench = await Bench.started(dut)
    last = names()[-1]
    for form in {0, 1, 2, 3} - {Format[name.upper()].value for name in names()}:
        dut.format.value = form
        content = codes_of(random, last, 50)
        x = dpr.decode(content, last, 50)
        if parameters()["decodes"]:
            run = await bench.run({"length": [50], "i": chunks(content, SECTOR)}, {"o": 7}, random)
            bench.equal(run["o"], sectors(words(x)), f"format {form}")
        else:
            expected = chunks(dpr.encode(x, last), SECTOR)
            run = await bench.run({"i": sectors(words(x))}, {"o": len(expected)}, random)
            bench.equal(run["o"], expected, f"format {form}")


@cocotb.test
async def encodes_ends_of_ranges_and_of_roundings_in_every_lane(dut):
    random = rng()
    bench = await Bench.started(dut)
    single, upper = 1 << np.arange(23), (1 << 23) - (1 << np.arange(24))
    exponents = np.array([0, 1, *range(110, 147), 254, 255])
    edges = exponents[:, None] << 23 | np.concatenate([single, upper])
    pairs = 127 << 23 | single[:, None] | single
    patterns = np.concatenate([edges.reshape(-1), pairs.reshape(-1)])
    patterns |= random.integers(0, 2, patterns.size) << 31
    for name in names():
        await encode(bench, random, in_every_lane(patterns.astype(np.uint32)).view(np.float32), name)


@cocotb.test
async def decodes_subnormal_codes_in_every_lane(dut):
    random = rng()
    bench = await Bench.started(dut)
    for name in names():
        form = dpr.named(name)
        sign, mantissa = np.meshgrid([0, 1 << form.width - 1], np.arange(1 << form.mantissa))
        codes = in_every_lane((sign | mantissa).reshape(-1))
        await decode(bench, random, packed(codes, name), name, codes.size)


@cocotb.test
async def decodes_tensors_of_any_length(dut):
    random = rng()
    bench = await Bench.started(dut)
    for name in names():
        dut.format.value = Format[name.upper()].value
        content = codes_of(random, name, 256)
        await unpacks_any_length(bench, random, content, dpr.decode(content, name, 256))


@cocotb.test
async def encodes_a_tensor_whose_last_beat_is_empty(dut):
    random = rng()
    bench = await Bench.started(dut)
    for name in names():
        for count in (0, 8, 16, 24, 32, 48, 96):
            await encode(bench, random, stimulus(random, count), name, "half", "half", empty=True)


@cocotb.test
async def encodes_tensors_back_to_back(dut):
    random = rng()
    bench = await Bench.started(dut)
    for name in names():
        dut.format.value = Format[name.upper()].value
        tensors = [stimulus(random, int(count)) for count in random.integers(0, 70, 50)]
        expected = [beat for x in tensors for beat in chunks(dpr.encode(x, name), SECTOR)]
        sent = [beat for x in tensors for beat in sectors(words(x))]
        run = await bench.run({"i": sent}, {"o": len(expected)}, random)
        bench.equal(run["o"], expected, name)
        assert run.cycles["i"] == list(range(len(sent))), name


@cocotb.test
@cocotb.parametrize(stall=["never", "half"])
async def decodes_tensors_whose_lengths_queue(dut, stall):
    random = rng()
    bench = await Bench.started(dut)
    for name in names():
        dut.format.value = Format[name.upper()].value
        counts = random.integers(0, 70, 30).tolist()
        arrays = [codes_of(random, name, count) for count in counts]
        expected = [beat for content, count in zip(arrays, counts, strict=True)
                    for beat in sectors(words(dpr.decode(content, name, count)))]
        sent = [beat for content in arrays for beat in chunks(content, SECTOR)]
        run = await bench.run({"length": counts, "i": sent}, {"o": len(expected)}, random, stall=stall)
        bench.equal(run["o"], expected, name)


@cocotb.test
async def decodes_what_ends_too_soon(dut):
    random = rng()
    bench = await Bench.started(dut)
    for idle, stall in (("never", "never"), ("half", "half")):
        for name in names():
            per_word, width = dpr.named(name).per_word, dpr.named(name).width
            for count in (1, 7, 8, 9, 14, 15, 22, 23, 24, 25, 31, 48, 49, 64, 100):  # in each part of a sector
                content = codes_of(random, name, count)
                size = len(content)
                # Of the last word, FP16 and FP8 need no more than the bytes of their values.
                needed = size if name == "fp10" else size - (-count % per_word) * width // 8
                for cut in {0, 1, size // 2, size - SECTOR, needed - 1} & set(range(needed)):
                    await decode(bench, random, content[:cut], name, count, idle, stall, short=True)
                await decode(bench, random, content[:needed], name, count, idle, stall)


@cocotb.test
async def decodes_what_goes_on(dut):
    random = rng()
    bench = await Bench.started(dut)
    for idle, stall in (("never", "never"), ("half", "half")):
        for name in names():
            for count in (0, 1, 8, 24, 25, 32, 48, 96, 100):
                content = codes_of(random, name, count)
                padded = -(-len(content) // SECTOR) * SECTOR
                for size in (padded, padded + 1, padded + 8, padded + 100):
                    longer = np.append(content, random.integers(1, 256, size - len(content), np.uint8))
                    await decode(bench, random, longer, name, count, idle, stall, excess=size > padded)
                await check(bench, random, count, name)


async def convert(bench, random, values, name, *patterns):
    """Values to codes at the top of words, or such codes back to values; bits below a code mean nothing."""
    bench.dut.format.value = Format[name.upper()].value
    unit = 1 << 32 - dpr.named(name).width
    if parameters()["expands"]:
        expected = words(dpr.dequantize(values, name))
        sent = values.astype(np.uint32) * np.uint32(unit)
    else:
        expected, sent = dpr.quantize(values, name).astype(np.uint32) * np.uint32(unit), words(values)
    run = await bench.run({"i": sectors(sent)}, {"o": -(-values.size // 8)}, random, *patterns)
    meant = 0xFFFFFFFF if parameters()["expands"] else 0xFFFFFFFF // unit * unit
    kept = sectors(np.full(values.size, meant, np.uint32))
    kept = [mask | 31 << 256 for mask in kept]
    bench.equal([beat & mask for beat, mask in zip(run["o"], kept, strict=True)], sectors(expected),
                f"{name}, {values.size}")
    return run


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def converts_every_lane_whatever_the_ports_do(dut, idle, stall):
    random = rng()
    bench = await Bench.started(dut)
    for name in random.permutation(names()):
        for count in (int(random.integers(1, 64)), int(random.integers(64, 300))):
            values = random.integers(0, 1 << dpr.named(name).width, count) if parameters()["expands"] else stimulus(
                random, count)
            await convert(bench, random, values, str(name), idle, stall)


@cocotb.test
async def converts_a_sector_every_cycle_and_all_that_there_is(dut):
    """Every code, or the ends of ranges and of roundings, in every lane."""
    random = rng()
    bench = await Bench.started(dut)
    for name in names():
        if parameters()["expands"]:
            codes = np.arange(1 << dpr.named(name).width)
            values = codes[np.argsort(random.random(codes.size))] if codes.size > 1 << 10 else in_every_lane(codes)
        else:
            guard = 22 - dpr.named(name).mantissa  # it is set together with each of the bits below it, too
            exponents = np.append(np.arange(110, 147), [0, 254, 255])
            edges = exponents[:, None] << 23 | np.concatenate([
                1 << np.arange(23), (1 << 23) - (1 << np.arange(24)), 1 << guard | 1 << np.arange(guard)])
            values = in_every_lane(edges.reshape(-1).astype(np.uint32)).view(np.float32)
        run = await convert(bench, random, values, name)
        beats = -(-values.size // 8)
        assert run.cycles["i"] == list(range(beats)) and run.cycles["o"] == list(range(1, beats + 1)), name


@cocotb.test
async def converts_after_a_reset_at_any_moment(dut):
    random = rng()
    bench = await Bench.started(dut)
    for name in names():
        values = np.arange(40) if parameters()["expands"] else stimulus(random, 40)
        await interrupts(bench, random, sectors(np.arange(40, dtype=np.uint32))[: int(random.integers(1, 5))])
        await convert(bench, random, values, name)


SECTORS = [converts_every_lane_whatever_the_ports_do, converts_a_sector_every_cycle_and_all_that_there_is,
           converts_after_a_reset_at_any_moment]
