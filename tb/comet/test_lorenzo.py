"""Bench of Lorenzo prediction: golden's symbols of random tensors of all shapes, and back."""

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles

from actcodec.golden.comet import lorenzo
from actcodec.rtl.comet.lorenzo import Lorenzo
from tb.comet import walks
from tb.harness import PATTERNS, STALLS, Bench, rng, simulate

CONFIGS = {**walks.CONFIGS, "all, unsigned": lorenzo.Config(True, True, True, False),
           "tiled": lorenzo.Config(True, False, False, True)}


def test_lorenzo():
    simulate(Lorenzo(), __file__)


class Predictor(Bench):
    async def configure(self, config, decompress):
        for name, value in (("horizontal", config.horizontal), ("vertical", config.vertical),
                            ("signed", config.signed), ("decompress", decompress)):
            getattr(self.dut, name).value = int(value)
        await ClockCycles(self.clk, 10)

    async def both(self, q, outliers, config, random, view=None, **patterns):
        """Predicts a tensor, or rows of a view, and restores it; returns both runs."""
        shape = view or q.shape
        walk, u = walks.walk(shape, config.tiled), np.zeros(q.size, np.uint16)
        u[lorenzo.order(shape, config.tiled)] = lorenzo.residuals(q, shape, config)
        edges, flags = walk.payloads(), walk.lanes(outliers)
        # Lanes without a value may have anything.
        none = walk.index < 0
        sent = np.where(none, random.integers(-2048, 2048, none.shape), walk.lanes(q))
        await self.configure(config, 0)
        first = await self.run({"differences_i": walks.place(walks.lanes(sent, 12, flags), edges, 104)},
                               {"differences_o": len(walk)}, random, **patterns)
        got, got_flags = walks.unpack(first["differences_o"], 12)
        self.equal([payload >> 104 for payload in first["differences_o"]], edges, "edges")
        assert np.array_equal(got_flags, flags)
        self.equal(walk.back(got).tolist(), u.tolist(), f"symbols, {config}, {shape}")
        sent = np.where(none, random.integers(0, 4096, none.shape), walk.lanes(u))
        await self.configure(config, 1)
        second = await self.run({"sums_i": walks.place(walks.lanes(sent, 12, flags), edges, 104)},
                                {"sums_o": len(walk)}, random, **patterns)
        got, got_flags = walks.unpack(second["sums_o"], 12)
        self.equal([payload >> 104 for payload in second["sums_o"]], edges, "edges")
        assert np.array_equal(got_flags, flags)
        self.equal(walk.back((got + 2048) % 4096 - 2048).tolist(), q.reshape(-1).tolist(),
                   f"integers, {config}, {shape}")
        return first, second


def tensor(random, shape):
    q = random.integers(-2048, 2048, shape) if random.random() < 0.5 else random.integers(-3, 4, shape)
    return q.astype(np.int16), random.random(shape) < 0.1


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def goes_both_ways_whatever_the_ports_do(dut, idle, stall):
    random = rng()
    bench = Predictor(dut)
    await bench.start()
    for config in (CONFIGS["plane"], CONFIGS["line"]):
        await bench.both(*tensor(random, (1, 2, 5, 27)), config, random, idle=idle, stall=stall)


@cocotb.test
@cocotb.parametrize(name=list(CONFIGS))
async def goes_both_ways_for_all_shapes(dut, name):
    random = rng()
    bench = Predictor(dut)
    await bench.start()
    for shape in walks.shapes(random, CONFIGS[name].tiled):
        await bench.both(*tensor(random, shape), CONFIGS[name], random)


@cocotb.test
@cocotb.parametrize(name=list(CONFIGS))
async def goes_both_ways_for_any_rows(dut, name):
    random = rng()
    bench = Predictor(dut)
    await bench.start()
    for view in walks.views(random, CONFIGS[name].tiled):
        stall = str(random.choice(STALLS))
        await bench.both(*tensor(random, view[:2]), CONFIGS[name], random, view, stall=stall)


@cocotb.test
async def takes_a_cycle_a_sector(dut):
    random = rng()
    bench = Predictor(dut)
    await bench.start()
    for config in CONFIGS.values():
        runs = await bench.both(*tensor(random, (1, 1, 16, 40)), config, random)
        for run, name, latency in zip(runs, ("differences", "sums"), (2, 3), strict=True):
            count = len(run.cycles[f"{name}_i"])
            assert run.cycles[f"{name}_i"] == list(range(count))
            assert run.cycles[f"{name}_o"] == list(range(latency, latency + count))
