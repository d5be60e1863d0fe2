"""Bench of DIVISION in the accelerator, with descriptors that no tensor's shape has: rows of one value and more, planes
of several rows, that come back or have no row, at any stride, in every mode of the lane, there and back."""

import cocotb
import numpy as np
import pytest

from actcodec.codecs import lane_modes
from actcodec.codecs.division import LANE
from actcodec.golden.division import codec, stream, table
from actcodec.golden.division.view import View
from actcodec.golden.jpegact import sfpr
from actcodec.rtl.jpegact.cdu import Cdu
from actcodec.rtl.offload.accelerator import Accelerator
from actcodec.rtl.offload.control.register_map import ErrorCode
from tb.division.tensors import descriptor, tensor_of
from tb.harness import SEED, parameters, rng, simulate
from tb.offload.world import World

SCALES = 1 << 17  # where the scales are


@pytest.mark.parametrize("cdus", [1, 3])
def test_descriptors(cdus):
    simulate(Accelerator(cdus, lane_modes(*LANE), Cdu), __file__, cdus=cdus, modes=LANE)


async def ends(world, job, words, what):
    """A tensor of this descriptor ends well; whether codes were clipped, and the counters of bytes."""
    world.content[SCALES : SCALES + words.nbytes] = words.view(np.uint8)
    await world.driver.put(**job, scales=SCALES)
    await world.driver.put(done_pending=1, error_pending=1)
    await world.driver.put(start=1)
    await world.interrupt()
    done, error, *values = await world.driver.get("done", "error", "clipped", "bytes_in", "bytes_out")
    assert (done, error) == (1, ErrorCode.NONE), f"{what}: done {done}, error {error}"
    return values


async def there_and_back(world, random, view, mode):
    """A tensor of a view, compared with golden both ways."""
    bits, way = mode.format.row, {"lfc": bool(random.random() < 0.8), "offset": str(random.choice(["mean", "min"]))}
    rounding, seed = str(random.choice(["stochastic", "nearest"])), int(random.integers(1 << 32))
    x = tensor_of(random, view)
    with np.errstate(all="ignore"):
        fitted = table.table(x, bits, **way, view=view)
        expected = codec.encode(x, fitted, bits, seed, **way, rounding=rounding, view=view)
    payload = stream.interleave(expected.payload, view, bits, world.cdus)
    stride, base = 4 * view.width + 4 * int(random.integers(3)), 4 * int(random.integers(64))
    what = f"SEED={SEED} {mode.name} {view}, stride {stride}, base {base}, {way}, {rounding}"
    index = (base + stride * np.arange(view.rows)[:, None] + np.arange(4 * view.width)).reshape(-1)
    numbers = {"seed": seed, "lfc": way["lfc"], "minimum": way["offset"] == "min", "nearest": rounding == "nearest"}
    job = {"mode": mode.code, "rows": view.rows, "width": view.width, "stride": stride, "height": view.height,
           "channels": view.planes, "base": base,
           "settings": sum(int(numbers[setting.name]) << setting.low for setting in mode.settings)}

    world.fill()
    world.content[index] = x.view(np.uint8).reshape(-1)
    words = fitted.k.view(np.uint32) | fitted.delta.view(np.uint8)
    clipped, *counts = await ends(world, {**job, "decompress": 0}, words, what)
    frame = await world.sink.recv(compact=False)
    world.bench.equal(list(frame.tdata[: len(payload)]), list(payload), what)
    assert not any(frame.tdata[len(payload) :]) and sum(frame.tkeep) == len(payload), what
    assert (clipped, *counts) == (expected.clipped > 0, x.nbytes, len(payload)), what

    world.fill()
    words = sfpr.reciprocal(fitted.k).view(np.uint32)
    before = world.content.copy()
    before[SCALES : SCALES + words.nbytes] = words.view(np.uint8)
    before[index] = codec.decode(expected.payload, fitted.k, view, bits).view(np.uint8).reshape(-1)
    world.send(payload)
    _, *counts = await ends(world, {**job, "decompress": 1}, words, f"{what} back")
    assert np.array_equal(world.content, before), f"{what}: memory is wrong"
    assert counts == [len(payload), x.nbytes], what


@cocotb.test
async def ends_with_a_sector_a_row(dut):
    """Eight segments in a block: as many as there can be."""
    random = rng()
    world = World(dut, random)
    await world.start()
    for mode in lane_modes(*parameters()["modes"]):
        for rows, width in ((7, 8), (8, 1), (33, 8), (100, 5)) if not mode.tiled else ():
            await there_and_back(world, random, View(False, rows, width, 1, rows), mode)


@cocotb.test
async def equals_golden_for_any_descriptor(dut):
    random = rng()
    world = World(dut, random)
    await world.start()
    for number in range(6):
        for mode in lane_modes(*parameters()["modes"]):
            world.pause(("never", "seldom", "half", "bursts")[number % 4])
            world.latency = (0, 30, 10)[number % 3]
            await there_and_back(world, random, descriptor(random, mode.tiled), mode)
