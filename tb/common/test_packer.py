"""Bench of the packer: the bytes of all chunks come out in order, in full words."""

import cocotb
import numpy as np
import pytest

from actcodec.rtl.common.packer import Packer
from tb.harness import PATTERNS, STALLS, Bench, chunk, chunks, parameters, regress, rng, simulate

CONFIGURATIONS = [(1, 16, 16), *regress((4, 40, 32), (1, 40, 32), (1, 16, 32), (2, 4, 8))]


@pytest.mark.parametrize("target", ["cells", *regress("lut")])
@pytest.mark.parametrize("granule, i_size, o_size", CONFIGURATIONS)
def test_packer(granule, i_size, o_size, target):
    simulate(Packer(granule, i_size, o_size), __file__, target=target, granule=granule, i_size=i_size, o_size=o_size)


@pytest.mark.parametrize("name, sizes", [
    ("granule", (3, 12, 12)), ("granule", (0, 16, 16)), ("granule", ("1", 16, 16)), ("i_size", (4, 18, 32)),
    ("i_size", (1, 0, 16)), ("i_size", (1, 24, 16)), ("i_size", (1, 1.0, 16)), ("o_size", (1, 16, 24)),
    ("o_size", (16, 16, 16)), ("o_size", (1, 16, -16)),
])
def test_sizes_that_do_not_fit_are_refused(name, sizes):
    with pytest.raises(ValueError, match=name):
        Packer(*sizes)


def beats(tensor, size):
    """A tensor's pieces as chunks, ``last`` on the last one."""
    return [chunk(piece, k == len(tensor) - 1, size) for k, piece in enumerate(tensor)]


def words(tensor, size):
    """What the packer makes of a tensor's pieces."""
    return chunks(np.concatenate(tensor), size)


def pieces(random, counts):
    return [random.integers(1, 256, count, np.uint8) for count in counts]


def counts(random, kind, length, granule, size):
    """Chunk sizes of a tensor of ``length`` chunks."""
    most = size // granule
    if kind == "sparse":
        drawn = random.integers(0, most + 1, length) * (random.random(length) < 0.3)
    else:
        drawn = {"any": random.integers(0, most + 1, length), "full": np.full(length, most),
                 "tiny": random.integers(0, 2, length), "nearly": random.integers(most - 1, most + 1, length)}[kind]
    return granule * drawn


KINDS = ("any", "full", "tiny", "nearly", "sparse")


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def packs_every_byte_in_order(dut, idle, stall):
    granule, i_size, o_size = parameters().values()
    random = rng()
    bench = await Bench.started(dut)
    sent, expected = [], []
    for kind in KINDS:
        for length in (1, 2, 3, int(random.integers(4, 40))):
            tensor = pieces(random, counts(random, kind, length, granule, i_size))
            sent += beats(tensor, i_size)
            expected += words(tensor, o_size)
    run = await bench.run({"i": sent}, {"o": len(expected)}, random, idle, stall)
    bench.equal(run["o"], expected, "words")


@cocotb.test
async def ends_a_tensor_at_every_fill(dut):
    """Every length of the rest meets every length of the last chunk, the empty one included."""
    granule, i_size, o_size = parameters().values()
    random = rng()
    bench = await Bench.started(dut)
    sent, expected, seen = [], [], set()
    for fill in range(0, 2 * o_size + granule, granule):
        for count in range(0, i_size + granule, granule):
            before = [min(i_size, fill - k) for k in range(0, fill, i_size)]
            tensor = pieces(random, [*before, count])
            sent += beats(tensor, i_size)
            expected += words(tensor, o_size)
            seen.add(((fill + count) % o_size, count == 0))
    assert len(seen) == 2 * o_size // granule
    for idle, stall in (("never", "never"), ("half", "seldom")):
        run = await bench.run({"i": sent}, {"o": len(expected)}, random, idle, stall)
        bench.equal(run["o"], expected, "words")


@cocotb.test
async def takes_a_chunk_every_cycle(dut):
    granule, i_size, o_size = parameters().values()
    random = rng()
    bench = await Bench.started(dut)
    size = min(i_size, o_size)
    for kind in KINDS:
        tensor = pieces(random, counts(random, kind, 200, granule, size))
        expected = words(tensor, o_size)
        # The first cycle after reset is not counted.
        run = await bench.run({"i": beats(tensor, i_size)}, {"o": len(expected)}, random)
        bench.equal(run["o"], expected, kind)
        first = run.cycles["i"][0]
        assert run.cycles["i"] == list(range(first, first + 200)), kind
        # The last word leaves a cycle after the last chunk, or two if that chunk fills more than a word.
        assert run.cycles["o"][-1] - run.cycles["i"][-1] in (1, 2), kind


@cocotb.test
async def takes_eight_chunks_of_256_bytes_in_eight_cycles(dut):
    """Blocks of zvc with words of 4 bytes: a mask of 8 and up to 32 bytes in the first chunk, up to 32 in others."""
    _, i_size, o_size = parameters().values()
    if i_size != 40:
        return
    random = rng()
    bench = await Bench.started(dut)
    blocks = []
    for index in range(64):
        rows = np.full(8, 32)
        for _ in range(2 if index < 48 else int(random.integers(2, 30))):  # words that are zero
            rows[random.choice(np.flatnonzero(rows))] -= 4
        if index < 16:  # both zeros in one row
            rows[:] = 32
            rows[index % 8] = 24
        rows[0] += 8
        blocks += list(rows)
    tensor = pieces(random, blocks)
    expected = words(tensor, o_size)
    run = await bench.run({"i": beats(tensor, i_size)}, {"o": len(expected)}, random)
    bench.equal(run["o"], expected, "words")
    first = run.cycles["i"][0]
    assert run.cycles["i"] == list(range(first, first + 512))
    # Full blocks, of 264 bytes, take one more cycle in most cases, never two.
    tensor = pieces(random, [40, *[32] * 7] * 64)
    expected = words(tensor, o_size)
    run = await bench.run({"i": beats(tensor, i_size)}, {"o": len(expected)}, random)
    bench.equal(run["o"], expected, "words of full blocks")
    starts = run.cycles["i"][::8]
    assert set(np.diff(starts)) <= {8, 9}
    assert run.cycles["o"] == list(range(run.cycles["o"][0], run.cycles["o"][0] + len(expected)))


@cocotb.test
async def forgets_everything_at_reset(dut):
    granule, i_size, o_size = parameters().values()
    random = rng()
    bench = await Bench.started(dut)
    for fill in range(1, 12):
        tensor = pieces(random, counts(random, "any", fill, granule, i_size))
        sent = beats(tensor, i_size)
        last = fill % 2 == 0  # both in the middle of a tensor and at its end
        await bench.run({"i": sent if last else [*sent[:-1], chunk(tensor[-1], 0, i_size)]}, {"o": None}, random,
                        stall="half")
        await bench.reset()
        tensor = pieces(random, counts(random, "any", 5, granule, i_size))
        expected = words(tensor, o_size)
        run = await bench.run({"i": beats(tensor, i_size)}, {"o": len(expected)}, random)
        bench.equal(run["o"], expected, f"after reset at {fill} chunks")
