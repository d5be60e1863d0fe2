"""Bench of the whole codec: golden's bytes and values, both ways, for all configurations, and for any stream."""

import math
from pathlib import Path

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles, FallingEdge

from actcodec.golden.comet import comet, huffman, lorenzo, prequantise
from actcodec.golden.comet.book import Book, build, histogram
from actcodec.rtl.comet.comet import Comet
from tb.comet import walks
from tb.comet.test_book import some
from tb.comet.test_prequantise import bfloat16
from tb.harness import PATTERNS, STALLS, Bench, after, chunks, pack, rng, simulate

DATA = Path(__file__).resolve().parents[2] / "actcodec" / "data" / "resnet20.npz"
START = 14  # cycles in which a configuration is refused, if it is


def test_comet():
    simulate(Comet(), __file__)


def configuration(decompress, s, config, counts):
    flags = pack([config.tiled, config.horizontal, config.vertical, config.signed], 1)
    return decompress | bfloat16(s) << 1 | flags << 17 | pack(counts[:7], 8) << 21


class Codec(Bench):
    async def begin(self):
        await self.start()
        return self

    async def idle(self):
        for _ in range(200):
            if self.dut.busy.value == 0:
                return
            await FallingEdge(self.clk)
        raise AssertionError("it does not end")

    @property
    def errors(self):
        return int(self.dut.error.value)  # bits: config, short, excess

    async def compress(self, x, encoded, random, shape=None, **patterns):
        """Compresses a tensor, or the rows of a view, and compares."""
        shape = shape or x.shape
        walk = walks.walk(shape, encoded.config.tiled)
        payload, = encoded.streams
        beats = chunks(payload, 8)
        run = await self.run(
            {"config": [configuration(0, encoded.s, encoded.config, encoded.book.counts)], "edges": walk.payloads(),
             "sectors_i": walks.lanes(walk.lanes(x.view(np.uint32)), 32)}, {"bytes_o": len(beats)}, random, **patterns)
        self.equal(run["bytes_o"], beats, f"stream of {shape}, {encoded.config}, {encoded.book}")
        await self.idle()
        assert self.errors == 0
        return run

    async def decompress(self, payload, shape, encoded, random, **patterns):
        """Decompresses a stream, which may be another than golden's, and compares."""
        walk = walks.walk(shape, encoded.config.tiled)
        expected, error = comet.decompress(comet.Encoded(encoded.s, encoded.config, encoded.book, (payload,)), shape)
        lanes = walks.lanes(walk.lanes(expected.view(np.uint32)), 32)
        last = len(walk) - 1
        sectors = [lane & (1 << 256) - 1 | int(n) << 256 | (k == last) << 260
                   for k, (lane, n) in enumerate(zip(lanes, walk.count, strict=True))]
        run = await self.run(
            {"config": [configuration(1, encoded.s, encoded.config, encoded.book.counts)],
             "edges": walk.payloads(), "bytes_i": chunks(payload, 8)}, {"sectors_o": len(walk)}, random, **patterns)
        self.equal(run["sectors_o"], sectors, f"values of {shape}, {encoded.config}, {encoded.book}")
        await self.idle()
        assert self.errors == 2 * (huffman.Error.SHORT in error) + 4 * (huffman.Error.EXCESS in error)
        return run

    async def both(self, x, encoded, random, shape=None, **patterns):
        shape = shape or x.shape
        return (await self.compress(x, encoded, random, shape, **patterns),
                await self.decompress(encoded.streams[0], shape, encoded, random, **patterns))

    async def counts(self):
        await ClockCycles(self.clk, 4)
        result = []
        for k in range(32):
            self.dut.bin.value = k
            await ClockCycles(self.clk, 3)
            await FallingEdge(self.clk)
            result.append(int(self.dut.count.value))
        return result


def tensor(random, shape, outliers):
    """Smooth float32 values with some that are no numbers or far away."""
    size = math.prod(shape)
    x = np.cumsum(random.normal(size=size)).astype(np.float32) * np.float32(0.3)
    x = np.where(random.random(size) < 0.3, 0, x).astype(np.float32)
    strange = np.array([np.nan, np.inf, -np.inf, -0.0, 1e30, -1e-42, 3e4], np.float32)
    return np.where(random.random(size) < outliers, random.choice(strange, size), x).reshape(shape).astype(np.float32)


def encoded(random, x, config, book=None, view=None):
    eb = float(random.choice([0.02, 0.3, 2]))
    return comet.compress(x, eb, config, book or (Book(some(random)) if random.random() < 0.5 else None), view=view)


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def goes_both_ways_whatever_the_ports_do(dut, idle, stall):
    random = rng()
    bench = await Codec(dut).begin()
    for name, outliers in (("plane", 0.02), ("line", 0.3)):
        x = tensor(random, (1, 1, 9, 21), outliers)
        await bench.both(x, encoded(random, x, walks.CONFIGS[name]), random, idle=idle, stall=stall)


@cocotb.test
@cocotb.parametrize(name=list(walks.CONFIGS))
async def goes_both_ways_for_all_shapes(dut, name):
    random = rng()
    bench = await Codec(dut).begin()
    config = walks.CONFIGS[name]
    for shape in walks.shapes(random, config.tiled):
        x = tensor(random, shape, random.choice([0, 0.01, 0.5]))
        await bench.both(x, encoded(random, x, config), random)


@cocotb.test
@cocotb.parametrize(name=list(walks.CONFIGS))
async def goes_both_ways_for_any_rows(dut, name):
    random = rng()
    bench = await Codec(dut).begin()
    config = walks.CONFIGS[name]
    for view in walks.views(random, config.tiled):
        x = tensor(random, view[:2], random.choice([0, 0.01, 0.5]))
        await bench.both(x, encoded(random, x, config, view=view), random, view, stall=str(random.choice(STALLS)))


@cocotb.test
async def gives_the_streams_of_the_contract(dut):
    """The examples that were worked out by hand."""
    random = rng()
    bench = await Codec(dut).begin()
    book = Book([1, 1, 2, 0, 0, 0, 0, 0])
    for config, values, text in (
            ("none+", [0, 1, 2, 0, 1, 0, 7, 0.4], "0080c0008000e00000000000000080000000000000000000"),
            ("line", [-1, 1, 2, 0, 1, 0, np.inf, 300], "80e0c0e0c080fefc002000000000004b0000000000000000"
             "0000000010000fe000")):
        x = np.array([values], np.float32)
        one = comet.compress(x, 0.5, walks.CONFIGS[config], book)
        assert one.streams[0].hex() == text
        await bench.both(x, one, random)


@cocotb.test
async def survives_outliers_everywhere(dut):
    """In all lanes of all rounds, where sectors have all sizes and begin in all lanes."""
    random = rng()
    bench = await Codec(dut).begin()
    for shape, name in (((1, 1, 8, 8), "none"), ((1, 1, 16, 9), "plane"), ((1, 1, 8, 13), "row"),
                        ((1, 1, 9, 25), "plane"), ((1, 1, 8, 36), "plane")):
        x = random.integers(0, 1 << 32, shape, dtype=np.uint32) | 0x7F800000
        for part in (1.0, 0.5):
            y = np.where(random.random(shape) < part, x, 0).astype(np.uint32).view(np.float32)
            one = encoded(random, y, walks.CONFIGS[name])
            for stall in ("never", "half"):
                await bench.both(y, one, random, stall=stall)


@cocotb.test
async def ends_streams_that_are_cut_lengthened_or_garbage(dut):
    random = rng()
    bench = await Codec(dut).begin()
    for name in ("none+", "plane"):
        x = tensor(random, (1, 1, 9, 19), 0.05)
        one = encoded(random, x, walks.CONFIGS[name])
        payload, = one.streams
        streams = [payload[:n] for n in (0, 1, 7, 8, 9, 16, len(payload) // 2, len(payload) - 1)]
        streams += [payload + bytes(n) for n in (1, 7, 8, 30, 100)]
        streams += [random.bytes(int(n)) for n in random.integers(0, 2 * len(payload), 6)]
        streams += [b"\xff" * len(payload), b"\xff" * 4000]
        for stream in streams:
            await bench.decompress(stream, x.shape, one, random)
        await bench.both(x, one, random)


@cocotb.test
async def starts_again_after_a_reset_at_any_moment(dut):
    random = rng()
    bench = await Codec(dut).begin()
    for attempt in range(40):
        x = tensor(random, (1, 1, 9, 37), 0.1)
        one = encoded(random, x, walks.CONFIGS["plane"])
        walk, back = walks.walk(x.shape, True), attempt % 2
        sources = {"bytes_i": chunks(one.streams[0], 8)} if back else {
            "sectors_i": walks.lanes(walk.lanes(x.view(np.uint32)), 32)}
        await bench.run({"config": [configuration(back, one.s, one.config, one.book.counts)],
                         "edges": walk.payloads(), **sources}, {"sectors_o" if back else "bytes_o": None}, random,
                        stall=("never", "half")[attempt % 3 == 0], until=after(int(random.integers(20, 120))))
        await bench.reset()
        await bench.both(x, one, random)


@cocotb.test
async def is_busy_until_the_last_beat_has_left(dut):
    random = rng()
    bench = await Codec(dut).begin()
    x = tensor(random, (1, 1, 9, 21), 0.02)
    one = encoded(random, x, walks.CONFIGS["plane"])
    walk, beats = walks.walk(x.shape, one.config.tiled), chunks(one.streams[0], 8)
    first = await bench.run(
        {"config": [configuration(0, one.s, one.config, one.book.counts)], "edges": walk.payloads(),
         "sectors_i": walks.lanes(walk.lanes(x.view(np.uint32)), 32)}, {"bytes_o": len(beats) - 1}, random)
    for _ in range(100):
        assert dut.busy.value == 1
        await FallingEdge(dut.clk)
    rest = await bench.run({}, {"bytes_o": 1}, random)
    bench.equal(first["bytes_o"] + rest["bytes_o"], beats, "stream")
    await bench.idle()


@cocotb.test
async def refuses_configurations(dut):
    random = rng()
    bench = await Codec(dut).begin()
    good = [1, 1, 1, 1, 1, 1, 1]
    plane, row = walks.CONFIGS["plane"], walks.CONFIGS["row"]
    flat = configuration(0, 1.0, plane, good) & ~(1 << 17)
    wrong = [flat, configuration(0, 1.0, row, [2, 1, 0, 0, 0, 0, 0]), configuration(0, 1.0, row, [3] + [0] * 6),
             configuration(0, 2.0**-126, row, good), configuration(0, 129 * 2.0**105, row, good),
             configuration(0, 2.0**113, row, good), configuration(0, np.inf, row, good),
             configuration(0, -1.0, row, good), configuration(0, -(2.0**112), row, good),
             configuration(0, 0.0, row, good)]
    for word in wrong:
        await bench.run({"config": [word]}, {}, random)
        await ClockCycles(dut.clk, START)
        await FallingEdge(dut.clk)
        assert (dut.busy.value, bench.errors) == (0, 1), hex(word)
    x = tensor(random, (1, 1, 8, 9), 0)
    for s in (2.0**-125, 2.0**112):
        await bench.both(x, comet.compress(x, s / 2, row, Book([*good, 2])), random)


@cocotb.test
async def counts_symbols(dut):
    random = rng()
    bench = await Codec(dut).begin()
    for shape, name in (((1, 3, 9, 40), "plane"), ((3, 333), "none+")):
        x = tensor(random, shape, 0.01)
        one = encoded(random, x, walks.CONFIGS[name])
        await bench.both(x, one, random)
        q, _ = prequantise.quantize(x, one.s)
        expected = histogram(lorenzo.residuals(q, shape, one.config), sampled=True)
        bench.equal(await bench.counts(), expected.tolist(), "histogram")


@cocotb.test
async def takes_a_cycle_a_sector(dut):
    """8.00 cycles for 64 values without escapes, both ways."""
    random = rng()
    bench = await Codec(dut).begin()
    for name, sectors in (("plane", 160), ("none", 160)):
        x = tensor(random, (1, 2, 16, 40), 0)
        one = comet.compress(x, 0.5, walks.CONFIGS[name], None)
        u = lorenzo.residuals(prequantise.quantize(x, one.s)[0], x.shape, one.config)
        book = build(histogram(u), penalty=10**6)
        if u.max() >= book.U:
            x = np.clip(x, -10, 10)
            u = lorenzo.residuals(prequantise.quantize(x, one.s)[0], x.shape, one.config)
            book = build(histogram(u), penalty=10**6)
        assert u.max() < book.U
        one = comet.compress(x, 0.5, one.config, book)
        first, second = await bench.both(x, one, random)
        inputs, outputs = first.cycles["sectors_i"], second.cycles["sectors_o"]
        assert inputs == list(range(inputs[0], inputs[0] + sectors))
        assert outputs == list(range(outputs[0], outputs[0] + sectors))
        assert (inputs[0], outputs[0]) == (12, 21)
        assert first.cycles["bytes_o"][0] - inputs[0] >= 21


@cocotb.test
async def compresses_and_restores_real_activations(dut):
    """At the bounds that give a relative L2 error of about 0.0635: at least 0.96 of a sector a cycle."""
    random = rng()
    bench = await Codec(dut).begin()
    tensors = np.load(DATA)
    for name in tensors:
        x = tensors[name][:1]
        eb = 0.0635 * math.sqrt(float(np.mean(np.square(x, dtype=np.float64))) * 3)
        one = comet.compress(x, eb)
        sectors = len(walks.walk(x.shape, one.config.tiled))
        first, second = await bench.both(x, one, random)
        for cycles in (first.cycles["sectors_i"], second.cycles["sectors_o"]):
            rate = sectors / (cycles[-1] - cycles[0] + 1)
            dut._log.info(f"{name}: {sectors} sectors, {rate:.4f} a cycle")
            assert rate >= 0.96
