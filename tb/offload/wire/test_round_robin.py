"""Bench of the turns: golden's order of blocks, for any number of them."""

import cocotb
import pytest
from cocotb.triggers import FallingEdge, Timer

from actcodec.golden.offload.wire import stream
from actcodec.rtl.offload.wire.round_robin import RoundRobin
from tb.harness import SEED, Bench, parameters, regress, rng, simulate
from tb.offload.wire import payloads


@pytest.mark.parametrize("cdus", [3, *regress(8)])
def test_turns(cdus):
    simulate(RoundRobin(cdus), __file__, cdus=cdus)


async def begin(dut, count):
    dut.blocks.value = count
    dut.start.value = 1
    await FallingEdge(dut.clk)
    dut.start.value = 0


@cocotb.test
async def order_is_golden_s(dut):
    cdus, = parameters().values()
    await Bench(dut).start()
    for count in range(1, 12 * cdus):
        owners = payloads.owner(count, cdus)[stream.order(count, cdus)].tolist()
        await begin(dut, count)
        for index, owner in enumerate(owners):
            what = f"SEED={SEED}: block {index} of {count}"
            dut.next.value = 0
            await FallingEdge(dut.clk)
            assert (int(dut.active.value), int(dut.turn.value)) == (1, 1 << owner), what
            behind = owners[index + 1 :]
            assert int(dut.follows.value) == (1 << behind[0] if behind else 0), what
            assert (int(dut.ends.value), int(dut.last.value)) == (owner not in behind, not behind), what
            dut.next.value = 1
            await FallingEdge(dut.clk)
        dut.next.value = 0
        assert int(dut.active.value) == 0, f"SEED={SEED}: {count} blocks"


@cocotb.test
async def none_is_lost_of_many(dut):
    """Where the upper half of the count has to follow the lower one, block behind block."""
    cdus, = parameters().values()
    await Bench(dut).start()
    for count in (1 << 16, (1 << 16) + 1, (1 << 16) + 4 * cdus, (1 << 17) + 4 * cdus - 1, 1 << 21):
        await begin(dut, count)
        dut.next.value = 1
        await Timer(2 * (count - 1) - 1, "ns")  # cycles, without a look at each
        await FallingEdge(dut.clk)
        assert (int(dut.active.value), int(dut.last.value)) == (1, 1), f"SEED={SEED}: {count} blocks"
        await FallingEdge(dut.clk)
        dut.next.value = 0
        assert int(dut.active.value) == 0, f"SEED={SEED}: {count} blocks"


@cocotb.test
async def every_bit_of_the_count_counts(dut):
    cdus, = parameters().values()
    random = rng()
    await Bench(dut).start()
    counts = [1 << bit for bit in range(32)] + [(1 << 32) - (1 << bit) for bit in range(32)]
    for count in [0, *counts, 0, *(int(count) for count in random.integers(1, 1 << 32, 50)), 0]:
        await begin(dut, count)
        what = f"SEED={SEED}: {count} blocks"
        assert int(dut.active.value) == (count > 0), what
        if count:
            first, many = min(count, 8 * cdus), count > 8 * cdus  # of two runs and more only whether there are any more
            owners = payloads.owner(first, cdus)[stream.order(first, cdus)].tolist()
            assert int(dut.turn.value) == 1, what
            assert int(dut.ends.value) == (not many and owners[0] not in owners[1:]), what
            assert int(dut.last.value) == (count == 1), what
            assert int(dut.follows.value) == (0 if count == 1 else 1 << owners[1]), what
