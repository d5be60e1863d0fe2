"""What the benches of both directions of max pooling share: poolings, tensors, beats."""

from pathlib import Path

import numpy as np
from cocotb.triggers import ClockCycles

import actcodec

CONFIG, SHORT, EXCESS = 1, 2, 4  # errors
LEGAL = [(k, s, p) for k in (2, 3) for s in (1, 2, 3) for p in (0, 1)]
SPECIAL = np.array([0, 1 << 31, 0x7F80_0000, 0xFF80_0000, 0x7FC0_0000, 0xFFC0_0001, 0x7F80_0001, 1, 1 << 31 | 1,
                    0x3F80_0000, 0xBF80_0000, 0x7F7F_FFFF], np.uint32)
KINDS = ("normal", "ties", "relu", "special", "zeros", "low", "bits", "near")
ACTIVATIONS = Path(actcodec.__file__).parent / "data" / "resnet20.npz"


def configuration(planes, height, width, k, stride, padding):
    return planes | height << 32 | width << 48 | k << 64 | stride << 66 | padding << 68


def words(values, ends=True):
    """Values of 32 bits as beats, the last one marked."""
    flat = np.ravel(values).astype(np.int64)
    return [int(word) | (ends and k == len(flat) - 1) << 32 for k, word in enumerate(flat)]


def byte_beats(packed):
    return [int(byte) | (k == len(packed) - 1) << 8 for k, byte in enumerate(packed)]


def random_map(random, shape, kind=None):
    """Words [planes, height, width] of a kind, or one of several, named."""
    kind = kind or str(random.choice(KINDS))
    values = {
        "normal": lambda: random.normal(size=shape), "ties": lambda: random.integers(-1, 2, shape),
        "relu": lambda: np.maximum(random.normal(size=shape), 0), "zeros": lambda: random.choice([0.0, -0.0], shape),
        "low": lambda: random.choice([-np.inf, -3e38], shape),
    }
    if kind in values:
        return kind, values[kind]().astype(np.float32).view(np.uint32)
    if kind == "near":  # values of a plane differ in one bit
        bit = np.uint32(1) << (np.arange(shape[0]) % 32).astype(np.uint32)
        base = random.integers(0, 2**32, (shape[0], 1, 1), np.uint32)
        return kind, base ^ bit[:, None, None] * random.integers(0, 2, shape, np.uint32)
    if kind == "special":
        return kind, random.choice(SPECIAL, shape)
    return kind, random.integers(0, 2**32, shape, np.uint32)


def shapes(random, k, p, count):
    least = max(k - 2 * p, 1)
    for _ in range(count):
        yield (int(random.integers(1, 4)), *(int(least + random.integers(0, 9)) for _ in range(2)))


def large():
    """Maps with each bit of a size: (their shape, that of a part that comes first and looks the same). Poolings with
    windows of 2 side by side have an even number of them in it."""
    yield from (((1 << bit | 3, 2, 2), (6, 2, 2)) for bit in range(3, 32))
    yield from (((1, 1 << bit | 2, 3), (1, 8, 3)) for bit in range(3, 16))


async def no_poolings(bench, random, inputs, width):
    """Gives a unit of that ``width`` what is no pooling, and yields each time when it has said so and takes nothing of
    its ``inputs``."""
    legal = dict(planes=1, height=4, width=4, k=2, stride=2, padding=0)
    for change in (dict(planes=0), dict(height=0), dict(width=0), dict(width=width + 1), dict(width=65535), dict(k=0),
                   dict(k=1), dict(stride=0), dict(padding=2), dict(padding=3), dict(height=1), dict(width=1),
                   dict(k=3, height=2), dict(k=3, width=2), dict(k=3, height=2, width=2)):
        await bench.run({"config": [configuration(**{**legal, **change})]}, {}, random)
        await ClockCycles(bench.clk, 3)
        assert bench.dut.error.value == CONFIG, change
        assert not any(getattr(bench.dut, f"{port}__ready").value for port in inputs)
        yield
