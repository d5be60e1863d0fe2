"""Bench of SSDC's encoder: arrays are golden's, at a sector a cycle."""

import cocotb
import numpy as np

from actcodec.rtl.gist.ssdc_encode import SsdcEncode
from tb.gist.ssdc import (
    ARRAYS,
    LENGTHS,
    ROW,
    beats,
    dense,
    encoded,
    shuffled,
    sparse,
)
from tb.gist.ssdc_ways import (  # noqa: F401 - tests that both directions have
    Encoder,
    handles_a_single_value_at_each_position,
    handles_every_length_and_density,
    handles_every_mask_of_a_sector,
    passes_real_activations,
)
from tb.harness import PATTERNS, SEED, STALLS, rng, sectors, simulate


def test_ssdc_encode():
    simulate(SsdcEncode(), __file__, way="encode")


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def equals_golden_whatever_the_ports_do(dut, idle, stall):
    random = rng()
    bench = await Encoder.started(dut)
    for length in (1, 300, 1500):
        await bench.tensor(sparse(random, length), random, idle, stall)
        await bench.tensor(sparse(random, length), random, idle, shuffled(random, STALLS, ARRAYS))


@cocotb.test
async def waits_for_each_output_on_its_own(dut):
    """One output rests while the two others are taken at once."""
    random = rng()
    bench = await Encoder.started(dut)
    for port in ARRAYS:
        for stall in ("mostly", "bursts", "shy"):
            await bench.tensor(sparse(random, 20 * ROW + 5, 0.9), random, "never", {port: stall})


@cocotb.test
async def makes_no_row_of_an_empty_sector(dut):
    """Whole sectors, and the end of the tensor in an empty one behind them."""
    random = rng()
    bench = await Encoder.started(dut)
    for length in (8, 248, 256, 264, 512):
        words = sparse(random, length)
        expected = beats(encoded(words))
        run = await bench.run({"i": sectors(words, empty=True)}, {port: len(expected[port]) for port in ARRAYS}, random)
        assert run.beats == expected, f"SEED={SEED} {length}"


@cocotb.test
@cocotb.parametrize(idle=["never", "bursts"], stall=["never", "half", "shy"])
async def keeps_tensors_apart(dut, idle, stall):
    """Directly one behind the other, and nothing in some."""
    random = rng()
    bench = await Encoder.started(dut)
    tensors = [sparse(random, int(length)) for length in random.permutation([0, 0, *LENGTHS[:-2]])]
    expected = [beats(encoded(words)) for words in tensors]
    expected = {port: [beat for arrays in expected for beat in arrays[port]] for port in ARRAYS}
    run = await bench.run({"i": [beat for words in tensors for beat in sectors(words)]},
                          {port: len(expected[port]) for port in ARRAYS}, random, idle, stall)
    for port in ARRAYS:
        bench.equal(run[port], expected[port], port)


@cocotb.test
async def takes_a_sector_every_cycle(dut):
    random = rng()
    bench = await Encoder.started(dut)
    count = 32 * 32  # two words of row counts
    for words in (dense(random, 8 * count), sparse(random, 8 * count), np.zeros(8 * count, np.uint32)):
        run = await bench.tensor(words, random)
        assert run.cycles["i"] == list(range(count))
        assert run.cycles["counts"][0] == 32 * 16 - 1 + 3
        if words.all():
            # A full rest waits for the next chunk to know whether it was the last.
            assert run.cycles["values"] == list(range(4, 4 + count - 1)) + [count + 3]
            assert run.cycles["columns"] == list(range(8, count + 4, 4)) + [count + 4]


@cocotb.test
async def forgets_everything_at_reset(dut):
    random = rng()
    bench = await Encoder.started(dut)
    for fill in range(1, 80, 7):
        await bench.run({"i": sectors(sparse(random, 1000))[:fill]}, dict.fromkeys(ARRAYS), random)
        await bench.reset()
        await bench.tensor(sparse(random, 500), random)
