"""Bench of Bitpack and Bitunpack: every RoundTo and every length, and arrays that end too soon or go on."""

import cocotb
import numpy as np
import pytest

from actcodec.golden.a2dtwp import bitpack
from actcodec.rtl.a2dtwp.bitpack import Bitpack
from actcodec.rtl.a2dtwp.bitunpack import Bitunpack
from tb.common.arrays import SECTOR, interrupts, packs, unpacks, unpacks_any_length, words
from tb.harness import PATTERNS, STALLS, Bench, chunks, parameters, rng, sectors, simulate

ROUNDTO = (1, 2, 3, 4)
LENGTHS = (0, 1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64)  # values


def test_bitpack():
    simulate(Bitpack(), __file__, unpacks=False, without=[
        unpacks_tensors_of_any_length, unpacks_tensors_whose_lengths_queue, unpacks_what_ends_too_soon,
        unpacks_what_goes_on])


def test_bitunpack():
    simulate(Bitunpack(), __file__, unpacks=True, without=[
        packs_a_tensor_whose_last_beat_is_empty, packs_tensors_back_to_back])


@pytest.mark.parametrize("unit", [Bitpack, Bitunpack])
@pytest.mark.parametrize("widths", [(), 8, "8", (8, 12), (0,)])
def test_other_widths_are_refused(unit, widths):
    with pytest.raises(ValueError, match="widths must be"):
        unit(widths)


def stimulus(random, count):
    """Words of which every byte matters, as float32."""
    return random.integers(0, 2**32, count, np.uint32).view(np.float32)


async def pack(bench, random, x, roundto, *patterns, **options):
    bench.dut.width.value = roundto - 1
    return await packs(bench, random, x, bitpack.pack(x, roundto), f"RoundTo {roundto}", *patterns, **options)


async def unpack(bench, random, content, roundto, count, *patterns, **faults):
    bench.dut.width.value = roundto - 1
    return await unpacks(bench, random, content, count, lambda have, count: bitpack.unpack(have, roundto, count),
                         f"RoundTo {roundto}", *patterns, **faults)


async def check(bench, random, count, roundto, idle="never", stall="never"):
    x = stimulus(random, count)
    if parameters()["unpacks"]:
        return await unpack(bench, random, bitpack.pack(x, roundto), roundto, count, idle, stall)
    return await pack(bench, random, x, roundto, idle, stall)


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def both_equal_golden(dut, idle, stall):
    random = rng()
    bench = await Bench.started(dut)
    for roundto in random.permutation(ROUNDTO):
        for count in (1, int(random.integers(2, 64)), int(random.integers(64, 300))):
            await check(bench, random, count, int(roundto), idle, stall)


@cocotb.test
async def both_take_every_length(dut):
    random = rng()
    bench = await Bench.started(dut)
    for roundto in ROUNDTO:
        for count in range(100):
            await check(bench, random, count, roundto)


@cocotb.test
async def both_move_a_sector_every_cycle(dut):
    random = rng()
    bench = await Bench.started(dut)
    # Beats of values at which sectors of the array move, in a period of four.
    unpacking = {1: [3], 2: [1, 3], 3: [0, 1, 3], 4: [0, 1, 2, 3]}
    packing = {**unpacking, 3: [1, 2, 3]}
    for roundto in ROUNDTO:
        run = await check(bench, random, 1024, roundto)
        if parameters()["unpacks"]:
            assert run.cycles["length"] == [0] and run.cycles["o"] == list(range(2, 130)), roundto
            assert run.cycles["i"] == [1 + k + j for k in range(0, 128, 4) for j in unpacking[roundto]], roundto
        else:
            assert run.cycles["i"] == list(range(128)), roundto
            assert run.cycles["o"] == [1 + k + j for k in range(0, 128, 4) for j in packing[roundto]], roundto


@cocotb.test
async def both_forget_everything_at_reset(dut):
    random = rng()
    bench = await Bench.started(dut)
    for roundto in ROUNDTO:
        for fill in range(1, 8):
            x = stimulus(random, 100)
            dut.width.value = roundto - 1
            if parameters()["unpacks"]:
                sent = chunks(bitpack.pack(x, roundto), SECTOR)[: -(-fill * roundto // 4)]
                await interrupts(bench, random, sent, 100)
            else:
                await interrupts(bench, random, sectors(words(x))[:fill])
            await check(bench, random, 77, roundto)


@cocotb.test
async def packs_a_tensor_whose_last_beat_is_empty(dut):
    random = rng()
    bench = await Bench.started(dut)
    for roundto in ROUNDTO:
        for count in (0, 8, 16, 24, 32, 64):
            await pack(bench, random, stimulus(random, count), roundto, "half", "half", empty=True)


@cocotb.test
async def packs_tensors_back_to_back(dut):
    random = rng()
    bench = await Bench.started(dut)
    for roundto in ROUNDTO:
        dut.width.value = roundto - 1
        tensors = [stimulus(random, int(count)) for count in random.choice(LENGTHS, 60)]
        expected = [beat for x in tensors for beat in chunks(bitpack.pack(x, roundto), SECTOR)]
        sent = [beat for x in tensors for beat in sectors(words(x))]
        run = await bench.run({"i": sent}, {"o": len(expected)}, random)
        bench.equal(run["o"], expected, f"RoundTo {roundto}")
        # 24 bits: a beat that ends in the sector behind its own takes one more cycle.
        more = sum(8 * roundto * (len(x) // 8) % SECTOR + roundto * (len(x) % 8) > SECTOR
                   or (roundto == 3 and len(x) % 8 == 0 and len(x) % 32 in (16, 24)) for x in tensors)
        assert run.cycles["i"][-1] - run.cycles["i"][0] - len(sent) + 1 in (more, more - 1), roundto


@cocotb.test
async def unpacks_tensors_of_any_length(dut):
    random = rng()
    bench = Bench(dut)
    await bench.start()
    for roundto in ROUNDTO:
        dut.width.value = roundto - 1
        content = bitpack.pack(stimulus(random, 256), roundto)
        await unpacks_any_length(bench, random, content, bitpack.unpack(content, roundto, 256))


@cocotb.test
@cocotb.parametrize(stall=["never", "half"])
async def unpacks_tensors_whose_lengths_queue(dut, stall):
    random = rng()
    bench = await Bench.started(dut)
    for roundto in ROUNDTO:
        dut.width.value = roundto - 1
        tensors = [stimulus(random, int(count)) for count in random.choice(LENGTHS, 30)]
        expected = [beat for x in tensors for beat in sectors(words(
            bitpack.unpack(bitpack.pack(x, roundto), roundto, len(x))))]
        sent = [beat for x in tensors for beat in chunks(bitpack.pack(x, roundto), SECTOR)]
        run = await bench.run({"length": [len(x) for x in tensors], "i": sent}, {"o": len(expected)}, random,
                              stall=stall)
        bench.equal(run["o"], expected, f"RoundTo {roundto}")


@cocotb.test
@cocotb.parametrize(idle=["never", "half"], stall=["never", "half"])
async def unpacks_what_ends_too_soon(dut, idle, stall):
    random = rng()
    bench = await Bench.started(dut)
    for roundto in ROUNDTO:
        for count in LENGTHS[1:]:
            content = bitpack.pack(stimulus(random, count), roundto)
            size = len(content)
            for cut in {0, 1, size // 2, size - SECTOR, size - 1} & set(range(size)):
                await unpack(bench, random, content[:cut], roundto, count, idle, stall, short=True)
            await check(bench, random, count, roundto)


@cocotb.test
@cocotb.parametrize(idle=["never", "half"], stall=["never", "half"])
async def unpacks_what_goes_on(dut, idle, stall):
    random = rng()
    bench = await Bench.started(dut)
    for roundto in ROUNDTO:
        for count in LENGTHS:
            content = bitpack.pack(stimulus(random, count), roundto)
            padded = -(-len(content) // SECTOR) * SECTOR
            for size in (padded, padded + 1, padded + 100):
                longer = np.append(content, random.integers(1, 256, size - len(content), np.uint8))
                await unpack(bench, random, longer, roundto, count, idle, stall, excess=size > padded)
            # An empty beat behind the last sector is no error.
            if count:
                sent = chunks(np.append(content, np.zeros(padded - len(content) + 1, np.uint8)), SECTOR)[:-1]
                await unpack(bench, random, sent + chunks([], SECTOR), roundto, count, idle, stall)
            await check(bench, random, count, roundto)
