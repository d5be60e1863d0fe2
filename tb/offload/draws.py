"""Descriptors, settings and scales drawn from the limits in docs/registers.md, on either side of each."""

import numpy as np

from actcodec.golden.jpegact import sfpr
from actcodec.golden.offload.memory import formats as memory
from actcodec.rtl.offload.control import limits
from tb.offload.descriptors import Descriptor

__all__ = ["descriptor", "illegal", "rows", "scale_words", "settings", "values"]

MOST = 4000  # values of a tensor, about
SPECIAL = np.array([np.nan, -np.nan, np.inf, -np.inf, 1e-40, -3e-39, -0.0, 3e38, 0], np.float32)
LARGEST = limits.RANGES["height"][1]


def descriptor(random, mode, cdus, size=None, back=False, most=MOST, formats=("float32",), scan=False):
    """Any legal one of a mode, of about ``most`` values or fewer, or of a ``size``: rows, width, height, channels; in
    one of ``formats`` that it takes. ``back``: for decompression, with which more settings may be legal. ``scan``: one
    that can be scanned."""
    rows, width, height, channels = size or (images if scan else _size)(random, mode, most)
    shifts = {"table": bits(192)(random)} if mode.shifts else {}
    formats = [form for form in formats if form != memory.CODES or (mode.codes and not scan)]
    return Descriptor(mode, cdus, rows, width, height, channels, bool(random.random() < 0.3),
                      shifts | settings(random, mode, back),
                      formats[random.integers(len(formats))] if len(formats) > 1 else formats[0])


def _size(random, mode, largest):
    """Rows of a sector or less, few long ones, many short ones, one, any; scales for each row, for all, in turn, more
    than needed."""
    least = 8 if mode.tiled else 1
    most = ((40, 8), (8, 300), (400, 20), (1, 2000), (64, 64), (16, 16))[random.integers(6)]
    rows, width = (int(random.integers(least, max(most[k], least), endpoint=True)) for k in range(2))
    rows = min(rows, max(largest // width, least))
    height = int(random.choice([1, random.integers(1, rows + 1), random.integers(1, 12), 8, rows, rows + 7, LARGEST]))
    if mode.format.kind == "segment":  # a tile lies in one plane, and is whole
        rows, height = rows // 8 * 8, min(-(-height // 8) * 8, LARGEST // 8 * 8)
    planes = -(-rows // height)
    channels = [planes, 1, random.integers(1, planes + 1), planes + random.integers(1, 40), LARGEST]
    return rows, width, height, int(channels[random.choice(5, p=[0.3, 0.2, 0.3, 0.15, 0.05])])


def images(random, mode, largest):
    """Such that the rows are whole images: few channels or more than a line of scales has, of one row or of many."""
    while True:
        height = int(random.choice([1, 2, 3, 5, 14])) * (8 if mode.format.whole else 1)
        count, channels, width = (int(random.choice(some)) for some in (
            (1, 1, 2, 3, 7), (1, 2, 3, 7, 8, 9, 16, 17, 40, 70), (1, 2, 7, 8, 9, 15, 16, 17, 40, 64, 200)))
        rows = count * channels * height
        if rows * width <= largest and (not mode.tiled or min(rows, width) >= 8):
            return rows, width, height, channels


# ---------------------------------------------------------------------------------------------------------- settings
def settings(random, mode, back=False):
    """A legal number for each setting of a mode."""
    return {setting.name: _legal(random, setting, back) for setting in mode.settings}


def _legal(random, setting, back):
    while setting.broken(number := NUMBERS.get(setting.name, bits(setting.width))(random), back):
        pass
    return number


def bits(count):
    def draw(random):
        return int.from_bytes(random.bytes(-(-count // 8)), "little") & (1 << count) - 1
    return draw


def table(least, most):
    """64 bytes, alike or not, near the least or anywhere."""
    def draw(random):
        low, high = sorted(random.integers(least, most, 2, endpoint=True).tolist())
        high = [high, low, least, most][random.choice(4, p=[0.6, 0.2, 0.1, 0.1])]
        low = min(low, high)
        return int.from_bytes(random.integers(low, high, 64, np.uint8, endpoint=True).tobytes(), "little")
    return draw


def rice(random):
    """k of the anti-diagonals, how many groups have a flag, e in ascending order, no sign."""
    k = random.integers(0, int(random.choice([1, 3, 5, 8])), 15).tolist()
    e = sorted(random.integers(0, int(random.choice([2, 4, 8])), 4).tolist())
    return rice_word(k, int(random.integers(17)), e, int(random.random() < 0.3))


def rice_word(k, flags, e, straight=0):
    return (sum(value << 3 * i for i, value in enumerate(k)) | flags << 45
            | sum(value << 50 + 3 * i for i, value in enumerate(e)) | straight << 62)


def step(random):
    """A bfloat16 from 2^-125 to 2^112, mostly such that there is something to predict."""
    exponent = random.integers(120, 129) if random.random() < 0.8 else random.choice([2, 238, random.integers(2, 239)])
    return 239 << 7 if random.random() < 0.02 else int(exponent) << 7 | int(random.integers(128))


def counts(random):
    """n_1 to n_7 of any complete book: leaves of a tree no deeper than 8."""
    n = [0, 2, *[0] * 7]
    for _ in range(int(random.choice([0, 3, 20, 300]))):
        length = int(random.choice([length for length in range(1, 8) if n[length]] or [8]))
        if length < 8:
            n[length] -= 1
            n[length + 1] += 2
    return int.from_bytes(bytes(n[1:8]), "little")


NUMBERS = {
    "nibble_table": bits(81), "rice_table": rice, "steps": table(2, 255), "dead_zone": bits(2),
    "divisors": table(1, 255), "seed": bits(32), "lfc": bits(1), "minimum": bits(1), "nearest": bits(1), "step": step,
    "horizontal": bits(1), "vertical": bits(1), "signed": bits(1),
    "counts": counts,
}
"""What draws a number of each setting that may be legal."""


# -------------------------------------------------------------------------------------------------- values and scales
def values(random, rows, width):
    """Rows of float32: what a network has, and what it should not have."""
    x = random.normal(random.choice([0, 0, 1, -30]), 1, (rows, width)).astype(np.float32)
    kind = random.integers(6)
    if kind <= 1:
        x = np.maximum(x - np.float32(0.5 * kind), 0)
    if kind == 2:
        special = random.random(x.shape) < 0.05
        x[special] = random.choice(SPECIAL, special.sum())
        x[:, : width // 2] *= np.float32(1e-20)
    if kind == 3:  # any bits
        x = random.integers(0, 1 << 32, x.shape, np.uint32).view(np.float32)
    if kind == 4:
        x = (np.cumsum(x, axis=1) * np.float32(0.1)).astype(np.float32)
    return x


def rows(random, descriptor):
    """Rows of a descriptor as memory has them; words of 16 bits may be any, and codes."""
    x = values(random, descriptor.rows, descriptor.width)
    if descriptor.bytes == 4:
        return x
    if descriptor.bytes == 1:
        some = random.integers(-128, 128, x.shape, np.int8)
        return some if random.random() < 0.3 else np.where(random.random(x.shape) < 0.05, some, sfpr.quantize(x, 30))
    return (random.integers(0, 1 << 16, x.shape, np.uint16) if random.random() < 0.2
            else memory.narrow(x, descriptor.format))


def scale_words(random, descriptor, x):
    """Words of the scale table to compress with: mostly near what a channel's values ask for. Nothing of a word is
    illegal; its low half does not count, or is DIVISION's delta."""
    count, channel = descriptor.scales, descriptor.view.channel
    if not count:
        return np.zeros(0, np.uint32)
    finite = np.where(np.isfinite(x) & (np.abs(x) < 1e30), np.abs(x), 0).max(axis=1)
    largest = np.zeros(count)
    np.maximum.at(largest, channel, finite)
    k = 144 / np.maximum(largest, 1e-30) * 2.0 ** random.uniform(-4, 2, count)
    k = np.minimum(k, sfpr.LARGEST).astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)
    any_ = random.integers(0, 1 << 32, count, np.uint32)
    k = np.where(random.random(count) < 0.05, any_, k)
    k[random.random(count) < 0.05] = 0
    low = random.integers(-60, 10, count) if random.random() < 0.7 else random.integers(-128, 128, count)
    return k & np.uint32(0xFFFF0000) | (low & 0xFFFF if random.random() < 0.5 else low & 0xFF).astype(np.uint32)


def back_words(random, words):
    """Words to decompress with: 1 / k, or any."""
    r = sfpr.reciprocal(np.clip(sfpr.compressing(words), 0, sfpr.LARGEST).astype(np.float32)).view(np.uint32)
    any_ = random.integers(0, 1 << 32, r.size, np.uint32)
    any_ = np.where(random.random(r.size) < 0.1, any_ | np.uint32(255 << 23), any_)
    return np.where(random.random(r.size) < 0.1, any_, r).astype(np.uint32)


# ------------------------------------------------------------------------------------------------------- the other side
def illegal(random, values, mode, address_width):
    """Registers that are beyond one limit, from legal ``values``: that limit's name, and all of them."""
    beyond = [(name, other) for name, other in limits.around(values, mode, address_width)
              if limits.violated(other, mode, address_width) and min(other.values()) >= 0]  # which registers hold
    names = sorted({name for name, _ in beyond})
    name = names[random.integers(len(names))]
    some = [other for one, other in beyond if one == name]
    return name, some[random.integers(len(some))]
