"""Bench of the plan ahead: its outputs for a tensor equal Python's integers, and hold while the next one is planned."""

import cocotb
import pytest
from cocotb.triggers import FallingEdge, RisingEdge

from actcodec.golden.offload.blocks import View
from actcodec.rtl.offload.memory.geometry import distance_layout, geometry_layout
from actcodec.rtl.offload.queue.plan_ahead import PlanAhead
from tb.harness import Bench, pack, parameters, regress, rng, simulate, synthesised
from tb.offload.memory.addresses import describe, fields
from tb.offload.memory.test_tensor_plan import drawn, expect, latency, size, sizes, wrong


@pytest.mark.parametrize("cdus, width, options", [
    (synthesised("plan_ahead", "cdus", 3), synthesised("plan_ahead", "address_width", 33), {}),
    *regress((1, 64, {"ends": True}), (8, 40, {"halves": True}),
             (2, 40, {"ends": True, "halves": True, "codes": True}))], ids=str)
def test_plan_ahead(cdus, width, options):
    simulate(PlanAhead(cdus, width, **options), __file__, cdus=cdus, width=width, halves=bool(options.get("halves")),
             ends=bool(options.get("ends")), size=1 if options.get("codes") else 2 if options.get("halves") else 4)


def flags():
    """The bits above ``scaled`` in a descriptor: ``whole``, which is 0, if there is one; ``half`` and ``byte``."""
    return len(sizes()) << parameters()["ends"]


class Planner(Bench):
    """Plans tensors, and checks in every cycle that the outputs for the present one hold."""

    def __init__(self, dut):
        super().__init__(dut)
        self.names = [name for name in ("error", "blocks", "layout", "geometry", "void", "ending", *(
            f"shares__{c}" for c in range(parameters()["cdus"]))) if hasattr(dut, name)]
        self.present = None  # values of the outputs from ``take`` on
        self.expected, self.origins = None, []  # where the present tensor's lanes begin: by golden, and so far

    async def cycle(self):
        """Until the middle of the next one; whether a plan is done."""
        await RisingEdge(self.clk)
        dut, done = self.dut, bool(self.dut.done.value)
        if self.present is not None:
            now = {name: int(getattr(dut, name).value) for name in self.names}
            assert now == self.present, f"expected {self.present}, got {now}"
        if load := int(dut.load.value):
            assert load == 1 << len(self.origins), f"lane {len(self.origins)}: load is {load:#b}"
            self.origins.append(fields(distance_layout(parameters()["width"]), int(dut.origin.value)))
        await FallingEdge(self.clk)
        return done

    async def plan(self, view, tiled, base, stride, scales):
        """From the start to ``done``, in the cycles that a plan takes; why there is no such tensor."""
        dut, cdus, width = self.dut, parameters()["cdus"], parameters()["width"]
        dut.descriptor.value = describe(view, tiled, base, stride, width, scales or 0, scales is not None, flags())
        dut.start.value, cycles = 1, 0
        while not await self.cycle():
            dut.start.value, cycles = 0, cycles + 1
            assert cycles < 400, "no end"
        cause = wrong(view, tiled, base, stride, width, scales)
        assert cycles == (3 if cause == "sight" else latency(view, tiled, cdus))
        return cause

    async def take(self, cause, view, tiled, base, stride):
        """Puts the plan on the outputs, and compares them with integers."""
        dut, cdus, width = self.dut, parameters()["cdus"], parameters()["width"]
        dut.take.value, self.present, self.origins = 1, None, []
        dut.present.value = pack([base], width) | pack([view.rows, stride, view.height], 32) << width
        await self.cycle()
        dut.take.value = 0
        await RisingEdge(self.clk)
        self.present = {name: int(getattr(dut, name).value) for name in self.names}
        assert self.present["error"] == (cause is not None)
        assert dut.load.value == 1
        self.origins.append(fields(distance_layout(width), int(dut.origin.value)))
        if cause is None:
            expected = expect(view, tiled, base, stride, cdus, width)
            expected |= {f"shares__{c}": share for c, share in enumerate(expected.pop("shares"))}
            seen = geometry_layout(width, "half" in sizes(), "byte" in sizes())
            for name in self.present:
                got = fields(seen, self.present[name]) if name == "geometry" else self.present[name]
                assert name == "error" or got == expected[name], f"{name}: expected {expected[name]}, got {got}"
        self.expected = expected["origins"] if cause is None else None
        await FallingEdge(self.clk)


@cocotb.test
async def outputs_hold_while_the_next_tensor_is_planned(dut):
    random, bench = rng(), Planner(dut)
    await bench.start()
    causes = []
    for number in range(150):
        what = f"tensor {number}: {(one := drawn(random))}"
        try:
            causes.append(await bench.plan(*one))
            for _ in range(int(random.choice([0, 0, 1, 30]))):
                assert not await bench.cycle()
            while number and len(bench.origins) < parameters()["cdus"]:  # lanes are not at rest
                assert not await bench.cycle()
            assert bench.expected in (None, bench.origins), f"expected {bench.expected}, got {bench.origins}"
            await bench.take(causes[-1], *one[:4])
        except AssertionError as error:
            raise AssertionError(f"{what}: {error}") from error
        for _ in range(int(random.choice([0, 0, 5, 40]))):
            assert not await bench.cycle()
    assert causes.count(None) > 30 and causes.count("sight") > 3 and causes.count("size") > 3


@cocotb.test
async def lanes_begin_in_rows_that_are_far_away(dut):
    """A tile wide, so that each lane begins some rows below the one before; rows at distances with any bit."""
    random, bench = rng(), Planner(dut)
    await bench.start()
    for bit in range(5, min(32, parameters()["width"] - 7)):
        stride = 1 << bit | int(random.integers(1 << bit)) & -4
        one = View(100, 8, 3, 5, True), 1, 0, stride
        await bench.take(await bench.plan(*one, None), *one)
        while len(bench.origins) < parameters()["cdus"]:
            await bench.cycle()
        assert bench.origins == bench.expected, f"stride {stride}"


@cocotb.test
async def plans_again_after_a_reset(dut):
    random, bench = rng(), Planner(dut)
    await bench.start()
    for cycles in (1, 2, 3, 20, 36, 66, 74, 80):
        one = View(500, 40, 3, 3, True), 1, 64, 40 * size(), None
        dut.descriptor.value = describe(*one[:4], parameters()["width"], flags=flags())
        dut.start.value, bench.present, bench.origins = 1, None, []
        for _ in range(cycles):
            await FallingEdge(bench.clk)
            dut.start.value = 0
        await bench.reset()
        one = View(int(random.integers(8, 100)), 24, 3, 5, True), 1, 64, 100 // size() * size(), None
        await bench.take(await bench.plan(*one), *one[:4])
        for _ in range(parameters()["cdus"]):
            await bench.cycle()
        assert bench.origins == bench.expected
