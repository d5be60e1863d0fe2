"""Bench of the plan of a scan: equal to Python's integers, for tensors of any size."""

import re

import cocotb
import pytest
from cocotb.triggers import FallingEdge, RisingEdge

from actcodec.rtl.offload.control.limits import RANGES
from actcodec.rtl.offload.scan.plan import ScanPlan, shape_layout
from actcodec.rtl.offload.scan.walk import route_layout, start_layout
from tb.harness import SEED, Bench, parameters, regress, rng, simulate, synthesised
from tb.offload.memory.addresses import fields

ROWS, HEIGHT = RANGES["rows"][1], RANGES["height"][1]


@pytest.mark.parametrize("lanes, width, halves", [
    (synthesised("scan_plan", "lanes", 3), synthesised("scan_plan", "address_width", 40), False),
    *regress((1, 32, True), (8, 64, False), (2, 63, False))])
def test_plan(lanes, width, halves):
    simulate(ScanPlan(width, lanes, halves), __file__, lanes=lanes, width=width, halves=halves)


@pytest.mark.parametrize("arguments", [{"lanes": 0}, {"lanes": 9}, {"address_width": 31}, {"address_width": 65}])
def test_parameters_out_of_range_are_refused(arguments):
    (name, value), = arguments.items()
    with pytest.raises(ValueError, match=f"{name} must be .*not {re.escape(repr(value))}"):
        ScanPlan(**arguments)


def expect(shape, lanes, address_width):
    """The route, and of each lane that has a channel where it begins; None for rows that are no whole images."""
    images, rest = divmod(shape["rows"], shape["height"] * shape["channels"])
    if rest:
        return None
    stride, sector = shape["stride"], 16 if shape.get("half") else 32
    pitch = stride * shape["height"]
    to_last = (shape["height"] - 1) * stride + (shape["tiles"] - 1) * sector  # from a plane's first sector
    image, space = pitch * shape["channels"], 1 << address_width
    route = {name: shape[name] for name in ("tiles", "tail", "height", "half") if name in shape} | {
        "images": images, "lanes": lanes, "row": (stride - (shape["tiles"] - 1) * sector) % space,
        "plane": (image - to_last) % space, "channel": (lanes * pitch - (images - 1) * image - to_last) % space}
    return route, [{"address": (shape["base"] + k * pitch) % space, "channels": shape["channels"] - k}
                   for k in range(min(lanes, shape["channels"]))]


def latency(shape, lanes):
    return 81 + 4 * lanes + 2 * (shape["rows"].bit_length() + shape["height"].bit_length()
                                 + 2 * shape["channels"].bit_length())


def below(random, end):
    """0 to ``end`` - 1, which may have more bits than NumPy's integers."""
    return int.from_bytes(random.bytes(16), "little") % end


def around(random, most):
    """1 to ``most``, of any number of bits."""
    return min(1 + below(random, 1 << int(random.integers(1, most.bit_length() + 1))), most)


def drawn(random):
    """A tensor that fits into memory, in whole images or not, of any size."""
    some = parameters()
    half, space = some["halves"] and bool(random.integers(2)), 1 << some["width"]
    height = around(random, HEIGHT)
    channels = around(random, HEIGHT)
    if height * channels <= ROWS and random.random() < 0.8:
        rows = height * channels * around(random, ROWS // (height * channels))
    else:
        rows = around(random, ROWS)
    size = 2 if half else 4
    stride = min(around(random, space // rows), (1 << 32) - 1) // size * size
    if stride < size:
        return drawn(random)
    width = around(random, min(stride // size, RANGES["width"][1]))
    base = below(random, space - rows * stride + 1) // size * size
    return {"base": base, "rows": rows, "tiles": -(-width // 8), "tail": width % 8 or 8, "stride": stride,
            "height": height, "channels": channels} | ({"half": int(half)} if some["halves"] else {})


def as_word(shape):
    """The bits of the port ``shape``."""
    return shape_layout(parameters()["width"], parameters()["halves"]).const(shape).as_bits()


async def plan(dut, shape):
    """Compares one plan with integers."""
    lanes, width, halves = (parameters()[name] for name in ("lanes", "width", "halves"))
    what = f"SEED={SEED}: {shape}"
    dut.shape.value, dut.start.value, cycles, begun = as_word(shape), 1, 0, []
    while True:
        await RisingEdge(dut.clk)
        if launch := int(dut.launch.value):
            assert launch == 1 << len(begun), f"{what}: lane {len(begun)}, launch is {launch:#b}"
            begun.append(fields(start_layout(width), int(dut.origin.value)))
        done = dut.done.value == 1
        await FallingEdge(dut.clk)
        dut.start.value = 0
        if done:
            break
        cycles += 1
        assert cycles < 1000, f"{what}: no end"
    assert cycles == latency(shape, lanes), what
    expected = expect(shape, lanes, width)
    assert dut.error.value == (expected is None), what
    if expected is None:
        assert not begun, what
        return False
    for _ in range(2):  # it stands
        assert fields(route_layout(width, halves), int(dut.route.value)) == expected[0], what
        await FallingEdge(dut.clk)
    assert begun == expected[1], what
    return True


@cocotb.test
async def equals_integers(dut):
    random = rng()
    await Bench(dut).start()
    whole = [await plan(dut, drawn(random)) for _ in range(400)]
    assert 50 < sum(whole) < 390


@cocotb.test
async def equals_integers_with_a_bit_in_any_place(dut):
    """Sizes that are powers of two, and one less or more: sums whose carries go through."""
    random = rng()
    await Bench(dut).start()
    space = 1 << parameters()["width"]
    for bit in range(32):
        for more in (-1, 0, 1):
            shape = drawn(random) | {"height": 1, "channels": 1, "tiles": 1, "tail": 1}
            size = min(max((1 << bit) + more, 1), ROWS, space // 4)
            by_height = size <= HEIGHT and random.integers(2)
            shape |= {"rows": size} | ({"height": size} if by_height else {"channels": size} if size <= HEIGHT else {})
            stride = min(space // size // 4 * 4, (1 << 32) - 4)
            await plan(dut, shape | {"stride": stride, "base": space - size * stride})
            # Less than an image, of which nothing but a bit tells.
            assert not await plan(dut, shape | {"height": HEIGHT, "channels": size // HEIGHT + 1, "stride": stride,
                                                "base": space - size * stride})


@cocotb.test
async def plans_again_after_a_reset(dut):
    random = rng()
    bench = Bench(dut)
    await bench.start()
    for cycles in (1, 2, 10, 50, 90, 120, 150):
        dut.shape.value, dut.start.value = as_word(drawn(random)), 1
        for _ in range(cycles):
            await FallingEdge(dut.clk)
            dut.start.value = 0
        await bench.reset()
        await plan(dut, drawn(random))


@cocotb.test
async def starts_anew_after_a_reset_at_any_moment(dut):
    random = rng()
    await Bench(dut).start()
    for cycles in range(1, 260, 3):
        dut.shape.value, dut.start.value = as_word(drawn(random)), 1
        await FallingEdge(dut.clk)
        dut.start.value = 0
        for _ in range(cycles):
            await FallingEdge(dut.clk)
        dut.rst.value = 1
        await FallingEdge(dut.clk)
        dut.rst.value = 0
        await plan(dut, drawn(random))
