"""Bench of DIVISION's decoder, behind the unpacker that it has in a CDU: its rows are golden's for every shape, share
and payload, at 8.00 cycles a block."""

import cocotb
import numpy as np
import pytest
from amaranth.hdl import Module, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.golden.division import codec
from actcodec.golden.division import view as views
from actcodec.rtl.common.packer import chunk
from actcodec.rtl.common.unpacker import Unpacker
from actcodec.rtl.common.vectors import vectors
from actcodec.rtl.division.config import Config
from actcodec.rtl.division.decode import Decode
from tb.division.tensors import SIZES, Share, shapes, values
from tb.harness import PATTERNS, STALLS, Bench, after, beats, chunks, parameters, rng, simulate

WORD = 16  # bytes at a time
READY = 4  # cycles from start to the first row, of which the bench uses two
LATENCY = (3, 11, 27)  # from the first word in to the first row, by layout, without the unpacker's cycle


class Path(wiring.Component):
    """The decoder and an unpacker."""

    def __init__(self, bits):
        self.bits = bits
        super().__init__({
            "config": In(Config), "start": In(1), "packed": In(stream.Signature(chunk(WORD))),
            "o": Out(stream.Signature(vectors(signed(8)))), "refused": Out(1), "short": Out(1),
            "next": In(1), "excess": Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.decode = decode = Decode(self.bits)
        m.submodules.unpacker = unpacker = Unpacker(1, WORD, 1 + max(self.bits))
        wiring.connect(m, wiring.flipped(self.packed), unpacker.i)
        wiring.connect(m, unpacker.o, decode.bytes)
        wiring.connect(m, decode.o, wiring.flipped(self.o))
        m.d.comb += [unpacker.take.eq(decode.take), unpacker.next.eq(self.next), self.excess.eq(unpacker.excess),
                     decode.config.eq(self.config), decode.start.eq(self.start), self.refused.eq(decode.refused),
                     self.short.eq(decode.short)]
        return m


@pytest.mark.parametrize("bits", [SIZES, (3,)])
def test_decode(bits):
    simulate(Path(bits), __file__, bits=bits)


@pytest.mark.parametrize("bits", [(), (0,), (5,), (2, 8), 2, ("2",), (True,), None])
def test_other_bits_are_refused(bits):
    with pytest.raises(ValueError, match="bits must be one or more of 1, 2, 3 and 4"):
        Decode(bits)


class Decoder(Bench):
    """Decodes payloads and compares."""

    def __init__(self, dut):
        super().__init__(dut)
        self.bits = tuple(parameters()["bits"])
        self.saturated = False

    def share(self, random, shape):
        units = int(random.choice([1, 1, 2, 3, 4, 8]))
        return Share(views.view(shape), int(random.choice(self.bits)), units, int(random.integers(units)))

    def payload(self, random, share):
        """Any bytes, or those of an encoder."""
        if random.random() < 0.5:
            return b"".join(share.encoded(*values(random, share.view))[0])
        begins, _ = share.places()
        return random.integers(0, 256, begins.sum() + len(begins) * share.bits, np.uint8).tobytes()

    def expected(self, share, payload):
        """Rows in the order of sectors, and the bytes that they take."""
        rows, size = share.decoded(payload)
        self.saturated |= bool((rows == 127).any())
        return beats(rows[share.order], 8), size

    async def tensor(self, random, share, payload, **patterns):
        expected, size = self.expected(share, payload)
        self.dut.config.value = share.config()
        await self.pulse("start")
        run = await self.run({"packed": chunks(payload, WORD)}, {"o": len(expected)}, random, **patterns)
        what = f"{share}, {len(payload)} bytes, {patterns}"
        self.equal(run["o"], expected, what)
        flags = self.dut.refused.value, self.dut.short.value, self.dut.excess.value
        assert flags == (0, len(payload) < size, 0), what
        assert self.dut.o__valid.value == 0, what
        await self.pulse("next")
        return run

    async def shapes(self, random, found, **patterns):
        for shape in found:
            share = self.share(random, shape)
            if len(share.blocks):
                await self.tensor(random, share, self.payload(random, share), **patterns)


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def gives_the_rows_of_golden_whatever_the_ports_do(dut, idle, stall):
    random = rng()
    bench = await Decoder.started(dut)
    await bench.shapes(random, shapes(random, 4, 1000), idle=idle, stall=stall)


@cocotb.test
async def gives_the_rows_of_golden_for_every_kind_of_tensor(dut):
    random = rng()
    bench = await Decoder.started(dut)
    await bench.shapes(random, shapes(random, 120, 2000))
    assert bench.saturated


@cocotb.test
async def undoes_golden(dut):
    """Whole tensors: what is in the planes is what golden decodes."""
    random = rng()
    bench = await Decoder.started(dut)
    for shape in shapes(random, 60):
        view = views.view(shape)
        share = Share(view, int(random.choice(bench.bits)))
        payload = bench.payload(random, share)
        one = np.ones(view.planes, np.float32)  # r is 1, too
        run = await bench.tensor(random, share, payload)
        rows = np.array([np.frombuffer((row & (1 << 64) - 1).to_bytes(8, "little"), np.int8) for row in run["o"]])
        blocks = np.empty_like(rows)
        blocks[share.order] = rows
        got = views.join(blocks.reshape(-1, 8, 8), view)
        assert np.array_equal(got.reshape(shape), codec.decode(payload, one, shape, share.bits)), shape


@cocotb.test
async def gives_every_sum_of_base_and_code(dut):
    random = rng()
    bench = await Decoder.started(dut)
    for bits in bench.bits:
        share = Share(views.view((1, 256, 8, 8)), bits)
        codes = random.integers(0, 256, (256, 8 * bits), np.uint8)
        codes[:, :bits] = 255
        payload = np.concatenate([np.arange(256, dtype=np.uint8)[:, None], codes], axis=1).tobytes()
        await bench.tensor(random, share, payload)
    assert bench.saturated


@cocotb.test
async def takes_eight_cycles_a_block(dut):
    random = rng()
    bench = await Decoder.started(dut)
    tiled = [views.View(True, 8 * high, 8 * wide - cut, high, 8) for high, wide, cut in (
        (9, 1, 0), (1, 1, 0), (6, 2, 5), (7, 4, 1), (8, 3, 0), (1, 28, 0), (1, 2, 0))]
    flat = [views.View(False, rows, width, rows, 1) for rows, width in (
        (1, 5), (40, 9), (33, 16), (41, 17), (30, 24), (21, 49), (19, 63), (20, 65), (7, 513), (1, 2000))]
    for view in tiled + flat:
        share = Share(view, int(random.choice(bench.bits)))
        run = await bench.tensor(random, share, bench.payload(random, share))
        layout, count = min(view.sectors, 3) - 1 if view.tiled else 0, 8 * len(share.blocks)
        first = READY - 2 + LATENCY[layout]
        if layout < 2 or view.blocks >= 4:
            assert run.cycles["o"] == list(range(first, first + count)), share
        assert run.cycles["packed"][0] == 0


@cocotb.test
async def ends_a_stream_that_is_cut_off(dut):
    """Cut at every byte: all rows come, what is missing is zero, and there is an error."""
    random = rng()
    bench = await Decoder.started(dut)
    for shape in ((1, 3, 8, 9), (3, 50), (5, 3, 3, 3)):
        share = Share(views.view(shape), bench.bits[0])
        payload = bench.payload(random, share)
        for length in range(len(payload)):
            await bench.tensor(random, share, payload[:length])


@cocotb.test
async def leaves_what_does_not_belong_to_its_blocks(dut):
    random = rng()
    bench = await Decoder.started(dut)
    for shape in shapes(random, 40, 600):
        share = bench.share(random, shape)
        if not len(share.blocks):
            continue
        payload = bench.payload(random, share)
        extra = int(random.integers(1, 100))
        expected, size = bench.expected(share, payload)
        assert size == len(payload)
        dut.config.value = share.config()
        await bench.pulse("start")
        sent = chunks(payload + bytes(extra), WORD)
        enough = -(-(size + 1 + max(bench.bits)) // WORD)
        run = await bench.run({"packed": sent[:enough]}, {"o": len(expected)}, random, stall="half")
        bench.equal(run["o"], expected, f"{share} and {extra} bytes")
        assert (dut.short.value, dut.excess.value) == (0, 1)
        await bench.pulse("next")
        await bench.run({"packed": sent[enough:]}, {}, random)
    await bench.shapes(random, shapes(random, 4))


@cocotb.test
async def refuses_what_cannot_be(dut):
    random = rng()
    bench = await Decoder.started(dut)
    share = Share(views.view((2, 3, 16, 24)), bench.bits[-1])
    absent = next(q for q in (1, 2, 3, 4) if q not in bench.bits)
    for changes in ({"blocks": 0}, {"sectors": 0}, {"tail": 0}, {"tail": 9}, {"tail": 15}, {"bits": absent - 1}):
        dut.config.value = share.config(**changes)
        await bench.pulse("start")
        run = await bench.run({}, {"o": None}, random, until=after(30))
        assert (dut.refused.value, run["o"]) == (1, []), changes
        await bench.tensor(random, share, bench.payload(random, share))


@cocotb.test
async def forgets_everything_at_reset(dut):
    random = rng()
    bench = await Decoder.started(dut)
    for fill in range(0, 40, 3):
        for shape in ((1, 2, 16, 8), (1, 2, 16, 33), (30, 17)):
            share = Share(views.view(shape), bench.bits[0])
            dut.config.value = share.config()
            await bench.pulse("start")
            await bench.run({"packed": chunks(bench.payload(random, share), WORD)}, {"o": None}, random,
                            until=after(fill))
            await bench.reset()
            await bench.shapes(random, shapes(random, 2, 600))
