"""MX's modes in a CDU, alone and behind each coder, beside JPEG-ACT's modes with the same coders: whole tensors both
ways, and streams that contradict themselves, against golden."""

import cocotb
import numpy as np
import pytest
from cocotb.triggers import ClockCycles, FallingEdge

from actcodec.codecs import lane_modes
from actcodec.golden.jpegact.bits import Fault
from actcodec.golden.mx.scale import RULES
from actcodec.golden.offload import blocks
from actcodec.rtl.jpegact.cdu import Cdu
from tb.harness import PATTERNS, SEED, STALLS, Bench, pack, parameters, regress, rng, simulate, target
from tb.mx import tensors
from tb.offload.wire import payloads

MIXED = ("mx-zvc", "sfpr-zvc", "mx-rice", "mx", "mx-e2m1-zvc", "mx-nibble", "sfpr-rice", "mx-e3m2", "brc")
MALFORMED = 8  # a bit of error
LATENCY = {"none": (9, 2), "zvc": (20, 12), "nibble": (21, 7), "rice": (28, 19)}  # cycles, compress and decompress
CUTS = {"none": (2, 2), "zvc": (5, 4), "nibble": (5, 4), "rice": (5, 4)}  # how many more when made for LUTs


@pytest.mark.parametrize("modes", [
    ("mx-zvc", "sfpr-zvc", "mx", "brc"),
    *regress((MIXED,), (("mx-nibble",),), (("mx-e5m2-zvc",),), (("mx-rice", "mx-e4m3"),),
             (("mx-e2m3-zvc", "zvc", "mx-e3m2-zvc"),))],
    ids="+".join)
def test_path(modes):
    simulate(Cdu(lane_modes(*modes), packed=False), __file__, modes=modes)


@pytest.mark.regress
def test_path_of_luts():
    simulate(Cdu(lane_modes(*MIXED), packed=False), __file__, modes=MIXED, target="lut")


def test_blocks_with_halves_are_not_packed():
    with pytest.raises(ValueError, match="packed must be False for modes with halved blocks, not True"):
        Cdu(lane_modes("mx-zvc"))


class Driver(Bench):
    def __init__(self, dut):
        super().__init__(dut)
        self.all = lane_modes(*parameters()["modes"])
        self.modes = [mode for mode in self.all if mode.name.startswith("mx")]
        names = [mode.name for mode in self.all]
        self.row, self.chunk = payloads.row_bytes(names), payloads.first_bytes(names)

    def config(self, mode, decompress, count, settings):
        bits = max((len(self.all) - 1).bit_length(), 1)
        numbers = sum(settings[one.name] << one.low for one in mode.settings)
        return decompress | (self.all.index(mode) | (count << 2 | numbers << 227) << bits) << 1

    @staticmethod
    def settings(random, mode, x):
        """For these values; any rule."""
        return mode.model.fit(x, rule=str(random.choice(RULES)))[1]

    async def finish(self):
        for _ in range(8):
            if self.dut.busy.value == 0:
                break
            await FallingEdge(self.clk)
        assert self.dut.busy.value == 0, "busy after the last beat"
        await ClockCycles(self.clk, 3)
        await FallingEdge(self.clk)
        return int(self.dut.error.value)

    async def compress(self, mode, x, random, settings, idle="never", stall="never"):
        """float32 [n, 64]: the blocks of golden's payload, in any eight chunks, and its counts."""
        view = blocks.view(x.shape)
        payload, _ = mode.model.encode(x, view, None, settings, 1)
        sectors = [pack(row, 32) for row in x.reshape(-1, 8).view(np.uint32)]
        run = await self.run({"config": [self.config(mode, 0, len(x), settings)], "sectors_i": sectors},
                             {"bytes_o": len(sectors)}, random, idle, stall)
        counts = [beat >> 8 * self.chunk & (1 << self.chunk.bit_length()) - 1 for beat in run["bytes_o"]]
        got = b"".join((beat & (1 << 8 * count) - 1).to_bytes(count, "little")
                       for beat, count in zip(run["bytes_o"], counts, strict=True))
        assert got == payload, f"SEED={SEED} {mode.name} {len(x)} blocks"
        sizes = mode.model.path.coder.sizes(payload, len(x))
        assert [sum(counts[k : k + 8]) for k in range(0, len(counts), 8)] == sizes.tolist()
        assert await self.finish() == 0
        expected = tuple(mode.model.counts(x, view, None, settings))
        assert (int(self.dut.nans.value), int(self.dut.saturated.value)) == expected
        return payload, sizes, run

    def rows(self, mode, payload, sizes, random):
        """What a splitter gives, with anything where the blocks have ended."""
        beats = []
        for block in payloads.cut(np.frombuffer(payload, np.uint8), sizes):
            two = payloads.halves(np.pad(block, (0, 3)), mode.format)
            for mask, row in payloads.split(block, mode.name):
                row = int.from_bytes(row + random.bytes(self.row - len(row)), "little")
                beats.append(row | mask << 8 * self.row | two << 8 * self.row + 9)
        beats[-1] |= 1 << 8 * self.row + 8
        return beats

    async def decompress(self, mode, payload, sizes, random, settings, expected, idle="never", stall="never", error=0):
        rows = self.rows(mode, payload, sizes, random)
        run = await self.run({"config": [self.config(mode, 1, len(sizes), settings)], "rows_i": rows},
                             {"sectors_o": len(rows)}, random, idle, stall)
        words = [pack(row, 32) for row in expected.reshape(-1, 8).view(np.uint32)]
        self.equal(run["sectors_o"], words, f"{mode.name} {len(sizes)} blocks")
        assert await self.finish() == error, f"SEED={SEED} {mode.name}: not error {error}"
        return run


def back(mode, payload, count, settings):
    return mode.model.decode(payload, blocks.view((count, 64)), None, settings, 1)


def values(random, count):
    x = tensors.blocks(random, count)
    return np.maximum(x, 0) if random.integers(2) else x


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def equals_golden_both_ways(dut, idle, stall):
    random = rng()
    driver = await Driver.started(dut)
    for mode in random.permutation(np.array(driver.modes, object)):
        x = values(random, int(random.integers(1, 8)))
        settings = driver.settings(random, mode, x)
        payload, sizes, _ = await driver.compress(mode, x, random, settings, idle, stall)
        expected = back(mode, payload, len(x), settings)
        await driver.decompress(mode, payload, sizes, random, settings, expected, idle, stall)


@cocotb.test
async def rate_and_latency(dut):
    """8.00 cycles a block both ways; those of the units in a row."""
    random = rng()
    driver = await Driver.started(dut)
    for mode in driver.modes:
        x = np.ones((12, 64), np.float32)
        settings = driver.settings(random, mode, x)
        payload, sizes, run = await driver.compress(mode, x, random, settings)
        there = run.cycles["bytes_o"][0] - run.cycles["sectors_i"][0]
        assert np.ptp(run.cycles["sectors_i"]) == np.ptp(run.cycles["bytes_o"]) == 95
        run = await driver.decompress(mode, payload, sizes, random, settings, back(mode, payload, 12, settings))
        assert np.ptp(run.cycles["rows_i"]) == np.ptp(run.cycles["sectors_o"]) == 95
        got = there, run.cycles["sectors_o"][0] - run.cycles["rows_i"][0]
        coder = mode.name.split("-")[-1]
        cuts = CUTS.get(coder, CUTS["none"]) if target() == "lut" else (0, 0)
        assert got == tuple(np.add(LATENCY.get(coder, LATENCY["none"]), cuts)), f"{mode.name}: {got}"


@cocotb.test
async def malformed_blocks_are_flagged_and_give_what_golden_recovers(dut):
    random = rng()
    driver = await Driver.started(dut)
    seen = set()
    for turn in range(80):
        for mode in driver.modes:
            if not mode.format.counted:
                continue
            coder, count = mode.model.path.coder, 4
            x = values(random, count)
            settings = driver.settings(random, mode, x)
            payload, _ = mode.model.encode(x, blocks.view(x.shape), None, settings, 1)
            spoilt = np.frombuffer(payload, np.uint8).copy()
            if turn % 2:
                spoilt[0] = random.integers(0, 4 if turn % 4 == 1 else 68)
            else:
                spoilt[random.integers(len(spoilt))] ^= 1 << random.integers(8)
            spoilt = np.append(spoilt, np.zeros(600, np.uint8) + np.uint8(2))
            result = coder.recover(spoilt.tobytes(), count, settings)
            steps, at = [], 0
            for _ in range(count):
                steps.append(coder._step[spoilt[at]])
                at += steps[-1]
            faults = int(np.bitwise_or.reduce(result.faults)) & ~int(Fault.SHORT)
            seen.add(faults)
            expected = mode.model.path.stages[0].backward(result.blocks.view(np.uint8), settings)
            await driver.decompress(mode, spoilt[:at].tobytes(), np.array(steps), random, settings, expected,
                                    error=MALFORMED if faults else 0)
            await driver.compress(mode, x, random, settings)
    assert len(seen) > 2 or not any(mode.format.counted for mode in driver.modes)
