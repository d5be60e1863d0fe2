"""Bench of max pooling's forward pass: maxima and places equal golden's, and a value moves in every cycle."""

from itertools import cycle

import cocotb
import numpy as np
import pytest

from actcodec.golden.gist import maxpool
from actcodec.rtl.gist.maxpool import LATENCY, MaxPool
from tb.gist.pools import (
    ACTIVATIONS,
    EXCESS,
    KINDS,
    LEGAL,
    SHORT,
    byte_beats,
    configuration,
    large,
    no_poolings,
    random_map,
    shapes,
    words,
)
from tb.harness import PATTERNS, STALLS, Bench, rng, simulate, synthesised

WIDTH = synthesised("maxpool", "width", 40)  # of the widest map here


def test_maxpool():
    simulate(MaxPool(WIDTH), __file__, without=[] if WIDTH == 40 else [equals_golden_on_real_activations])


@pytest.mark.parametrize("width", [0, 1, 4097, 8.0, None])
def test_illegal_width(width):
    with pytest.raises(ValueError, match=f"width must be 2 to 4096 values, not {width!r}"):
        MaxPool(width)


def expected(x, k, s, p):
    y, place = maxpool.forward(x.view(np.float32), k, s, p)
    return words(y.view(np.uint32)), byte_beats(maxpool.pack(place)), place


def steps(shape, k, p):
    """Cycles in which the unit moves a value on, from the first value of a tensor to the last window."""
    planes, height, width = shape
    more = k == 2 and p
    return planes * (height + more) * (width + more) + (width + more + 1 if p else 0)


async def check(bench, random, tensors, idle="never", stall="never"):
    """Tensors, [(words, k, s, p)], one behind the other, without waiting for the outputs of the one before."""
    sources, y, places = {"config": [], "i": []}, [], []
    for x, *pooling in tensors:
        sources["config"].append(configuration(*x.shape, *pooling))
        sources["i"] += words(x)
        maxima, packed, _ = expected(x, *pooling)
        y += maxima
        places += packed
    run = await bench.run(sources, {"y": len(y), "map": len(places)}, random, idle, stall)
    what = str([(x.shape, *pooling) for x, *pooling in tensors])
    bench.equal(run["y"], y, f"y of {what}")
    bench.equal(run["map"], places, f"map of {what}")
    assert bench.dut.error.value == 0
    return run


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def equals_golden(dut, idle, stall):
    random = rng()
    bench = await Bench.started(dut)
    tensors = []
    for index in random.permutation(len(LEGAL))[:4]:
        k, s, p = LEGAL[index]
        tensors += [(random_map(random, shape)[1], k, s, p) for shape in shapes(random, k, p, 1)]
    await check(bench, random, tensors, idle, stall)


@cocotb.test
@cocotb.parametrize(pooling=[f"{k}{s}{p}" for k, s, p in LEGAL])
async def equals_golden_in_every_pooling(dut, pooling):
    random = rng()
    bench = await Bench.started(dut)
    k, s, p = map(int, pooling)
    seen, least = set(), max(k - 2 * p, 1)
    several = [(2, least, least), (3, least, 9), (3, 9, least), (1, 7, WIDTH), (2, 6, WIDTH - 1)]
    for shape, kind in zip(several + list(shapes(random, k, p, 25)), cycle(KINDS)):
        x = random_map(random, shape, kind)[1]
        await check(bench, random, [(x, k, s, p)])
        seen |= set(expected(x, k, s, p)[2].ravel().tolist())
    assert seen >= set(range(k * k)), seen


@cocotb.test
async def equals_golden_in_every_bit(dut):
    """Of values, and of how many planes are left."""
    random = rng()
    bench = await Bench.started(dut)
    await check(bench, random, [(random_map(random, (66, 3, 4), "near")[1], 2, 1, 0)])


@cocotb.test
async def equals_golden_in_every_bit_of_a_size(dut):
    """At the start of maps that are too large to be seen whole; and a tall one, and many."""
    random = rng()
    bench = await Bench.started(dut)
    # Last, the highest map, with padding: what is seen of it ends in front of the windows at the part's edge.
    for shape, part, p in [*((*sizes, 0) for sizes in large()), ((1, 65535, 3), (1, 8, 3), 1)]:
        x = random_map(random, part)[1]
        y, place = maxpool.forward(x.view(np.float32), 2, 2, p)
        y, place = y[:, : y.shape[1] - p], place[:, : y.shape[1] - p]
        y, packed = words(y.view(np.uint32), ends=False), maxpool.pack(place).tolist()
        run = await bench.run({"config": [configuration(*shape, 2, 2, p)], "i": words(x, ends=False)},
                              {"y": len(y), "map": len(packed)}, random)
        bench.equal(run["y"], y, f"y of the first {part} of {shape}")
        bench.equal(run["map"], packed, f"map of the first {part} of {shape}")
        assert dut.error.value == 0 and not dut.config__ready.value
        await bench.reset()
    await check(bench, random, [(random_map(random, shape)[1], 2, 2, 0) for shape in ((1, 520, 2), (31, 2, 2))])


@cocotb.test
async def equals_golden_on_real_activations(dut):
    random = rng()
    bench = await Bench.started(dut)
    with np.load(ACTIVATIONS) as file:
        for name in [name for name in file.files if name.lower().startswith("relu")][:2]:
            x = file[name].astype(np.float32).view(np.uint32)[0, :3]
            assert (x == 0).mean() > 0.2
            await check(bench, random, [(x, 3, 2, 1), (x, 2, 2, 0), (x, 3, 1, 1)], "seldom", "seldom")


@cocotb.test
async def takes_a_value_every_cycle(dut):
    random = rng()
    bench = await Bench.started(dut)
    for k, s, p in LEGAL:
        for shape in ((3, 5, 8), (2, 3, WIDTH), (5, 9, 1), (4, 3, 3)):
            if min(shape[1:]) + 2 * p < k:
                continue
            x = random_map(random, shape)[1]
            run = await check(bench, random, [(x, k, s, p)])
            inputs, outputs = run.cycles["i"], run.cycles["y"]
            begin, total = run.cycles["config"][0] + 3, steps(shape, k, p)
            if k == 3 or not p:
                assert inputs == list(range(begin, begin + x.size))
            else:
                assert len(inputs) == x.size and inputs[-1] == begin + shape[0] * (shape[1] + 1) * (shape[2] + 1) - 1
            places = [(maxpool.size(n, k, s, p) - 1) * s + k - p for n in shape[1:]]  # one behind the last window's end
            if not p:
                assert outputs[-1] == inputs[-1] - (shape[2] - places[1]) - (shape[1] - places[0]) * shape[2] + LATENCY
            assert outputs[-1] < begin + total + LATENCY
            if s == 1 and p:
                assert outputs[-1] == begin + total - 1 + LATENCY


@cocotb.test
async def starts_the_next_tensor_soon(dut):
    random = rng()
    bench = await Bench.started(dut)
    x = random_map(random, (1, 6, 6))[1]
    for k, s, p in LEGAL:
        run = await check(bench, random, [(x, k, s, p)] * 3)
        gap = np.diff(run.cycles["config"])
        assert gap.tolist() == [steps(x.shape, k, p) + 6] * 2, (k, s, p, gap)


@cocotb.test
async def refuses_what_is_no_pooling(dut):
    random = rng()
    bench = await Bench.started(dut)
    async for _ in no_poolings(bench, random, ["i"], WIDTH):
        await check(bench, random, [(random_map(random, (1, 4, 4))[1], 2, 2, 0)])
    await check(bench, random, [(random_map(random, (2, 1, WIDTH))[1], 3, 2, 1)])


@cocotb.test
async def completes_a_stream_that_ends_early_with_zeros(dut):
    random = rng()
    bench = await Bench.started(dut)
    for k, s, p in LEGAL:
        shape = (2, 5, 6)
        x = random_map(random, shape)[1]
        cut = int(random.integers(1, x.size))
        zeroed = np.where(np.arange(x.size).reshape(shape) < cut, x, 0).astype(np.uint32)
        y, packed, _ = expected(zeroed, k, s, p)
        run = await bench.run({"config": [configuration(*shape, k, s, p)], "i": words(x.ravel()[:cut])},
                              {"y": len(y), "map": len(packed)}, random, "seldom", "half")
        bench.equal(run["y"], y, "y of a short stream")
        bench.equal(run["map"], packed, "map of a short stream")
        assert dut.error.value == SHORT
        await check(bench, random, [(x, k, s, p)])


@cocotb.test
async def drains_a_stream_that_goes_on(dut):
    random = rng()
    bench = await Bench.started(dut)
    for k, s, p in LEGAL:
        x = random_map(random, (2, 5, 6))[1]
        y, packed, _ = expected(x, k, s, p)
        more = words(x, ends=False) + words(random.integers(0, 2**32, int(random.integers(1, 80))))
        run = await bench.run({"config": [configuration(*x.shape, k, s, p)], "i": more},
                              {"y": len(y), "map": len(packed)}, random, "seldom", "half")
        bench.equal(run["y"], y, "y of a long stream")
        bench.equal(run["map"], packed, "map of a long stream")
        assert dut.error.value == EXCESS
        await check(bench, random, [(x, k, s, p)])


@cocotb.test
async def starts_anew_after_reset(dut):
    random = rng()
    bench = await Bench.started(dut)
    for fill in range(1, 60, 3):
        k, s, p = LEGAL[fill % len(LEGAL)]
        x = random_map(random, (2, 5, 6))[1]
        beats = words(x)[:fill]
        await bench.run({"config": [configuration(*x.shape, k, s, p)], "i": beats}, {"y": None, "map": None}, random,
                        stall={"y": "half"})
        await bench.reset()
        assert not dut.y__valid.value and not dut.map__valid.value
        await check(bench, random, [(x, k, s, p)])


