"""Bench of RLE's encoder alone: golden's bytes, whoever waits; most of all for a block's 64th symbol."""

import cocotb
import numpy as np
from cocotb.triggers import FallingEdge, Timer

from actcodec.golden.jpegact import rle
from actcodec.golden.jpegact.zigzag import ZIGZAG
from actcodec.rtl.jpegact.rle import WORD, Encoder
from tb.harness import PATTERNS, Bench, rng, simulate

PLACES = [divmod(int(place), 8) for place in ZIGZAG]  # row and column
LATE = 4000  # cycles for each block, at most


def test_rle():
    simulate(Encoder(), __file__)


def blocks(random, count):
    """Blocks with 64 symbols, each of any size, and one in four with few."""
    magnitude = random.integers(1, 2 ** random.integers(1, 8, (count, 1)), (count, 64))
    q = np.where(random.random((count, 64)) < 0.5, magnitude, -magnitude)
    return np.where((np.arange(count)[:, None] % 4 < 3) | (random.random((count, 64)) < 0.3), q, 0).astype(np.int8)


class Surroundings(Bench):
    """What a coder is to its encoder: it keeps values and words."""

    async def code(self, q, lines, words, ends):
        """The blocks' bytes, and how often a line came while coefficient 63 of the block before was waiting. Generators
        tell in each cycle whether lines, words and ends have to wait."""
        dut, shape = self.dut, q.reshape(-1, 8, 8)
        await self.pulse("start")
        values, mask = np.zeros((8, 8), int), 0
        stored, results, come, symbols, early = {}, [], 0, 0, 0
        limit = LATE * (len(q) + 1)
        for _ in range(limit):
            column, row = int(dut.column.value), int(dut.row.value)
            value = values[row.bit_length() - 1, column.bit_length() - 1] if column and row else 0
            dut.mask.value, dut.value.value = mask, int(value) & 255
            dut.may.value, dut.free.value = int(not next(words)), int(not next(ends))
            await Timer(100, "ps")
            comes = bool(dut.ready.value) and come < 8 * len(q) and not next(lines)
            dut.line.value, dut.last.value = int(comes), int(come == 8 * len(q) - 1)
            await Timer(100, "ps")
            store, pick = bool(dut.store.value), int(dut.pick.value)
            if store and dut.may.value:
                stored[int(dut.line_of.value), int(dut.word_of.value)] = int(dut.word.value)
            if dut.ends.value and dut.free.value and (dut.may.value or not store):
                bits = "".join(f"{stored[place]:0{WORD}b}"[::-1] for place in sorted(stored))
                length = int(dut.length.value)
                results.append(int(bits[: 8 * length], 2).to_bytes(length, "big").hex())
                assert bool(dut.closing.value) == (len(results) == len(q)), f"block {len(results)}: closing"
                stored = {}
            early += comes and come % 8 == 0 and symbols == 63 and not pick
            mask &= ~pick
            if pick:
                symbols = 1 if pick == 1 else symbols + 1
            if comes:
                block, j = divmod(come, 8)
                values[:, j] = shape[block][:, j]
                mask |= sum(1 << place for place, at in enumerate(PLACES) if at[1] == j and (values[at] or not place))
                come += 1
            if len(results) == len(q):
                return results, early
            await FallingEdge(self.clk)
        raise AssertionError(f"no end after {limit} cycles: {len(results)} of {len(q)} blocks")


@cocotb.test
@cocotb.parametrize(stall=[*PATTERNS])
async def codes_blocks_of_64_symbols(dut, stall):
    random = rng()
    bench = await Surroundings.started(dut)
    seen, count = 0, {"seldom": 300, "bursts": 150}.get(stall, 60)  # so that no seed goes without an early line
    for idle in ("never", "half"):
        q = blocks(random, count)
        waits = [PATTERNS[name](np.random.default_rng(random.integers(2**63))) for name in (idle, stall, stall)]
        results, early = await bench.code(q, *waits)
        bench.equal(results, [rle.encode(block[None])[0].tobytes()[1:].hex() for block in q], f"blocks, {idle}")
        seen += early
    assert seen or stall == "never", "no line came early"
