"""What the benches of collector and splitter share."""

import pytest
from cocotb.triggers import FallingEdge

from actcodec.codecs import lane_modes
from tb.harness import Bench, parameters

__all__ = ["Dealer", "ids", "refused"]


def ids(value):
    """Names of parameters of a test."""
    return str(value) if isinstance(value, int) else "+".join(value)


refused = pytest.mark.parametrize("cdus, modes, name", [
    *((cdus, lane_modes("raw"), "cdus") for cdus in (0, 9, True, 2.0)),
    *((4, modes, "modes") for modes in ((), ("zip",), "raw", lane_modes("raw", "comet")))])


class Dealer:
    """The unit of a test with its ``cdus`` and ``modes``, in its :class:`Bench`."""

    def __init__(self, dut):
        self.dut, self.bench = dut, Bench(dut)
        self.cdus, self.modes = parameters().values()

    async def begin(self, count):
        """Starts a tensor of ``count`` blocks."""
        self.dut.blocks.value = count
        self.dut.start.value = 1
        await FallingEdge(self.dut.clk)
        self.dut.start.value = 0
