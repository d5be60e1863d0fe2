"""Bench of the writer: places and sectors in, AXI4 writes out; memory afterwards equals golden's, byte by byte."""

import re

import cocotb
import numpy as np
import pytest
from cocotb.triggers import FallingEdge
from cocotbext.axi import AxiRamWrite, AxiWriteBus

from actcodec.golden.offload.memory import traffic as golden
from actcodec.rtl.offload.memory.writer import WINDOW, Writer
from tb.harness import PATTERNS, SEED, Bench, pack, parameters, regress, rng, simulate, target
from tb.memory import Flat, axi_ram, begin, ends, filled, reset, started
from tb.offload.memory import places as make

LATENCY = 300


@pytest.mark.parametrize("memory, target", [("shared", "cells"), *regress(
    ("independent", "cells"), ("shared", "lut"), ("independent", "lut"))])
def test_writer(memory, target):
    simulate(Flat(Writer(memory=memory)), __file__, without=[few_writes_outstanding_are_enough, *OTHERS], target=target,
             memory=memory)


@pytest.mark.regress
@pytest.mark.parametrize("memory", ["shared", *regress("independent")])
def test_writer_of_16_bits(memory):
    simulate(Flat(Writer(memory=memory, halves=True)), __file__, [*OTHERS, gives_up_at_any_moment], memory=memory,
             sizes=[4, 2, 2])


@pytest.mark.parametrize("sizes, memory", [([4, 2, 1, 1], "shared"), *regress(([4, 1, 1], "independent"))])
def test_writer_of_8_bits(sizes, memory):
    simulate(Flat(Writer(memory=memory, halves=2 in sizes, codes=True)), __file__, [*OTHERS, gives_up_at_any_moment],
             memory=memory, sizes=sizes)


@pytest.mark.parametrize("memory", regress("shared"))
def test_writer_of_16_bits_writes_float32(memory):
    simulate(Flat(Writer(memory=memory, halves=True)), __file__, without=[few_writes_outstanding_are_enough, *OTHERS],
             memory=memory)


@pytest.mark.parametrize("memory", ["shared", *regress("independent")])
def test_writer_with_few_writes_outstanding(memory):
    simulate(Flat(Writer(16, 3, memory)), __file__, [few_writes_outstanding_are_enough], outstanding=3, width=16)


@pytest.mark.parametrize("arguments", [{"outstanding": 2}, {"outstanding": 8.0}, {"address_width": 11},
                                       {"address_width": 65}, {"memory": "common"}])
def test_parameters_out_of_range_are_refused(arguments):
    (name, value), = arguments.items()
    with pytest.raises(ValueError, match=rf"{name} must be .*not {re.escape(repr(value))}"):
        Writer(**arguments)


def same_memory(words, expected, what):
    different = np.flatnonzero(words != expected)
    assert different.size == 0, (
        f"{what}: SEED={SEED}: {different.size} words, the first at {4 * different[0]:#x}: expected "
        f"{expected[different[0]]:#x}, got {words[different[0]]:#x}")


def bursts_are_golden(bursts, places, size):
    """The bursts are golden's, but for those that were closed because they saw as many steps as a window has."""
    beats = golden.beats(places, size=size)
    _, length = golden.bursts(beats)
    got = np.array(bursts).reshape(-1, 2)
    assert got[:, 1].sum() == beats.index.size and (got[:, 1] <= 8).all()
    order = np.concatenate([np.arange(count) + start // 32 for start, count in got] or [[]])
    assert (order == beats.index).all(), "each beat once, in order"
    starts, wanted = np.cumsum(got[:, 1]) - got[:, 1], np.cumsum(length) - length
    assert np.isin(wanted, starts).all(), "a burst that had to end went on"
    # The step in which each beat begins: one for each beat of a sector, and one for a sector without.
    steps = np.maximum(np.bincount(beats.sector, minlength=len(places.words)), 1)
    rank = np.arange(beats.index.size) - np.searchsorted(beats.sector, beats.sector)
    step = (np.cumsum(steps) - steps)[beats.sector] + rank
    for k in np.flatnonzero(~np.isin(starts, wanted)):
        assert step[starts[k]] - step[starts[k - 1]] >= WINDOW, "a burst ended for no reason"


async def check(bench, memory, random, places, idle="never", width=40, size=4):
    """One tensor of values of ``size`` bytes: memory afterwards, bursts, ``busy``."""
    sectors = random.integers(0, 1 << 32, (len(places.words), 8)).astype(np.uint32)
    kind = {4: np.uint32, 2: np.uint16, 1: np.uint8}[size]  # the values are halves, or bytes, of the first words
    values = np.ascontiguousarray(sectors[:, : 2 * size]).view(kind)
    expected = golden.scatter(memory.words.view(kind), places, values).view(np.uint32)
    make.tell_size(bench.dut, size)
    before = len(memory.writes)
    await begin(bench.dut)
    run = await bench.run({"places": make.payloads(places, width), "sectors": [pack(sector, 32) for sector in sectors]},
                          {}, random, idle)
    await ends(bench.dut)
    assert memory.idle and bench.dut.error.value == 0
    same_memory(memory.words, expected, "memory")
    bursts_are_golden([burst[:2] for burst in memory.writes[before:]], places, size)
    return run


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), pause=list(PATTERNS), order=["any", "address", "data"])
async def equals_golden(dut, idle, pause, order):
    random = rng()
    slow = {channel: str(random.choice([pause, "never"])) for channel in ("aw", "w", "b")}
    bench, memory = await started(dut, make.SIZE, random, latency=int(random.integers(0, 40)), pause=slow, order=order)
    for kind in make.KINDS:
        rests = {port: str(random.choice([idle, "never"])) for port in ("places", "sectors")}
        await check(bench, memory, random, make.some(random, kind), rests)


@cocotb.test
async def meets_every_case(dut):
    random = rng()
    bench, memory = await started(dut, make.SIZE, random)
    seen = set()
    for places in [*make.cases(), *(make.some(random, kind) for kind in make.KINDS * 8)]:
        beats = golden.beats(places)
        start, length = golden.bursts(beats)
        counts = np.bincount(beats.sector, minlength=len(places.words)).tolist()
        straddles = (places.address % 32 // 4 + places.words > 8).tolist()
        seen |= {("beats", *case) for case in zip(counts, straddles, (places.words > 0).tolist(), strict=True)}
        before = len(memory.writes)
        await check(bench, memory, random, places)
        seen |= {("length", burst[1]) for burst in memory.writes[before:]}
        seen |= {("window",)} if len(memory.writes) - before > start.size else set()
        meets = (start[1:] % 4096 == 0) & (start[1:] == start[:-1] + 32 * length[:-1])
        seen |= {("4 KiB",)} if meets.any() else set()
        seen |= {("end", counts[-1], words > 0) for words in places.words[-1:]}
    wanted = {("beats", 0, False, True), ("beats", 1, False, True), ("beats", 1, True, True), ("beats", 2, True, True),
              ("beats", 0, False, False), ("window",), ("4 KiB",), ("end", 0, False), ("end", 0, True),
              ("end", 1, True), ("end", 2, True)}
    wanted |= {("length", value) for value in range(1, 9)}
    assert wanted <= seen, f"not seen: {wanted - seen}"


@cocotb.test
@cocotb.parametrize(idle=["never", "half"], pause=["never", "half"], order=["any", "address", "data"])
async def writes_values_of_other_sizes(dut, idle, pause, order):
    """In turn with values of 4 bytes."""
    random = rng()
    slow = {channel: str(random.choice([pause, "never"])) for channel in ("aw", "w", "b")}
    bench, memory = await started(dut, make.SIZE, random, latency=int(random.integers(0, 40)), pause=slow, order=order)
    for kind in make.KINDS * 2:
        size = int(random.choice(parameters()["sizes"]))
        rests = {port: str(random.choice([idle, "never"])) for port in ("places", "sectors")}
        await check(bench, memory, random, make.some(random, kind, size), rests, size=size)


@cocotb.test
async def writes_values_of_other_sizes_at_every_place_and_of_every_width(dut):
    random, size = rng(), min(parameters()["sizes"])
    bench, memory = await started(dut, make.SIZE, random, latency=5)
    for offset in range(32 // size):
        for width in range(1, 18):
            stride = size * (width + int(random.integers(0, 17)))
            places = make.rows(0x1C0 + size * offset, width, 3, stride, size=size)
            await check(bench, memory, random, places, size=size)


@cocotb.test
@cocotb.parametrize(width=[8, 28, 32, 13], base=[0, 2, 18, 20], stride=[0, 3])
async def moves_a_smaller_sector_a_cycle_at_300_cycles_of_latency(dut, width, base, stride):
    random, size = rng(), min(parameters()["sizes"])
    base += (size == 1) * (base > 2)
    bench, memory = await started(dut, make.SIZE, random, latency=LATENCY)
    places = make.rows(0x100 + base, width, 1600 // width * 4, size * (width + stride), size=size)
    run = await check(bench, memory, random, places, size=size)
    steps = np.maximum(np.bincount(golden.beats(places, size=size).sector, minlength=len(places.words)), 1)
    late = np.array(run.cycles["sectors"]) - np.cumsum(steps)
    # Nothing waits once the burst with the most steps has been formed, which takes 4 or 8 times as many sectors.
    begun = 320 // size
    assert late.max() <= WINDOW + 4, late.max()
    assert (late[begun:] == late[begun]).all(), "no pause once it has begun"


@cocotb.test
async def a_tensor_of_padding_writes_nothing(dut):
    random = rng()
    bench, memory = await started(dut, make.SIZE, random)
    for count in (1, 2, 40):
        places = make.rows(0x40, 8, count)
        places.words[:] = 0
        await check(bench, memory, random, places)
    assert not memory.writes and not memory.data


@cocotb.test
@cocotb.parametrize(width=[8, 28, 32, 13], base=[0, 4, 20], stride=[0, 3])
async def moves_a_sector_a_cycle_at_300_cycles_of_latency(dut, width, base, stride):
    random = rng()
    bench, memory = await started(dut, make.SIZE, random, latency=LATENCY)
    places = make.rows(0x100 + base, width, 1600 // width * 4, 4 * (width + stride))
    run = await check(bench, memory, random, places)
    # Once the first burst has been formed nothing waits: a sector takes a cycle for each new beat.
    steps = np.maximum(np.bincount(golden.beats(places).sector, minlength=len(places.words)), 1)
    got = np.array(run.cycles["sectors"])
    late = got - np.cumsum(steps)
    assert late.max() <= WINDOW + 4, late.max()
    assert (late[40:] == late[40]).all(), "no pause once it has begun"


@cocotb.test
@cocotb.parametrize(offset=[0, 4])
async def leaves_at_once(dut, offset):
    random = rng()
    bench, memory = await started(dut, make.SIZE, random)
    await begin(dut)
    late = int(target() == "lut")
    start, places = memory.cycle + 1 + late, make.rows(offset, 8, 1)
    run = await bench.run({"places": make.payloads(places), "sectors": [0]}, {}, random)
    await ends(dut)
    beats, stores = 1 + (offset > 0), parameters()["memory"] == "shared"
    assert run.cycles["sectors"] == [3 + beats + late]
    assert [burst[2] - start for burst in memory.writes] == [(5 if stores else 3) + beats]
    first = 8 + beats if stores else 6
    assert [cycle - start for cycle in memory.data] == [first, first + 1][:beats]


@cocotb.test
async def single_beats_run_at_full_rate_too(dut):
    random = rng()
    bench, memory = await started(dut, make.SIZE, random, latency=LATENCY)
    run = await check(bench, memory, random, make.rows(0, 8, 600, 64))
    assert np.ptp(run.cycles["sectors"][8:]) == 591 and len(memory.writes) == 600


@cocotb.test
async def writes_no_more_than_may_be_outstanding(dut):
    random = rng()
    bench, memory = await started(dut, make.SIZE, random, latency=1200)
    await begin(dut)
    count = 500
    stream = make.payloads(make.rows(0, 8, count, 64))
    await bench.run({"places": stream, "sectors": [0] * count}, {}, random, until=lambda: memory.cycle > 1000)
    assert 384 - 2 * (parameters()["memory"] == "shared") <= len(memory.writes) <= 384


@cocotb.test
async def few_writes_outstanding_are_enough(dut):
    random = rng()
    bench, memory = await started(dut, make.SIZE, random, latency=20)
    for kind in make.KINDS * 3:
        await check(bench, memory, random, make.some(random, kind), width=parameters()["width"])


@cocotb.test
async def flags_each_error_response(dut):
    random = rng()
    bench, memory = await started(dut, make.SIZE, random, pause="seldom")
    places = make.rows(0x40, 20, 8)
    sectors = random.integers(0, 1 << 32, (len(places.words), 8)).astype(np.uint32)
    stream = {"places": make.payloads(places), "sectors": [pack(sector, 32) for sector in sectors]}
    for index in [*golden.beats(places).index.tolist(), None]:
        memory.errors = {index}
        await begin(dut)
        await bench.run(stream, {}, random)
        await ends(dut)
        assert dut.error.value == (index is not None), f"beat {index}"


@cocotb.test
@cocotb.parametrize(order=["any", "address", "data"])
async def gives_up_at_any_moment(dut, order):
    random = rng()
    bench, memory = await started(dut, make.SIZE, random, pause={"aw": "half", "w": "half"}, order=order)
    partial = 0
    for turn in range(50):
        memory.latency = int(random.integers(0, 60))
        places = make.some(random, make.KINDS[turn % 4])
        sectors = random.integers(0, 1 << 32, (len(places.words), 8)).astype(np.uint32)
        before, expected = memory.words.copy(), golden.scatter(memory.words, places, sectors)
        stream = {"places": make.payloads(places), "sectors": [pack(sector, 32) for sector in sectors]}
        moment = memory.cycle + random.integers(0, 80)
        await begin(dut)
        await bench.run(stream, {}, random, "seldom", limit=10**6,
                        until=lambda end=moment: memory.cycle >= end)
        dut.abort.value = 1
        await FallingEdge(dut.clk)
        asked = len(memory.writes)
        await ends(dut)
        begun = parameters()["memory"] == "shared"  # a burst of which some beats were stored
        assert memory.idle and len(memory.writes) <= asked + 2 + begun, "at most what was on offer and behind it"
        dut.abort.value = 0
        assert dut.m_axi_awvalid.value == 0 and dut.m_axi_wvalid.value == 0
        changed = memory.words != before
        inside = golden.scatter(np.zeros_like(before), places, np.ones_like(sectors)) == 1
        assert not (changed & ~inside).any(), "a write outside the tensor"
        partial += bool(changed.any() and (memory.words != expected).any())
        await check(bench, memory, random, make.some(random, make.KINDS[turn % 4 - 1]))
    assert partial > 5


@cocotb.test
async def starts_afresh_after_reset(dut):
    random = rng()
    bench = Bench(dut)
    await bench.start()
    for cycles in range(1, 40, 3):
        memory = filled(dut, make.SIZE, random)
        task = cocotb.start_soon(memory.run())
        await check(bench, memory, random, make.some(random, "anything"))
        await begin(dut)
        stream = make.payloads(make.some(random, "tiles"))
        await bench.run({"places": stream, "sectors": [0] * len(stream)}, {}, random,
                        until=lambda end=memory.cycle + cycles, memory=memory: memory.cycle >= end)
        await reset(bench, task)


@cocotb.test
@cocotb.parametrize(pause=["never", "half", "bursts"])
async def writes_to_cocotbext_axis_ram(dut, pause):
    random = rng()
    bench, ram, words = await axi_ram(dut, AxiRamWrite, AxiWriteBus, make.SIZE, ("aw", "w", "b"), pause, random)
    for kind in make.KINDS * 3:
        places = make.some(random, kind)
        sectors = random.integers(0, 1 << 32, (len(places.words), 8)).astype(np.uint32)
        words = golden.scatter(words, places, sectors)
        await begin(dut)
        await bench.run({"places": make.payloads(places), "sectors": [pack(sector, 32) for sector in sectors]}, {},
                        random, "seldom")
        await ends(dut)
        same_memory(np.frombuffer(ram.read(0, make.SIZE), np.uint32), words, kind)
        assert dut.error.value == 0


OTHERS = [writes_values_of_other_sizes, writes_values_of_other_sizes_at_every_place_and_of_every_width,
          moves_a_smaller_sector_a_cycle_at_300_cycles_of_latency]
