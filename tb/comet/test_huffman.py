"""Bench of Huffman coding: golden's steps for books and escapes of all kinds, and golden's symbols of streams of all
kinds, those that are garbage among them."""

import cocotb
import numpy as np
from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from cocotb.triggers import ClockCycles, FallingEdge, RisingEdge

from actcodec.golden.comet import huffman, interleave
from actcodec.rtl.comet.book import tables as layout
from actcodec.rtl.comet.huffman import Huffman, steps
from actcodec.rtl.comet.payloads import rounds
from actcodec.rtl.common.packer import chunk_layout
from tb.comet import walks
from tb.comet.books import KINDS, books, tables
from tb.comet.books import stream as symbols
from tb.harness import PATTERNS, STALLS, chunks, pack, rng, simulate

LATENCY = 3  # cycles from a round to its first step
TURN = 3  # cycles from a change of direction to the first round


class Coder(wiring.Component):
    """The unit, which is told the number of rounds all at once."""

    rounds_i: In(stream.Signature(rounds))
    steps_o: Out(stream.Signature(steps))
    bytes_i: In(stream.Signature(chunk_layout(8)))
    rounds_o: Out(stream.Signature(rounds))
    decompress: In(1)
    book: In(layout)
    rounds: In(32)
    start: In(1)
    next: In(1)
    busy: Out(1)
    short: Out(1)
    excess: Out(1)
    words_i: In(data.ArrayLayout(8, 8))
    pops: Out(8)
    words_o: Out(data.ArrayLayout(8, 8))
    pushes: Out(8)
    room: In(1)

    def elaborate(self, platform):
        m = Module()
        m.submodules.huffman = unit = Huffman()
        for port in ("rounds_i", "bytes_i"):
            wiring.connect(m, wiring.flipped(getattr(self, port)), getattr(unit, port))
        for port in ("steps_o", "rounds_o"):
            wiring.connect(m, getattr(unit, port), wiring.flipped(getattr(self, port)))
        m.d.comb += [getattr(unit, name).eq(getattr(self, name))
                     for name in ("decompress", "book", "start", "next", "words_i", "room")]
        m.d.comb += [getattr(self, name).eq(getattr(unit, name))
                     for name in ("busy", "short", "excess", "pops", "words_o", "pushes")]
        left = Signal(32)
        m.d.comb += [unit.some.eq(left.any()), unit.ended.eq(~left.any())]
        m.d.sync += left.eq(Mux(self.start, self.rounds, left - unit.begins))
        return m


def test_huffman():
    simulate(Coder(), __file__)


class Bytes(walks.Queues):
    """Gives and takes the bytes of outliers."""

    shown = "words_i"

    async def start(self):
        await super().start()
        self.dut.room.value = 1
        self.outputs, self.short, self.gaps, self.random = [[] for _ in range(8)], 0, 0, rng()
        cocotb.start_soon(self.watch())

    def popped(self):
        return int(self.dut.pops.value)

    async def watch(self):
        """Takes bytes, with no room now and then."""
        while True:
            await FallingEdge(self.clk)
            self.dut.room.value = int(self.random.random() >= self.gaps)
            await RisingEdge(self.clk)
            self.short |= int(self.dut.short.value)
            for lane, queue in enumerate(self.outputs):
                if int(self.dut.pushes.value) >> lane & 1:
                    assert self.dut.room.value
                    queue.append(int(self.dut.words_o.value) >> 8 * lane & 0xFF)

    async def towards(self, decompress, book):
        self.dut.decompress.value, self.dut.book.value = decompress, tables(book, decompress)
        await ClockCycles(self.clk, TURN)
        await FallingEdge(self.clk)

    async def encodes(self, book, u, outliers, x, random, **patterns):
        """Codes a stream, and compares with golden."""
        await self.towards(0, book)
        for lane, queue in enumerate(self.queues):
            queue[:] = x[lane::8][outliers[lane::8]].view(np.uint8).tolist()
        values, lengths = huffman.steps(u, outliers, x, book)
        expected = [pack(map(int, row), 8) | pack(map(int, size - 1), 3) << 64
                    for row, size in zip(values, lengths.astype(int), strict=True)]
        sent = [*walks.lanes(u.reshape(-1, 8), 12, outliers.reshape(-1, 8)), 1 << 104]
        run = await self.run({"rounds_i": sent}, {"steps_o": len(expected) + 1, "rounds_o": None}, random, **patterns)
        self.equal(run["steps_o"][:-1], expected, f"steps, {book}")
        end = run["steps_o"][-1]
        assert end >> 88 == 1 and not end & (1 << 64) - 1
        assert not any(self.queues) and not run["rounds_o"]
        return run, values

    async def decodes(self, payload, count, book, random, gaps=0, **patterns):
        """Decodes ``count`` rounds, and compares with golden."""
        await self.towards(1, book)
        self.dut.rounds.value, self.gaps, self.short = count, gaps, 0
        for queue in self.outputs:
            queue.clear()
        u, outliers, x, error = huffman.decode(payload, 8 * count, book)
        await self.pulse("start")
        assert huffman.Error.EXCESS not in error
        run = await self.run({"bytes_i": chunks(payload, 8)}, {"rounds_o": count, "steps_o": None}, random, **patterns)
        assert self.dut.busy.value == 0 and not run["steps_o"]
        got, flags = walks.unpack(run["rounds_o"], 12)
        self.equal(got.reshape(-1).tolist(), u.tolist(), f"symbols, {book}")
        self.equal(flags.reshape(-1).tolist(), outliers.tolist(), "outliers")
        for lane, queue in enumerate(self.outputs):
            own = x[lane::8][outliers[lane::8]]
            self.equal(queue, own.view(np.uint8).tolist(), f"bytes of outliers, lane {lane}")
        assert (self.short, self.dut.excess.value) == (huffman.Error.SHORT in error, 0)
        await self.pulse("next")
        return run, error

    async def both(self, book, u, outliers, x, random, gaps=0, **patterns):
        """Codes a stream and decodes it, one of them first."""
        for decompress in random.permutation(2):
            if decompress:
                payload = interleave.interleave(*huffman.steps(u, outliers, x, book))
                await self.decodes(payload, u.size // 8, book, random, gaps, **patterns)
            else:
                await self.encodes(book, u, outliers, x, random, **patterns)


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def gives_goldens_steps_and_symbols_whatever_the_ports_do(dut, idle, stall):
    random = rng()
    bench = await Bytes.started(dut)
    for book in books(random, 1)[-2:]:
        for kind in KINDS:
            await bench.both(book, *symbols(random, book, 6, kind), random, 0.3, idle=idle, stall=stall)


@cocotb.test
async def gives_goldens_steps_and_symbols_for_all_books(dut):
    random = rng()
    bench = await Bytes.started(dut)
    for book in books(random, 12):
        for kind in KINDS:
            await bench.both(book, *symbols(random, book, 20, kind), random)


@cocotb.test
async def ends_streams_that_are_garbage_or_cut(dut):
    """Every pattern means something, in any form of an escape; what is missing is zero."""
    random = rng()
    bench = await Bytes.started(dut)
    for book in books(random, 8):
        for size in (0, 1, 7, 8, 9, 16, 40, 100):
            payload = random.bytes(size) if size % 2 else bytes(random.choice([0, 0xFF, 0xE3, 0xF1], size).tolist())
            _, error = await bench.decodes(payload, 30, book, random)
            assert error == huffman.Error.SHORT


@cocotb.test
async def encodes_a_step_a_cycle(dut):
    random = rng()
    bench = await Bytes.started(dut)
    book = books(random, 1)[2]
    for kind in KINDS:
        run, values = await bench.encodes(book, *symbols(random, book, 40, kind), random)
        assert run.cycles["steps_o"] == list(range(LATENCY, LATENCY + len(values) + 1))


@cocotb.test
async def decodes_a_step_a_cycle(dut):
    random = rng()
    bench = await Bytes.started(dut)
    book = books(random, 1)[2]
    for kind in KINDS:
        u, outliers, x = symbols(random, book, 40, kind)
        values, lengths = huffman.steps(u, outliers, x, book)
        run, _ = await bench.decodes(interleave.interleave(values, lengths), 40, book, random)
        cycles = run.cycles["rounds_o"]
        assert cycles[-1] - cycles[0] <= len(values) - 1
        if kind == "coded":
            assert cycles == list(range(cycles[0], cycles[0] + 40))


@cocotb.test
async def leaves_what_is_behind_the_last_round(dut):
    random = rng()
    bench = await Bytes.started(dut)
    for book in books(random, 3):
        u, outliers, x = symbols(random, book, 12, "seldom")
        payload = interleave.interleave(*huffman.steps(u, outliers, x, book))
        await bench.towards(1, book)
        bench.dut.rounds.value = 12
        await bench.pulse("start")
        sent, rests = chunks(payload + bytes(40), 8), [0]

        def ended(rests=rests):
            rests.append(rests[-1] + 1 if dut.busy.value == 0 and not dut.rounds_o__valid.value else 0)
            return rests[-1] > 2

        run = await bench.run({"bytes_i": sent}, {"rounds_o": 12}, random, until=ended)
        assert dut.busy.value == 0 and dut.excess.value == 1
        got, _ = walks.unpack(run["rounds_o"], 12)
        bench.equal(got.reshape(-1).tolist(), huffman.decode(payload, 96, book)[0].tolist(), "symbols")
        await bench.pulse("next")
        await bench.run({"bytes_i": sent[len(run.cycles["bytes_i"]) :]}, {}, random)
        await bench.decodes(payload, 12, book, random)
