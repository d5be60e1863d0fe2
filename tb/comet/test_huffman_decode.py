"""Bench of Huffman decoding: golden's symbols of streams of all kinds, those that are garbage among them."""

import cocotb
import numpy as np
from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from cocotb.triggers import FallingEdge, RisingEdge

from actcodec.golden.comet import huffman, interleave
from actcodec.rtl.comet.book import tables as layout
from actcodec.rtl.comet.huffman_decode import Decode
from actcodec.rtl.comet.payloads import rounds
from actcodec.rtl.common.packer import chunk_layout
from actcodec.rtl.common.unpacker import Unpacker
from tb.comet import world
from tb.comet.books import KINDS, books, tables
from tb.comet.books import stream as symbols
from tb.harness import PATTERNS, STALLS, Bench, chunks, rng, simulate


class Decoder(wiring.Component):
    """Decode behind the unpacker that it has in the codec. The number of rounds is known all at once."""

    i: In(stream.Signature(chunk_layout(8)))
    o: Out(stream.Signature(rounds))
    book: In(layout)
    rounds: In(32)
    start: In(1)
    next: In(1)
    busy: Out(1)
    short: Out(1)
    excess: Out(1)
    words: Out(data.ArrayLayout(8, 8))
    pushes: Out(8)
    room: In(1)

    def elaborate(self, platform):
        m = Module()
        m.submodules.unpacker = unpacker = Unpacker(1, 8, 8)
        m.submodules.decode = decode = Decode()
        wiring.connect(m, wiring.flipped(self.i), unpacker.i)
        wiring.connect(m, unpacker.o, decode.bytes)
        wiring.connect(m, decode.o, wiring.flipped(self.o))
        m.d.comb += [unpacker.take.eq(decode.take), unpacker.next.eq(self.next), self.excess.eq(unpacker.excess)]
        m.d.comb += [getattr(decode, name).eq(getattr(self, name)) for name in ("book", "start", "room")]
        m.d.comb += [getattr(self, name).eq(getattr(decode, name)) for name in ("busy", "short", "words", "pushes")]
        left = Signal(32)
        m.d.comb += [decode.some.eq(left.any()), decode.ended.eq(~left.any())]
        m.d.sync += left.eq(Mux(self.start, self.rounds, left - decode.begins))
        return m


def test_decode():
    simulate(Decoder(), __file__)


class Bytes(Bench):
    async def begin(self):
        await self.start()
        self.dut.room.value = 1
        self.words, self.short, self.gaps, self.random = [[] for _ in range(8)], 0, 0, rng()
        cocotb.start_soon(self.watch())
        return self

    async def watch(self):
        """Takes the bytes of outliers, with no room now and then."""
        while True:
            await FallingEdge(self.clk)
            self.dut.room.value = int(self.random.random() >= self.gaps)
            await RisingEdge(self.clk)
            self.short |= int(self.dut.short.value)
            for lane, queue in enumerate(self.words):
                if int(self.dut.pushes.value) >> lane & 1:
                    assert self.dut.room.value
                    queue.append(int(self.dut.words.value) >> 8 * lane & 0xFF)

    async def check(self, payload, count, book, random, gaps=0, **patterns):
        """Decodes ``count`` rounds, and compares with golden."""
        self.dut.book.value, self.dut.rounds.value, self.gaps, self.short = tables(book, True), count, gaps, 0
        for queue in self.words:
            queue.clear()
        u, outliers, x, error = huffman.decode(payload, 8 * count, book)
        await self.pulse("start")
        assert huffman.Error.EXCESS not in error
        run = await self.run({"i": chunks(payload, 8)}, {"o": count}, random, **patterns)
        assert self.dut.busy.value == 0
        got, flags = world.taken(run["o"], 12)
        self.equal(got.reshape(-1).tolist(), u.tolist(), f"symbols, {book}")
        self.equal(flags.reshape(-1).tolist(), outliers.tolist(), "outliers")
        for lane, queue in enumerate(self.words):
            own = x[lane::8][outliers[lane::8]]
            self.equal(queue, own.view(np.uint8).tolist(), f"bytes of outliers, lane {lane}")
        assert (self.short, self.dut.excess.value) == (huffman.Error.SHORT in error, 0)
        await self.pulse("next")
        return run, error


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def gives_goldens_symbols_whatever_the_ports_do(dut, idle, stall):
    random = rng()
    bench = await Bytes(dut).begin()
    for book in books(random, 1)[-2:]:
        for kind in KINDS:
            u, outliers, x = symbols(random, book, 6, kind)
            payload = interleave.interleave(*huffman.steps(u, outliers, x, book))
            await bench.check(payload, 6, book, random, gaps=0.3, idle=idle, stall=stall)


@cocotb.test
async def gives_goldens_symbols_for_all_books(dut):
    random = rng()
    bench = await Bytes(dut).begin()
    for book in books(random, 12):
        for kind in KINDS:
            u, outliers, x = symbols(random, book, 20, kind)
            payload = interleave.interleave(*huffman.steps(u, outliers, x, book))
            await bench.check(payload, 20, book, random)


@cocotb.test
async def ends_streams_that_are_garbage_or_cut(dut):
    """Every pattern means something, in any form of an escape; what is missing is zero."""
    random = rng()
    bench = await Bytes(dut).begin()
    for book in books(random, 8):
        for size in (0, 1, 7, 8, 9, 16, 40, 100):
            payload = random.bytes(size) if size % 2 else bytes(random.choice([0, 0xFF, 0xE3, 0xF1], size).tolist())
            _, error = await bench.check(payload, 30, book, random)
            assert error == huffman.Error.SHORT


@cocotb.test
async def takes_a_cycle_a_step(dut):
    random = rng()
    bench = await Bytes(dut).begin()
    book = books(random, 1)[2]
    for kind in KINDS:
        u, outliers, x = symbols(random, book, 40, kind)
        values, lengths = huffman.steps(u, outliers, x, book)
        run, _ = await bench.check(interleave.interleave(values, lengths), 40, book, random)
        assert run.cycles["o"][-1] - run.cycles["o"][0] <= len(values) - 1
        if kind == "coded":
            assert run.cycles["o"] == list(range(run.cycles["o"][0], run.cycles["o"][0] + 40))


@cocotb.test
async def leaves_what_is_behind_the_last_round(dut):
    random = rng()
    bench = await Bytes(dut).begin()
    for book in books(random, 3):
        u, outliers, x = symbols(random, book, 12, "seldom")
        payload = interleave.interleave(*huffman.steps(u, outliers, x, book))
        bench.dut.book.value, bench.dut.rounds.value = tables(book, True), 12
        await bench.pulse("start")
        sent, rests = chunks(payload + bytes(40), 8), [0]

        def ended(rests=rests):
            rests.append(rests[-1] + 1 if dut.busy.value == 0 and not dut.o__valid.value else 0)
            return rests[-1] > 2

        run = await bench.run({"i": sent}, {"o": 12}, random, until=ended)
        assert dut.busy.value == 0 and dut.excess.value == 1
        got, _ = world.taken(run["o"], 12)
        bench.equal(got.reshape(-1).tolist(), huffman.decode(payload, 96, book)[0].tolist(), "symbols")
        await bench.pulse("next")
        await bench.run({"i": sent[len(run.cycles["i"]) :]}, {}, random)
        await bench.check(payload, 12, book, random)
