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
from actcodec.rtl.common.packer import chunk_layout
from actcodec.rtl.common.unpacker import Unpacker
from actcodec.rtl.common.vectors import vectors_layout
from actcodec.rtl.division.config import Config
from actcodec.rtl.division.decode import Decode
from tb.division.tensors import SIZES, Share, shapes
from tb.division.ways import (  # noqa: F401 - tests that both directions have
    READY,
    WORD,
    equals_golden_for_every_kind_of_tensor,
    equals_golden_whatever_the_ports_do,
    forgets_everything_at_reset,
    refuses_what_cannot_be,
    started,
)
from tb.harness import chunks, regress, rng, simulate

LATENCY = (3, 11, 27)  # from the first word in to the first row, by layout, without the unpacker's cycle


class Path(wiring.Component):
    """The decoder and an unpacker."""

    def __init__(self, bits):
        self.bits = bits
        super().__init__({
            "config": In(Config), "start": In(1), "packed": In(stream.Signature(chunk_layout(WORD))),
            "o": Out(stream.Signature(vectors_layout(signed(8)))), "refused": Out(1), "short": Out(1),
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


@pytest.mark.parametrize("bits", [SIZES, *regress(((3,),))])
def test_decode(bits):
    simulate(Path(bits), __file__, bits=bits, way="decode")


@pytest.mark.parametrize("bits", [(), (0,), (5,), (2, 8), 2, ("2",), (True,), None])
def test_other_bits_are_refused(bits):
    with pytest.raises(ValueError, match="bits must be one or more of 1, 2, 3 and 4"):
        Decode(bits)


@cocotb.test
async def undoes_golden(dut):
    """Whole tensors: what is in the planes is what golden decodes."""
    random = rng()
    bench = await started(dut)
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
        assert np.array_equal(got, codec.decode(payload, one, view, share.bits)), shape


@cocotb.test
async def gives_every_sum_of_base_and_code(dut):
    random = rng()
    bench = await started(dut)
    for bits in bench.bits:
        share = Share(views.view((1, 256, 8, 8)), bits)
        codes = random.integers(0, 256, (256, 8 * bits), np.uint8)
        codes[:, :bits] = 255
        payload = np.concatenate([np.arange(256, dtype=np.uint8)[:, None], codes], axis=1).tobytes()
        await bench.tensor(random, share, payload)
    assert "saturated" in bench.seen


@cocotb.test
async def takes_eight_cycles_a_block(dut):
    random = rng()
    bench = await started(dut)
    tiled = [views.View(True, 8 * high, 8 * wide - cut, high, 8) for high, wide, cut in (
        (9, 1, 0), (1, 1, 0), (6, 2, 5), (7, 4, 1), (8, 3, 0), (1, 28, 0), (1, 2, 0))]
    flat = [views.View(False, rows, width, rows, 1) for rows, width in (
        (1, 5), (40, 5), (33, 8), (40, 9), (33, 16), (41, 17), (30, 24), (21, 49), (19, 63), (20, 65), (7, 513),
        (1, 2000))]
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
    bench = await started(dut)
    for shape in ((1, 3, 8, 9), (3, 50), (5, 3, 3, 3)):
        share = Share(views.view(shape), bench.bits[0])
        payload = bench.payload(random, share)
        for length in range(len(payload)):
            await bench.tensor(random, share, payload[:length])


@cocotb.test
async def leaves_what_does_not_belong_to_its_blocks(dut):
    random = rng()
    bench = await started(dut)
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
