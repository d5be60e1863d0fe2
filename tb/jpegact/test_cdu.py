"""Bench of the CDU: whole tensors through the RTL, both ways, in every mode and configuration, against golden."""

import re
from dataclasses import replace

import cocotb
import numpy as np
import pytest
from amaranth.back import rtlil
from cocotb.triggers import FallingEdge

from actcodec.codecs import CDMA, JPEG_ACT, lane_modes
from actcodec.golden.jpegact import quantize, rle, steps
from actcodec.rtl.common.target import TARGETS
from actcodec.rtl.jpegact.cdu import Cdu
from tb import reference
from tb.harness import PATTERNS, ROOT, SEED, STALLS, after, chunks, regress, rng, simulate, target
from tb.jpegact import test_runlength
from tb.jpegact.blocks import recovered, rows
from tb.jpegact.cdus import MALFORMED, Driver, tensor
from tb.offload.wire import payloads

ALL = reference.MODES
NIBBLE, RICE = ("sfpr-nibble", "jpeg-act-nibble"), ("sfpr-rice", "jpeg-act-rice")
SAMPLE = ROOT / "actcodec" / "data" / "resnet20.npz"
# One of every kind of view: tiles in rows of one, two, three and more, ragged widths and heights, no tile at all.
SHAPES = [(1, 1, 8, 8), (1, 5, 8, 8), (1, 3, 16, 16), (3, 2, 9, 24), (2, 3, 7, 13), (1, 2, 30, 56), (1, 7, 14, 14),
          (2, 40, 1, 1), (3, 9), (1, 3, 11, 40), (2, 3, 5, 4)]
# Cycles from the first beat in to the first beat out, for blocks without zeros, with those of tiles by layout.
# Compressing, what is narrower than a beat of the byte stream waits until that is full. In jpeg-base it takes as many
# more as the first block has codes; None: as other blocks of the first group have.
COMPRESS_LATENCY = {
    16: {"sfpr": 7, "sfpr-zvc": 17, "brc": 18, "jpeg-act": (46, 53, 67), "jpeg-act-div": (48, 55, 69)},
    32: {"raw": 2, "sfpr": 9, "sfpr-zvc": 19, "brc": 34, "jpeg-act": (48, 55, 69), "zvc": 11, "dpr-fp16": 4,
         "dpr-fp10": 5, "dpr-fp8": 6, "bitpack-1": 5, "bitpack-2": 3, "bitpack-3": 2},
    40: {"raw": 0, "dpr-fp16": 1, "dpr-fp10": 1, "dpr-fp8": 1, "bitpack-1": 0, "bitpack-2": 0, "bitpack-3": 0,
         "sfpr": 4, "sfpr-zvc": 15, "brc": 1, "jpeg-act": (44, 51, 65), "zvc": 10, "sfpr-nibble": 16,
         "sfpr-rice": 23, "jpeg-act-nibble": (45, 52, 66), "jpeg-act-rice": (52, 59, 73),
         "jpeg-act-div": (46, 53, 67), "jpeg-act-div-nibble": (47, 54, 68), "jpeg-act-div-rice": (54, 61, 75),
         "jpeg-base": (45, 52, 66)},
}
DECOMPRESS_LATENCY = {  # with an unpacker whose pieces fit into one beat, or take two; without one
    16: {"sfpr": 6, "sfpr-zvc": 16, "brc": 2, "jpeg-act": (39, 47, 63), "jpeg-act-div": (41, 49, 65)},
    32: {"raw": 3, "sfpr": 7, "sfpr-zvc": 17, "brc": 3, "jpeg-act": (40, 48, 64), "zvc": 4, "dpr-fp16": 4,
         "dpr-fp10": 4, "dpr-fp8": 4, "bitpack-1": 3, "bitpack-2": 3, "bitpack-3": 3},
    40: {"raw": 1, "dpr-fp16": 2, "dpr-fp10": 2, "dpr-fp8": 2, "bitpack-1": 1, "bitpack-2": 1, "bitpack-3": 1,
         "sfpr": 5, "sfpr-zvc": 14, "brc": 1, "jpeg-act": (37, 45, 61), "zvc": 1, "sfpr-nibble": 9,
         "sfpr-rice": 21, "jpeg-act-nibble": (32, 40, 56), "jpeg-act-rice": (44, 52, 68),
         "jpeg-act-div": (39, 47, 63), "jpeg-act-div-nibble": (34, 42, 58), "jpeg-act-div-rice": (46, 54, 70),
         "jpeg-base": (33, None, None)},
}
# How many more it takes when made for LUTs: compressing, decompressing, where an unpacker takes another one.
CUTS = {"raw": (1, 1), "zvc": (2, 2), "sfpr": (4, 4), "sfpr-zvc": (6, 5), "brc": (1, 1), "jpeg-act": (12, 11)}


@pytest.mark.parametrize("modes, target", [(JPEG_ACT, "cells"), *regress(
    (JPEG_ACT, "lut"), (ALL, "cells"), (CDMA, "cells"), (("brc",), "cells"))], ids=str)
def test_cdu(modes, target):
    simulate(Cdu(lane_modes(*modes)), __file__, [*ANY, *BYTES, is_busy_until_the_last_beat_has_left], modes=modes,
             target=target)


@pytest.mark.regress
@pytest.mark.parametrize("target", TARGETS)
def test_without_packer_and_unpacker(target):
    simulate(Cdu(lane_modes(*ALL), packed=False), __file__, [*ANY, rows_that_end_early_or_late_are_flagged],
             modes=ALL, packed=False, target=target)


@pytest.mark.regress
@pytest.mark.parametrize("modes", [NIBBLE, *regress((RICE,), (("raw", "jpeg-act", "sfpr-zvc", *NIBBLE, *RICE),))],
                         ids="+".join)
def test_coders(modes):
    """Those in place of ZVC, alone and beside each other."""
    simulate(Cdu(lane_modes(*modes), packed=False), __file__, [*ANY, *COUNTED], modes=modes, packed=False)


@pytest.mark.parametrize("coders, modes", regress(
    (8, ("jpeg-base", "sfpr")),
    (3, ("raw", "jpeg-base", "jpeg-act", "jpeg-act-div-nibble", "sfpr-nibble", "brc"))), ids=str)
def test_jpeg_base(coders, modes):
    """DIV and RLE in place of SH and ZVC, alone and beside them and DIV in quarters."""
    simulate(Cdu(lane_modes(*modes), packed=False, coders=coders), __file__, [*ANY, *COUNTED],
             without=[] if coders == 8 else [rate_is_eight_cycles_a_block], modes=modes, packed=False)


@pytest.mark.parametrize("modes, packed", regress(
    ((*reference.STEPPED, "sfpr-rice"), False), (("jpeg-act-div",), True)), ids=str)
def test_div_in_quarters(modes, packed):
    """In place of SH with each coder."""
    simulate(Cdu(lane_modes(*modes), packed=packed, coders=2), __file__, [*ANY, *(BYTES if packed else [])],
             modes=modes, packed=packed)


@pytest.mark.parametrize("packed", regress(False, True))
def test_dpr_and_bitpack(packed):
    """Rows of 8 to 24 bytes, beside some of 32."""
    modes = (*reference.FLAT, "zvc")
    rows = [*BYTES] if packed else [rows_that_end_early_or_late_are_flagged]
    simulate(Cdu(lane_modes(*modes), packed=packed), __file__, [*ANY, *rows], modes=modes, packed=packed)


@pytest.mark.parametrize("coders", [0, 9, True, "4"])
def test_only_legal_numbers_of_coders_are_taken(coders):
    with pytest.raises(ValueError, match="coders must be an integer from 1 to 8"):
        Cdu(lane_modes("brc"), coders=coders)


def test_counted_blocks_are_not_packed():
    with pytest.raises(ValueError, match="packed must be False for modes with counted blocks, not True"):
        Cdu(lane_modes(*NIBBLE))


@pytest.mark.parametrize("modes", [JPEG_ACT, *regress((ALL,))], ids="+".join)
def test_real_activations(modes):
    simulate(Cdu(lane_modes(*modes)), __file__, [real_activations_in_every_mode], modes=modes)


@pytest.mark.regress
@pytest.mark.parametrize("modes, absent", [
    (JPEG_ACT, {"zvc32"}), (CDMA, {"zvc8", "sfpr", "align", "dct", "shift", "skid", "binarize"}),
    (("raw",), {"zvc8", "zvc32", "sfpr", "align", "dct", "shift", "skid", "binarize"}),
    (("sfpr-zvc",), {"zvc32", "align", "dct", "shift", "binarize"})], ids=lambda value: "+".join(sorted(value)))
def test_hardware_of_other_modes_does_not_exist(modes, absent):
    text = rtlil.convert(Cdu(lane_modes(*modes)), name="dut")
    present = set(re.findall(r"^module \\dut\.cdu\.(\w+)$", text, re.MULTILINE))
    assert present and not present & absent


@pytest.mark.parametrize("modes", [(), ("zip",), "raw", None, (["raw"],), 2 * lane_modes("raw")])
def test_modes_that_do_not_exist_are_refused(modes):
    with pytest.raises(ValueError, match="modes must be one or more different modes of a lane"):
        Cdu(modes)


@cocotb.test
async def equals_golden_for_every_mode_and_shape(dut):
    random = rng()
    driver = Driver(dut)
    await driver.bench.start()
    patterns = list(PATTERNS)
    turn = 0
    for shape in SHAPES:
        for mode in driver.modes:
            for sparse in (False, True):
                idle, stall = patterns[turn % 5], patterns[turn // 5 % 5]
                turn += 1 + (turn % 5 == 4)  # the pairs take turns over the modes
                with np.errstate(all="ignore"):
                    x = tensor(random, shape, sparse)
                if reference.effective_mode(x, mode) not in driver.modes:
                    continue  # too small for tiles, and this unit has nothing to fall back to
                dqt = random.choice(["optL", "optH", "jpeg80", "jpeg60"])
                c, _ = await driver.compress(x, mode, random, str(dqt), idle, stall)
                await driver.decompress(c, x, random, stall, idle)


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def equals_golden_whatever_the_ports_do(dut, idle, stall):
    random = rng()
    driver = Driver(dut)
    await driver.bench.start()
    modes = list(driver.modes)
    random.shuffle(modes)
    for mode in modes:  # tensors follow each other in different modes and directions
        x = tensor(random, [(1, 3, 9, 24), (1, 5, 8, 8), (1, 2, 13, 16)][random.integers(3)], random.random() < 0.5)
        c, _ = await driver.compress(x, mode, random, "optH", idle, stall)
        await driver.decompress(c, x, random, idle, stall)


@cocotb.test
async def equals_golden_for_random_tables(dut):
    random = rng()
    driver = Driver(dut)
    await driver.bench.start()
    if reference.BASE in driver.modes:
        used = set()
        for _ in range(8):
            dqt = np.minimum(256 >> random.integers(0, 9, (8, 8)), 255) - random.integers(0, 2, (8, 8))
            dqt = np.maximum(dqt, 1)
            x = tensor(random, (1, 2, 16, 40))
            c, _ = await driver.compress(x, reference.BASE, random, dqt)
            used |= set(enumerate(c.code.divisors.reshape(-1).tolist()))
            await driver.decompress(c, x, random)
        assert {1, 2, 3, 127, 128, 255} <= {divisor for _, divisor in used}
    for mode in set(reference.STEPPED) & set(driver.modes):
        used = set()
        for _ in range(8):
            dqt = np.minimum(256 >> random.integers(0, 8, (8, 8)), 255) - random.integers(0, 2, (8, 8))
            x = tensor(random, (1, 2, 16, 40))
            c, _ = await driver.compress(x, mode, random, np.maximum(dqt, steps.LEAST) / 4)
            used |= set(enumerate(c.table.reshape(-1).tolist()))
            await driver.decompress(c, x, random)
        assert {2, 3, 4, 127, 128, 255} <= {quarters for _, quarters in used}
    if "jpeg-act" in driver.modes:
        used = set()
        for _ in range(8):
            dqt = 2.0 ** random.integers(0, 8, (8, 8))
            x = tensor(random, (1, 2, 16, 40))
            c, _ = await driver.compress(x, "jpeg-act", random, dqt)
            used |= set(enumerate(quantize.shifts(dqt).reshape(-1).tolist()))
            await driver.decompress(c, x, random)
        assert {shift for _, shift in used} == set(range(8))


@cocotb.test
async def rate_is_eight_cycles_a_block(dut):
    """A sector in every cycle, and out in every cycle, on tensors whose words are all non-zero or mostly zero."""
    random = rng()
    driver = Driver(dut)
    await driver.bench.start()
    for mode in driver.modes:
        there, back = CUTS[mode] if target() == "lut" else (0, 0)
        cuts = there, back + (target() == "lut" and driver.packed)
        for shape in ((1, 4, 16, 64), (1, 4, 32, 24), (1, 4, 64, 16), (1, 4, 64, 8)):
            for density in (1, 0.3):
                x = random.uniform(0.5, 1, shape).astype(np.float32) * (random.random(shape) < density)
                x = x.astype(np.float32)
                c, run = await driver.compress(x, mode, random, np.full((8, 8), 8 if mode == reference.BASE else 1),
                                               zone=0)
                layout = min(c.view.tiles_per_row - 1, 2)
                longest = 9 if mode == "zvc" and density == 1 else 8
                if longest == 9:
                    assert c.payload_bytes == 264 * c.blocks
                check_rate(run.cycles["sectors_i"], c.blocks, longest, f"compress {mode} {shape} {density}")
                first = run.cycles["bytes_o"][0] - run.cycles["sectors_i"][0]
                symbols = driver.symbols(c)
                if density == 1:  # a coder of jpeg-base waits for lines if a block has few codes in the first ones
                    check_latency(first - symbols - cuts[0], COMPRESS_LATENCY[driver.kind][mode], layout,
                                  f"compress {mode} {shape}", 8 if mode == reference.BASE else 0)
                run = await driver.decompress(c, x, random)
                late = 64 - symbols if mode == reference.BASE else 0  # as a block with more codes than the first
                check_rate(run.cycles["sectors_o"], c.blocks, longest, f"decompress {mode} {shape} {density}", late)
                first = run.cycles["sectors_o"][0] - run.cycles[driver.bytes_i][0]
                if density == 1:
                    check_latency(first - symbols - cuts[1], DECOMPRESS_LATENCY[driver.kind][mode], layout,
                                  f"decompress {mode} {shape}", late)  # the second block pushes the first one out


def check_rate(cycles, count, longest, what, late=0):
    """Eight cycles a block without a pause, or no more than ``longest``; all of them together ``late`` cycles more."""
    span = cycles[-1] - cycles[0] + 1
    assert 8 * count <= span <= longest * count + late, f"{what}: {span} cycles for {count} blocks"


def check_latency(got, expected, layout, what, late=0):
    expected = expected[layout] if isinstance(expected, tuple) else expected
    assert expected is None or expected <= got <= expected + late, (
        f"{what}, layout {layout}: latency {got}, not {expected} to {expected + late}")


@cocotb.test
@cocotb.parametrize(idle=["never", "half", "bursts"], stall=["never", "half", "bursts", "shy"])
async def queue_of_tensors_in_changing_modes_and_directions(dut, idle, stall):
    """Everything is offered at once: each port waits for its turn, and nothing leaks into the next tensor."""
    random = rng()
    driver = Driver(dut)
    await driver.bench.start()
    jobs = [(mode, direction) for mode in driver.modes for direction in (0, 1)] * 2
    random.shuffle(jobs)
    sources = {"config": [], "sectors_i": [], driver.bytes_i: [], "scales": []}
    sinks, kept = {"sectors_o": [], "bytes_o": []}, []
    for mode, direction in jobs:
        x = tensor(random, [(1, 3, 9, 24), (1, 5, 8, 8), (1, 2, 13, 16)][random.integers(3)], random.random() < 0.5)
        c = reference.compress(x, mode, "optH")
        layout, scales, sectors, restored, chunks = driver.beats(c, x)
        sources["config"].append(driver.config(int(direction), c.mode, layout, c.blocks, c.table, code=c.code))
        sources["scales"] += scales[direction] if scales else []
        sources[driver.bytes_i if direction else "sectors_i"] += driver.given(c) if direction else sectors
        sinks["sectors_o" if direction else "bytes_o"] += restored if direction else chunks
        if direction:
            kept += driver.real([(1 << 256) - 1] * len(restored), c)
    sources = {port: beats for port, beats in sources.items() if beats}
    run = await driver.bench.run(sources, {port: len(beats) for port, beats in sinks.items()}, random, idle, stall)
    await driver.rest()
    driver.bench.equal(driver.seen(run["bytes_o"], sinks["bytes_o"]), sinks["bytes_o"], f"bytes of {jobs}")
    driver.bench.equal([got & mask for got, mask in zip(run["sectors_o"], kept, strict=True)],
                       [beat & mask for beat, mask in zip(sinks["sectors_o"], kept, strict=True)], f"sectors of {jobs}")
    assert int(dut.error.value) == 0


@cocotb.test
async def refuses_a_configuration_it_cannot_do(dut):
    random = rng()
    driver = Driver(dut)
    await driver.bench.start()
    absent = range(len(driver.modes), 1 << max((len(driver.modes) - 1).bit_length(), 1))
    bad = [driver.config(0, driver.modes[0], 0, 0, None), driver.config(1, driver.modes[0], 0, 0, None)]
    for mode in [mode for mode in ("jpeg-act", reference.BASE, *reference.STEPPED) if mode in driver.modes]:
        # An unknown layout; half a row of tiles.
        bad += [driver.config(1, mode, 3, 4, None), driver.config(0, mode, 1, 5, None)]
    bad += [driver.config(direction, place, 0, 1, None) for place in absent for direction in (0, 1)]
    for number in bad:
        run = await driver.bench.run({"config": [number], driver.bytes_i: [1]}, {}, random, until=after(20))
        assert (len(run.cycles["config"]), len(run.cycles[driver.bytes_i])) == (1, 0)  # its stream is another tensor's
        await driver.rest()
        assert int(dut.error.value) == 1
        x = tensor(random, (1, 1, 8, 8))
        c, _ = await driver.compress(x, driver.modes[0], random)
        await driver.decompress(c, x, random)


@cocotb.test
async def is_busy_until_the_last_beat_has_left(dut):
    random = rng()
    driver = Driver(dut)
    await driver.bench.start()
    for mode in driver.modes:
        x = tensor(random, (1, 3, 16, 24), True)
        c = reference.compress(x, mode, "optL")
        *_, beats = known = driver.beats(c, x)
        await driver.bench.run(driver.sources(0, c, known), {"bytes_o": len(beats) - 1}, random)
        for _ in range(100):
            await FallingEdge(dut.clk)
            assert (int(dut.busy.value), int(dut.config__ready.value)) == (1, 0), f"SEED={SEED} {mode}"
        run = await driver.bench.run({}, {"bytes_o": 1}, random)
        driver.bench.equal(driver.seen(run["bytes_o"], beats[-1:]), beats[-1:], mode)
        await driver.rest()
        await driver.decompress(c, x, random)


@cocotb.test
@cocotb.parametrize(stall=["never", "half", "bursts", "shy"])
async def flags_a_stream_that_is_short_or_long_and_goes_on(dut, stall):
    random = rng()
    driver = Driver(dut)
    await driver.bench.start()
    for mode in driver.modes:
        x = tensor(random, (1, 3, 16, 24), True)
        c = reference.compress(x, mode, "optL")
        for cut in (1, driver.width, c.payload_bytes // 2, c.payload_bytes - 1):
            run = await driver.decompress(c, x, random, "never", stall, chunks(c.payload[:-cut], driver.width), error=2)
            if mode in reference.BLOCK_BYTES:
                filled = replace(c, payload=c.payload[:-cut] + bytes(cut))
                driver.bench.equal(driver.real(run["sectors_o"], c), driver.real(driver.beats(filled, x)[3], c),
                                   f"{mode} short of {cut}")
        for more in (1, driver.width - 1, driver.width, 5 * driver.width + 3):
            junk = random.bytes(more)
            await driver.decompress(c, x, random, "never", stall, chunks(c.payload + junk, driver.width), error=4)
        await driver.decompress(c, x, random, stall=stall)


@cocotb.test
@cocotb.parametrize(stall=["never", "half", "bursts", "shy"])
async def rows_that_end_early_or_late_are_flagged(dut, stall):
    """A last row that comes too early stands for zeros, and so does all that would follow."""
    random = rng()
    driver = Driver(dut)
    await driver.bench.start()
    last = 1 << 8 * (driver.width - 8) + 8
    for mode in driver.modes:
        x = tensor(random, (1, 3, 16, 24), True)
        c = reference.compress(x, mode, "optL")
        given = driver.given(c)
        whole = driver.blocks(c)
        for kept in (0, 1, len(whole) // 2, len(whole) - 1):
            cut = [*given[: 8 * kept], int(random.integers(0, 256)) | last]
            zero = bytes(reference.BLOCK_BYTES.get(mode, payloads.block_format(mode).head))
            if mode == reference.BASE:  # to golden, a block without bytes is none
                zero = rle.encode(np.zeros((1, 64), np.int8))[0].tobytes()
            filled = replace(c, payload=b"".join([b.tobytes() for b in whole[:kept]] + [zero] * (len(whole) - kept)))
            run = await driver.decompress(c, x, random, "never", stall, cut, error=2)
            driver.bench.equal(driver.real(run["sectors_o"], c), driver.real(driver.beats(filled, x)[3], c),
                               f"{mode} short after {kept} blocks")
        await driver.decompress(c, x, random, "seldom", stall, [*given[: 8 * len(whole) - 3], given[-1]], error=2)
        for more in (1, 8, 30):
            junk = [int(number) for number in random.integers(0, 1 << 60, more)]
            await driver.decompress(c, x, random, "seldom", stall, [*given[:-1], given[-1] & ~last, *junk[1:],
                                                                    junk[0] | last], error=4)
        await driver.decompress(c, x, random, stall=stall)


@cocotb.test
@cocotb.parametrize(stall=["never", "half", "shy"])
async def reports_malformed_blocks_and_stays_in_step(dut, stall):
    """Any bits of first bytes, and of what follows: golden's values, and whether golden reports a block."""
    random = rng()
    driver = Driver(dut)
    await driver.bench.start()
    cases = set()
    coded = [mode for mode in driver.modes if mode in reference.TABLES]
    for mode in coded:
        x, size = tensor(random, (1, 3, 16, 24), True), 8 * payloads.block_format(mode).row
        c = reference.compress(x, mode, "optL")
        heads = np.cumsum([0, *reference.sizes_of(c)[:-1]])
        for turn in range(12):
            payload = np.frombuffer(c.payload, np.uint8).copy()
            for at in random.choice(heads, 2) + random.integers(0, [1, 5][turn % 2], 2):
                payload[min(at, len(payload) - 1)] ^= 1 << random.integers(8) if turn % 3 else random.integers(256)
            payload = c.payload if turn == 0 else payload.tobytes()
            again, faults = recovered(mode, payload, c.blocks, c.code)
            like = replace(c, payload=again.tobytes())
            given = (test_runlength.rows(payload, c.blocks, random) if mode == reference.BASE else
                     rows(reference.CODERS[mode], payload, c.blocks, random))
            given = [row & (1 << size) - 1 | row >> size << 8 * (driver.width - 8) for row in given]
            error = MALFORMED if np.any(faults) else 0
            await driver.decompress(like, x, random, "never", stall, given, error)
            cases.add((mode, error))
        await driver.decompress(c, x, random, stall=stall)
    assert cases == {(mode, error) for mode in coded for error in (0, MALFORMED)}


@cocotb.test
async def flags_or_survives_any_garbage(dut):
    """Masks that do not add up: the unit gives as many sectors as it must, and works afterwards."""
    random = rng()
    driver = Driver(dut)
    await driver.bench.start()
    for mode in driver.modes:
        x = tensor(random, (1, 2, 16, 16))
        c = reference.compress(x, mode, "jpeg60")
        layout, scales, _, sectors, _ = driver.beats(c, x)
        for _ in range(6):
            garbage = chunks(random.bytes(int(random.integers(1, 2 * c.payload_bytes))), driver.width)
            sources = {"config": [driver.config(1, c.mode, layout, c.blocks, c.table)], "bytes_i": garbage}
            if scales:
                sources["scales"] = scales[1]
            await driver.bench.run(sources, {"sectors_o": len(sectors)}, random, "seldom", "seldom")
            await driver.rest()
            assert int(dut.error.value) in (0, 2, 4)
        await driver.decompress(c, x, random)


@cocotb.test
async def recovers_from_a_reset_at_any_moment(dut):
    random = rng()
    driver = Driver(dut)
    await driver.bench.start()
    for mode in driver.modes:
        x = tensor(random, (1, 4, 16, 24))
        c = reference.compress(x, mode, "optL")
        beats = driver.beats(c, x)
        for direction, sink in enumerate(("bytes_o", "sectors_o")):
            sources = driver.sources(direction, c, beats)
            for moment in random.integers(1, len(beats[2]), 3):
                await driver.bench.run(sources, {sink: None}, random, "seldom", "seldom",
                                       until=after(int(moment)))
                await driver.bench.reset()
                await driver.compress(x, mode, random)
                await driver.decompress(c, x, random)


@cocotb.test
async def real_activations_in_every_mode(dut):
    random = rng()
    driver = Driver(dut)
    await driver.bench.start()
    with np.load(SAMPLE) as sample:
        for name, x in sample.items():
            x = x[:1]
            for mode in driver.modes:
                c, run = await driver.compress(x, mode, random, "optH")
                assert run.cycles["sectors_i"][-1] - run.cycles["sectors_i"][0] + 1 <= 9 * c.blocks, name
                await driver.decompress(c, x, random)


# For every unit; for those with a stream of bytes; for those with counted blocks.
ANY = [equals_golden_for_every_mode_and_shape, equals_golden_whatever_the_ports_do, equals_golden_for_random_tables,
       rate_is_eight_cycles_a_block, queue_of_tensors_in_changing_modes_and_directions,
       refuses_a_configuration_it_cannot_do, recovers_from_a_reset_at_any_moment]
BYTES = [flags_a_stream_that_is_short_or_long_and_goes_on, flags_or_survives_any_garbage]
COUNTED = [rows_that_end_early_or_late_are_flagged, reports_malformed_blocks_and_stays_in_step]
