"""A unit that can be reset from inside the design, too, as the accelerator resets its own."""

from amaranth.hdl import Module, ResetInserter
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from cocotb.triggers import FallingEdge

__all__ = ["Cleared", "reset"]


class Cleared(wiring.Component):
    """``unit``, and ``clear``: a cycle of it is a reset."""

    def __init__(self, unit):
        self.unit = unit
        super().__init__({**unit.signature.members, "clear": In(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.unit = ResetInserter(self.clear)(self.unit)
        inside = {path: value for path, _, value in self.unit.signature.flatten(self.unit)}
        for path, member, value in self.unit.signature.flatten(self):
            m.d.comb += value.eq(inside[path]) if member.flow == Out else inside[path].eq(value)
        return m


async def reset(bench):
    """By ``clear`` if the design has it; with the cycle after it, in which units may not be started yet."""
    if not hasattr(bench.dut, "clear"):
        return await bench.reset()
    await FallingEdge(bench.clk)
    bench.dut.clear.value = 1
    await FallingEdge(bench.clk)
    bench.dut.clear.value = 0
    await FallingEdge(bench.clk)
