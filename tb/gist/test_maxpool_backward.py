"""Bench of max pooling's backward pass: gradients equal golden's, and a value leaves in every cycle."""

from collections import Counter

import cocotb
import numpy as np
import pytest

from actcodec.golden.gist import maxpool
from actcodec.rtl.gist.maxpool_backward import LATENCY, LOOP, MaxPoolBackward
from tb.gist.pools import (
    ACTIVATIONS,
    EXCESS,
    LEGAL,
    SHORT,
    SPECIAL,
    byte_beats,
    configuration,
    large,
    no_poolings,
    random_map,
    shapes,
    words,
)
from tb.harness import PATTERNS, STALLS, Bench, rng, simulate, synthesised

WIDTH = synthesised("maxpool_backward", "width", 40)  # of the widest map here
POSITION = 8


def test_maxpool_backward():
    simulate(MaxPoolBackward(WIDTH), __file__, without=[] if WIDTH == 40 else [
        equals_golden_in_every_pooling, equals_golden_on_real_activations, gives_a_value_every_cycle])


@pytest.mark.parametrize("width", [0, 1, 4097, 8.0, None])
def test_illegal_width(width):
    with pytest.raises(ValueError, match=f"width must be 2 to 4096 values, not {width!r}"):
        MaxPoolBackward(width)


def gradients(random, shape):
    """Words of one of several kinds: numbers whose sums depend on the order, sums that cancel, or leave some low bits,
    specials, any bits."""
    kind = random.choice(["wide", "cancel", "alike", "special", "bits", "small"])
    if kind == "wide":
        return (random.normal(size=shape) * 2.0 ** random.integers(-25, 26, shape)).astype(np.float32).view(np.uint32)
    if kind == "cancel":
        return random.choice([1.0, -1.0, 2.0**24, -(2.0**24), 0.0, -0.0], shape).astype(np.float32).view(np.uint32)
    if kind == "alike":
        low = random.integers(0, 1 << random.integers(1, 24, shape))
        return (int(random.integers(1 << 23, 255 << 23)) ^ low | random.integers(0, 2, shape) << 31).astype(np.uint32)
    if kind == "special":
        return random.choice(SPECIAL, shape)
    if kind == "small":
        return random.integers(0, 2**25, shape, np.uint32) | random.integers(0, 2, shape, np.uint32) << 31
    return random.integers(0, 2**32, shape, np.uint32)


def outputs(shape, k, s, p):
    return (shape[0], *(maxpool.size(n, k, s, p) for n in shape[1:]))


def tensor(random, shape, k, s, p, kind=None):
    """Gradients and places: of a pooled map, of one with peaks where windows overlap, or any legal ones."""
    kind = kind or random.choice(["pooled", "crowded", "any"])
    dy = gradients(random, outputs(shape, k, s, p))
    x = random_map(random, shape)[1].view(np.float32)
    if kind == "crowded":
        x = random.random(shape).astype(np.float32)
        x[:, ::2, ::2] += 1
        # And one peak above all where most windows overlap.
        row, column = (np.argmax([sum(0 <= i + p - o * s < k for o in range(maxpool.size(n, k, s, p)))
                                  for i in range(n)]) for n in shape[1:])
        x[:, row, column] += 2
    place = maxpool.forward(x, k, s, p)[1]
    if kind == "any":
        other = random.integers(0, k * k, dy.shape).astype(np.uint8)
        place = np.where(maxpool.legal(other, *shape[1:], k, s, p), other, place)
    return shape, dy, place, k, s, p


def expected(shape, dy, place, k, s, p):
    with np.errstate(over="ignore", invalid="ignore"):
        dx = maxpool.backward(dy.astype(np.uint32).view(np.float32), place, *shape[1:], k, s, p)
    return words(dx.view(np.uint32))


def steps(shape, p):
    """Cycles of a tensor without pauses: rows and columns with those of the padding before them; the last row ends
    with its last value."""
    planes, height, width = shape
    row = max(width + p, LOOP)
    return planes * (height + p) * row - (row - width - p)


async def check(bench, random, tensors, idle="never", stall="never", error=0):
    """Tensors, one behind the other, without waiting for the outputs of the one before."""
    sources, dx = {"config": [], "dy": [], "map": []}, []
    for shape, dy, place, *pooling in tensors:
        sources["config"].append(configuration(*shape, *pooling))
        sources["dy"] += words(dy)
        sources["map"] += byte_beats(maxpool.pack(place))
        dx += expected(shape, dy, place, *pooling)
    run = await bench.run(sources, {"dx": len(dx)}, random, idle, stall)
    bench.equal(run["dx"], dx, f"dx of {[(shape, *pooling) for shape, _, _, *pooling in tensors]}")
    assert bench.dut.error.value == error
    return run


def together(shape, dy, place, k, s, p):
    """How many gradients meet at each value."""
    return np.unique(maxpool.backward(np.ones(dy.shape), place, *shape[1:], k, s, p)).astype(int).tolist()


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def equals_golden(dut, idle, stall):
    random = rng()
    bench = await Bench.started(dut)
    tensors = []
    for index in random.permutation(len(LEGAL))[:4]:
        k, s, p = LEGAL[index]
        tensors += [tensor(random, shape, k, s, p) for shape in shapes(random, k, p, 1)]
    await check(bench, random, tensors, idle, stall)


@cocotb.test
@cocotb.parametrize(pooling=[f"{k}{s}{p}" for k, s, p in LEGAL])
async def equals_golden_in_every_pooling(dut, pooling):
    random = rng()
    bench = await Bench.started(dut)
    k, s, p = map(int, pooling)
    meet, least = Counter(), max(k - 2 * p, 1)
    several = [(2, least, least), (3, least, 9), (3, 9, least), (2, 7, WIDTH), (2, 6, WIDTH - 1), (2, 5, LOOP),
               (2, 5, LOOP - 1), (1, 7, 22), (2, 9, 9), (1, 9, 23)]  # fmt: skip
    for shape in several + list(shapes(random, k, p, 8)):
        case = tensor(random, shape, k, s, p, "crowded" if shape == (2, 9, 9) else None)
        await check(bench, random, [case])
        meet.update(together(*case))
    assert set(meet) >= {0, 1, (-(-k // s)) ** 2}, meet  # none, one, and as many as there can be


@cocotb.test
async def equals_golden_in_every_bit_of_a_size(dut):
    """At the start of maps that are too large to be seen whole; and a tall one, many, and wide ones."""
    random = rng()
    bench = await Bench.started(dut)
    for shape, part in large():
        _, dy, place, *pooling = tensor(random, part, 2, 2, 0)
        dx = [beat & 0xFFFF_FFFF for beat in expected(part, dy, place, *pooling)]
        sources = {"config": [configuration(*shape, *pooling)], "dy": words(dy, ends=False),
                   "map": maxpool.pack(place).tolist()}
        run = await bench.run(sources, {"dx": len(dx)}, random)
        bench.equal(run["dx"], dx, f"dx of the first {part} of {shape}")
        assert dut.error.value == 0 and not dut.config__ready.value
        await bench.reset()
    await check(bench, random, [tensor(random, (1, 520, 2), 2, 2, 0), tensor(random, (31, 2, 2), 2, 2, 0),
                                tensor(random, (2, 6, WIDTH), 3, 1, 1, "any")])


@cocotb.test
async def equals_golden_on_real_activations(dut):
    random = rng()
    bench = await Bench.started(dut)
    with np.load(ACTIVATIONS) as file:
        name = next(name for name in file.files if name.lower().startswith("relu"))
        x = file[name].astype(np.float32)[0, :2]
    tensors = []
    for k, s, p in ((3, 2, 1), (2, 2, 0), (3, 1, 1)):
        dy = random.normal(size=outputs(x.shape, k, s, p)).astype(np.float32).view(np.uint32)
        tensors.append((x.shape, dy, maxpool.forward(x, k, s, p)[1], k, s, p))
    await check(bench, random, tensors, "seldom", "seldom")


@cocotb.test
async def gives_a_value_every_cycle(dut):
    random = rng()
    bench = await Bench.started(dut)
    for k, s, p in LEGAL:
        for shape in ((2, 5, 30), (2, 4, LOOP - p), (3, 4, LOOP - p - 1), (2, 3, WIDTH)):
            run = await check(bench, random, [tensor(random, shape, k, s, p)])
            begin = run.cycles["config"][0] + 3
            row = max(shape[2] + p, LOOP)
            plane, y, x = np.indices(shape)
            entry = begin + (plane * (shape[1] + p) + y + p) * row + x + p
            assert run.cycles["dx"] == (entry + LATENCY).ravel().tolist()
            assert run.cycles["dx"][-1] == begin + steps(shape, p) - 1 + LATENCY
            plane, y, x = np.indices(outputs(shape, k, s, p))
            entry = begin + (plane * (shape[1] + p) + y * s) * row + x * s
            assert run.cycles["dy"] == entry.ravel().tolist()


@cocotb.test
async def starts_the_next_tensor_soon(dut):
    random = rng()
    bench = await Bench.started(dut)
    for k, s, p in LEGAL:
        for shape in ((1, 4, 6), (2, 4, min(30, WIDTH))):
            run = await check(bench, random, [tensor(random, shape, k, s, p) for _ in range(3)])
            gap = np.diff(run.cycles["config"])
            assert gap.tolist() == [steps(shape, p) + 4] * 2, (k, s, p, gap)


@cocotb.test
async def refuses_what_is_no_pooling(dut):
    random = rng()
    bench = await Bench.started(dut)
    async for _ in no_poolings(bench, random, ["dy", "map"], WIDTH):
        await check(bench, random, [tensor(random, (1, 4, 4), 2, 2, 0)])
    await check(bench, random, [tensor(random, (2, 1, WIDTH), 3, 2, 1)])


@cocotb.test
async def drops_gradients_of_bad_places(dut):
    random = rng()
    bench = await Bench.started(dut)
    for k, s, p in LEGAL:
        shape = (2, 6, 7)
        # One at a time: all that a nibble can say, at every window.
        shape, dy, place, *_ = tensor(random, shape, k, s, p)
        anything = np.arange(place.size * 16).reshape(-1, 16).T % 16
        for row in anything[: 4 if s == 1 else 16]:
            await check(bench, random, [(shape, dy, row.reshape(place.shape).astype(np.uint8), k, s, p)],
                        error=POSITION * (not maxpool.legal(row.reshape(place.shape), *shape[1:], k, s, p).all()))
        for flat in random.permutation(place.size)[:20]:
            wrong = place.copy()
            wrong.ravel()[flat] = random.integers(0, 16)
            fine = maxpool.legal(wrong, *shape[1:], k, s, p).all()
            await check(bench, random, [(shape, dy, wrong, k, s, p)], error=0 if fine else POSITION)
        await check(bench, random, [(shape, dy, place, k, s, p)])


@cocotb.test
@cocotb.parametrize(which=["dy", "map", "both"])
async def completes_a_stream_that_ends_early_with_zeros(dut, which):
    random = rng()
    bench = await Bench.started(dut)
    for k, s, p in LEGAL:
        shape = (2, 6, 7)
        case = shape, dy, place, *_ = tensor(random, shape, k, s, p)
        packed = maxpool.pack(place)
        cut = int(random.integers(1, dy.size)) if which != "map" else dy.size
        bytes_cut = int(random.integers(1, len(packed))) if which != "dy" else len(packed)
        known = np.arange(dy.size) < min(cut, 2 * bytes_cut)
        # What is missing adds nothing; +0.0 would change a sum of -0.0, which subnormal ones come to.
        dx = expected(shape, np.where(known.reshape(dy.shape), dy, np.uint32(0x8000_0000)), *case[2:])
        run = await bench.run({"config": [configuration(*shape, k, s, p)], "dy": words(dy.ravel()[:cut]),
                               "map": byte_beats(packed[:bytes_cut])}, {"dx": len(dx)}, random, "seldom", "half")
        bench.equal(run["dx"], dx, f"dx of short {which}")
        assert dut.error.value == SHORT
        await check(bench, random, [case])


@cocotb.test
@cocotb.parametrize(which=["dy", "map", "both"])
async def drains_a_stream_that_goes_on(dut, which):
    random = rng()
    bench = await Bench.started(dut)
    for k, s, p in LEGAL:
        shape = (2, 6, 7)
        case = shape, dy, place, *_ = tensor(random, shape, k, s, p)
        more = random.integers(0, 256, int(random.integers(1, 50)))
        sources = {
            "dy": words(np.append(dy, more) if which != "map" else dy),
            "map": byte_beats(np.append(maxpool.pack(place), more) if which != "dy" else maxpool.pack(place)),
        }
        dx = expected(*case)
        run = await bench.run({"config": [configuration(*shape, k, s, p)], **sources}, {"dx": len(dx)}, random,
                              "seldom", "half")
        bench.equal(run["dx"], dx, f"dx of long {which}")
        assert dut.error.value == EXCESS
        await check(bench, random, [case])


@cocotb.test
async def starts_anew_after_reset(dut):
    random = rng()
    bench = await Bench.started(dut)
    for fill in range(2, 40, 2):
        k, s, p = LEGAL[fill % len(LEGAL)]
        shape = (2, 12, 12)
        case = shape, dy, place, *_ = tensor(random, shape, k, s, p)
        sources = {"dy": words(dy.ravel()[:fill], ends=False), "map": byte_beats(maxpool.pack(place))[: fill // 2]}
        await bench.run({"config": [configuration(*shape, k, s, p)], **sources}, {"dx": None}, random, stall="half")
        await bench.reset()
        assert not dut.dx__valid.value
        await check(bench, random, [case])
