"""Bench of the way of outliers: bytes keep their values and lanes in both directions."""

import cocotb
import numpy as np
from cocotb.triggers import FallingEdge, ReadOnly

from actcodec.rtl.comet.outliers import DEPTH, Outliers
from tb.harness import SEED, Bench, pack, rng, simulate


def test_outliers():
    simulate(Outliers(), __file__)


async def prepared(dut, decompress):
    bench = Bench(dut)
    await bench.start()
    dut.decompress.value, dut.clear.value = decompress, 1
    await FallingEdge(dut.clk)
    dut.clear.value = 0
    return bench


def sectors(random, n, share):
    """Sizes, outlier flags [n, 8], bytes [n, 4, 8]."""
    counts = np.where(random.random(n) < 0.5, 8, random.integers(0, 9, n))
    flags = (random.random((n, 8)) < share) & (np.arange(8) < counts[:, None])
    return counts, flags, random.integers(0, 256, (n, 4, 8))


@cocotb.test
@cocotb.parametrize(share=[0.05, 0.5, 1.0], rest=[0, 0.5, 0.9])
async def brings_bytes_of_sectors_to_the_lanes_of_rounds(dut, share, rest):
    random = rng()
    await prepared(dut, 0)
    queues, passed, full = [[] for _ in range(8)], 0, set()
    for count, mask, rows in zip(*sectors(random, 60, share), strict=True):
        byte = 0 if mask.any() else 4
        while byte < 4:
            offer = random.random() >= rest
            dut.sector_i__valid.value = int(offer)
            dut.sector_i__payload.value, dut.mask.value = pack(map(int, rows[byte]), 8), pack(map(int, mask), 1)
            pops = [lane for lane in range(8) if queues[lane] and random.random() < 0.4 * (1 - rest)]
            dut.pops.value = sum(1 << lane for lane in pops)
            await ReadOnly()
            for lane in pops:
                got, expected = int(dut.bytes_o.value) >> 8 * lane & 0xFF, queues[lane].pop(0)
                assert got == expected, f"SEED={SEED}: lane {lane}: expected {expected}, got {got}"
            if offer and dut.sector_i__ready.value == 1:
                for k in np.flatnonzero(mask):
                    queues[(k + passed) % 8].append(int(rows[byte][k]))
                byte += 1
            full |= {len(queue) for queue in queues}
            await FallingEdge(dut.clk)
        dut.sector_i__valid.value, dut.pops.value = 0, 0
        await move(dut, count)
        passed += int(count)
    assert max(full) <= DEPTH and (share < 1 or DEPTH in full)


async def move(dut, count):
    dut.moves.value, dut.count.value = 1, int(count)
    await FallingEdge(dut.clk)
    dut.moves.value = 0


@cocotb.test
@cocotb.parametrize(share=[0.05, 0.5, 1.0], rest=[0, 0.5, 0.9])
async def brings_bytes_of_rounds_to_the_lanes_of_sectors(dut, share, rest):
    random = rng()
    await prepared(dut, 1)
    counts, flags, octets = sectors(random, 60, share)
    # What the lanes of the rounds push, round after round, four bytes of each lane that has an outlier.
    starts = np.cumsum(counts) - counts
    pushes, number = [], {}
    for sector, (mask, start) in enumerate(zip(flags, starts, strict=True)):
        for k in np.flatnonzero(mask):
            number.setdefault(int(start + k) // 8, []).append((int(start + k) % 8, octets[sector, :, k]))
    for _, lanes in sorted(number.items()):
        pushes += [({lane: int(octet[byte]) for lane, octet in lanes}) for byte in range(4)]
    ends = np.cumsum([4 * (n in number) for n in range(int(counts.sum()) // 8 + 2)])  # pushes up to each round's last
    pushed, sector, byte = 0, 0, 0
    for _ in range(20000):
        if sector == len(counts):
            break
        mask, count = flags[sector], counts[sector]
        wanted = mask.any() and byte < 4
        there = pushed >= ends[(starts[sector] + max(count, 1) - 1) // 8]
        take = wanted and there and random.random() >= rest
        dut.mask.value, dut.take.value = pack(map(int, mask), 1), int(take)
        moves = not wanted and (there or not count)
        dut.moves.value, dut.count.value = int(moves), int(count)
        push = pushed < len(pushes) and random.random() < 0.7 and dut.room.value == 1  # of registers alone
        lanes = pushes[pushed] if push else {}
        dut.pushes.value = sum(1 << lane for lane in lanes)
        dut.bytes_i.value = sum(value << 8 * lane for lane, value in lanes.items())
        pushed += push
        await ReadOnly()
        got = int(dut.sector_o.value)
        if take:
            for k in np.flatnonzero(mask):
                assert got >> 8 * int(k) & 0xFF == octets[sector, byte, k], f"SEED={SEED}: sector {sector}, lane {k}"
            byte += 1
        if moves:
            sector, byte = sector + 1, 0
        await FallingEdge(dut.clk)
        dut.pushes.value, dut.take.value, dut.moves.value = 0, 0, 0
    assert (sector, pushed) == (len(counts), len(pushes)), "it does not go on"
