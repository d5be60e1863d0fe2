"""Whole tensors through a CDU: its bench sends them, and compares all that comes out with golden."""

import numpy as np
from cocotb.triggers import ClockCycles, FallingEdge

from actcodec.codecs import lane_modes
from actcodec.golden.jpegact import rle, sfpr, steps
from actcodec.golden.offload import blocks
from tb import reference
from tb.harness import SEED, Bench, chunks, pack, parameters
from tb.jpegact.blocks import tables
from tb.offload.wire import payloads

__all__ = ["MALFORMED", "Driver", "tensor"]

MALFORMED = 8  # a bit of error


class Driver:
    """What golden knows of a tensor, as beats of the CDU's ports."""

    def __init__(self, dut):
        self.dut, self.bench = dut, Bench(dut)
        self.modes = parameters()["modes"]
        self.packed = parameters().get("packed", True)
        row = payloads.row_bytes(self.modes)
        self.width = 8 + row if not self.packed else max(row, 16)
        self.kind = self.width if self.packed else 40  # of latencies
        self.bytes_i = "bytes_i" if self.packed else "rows_i"

    def config(self, decompress, mode, layout, count, table, signs=0, code=None, zone=0):
        settings = 0
        if code or (mode in reference.STEPPED and table is not None):
            numbers = {"dead_zone": zone, **({"steps": steps.word(table)} if mode in reference.STEPPED else {}),
                       **({reference.NAMES.get(reference.CODERS.get(mode), "divisors"): code.word} if code else {})}
            settings = sum(numbers[setting.name] << setting.low for setting in lane_modes(mode)[0].settings)
        shifts = np.zeros(64, int) if table is None or mode in reference.STEPPED else table.reshape(-1)
        bits = max((len(self.modes) - 1).bit_length(), 1)
        place = mode if isinstance(mode, int) else self.modes.index(mode)
        rest = layout | count << 2 | signs << 34 | (pack(shifts, 3) | settings << 192) << 35
        return decompress | (place | rest << bits) << 1

    def beats(self, compressed, x):
        """(configuration without direction, k and r for each sector, sectors, decompressed sectors, bytes)."""
        c, view = compressed, compressed.view
        index, count = blocks.order(view, c.tiled), 8 * c.blocks
        rows = index // view.tiles_per_row
        scales = []
        for values in (c.scales, sfpr.reciprocal(c.scales)) if c.scales is not None else ():
            words = np.zeros(count, np.uint32)
            real = np.flatnonzero(rows < view.rows)
            words[real] = values.view(np.uint32)[view.channel[rows[real]]]
            scales.append([int(word) for word in words])
        sectors = []
        for tensor in (x, reference.decompress(c)):
            array = blocks.sectors(np.ascontiguousarray(tensor).view(np.uint32), view, c.tiled)
            array = np.pad(array, ((0, count - len(array)), (0, 0)))
            sectors.append([pack(row, 32) for row in array])
        return min(view.tiles_per_row - 1, 2), scales, *sectors, self.compressed(c)

    def compressed(self, c):
        """The bytes as they leave."""
        if self.packed:
            return chunks(c.payload, self.width)
        if c.mode in reference.TABLES:  # eight chunks of any sizes
            return [beat for k, block in enumerate(self.blocks(c), 1) for beat in ((block.tobytes(), k == c.blocks),
                                                                                   *[None] * 7)]
        beats = [beat for block in self.blocks(c) for beat in payloads.chunks(block, c.mode, self.width)]
        return [*beats[:-1], beats[-1] | 1 << 8 * self.width + self.width.bit_length()]

    def seen(self, beats, expected):
        """What left, as :meth:`compressed` has it."""
        result, count = [], 8 * self.width
        for k, one in enumerate(expected):
            if isinstance(one, tuple):
                sizes = [beat >> count & (1 << self.width.bit_length()) - 1 for beat in beats[k : k + 8]]
                data = b"".join((beat & (1 << 8 * size) - 1).to_bytes(size, "little")
                                for beat, size in zip(beats[k : k + 8], sizes, strict=True))
                lasts = [beat >> count + self.width.bit_length() for beat in beats[k : k + 8]]
                result.append((data, bool(lasts[7])) if not any(lasts[:7]) else lasts)
            else:
                result.append(one if one is None else beats[k])
        return result

    def given(self, c):
        """The bytes as they come in; what lies behind the words of a row means nothing."""
        if self.packed:
            return self.compressed(c)
        size = self.width - 8
        rows = [row for block in self.blocks(c) for row in payloads.split(block, c.mode)]
        return [int.from_bytes(words.ljust(size, b"\xa5"), "little") | mask << 8 * size
                | (k == len(rows) - 1) << 8 * size + 8 for k, (mask, words) in enumerate(rows)]

    @staticmethod
    def blocks(c):
        return payloads.cut(np.frombuffer(c.payload, np.uint8), reference.sizes_of(c))

    def symbols(self, c):
        """Of the first block, in a mode in which each takes a cycle."""
        return int(rle.symbols(rle.decode(self.blocks(c)[0], 1))[0]) if c.mode == reference.BASE else 0

    def sources(self, decompress, c, beats, given=None, signs=0, zone=0):
        """All that comes in with a tensor of which ``beats`` are known; ``given`` in place of its bytes."""
        layout, scales, sectors, *_ = beats
        config = self.config(decompress, c.mode, layout, c.blocks, c.table, signs, c.code, zone)
        content = {self.bytes_i: self.given(c) if given is None else given} if decompress else {"sectors_i": sectors}
        return {"config": [config], **content, **({"scales": scales[decompress]} if scales else {})}

    async def compress(self, x, mode, random, dqt="optL", idle="never", stall="never", zone=None):
        """Compresses and compares; returns golden's result and the run. Any ``zone`` if there is none."""
        signs, zone = int(random.integers(2)), int(random.integers(4)) if zone is None else zone
        code = None
        if (used := reference.effective_mode(x, mode)) in reference.CODERS and random.integers(2):
            code = tables(random, reference.CODERS[used])
        c = reference.compress(x, mode, dqt, signs=signs, code=code, dead_zone=zone)
        beats = self.beats(c, x)
        scales, chunks = beats[1], beats[-1]
        run = await self.bench.run(self.sources(0, c, beats, signs=signs, zone=zone), {"bytes_o": len(chunks)}, random,
                                   idle, stall)
        self.bench.equal(self.seen(run["bytes_o"], chunks), chunks, f"compress {c.mode} {x.shape}")
        await self.rest()
        assert self.dut.error.value == 0
        if scales:
            counts = sfpr.counts(x.reshape(c.view.rows, c.view.width), c.scales[c.view.channel, None])
            got = (int(self.dut.nans.value), int(self.dut.saturated.value))
            assert got == tuple(counts), f"SEED={SEED} {c.mode} {x.shape}: NaNs and saturated {got}, not {counts}"
        return c, run

    async def decompress(self, c, x, random, idle="never", stall="never", chunks=None, error=0):
        """Decompresses golden's result (or other ``chunks``) and compares what must be equal."""
        beats = self.beats(c, x)
        sectors = beats[3]
        run = await self.bench.run(self.sources(1, c, beats, chunks), {"sectors_o": len(sectors)}, random, idle, stall)
        # Padding has whatever its scale of zero gives; only what a tensor has is compared. Of a stream that is short,
        # what is missing counts as zeros, which golden can follow where blocks have one size.
        if error != 2:
            self.bench.equal(self.real(run["sectors_o"], c), self.real(sectors, c), f"decompress {c.mode} {x.shape}")
        await self.rest()
        # What is missing may leave a block that contradicts itself, or not.
        got = int(self.dut.error.value) & ~(MALFORMED if error == 2 and c.mode in reference.TABLES else 0)
        assert got == error, f"error {got}, not {error}"
        return run

    def real(self, sectors, c):
        """The values of sectors that belong to the tensor: the bits of the padding masked."""
        view = c.view
        index = blocks.order(view, c.tiled)
        row, column = index // view.tiles_per_row, index % view.tiles_per_row
        kept = np.where(row < view.rows, np.minimum(view.width - 8 * column, 8), 0)
        kept = np.pad(kept, (0, len(sectors) - len(kept)))  # the last block's end
        return [sector & ((1 << 32 * int(n)) - 1) for sector, n in zip(sectors, kept, strict=True)]

    async def rest(self):
        """Waits until the unit is idle, and for a while longer, and sees that nothing more comes."""
        for _ in range(8):
            if self.dut.busy.value == 0:
                break
            await FallingEdge(self.dut.clk)
        assert self.dut.busy.value == 0, "busy after the last beat"
        await ClockCycles(self.dut.clk, 3)  # what is known of the tensor stands
        await FallingEdge(self.dut.clk)
        assert not (int(self.dut.sectors_o__valid.value) or int(self.dut.bytes_o__valid.value)), "a beat too many"


def tensor(random, shape, sparse=False):
    """Random values, some of every kind that float32 has."""
    x = random.standard_normal(shape).astype(np.float32)
    if sparse:
        x = np.maximum(x, 0)
    special = np.array([np.nan, -np.nan, np.inf, -np.inf, 1e-42, -1e-42, -0.0, 0.0, 3e38, -3e38, 1e-37], np.float32)
    flat = x.reshape(-1)
    if random.random() < 0.7:
        where = random.random(flat.size) < 0.05
        flat[where] = random.choice(special[:8] if random.random() < 0.7 else special, int(where.sum()))
    if x.ndim == 4:
        kind = random.integers(6)
        x[:, random.integers(shape[1])] *= np.float32([0, 1, 1e-38, 1e38, 1e3, 1e-5][kind])
    return x
