"""DIVISION's formats once more, as plain loops over single integers and fractions: slow, and easy to check by eye."""

from fractions import Fraction
from math import prod
from pathlib import Path

import numpy as np

import actcodec
from actcodec.golden.division.view import View

# Tiled; with a narrow last column of 1 to 7; planes of rows; samples of rows; one row; 2, 3 and 5 dimensions.
SHAPES = [
    (1, 1, 8, 8), (2, 3, 16, 24), (1, 2, 8, 9), (1, 1, 8, 10), (2, 1, 8, 13), (1, 3, 8, 31), (2, 2, 24, 40),
    (1, 5, 7, 7), (2, 3, 7, 13), (3, 2, 3, 3), (1, 7, 4, 4), (2, 9, 5, 11), (1, 2, 12, 28), (2, 40, 1, 1), (5, 3, 2, 3),
    (2, 3, 2, 3), (9, 1, 1, 8), (1, 1, 1, 9), (1, 1, 1, 1), (3, 50), (4, 65), (1, 513), (7, 8), (3, 5), (2, 3, 40),
    (1, 4, 6), (1, 2, 3, 8, 8), (2, 2, 4, 2, 16), (1, 2, 3, 5, 7), (2, 1, 1, 1, 1),
]  # fmt: skip

# What a descriptor may be besides: rows of a sector or less, several rows a plane, planes that come back, the last of
# them in part, and planes without a row.
VIEWS = [
    View(False, 7, 8, 1, 7), View(False, 9, 1, 9, 1), View(False, 33, 5, 4, 3), View(False, 70, 8, 3, 1),
    View(False, 11, 3, 20, 2), View(False, 13, 9, 2, 5), View(False, 10, 16, 3, 4), View(False, 30, 17, 2, 1),
    View(False, 5, 70, 2, 30), View(True, 40, 8, 2, 8), View(True, 24, 13, 2, 16), View(True, 16, 25, 5, 8),
]  # fmt: skip


def edges(shape):
    """Of the array that has the values of a tensor of `shape`, or of a View."""
    return (shape.rows, shape.width) if isinstance(shape, View) else shape


def plane_count(shape):
    """How many planes there are, with those that have no row."""
    return shape.planes if isinstance(shape, View) else 1 + rows_of(shape)[1][-1][0]


def sample():
    """The activations of a ResNet-20: name and tensor."""
    with np.load(Path(actcodec.__file__).parent / "data" / "resnet20.npz") as tensors:
        return {name: tensors[name] for name in tensors.files}


def awkward(shape, seed=0):
    """A half sparse tensor with a huge and a zero channel, -0.0, NaN (quiet, signalling), Inf and subnormals."""
    random = np.random.default_rng(seed)
    x = (random.standard_normal(shape) * (random.random(shape) > 0.5)).astype(np.float32)
    x[:, 1:2] *= np.float32(5e37)
    x[:, 2:3] = 0
    words = np.uint32([0x80000000, 0x7FC00000, 0x7F800001, 0xFF800001, 0x7F800000, 0xFF800000, 0x00000001, 0x807FFFFF])
    if x.size > 40:
        x.view(np.uint32).flat[random.choice(x.size, 8, replace=False)] = words
    return x


def rows_of(shape):
    """Whether a tensor of `shape` is tiled, and its rows: (plane, indices of the values in memory order)."""
    if isinstance(shape, View):
        tiled, count, width, planes, height = shape
        return tiled, [(r // height % planes, range(r * width, (r + 1) * width)) for r in range(count)]
    n, c, *edges = (shape[0], 1, shape[1]) if len(shape) == 2 else shape
    height, width = prod(edges[:-1]), edges[-1]
    if width >= 8 and height % 8 == 0:
        return True, [(r // height, range(r * width, (r + 1) * width)) for r in range(n * c * height)]
    for count in (n * c, n):
        length = n * c * height * width // count
        if length >= 9:
            break
    else:
        count, length = 1, n * c * height * width
    return False, [(r, range(r * length, (r + 1) * length)) for r in range(count)]


def blocks_of(shape):
    """Blocks, each eight (plane, row, sector, indices of values); plane -1 and no values in a void row."""
    tiled, rows = rows_of(shape)
    sectors = [[(plane, r, i, indices[8 * i : 8 * i + 8]) for i in range(-(-len(indices) // 8))]
               for r, (plane, indices) in enumerate(rows)]
    if tiled:
        return [[row[i] for row in sectors[top : top + 8]] for top in range(0, len(rows), 8)
                for i in range(len(sectors[0]))]
    flat = [sector for row in sectors for sector in row]
    flat += [(-1, -1, -1, range(0))] * (-len(flat) % 8)
    return [flat[i : i + 8] for i in range(0, len(flat), 8)]


def segments_of(shape):
    """For each block a list of segments, each a list of the block's row numbers."""
    tiled, _ = rows_of(shape)
    result = []
    for block in blocks_of(shape):
        rows = [i for i in range(8) if block[i][0] >= 0]
        names = [0 if tiled else block[i][1] for i in rows]
        result.append([[i for i, name in zip(rows, names, strict=True) if name == one] for one in dict.fromkeys(names)])
    return result


def front(block, rows, tiled):
    """Indices of the values that the average of a segment is over."""
    columns = [block[i][3] for i in rows]
    if tiled:
        width = 1 << len(columns[0]).bit_length() - 1
        return [index for values in columns for index in values[:width]]
    whole = [values for values in columns if len(values) == 8]
    if not whole:
        return columns[0][: 1 << len(columns[0]).bit_length() - 1]
    return [index for values in whole[: 1 << len(whole).bit_length() - 1] for index in values]


def quantized(x, k):
    """SFPR of one value."""
    if np.isnan(x):
        return 0
    if np.isinf(x):
        return 127 if x > 0 else -128
    exact = Fraction(float(x)) if abs(float(x)) >= 2.0**-126 else Fraction(0)
    return max(-128, min(127, round(exact * Fraction(float(k)))))


def random_numbers(seed, group):
    """The 32 rows' (even, odd) of a group."""
    a, b = group >> 16, group & 0xFFFF
    for i in range(8):
        a = (((a >> 7 | a << 9) & 0xFFFF) + b & 0xFFFF) ^ (seed >> 16 if i % 2 else seed & 0xFFFF)
        b = ((b << 2 | b >> 14) & 0xFFFF) ^ a
    s = (a << 16 | b) | 1
    for _ in range(32):
        s ^= s << 13 & 0xFFFFFFFF
        s ^= s >> 17
        s ^= s << 5 & 0xFFFFFFFF
        yield s % 32, s // 32 % 32


def encoded(x, k, delta, bits, seed, lfc=True, nearest=False, offset="mean", shape=None):
    """The bytes of every block, and how many values clip. Each group stands alone. `shape` may be a View."""
    shape, flat = shape or x.shape, x.reshape(-1)
    tiled, rows = rows_of(shape)
    y = [quantized(flat[index], k[plane]) for plane, indices in rows for index in indices]
    unit, coded, clipped = 2 ** (6 - bits), [], 0
    for number, (block, parts) in enumerate(zip(blocks_of(shape), segments_of(shape), strict=True)):
        if number % 4 == 0:
            random = list(random_numbers(seed, number // 4))
        base, data = {}, bytearray()
        for part in parts:
            averaged = [y[index] for index in front(block, part, tiled)]
            level = (2 * sum(averaged) + len(averaged)) // (2 * len(averaged))
            if offset == "min":
                level = min(y[index] for i in part for index in block[i][3])
            level = level * lfc + int(delta[block[part[0]][0]])
            base |= dict.fromkeys(part, max(-128, min(127, level)))
        begins = {part[0] for part in parts}
        for i, (_, _, _, indices) in enumerate(block):
            word = 0
            for lane, index in enumerate(indices):
                threshold = random[8 * (number % 4) + i][lane % 2] ^ [0, 0, 16, 16, 24, 24, 8, 8][lane]
                t = y[index] - base[i] + (unit // 2 if nearest else threshold * unit // 32)
                clipped += not 0 <= t <= 63
                word |= max(0, min(63, t)) // unit << lane * bits
            if i in begins:
                data.append(base[i] % 256)
            data += word.to_bytes(bits, "little")
        coded.append(bytes(data))
    return coded, clipped


def table_of(x, bits, lfc=True, offset="mean", shape=None):
    """k and delta of each plane in exact fractions; 0 of a plane without a row. `shape` may be a View."""
    shape, flat = shape or x.shape, x.reshape(-1)
    tiled, _ = rows_of(shape)
    planes = {plane: [] for plane in range(plane_count(shape))}
    for block, parts in zip(blocks_of(shape), segments_of(shape), strict=True):
        for part in parts:
            everything = [index for i in part for index in block[i][3]]
            planes[block[part[0]][0]].append((everything, front(block, part, tiled)))
    value = [Fraction(float(v)) if np.isfinite(v) and abs(float(v)) >= 2.0**-126 else Fraction(0) for v in flat]
    span, top = 64 - 2 ** (6 - bits), 128 - 2 ** (6 - bits)
    result = []
    for parts in planes.values():
        def extremes(y, half, parts=parts):
            hfc = []
            for everything, averaged in parts:
                level = Fraction(sum(y[i] for i in averaged), len(averaged)) if lfc else 0
                level = min(y[i] for i in everything) if lfc and offset == "min" else level
                level = (level + Fraction(1, 2)).__floor__() if half else level
                hfc += [y[i] - level for i in everything]
            return min(hfc), max(hfc)

        indices = [i for everything, _ in parts for i in everything]
        largest = max((abs(value[i]) for i in indices), default=0)
        if not largest:
            result.append((0.0, 0))
            continue
        e = Fraction(2) ** 15
        while largest * e >= 1 << 15:
            e /= 2
        while largest * e < 1 << 14:
            e *= 2
        low, high = extremes({i: round(value[i] * e) for i in indices}, False)
        k = min(span * e / (high - low) if high > low else Fraction(2) ** 126, top / largest, Fraction(2) ** 126)
        k = bfloat16_down(k)
        while True:
            y = {i: round(value[i] * k) for i in indices}
            low, high = extremes(y, True)
            if high - low <= span and max(map(abs, y.values())) <= top:
                break
            k = bfloat16_down(k, below=True)
        result.append((float(k), max(-128, low)))
    return result


def bfloat16_down(x, below=False):
    """The largest number of 8 bits not above the fraction x, or below it."""
    unit = Fraction(2) ** (x.numerator.bit_length() - x.denominator.bit_length() - 9)
    while x >= 256 * unit:
        unit *= 2
    digits = x // unit
    if below and digits * unit == x:
        return (digits - 1) * unit if digits > 128 else 255 * unit / 2
    return digits * unit
