"""What the benches of block coders, nibble and rice, share: a coder with its surroundings, and its driver."""

from cocotb.triggers import ClockCycles, FallingEdge

from actcodec.golden.jpegact import bits, nibble, rice
from tb.harness import Bench, beats

FAULTS = bits.Fault.HEADER | bits.Fault.LENGTH | bits.Fault.PADDING


class Coder(Bench):
    """The bench with the controls of a coder."""

    def __init__(self, dut, golden):
        super().__init__(dut)
        self.golden = golden

    async def pulse(self, name):
        getattr(self.dut, name).value = 1
        await FallingEdge(self.clk)
        getattr(self.dut, name).value = 0

    async def begin(self, decompress, table, blocks):
        self.dut.decompress.value, self.dut.table.value = decompress, table.word
        await self.pulse("start")

    async def compress(self, blocks, table, random, **patterns):
        """Compresses one tensor and compares: eight chunks a block, with zeros behind their ends."""
        await self.begin(0, table, len(blocks))
        payload, sizes = self.golden.encode(blocks, table)
        what = f"payload of {len(blocks)} blocks, table {table.word:#x}"
        run = await self.run({"i": lines(blocks)}, {"chunks": 8 * len(blocks)}, random, **patterns)
        counts = [beat >> 128 & 31 for beat in run["chunks"]]
        assert not any((beat & (1 << 128) - 1) >> 8 * count
                       for beat, count in zip(run["chunks"], counts, strict=True)), f"{what}: bytes behind a chunk"
        assert [beat >> 133 for beat in run["chunks"]] == [0] * (8 * len(blocks) - 1) + [1]
        got = [b"".join((beat & (1 << 8 * count) - 1).to_bytes(count, "little") for beat, count in zip(
            run["chunks"][k : k + 8], counts[k : k + 8], strict=True)) for k in range(0, len(counts), 8)]
        self.equal([block.hex() for block in got], [block.hex() for block in parts(payload, sizes)], what)
        return run

    async def decompress(self, payload, count, table, random, short=False, **patterns):
        """Decompresses one tensor, malformed or not, and compares values and faults; the coder gets rows, with
        anything behind a block's end, and empty ones for what is missing."""
        await self.begin(1, table, count)
        expected = self.golden.recover(payload, count, table)
        sources = {"rows": rows(self.golden, payload, count, random)}
        run = await self.run(sources, {"o": 8 * count}, random, **patterns)
        what = f"{count} blocks of {bytes(payload).hex()[:200]}, table {table.word:#x}"
        self.equal(run["o"], lines(expected.blocks), what)
        await ClockCycles(self.clk, 1)
        await FallingEdge(self.clk)
        assert self.dut.o__valid.value == 0
        faults = 0
        for fault in expected.faults:
            faults |= int(fault)
        got = int(self.dut.faults.value)
        assert got == faults & FAULTS, f"{what}: faults {got}, not {faults & FAULTS}"
        return run

    async def both(self, blocks, table, random, **patterns):
        await self.compress(blocks, table, random, **patterns)
        await self.decompress(self.golden.encode(blocks, table)[0], len(blocks), table, random, **patterns)


def tables(random, golden, straight=None):
    """Any table that an encoder takes: of rice, no sum of a k, but the first, and of the last e above 8."""
    if golden is nibble:
        word = int.from_bytes(random.bytes(11), "little") & (1 << 81) - 1
        return nibble.Table.of(word if straight is None else word & (1 << 80) - 1 | straight << 80)
    e = sorted(random.integers(0, 8, 4).tolist())
    k = [int(random.integers(8)), *random.integers(0, 9 - max(e[3], 1), 14).tolist()]
    straight = bool(random.integers(2)) if straight is None else straight
    return rice.Table(k, int(random.integers(17)), e, straight)


def rows(golden, payload, count, random):
    """What a splitter gives: blocks in rows; nothing is missing here but at the end, where zeros stand for it."""
    payload, at, result = bytes(payload), 0, []
    for _ in range(count):
        size = 1 + (golden._STEP[payload[at]] - 1 if at < len(payload) else 0)
        block = payload[at : at + size].ljust(size, b"\0")
        at += size
        block = block[:65] + random.bytes(max(0, 65 - size))
        result += [int.from_bytes(block[1 + 8 * k :][:8], "little") | (block[0] if k == 0 else int(
            random.integers(256))) << 64 for k in range(8)]
    return result[:-1] + [result[-1] | 1 << 72]


def lines(blocks):
    """Blocks [n, 64] as beats of 8 values."""
    return beats(blocks.reshape(-1, 8), 8)


def parts(payload, sizes):
    """The bytes of each block."""
    ends = sizes.cumsum()
    return [payload[end - size : end].tobytes() for end, size in zip(ends, sizes, strict=True)]
