"""Bench of DIVISION's encoder: its bytes are golden's for every shape, share and setting, at 8.00 cycles a block."""

from pathlib import Path

import cocotb
import numpy as np
import pytest

from actcodec.golden.division import codec, table
from actcodec.golden.division import view as views
from actcodec.golden.jpegact import sfpr
from actcodec.rtl.division.encode import Encode
from tb.division.tensors import SIZES, Share, beat, sector_order, shapes, values
from tb.division.ways import (  # noqa: F401 - tests that both directions have
    READY,
    equals_golden_for_every_kind_of_tensor,
    equals_golden_whatever_the_ports_do,
    forgets_everything_at_reset,
    refuses_what_cannot_be,
    started,
)
from tb.harness import after, regress, rng, simulate

DATA = Path(__file__).resolve().parents[2] / "actcodec" / "data" / "resnet20.npz"
LATENCY = (12, 19, 33)  # from the first row in to the first chunk, by layout


@pytest.mark.parametrize("bits", [SIZES, *regress(((3,),))])
def test_encode(bits):
    simulate(Encode(bits), __file__, bits=bits, way="encode")


@pytest.mark.parametrize("bits", [(), (0,), (5,), (2, 8), 2, ("2",), (True,), None])
def test_other_bits_are_refused(bits):
    with pytest.raises(ValueError, match="bits must be one or more of 1, 2, 3 and 4"):
        Encode(bits)


@pytest.mark.parametrize("shape", [(1, 2, 16, 8), (2, 1, 24, 13), (1, 3, 8, 17), (2, 2, 16, 33), (1, 1, 40, 80)])
def test_the_order_of_this_bench_is_that_of_golden(shape):
    view = views.view(shape)
    sectors = np.repeat(np.arange(view.rows * view.sectors).reshape(view.rows, -1), 8, axis=1)
    rows = views.split(sectors[:, : view.width], view)[:, :, 0].reshape(-1)
    order = sector_order(min(view.sectors, 3) - 1, view.blocks)
    assert np.array_equal(rows[order], views.order(view))


@cocotb.test
async def averages_every_segment_and_tail(dut):
    """Flat rows of 1 to 18 sectors and every number of values in the last one: segments of 1 to 8 sectors, all c.

    Rows of one sector have eight bases in a block, which all wait until it is complete.
    """
    random = rng()
    bench = await started(dut)
    lengths, fronts = set(), set()
    for sectors in (*range(1, 11), 12, 15, 18):  # of 12, the fourth group begins with a row
        for tail in range(1, 9):
            rows = 10 if sectors == 12 else int(random.integers(2, 13))
            view = views.View(False, rows, 8 * sectors - 8 + tail, 1, 13)
            segments = views.segments(view)
            lengths |= set(np.diff(segments.start).tolist())
            fronts |= set(zip(segments.a.tolist(), segments.c.tolist(), strict=True))
            for offset in ("mean", "min"):
                y, delta = values(random, view)
                await bench.tensor(random, Share(view, bench.bits[-1], offset=offset), y, delta)
    assert lengths == set(range(1, 9))
    assert fronts == {(0, 0), (0, 1), (0, 2), (0, 3), (1, 3), (2, 3), (3, 3)}
    for width in range(1, 9):
        for rows in (1, 7, 8, 33):
            view = views.View(False, rows, width, 2, 3)
            await bench.tensor(random, Share(view, bench.bits[-1]), *values(random, view))
    for columns in (1, 2, 3, 4, 5, 7):
        for tail in range(1, 9):
            if 8 * columns - 8 + tail >= 8:
                view = views.View(True, 16, 8 * columns - 8 + tail, 2, 8)
                for offset in ("mean", "min"):
                    await bench.tensor(random, Share(view, bench.bits[0], offset=offset), *values(random, view))


@cocotb.test
async def tells_of_a_single_value_that_clips(dut):
    """In any lane, beyond either end."""
    random = rng()
    bench = await started(dut)
    view = views.view((1, 1, 8, 8))
    for lane in range(8):
        for beyond in (-100, 100, None):
            y = random.integers(-12, 12, (8, 8)).astype(np.int8)
            if beyond:
                y[random.integers(8), lane] = beyond
            share, delta = Share(view, bench.bits[0], lfc=False), np.array([-20], np.int8)
            assert bench.expected(share, y, delta)[1] == bool(beyond)
            await bench.tensor(random, share, y, delta)


@cocotb.test
async def gives_the_same_blocks_for_any_number_of_units(dut):
    """Together they are golden's payload, of real activations with their tables."""
    random = rng()
    bench = await started(dut)
    tensors = np.load(DATA)
    for name in [*tensors.files[:3], tensors.files[-1]]:
        x = tensors[name][:1, :3]
        view = views.view(x.shape)
        for bits in bench.bits:
            for offset in ("mean", "min"):
                made = table.table(x, bits, offset=offset)
                y = sfpr.quantize(x.reshape(view.rows, view.width), made.k[view.plane, None].astype(np.float64))
                payload, clipped, *_ = codec.encode(x, made, bits, 12345, offset=offset)
                assert clipped == 0
                for units in (1, 3, 4):
                    pieces = [[] for _ in range(view.blocks)]
                    for unit in range(units):
                        share = Share(view, bits, units, unit, 12345, offset=offset)
                        if not len(share.blocks):
                            continue
                        run = await bench.tensor(random, share, y, made.delta)
                        for k, got in enumerate(run["chunks"]):
                            pieces[share.blocks[k // 8]].append(bench.content(got))
                    assert b"".join(map(b"".join, pieces)) == payload


@cocotb.test
async def takes_eight_cycles_a_block(dut):
    """Without a gap at either side, from the first row to the last chunk."""
    random = rng()
    bench = await started(dut)
    tiled = [views.View(True, 8 * high, 8 * wide - cut, high, 8) for high, wide, cut in (
        (9, 1, 0), (1, 1, 0), (6, 2, 5), (7, 3, 1), (5, 4, 0), (4, 5, 3), (3, 7, 0), (1, 28, 0), (1, 3, 0), (1, 2, 0))]
    flat = [views.View(False, rows, width, rows, 1) for rows, width in (
        (1, 5), (40, 9), (33, 16), (41, 17), (30, 24), (21, 49), (19, 63), (20, 65), (7, 513), (1, 2000))]
    for view in tiled + flat:
        layout = min(view.sectors, 3) - 1 if view.tiled else 0
        for units in (1, 3):
            share = Share(view, int(random.choice(bench.bits)), units, seed=7)
            run = await bench.tensor(random, share, *values(random, view))
            first, count = READY - 2, 8 * len(share.blocks)
            # A group of fewer tiles is complete sooner, but places in it may have to become free.
            tiles = min(len(share.blocks), 4, (1, 2, 4)[layout])
            latency = LATENCY[layout] - 7 * ((1, 2, 4)[layout] - tiles)
            assert run.cycles["chunks"] == list(range(first + latency, first + latency + count)), share
            free = count - count % 32 if layout == 2 else count
            assert run.cycles["i"][:free] == list(range(first, first + free)), share


@cocotb.test
async def takes_twelve_cycles_a_block_of_eight_segments(dut):
    """Rows of one sector: places for bases are what is scarce. The second block waits for the first one's to leave."""
    random = rng()
    bench = await started(dut)
    for rows, width in ((64, 8), (101, 3)):
        share = Share(views.View(False, rows, width, 1, rows), bench.bits[0])
        run = await bench.tensor(random, share, *values(random, share.view))
        cycles = run.cycles["chunks"]
        first = READY - 2 + LATENCY[0]
        assert cycles == [first + 12 * (k // 8) + k % 8 for k in range(8 * len(share.blocks))], share


@cocotb.test
async def fills_up_and_goes_on_at_full_rate(dut):
    random = rng()
    bench = await started(dut)
    for view, room in ((views.View(True, 64, 8, 8, 8), 32), (views.View(True, 64, 40, 8, 8), 32),
                       (views.View(False, 64, 16, 1, 64), 12), (views.View(False, 16, 200, 1, 64), 32)):
        share = Share(view, bench.bits[0])
        y, delta = values(random, view)
        expected, _ = bench.expected(share, y, delta)
        sent = bench.sent(random, share, y, delta)
        await bench.begin(share.config())
        run = await bench.run({"i": sent}, {}, random, until=after(100))
        held = len(run.cycles["i"])
        assert held >= room, share
        run = await bench.run({"i": sent[held:]}, {"chunks": len(expected)}, random)
        bench.equal(run["chunks"], expected, f"{share} after a long stall")
        assert run.cycles["chunks"] == list(range(len(expected)))


@cocotb.test
async def follows_the_vectors_of_the_specification(dut):
    bench = await started(dut)
    random = rng()
    x = np.arange(-32, 32, dtype=np.float32).reshape(1, 1, 8, 8) / np.float32(10)
    known = {
        1: (5.0625, -16, "f0 40 10 03 49 cb f9 f6 ff", "f0 00 00 00 00 ff ff ff ff"),
        2: (7.59375, -24, "e8 00 10 10 51 55 55 96 65 aa a5 aa be ba fb fb ff",
            "e8 00 00 40 55 55 55 55 55 aa aa aa aa aa fe ff ff"),
        4: (9.5, -30, "e2 00 10 11 12 21 22 33 43 44 44 54 55 66 76 76 77 88 88 88 99 9a aa ba bb cb cc cd dd dd ee fe "
                      "fe", None),
    }
    view = views.view(x.shape)
    for bits in set(bench.bits) & set(known):
        k, delta, *payloads = known[bits]
        y = sfpr.quantize(x.reshape(8, 8), np.full((8, 1), k))
        for rounding, payload in zip(("stochastic", "nearest"), payloads, strict=True):
            if payload is None:
                continue
            share = Share(view, bits, seed=1, rounding=rounding)
            run = await bench.tensor(random, share, y, np.int8([delta]))
            got = b"".join(map(bench.content, run["chunks"]))
            assert got.hex(" ") == payload, (bits, rounding)


@cocotb.test
async def takes_nothing_before_the_start_and_after_the_end(dut):
    random = rng()
    bench = await started(dut)
    for shape in shapes(random, 12, 800):
        view = views.view(shape)
        share = Share(view, bench.bits[0])
        y, delta = values(random, view)
        sent, (expected, _) = bench.sent(random, share, y, delta), bench.expected(share, y, delta)
        await bench.begin(share.config())
        run = await bench.run({"i": sent * 2}, {"chunks": None}, random,
                              until=after(2 * len(sent) + 100))
        assert len(run.cycles["i"]) == len(sent)
        bench.equal(run["chunks"], expected, f"{share}")


@cocotb.test
async def counts_blocks_of_any_number_of_bits(dut):
    """And rows of any number of sectors, up to the largest."""
    random = rng()
    bench = await started(dut)
    y = random.integers(-20, 20, (64, 8))
    for bit in range(5, 32):
        sectors = min(bit, 20)
        view = views.View(False, 64, 8, 1, 64)  # for the bench's own numbers; there is one long row
        share = Share(view, bench.bits[0])
        await bench.begin(share.config(blocks=(1 << bit) + 1, sectors=(1 << sectors) + 1,
                                       stride=32, void=5))
        run = await bench.run({"i": [beat(row, -20, 0) for row in y]}, {"chunks": 40}, random)
        counts = [len(bench.content(one)) for one in run["chunks"][:40]]
        # A segment begins with each block and, behind 33 sectors and more, with the view's next row.
        begins = {8 * k for k in range(5)} | {(1 << sectors) + 1}
        assert counts == [bench.bits[0] + (k in begins) for k in range(40)], bit
        await bench.reset()
