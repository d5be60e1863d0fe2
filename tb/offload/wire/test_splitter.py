"""Bench of the splitter: packets in golden's order come out as the rows of each CDU's blocks."""

import cocotb
import numpy as np
import pytest
from cocotb.triggers import FallingEdge

from actcodec.codecs import JPEG_ACT, lane_modes
from actcodec.golden.offload.wire import stream
from actcodec.rtl.offload.wire.round_robin import Sizes
from actcodec.rtl.offload.wire.splitter import Splitter
from tb import reference
from tb.harness import PATTERNS, SEED, STALLS, after, regress, rng, simulate
from tb.offload.wire import payloads
from tb.offload.wire.cleared import Cleared, reset
from tb.offload.wire.dealing import Dealer, ids, refused

ALL = reference.MODES


@pytest.mark.parametrize("cdus, modes", [
    (4, JPEG_ACT), (1, ("sfpr", "sfpr-zvc", "segments")),
    *regress(
        (1, ("sfpr", "mx-zvc", "three", "narrow")), (2, ("sfpr", "mx-zvc", "segment", "brc")),
        (2, ("sfpr-nibble", "sfpr-zvc")),
        (2, (*ALL, "trim", "jpeg-base", "segments", "mx")), (8, JPEG_ACT), (2, ALL),
        (3, ("three", "half")), (3, ("mx", "mx-e2m1", "trim")), (4, (*JPEG_ACT, "trim")),
        (8, ("trim", "sfpr")),
        (4, ("trim", "sfpr-rice", "sfpr-zvc")), (1, ("segments", "narrow")), (4, (*JPEG_ACT, "segment", "segments")),
        (7, ("segments", "narrow", "trim")), (2, ("zvc", "raw", "segment", "segments")), (2, ("segment", "sfpr")),
        (4, ("jpeg-base", "sfpr")),
        (2, ("mx", "mx-e3m2", "mx-e2m1", "zvc", "segments")), (4, ("mx-zvc", "mx-nibble", "sfpr-zvc", "mx")),
        (8, ("mx-e2m1-zvc", "mx-rice", "sfpr-rice")), (2, ("mx-zvc", "mx-rice", "mx-nibble", "zvc", "sfpr-rice")),
        (2, ("raw", "zvc", "raw-16", "zvc-16")),
        (2, ("sfpr-zvc", "zvc", "trim", "zvc-16", "raw-16")))], ids=ids)
def test_splitter(cdus, modes):
    simulate(Splitter(cdus, payloads.modes(modes)), __file__, cdus=cdus, modes=modes)


@pytest.mark.regress
@pytest.mark.parametrize("cdus, modes", [(1, JPEG_ACT), (2, ("sfpr", "mx-zvc", "segments"))], ids=ids)
def test_for_luts(cdus, modes):
    simulate(Splitter(cdus, payloads.modes(modes)), __file__, target="lut", cdus=cdus, modes=modes)


@pytest.mark.regress
def test_blocks_longer_than_a_packet_for_many_cdus():
    """As often as a packet can."""
    modes = ("jpeg-base", "sfpr-nibble", "sfpr")
    simulate(Splitter(8, payloads.modes(modes)), __file__, without=[rate_is_eight_cycles_for_a_block_of_each],
             cdus=8, modes=modes)


def test_soft_reset():
    simulate(Cleared(Splitter(3, lane_modes(*JPEG_ACT))), __file__, [recovers_from_a_reset_at_any_moment],
             cdus=3, modes=JPEG_ACT)


@refused
def test_parameters_out_of_range_are_refused(cdus, modes, name):
    with pytest.raises(ValueError, match=name):
        Splitter(cdus, modes)


def walk(content, order, mode):
    """Sizes of the blocks, at most as many as ``order`` has numbers of, that are whole in any bytes, and whether a part
    of another one follows that has as much as a mask, or a first byte."""
    sizes, at, form, count = [], 0, payloads.block_format(mode), len(order)
    least = min(form.fixed, 8)
    while len(sizes) < count and at + least <= len(content):
        size = form.longest
        if form.kind == "mask":
            size = form.head + form.item * int(np.bitwise_count(content[at : at + form.head][form.head - 8 :]).sum())
        if form.kind == "counted":
            size = 1 + payloads.follows(content[at], form)
        if form.kind == "segments":
            size = 8 * form.row + int(payloads.segments(count)[order[len(sizes)]].sum())
        if at + size > len(content):
            return np.array(sizes, int), True
        sizes.append(size)
        at += size
    return np.array(sizes, int), False


class Driver(Dealer):
    def __init__(self, dut):
        super().__init__(dut)
        self.row = payloads.row_bytes(self.modes)

    async def begin(self, mode, count):
        self.dut.mode.value = self.modes.index(mode)
        if hasattr(self.dut, "load"):
            await self.place(count)
        await super().begin(count)

    async def place(self, count):
        """As the plan of a tensor does, with anything at ``origin`` where nothing is loaded, and the stride late."""
        self.dut.sectors.value, self.dut.void.value = width, _ = payloads.place(count)
        self.dut.stride.value = 511
        self.dut.ending.value = 1 << int(payloads.owner(count, self.cdus)[-1])
        for c in range(self.cdus):
            self.dut.origin.value, self.dut.load.value = 32 * c % width, 1 << c
            await FallingEdge(self.dut.clk)
            self.dut.load.value = 0
        self.dut.origin.value = 511
        for _ in range(4):
            await FallingEdge(self.dut.clk)
        self.dut.stride.value = 32 * self.cdus % width

    def expected(self, content, count, mode):
        """What each CDU gets: pairs (value, bits of it that count); and the flags, short and excess."""
        order = stream.order(count, self.cdus)
        sizes, partial = walk(content, order, mode)
        data, whole, last = 8 * self.row, len(sizes), 8 * self.row + 8
        short, excess = int(whole < count), int(whole == count and sizes.sum() < len(content))
        blocks = [[] for _ in range(self.cdus)]
        form, segments = payloads.block_format(mode), payloads.segments(count)
        for k, block in enumerate(payloads.cut(content[: sizes.sum()], sizes) if whole else ()):
            for k_, (mask, row) in enumerate(payloads.split(block, mode, segments[order[k]])):
                masked = (form.kind in ("mask", "halves") or (form.kind == "counted" and k_ == 0) or form.segmented)
                bits = (1 << 8 * len(row)) - 1 | ((1 if form.segmented else 255) * masked) << data | 1 << last
                two = len(block) >= form.head  # it is not too short for its halves' bytes
                bits |= 65535 * (form.halves and two) << last + 1
                blocks[payloads.owner(count, self.cdus)[order[k]]].append(
                    (int.from_bytes(row, "little") | mask << data | payloads.halves(block, form) * two << last + 1,
                     bits))
        wanted = 8 * np.bincount(payloads.owner(count, self.cdus), minlength=self.cdus)
        if partial:  # its rows come, with anything in them
            blocks[payloads.owner(count, self.cdus)[order[whole]]] += [(0, 1 << last)] * 8
        for rows, need in zip(blocks, wanted, strict=True):
            if len(rows) < need:
                rows.append((1 << last, 1 << last))
            elif rows:
                rows[-1] = (rows[-1][0] | 1 << last, rows[-1][1])
        return blocks, short, excess

    async def split(self, mode, content, count, random, idle="never", stall="never", null=False):
        """Sends a stream, of which all but the first ``count`` blocks is too much, and compares everything. ``null``: a
        packet without bytes ends it."""
        blocks, short, excess = self.expected(content, count, mode)
        await self.begin(mode, count)
        sinks = {f"o__{c}": len(rows) for c, rows in enumerate(blocks) if rows}
        run = await self.bench.run({"i": payloads.packets(content, null)}, sinks, random, idle, stall)
        for c, rows in enumerate(blocks):
            if rows:
                got = [beat & bits for beat, (_, bits) in zip(run[f"o__{c}"], rows, strict=True)]
                self.bench.equal(got, [value for value, _ in rows], f"CDU {c} of {self.cdus}, {mode}, {count} blocks")
        for _ in range(4):
            if int(self.dut.busy.value) == 0:
                break
            await FallingEdge(self.dut.clk)
        assert int(self.dut.busy.value) == 0, f"SEED={SEED}: busy after the last beat"
        flags = int(self.dut.short.value), int(self.dut.excess.value)
        assert flags == (short, excess), f"SEED={SEED} {mode}: short and excess {flags}, not {(short, excess)}"
        for c in range(self.cdus):
            assert int(getattr(self.dut, f"o__{c}__valid").value) == 0, f"a row too many for CDU {c}"
        return run

    async def good(self, mode, count, random, kind="any", idle="never", stall="never"):
        payload, sizes = payloads.blocks(random, mode, count, kind)
        return await self.split(mode, stream.interleave(payload, sizes, self.cdus)[0], count, random, idle, stall)


@cocotb.test
async def reverses_golden_for_every_number_of_blocks(dut):
    """Groups that are not full, CDUs without a block, and every fill of the last packet."""
    random = rng()
    driver = Driver(dut)
    await driver.bench.start()
    for count in range(1, 8 * driver.cdus + 3):
        for mode in driver.modes:
            await driver.good(mode, count, random, str(random.choice(payloads.KINDS)))


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def reverses_golden_whatever_the_ports_do(dut, idle, stall):
    random = rng()
    driver = Driver(dut)
    await driver.bench.start()
    for mode in driver.modes:
        await driver.good(mode, int(random.integers(1, 60)), random, str(random.choice(payloads.KINDS)), idle, stall)


@cocotb.test
async def waits_for_a_cdu_that_is_late(dut):
    random = rng()
    driver = Driver(dut)
    await driver.bench.start()
    for late in range(driver.cdus):
        mode = driver.modes[int(random.integers(len(driver.modes)))]
        await driver.good(mode, 12 * driver.cdus, random, stall={f"o__{late}": "mostly"})


@cocotb.test
async def rate_is_eight_cycles_for_a_block_of_each(dut):
    """However long they are: a CDU that has begun waits at most for those before it, once, whose first block took
    fewer pieces than a later one; and in long runs of blocks that nothing could be taken from."""
    random = rng()
    driver = Driver(dut)
    await driver.bench.start()
    for mode in driver.modes:
        for kind in ("full", "zero", "any") if payloads.block_format(mode).kind != "fixed" else ("any",):
            count = 40
            run = await driver.good(mode, count * driver.cdus, random, kind)
            spans = [cycles[-1] - cycles[0] + 1 for port, cycles in run.cycles.items() if port != "i"]
            stalls = 1  # the last packet shows a cycle later
            if kind == "any":
                stalls += (driver.cdus - 1) * (Sizes(driver.cdus, payloads.modes(driver.modes)).pieces - 1)
            assert max(spans) <= 8 * count + stalls, f"{mode} {kind}: {spans}"
        for count in (1, 4 * driver.cdus):
            run = await driver.good(mode, count, random)
            alone = len(run.cycles["i"]) == 1
            assert run.cycles["o__0"][0] == 1 + alone, mode  # the docstring's latency: cycle 0 offers the first packet


@cocotb.test
@cocotb.parametrize(stall=["never", "half", "bursts", "shy"])
async def flags_a_stream_that_is_short_or_long_and_goes_on(dut, stall):
    random = rng()
    driver = Driver(dut)
    await driver.bench.start()
    for mode in driver.modes:
        count = int(random.integers(1, 10 * driver.cdus))
        payload, sizes = payloads.blocks(random, mode, count)
        content, lengths = stream.interleave(payload, sizes, driver.cdus)
        # Cut in and between blocks, at packets' ends, down to nothing.
        for cut in {0, 1, 7, 8, int(lengths[0]), len(content) - 1, int(lengths[:-1].sum()),
                    len(content) // 128 * 128, *random.integers(0, len(content), 5).tolist()}:
            await driver.split(mode, content[:cut], count, random, "never", stall)
        for more in (1, 7, 8, 128, 128 - len(content) % 128, 700):
            longer = np.concatenate([content, random.integers(0, 256, more, np.uint8)])
            await driver.split(mode, longer, count, random, "never", stall)
        await driver.split(mode, content, count, random, stall=stall)


@cocotb.test
@cocotb.parametrize(idle=["never", "half"], stall=["never", "shy"])
async def minds_no_packet_without_bytes_at_the_end(dut, idle, stall):
    """Where payload and packets end together. What is too much, or too little, still is, kept from a packet or not."""
    random = rng()
    driver = Driver(dut)
    await driver.bench.start()
    for mode in driver.modes:
        payload, sizes = payloads.even(random, mode)
        content, _ = stream.interleave(payload, sizes, driver.cdus)
        count = len(sizes)
        await driver.split(mode, content, count, random, idle, stall, null=True)
        cut = len(content) // 256 * 128
        await driver.split(mode, content[:cut], count, random, idle, stall, null=True)
        await driver.split(mode, np.append(content, content[:128]), count, random, idle, stall, null=True)
        for fewer in range(1, min(count, 4)):  # the blocks behind are too much
            part, _ = stream.interleave(*payloads.blocks(random, mode, count - fewer), driver.cdus)
            more = random.integers(0, 256, -len(part) % 128, np.uint8)
            await driver.split(mode, np.append(part, more), count - fewer, random, idle, stall, null=True)


@cocotb.test
async def deals_out_any_garbage(dut):
    """Masks that do not add up: each CDU gets its end, and the flags are right."""
    random = rng()
    driver = Driver(dut)
    await driver.bench.start()
    for mode in driver.modes:
        for _ in range(12):
            content = random.integers(0, 256, int(random.integers(1, 3000)), np.uint8)
            content &= random.integers(0, 256, len(content), np.uint8)
            await driver.split(mode, content, int(random.integers(1, 90)), random, "seldom", "seldom")
        await driver.good(mode, 20, random)


@cocotb.test
async def recovers_from_a_reset_at_any_moment(dut):
    random = rng()
    driver = Driver(dut)
    await driver.bench.start()
    for mode in driver.modes:
        payload, sizes = payloads.blocks(random, mode, 10 * driver.cdus)
        beats = payloads.packets(stream.interleave(payload, sizes, driver.cdus)[0])
        for moment in random.integers(1, 80, 4):
            await driver.begin(mode, len(sizes))
            await driver.bench.run({"i": beats}, {f"o__{c}": None for c in range(driver.cdus)}, random, "seldom",
                                   "half", until=after(int(moment)))
            await reset(driver.bench)
            await driver.good(mode, int(random.integers(1, 20)), random)
