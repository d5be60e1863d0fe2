"""Bench of Huffman encoding: golden's steps for books and escapes of all kinds."""

import cocotb
import numpy as np

from actcodec.golden.comet import huffman
from actcodec.rtl.comet.huffman_encode import Encode
from tb.comet import world
from tb.comet.books import KINDS, books, stream, tables
from tb.harness import PATTERNS, STALLS, pack, rng, simulate

END = 1 << 88
LATENCY = 2


def test_encode():
    simulate(Encode(), __file__)


class Encoder(world.Queues):
    shown = "words"

    def popped(self):
        return int(self.dut.pops.value)

    async def check(self, book, u, outliers, x, random, **patterns):
        self.dut.book.value = tables(book, False)
        for lane, queue in enumerate(self.queues):
            own = x[lane::8][outliers[lane::8]]
            queue[:] = own.view(np.uint8).tolist()
        values, lengths = huffman.steps(u, outliers, x, book)
        expected = [pack(map(int, row), 8) | pack(map(int, size - 1), 3) << 64
                    for row, size in zip(values, lengths.astype(int), strict=True)]
        sent = [*world.lanes(u.reshape(-1, 8), 12, outliers.reshape(-1, 8)), 1 << 104]
        run = await self.run({"i": sent}, {"o": len(expected) + 1}, random, **patterns)
        self.equal(run["o"][:-1], expected, f"steps, {book}")
        end = run["o"][-1]
        assert end >> 88 == 1 and not end & (1 << 64) - 1
        assert not any(self.queues)
        return run, values


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def gives_goldens_steps_whatever_the_ports_do(dut, idle, stall):
    random = rng()
    bench = await Encoder.started(dut)
    for book in books(random, 1)[-2:]:
        for kind in KINDS:
            await bench.check(book, *stream(random, book, 6, kind), random, idle=idle, stall=stall)


@cocotb.test
async def gives_goldens_steps_for_all_books(dut):
    random = rng()
    bench = await Encoder.started(dut)
    for book in books(random, 12):
        for kind in KINDS:
            await bench.check(book, *stream(random, book, 20, kind), random)


@cocotb.test
async def takes_a_cycle_a_step(dut):
    random = rng()
    bench = await Encoder.started(dut)
    for kind in KINDS:
        run, values = await bench.check(books(random, 1)[-1], *stream(random, books(random, 1)[2], 40, kind), random)
        assert run.cycles["o"] == list(range(LATENCY, LATENCY + len(values) + 1))
