"""Bench of the plan of a tensor: equal to Python's integers, for tensors of any size, legal or not."""

import re

import cocotb
import pytest
from cocotb.triggers import FallingEdge, RisingEdge

from actcodec.golden.offload.blocks import View
from actcodec.rtl.offload.control.limits import RANGES
from actcodec.rtl.offload.memory.geometry import distance_layout, geometry_layout
from actcodec.rtl.offload.memory.tensor_plan import TensorPlan
from tb.harness import Bench, parameters, regress, rng, simulate, synthesised
from tb.offload.memory.addresses import Addresses, describe, fields


@pytest.mark.parametrize("cdus, address_width", [
    (synthesised("tensor_plan", "cdus", 3), synthesised("tensor_plan", "address_width", 33)), *regress((1, 64))])
def test_plan(cdus, address_width):
    simulate(Addresses(cdus, address_width), __file__, cdus=cdus, width=address_width)


@pytest.mark.regress
def test_plan_of_eight():
    cdus = synthesised("tensor_plan", "cdus", 8)
    simulate(TensorPlan(cdus, 40), __file__, cdus=cdus, width=40)


@pytest.mark.regress
def test_plan_of_16_bits():
    simulate(Addresses(3, 40, halves=True), __file__, [equals_integers, finds_what_is_wrong], cdus=3, width=40, size=2)


@pytest.mark.parametrize("halves", [True, *regress(False)])
def test_plan_of_8_bits(halves):
    simulate(Addresses(3, 40, halves=halves, codes=True), __file__, [equals_integers, finds_what_is_wrong], cdus=3,
             width=40, size=1, halves=halves)


def test_plan_that_tells_the_end():
    simulate(TensorPlan(3, 40, ends=True), __file__, [equals_integers, counts_blocks_of_few_groups], cdus=3, width=40)


@pytest.mark.parametrize("arguments", [{"cdus": 0}, {"cdus": 9}, {"cdus": 2.0}, {"address_width": 31},
                                       {"address_width": 65}])
def test_parameters_out_of_range_are_refused(arguments):
    (name, value), = arguments.items()
    with pytest.raises(ValueError, match=f"{name} must be .*not {re.escape(repr(value))}"):
        TensorPlan(**arguments)


def size():
    """Bytes of a value."""
    return parameters().get("size", 4)


def sizes():
    """What else than ``size`` tells of it; the last one is true."""
    some = parameters()
    return ("half",) * (size() == 2 or bool(some.get("halves"))) + ("byte",) * (size() == 1)


def wrong(view, tiled, base, stride, width, scales=None):
    """Why there is no such tensor: "sight", "size", or None. ``scales`` is None if there are none."""
    if (any(not least <= getattr(view, name) <= most for name, (least, most) in RANGES.items())
            or base % size() or stride % size() or stride < size() * view.width
            or (tiled and min(view.rows, view.width) < 8) or (scales or 0) % 32):
        return "sight"
    end = base + (view.rows - 1) * stride + size() * view.width
    end = max(end, 0 if scales is None else -(-(scales + 4 * view.channels) // 32) * 32)
    return "size" if end > 1 << width or view.blocks(tiled) > (1 << 32) - 4 else None


def expect(view, tiled, base, stride, cdus, width):
    """Blocks and layout, geometry, and of each CDU its blocks and where they begin."""
    tiles, count = view.tiles_per_row, view.blocks(tiled)
    raster = not tiled or tiles in (1, 2, 4)

    def row(number, tile=0):
        return {"tile": tile, "left": -number, "height": number % view.height,
                "channel": number // view.height % view.channels, "line": number * stride % (1 << width)}

    def group(number):
        line, tile = divmod((32 if raster else 4) * number, tiles)
        return row(line if raster else 8 * line, tile)

    shares, origins = [], []
    for c in range(cdus):
        groups = max(-(-count // 4) - c + cdus - 1, 0) // cdus
        final = groups and c + (groups - 1) * cdus == (count - 1) // 4
        mine = 4 * groups - (-count % 4 if final else 0)
        shares.append(mine)
        origins.append(group(c))
    path = {"raster": int(raster), "base": base, "rows": view.rows, "tiles": tiles, "tail": (view.width - 1) % 8 + 1,
            "stride": stride, "height": view.height, "top": view.channels - 1, "group": group(cdus),
            "unit": row(1 if raster else 8)} | dict.fromkeys(sizes(), 0) | ({sizes()[-1]: 1} if sizes() else {})
    return {"blocks": count, "layout": min(tiles, 3) - 1, "geometry": path, "shares": shares, "origins": origins,
            "void": -view.rows * tiles % 8, "ending": 1 << (count - 1) // 4 % cdus}


def latency(view, tiled, cdus):
    """Cycles from start to done."""
    tiles = view.tiles_per_row
    raster = not tiled or tiles in (1, 2, 4)
    return max(73, 4 + 33 * cdus if raster else 13 + 5 * cdus + 8 * (4 * cdus // tiles))


async def check(bench, view, tiled, base, stride, scales=None):
    """One tensor: why there is none, and the cycles until that was known. Without ``scales``, what their address says
    does not matter."""
    dut, cdus, width = bench.dut, parameters()["cdus"], parameters()["width"]
    what = f"{view} tiled={tiled} base={base:#x} stride={stride} scales={scales}"
    await FallingEdge(bench.clk)
    scaled = scales is not None
    dut.descriptor.value = describe(view, tiled, base, stride, width, scales if scaled else (1 << width) - 1, scaled,
                                     len(sizes()))
    dut.start.value = 1
    cycles, origins = 0, []
    await RisingEdge(bench.clk)
    while dut.done.value == 0:
        cycles += 1
        assert cycles < 400, f"{what}: no end"
        if load := int(dut.load.value):
            assert load == 1 << len(origins), f"{what}: {load}"
            origins.append(fields(distance_layout(width), int(dut.origin.value)))
        await FallingEdge(bench.clk)
        dut.start.value = 0
        await RisingEdge(bench.clk)
    cause = wrong(view, tiled, base, stride, width, scales)
    assert dut.error.value == (cause is not None), f"{what}: {cause}"
    assert cycles == (3 if cause == "sight" else latency(view, tiled, cdus)), f"{what}: {cycles} cycles"
    if cause is None:
        seen = geometry_layout(width, "half" in sizes(), "byte" in sizes())
        shares = [int(getattr(dut, f"shares__{c}").value) for c in range(cdus)]
        got = {"blocks": int(dut.blocks.value), "layout": int(dut.layout.value),
               "geometry": fields(seen, int(dut.geometry.value)),
               "shares": shares, "origins": origins}
        if hasattr(dut, "void"):
            got |= {"void": int(dut.void.value), "ending": int(dut.ending.value)}
        expected = expect(view, tiled, base, stride, cdus, width)
        for name, value in expected.items():
            if name not in got:
                continue
            assert got[name] == value, f"{what}: {name}: expected {value}, got {got[name]}"
    await RisingEdge(bench.clk)
    assert dut.done.value == 0, what
    await FallingEdge(bench.clk)
    # Walks that have begun do not matter here, nor do they hinder what comes.
    await bench.reset(1)
    return cause


def drawn(random):
    """Any tensor, legal or not: its view, whether it is tiled, base, stride, and the scales' address or None."""
    width = parameters()["width"]
    rows, columns, height, channels, pad, base = (
        int(random.integers(1, 1 << int(random.integers(1, bits + 1)), dtype="u8"))
        for bits in (31, 24, 24, 24, 16, width))
    if random.random() < 0.3:
        columns = int(random.choice([8, 16, 24, 28, 32, 56, 224]))
    stride = size() * (columns + (pad if random.random() < 0.3 else 0))
    scales = int(random.integers(1 << width, dtype="u8")) & -32 if random.random() < 0.5 else None
    return (View(rows, columns, channels, height, True), int(random.integers(2)), base & -size(),
            min(stride, 2**32 - size()), scales)


async def begin(dut):
    bench = Bench(dut)
    await bench.start()
    return bench


@cocotb.test
async def equals_integers(dut):
    random = rng()
    bench = await begin(dut)
    seen = [await check(bench, *drawn(random)) for _ in range(250)]
    assert seen.count(None) > 60 and seen.count("size") > 3


@cocotb.test
async def finds_what_is_wrong(dut):
    bench, width = await begin(dut), parameters()["width"]
    good = {"rows": 24, "width": 40, "channels": 3, "height": 4, "tiled": 1, "base": 64, "stride": 160}
    ends = {"rows": [0, 1, 7, 8, 9, 2**31 - 1, 2**31, 2**32 - 1],
            "width": [0, 1, 7, 8, 9, 39, 40, 41, 2**24 - 9, 2**24 - 8, 2**24 - 7, 2**24 - 1, 2**24,
                      2**24 + 8, 2**32 - 1],
            "channels": [0, 1, 2**24 - 1, 2**24, 2**31, 2**32 - 1],
            "height": [0, 1, 2**24 - 1, 2**24, 2**31, 2**32 - 1],
            "base": [1, 2, 3, 4],
            "stride": [0, *(40 * size() + more for more in (-4, -3, -2, -1, 0, 1, 2, 3, 4)), 2**32 - 4, 2**32 - 2]}
    seen = {}
    for name, values in ends.items():
        for value in values:
            for tiled in (0, 1):
                case = good | {name: value, "tiled": tiled}
                if name == "width" and value > 41:
                    case["stride"] = min(size() * value, 2**32 - 4)
                view = View(case["rows"], case["width"], case["channels"], case["height"], True)
                cause = await check(bench, view, tiled, case["base"], case["stride"])
                seen.setdefault(name, set()).add(cause)
    bases = {None} if size() == 1 else {None, "sight"}  # codes may be anywhere
    assert all((bases if name == "base" else {None, "sight"}) <= causes for name, causes in seen.items())

    # The end of the address space, and its neighbours.
    for rows, columns, stride in ((1, 8, 32), (8, 8, 32), (9, 13, 64), (100, 224, 1000), (3, 5, 2**26)):
        for tiled in (0, 1) if min(rows, columns) >= 8 else (0,):
            last = (1 << width) - (rows - 1) * stride - size() * columns
            for base, expected in ((last - 4, None), (last, None), (last + 4, "size"), ((1 << width) - 4, "size")):
                assert await check(bench, View(rows, columns, 2, 3, True), tiled, base, stride) == expected
    # The largest numbers of blocks. Rows may lie upon each other nowhere, so these need many addresses.
    for tiles, rows, tiled in ((16, 2**31 - 1, 0), (16, 2**31 - 4, 0), (17, 2**31 - 1, 0), (32, 2**30, 0),
                               (32, 2**30 - 1, 0), (16, 2**31 - 8, 1), (16, 2**31 - 1, 1), (15, 2**31 - 1, 1),
                               (2**18, 2**17, 1), (2**18, 2**17 - 1, 0), (2**18 - 1, 2**17, 1),
                               (2**21 - 1, 2**31 - 1, 0), (2**21 - 1, 2**31 - 1, 1)):
        await check(bench, View(rows, 8 * tiles, 2, 3, True), tiled, 0, 32 * tiles)


@cocotb.test
async def minds_every_bit_of_a_number(dut):
    """Alone, where it makes a number illegal or a walk long, and above the few that are walked here."""
    bench, width = await begin(dut), parameters()["width"]
    good = {"rows": 24, "width": 8, "channels": 3, "height": 4}
    for bit in range(32):
        for name in good:
            for low in (0, 3 if name == "height" else 17, *((5, 12) if name == "width" else ())):
                case = good | {name: 1 << bit | low}
                view = View(case["rows"], case["width"], case["channels"], case["height"], True)
                for tiled in (0, 1):
                    await check(bench, view, tiled, 64, min(4 * view.width, 2**32 - 4))
    for bit in range(width, 62):  # of the product
        assert await check(bench, View((1 << bit - 31) + 1, 8, 2, 3, True), 0, 0, 1 << 31) == "size"
    for bit in range(2, 26):  # of the end, behind the address space, in which the last row begins
        view = View(1, (1 << bit - 2) + 8, 2, 3, True)
        base = (1 << width) + (1 << bit) - 4 * view.width
        if base < 1 << width:
            assert await check(bench, view, 0, base, 4 * view.width) == "size"


@cocotb.test
async def finds_scales_beyond_the_address_space(dut):
    """Up to the end of their last 32 bytes, and wherever else a carry may end."""
    bench, width = await begin(dut), parameters()["width"]
    for channels in (1, 7, 8, 9, 63, 64, 65, 2**12 + 1, 2**23 + 9, 2**24 - 9, 2**24 - 8, 2**24 - 7, 2**24 - 1):
        view = View(24, 40, channels, 4, True)
        last = (1 << width) - -(-channels // 8) * 32
        flips = [1 << bit for bit in range(26, width)] if channels in (65, 2**24 - 1) else []
        good = [0, last - 32, last, last // 2 & -32, *((last + 32) % (1 << width) ^ flip for flip in flips)]
        bad = [address for address in (last + 32, (1 << width) - 32) if last < address < 1 << width]
        for addresses, cause in ((good, None), (bad, "size")):
            for address in addresses:
                assert await check(bench, view, int(channels > 8), 64, 160, address) == cause
    for low in range(1, 32):
        assert await check(bench, View(24, 40, 3, 4, True), 1, 64, 160, 0x1000 | low) == "sight"


@cocotb.test
async def counts_blocks_of_few_groups(dut):
    bench = await begin(dut)
    for count in range(1, 4 * 2 * parameters()["cdus"] + 6):
        await check(bench, View(8 * count, 8, 2, 3, True), 1, 0, 32)
        await check(bench, View(count, 64, 2, 3, True), 0, 0, 256)


@cocotb.test
async def starts_again_after_reset(dut):
    bench = await begin(dut)
    for cycles in (1, 2, 3, 20, 36, 40, 44, 66, 67, 69):
        await FallingEdge(bench.clk)
        dut.descriptor.value = describe(View(500, 40, 3, 3, True), 1, 64, 160, parameters()["width"])
        dut.start.value = 1
        for _ in range(cycles):
            await FallingEdge(bench.clk)
            dut.start.value = 0
        await bench.reset()
        await check(bench, View(24, 24, 3, 5, True), 1, 64, 100)
