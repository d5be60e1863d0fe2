"""Bench of a CDU whose SFPR can be passed by: codes there and back, float32 in between, equal to golden."""

import cocotb
import numpy as np
import pytest

from actcodec.codecs import lane_modes
from actcodec.golden.offload import blocks
from actcodec.rtl.jpegact.cdu import Cdu
from tb.harness import PATTERNS, STALLS, pack, parameters, regress, rng, simulate
from tb.jpegact.cdus import Driver, tensor
from tb.jpegact.test_cdu import COMPRESS_LATENCY, DECOMPRESS_LATENCY, SHAPES
from tb.offload.wire import payloads

FEWER = {"sfpr": (3, 3), "sfpr-zvc": (3, 3), "jpeg-act": (2, 3), "jpeg-act-div": (2, 3)}
"""Cycles that a register takes less than SFPR, both ways; to the alignment buffer it does not matter which of two."""


@pytest.mark.parametrize("modes", [
    ("sfpr", "jpeg-act"), *regress((("sfpr", "sfpr-zvc", "jpeg-act", "brc"),),
                                   (("raw", "sfpr", "jpeg-act", "jpeg-act-div", "zvc"),))], ids="+".join)
def test_codes(modes):
    simulate(Cdu(lane_modes(*modes), packed=False, codes=True), __file__, modes=modes, packed=False)


def test_codes_are_not_packed():
    with pytest.raises(ValueError, match="packed must be False with codes, not True"):
        Cdu(lane_modes("sfpr"), codes=True)


def test_without_sfpr_there_are_no_codes():
    assert not hasattr(Cdu(lane_modes("raw", "zvc"), packed=False, codes=True), "codes")


def coded(modes):
    """Those of these modes that take codes."""
    return [mode for mode in lane_modes(*modes) if mode.codes]


async def there_and_back(driver, random, mode, shape, idle="never", stall="never"):
    """Cycles from the first beat in to the first out, both ways."""
    view = mode.model.view(shape)
    codes = random.integers(-128, 128, (view.rows, view.width), np.int8)
    codes[random.random(codes.shape) < 0.3] = 0
    model, count = mode.codes.model, view.blocks(mode.tiled)
    settings = model.settings(dqt="optL") if mode.tiled else {}
    payload, _ = model.encode(codes, view, None, settings, 1)
    layout = min(view.tiles_per_row - 1, 2)
    table = np.array([settings["table"] >> 3 * k & 7 for k in range(64)]) if "table" in settings else None
    stepped = settings["steps"].to_bytes(64, "little") if "steps" in settings else None
    table = np.frombuffer(stepped, np.uint8) if stepped else table
    config = driver.config(0, mode.name, layout, count, table)
    # Only the low bytes of words are codes; whatever is above.
    index = blocks.order(view, mode.tiled)
    sectors = np.zeros((8 * count, 8), np.uint32)
    sectors[: index.size] = blocks.sectors(codes, view, mode.tiled).view(np.uint8)
    above = random.integers(0, 1 << 24, sectors.shape).astype(np.uint32) << 8
    driver.dut.codes.value = 1
    sizes = np.asarray(model.path.coder.sizes(payload, count))
    expected = [block.tobytes() for block in payloads.cut(np.frombuffer(payload, np.uint8), sizes)]
    run = await driver.bench.run(
        {"config": [config], "sectors_i": [pack(one, 32) for one in sectors | above]}, {"bytes_o": 8 * count}, random,
        idle, stall)
    width, bits = driver.width, driver.width.bit_length()
    sizes = [beat >> 8 * width & (1 << bits) - 1 for beat in run["bytes_o"]]
    got = b"".join((beat & (1 << 8 * size) - 1).to_bytes(size, "little")
                   for beat, size in zip(run["bytes_o"], sizes, strict=True))
    driver.bench.equal(got, b"".join(expected), f"{mode.name} {shape}")
    await driver.rest()
    assert [int(port.value) for port in (driver.dut.error, driver.dut.nans, driver.dut.saturated)] == [0, 0, 0]
    first = run.cycles["bytes_o"][0] - run.cycles["sectors_i"][0]
    rows = [row for block in expected for row in payloads.split(np.frombuffer(block, np.uint8), mode.name)]
    size = width - 8
    given = [int.from_bytes(words.ljust(size, b"\xa5"), "little") | mask << 8 * size
             | (k == len(rows) - 1) << 8 * size + 8 for k, (mask, words) in enumerate(rows)]
    run = await driver.bench.run({"config": [config | 1], "rows_i": given}, {"sectors_o": 8 * count}, random, idle,
                                 stall)
    back = model.decode(payload, view, None, settings, 1)
    wanted = blocks.sectors(back, view, mode.tiled).view(np.uint8)
    # Rows of padding come back as whatever is in the blocks.
    seen = np.array([[beat >> 32 * lane & 255 for lane in range(8)] for beat in run["sectors_o"]], np.uint8)
    seen = seen[: index.size]
    real = index // view.tiles_per_row < view.rows
    lanes = np.minimum(view.width - 8 * (index % view.tiles_per_row), 8)[:, None] > np.arange(8)
    kept = real[:, None] & lanes
    driver.bench.equal(seen[kept].tolist(), wanted[kept].tolist(), f"{mode.name} {shape} back")
    await driver.rest()
    assert driver.dut.error.value == 0
    return first, run.cycles["sectors_o"][0] - run.cycles["rows_i"][0]


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def codes_equal_golden_in_every_mode(dut, idle, stall):
    random, driver = rng(), Driver(dut)
    await driver.bench.start()
    dut.codes.value = 0
    shapes = random.permutation(len(SHAPES))
    for turn, mode in enumerate(coded(parameters()["modes"])):
        shape = SHAPES[shapes[turn]]
        if not mode.tiled or mode.model.view(shape).tileable:
            await there_and_back(driver, random, mode, shape, idle, stall)
        dut.codes.value = 0
        c, _ = await driver.compress(tensor(random, SHAPES[3]), mode.name, random, "optL", idle, stall)
        await driver.decompress(c, np.zeros(SHAPES[3], np.float32), random, idle, stall)


@cocotb.test
async def codes_pass_in_fewer_cycles(dut):
    random, driver = rng(), Driver(dut)
    await driver.bench.start()
    for mode in coded(parameters()["modes"]):
        shape = (1, 2, 16, 8)  # tiles of one row
        there, back = await there_and_back(driver, random, mode, shape)
        expected = [table[driver.kind][mode.name] for table in (COMPRESS_LATENCY, DECOMPRESS_LATENCY)]
        expected = [one[0] if isinstance(one, tuple) else one for one in expected]
        fewer = [one - took for one, took in zip(expected, (there, back), strict=True)]
        assert tuple(fewer) == FEWER[mode.name], f"{mode.name}: {there}, {back}"
