"""A bench that forgets one of its tests: see ``test_selection.py``."""

import cocotb

from actcodec.rtl.common.skid import Skid
from tb.harness import simulate


def test_skid():
    simulate(Skid(16), __file__, [remembered])


@cocotb.test
async def remembered(dut):
    pass


@cocotb.test
async def forgotten(dut):
    pass
