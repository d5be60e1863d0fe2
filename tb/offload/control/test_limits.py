"""Bench of the limits: hardware and driver refuse what is beyond one, and nothing else, whatever the mode."""

from collections import Counter
from itertools import chain

import cocotb
import pytest
from cocotb.triggers import FallingEdge, RisingEdge

from actcodec.codecs import lane_modes
from actcodec.rtl.jpegact.cdu import Cdu
from actcodec.rtl.offload.accelerator import Accelerator
from actcodec.rtl.offload.control import limits
from actcodec.rtl.offload.control.register_map import COUNTERS, ErrorCode
from actcodec.rtl.offload.control.setting import width
from actcodec.rtl.offload.memory.tensor_plan import TensorPlan, descriptor_layout
from tb.harness import SEED, Bench, parameters, rng, simulate
from tb.offload.world import World

GOOD = {"rows": 16, "width": 16, "stride": 64, "height": 8, "channels": 2, "base": 0x1000, "scales": 0x2000,
        "decompress": 0}


def good(mode, **changes):
    """A legal descriptor, with the default settings."""
    return GOOD | {"settings": sum(setting.default << setting.low for setting in mode.settings)} | changes


@pytest.mark.parametrize("address_width", [32, 40, 64])
def test_plan(address_width):
    simulate(TensorPlan(1, address_width, ends=True), __file__, [descriptors_on_both_sides_of_each_limit],
             width=address_width)


@pytest.mark.parametrize("modes", [("jpeg-act-div-rice", "jpeg-base"), ("sfpr-rice", "comet-flat", "division")])
def test_accelerator(modes):
    """With each setting that has limits, without streams and with them; the CDU's control has a bench of all modes."""
    simulate(Accelerator(1, lane_modes(*modes), Cdu, coders=1), __file__, cdus=1, modes=modes,
             tests=[settings_on_both_sides_of_each_limit])


def test_each_limit_has_two_sides():
    """Only memory of 40 bits is too small for so many blocks."""
    for mode in lane_modes():
        sides = Counter()
        for name, descriptor in chain(limits.around(good(mode), mode, 64), limits.around(
                good(mode, decompress=1), mode, 64)):
            cause = limits.violated(descriptor, mode, 64)
            sides[name, cause] += cause in (None, name)
        names = {rule.name for rule in limits.RULES if rule.name != "SCALES" or mode.scaled}
        names |= {setting.name for setting in mode.settings if setting.limits}
        assert {key for key in sides if sides[key]} - {("SCALES", None)} == {
            (name, cause) for name in names for cause in (None, name)} - {("SCALES", None)}, mode.name


@cocotb.test
async def descriptors_on_both_sides_of_each_limit(dut):
    bench, bits, random = Bench(dut), parameters()["width"], rng()
    await bench.start()
    seen = Counter()
    for mode in lane_modes():
        start = good(mode, rows=8 * int(random.integers(1, 40)), width=int(random.integers(8, 70)))
        start |= {"stride": 4 * start["width"] + 4 * int(random.integers(20)), "channels": int(random.integers(1, 40))}
        for name, one in limits.around(start, mode, bits):
            flags = {"tiled": mode.tiled, "scaled": mode.scaled, "whole": mode.format.whole}
            fields = descriptor_layout(bits, True).members
            await FallingEdge(dut.clk)
            dut.descriptor.value = descriptor_layout(bits, True).const(
                {field: int((one | flags)[field]) for field in fields}).as_bits()
            dut.start.value = 1
            await FallingEdge(dut.clk)
            dut.start.value = 0
            if dut.done.value == 0:
                await RisingEdge(dut.done)
            rule = limits.violated({key: number for key, number in one.items() if key != "settings"}, mode, bits)
            assert dut.error.value == (rule is not None), f"SEED={SEED}: {mode.name} {one}, {name}: {rule}"
            seen[name, rule is None] += 1
            await bench.reset(1)
    assert all(seen[rule.name, legal] for rule in limits.RULES for legal in (True, False)
               if rule.name != "blocks" or bits > 40), seen


@cocotb.test
async def settings_on_both_sides_of_each_limit(dut):
    """A sample of those of long tables. What is legal begins, and is given up."""
    random = rng()
    world = World(dut, random)
    await world.start()
    driver, seen = world.driver, Counter()
    for mode in lane_modes(*parameters()["modes"]):
        for decompress in (0, 1):
            start, bits = good(mode, decompress=decompress), driver.address_width
            some = [(name, one) for name, one in limits.around(start, mode, bits)
                    if not name.isupper() or (name in ("ROWS", "HEIGHT") and mode.format.whole)]
            long = [k for k, (name, _) in enumerate(some) if name in ("steps", "divisors")]
            skipped = set(random.permutation(long)[24:])
            for name, one in (pair for k, pair in enumerate(some) if k not in skipped):
                cause = limits.violated(one, mode, bits)
                if name == "blocks" or (cause is None and max(one["rows"], one["height"]) > 1000):
                    continue
                await driver.put({"settings": width([mode])}, mode=mode.code, **one)
                await driver.put(done_pending=1, error_pending=1)
                await driver.put(start=1)
                cycles = 0
                while dut.interrupt.value == 0 and dut.m_axi_0_arvalid.value == 0 and cycles < 400:
                    await RisingEdge(dut.clk)
                    cycles += 1
                done, error = await driver.get("done", "error")
                refused = bool(done) and error == ErrorCode.DESCRIPTOR
                assert refused == (cause is not None), f"SEED={SEED}: {mode.name} {one}, {name}: {cause}"
                if refused:
                    assert not any((await driver.get(*COUNTERS))[1:])
                else:
                    await driver.reset()
                    while not world.sink.empty():
                        world.sink.recv_nowait()
                seen[mode.name, name, refused] += 1
    limited = [(mode.name, setting.name) for mode in lane_modes(*parameters()["modes"]) for setting in mode.settings
               if setting.limits]
    assert all(seen[*one, refused] for one in limited for refused in (True, False)), f"SEED={SEED}: {seen}"
