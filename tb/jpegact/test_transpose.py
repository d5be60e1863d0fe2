"""Bench of the transpose buffer: every block comes back transposed, or as it was, whatever the ports do."""

import cocotb
import pytest

from actcodec.rtl.jpegact.transpose import Transpose
from tb.harness import PATTERNS, STALLS, Bench, beats, parameters, regress, rng, simulate, unpack


@pytest.mark.parametrize("width, transposes, target", [
    (18, True, "cells"), *regress((8, True, "cells"), (32, False, "cells"), (8, True, "lut"))])
def test_transpose(width, transposes, target):
    simulate(Transpose(width, transposes), __file__, target=target, width=width, transposes=transposes)


@pytest.mark.parametrize("width", [0, -1, 1.5, None])
def test_a_width_that_is_no_positive_integer_is_refused(width):
    with pytest.raises(ValueError, match="width"):
        Transpose(width)


def blocks(random, count, width):
    return random.integers(-(1 << (width - 1)), 1 << (width - 1), (count, 8, 8))


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def gives_every_block_back(dut, idle, stall):
    width, transposes = parameters()["width"], parameters()["transposes"]
    random = rng()
    bench = await Bench.started(dut)
    for count in (1, 2, 7):
        for straight in (0, 1):
            dut.straight.value = straight
            sent = blocks(random, count, width)
            expected = sent if straight or not transposes else sent.transpose(0, 2, 1)
            run = await bench.run({"i": beats(sent, width)}, {"o": 8 * count}, random, idle, stall)
            bench.equal(run["o"], beats(expected, width), f"{count} blocks, straight={straight}")


@cocotb.test
async def moves_a_vector_every_cycle_after_eight(dut):
    width = parameters()["width"]
    random = rng()
    bench = await Bench.started(dut)
    for straight in (0, 1):
        dut.straight.value = straight
        sent = blocks(random, 20, width)
        run = await bench.run({"i": beats(sent, width)}, {"o": 160}, random)
        assert run.cycles["i"] == list(range(160))
        assert run.cycles["o"] == list(range(8, 168))


@cocotb.test
async def shows_which_values_are_not_zero_with_the_first_vector(dut):
    width, transposes = parameters()["width"], parameters()["transposes"]
    random = rng()
    bench = await Bench.started(dut)
    for straight in (0, 1):
        dut.straight.value = straight
        for count in (1, 2, 3):
            sent = blocks(random, count, width) * random.integers(0, 2, (count, 8, 8))
            expected = sent if straight or not transposes else sent.transpose(0, 2, 1)
            stream = beats(sent, width)
            # Bring the block before the output, look, and let it go.
            await bench.run({"i": stream[:8]}, {}, random)
            for index in range(count):
                rest = stream[8 * (index + 1) : 8 * (index + 2)]
                if rest:
                    dut.i__valid.value = 1
                await cocotb.triggers.FallingEdge(dut.clk)
                assert dut.o__valid.value == 1
                nonzero = unpack(int(dut.nonzero.value), 1, 64)
                assert nonzero == (expected[index].reshape(-1) != 0).tolist(), f"block {index} of {count}"
                dut.i__valid.value = 0
                await bench.run({"i": rest}, {"o": 8}, random)


@cocotb.test
async def forgets_everything_at_reset(dut):
    width, transposes = parameters()["width"], parameters()["transposes"]
    random = rng()
    bench = await Bench.started(dut)
    for fill in range(1, 24, 3):
        for straight in (0, 1):
            dut.straight.value = 1 - straight  # it may change at reset
            stream = beats(blocks(random, 3, width), width)
            await bench.run({"i": stream[:fill]}, {"o": None}, random, limit=200)
            await bench.reset()
            dut.straight.value = straight
            sent = blocks(random, 2, width)
            expected = sent if straight or not transposes else sent.transpose(0, 2, 1)
            run = await bench.run({"i": beats(sent, width)}, {"o": 16}, random)
            bench.equal(run["o"], beats(expected, width), f"after reset at {fill} vectors, straight={straight}")
