"""Bench of the unpacker: a stream of words comes out in the pieces that were asked for."""

import cocotb
import numpy as np
import pytest
from amaranth.hdl import Module, Mux
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.packer import chunk_layout
from actcodec.rtl.common.unpacker import Unpacker
from tb.harness import PATTERNS, STALLS, Bench, chunks, pack, parameters, regress, rng, simulate

CONFIGURATIONS = [(1, 16, 16), *regress((4, 32, 40), (1, 32, 64))]


class Taker(wiring.Component):
    """An unpacker whose ``take`` comes as a stream, one entry a piece. Bytes beyond ``take`` are masked: they may
    change while a piece waits."""

    def __init__(self, granule, i_size, o_size):
        self.unpacker = Unpacker(granule, i_size, o_size)
        super().__init__({
            "i": In(stream.Signature(chunk_layout(i_size))),
            "takes": In(stream.Signature(range(o_size + 1))),
            "o": Out(stream.Signature(data.StructLayout({"data": data.ArrayLayout(8, o_size), "short": 1}))),
            "next": In(1), "excess": Out(1),
            "peek": Out(data.ArrayLayout(8, o_size)),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.unpacker = unpacker = self.unpacker
        wiring.connect(m, wiring.flipped(self.i), unpacker.i)
        m.d.comb += [
            unpacker.take.eq(self.takes.payload),
            self.o.valid.eq(self.takes.valid & unpacker.o.valid),
            self.takes.ready.eq(self.o.ready & unpacker.o.valid),
            unpacker.o.ready.eq(self.o.ready & self.takes.valid),
            self.o.payload.short.eq(unpacker.o.payload.short),
            self.peek.eq(unpacker.o.payload.data),
            unpacker.next.eq(self.next), self.excess.eq(unpacker.excess),
        ]
        for k, lane in enumerate(unpacker.o.payload.data):
            m.d.comb += self.o.payload.data[k].eq(Mux(k < self.takes.payload, lane, 0))
        return m


@pytest.mark.parametrize("target", ["cells", *regress("lut")])
@pytest.mark.parametrize("granule, i_size, o_size", CONFIGURATIONS)
def test_unpacker(granule, i_size, o_size, target):
    simulate(Taker(granule, i_size, o_size), __file__, target=target, granule=granule, i_size=i_size, o_size=o_size)


@pytest.mark.parametrize("name, sizes", [
    ("granule", (3, 12, 12)), ("granule", (-1, 16, 16)), ("i_size", (1, 24, 16)), ("i_size", (4, 4, 16)),
    ("i_size", (1, None, 16)), ("o_size", (4, 16, 18)), ("o_size", (1, 16, 0)), ("o_size", (1, 16, 2.0)),
])
def test_sizes_that_do_not_fit_are_refused(name, sizes):
    with pytest.raises(ValueError, match=name):
        Unpacker(*sizes)


def pieces(content, takes, size):
    """What the takes get."""
    result, at = [], 0
    for take in map(int, takes):
        piece = content[at : at + take]
        result.append(pack(piece, 8) | (len(piece) < take) << (8 * size))
        at += len(piece)
    return result


def draw(random, kind, length, granule, size):
    """Sizes of ``length`` takes."""
    most = size // granule
    return granule * {
        "any": random.integers(0, most + 1, length), "full": np.full(length, most), "none": np.zeros(length, int),
        "tiny": random.integers(0, 2, length), "nearly": random.integers(most - 1, most + 1, length),
        "zvc": np.resize([most, *random.integers(0, most // 2 + 1, 7)], length),
    }[kind]


KINDS = ("any", "full", "none", "tiny", "nearly", "zvc")


async def forget(dut, clk):
    dut.next.value = 1
    await cocotb.triggers.FallingEdge(clk)
    dut.next.value = 0


async def started(dut):
    bench = await Bench.started(dut)
    return bench


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), slow=list(PATTERNS))
async def gives_every_byte_in_order(dut, idle, slow):
    granule, i_size, o_size = parameters().values()
    random = rng()
    bench = await started(dut)
    for kind, stall in zip(KINDS, random.permutation(STALLS), strict=True):
        takes = draw(random, kind, 24, granule, o_size)
        total = max(int(takes.sum()), granule)
        takes = np.append(takes, 0 if takes.any() else granule)
        content = random.integers(0, 256, total, np.uint8)
        run = await bench.run({"i": chunks(content, i_size), "takes": takes.tolist()}, {"o": len(takes)}, random,
                              {"i": idle, "takes": slow}, str(stall))
        bench.equal(run["o"], pieces(content, takes, o_size), kind)
        assert dut.excess.value == 0
        await forget(dut, bench.clk)


@cocotb.test
@cocotb.parametrize(idle=["never", "half", "bursts"])
async def fills_a_short_stream_with_zeros(dut, idle):
    """Each length of the last word meets pieces that end before, at and behind it; then zeros come for ever."""
    granule, i_size, o_size = parameters().values()
    random = rng()
    bench = await started(dut)
    seen = set()
    for length in range(granule, 2 * i_size + 2 * granule, granule):
        for missing in (0, granule, o_size, 3 * o_size):
            content = random.integers(1, 256, length, np.uint8)
            takes = []
            while sum(takes) < length + missing:
                most = min(o_size, length + missing - sum(takes)) // granule
                takes.append(granule * int(random.integers(1, most + 1)))
            takes += [0, granule, 0, o_size]
            expected = pieces(content, takes, o_size)
            run = await bench.run({"i": chunks(content, i_size), "takes": takes}, {"o": len(takes)}, random, idle)
            bench.equal(run["o"], expected, f"{length} bytes, {missing} missing")
            assert (dut.excess.value, dut.i__ready.value) == (0, 0)
            assert int(dut.peek.value) == 0
            seen |= {(length % i_size, piece >> 8 * o_size) for piece in expected}
            await forget(dut, bench.clk)
    assert len(seen) == 2 * i_size // granule


@cocotb.test
async def forgets_the_rest_of_a_stream_that_is_too_long(dut):
    """``next`` comes before the last word, with it, and after it, each time with another stream behind."""
    granule, i_size, o_size = parameters().values()
    random = rng()
    bench = await started(dut)
    for length in range(1, 9):
        for accepted in range(length + 1):
            content, follower = (random.integers(1, 256, count * i_size - granule, np.uint8) for count in (length, 4))
            takes = [o_size] * (accepted * i_size // o_size)
            # Bring in some words, and take from them as much as there is of whole pieces.
            sent = chunks(content, i_size)
            run = await bench.run({"i": sent[:accepted], "takes": takes[:-1]}, {"o": len(takes[:-1])}, random) \
                if takes[:-1] else await bench.run({"i": sent[: min(accepted, 2)]}, {}, random)
            accepted = len(run.cycles["i"])
            bench.equal(run.beats.get("o", []), pieces(content, takes[:-1], o_size), "before")
            assert dut.excess.value == 1
            # Let another word arrive in the very cycle of the pulse, every other time.
            with_word = length % 2 and accepted < length and dut.i__ready.value == 1
            if with_word:
                dut.i__valid.value, dut.i__payload.value = 1, sent[accepted]
            await forget(dut, bench.clk)
            dut.i__valid.value = 0
            rest = sent[accepted + bool(with_word) :]
            takes = draw(random, "any", 100, granule, o_size)
            expected = pieces(follower, takes, o_size)
            run = await bench.run({"i": rest + chunks(follower, i_size), "takes": takes.tolist()},
                                  {"o": len(takes)}, random, {"i": "half"})
            bench.equal(run["o"], expected, f"{length} words, {accepted} of them before next")
            await forget(dut, bench.clk)


@cocotb.test
async def keeps_up_with_its_input(dut):
    """Nothing but the bytes' arrival limits the pieces, and nothing but the pieces limits the words."""
    _, i_size, o_size = parameters().values()
    random = rng()
    bench = await started(dut)
    for size in {i_size, min(o_size, i_size + i_size // 4)}:
        takes = np.full(200, size)
        content = random.integers(0, 256, int(takes.sum()), np.uint8)
        run = await bench.run({"i": chunks(content, i_size), "takes": takes.tolist()}, {"o": 200}, random)
        bench.equal(run["o"], pieces(content, takes, o_size), size)
        # A piece comes in the cycle behind that of the word with which there are enough bytes for any piece.
        words, arrival = -(-len(content) // i_size), []
        for k in range(200):
            there = min(-(-(size * k + o_size) // i_size), words)
            arrival.append(max(there, arrival[-1] + 1) if arrival else there)
        assert run.cycles["o"] == arrival
        await forget(dut, bench.clk)


@cocotb.test
async def is_valid_however_much_is_taken(dut):
    """Not before there are enough bytes for any piece, and then for all pieces at once."""
    granule, i_size, o_size = parameters().values()
    random = rng()
    bench = await started(dut)
    sent = chunks(random.integers(0, 256, 8 * i_size, np.uint8), i_size)
    enough = -(-o_size // i_size)
    dut.takes__valid.value = 1
    for words in (enough - 1, 1):
        assert dut.o__valid.value == 0
        await bench.run({"i": sent[:words]}, {}, random)
        await cocotb.triggers.FallingEdge(dut.clk)
    for take in (0, granule, o_size):
        dut.takes__payload.value = take
        await cocotb.triggers.Timer(1, "ps")
        assert dut.o__valid.value == 1
    # Down to a granule less than that.
    run = await bench.run({"takes": [enough * i_size - o_size + granule]}, {"o": 1}, random)
    dut.takes__payload.value, dut.takes__valid.value = 0, 1
    await cocotb.triggers.Timer(1, "ps")
    assert len(run["o"]) == 1 and dut.o__valid.value == 0


@cocotb.test
async def gives_blocks_of_256_bytes_in_eight_cycles(dut):
    """Blocks of zvc with words of 4 bytes: rows of up to 32 bytes, the mask of 8 bytes with the row before it."""
    _, i_size, o_size = parameters().values()
    if (i_size, o_size) != (32, 40):
        return
    random = rng()
    bench = await started(dut)
    takes = []
    for index in range(64):
        rows = np.full(8, 32)
        for _ in range(2 if index < 48 else int(random.integers(2, 30))):  # words that are zero
            rows[random.choice(np.flatnonzero(rows))] -= 4
        if index < 16:  # both zeros in one row
            rows[:] = 32
            rows[index % 8] = 24
        rows[7] += 8
        takes += rows.tolist()
    content = random.integers(0, 256, sum(takes) + 4 * i_size, np.uint8)
    # Words come first, so that the buffer is full.
    sent = chunks(content, i_size)
    await bench.run({"i": sent[:3]}, {}, random)
    takes += [i_size] * 4
    run = await bench.run({"i": sent[3:], "takes": takes}, {"o": len(takes)}, random)
    bench.equal(run["o"], pieces(content, takes, o_size), "pieces")
    assert run.cycles["o"] == list(range(len(takes)))


@cocotb.test
async def forgets_everything_at_reset(dut):
    granule, i_size, o_size = parameters().values()
    random = rng()
    bench = await started(dut)
    for fill in range(1, 12):
        content = random.integers(0, 256, fill * i_size - granule, np.uint8)
        takes = draw(random, "any", 30, granule, o_size)
        await bench.run({"i": chunks(content, i_size)}, {"o": None}, random, until=lambda: dut.i__ready.value == 0)
        if fill % 2:  # also while it drops what is left of a stream
            await forget(dut, bench.clk)
        await bench.reset()
        content = random.integers(0, 256, 4 * i_size, np.uint8)
        run = await bench.run({"i": chunks(content, i_size), "takes": takes.tolist()}, {"o": 30}, random)
        bench.equal(run["o"], pieces(content, takes, o_size), f"after reset at {fill} words")
