"""Bench of ZVC and ZVD: their bytes and blocks are golden's, at 8.00 cycles a block."""

from pathlib import Path

import cocotb
import numpy as np
import pytest
from amaranth.hdl import Module, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.codecs import lane_modes
from actcodec.golden.jpegact import sfpr, zvc
from actcodec.rtl.common.packer import Packer, chunk_layout
from actcodec.rtl.common.unpacker import Unpacker
from actcodec.rtl.jpegact.transpose import vectors_layout
from actcodec.rtl.jpegact.zvc import Zvc
from actcodec.rtl.jpegact.zvc_decode import Decoder
from actcodec.rtl.jpegact.zvc_encode import Encoder
from actcodec.rtl.offload.wire.row_cutter import RowCutter
from tb.harness import PATTERNS, STALLS, Bench, after, beats, chunks, parameters, regress, rng, simulate

DATA = Path(__file__).resolve().parents[2] / "actcodec" / "data" / "resnet20.npz"


class Codec(wiring.Component):
    """Zvc between packer, unpacker and row cutter, as in a CDU."""

    def __init__(self, word):
        self.word, self.size = word, 16 if word == 1 else 32
        values, packed = stream.Signature(vectors_layout(signed(lane(word)))), stream.Signature(chunk_layout(self.size))
        super().__init__({
            "i": In(values), "packed": Out(packed), "unpacked": In(packed), "o": Out(values),
            "decompress": In(1), "straight": In(1), "blocks": In(32), "start": In(1), "error": Out(1),
            "next": In(1), "excess": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        wide = 8 + lane(self.word)
        m.submodules.zvc = unit = Zvc(lane(self.word) // 8, halves=self.word == 2)
        m.submodules.packer = packer = Packer(self.word, wide, self.size)
        m.submodules.unpacker = unpacker = Unpacker(self.word, self.size, wide)
        modes = lane_modes("sfpr-zvc" if self.word == 1 else "zvc")
        if self.word == 2:
            modes += (modes[0].halves,)
        m.submodules.cutter = cutter = RowCutter(modes)
        for source, sink in ((wiring.flipped(self.i), unit.i), (unit.chunks, packer.i),
                             (packer.o, wiring.flipped(self.packed)), (wiring.flipped(self.unpacked), unpacker.i),
                             (unpacker.o, cutter.bytes), (cutter.o, unit.rows), (unit.o, wiring.flipped(self.o))):
            wiring.connect(m, source, sink)
        m.d.comb += [
            unpacker.take.eq(cutter.take), unpacker.next.eq(self.next), self.excess.eq(unpacker.excess),
            unit.decompress.eq(self.decompress), unit.straight.eq(self.straight), cutter.blocks.eq(self.blocks),
            cutter.start.eq(self.start),
        ]
        if self.word == 2:
            m.d.comb += [unit.half.eq(1), cutter.mode.eq(1)]
        m.d.sync += self.error.eq(~self.start & (self.error | cutter.short))
        return m


def lane(word):
    """Bits of a value at ``i`` and ``o``."""
    return {1: 8, 2: 32, 4: 32}[word]


@pytest.mark.parametrize("word, target", [(1, "cells"), (4, "cells"), *regress((2, "cells"), (1, "lut"), (2, "lut"),
                                                                             (4, "lut"))])
def test_zvc(word, target):
    simulate(Codec(word), __file__, target=target, word=word)


@pytest.mark.parametrize("unit", [Zvc, Encoder, Decoder])
@pytest.mark.parametrize("word", [0, 2, 8, "1", None])
def test_other_words_are_refused(unit, word):
    with pytest.raises(ValueError, match="word"):
        unit(word)


@pytest.mark.parametrize("names, what", [(("raw", "sfpr-nibble"), "sfpr-nibble"), (("division",), "division"),
                                         ((), "one or more different modes")])
def test_only_blocks_of_one_size_or_with_a_mask_are_cut(names, what):
    with pytest.raises(ValueError, match=f"modes must be .*{what}"):
        RowCutter(names and lane_modes(*names))


@pytest.mark.parametrize("unit", [Zvc, Encoder, Decoder])
def test_only_words_of_4_bytes_have_halves(unit):
    with pytest.raises(ValueError, match="word must be 4 bytes, not 1"):
        unit(1, halves=True)


def dtype(word):
    return np.dtype(f"u{word}").type


def dense(random, count, word):
    """Blocks without zeros, among them the values that are zero but for one bit."""
    bits = 8 * word
    some = np.where(random.random((count, 64)) < 0.3, 1 << random.integers(0, bits, (count, 64)),
                    random.integers(1, 1 << bits, (count, 64)))
    return some.astype(dtype(word))


def sparse(random, count, word):
    """Blocks of all densities."""
    return np.where(random.random((count, 64)) < random.random((count, 1)), dense(random, count, word), 0).astype(
        dtype(word))


def rows(blocks, word, transposed):
    """Blocks [n, 64] as beats of rows, or of columns."""
    square = blocks.reshape(-1, 8, 8)
    return beats(square.transpose(0, 2, 1) if transposed else square, lane(word))


def lenient(payload, count, word):
    """What a decoder makes of a payload that is cut off: bytes that are missing are zero."""
    left = bytes(payload)

    def read(size):
        nonlocal left
        piece, left = left[:size], left[size:]
        return np.frombuffer(piece.ljust(size, b"\0"), np.uint8)

    blocks = np.zeros((count, 64), dtype(word))
    for block in blocks:
        nonzero = np.unpackbits(read(8), bitorder="little").astype(bool)
        block[nonzero] = read(word * int(nonzero.sum())).view(block.dtype)
    return blocks


class Codecs(Bench):
    """The bench with the controls of a codec."""

    def __init__(self, dut):
        super().__init__(dut)
        self.word = parameters()["word"]
        self.size = 16 if self.word == 1 else 32

    async def begin(self):
        await self.start()
        return self

    async def compress(self, blocks, random, straight=1, **patterns):
        """Compresses one tensor and compares."""
        self.dut.decompress.value, self.dut.straight.value = 0, straight
        expected = chunks(zvc.encode(blocks)[0], self.size)
        run = await self.run({"i": rows(blocks, self.word, not straight and self.word == 1)},
                             {"packed": len(expected)}, random, **patterns)
        self.equal(run["packed"], expected, f"payload of {len(blocks)} blocks, straight={straight}")
        return run

    async def decompress(self, payload, expected, random, straight=1, **patterns):
        """Decompresses one tensor and compares."""
        self.dut.decompress.value, self.dut.straight.value = 1, straight
        self.dut.blocks.value = len(expected)
        await self.pulse("start")
        run = await self.run({"unpacked": chunks(payload, self.size)}, {"o": 8 * len(expected)}, random, **patterns)
        self.equal(run["o"], rows(expected, self.word, not straight and self.word == 1),
                   f"{len(expected)} blocks, straight={straight}")
        assert self.dut.o__valid.value == 0
        return run

    async def both(self, blocks, random, straight=1, **patterns):
        await self.compress(blocks, random, straight, **patterns)
        await self.decompress(zvc.encode(blocks)[0], blocks, random, straight, **patterns)
        assert (self.dut.error.value, self.dut.excess.value) == (0, 0)
        await self.pulse("next")


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def goes_both_ways_whatever_the_ports_do(dut, idle, stall):
    random = rng()
    bench = await Codecs(dut).begin()
    for count in (1, 2, 5):
        for straight in (0, 1):
            await bench.both(sparse(random, count, bench.word), random, straight, idle=idle, stall=stall)


@cocotb.test
async def handles_every_mask_population(dut):
    random = rng()
    bench = await Codecs(dut).begin()
    blocks = np.repeat(dense(random, 65, bench.word), 2, axis=0)
    for index, block in enumerate(blocks):
        block[random.permutation(64)[index // 2 :]] = 0
    assert set(np.count_nonzero(blocks, axis=1)) == set(range(65))
    for straight in (0, 1):
        await bench.both(blocks, random, straight)


@cocotb.test
async def handles_every_mask_of_a_row(dut):
    """All 256 of them in each of the rows 0, 1 and 7, with other rows around."""
    random = rng()
    bench = await Codecs(dut).begin()
    blocks = dense(random, 256, bench.word)
    masks = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(bool)
    for row in (0, 1, 7):
        blocks[:, 8 * row : 8 * row + 8] *= random.permutation(masks)
    await bench.both(blocks, random)


@cocotb.test
async def handles_a_single_value_at_each_position(dut):
    """And a single zero."""
    random = rng()
    bench = await Codecs(dut).begin()
    blocks = dense(random, 128, bench.word)
    blocks[:64][~np.eye(64, dtype=bool)] = 0
    blocks[64:][np.eye(64, dtype=bool)] = 0
    for straight in (0, 1):
        await bench.both(blocks, random, straight)


@cocotb.test
async def handles_blocks_of_zeros(dut):
    random = rng()
    bench = await Codecs(dut).begin()
    for count in (1, 2, 3, 4, 5, 20):
        await bench.both(np.zeros((count, 64), dtype(bench.word)), random)


@cocotb.test
async def keeps_a_word_of_which_any_bit_is_set(dut):
    """Negative zero is not zero."""
    random = rng()
    bench = await Codecs(dut).begin()
    bits = 8 * bench.word
    blocks = np.resize(np.append(1 << np.arange(bits), [0] * 5), (2 * bits, 64)).astype(dtype(bench.word))
    await bench.both(blocks, random)


@cocotb.test
async def compresses_and_restores_real_activations(dut):
    random = rng()
    bench = await Codecs(dut).begin()
    tensors = np.load(DATA)
    relus = [name for name in tensors if "relu" in name.lower()]
    assert len(relus) >= 2
    for name in relus:
        x = tensors[name][:1]
        values = sfpr.quantize(x, sfpr.scales(x).k) if bench.word == 1 else x
        blocks = values.reshape(-1).view(dtype(bench.word))[: 64 * 100].reshape(-1, 64)
        assert 0.2 < np.count_nonzero(blocks) / blocks.size < 0.8
        await bench.both(blocks, random)


@cocotb.test
async def takes_eight_cycles_a_block(dut):
    random = rng()
    bench = await Codecs(dut).begin()
    count = 48
    most = 64 if bench.word == 1 else 62  # more than 62 words of 4 bytes are more than 256 bytes
    for straight in (0, 1):
        for blocks in (dense(random, count, bench.word), sparse(random, count, bench.word),
                       np.zeros((count, 64), dtype(bench.word))):
            for index, block in enumerate(blocks):
                block[(random.permutation(64) if index % 2 else np.roll(np.arange(64), -2 * index))[most:]] = 0
            run = await bench.compress(blocks, random, straight)
            assert run.cycles["i"] == list(range(8 * count))
            # 10 cycles to the first chunk, and one through the packer once a word is full; flushing takes 8 more.
            assert run.cycles["packed"][-1] in (8 * count + 10, 8 * count + 11)
            run = await bench.decompress(zvc.encode(blocks)[0], blocks, random, straight)
            first = 11 if bench.word == 1 else 4  # words of 4 bytes: a piece may need two beats, and waits for them
            assert run.cycles["unpacked"][0] == 0
            assert run.cycles["o"] == list(range(first, first + 8 * count))
            await bench.pulse("next")
    if bench.word == 4:
        blocks = dense(random, count, bench.word)
        run = await bench.compress(blocks, random)
        assert set(np.diff(run.cycles["i"][::8])) == {8, 9}
        run = await bench.decompress(zvc.encode(blocks)[0], blocks, random)
        assert set(np.diff(run.cycles["o"][::8])) == {8, 9}


@cocotb.test
async def ends_a_stream_that_is_cut_off(dut):
    """Cut at every byte (or word) of a tensor: all blocks come, missing bytes are zero, and there is an error."""
    random = rng()
    bench = await Codecs(dut).begin()
    blocks = sparse(random, 3, bench.word)
    blocks[0, 60:] = 1
    payload, _ = zvc.encode(blocks)
    for straight in (0, 1):
        for length in range(0, len(payload) + 1, bench.word):
            await bench.decompress(payload[:length], lenient(payload[:length], 3, bench.word), random, straight)
            assert (dut.error.value, dut.excess.value) == (length < len(payload), 0), length
            await bench.pulse("next")


@cocotb.test
async def leaves_what_does_not_belong_to_its_blocks(dut):
    random = rng()
    bench = await Codecs(dut).begin()
    blocks = sparse(random, 12, bench.word)
    payload, sizes = zvc.encode(blocks)
    for count in range(1, 12):
        dut.decompress.value, dut.straight.value = 1, 1
        dut.blocks.value = count
        await bench.pulse("start")
        # The unpacker wants as many bytes for the last row as any may have.
        sent = chunks(payload, bench.size)
        enough = -(-(sizes[:count].sum() + 8 + lane(bench.word)) // bench.size)
        run = await bench.run({"unpacked": sent[:enough]}, {"o": 8 * count}, random, stall="half")
        bench.equal(run["o"], rows(blocks[:count], bench.word, False), f"{count} of 12 blocks")
        assert (dut.error.value, dut.excess.value) == (0, 1)
        await bench.pulse("next")
        await bench.run({"unpacked": sent[enough:]}, {}, random)
    await bench.both(blocks, random)


@cocotb.test
async def forgets_everything_at_reset(dut):
    random = rng()
    bench = await Codecs(dut).begin()
    for fill in range(1, 40, 3):
        blocks = sparse(random, 5, bench.word)
        dut.decompress.value, dut.straight.value = fill % 2, 0
        if fill % 2:
            dut.blocks.value = 5
            await bench.pulse("start")
            payload, _ = zvc.encode(blocks)
            sent = chunks(payload, bench.size)
            await bench.run({"unpacked": sent}, {"o": fill // 2}, random, limit=400,
                            until=lambda: dut.unpacked__ready.value == 0)
        else:
            await bench.run({"i": rows(blocks, bench.word, False)[:fill]}, {"packed": None}, random, stall="half")
        await bench.reset()
        await bench.both(sparse(random, 3, bench.word), random, straight=fill // 2 % 2)


@cocotb.test
async def every_bit_of_the_count_counts(dut):
    """Of tensors with very many blocks the first ones come out, and none of them is the last."""
    random = rng()
    bench = await Codecs(dut).begin()
    dut.decompress.value = dut.straight.value = 1
    blocks = sparse(random, 12, bench.word)  # behind the three that are looked at, more than the decoder wants to have
    given, expected = chunks(zvc.encode(blocks)[0], bench.size)[:-1], rows(blocks, bench.word, False)[:24]
    for count in [(1 << bit) + int(more) for bit in range(3, 32) for more in random.integers(0, 4, 2)]:
        dut.blocks.value = count
        await bench.pulse("start")
        run = await bench.run({"unpacked": given}, {"o": None}, random,
                              until=after(100))
        bench.equal(run["o"][:24], expected, f"of {count} blocks")
        await bench.reset()
