"""Bench of the counter of segments: golden's, of every share, in both orders, a row in every cycle."""

import cocotb
import numpy as np
from amaranth.lib import data
from cocotb.triggers import FallingEdge, RisingEdge

from actcodec.golden.division import view as views
from actcodec.rtl.division.segments import Place, Segments
from tb.division.tensors import Share, layout_of, shapes
from tb.harness import PATTERNS, SEED, Bench, rng, simulate

PLACE = data.Layout.cast(Place)
FIRST = 4  # cycles from start to the first row


def test_segments():
    simulate(Segments(), __file__)


def fields(share, decompress):
    """What has to be said of each row in turn; None where it means nothing."""
    view, blocks = share.view, share.blocks
    segments = views.segments(view)
    begins, void = share.places()
    number = np.arange(void.size)
    start = np.maximum.accumulate(np.where(begins | (void & ~np.roll(void, 1)), number, 0))
    ends = np.append(start[1:] != start[:-1], True)
    sector = segments.sector[blocks].reshape(-1)
    rows = [{
        "begins": int(begins[k]), "ends": int(ends[k]), "void": int(void[k]), "index": int(k - start[k]),
        "narrow": int(sector[k] == view.sectors - 1 and view.tail < 8) if not void[k] else None,
        "last": int(k == number[-1]),
    } for k in number]
    if decompress:
        return [one | {"narrow": None, "turn": None} for one in rows]
    turn = {0: lambda _: 0, 1: lambda _: 1, 2: lambda k: min(4, len(blocks) - k // 32 * 4) - 1}[layout_of(view)]
    return [rows[k] | {"turn": turn(place)} for place, k in enumerate(share.order)]


class Counter(Bench):
    async def tensor(self, random, share, decompress, rest):
        """Lets the rows pass, at times that a pattern chooses."""
        dut, resting = self.dut, PATTERNS[rest](random)
        dut.config.value = share.config()
        dut.layout.value = 0 if decompress else layout_of(share.view)
        dut.start.value = 1
        await FallingEdge(self.clk)
        dut.start.value = 0
        for waited in range(FIRST - 1):
            assert dut.ready.value == 0, waited
            await FallingEdge(self.clk)
        wanted = fields(share, decompress)
        for index, row in enumerate(wanted):
            while next(resting):
                await FallingEdge(self.clk)
            assert dut.ready.value == 1, f"SEED={SEED} {share} row {index} of {len(wanted)}"
            dut.next.value = 1
            await RisingEdge(self.clk)
            place = PLACE.from_bits(int(dut.place.value))
            got = {name: int(place[name]) for name in PLACE.members}
            assert all(got[name] == value for name, value in row.items() if value is not None), (
                f"SEED={SEED} {share} decompress={decompress} index {index}: expected {row}, got {got}")
            await FallingEdge(self.clk)
            dut.next.value = 0
        assert dut.ready.value == 0, share


@cocotb.test
@cocotb.parametrize(rest=["never", "half"])
async def knows_the_place_of_every_row(dut, rest):
    random = rng()
    bench = Counter(dut)
    await bench.start()
    layouts, lengths = set(), set()
    # One to five sectors in a row, in tiles and without; without, one sector is a tensor of at most eight values, or a
    # row of a descriptor.
    directed = [(1, 2, 8, 8 * sectors) for sectors in range(1, 6)] + [(3, 8 * sectors + 1) for sectors in range(1, 5)]
    directed += [(1, values) for values in (1, 3, 7, 8)]
    directed += [views.View(False, rows, width, 3, 2) for rows in (7, 8, 33, 64) for width in (1, 7, 8)]
    for shape in directed + shapes(random, 150, 2000):
        view = views.view(shape)
        units = 1 if shape in directed else int(random.choice([1, 1, 2, 3, 4, 8]))
        share = Share(view, units=units, unit=int(random.integers(units)))
        if len(share.blocks):
            for decompress in (False, True):
                await bench.tensor(random, share, decompress, rest)
                layouts.add((view.tiled, layout_of(view), decompress))
            lengths.add((view.tiled, min(view.sectors, 12)))
    assert len(layouts) == 8
    assert {length for tiled, length in lengths if tiled} >= {1, 2, 3, 4}
    assert {length for tiled, length in lengths if not tiled} >= {1, 2, 3, 4, 5}


@cocotb.test
async def knows_the_group_of_any_unit_however_long_a_row_is(dut):
    """T up to 2^21 - 1, and groups of eight units that begin anywhere in it."""
    random = rng()
    bench = Counter(dut)
    await bench.start()
    for bit in range(1, 22):
        for _ in range(3):
            sectors = int(random.integers(1 << bit - 1, 1 << bit)) + (bit == 1)
            # The unit's own three groups; a row of the view ends here and there.
            first, stride = (int(random.integers(sectors)) for _ in range(2))
            phases = [(first + group * stride) % sectors for group in range(3)]
            share = Share(views.View(False, 12, 64, 1, 12), units=1)
            dut.config.value = share.config(sectors=sectors, phase=first, stride=stride, tail=5)
            dut.layout.value = 0
            dut.start.value = 1
            await FallingEdge(bench.clk)
            dut.start.value = 0
            for _ in range(FIRST - 1):
                await FallingEdge(bench.clk)
            dut.next.value = 1
            index = 0
            for row in range(96):
                await RisingEdge(bench.clk)
                at = (phases[row // 32] + row % 32) % sectors
                index = 0 if row % 8 == 0 or at == 0 else index + 1
                place = PLACE.from_bits(int(dut.place.value))
                got = [int(place[name]) for name in ("index", "begins", "narrow", "ends")]
                narrow = at == sectors - 1
                assert got == [index, index == 0, narrow, narrow or row % 8 == 7], (
                    f"SEED={SEED} T={sectors} phase={first} stride={stride} row {row}: {got}")
                await FallingEdge(bench.clk)
            dut.next.value = 0
