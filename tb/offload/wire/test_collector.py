"""Bench of the collector: blocks of several CDUs come out in golden's order, in full packets."""

import cocotb
import numpy as np
import pytest

from actcodec.codecs import JPEG_ACT, lane_modes
from actcodec.golden.offload.wire import stream
from actcodec.rtl.offload.wire.collector import Collector
from actcodec.rtl.offload.wire.round_robin import Sizes
from tb import reference
from tb.harness import PATTERNS, STALLS, after, regress, rng, simulate
from tb.offload.wire import payloads
from tb.offload.wire.cleared import Cleared, reset
from tb.offload.wire.dealing import Dealer, ids, refused

ALL = reference.MODES


@pytest.mark.parametrize("cdus, modes", [
    (4, JPEG_ACT), (4, ("sfpr", "jpeg-act", "segment", "segments")), (1, ("sfpr", "sfpr-zvc", "segments")),
    *regress(
        (1, ("sfpr", "mx-zvc", "three")), (2, ("sfpr", "mx-zvc", "segment", "brc")),
        (2, ("sfpr-nibble", "sfpr-zvc")), (2, (*ALL, "trim", "jpeg-base")), (8, JPEG_ACT), (2, ALL),
        (3, (*JPEG_ACT, "trim")),
        (4, ("sfpr-rice", "sfpr-zvc")), (4, ("jpeg-base", "sfpr")),
        (3, ("three", "half")), (3, ("mx", "mx-e2m1", "trim")), (2, ("mx", "mx-e3m2", "mx-e2m1", "zvc")),
        (4, ("mx-zvc", "mx-nibble", "sfpr-zvc", "mx")), (8, ("mx-e2m1-zvc", "sfpr")),
        (2, ("mx-zvc", "mx-rice", "mx-nibble", "zvc", "sfpr-rice")), (2, ("raw", "zvc", "raw-16", "zvc-16")))], ids=ids)
def test_collector(cdus, modes):
    simulate(Collector(cdus, payloads.modes(modes)), __file__, cdus=cdus, modes=modes)


@pytest.mark.regress
@pytest.mark.parametrize("cdus, modes", [(1, JPEG_ACT), (2, ("sfpr", "mx-zvc", "segments"))], ids=ids)
def test_for_luts(cdus, modes):
    simulate(Collector(cdus, payloads.modes(modes)), __file__, target="lut", cdus=cdus, modes=modes)


@pytest.mark.regress
def test_blocks_longer_than_a_packet_of_many_cdus():
    """As often as a packet can."""
    modes = ("jpeg-base", "sfpr-nibble", "sfpr")
    simulate(Collector(8, payloads.modes(modes)), __file__, cdus=8, modes=modes, without=[
        rate_is_eight_cycles_for_a_block_of_each, latency_is_that_of_the_docstring])


def test_soft_reset():
    simulate(Cleared(Collector(3, lane_modes(*JPEG_ACT))), __file__, [recovers_from_a_reset_at_any_moment],
             cdus=3, modes=JPEG_ACT)


@refused
def test_parameters_out_of_range_are_refused(cdus, modes, name):
    with pytest.raises(ValueError, match=name):
        Collector(cdus, modes)


class Driver(Dealer):
    def __init__(self, dut):
        super().__init__(dut)
        self.size = payloads.first_bytes(self.modes)

    def sources(self, payload, sizes, mode):
        sources = {f"i__{c}": [] for c in range(self.cdus)}
        for c, block, begins in zip(payloads.owner(len(sizes), self.cdus), payloads.cut(payload, sizes),
                                    payloads.segments(len(sizes)), strict=True):
            sources[f"i__{c}"] += payloads.chunks(block, mode, self.size, begins)
        return sources

    async def collect(self, mode, payload, sizes, random, idle="never", stall="never"):
        """Sends one tensor's blocks and compares the packets."""
        expected = payloads.packets(stream.interleave(payload, sizes, self.cdus)[0])
        await self.begin(len(sizes))
        run = await self.bench.run(self.sources(payload, sizes, mode), {"o": len(expected)}, random, idle, stall)
        self.bench.equal(run["o"], expected, f"{self.cdus} CDUs, {mode}, {len(sizes)} blocks")
        assert int(self.dut.o__valid.value) == 0, "a packet too many"
        return run


@cocotb.test
async def equals_golden_for_every_number_of_blocks(dut):
    """Groups that are not full, CDUs without a block, and every fill of the last packet's end."""
    random = rng()
    driver = Driver(dut)
    await driver.bench.start()
    todo, ends = [(mode, count) for count in range(1, 8 * driver.cdus + 3) for mode in driver.modes], set()
    more = todo * 20  # in an order of their own
    random.shuffle(more)
    while todo or ends != {0, 1, 2}:  # the first half, the second, and full, which is rare
        mode, count = todo.pop(0) if todo else more.pop()
        payload, sizes = payloads.blocks(random, mode, count, str(random.choice(payloads.KINDS)))
        await driver.collect(mode, payload, sizes, random)
        ends.add(len(payload) % stream.PACKET * 2 // stream.PACKET if len(payload) % stream.PACKET else 2)


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def equals_golden_whatever_the_ports_do(dut, idle, stall):
    random = rng()
    driver = Driver(dut)
    await driver.bench.start()
    for mode in driver.modes:
        payload, sizes = payloads.blocks(random, mode, int(random.integers(1, 60)), str(random.choice(payloads.KINDS)))
        await driver.collect(mode, payload, sizes, random, idle, stall)


@cocotb.test
async def waits_for_a_cdu_that_is_late(dut):
    """Turns are fixed: one slow CDU holds up the others, and nothing is lost."""
    random = rng()
    driver = Driver(dut)
    await driver.bench.start()
    for late in range(driver.cdus):
        mode = driver.modes[int(random.integers(len(driver.modes)))]
        payload, sizes = payloads.blocks(random, mode, 12 * driver.cdus)
        await driver.collect(mode, payload, sizes, random, {f"i__{late}": "mostly"})


@cocotb.test
async def rate_is_eight_cycles_for_a_block_of_each(dut):
    """However long they are: a CDU waits for its first turn and never again."""
    random = rng()
    driver = Driver(dut)
    await driver.bench.start()
    turn = 3 if payloads.row_bytes(driver.modes) == 32 else 2 if driver.cdus <= 4 else 1  # cycles for the longest block
    for mode in driver.modes:
        for kind in ("full", "zero", "any") if payloads.block_format(mode).kind != "fixed" else ("any",):
            count = 40
            payload, sizes = payloads.blocks(random, mode, count * driver.cdus, kind)
            run = await driver.collect(mode, payload, sizes, random)
            spans = [cycles[-1] - cycles[0] + 1 for port, cycles in run.cycles.items() if port != "o"]
            assert max(spans) <= 8 * count + turn * (driver.cdus - 1) + 1, f"{mode} {kind}: {spans}"


@cocotb.test
async def latency_is_that_of_the_docstring(dut):
    """From the last chunk to the packet, which takes a cycle more if it is not full."""
    random = rng()
    driver = Driver(dut)
    await driver.bench.start()
    sizes = Sizes(driver.cdus, payloads.modes(driver.modes))
    for mode, count, full in (("jpeg-act", 1, 0), ("sfpr", 1, 0), ("sfpr", 2, 1)):
        payload, lengths = payloads.blocks(random, mode, count, "full")
        run = await driver.collect(mode, payload, lengths, random)
        pieces = -(-lengths[-1] // sizes.piece)
        assert run.cycles["o"][0] - run.cycles["i__0"][-1] == 3 + pieces - 2 * full, f"{mode}, {count} blocks"


@cocotb.test
async def recovers_from_a_reset_at_any_moment(dut):
    random = rng()
    driver = Driver(dut)
    await driver.bench.start()
    for mode in driver.modes:
        payload, sizes = payloads.blocks(random, mode, 10 * driver.cdus)
        for moment in random.integers(1, 80, 4):
            await driver.begin(len(sizes))
            await driver.bench.run(driver.sources(payload, sizes, mode), {"o": None}, random, "seldom", "half",
                                   until=after(int(moment)))
            await reset(driver.bench)
            few, lengths = payloads.blocks(random, mode, int(random.integers(1, 20)))
            await driver.collect(mode, few, lengths, random)


def test_golden_keeps_what_the_bench_feeds():
    """The bench's chunks, put together again, are the blocks they were cut from."""
    random = np.random.default_rng(1)
    for mode in ALL:
        payload, sizes = payloads.blocks(random, mode, 9)
        joined = b"".join(
            bytes(byte for byte, _ in rows)[: payloads.block_format(mode).head] + b"".join(row for _, row in rows)
            for rows in (payloads.split(block, mode) for block in payloads.cut(payload, sizes)))
        assert joined == payload.tobytes()
