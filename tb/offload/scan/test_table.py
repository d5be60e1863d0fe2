"""Bench of the table's places: one for each scale of a lane, equal to plain sums; tables anywhere, of any size."""

import cocotb
import pytest

from actcodec.rtl.offload.memory.geometry import SIZE
from actcodec.rtl.offload.scan.table import Table
from tb.harness import STALLS, parameters, regress, rng, simulate, synthesised
from tb.offload.scan.places import Walker

LATENCY, PERIOD = 3, 3


@pytest.mark.parametrize("width", [synthesised("scan", "address_width", 40), *regress(33, 64)])
def test_table(width):
    simulate(Table(width), __file__, width=width)


async def check(walker, random, channels, lanes, address=None, most=100, stall="never"):
    """All places, or the first ones if there are more than ``most``; the cycles in which they come. The table is
    anywhere by default."""
    dut, space = walker.dut, 1 << parameters()["width"]
    if address is None:
        address = (int.from_bytes(random.bytes(8), "little") % space) & -4
    dut.address.value, dut.channels.value, dut.lanes.value = address, channels, lanes
    numbers = range(0, channels, lanes)
    expected = [((address + 4 * number) % space, 1, 0, int(number == numbers[-1])) for number in numbers[:most]]
    return await walker.walks(random, expected, f"{channels} channels, {lanes} lanes, {address:#x}",
                              len(numbers) <= most, stall)


@cocotb.test
@cocotb.parametrize(stall=STALLS)
async def equals_plain_sums(dut, stall):
    random, walker = rng(), Walker(dut)
    await walker.start()
    for _ in range(20):
        await check(walker, random, int(random.integers(1, 100)), int(random.integers(1, 9)), stall=stall)


@cocotb.test
async def gives_a_place_every_three_cycles(dut):
    random, walker = rng(), Walker(dut)
    await walker.start()
    for lanes in range(1, 9):
        cycles = await check(walker, random, int(random.integers(1, 100)), lanes)
        assert cycles == list(range(LATENCY, LATENCY + PERIOD * len(cycles), PERIOD))


@cocotb.test
async def counts_with_every_bit(dut):
    random, walker = rng(), Walker(dut)
    await walker.start()
    for bit in range(SIZE):
        for more in (0, 1, int(random.integers(1 << bit))):
            await check(walker, random, 1 << bit | more, int(random.integers(1, 9)), most=20)


@cocotb.test
async def adds_in_every_bit(dut):
    """Carries out of every digit of an address, as many tables lie across them."""
    random, walker = rng(), Walker(dut)
    await walker.start()
    for bit in range(2, parameters()["width"]):
        await check(walker, random, 3, 1, (1 << bit) - 4)
