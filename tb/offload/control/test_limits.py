"""Bench of the limits: hardware and driver refuse what is beyond one, and nothing else, whatever the mode."""

from collections import Counter
from dataclasses import replace
from itertools import chain, product

import cocotb
import pytest
from cocotb.triggers import FallingEdge, RisingEdge

from actcodec.codecs import lane_modes
from actcodec.rtl.offload.control import limits
from actcodec.rtl.offload.control.register_map import ErrorCode
from actcodec.rtl.offload.memory.tensor_plan import TensorPlan, descriptor_layout
from tb.harness import SEED, Bench, parameters, regress, rng, selection, simulate
from tb.offload import draws
from tb.offload.jobs import Job
from tb.soak import chance
from tb.soak.session import Session

OTHERS = ("format", "images", "PAYLOAD", "PAYLOAD_SIZE")  # limits that are no matter of the tensor's plan
CODES = limits.FORMATS.index(limits.CODES)
GOOD = {"rows": 16, "width": 16, "stride": 64, "height": 8, "channels": 2, "base": 0x1000, "scales": 0x2000,
        "decompress": 0}


def pairs(forms):
    """Modes, each with those of the formats that it takes."""
    return [(mode, form) for mode, form in product(lane_modes(), forms) if form != CODES or mode.codes]


def good(mode, **changes):
    """A legal descriptor, with the default settings."""
    return GOOD | {"settings": sum(setting.default << setting.low for setting in mode.settings)} | changes


@pytest.mark.parametrize("address_width, more", [(40, True), *regress((32, False), (64, False))])
def test_plan(address_width, more):
    simulate(TensorPlan(1, address_width, ends=True, halves=more, codes=more), __file__,
             [descriptors_on_both_sides_of_each_limit], width=address_width, more=more)


@pytest.mark.regress
def test_settings_on_both_sides_of_each_limit(random, request):
    """What is legal goes both ways, what is not moves nothing. A sample of those of long tables; the CDU's control has
    a bench of all modes. ``make sim`` has a third of the modes, by chance."""
    session, seen = Session(chance.LANE, random), Counter()
    bits = session.driver.address_width
    modes = [mode for mode in lane_modes(*session.driver.modes) if any(field.limits for field in mode.settings)]
    if selection.brief(request.config):
        modes = selection.part(random, modes, 3)
    for mode in modes:
        for back in (False, True):
            one = Job.draw(random, draws.descriptor(random, mode, 1, most=300)).at(0x1000)
            values = one.registers(back, one.lengths)
            some = [(name, other) for name, other in limits.around(values, mode, bits)
                    if not name.isupper() or (name in ("ROWS", "HEIGHT") and mode.format.whole)]
            long = [k for k, (name, _) in enumerate(some) if name in ("steps", "divisors")]
            skipped = set(random.permutation(long)[12:])
            for name, other in (pair for k, pair in enumerate(some) if k not in skipped):
                if refused := limits.violated(other, mode, bits) is not None:
                    session.refuse(mode, other, ErrorCode.DESCRIPTOR)
                elif not name.isupper():
                    word, again = other["settings"], one.descriptor
                    fields = {field.name: word >> field.low & (1 << field.width) - 1 for field in mode.settings}
                    again = replace(again, settings=again.settings | fields)
                    good = replace(one, descriptor=again, encoded=again.compress(one.x, one.words))
                    (session.decompress if back else session.compress)(good)
                seen[mode.name, name, refused] += 1
    limited = [(mode.name, field.name) for mode in modes for field in mode.settings if field.limits]
    assert all(seen[*one, refused] for one in limited for refused in (True, False)), seen


def test_each_limit_has_two_sides():
    """Only memory of 40 bits is too small for so many blocks."""
    for mode, form in pairs(range(len(limits.FORMATS))):
        sides = Counter()
        for name, descriptor in chain(limits.around(good(mode, format=form), mode, 64), limits.around(
                good(mode, decompress=1, format=form), mode, 64)):
            cause = limits.violated(descriptor, mode, 64)
            sides[name, cause] += cause in (None, name)
        names = {rule.name for rule in limits.RULES
                 if rule.name not in OTHERS and (rule.name != "SCALES" or limits.scaled({"format": form}, mode))}
        names |= {setting.name for setting in mode.settings if setting.limits}
        assert {key for key in sides if sides[key]} - {("SCALES", None)} == {
            (name, cause) for name in names for cause in (None, name)} - {("SCALES", None)}, mode.name


@cocotb.test
async def descriptors_on_both_sides_of_each_limit(dut):
    bench, bits, more, random = Bench(dut), parameters()["width"], parameters()["more"], rng()
    layout = descriptor_layout(bits, True, more, more)
    await bench.start()
    seen = Counter()
    for mode, form in pairs(range(len(limits.FORMATS)) if more else [0]):
        start = good(mode, rows=8 * int(random.integers(1, 40)), width=int(random.integers(8, 70)), format=form)
        size = limits.value_bytes(start)
        start |= {"stride": size * (start["width"] + int(random.integers(20))), "channels": int(random.integers(1, 40))}
        for name, one in limits.around(start, mode, bits):
            flags = {"tiled": mode.tiled, "scaled": limits.scaled(one, mode), "whole": mode.format.whole,
                     "half": form not in (0, CODES), "byte": form == CODES}
            await FallingEdge(dut.clk)
            dut.descriptor.value = layout.const(
                {field: int((one | flags)[field]) for field in layout.members}).as_bits()
            dut.start.value = 1
            await FallingEdge(dut.clk)
            dut.start.value = 0
            if dut.done.value == 0:
                await RisingEdge(dut.done)
            rule = limits.violated({key: number for key, number in one.items() if key != "settings"}, mode, bits)
            assert dut.error.value == (rule is not None), f"SEED={SEED}: {mode.name} {one}, {name}: {rule}"
            seen[name, form, rule is None] += 1
            await bench.reset(1)
    rules = [rule.name for rule in limits.RULES
             if rule.name not in OTHERS and (rule.name != "blocks" or bits > 40)]
    assert all(seen[name, form, legal] for name in rules for legal in (True, False)
               for form in {form for _, form, _ in seen} if legal or (name, form) != ("SCALES", CODES)), seen
