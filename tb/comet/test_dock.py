"""Bench of the dock: sectors pass both ways, and the bits of outliers leave and come beside them."""

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles

from actcodec.golden.comet import prequantise
from actcodec.rtl.comet.dock import Dock
from tb.comet import walks
from tb.comet.test_prequantise import bfloat16, steps, values
from tb.harness import PATTERNS, SEED, STALLS, after, pack, rng, simulate


def test_dock():
    simulate(Dock(), __file__)


class Docks(walks.Queues):
    shown = "bytes_i"

    def __init__(self, dut):
        super().__init__(dut)
        self.left = []  # (mask, bytes) that have left

    def popped(self):
        """And looks at what leaves, and whether the unit tells when values do, and how many."""
        dut = self.dut
        forth, back = (int(getattr(dut, f"{port}__valid").value) & int(getattr(dut, f"{port}__ready").value)
                       for port in ("forth", "sectors_o"))
        assert dut.moves.value == forth | back, f"SEED={SEED}"
        if forth or back:
            count = int(dut.forth__payload.value) >> 264 if forth else int(dut.sectors_o__payload.value) >> 256
            assert dut.count.value == count & 15, f"SEED={SEED}"
        if int(dut.bytes_o__valid.value) & int(dut.bytes_o__ready.value):
            self.left.append((int(dut.mask.value), int(dut.bytes_o__payload.value)))
        return int(dut.mask.value) if dut.take.value == 1 else 0

    async def towards(self, decompress, s=1.0):
        self.dut.decompress.value, self.dut.step.value = decompress, bfloat16(s)
        await ClockCycles(self.clk, 2)

    async def forth(self, words, s, random, **patterns):
        """Sends words [n, 8]."""
        await self.towards(0, s)
        self.left.clear()
        edges = [int(edge) for edge in random.integers(0, 1 << 9, len(words))]
        _, outliers = prequantise.quantize(words.view(np.float32), s)
        octets = [(flags, row >> 8 * byte & 0xFF) for row, flags in zip(words, outliers, strict=True) if flags.any()
                  for byte in range(4)]
        run = await self.run({"sectors_i": walks.place(walks.lanes(words, 32), edges, 256)},
                             {"forth": len(words), "bytes_o": len(octets)}, random, **patterns)
        got, flags = walks.unpack(run["forth"], 32)
        assert np.array_equal(flags, outliers), f"outliers at step {s}, SEED={SEED}"
        self.equal(np.where(flags, 0, got).tolist(), np.where(flags, 0, words).tolist(), f"words at step {s}")
        self.equal([payload >> 264 for payload in run["forth"]], edges, "edges")
        self.equal([(mask, payload & pack([255 * (mask >> k & 1) for k in range(8)], 8))
                    for mask, payload in self.left],
                   [(pack(map(int, flags), 1), pack(map(int, row * flags), 8)) for flags, row in octets], "bytes")
        return run

    async def back(self, words, outliers, random, **patterns):
        """Words [n, 8], of which the outliers' come by the queues."""
        await self.towards(1)
        counts, last = random.integers(0, 9, len(words)), np.arange(len(words)) == len(words) - 1
        for lane, queue in enumerate(self.queues):
            queue[:] = words[outliers[:, lane], lane].view(np.uint8).tolist()
        ends = [int(n) | int(end) << 4 for n, end in zip(counts, last, strict=True)]
        sent = np.where(outliers, random.integers(0, 1 << 32, words.shape), words)
        run = await self.run({"back": walks.place(walks.lanes(sent, 32, outliers), ends, 264)},
                             {"sectors_o": len(words)}, random, **patterns)
        self.equal(run["sectors_o"], walks.place(walks.lanes(words, 32), ends, 256), "sectors")
        assert not any(self.queues)
        return run


def some(random, n, share):
    return random.integers(0, 1 << 32, (n, 8), dtype=np.uint32), random.random((n, 8)) < share


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def passes_both_ways_whatever_the_ports_do(dut, idle, stall):
    random = rng()
    bench = await Docks.started(dut)
    for share in (0, 0.05, 1):
        await bench.back(*some(random, 30, share), random, idle=idle, stall=stall)
        s = steps(random)[-1]
        words = values(random, s, 8 * 30) if share else np.zeros(8 * 30, np.uint32)
        await bench.forth(words.reshape(-1, 8), s, random, idle=idle, stall=stall)


@cocotb.test
async def finds_the_outliers_of_all_steps(dut):
    """At all significands: the least outlier and its neighbours; and at the ends of the exponents."""
    random = rng()
    bench = await Docks.started(dut)
    for s in [*steps(random), *(float(significand) * 2.0 ** int(random.integers(-120, 100))
                                for significand in range(128, 256))]:
        with np.errstate(over="ignore"):
            least = np.float32(2047.5 * s).view(np.uint32)
        words = np.array([least - 1, least, least + 1, least - 0x800000, 0, 0x7F800000, 0x7FC00000, 1], np.uint32)
        await bench.forth(np.stack([words, words | 0x80000000, *random.permuted([words] * 2, axis=1)]), s, random)


@cocotb.test
async def takes_a_cycle_a_sector_and_four_or_five_with_outliers(dut):
    random = rng()
    bench = await Docks.started(dut)
    words, outliers = np.zeros((64, 8), np.uint32), np.zeros((64, 8), bool)
    for run, port, o in ((await bench.forth(words, 0.5, random), "sectors_i", "forth"),
                         (await bench.back(words, outliers, random), "back", "sectors_o")):
        assert run.cycles[port] == list(range(64))
        assert run.cycles[o] == list(range(1, 65))
    words[::2, 3], outliers[::2, 5] = 0x7FC00000, True
    for cycles, first, steps_ in (((await bench.forth(words, 0.5, random)).cycles["forth"], 4, {1, 4}),
                                  ((await bench.back(words, outliers, random)).cycles["sectors_o"], 5, {1, 5})):
        assert cycles[0] == first and set(np.diff(cycles)) == steps_


@cocotb.test
async def starts_anew_after_reset(dut):
    random = rng()
    bench = await Docks.started(dut)
    for cycles in range(1, 24):
        words, outliers = some(random, 30, 0.1)
        for queue in bench.queues:
            queue[:] = random.integers(0, 256, 200).tolist()
        if cycles % 2:
            await bench.towards(0)
            source, sink = {"sectors_i": walks.lanes(words, 32)}, {"forth": None, "bytes_o": None}
        else:
            await bench.towards(1)
            source, sink = {"back": walks.lanes(words, 32, outliers)}, {"sectors_o": None}
        await bench.run(source, sink, random, until=after(cycles))
        await bench.reset()
        await bench.back(*some(random, 6, 0.1), random)
        await bench.forth(values(random, 0.5, 48).reshape(-1, 8), 0.5, random)
