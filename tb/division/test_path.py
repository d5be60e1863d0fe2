"""Bench of DIVISION in a CDU: shares of whole tensors, from float32 to bytes and back, in every mode of the lane, also
between tensors of JPEG-ACT's modes, against golden."""

import cocotb
import numpy as np
import pytest
from amaranth.lib import data
from cocotb.triggers import FallingEdge

from actcodec.codecs import lane_modes
from actcodec.codecs.division import LANE
from actcodec.golden.division import table
from actcodec.golden.division import view as views
from actcodec.golden.jpegact import sfpr
from actcodec.golden.offload import blocks
from actcodec.rtl.jpegact.cdu import Cdu
from actcodec.rtl.offload.control.config import config_layout
from tb import reference
from tb.division.tensors import Share, shapes, tensor_of
from tb.harness import PATTERNS, STALLS, Bench, after, chunk, pack, parameters, regress, rng, simulate, target
from tb.offload.wire import payloads

OTHERS = ("sfpr", "jpeg-act")
WIDTH = 16  # bytes of a chunk
LATENCY = (16, 23, 37)  # from the first sector in to the first chunk, by layout
BACK = (8, 16, 32)  # from the first row in to the first sector
CUTS = {"cells": (0, 0), "lut": (8, 9)}  # cycles more each way: skids, stages


@pytest.mark.parametrize("modes, target", [((*OTHERS, *LANE), "cells"), *regress(
    (("division-1-flat",), "cells"), (("division-1-flat",), "lut"))], ids=["beside-others", "alone", "of-luts"])
def test_path(modes, target):
    simulate(Cdu(lane_modes(*modes), packed=False), __file__, modes=modes, target=target)


def test_blocks_with_segments_are_not_packed():
    with pytest.raises(ValueError, match="packed must be False for modes with segmented blocks, not True"):
        Cdu(lane_modes(*LANE))


def lane_of(share):
    """The mode of a share."""
    lane = next(mode for mode in lane_modes(*LANE) if mode.format.row == share.bits and mode.tiled == share.view.tiled)
    return lane.name


class Unit(Bench):
    """Shares of tensors through a CDU, and whole tensors of other modes."""

    def __init__(self, dut):
        super().__init__(dut)
        self.names = parameters()["modes"]
        modes = lane_modes(*self.names)
        self.modes = {mode.name: mode for mode in modes}
        self.layout = data.Layout.cast(config_layout(modes))
        self.seen = set()

    def config(self, name, decompress, layout, count, **others):
        fields = {"decompress": decompress, "mode": self.names.index(name), "layout": layout, "blocks": count}
        return self.layout.const(fields | others).as_bits()

    def config_word(self, share, decompress, **changes):
        """The configuration of a share."""
        own = share.fields() | changes
        numbers = {name: int(own[name]) for name in ("seed", "lfc", "minimum", "nearest")}
        mode = self.modes[lane_of(share)]
        return self.config(
            mode.name, decompress, own["layout"], own["blocks"],
            settings=sum(numbers[setting.name] << setting.low for setting in mode.settings),
            share={name: int(own[name]) for name in ("sectors", "tail", "phase", "stride", "void", "group", "step")})

    def share(self, random, shape, units=None):
        """A share of a tensor, in a mode that this CDU has; None if it has none, or the share no block."""
        view = views.view(shape)
        bits = [mode.format.row for mode in self.modes.values() if mode.format.segmented and mode.tiled == view.tiled]
        if not bits:
            return None
        units = int(random.choice([1, 1, 2, 3, 4, 8])) if units is None else units
        share = Share(view, int(random.choice(bits)), units, int(random.integers(units)), int(random.integers(1 << 32)),
                      bool(random.random() < 0.8), str(random.choice(["mean", "min"])),
                      str(random.choice(["stochastic", "stochastic", "nearest"])))
        return share if len(share.blocks) else None

    @staticmethod
    def scales(share, k, delta=None):
        """A word for each sector, with anything in the low byte's neighbour, and anything for void ones."""
        row = views.segments(share.view).row[share.blocks].reshape(-1)[share.order]
        plane = np.where(row < 0, 0, share.view.plane[row])
        words = k.view(np.uint32)
        if delta is not None:
            words = words | delta.view(np.uint8) | 0x5A00
        return [int(word) for word in words[plane]]

    async def compress(self, random, share, x, made, **patterns):
        """A share of x, float32 [rows, width]."""
        view, k = share.view, made.k[share.view.plane, None].astype(np.float64)
        pieces, clipped = share.encoded(sfpr.quantize(x, k), made.delta)
        expected = [chunk(piece, n == len(pieces) - 1, WIDTH) for n, piece in enumerate(pieces)]
        sectors, scales = (views.split(array, view)[share.blocks].reshape(-1, 8)[share.order]
                           for array in (x, np.broadcast_to(k, x.shape)))
        run = await self.run({"config": [self.config_word(share, 0)],
                              "sectors_i": [pack(row, 32) for row in np.ascontiguousarray(sectors).view(np.uint32)],
                              "scales": self.scales(share, made.k, made.delta)},
                             {"bytes_o": len(expected)}, random, **patterns)
        self.equal(run["bytes_o"], expected, f"compress {share} {patterns}")
        await self.rest()
        with np.errstate(all="ignore"):
            counts = tuple(sfpr.counts(sectors, scales))
        got = tuple(int(self.dut[name].value) for name in ("error", "clipped", "nans", "saturated"))
        assert got == (0, clipped, *counts), f"{share}: {got}"
        self.seen.add((share.view.tiled, share.bits, share.lfc, share.offset, share.rounding, clipped))
        return run, b"".join(pieces)

    def rows(self, share, payload):
        """A payload as the rows of its blocks; behind their bytes is anything, as in their masks."""
        begins, _ = share.places()
        ends = np.cumsum(begins + share.bits)
        pieces = [bytes(payload[end - size : end]) for end, size in zip(ends, begins + share.bits, strict=True)]
        return [int.from_bytes(piece.ljust(8, b"\xa5"), "little") | 0xC3 << 64 | (n == len(pieces) - 1) << 72
                for n, piece in enumerate(pieces)]

    def restore(self, share, payload, k):
        """The sectors of a payload, and which of their bits count."""
        y, _ = share.decoded(payload)
        row = views.segments(share.view)
        plane = np.where(row.row < 0, 0, share.view.plane[row.row])[share.blocks].reshape(-1)
        x = sfpr.dequantize(y, sfpr.reciprocal(k)[plane, None])[share.order]
        exists = row.exists[share.blocks].reshape(-1, 8)[share.order]
        return [pack(line, 32) for line in x.view(np.uint32)], [
            pack(line, 32) for line in exists.astype(np.uint32) * np.uint32(0xFFFFFFFF)]

    async def decompress(self, random, share, payload, k, rows=None, error=0, **patterns):
        expected, masks = self.restore(share, payload, k)
        rows = self.rows(share, payload) if rows is None else rows
        run = await self.run({"config": [self.config_word(share, 1)], "rows_i": rows,
                              "scales": self.scales(share, sfpr.reciprocal(k))},
                             {"sectors_o": len(expected)}, random, **patterns)
        got = [one & mask for one, mask in zip(run["sectors_o"], masks, strict=True)]
        self.equal(got, [one & mask for one, mask in zip(expected, masks, strict=True)], f"{share} back, {patterns}")
        await self.rest()
        assert (self.dut.error.value, self.dut.clipped.value) == (error, 0), share
        return run

    async def other(self, random, name, **patterns):
        """A tensor of another mode, both ways."""
        x = random.standard_normal((1, 3, 16, 8 * int(random.integers(1, 5)))).astype(np.float32)
        c = reference.compress(x, name)
        view, form = c.view, c.tiled
        index = blocks.order(view, form)
        pieces = payloads.cut(np.frombuffer(c.payload, np.uint8), reference.sizes_of(c))
        table_ = {"table": c.table.reshape(-1).tolist()} if form else {}
        layout = min(view.tiles_per_row, 3) - 1
        rows = [row for block in pieces for row in payloads.split(block, name)]
        rows = [int.from_bytes(words.ljust(8, b"\0"), "little") | mask << 64 | (n == len(rows) - 1) << 72
                for n, (mask, words) in enumerate(rows)]
        beats = [beat for block in pieces for beat in payloads.chunks(block, name, WIDTH)]
        beats[-1] |= 1 << 8 * WIDTH + WIDTH.bit_length()
        for decompress in (0, 1):
            k = sfpr.reciprocal(c.scales) if decompress else c.scales
            tensor = reference.decompress(c) if decompress else x
            words = np.ascontiguousarray(tensor).view(np.uint32)
            sectors = [pack(row, 32) for row in blocks.sectors(words, view, form)]
            scales = [int(word) for word in k.view(np.uint32)[view.channel[index // view.tiles_per_row]]]
            source, sink = ({"rows_i": rows}, {"sectors_o": sectors}) if decompress else (
                {"sectors_i": sectors}, {"bytes_o": beats})
            (port, expected), = sink.items()
            run = await self.run({"config": [self.config(name, decompress, layout, c.blocks, **table_)],
                                  "scales": scales, **source}, {port: len(expected)}, random, **patterns)
            self.equal(run[port], expected, f"{name} {x.shape}, {decompress}")
            await self.rest()
            assert (self.dut.error.value, self.dut.clipped.value) == (0, 0)

    async def rest(self):
        for _ in range(8):
            if self.dut.busy.value == 0:
                break
            await FallingEdge(self.clk)
        assert self.dut.busy.value == 0, "busy after the last beat"

    async def tensor(self, random, shape, units=None, **patterns):
        """A share of a random tensor, both ways."""
        share = self.share(random, shape, units)
        if share is None:
            return
        x = tensor_of(random, share.view)
        with np.errstate(all="ignore"):
            made = table.table(x, share.bits, share.lfc, share.offset, share.view)
            if random.random() < 0.3:  # a table of another tensor
                made = table.Table(made.k, random.integers(-128, 128, len(made.k)).astype(np.int8))
            _, payload = await self.compress(random, share, x, made, **patterns)
            await self.decompress(random, share, payload, made.k, **patterns)


@cocotb.test
async def equals_golden_for_every_kind_of_tensor(dut):
    random = rng()
    unit = await Unit.started(dut)
    for n, shape in enumerate(shapes(random, 80, 2000)):
        if n % 8 == 0 and OTHERS[0] in unit.names:
            await unit.other(random, OTHERS[n // 8 % 2])
        await unit.tensor(random, shape)
    tiled, bits, lfc, offset, rounding, clipped = map(set, zip(*unit.seen, strict=True))
    forms = {(mode.tiled, mode.format.row) for mode in unit.modes.values() if mode.format.segmented}
    assert (tiled, bits) == tuple(map(set, zip(*forms, strict=True)))
    assert (lfc, offset, clipped) == ({False, True}, {"mean", "min"}, {False, True})
    assert rounding == {"stochastic", "nearest"}


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def equals_golden_whatever_the_ports_do(dut, idle, stall):
    random = rng()
    unit = await Unit.started(dut)
    for shape in shapes(random, 4, 1000):
        await unit.tensor(random, shape, idle=idle, stall=stall)
    if OTHERS[0] in unit.names:
        await unit.other(random, str(random.choice(OTHERS)), idle=idle, stall=stall)


@cocotb.test
async def takes_eight_cycles_a_block(dut):
    """Both ways, behind the latencies of SFPR, a register and the units."""
    random, (there, back) = rng(), CUTS[target()]
    unit = await Unit.started(dut)
    for shape in ((1, 9, 8, 8), (1, 4, 16, 16), (1, 4, 16, 24), (1, 4, 32, 64), (40, 9), (30, 24), (7, 513), (3, 2000)):
        share = unit.share(random, shape, 1)
        if share is None:
            continue
        x = tensor_of(random, share.view)
        made = table.Table(np.ones(share.view.planes, np.float32), np.full(share.view.planes, -9, np.int8))
        with np.errstate(all="ignore"):
            run, payload = await unit.compress(random, share, x, made)
        layout, count = min(share.view.sectors, 3) - 1 if share.view.tiled else 0, 8 * len(share.blocks)
        first = run.cycles["sectors_i"][0] + LATENCY[layout] + there
        assert run.cycles["bytes_o"] == list(range(first, first + count)), share
        run = await unit.decompress(random, share, payload, made.k)
        first = run.cycles["rows_i"][0] + BACK[layout] + back
        assert run.cycles["sectors_o"] == list(range(first, first + count)), share


@cocotb.test
@cocotb.parametrize(stall=["never", "half"])
async def ends_a_stream_that_is_short_or_long(dut, stall):
    """The row with ``last`` means nothing if it comes too early; what is missing is zero."""
    random = rng()
    unit = await Unit.started(dut)
    for shape in ((1, 3, 16, 9), (3, 50), (5, 3, 3, 3), (1, 2, 24, 40)):
        share = unit.share(random, shape)
        if share is None:
            continue
        begins, _ = share.places()
        payload = random.integers(0, 256, begins.sum() + len(begins) * share.bits, np.uint8).tobytes()
        k = np.exp2(random.integers(-5, 5, share.view.planes)).astype(np.float32)
        rows = unit.rows(share, payload)
        for cut in {1, 2, len(rows) - 1, *random.integers(1, len(rows), 4).tolist()}:
            short = [*rows[: cut - 1], rows[cut - 1] | 1 << 72]
            kept = payload[: int((begins + share.bits)[: cut - 1].sum())]
            await unit.decompress(random, share, kept, k, short, 2, stall=stall)
        await unit.decompress(random, share, payload, k, stall=stall)
        last = 1 << 72
        more = [*rows[:-1], rows[-1] & ~last, *random.integers(1 << 60, size=9).tolist(), last]
        await unit.decompress(random, share, payload, k, more, 4, stall=stall)
        await unit.tensor(random, shape)


@cocotb.test
async def refuses_what_cannot_be(dut):
    random = rng()
    unit = await Unit.started(dut)
    share = unit.share(random, (3, 50), 1)
    for changes in ({"blocks": 0}, {"sectors": 0}, {"tail": 0}, {"tail": 9}, {"tail": 15}):
        for decompress in (0, 1):
            config = unit.config_word(share, decompress, **changes)
            run = await unit.run({"config": [config], "sectors_i": [1], "scales": [1], "rows_i": [1]},
                                 {"bytes_o": None, "sectors_o": None}, random, until=after(20))
            assert (dut.error.value, dut.busy.value) == (1, 0), changes
            assert not any(run.cycles[port] for port in ("sectors_i", "rows_i", "bytes_o", "sectors_o")), changes
        await unit.tensor(random, (3, 50))


@cocotb.test
async def recovers_from_a_reset_at_any_moment(dut):
    random = rng()
    unit = await Unit.started(dut)
    for moment in range(0, 60, 4):
        share = unit.share(random, (30, 17), 1)
        decompress = int(random.integers(2))
        await unit.run({"config": [unit.config_word(share, decompress)], "sectors_i": [0] * 60, "scales": [0] * 60,
                        "rows_i": [0] * 60}, {"bytes_o": None, "sectors_o": None}, random, "seldom", "half",
                       until=after(moment))
        await unit.reset()
        await unit.tensor(random, [(2, 3, 16, 9), (30, 17)][moment // 4 % 2])
