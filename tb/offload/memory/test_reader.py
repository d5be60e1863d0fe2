"""Bench of the reader: places in, AXI4 reads, sectors and scales out, equal to golden."""

import re

import cocotb
import numpy as np
import pytest
from cocotb.triggers import FallingEdge
from cocotbext.axi import AxiRamRead, AxiReadBus

from actcodec.golden.offload.memory import traffic as golden
from actcodec.rtl.offload.memory.reader import Reader
from tb.harness import PATTERNS, STALLS, Bench, after, pack, parameters, regress, rng, simulate, target
from tb.memory import Flat, axi_ram, ends, filled, reset, started
from tb.memory import begin as start
from tb.offload.memory import places as make

OUTSTANDING = 384
LATENCY = 300
MODES = [(1, 1), (1, 0), (0, 1), (0, 0)]  # gather, scaled


@pytest.mark.parametrize("memory, target", [("shared", "cells"), *regress(("independent", "cells"),
                                                                          ("shared", "lut"))])
def test_reader(memory, target):
    simulate(Flat(Reader(memory=memory)), __file__, without=[few_reads_outstanding_are_enough, *OTHERS], memory=memory,
             target=target)


@pytest.mark.parametrize("sizes", regress([4], [4, 2], [4, 2, 1]))
def test_reader_that_counts(sizes):
    simulate(Flat(Reader(halves=2 in sizes, counts=True, codes=1 in sizes)), __file__,
             [meets_every_case, *OTHERS[: len(sizes) > 1]], memory="shared", counts=True, sizes=sizes)


@pytest.mark.regress
def test_reader_that_delays_sectors():
    simulate(Flat(Reader(delayed=True)), __file__, without=[few_reads_outstanding_are_enough, *OTHERS],
             memory="shared", delayed=True)


@pytest.mark.regress
@pytest.mark.parametrize("memory", ["shared", *regress("independent")])
def test_reader_of_16_bits(memory):
    simulate(Flat(Reader(memory=memory, halves=True)), __file__, OTHERS, memory=memory, sizes=[4, 2, 2])


@pytest.mark.parametrize("sizes, memory", [([4, 2, 1, 1], "shared"), *regress(([4, 1, 1], "independent"))])
def test_reader_of_8_bits(sizes, memory):
    simulate(Flat(Reader(memory=memory, halves=2 in sizes, codes=True)), __file__, OTHERS, memory=memory, sizes=sizes)


@pytest.mark.parametrize("memory", regress("shared"))
def test_reader_of_16_bits_reads_float32(memory):
    simulate(Flat(Reader(memory=memory, halves=True)), __file__, without=[few_reads_outstanding_are_enough, *OTHERS],
             memory=memory)


@pytest.mark.regress
@pytest.mark.parametrize("memory", ["shared", *regress("independent")])
def test_reader_with_few_reads_outstanding(memory):
    simulate(Flat(Reader(16, 16, memory)), __file__, [few_reads_outstanding_are_enough], outstanding=16, width=16)


@pytest.mark.parametrize("arguments", [{"outstanding": 7}, {"outstanding": 8.0}, {"address_width": 11},
                                       {"address_width": 65}, {"memory": "common"}])
def test_parameters_out_of_range_are_refused(arguments):
    (name, value), = arguments.items()
    with pytest.raises(ValueError, match=rf"{name} must be .*not {re.escape(repr(value))}"):
        Reader(**arguments)


def stored():
    """Cycles that a beat takes through the FIFO."""
    return 3 * (parameters()["memory"] == "shared")


def planned():
    """Cycles that a step takes more from planner to memory."""
    return int(target() == "lut")


def delayed():
    """Cycles that a sector takes more, and sectors that wait more."""
    return int(parameters().get("delayed", False))


async def begin(dut, gather, scaled):
    """Starts a tensor."""
    dut.gather.value, dut.scaled.value, dut.scales.value = gather, scaled, make.TABLE
    await start(dut)


def expect(words, places, gather, scaled, size=4):
    """Payloads of both outputs, and the bursts, of values of ``size`` bytes."""
    content = words.view({4: np.uint32, 2: np.uint16, 1: np.uint8}[size])
    sectors = [pack(sector, 8 * size) for sector in golden.gather(content, places)] if gather else []
    scales = golden.scales(words, places, make.TABLE).tolist() if scaled else []
    address, length = golden.bursts(golden.beats(places, make.TABLE if scaled else None, bool(gather), size))
    return sectors, scales, list(zip(address.tolist(), length.tolist(), strict=True))


async def check(bench, memory, random, places, gather=1, scaled=1, idle="never", stall="never", width=40, size=4):
    """One tensor: outputs, bursts, and ``busy``."""
    make.tell_size(bench.dut, size)
    await begin(bench.dut, gather, scaled)
    sectors, scales, bursts = expect(memory.words, places, gather, scaled, size)
    before, stream = len(memory.reads), make.payloads(places, width)
    run = await bench.run({"ahead": stream, "now": stream}, {"sectors": len(sectors), "scale": len(scales)}, random,
                          idle, stall)
    await ends(bench.dut)
    bench.equal([burst[:2] for burst in memory.reads[before:]], bursts, f"bursts gather={gather} scaled={scaled}")
    got = [sector & (1 << 64 * size) - 1 for sector in run["sectors"]]
    bench.equal(got, sectors, f"sectors gather={gather} scaled={scaled} size={size}")
    if gather and parameters().get("counts"):
        counts = places.words + (np.asarray(places.slot) << 4)
        bench.equal([sector >> 256 for sector in run["sectors"]], counts.tolist(), "counts")
    bench.equal(run["scale"], scales, f"scales gather={gather} scaled={scaled}")
    assert memory.idle
    return run


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def equals_golden(dut, idle, stall):
    random = rng()
    pause = {channel: str(random.choice(list(PATTERNS))) for channel in ("ar", "r")}
    bench, memory = await started(dut, make.SIZE, random, latency=int(random.integers(0, 40)), pause=pause)
    for kind in make.KINDS:
        for gather, scaled in MODES:
            await check(bench, memory, random, make.some(random, kind), gather, scaled, idle, stall)


@cocotb.test
async def meets_every_case(dut):
    random = rng()
    bench, memory = await started(dut, make.SIZE, random)
    seen = set()
    for places in [*make.cases(), *(make.some(random, kind) for kind in make.KINDS * 8)]:
        beats = golden.beats(places, make.TABLE)
        start, length = golden.bursts(beats)
        counts = np.bincount(beats.sector[~beats.scale], minlength=len(places.words))
        lines = np.bincount(beats.sector[beats.scale], minlength=len(places.words))
        straddles = places.address % 32 // 4 + places.words > 8
        seen |= {("beats", count, straddle, line > 0, words > 0) for count, straddle, line, words in
                 zip(counts.tolist(), straddles.tolist(), lines.tolist(), places.words, strict=True)}
        seen |= {("length", value) for value in length.tolist()}
        seen |= {("slot", slot) for slot in places.slot[lines > 0].tolist()}
        meets = (start[1:] % 4096 == 0) & (start[1:] == start[:-1] + 32 * length[:-1])
        seen |= {("4 KiB",)} if meets.any() else set()
        # A line of scales between two beats that would join.
        index = beats.index
        middle = beats.scale[1:-1] & (index[2:] - index[:-2] == 1) & ~beats.scale[2:] & ~beats.scale[:-2]
        seen |= {("between",)} if middle.any() else set()
        await check(bench, memory, random, places)
    cases = ((0, False), (1, False), (1, True), (2, True))
    wanted = {("beats", *case, line, True) for case in cases for line in (False, True)}
    wanted |= {("beats", 0, False, line, False) for line in (False, True)}
    wanted |= {("length", value) for value in range(1, 9)} | {("slot", 0), ("slot", 1), ("4 KiB",), ("between",)}
    assert wanted <= seen, f"not seen: {wanted - seen}"


def steps(places, size=4):
    """Cycles that each sector takes: one for each beat that it reads, at least one."""
    return np.maximum(np.bincount(golden.beats(places, size=size).sector, minlength=len(places.words)), 1)


def schedule(places, size=4):
    """Cycles of the sectors, from the first one's, if memory has a latency and no other limit."""
    beats, length = golden.beats(places, size=size), steps(places, size)
    start, number = np.cumsum(length) - length, np.arange(beats.index.size)
    step = start[beats.sector] + number - np.searchsorted(beats.sector, beats.sector)
    # A burst is asked for when a beat does not join it, or after the last step; then its beats come one a cycle.
    _, bursts = golden.bursts(beats)
    ends = np.append(step[np.cumsum(bursts)[:-1]], length.sum())
    arrival = np.maximum.accumulate(np.repeat(ends, bursts) - number) + number
    need = np.zeros(length.sum(), int)
    need[step] = arrival
    done = np.maximum.accumulate(need - np.arange(need.size)) + np.arange(need.size)
    leaves = done[start + length - 1]
    return (leaves - leaves[0]).tolist()


@cocotb.test
@cocotb.parametrize(width=[8, 28, 32, 13], base=[0, 4, 20])
async def moves_a_sector_a_cycle_at_300_cycles_of_latency(dut, width, base):
    random = rng()
    bench, memory = await started(dut, make.SIZE, random, latency=LATENCY)
    places = make.rows(0x100 + base, width, 2400 // width * 4, height=1 << 20)
    run = await check(bench, memory, random, places, 1, 0)
    got = np.array(run.cycles["sectors"])
    assert got[0] <= LATENCY + 16 + stored()
    bench.equal((got - got[0]).tolist(), schedule(places), f"cycles, width {width} at {base}")
    assert np.ptp(got) <= 1.005 * steps(places).sum() + 8
    if width != 8 or base:
        assert memory.most <= OUTSTANDING
    else:
        assert np.ptp(got) == got.size - 1
        assert LATENCY < memory.most <= OUTSTANDING


@cocotb.test
@cocotb.parametrize(idle=["never", "half"], stall=["never", "half"])
async def reads_values_of_other_sizes(dut, idle, stall):
    """In turn with values of 4 bytes."""
    random = rng()
    pause = {channel: str(random.choice(list(PATTERNS))) for channel in ("ar", "r")}
    bench, memory = await started(dut, make.SIZE, random, latency=int(random.integers(0, 40)), pause=pause)
    for kind in make.KINDS * 2:
        for gather, scaled in MODES:
            size = int(random.choice(parameters()["sizes"]))
            await check(bench, memory, random, make.some(random, kind, size), gather, scaled, idle, stall, size=size)


@cocotb.test
async def reads_values_of_other_sizes_at_every_place_and_of_every_width(dut):
    random, size = rng(), min(parameters()["sizes"])
    bench, memory = await started(dut, make.SIZE, random, latency=5)
    for offset in range(32 // size):
        for width in range(1, 18):
            stride = size * (width + int(random.integers(0, 17)))
            places = make.rows(0x1C0 + size * offset, width, 3, stride, size=size)
            await check(bench, memory, random, places, scaled=0, size=size)


@cocotb.test
@cocotb.parametrize(width=[8, 28, 32, 13], base=[0, 2, 18, 20])
async def moves_a_smaller_sector_a_cycle_at_300_cycles_of_latency(dut, width, base):
    random, size = rng(), min(parameters()["sizes"])
    base += (size == 1) * (base > 2)
    bench, memory = await started(dut, make.SIZE, random, latency=LATENCY)
    places = make.rows(0x100 + base, width, 2400 // width * 4, height=1 << 20, size=size)
    run = await check(bench, memory, random, places, 1, 0, size=size)
    got = np.array(run.cycles["sectors"])
    bench.equal((got - got[0]).tolist(), schedule(places, size), f"cycles, width {width} at {base}")
    if width % 8 == 0:  # contiguous rows of whole sectors: a beat for two, or for four, and one more at most
        assert np.ptp(got) <= got.size + 2  # as the schedule has it: what a first burst's short beats delay
        assert sum(length for _, length, _ in memory.reads) <= size * got.size // 4 + 1


@cocotb.test
@cocotb.parametrize(latency=[1, 30])
async def asks_after_four_cycles_and_gives_a_sector_after_one(dut, latency):
    random = rng()
    bench, memory = await started(dut, make.SIZE, random, latency=latency)
    for gather, scaled in MODES[:3]:
        await begin(dut, gather, scaled)
        first, before, stream = memory.cycle + 1, len(memory.reads), make.payloads(make.rows(0, 8, 1))
        run = await bench.run({"ahead": stream, "now": stream}, {"sectors": gather, "scale": scaled}, random)
        await ends(dut)
        asked = [burst[2] - first - planned() for burst in memory.reads[before:]]
        assert asked == {(1, 1): [4, 5], (1, 0): [4], (0, 1): [4]}[gather, scaled]
        # A sector without a beat of its own takes a cycle after that of its scale.
        for port in ["sectors"] * gather + ["scale"] * scaled:
            more = delayed() if port == "sectors" else 0
            assert run.cycles[port] == [asked[-1] + planned() + latency + 1 + stored() + (not gather) + more]


@cocotb.test
async def asks_for_a_line_of_scales_at_once_however_far_the_next_one_is(dut):
    random = rng()
    bench, memory = await started(dut, make.SIZE, random)
    await begin(dut, 0, 1)
    first, stream = memory.cycle + 1, make.payloads(make.rows(0, 8, 100, height=1 << 20))
    await bench.run({"ahead": stream, "now": stream}, {"scale": 100}, random)
    await ends(dut)
    assert memory.reads[0][2] - first == 4 + planned()


@cocotb.test
async def single_beats_run_at_full_rate_too(dut):
    random = rng()
    bench, memory = await started(dut, make.SIZE, random, latency=LATENCY)
    places = make.rows(0, 8, 600, 64, height=1 << 20)
    run = await check(bench, memory, random, places, 1, 0)
    assert np.ptp(run.cycles["sectors"]) == 599
    assert len(memory.reads) == 600


@cocotb.test
async def padding_costs_no_beat(dut):
    random = rng()
    bench, memory = await started(dut, make.SIZE, random)
    places = make.rows(0, 8, 20, height=1 << 20)
    places.words[3:] = 0
    run = await check(bench, memory, random, places, 1, 0)
    assert len(memory.reads) == 1 and np.ptp(run.cycles["sectors"]) == 19


@cocotb.test
async def reads_no_more_than_may_be_outstanding(dut):
    random = rng()
    bench, memory = await started(dut, make.SIZE, random)
    places = make.rows(0, 8, 1000, height=1 << 20)
    await begin(dut, 1, 0)
    stream = make.payloads(places)
    dut.sectors__ready.value = 0
    await bench.run({"ahead": stream, "now": stream}, {}, random, until=lambda: memory.cycle > 1200)
    total = sum(length for _, length, _ in memory.reads)
    total -= 2 + delayed()  # sectors that wait at the output
    assert OUTSTANDING - 8 < total <= OUTSTANDING, total
    assert memory.most == total if not stored() else memory.idle, (memory.most, total)


@cocotb.test
@cocotb.parametrize(held=["steps", "sectors"])
async def is_busy_until_the_last_sector_is_on_its_way(dut, held):
    """However long the last steps take to come, or the last sectors to leave, with nothing left to be read."""
    random = rng()
    bench, memory = await started(dut, make.SIZE, random)
    # Two wait at the output, or three, and the last one for a place there: with a beat of its own, or in that of the
    # one before.
    for places in (make.rows(0x40, 8, 3 + delayed()), make.rows(0x50, 4, 3 + delayed(), 16)):
        stream, (sectors, _, _) = make.payloads(places), expect(memory.words, places, 1, 0)
        await begin(dut, 1, 0)
        dut.sectors__ready.value = 0
        first = {"ahead": stream} | ({"now": stream} if held == "sectors" else {})
        await bench.run(first, {}, random, until=after(300))
        assert memory.idle or not stored()  # without a store, the last beats may have nowhere to go
        for _ in range(100):
            assert dut.busy.value == 1
            await FallingEdge(dut.clk)
        run = await bench.run({} if held == "sectors" else {"now": stream}, {"sectors": len(sectors)}, random)
        await ends(dut)
        bench.equal(run["sectors"], sectors, "sectors")


@cocotb.test
async def few_reads_outstanding_are_enough(dut):
    random = rng()
    bench, memory = await started(dut, make.SIZE, random, latency=20)
    for kind in make.KINDS * 3:
        for gather, scaled in MODES:
            places = make.some(random, kind)
            await check(bench, memory, random, places, gather, scaled, width=parameters()["width"])
    assert parameters()["outstanding"] - 8 < memory.most <= parameters()["outstanding"]


@cocotb.test
async def flags_each_error_response(dut):
    random = rng()
    bench, memory = await started(dut, make.SIZE, random, pause="seldom")
    places = make.rows(0x40, 20, 8)
    beats = golden.beats(places, make.TABLE)
    for index in [*beats.index[:12].tolist(), None]:
        memory.errors = {index}
        await begin(dut, 1, 1)
        sectors, scales, _ = expect(memory.words, places, 1, 1)
        stream = make.payloads(places)
        run = await bench.run({"ahead": stream, "now": stream}, {"sectors": len(sectors), "scale": len(scales)}, random)
        await ends(dut)
        assert dut.error.value == (index is not None), f"beat {index}"
        assert (run["sectors"], run["scale"]) == (sectors, scales), "it goes on all the same"


@cocotb.test
async def gives_up_at_any_moment(dut):
    random = rng()
    bench, memory = await started(dut, make.SIZE, random, latency=15)
    for turn in range(60):
        memory.latency = int(random.integers(0, 60))
        gather, scaled = MODES[turn % 3]
        await begin(dut, gather, scaled)
        stream, moment = make.payloads(make.some(random, make.KINDS[turn % 4])), memory.cycle + random.integers(0, 80)
        await bench.run({"ahead": stream, "now": stream}, {"sectors": None, "scale": None}, random, "seldom", "half",
                        until=lambda moment=moment: memory.cycle >= moment)
        dut.abort.value = 1
        await FallingEdge(dut.clk)
        asked = len(memory.reads)
        await ends(dut)
        assert memory.idle and len(memory.reads) <= asked + 2, "at most what was on offer and behind it"
        dut.abort.value = 0
        assert dut.sectors__valid.value == 0 and dut.scale__valid.value == 0 and dut.m_axi_arvalid.value == 0
        await check(bench, memory, random, make.some(random, make.KINDS[turn % 4 - 1]), 1, 1)


@cocotb.test
async def starts_afresh_after_reset(dut):
    random = rng()
    bench = Bench(dut)
    await bench.start()
    for cycles in range(1, 40, 3):
        memory = filled(dut, make.SIZE, random)
        task = cocotb.start_soon(memory.run())
        await check(bench, memory, random, make.some(random, "anything"))
        await begin(dut, 1, 1)
        stream = make.payloads(make.some(random, "tiles"))
        await bench.run({"ahead": stream, "now": stream}, {"sectors": None, "scale": None}, random,
                        until=lambda end=memory.cycle + cycles, memory=memory: memory.cycle >= end)
        await reset(bench, task)


@cocotb.test
@cocotb.parametrize(pause=["never", "half", "bursts"])
async def reads_from_cocotbext_axis_ram(dut, pause):
    random = rng()
    bench, _, words = await axi_ram(dut, AxiRamRead, AxiReadBus, make.SIZE, ("ar", "r"), pause, random)
    for kind in make.KINDS:
        for gather, scaled in MODES:
            places = make.some(random, kind)
            await begin(dut, gather, scaled)
            sectors, scales, _ = expect(words, places, gather, scaled)
            stream = make.payloads(places)
            run = await bench.run({"ahead": stream, "now": stream}, {"sectors": len(sectors), "scale": len(scales)},
                                  random, "seldom", "seldom")
            await ends(dut)
            bench.equal(run["sectors"], sectors, f"{kind} sectors")
            bench.equal(run["scale"], scales, f"{kind} scales")
            assert dut.error.value == 0


OTHERS = [reads_values_of_other_sizes, reads_values_of_other_sizes_at_every_place_and_of_every_width,
          moves_a_smaller_sector_a_cycle_at_300_cycles_of_latency]
