"""A bench of the skid buffer that lets faults through: its sink is always ready, and its source never rests."""

import cocotb
from cocotb.triggers import FallingEdge

from actcodec.rtl.common.skid import Skid
from tb.harness import Bench, simulate


def test_skid():
    simulate(Skid(16), __file__)


@cocotb.test
async def passes_beats(dut):
    await Bench(dut).start()
    dut.i__valid.value = dut.o__ready.value = 1
    for value in range(100):
        dut.i__payload.value = value * 655
        await FallingEdge(dut.clk)
        while dut.o__valid.value == 0:  # for ever, if it never is
            await FallingEdge(dut.clk)
        assert dut.o__payload.value == value * 655
