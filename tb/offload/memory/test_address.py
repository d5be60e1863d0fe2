"""Bench of the address generator: plan and walks together, equal to golden."""

import re

import cocotb
import numpy as np
import pytest
from cocotb.triggers import FallingEdge, RisingEdge

from actcodec.golden.comet import walk
from actcodec.golden.offload.blocks import View
from actcodec.golden.offload.memory import address as golden
from actcodec.rtl.offload.memory.address import AddressGenerator
from tb.harness import STALLS, Bench, after, parameters, regress, rng, simulate, synthesised
from tb.offload.memory.addresses import Addresses, describe

LATENCY = 20  # of a walk, from start to the first place


@pytest.mark.parametrize("cdus, address_width", [
    (3, synthesised("address_generator", "address_width", 33)), *regress((1, 64))])
def test_address(cdus, address_width):
    simulate(Addresses(cdus, address_width), __file__, without=[tells_of_neighbours], cdus=cdus, width=address_width,
             sizes=[4])


@pytest.mark.regress
@pytest.mark.parametrize("cdus, address_width", [(3, 40), *regress((1, 64))])
def test_address_of_16_bits(cdus, address_width):
    simulate(Addresses(cdus, address_width, halves=True), __file__, [equals_golden, walks_rows_of_every_width],
             cdus=cdus, width=address_width, sizes=[2, 2, 4])


@pytest.mark.parametrize("cdus, address_width, sizes", [(3, 40, [1, 1, 2, 4]), *regress((1, 64, [1, 1, 4]))])
def test_address_of_8_bits(cdus, address_width, sizes):
    simulate(Addresses(cdus, address_width, halves=2 in sizes, codes=True), __file__,
             [equals_golden, walks_rows_of_every_width], cdus=cdus, width=address_width, sizes=sizes)


@pytest.mark.parametrize("cdus", [3, *regress(1)])
def test_neighbours(cdus):
    simulate(Addresses(cdus, 40, edges=True), __file__, [tells_of_neighbours], cdus=cdus, width=40, sizes=[4])


@pytest.mark.parametrize("address_width", [31, 65, 40.0])
def test_other_address_widths_are_refused(address_width):
    with pytest.raises(ValueError, match=f"address_width must be 32 to 64 bits, not {re.escape(repr(address_width))}"):
        AddressGenerator(address_width)


def expect(view, tiled, base, stride, cdus, width, size):
    """Of each CDU, what its places mean; golden counts from 0, since addresses may have all 64 bits."""
    result = []
    for cdu in range(cdus):
        places = golden.places(view, tiled, 0, stride, cdus, cdu, size)
        last = np.arange(places.words.size) == places.words.size - 1
        result.append([(base + a if w else None, w, c, s, e) for a, w, c, s, e in
                       zip(*(part.tolist() for part in (*places, last)), strict=True)])
    return result


def decode(payload, width):
    words, high = payload >> width & 15, payload >> width + 4
    return (payload & (1 << width) - 1 if words else None, words, high & 0xFFFFFFFF, high >> 32 & 1, bool(high >> 33))


def flag(size):
    """The bit of a descriptor that says of how many bytes values are."""
    return {4: 0, 2: 1, 1: 2 if 2 in parameters()["sizes"] else 1}[size]


async def plan(bench, view, tiled, base, stride, size=4):
    """Starts a tensor and waits until it is planned; the cycles that took."""
    dut, width = bench.dut, parameters()["width"]
    await FallingEdge(bench.clk)
    dut.descriptor.value = describe(view, tiled, base, stride, width, flags=flag(size))
    dut.start.value = 1
    for cycle in range(300):
        await RisingEdge(bench.clk)
        if dut.done.value == 1:
            return cycle
        await FallingEdge(bench.clk)
        dut.start.value = 0
    raise AssertionError(f"{view}: no plan after 300 cycles")


async def check(bench, random, view, tiled, base=0, stride=None, size=4, stall="never", clip=None):
    """One tensor of values of ``size`` bytes; the cycles of the walks' places. ``clip`` of each walk's places are
    enough, of that many rows."""
    cdus, width = parameters()["cdus"], parameters()["width"]
    stride = stride or size * view.width
    await plan(bench, view, tiled, base, stride, size)
    assert bench.dut.error.value == 0, f"{view}"
    if clip:
        places, rows = clip
        expected = [mine[:places] for mine in expect(view._replace(rows=rows), tiled, base, stride, cdus, width, size)]
    else:
        expected = expect(view, tiled, base, stride, cdus, width, size)
    # None of a CDU that has no group: collected, so that a place too many shows.
    run = await bench.run({}, {f"o__{c}": len(mine) for c, mine in enumerate(expected)}, random, stall=stall)
    for c, mine in enumerate(expected):
        bench.equal([decode(payload, width) for payload in run[f"o__{c}"]], mine,
                    f"{view} tiled={tiled} base={base:x} stride={stride} size={size} cdu={c}")
    if clip:
        await bench.reset()
        return run
    assert not any(getattr(bench.dut, f"o__{c}__valid").value == 1 for c in range(cdus)), f"{view}: too many places"
    return run


def some(random, largest=1500):
    """A view, whether tiled, a base, a stride, and bytes of a value, all of them legal."""
    tiled = int(random.integers(2))
    width = int(random.choice([7, 8, 13, 16, 20, 28, 32, 40, 49, 56, 112, 224, int(random.integers(1, 330))]))
    width = max(width, 8) if tiled else width
    tiles = -(-width // 8)
    most = max(largest // tiles, 8)
    rows = int(random.integers(8 if tiled else 1, most + 1))
    height = int(random.choice([1, 2, 3, 7, 8, 14, 64, 100, rows]))
    channels = int(random.choice([1, 2, 3, 5, 64, 1 << 24])) if random.random() < 0.9 else 7
    channels = min(channels, (1 << 24) - 1)
    size = int(random.choice(parameters()["sizes"]))
    stride = size * (width + int(random.choice([0, 0, 1, 8, 1000])))
    room = (1 << parameters()["width"]) - (rows - 1) * stride - size * width
    base = size * int(random.choice([0, 1, 7, 1024, 1 << 18])) if random.random() < 0.5 else room
    return View(rows, width, channels, height, True), tiled, base, stride, size


@cocotb.test
@cocotb.parametrize(stall=STALLS)
async def equals_golden(dut, stall):
    random = rng()
    bench = Bench(dut)
    await bench.start()
    for _ in range(6 if stall == "mostly" else 12):
        await check(bench, random, *some(random, 300 if stall == "mostly" else 600), stall=stall)


@cocotb.test
async def walks_rows_of_every_width(dut):
    random = rng()
    bench = Bench(dut)
    await bench.start()
    cdus, seen = parameters()["cdus"], set()
    for tiles in range(1, 41):
        for tiled in (0, 1):
            # Enough for a second group of every CDU of few, for groups of two rows, and for any last group.
            groups = max(min(2 * cdus, 6), tiles // 4 + 1 if tiles < 20 else 0) + int(random.integers(2))
            rows = max(8 * -(-4 * groups // tiles) - int(random.integers(8)), 8)
            width = 8 * tiles - int(random.integers(8)) * (tiles > 1)
            height = int(random.choice([1, 2, 3, 5, 9, 70]))
            view = View(rows, width, int(random.integers(1, 6)), height, True)
            size = int(random.choice(parameters()["sizes"]))
            base = size * int(random.integers(16))
            await check(bench, random, view, tiled, base, size * (width + int(random.integers(3))), size)
            count = view.blocks(tiled)
            seen |= {("last", tiled, count % 4), ("short", tiled, rows % 8 > 0), ("idle", count <= 4 * (cdus - 1))}
            if tiled and tiles > 2 and tiles != 4:
                slots = golden.places(view, 1, 0, 4 * width).slot
                seen |= {("spans", int(tiles), bool(slots.any()))}
    assert {("last", tiled, k) for tiled in (0, 1) for k in range(4)} <= seen
    assert {("short", tiled, k) for tiled in (0, 1) for k in (False, True)} <= seen
    assert all(("spans", tiles, True) in seen for tiles in range(3, 20) if tiles % 4)


@cocotb.test
async def leaves_cdus_without_a_group_alone(dut):
    random = rng()
    bench = Bench(dut)
    await bench.start()
    cdus = parameters()["cdus"]
    for count in range(1, 4 * cdus + 2):
        for width in (8, 24):
            await check(bench, random, View(8 * count, width, 3, 4, True), 1)
            await check(bench, random, View(8 * count, width, 3, 4, True), 0)


@cocotb.test
async def changes_channels_anywhere(dut):
    random = rng()
    bench = Bench(dut)
    await bench.start()
    counts = ((1, 1), (1, 2), (1, 3), (1, 33), (2, 3), (3, 1), (7, 5), (9, 2), (13, 3), (31, 2), (32, 2), (33, 2),
              (62, 2), (63, 2), (64, 2), (65, 2), (100, 1), (2**24 - 1, 2), (1, 2**24 - 1), (2**24 - 1, 2**24 - 1))
    for width, rows in ((8, 139), (16, 91), (20, 91), (49, 67)):
        for height, channels in counts:
            tiled = int(random.integers(2))
            await check(bench, random, View(rows, width, channels, height, True), tiled)
@cocotb.test
async def walks_very_wide_rows(dut):
    random = rng()
    bench = Bench(dut)
    await bench.start()
    cdus = parameters()["cdus"]
    for tiles in (61, 62, 63, 64, 65, 66, 95, 96, 97, 127, 129):
        for tiled in (0, 1):
            await check(bench, random, View(9, 8 * tiles - 3, 2, 3, True), tiled,
                        clip=(200, 9))
    # From the last tiles of a row to the next row.
    for tiled in (0, 1):
        await check(bench, random, View(9, 8 * 259 - 5, 2, 3, True), tiled, stride=4 * 8 * 259)
    width = (1 << 24) - 8
    view = View(9, width, 3, 3, True)
    for tiled in (0, 1):
        await plan(bench, view, tiled, 0, 4 * width)
        assert dut.error.value == 0
        run = await bench.run({}, {f"o__{c}": 80 for c in range(cdus)}, random)
        for c in range(cdus):
            sector = np.arange(80)
            block = (sector // 32 * cdus + c) * 32 + sector % 32
            row, tile = (sector % 32 // 4, (block // 32) * 4 + sector % 4) if tiled else (0 * sector, block)
            address, channel = (row * 4 * width + 32 * tile).tolist(), (row // 3).tolist()
            expected = [(a, 8, k, 0, False) for a, k in zip(address, channel, strict=True)]
            bench.equal([decode(payload, parameters()["width"]) for payload in run[f"o__{c}"]], expected,
                        f"the widest rows, tiled={tiled} cdu={c}")
        await bench.reset()


@cocotb.test
async def gives_a_place_every_cycle(dut):
    random = rng()
    bench = Bench(dut)
    await bench.start()
    for tiles in (1, 2, 3, 4, 5, 7, 28):
        for tiled in (0, 1):
            rows = 8 * (-(-40 * parameters()["cdus"] // (8 * tiles)) + 8)
            run = await check(bench, random, View(rows, 8 * tiles, 3, 1, True), tiled)
            for port, cycles in run.cycles.items():
                assert cycles == list(range(LATENCY - 1, LATENCY - 1 + len(cycles))), f"{tiles} tiles, {port}"


@cocotb.test
async def starts_again_after_reset(dut):
    random = rng()
    bench = Bench(dut)
    await bench.start()
    for cycles in (*range(1, 24), 40, 90, 130):
        await plan(bench, View(500, 40, 3, 3, True), 1, 64, 160)
        await bench.run({}, {f"o__{c}": None for c in range(parameters()["cdus"])}, random, limit=cycles + 1,
                        until=after(cycles))
        await bench.reset()
        await check(bench, random, *some(random, 200))


@cocotb.test
async def tells_of_neighbours(dut):
    """In tiles and in memory's order, of any view."""
    random = rng()
    bench = Bench(dut)
    await bench.start()
    cdus, seen = parameters()["cdus"], set()
    for turn in range(90):
        view, tiled, base, stride, _ = some(random, 400)
        if turn < 40:  # every number of tiles
            tiled, width = 1, max(8 * (turn + 1) - int(random.integers(8)), 8)
            view = view._replace(width=width, rows=max(view.rows * 8 // width, 8 + turn % 3))
            base, stride = 0, 4 * width
        if not tiled and turn % 3 == 0:  # rows of a sector, or a single one
            view = view._replace(width=8) if turn % 2 else view._replace(rows=1)
            base, stride = 0, 4 * view.width
        await plan(bench, view, tiled, base, stride)
        assert dut.error.value == 0, view
        expected = [walk.through(view, tiled, c, cdus) for c in range(cdus)]
        run = await bench.run({}, {f"o__{c}": -(-len(mine) // 8) * 8 for c, mine in enumerate(expected)}, random,
                              stall=("never", "half")[turn % 2])
        for c, mine in enumerate(expected):
            words = np.array(run[f"o__{c}"], int)
            what = f"{view}, tiled {tiled}, CDU {c}"
            padding = [0] * (-len(mine) % 8)  # of the last block
            bench.equal((words & 15).tolist(), mine.count.tolist() + padding, f"counts, {what}")
            bench.equal((words >> 8).tolist(), [0] * (len(words) - 1) + [1] * (len(words) > 0), f"last, {what}")
            words, used = words[: len(mine)], mine.count > 0  # in the padding, the others mean nothing
            for bit, name in ((4, "left"), (5, "above")):
                bench.equal((words[used] >> bit & 1).tolist(), getattr(mine, name)[used].tolist(), f"{name}, {what}")
            bench.equal((words[used & mine.above] >> 6 & 3).tolist(), mine.tile[used & mine.above].tolist(),
                        f"tile, {what}")
            seen |= {(tiled, bool(left), bool(above)) for left, above in zip(mine.left, mine.above, strict=True)}
    assert len(seen) == 6, seen
