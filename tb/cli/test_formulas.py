"""The formulas and defaults that docs/integration.md gives the author of a driver, held to golden."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

from actcodec import demo
from actcodec.codecs import lane_modes
from actcodec.golden.comet import book, lorenzo, prequantise
from actcodec.golden.division import table as division
from actcodec.golden.division import view as planes
from actcodec.golden.jpegact import bits, div, nibble, rice, sfpr, steps
from actcodec.golden.offload import blocks
from tb import reference

DOCUMENT = (Path(__file__).resolve().parents[2] / "docs" / "integration.md").read_text()
FAMILIES = ((0, 1, 2, 3), (0, 1, 2, 4), (None, 0, 1, 3), (None, 0, 1, 2))  # of a base; None: 0
SAMPLE = demo.sample()
DENSE = [x for name, x in SAMPLE.items() if name.startswith("conv")]
RELU = [x for name, x in SAMPLE.items() if name.startswith("ReLU")]


def mode(name):
    return lane_modes(name)[0]


def setting_of(name, setting):
    return next(one for one in mode(name).settings if one.name == setting)


# ---------------------------------------------------------------------------------------------------- what is legal
def legal(setting, number, decompress=True):
    return setting.broken(number, decompress) is None


def accepts(function, *arguments):
    try:
        function(*arguments)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("name, golden", [
    (("jpeg-act-rice", "rice_table"), rice.Table.of), (("sfpr-rice", "rice_table"), rice.Table.of),
    (("jpeg-act-nibble", "nibble_table"), nibble.Table.of),
    (("jpeg-base", "divisors"), div.Table.of),
    (("comet", "counts"), lambda number: book.Book.from_bytes(number.to_bytes(7, "little"))),
    (("comet-flat", "step"), lambda number: prequantise.check(float(np.uint32(number << 16).view(np.float32))))])
def test_golden_has_the_same_limits(name, golden):
    """From both sides, and for any bits; both answers come up, but where all is legal."""
    setting, random = setting_of(*name), np.random.default_rng(1)
    numbers = [*setting.around(setting.default), *range(1 << 16)] if setting.width == 16 else [
        *setting.around(setting.default),
        *(int.from_bytes(random.bytes(64), "little") >> 512 - setting.width for _ in range(3000)),
        *(other for _ in range(50) for other in setting.around(
            setting.default ^ 1 << int(random.integers(setting.width))))]
    answers = [legal(setting, number) for number in numbers]
    assert answers == [accepts(golden, number) for number in numbers]
    assert set(answers) == ({True, False} if setting.limits else {True})


def test_steps_have_the_least_of_golden():
    setting, quarters = setting_of("jpeg-act-div", "steps"), np.arange(256)
    for place in (0, 17, 63):
        answers = [legal(setting, setting.default & ~(255 << 8 * place) | int(q) << 8 * place) for q in quarters]
        assert answers == (quarters >= steps.LEAST).tolist() and len(quarters) == steps.MOST + 1


def test_a_rice_table_that_compresses_needs_its_sums():
    """But for the first k, which may be any."""
    setting, numbers = setting_of("jpeg-act-rice", "rice_table"), []
    for d in range(15):
        for k in range(8):
            for last in range(8):
                table = rice.Table([k if d == place else 0 for place in range(15)], 3, (0, 0, 0, last))
                assert legal(setting, table.word) and legal(setting, table.word, False) == (d == 0 or k + last <= 8)
                numbers.append(table.word)
    assert len(set(numbers)) > 800


# ------------------------------------------------------------------------------------------------------- the defaults
def test_the_defaults_of_coders_work():
    """On tensors that they were not made for they cost a few percent."""
    for base, tensors in (("jpeg-act", DENSE), ("sfpr", RELU)):
        for coder, table in (("nibble", nibble.Table), ("rice", rice.Table)):
            name = f"{base}-{coder}"
            code = table.of(setting_of(name, f"{coder}_table").default)
            sizes = np.zeros(2)
            for x in tensors:
                own, other = reference.compress(x, name), reference.compress(x, name, code=code)
                sizes += len(own.payload), len(other.payload)
                np.testing.assert_array_equal(reference.decompress(own), reference.decompress(other))
            assert sizes[1] < 1.08 * sizes[0], (name, sizes)


def test_the_default_book_works():
    counts = setting_of("comet", "counts").default.to_bytes(7, "little")
    own = book.Book.from_bytes(counts)
    assert own.counts[7] == 256 - sum(n << 8 - k for k, n in enumerate(counts, 1))
    numbers = ", ".join(map(str, counts))
    assert f"`counts` of the default book are {numbers} (and {own.counts[7]})" in re.sub(r"\s+", " ", DOCUMENT)
    for x in (*DENSE, *RELU):
        q, _ = prequantise.quantize(x, prequantise.step(0.01 * float(x.max() - x.min())))
        h = book.histogram(lorenzo.residuals(q, x.shape, lorenzo.CONFIGS["none"]))
        assert book.cost(own, h) < 1.3 * book.cost(book.build(h), h)


# ----------------------------------------------------------------------------------------------------- the formulas
def views(n, c, h, w):
    """Rows, width, height and channels, as the document has them: of JPEG-ACT, of DIVISION, of comet-flat."""
    size = n * c * h * w
    paper = ((n * c * h, w, h, c) if w >= 8 else (n * c, h * w, 1, c) if h * w >= 8 else (n, c * h * w, 1, 1))
    flat = ((n * c, h * w, 1, n * c) if h * w >= 9 else (n, c * h * w, 1, n) if c * h * w >= 9 else (1, size, 1, 1))
    return (paper, (n * c * h, w, h, n * c) if w >= 8 and h % 8 == 0 else flat,
            (size // 8, 8, 1, 1) if size % 8 == 0 else (1, size, 1, 1))


def test_views():
    random = np.random.default_rng(2)
    for _ in range(300):
        shape = tuple(int(size) for size in random.integers(1, (4, 5, 26, 20)))
        actual = [(v.rows, v.width, v.height, getattr(v, "channels", None) or v.planes) for v in (
            blocks.view(shape), planes.view(shape), mode("comet-flat").model.view(shape))]
        assert actual == [*views(*shape)], shape
        n, f = shape[:2]
        assert views(n, f, 1, 1)[0] == ((v := blocks.view((n, f))).rows, v.width, v.height, v.channels)
        assert views(n, 1, 1, f)[1] == ((v := planes.view((n, f))).rows, v.width, v.height, v.planes)


def bfloat16(number):
    """Cut."""
    return float((np.float32(number).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32))


def segments(shape, tiled):
    """For each plane its segments: lists of indices of values, and those of the average."""
    n, c, h, w = shape
    index, result = np.arange(math.prod(shape)).reshape(n * c, h, w), []
    two = lambda size: 1 << size.bit_length() - 1  # noqa: E731
    if tiled:
        for plane in index:
            tiles = [plane[r : r + 8, k : k + 8] for r in range(0, h, 8) for k in range(0, w, 8)]
            result.append([(tile.reshape(-1), tile[:, : two(tile.shape[1])].reshape(-1)) for tile in tiles])
        return result
    rows, width, _, _ = views(*shape)[1]
    sectors = -(-width // 8)
    for r, row in enumerate(np.arange(rows * width).reshape(rows, width)):
        ends = [s for s in range(1, sectors) if (r * sectors + s) % 8 == 0]
        result.append([])
        for piece in np.split(row, [8 * end for end in ends]):
            whole = len(piece) // 8
            result[-1].append((piece, piece[: 8 * two(whole)] if whole else piece[: two(len(piece))]))
    return result


@pytest.mark.parametrize("shape, tiled", [((2, 3, 16, 20), True), ((2, 2, 8, 12), True), ((3, 2, 5, 23), False),
                                          ((4, 2, 2, 7), False), ((3, 4, 1, 2), False)])
@pytest.mark.parametrize("q", [1, 2, 4])
@pytest.mark.parametrize("lfc, offset", [(True, "mean"), (True, "min"), (False, "mean")])
def test_scales_of_division(shape, tiled, q, lfc, offset):
    x = np.random.default_rng(3).normal(0.3, 1, shape).astype(np.float32)
    golden, step, values = division.table(x, q, lfc, offset), 1 << 6 - q, x.reshape(-1).astype(np.float64)

    def rest(y, rounded):
        """y - L of a plane."""
        out = []
        for every, front in plane:
            level = 0.0 if not lfc else y[every].min() if offset == "min" else y[front].mean()
            out.append(y[every] - (math.floor(level + 0.5) if rounded else level))
        return np.concatenate(out)

    for number, plane in enumerate(segments(shape, tiled)):
        every = np.concatenate([one for one, _ in plane])
        spread = rest(values, False)
        k = bfloat16(min((64 - step) / (spread.max() - spread.min()), (128 - step) / np.abs(values[every]).max()))
        assert 0.95 * k < golden.k[number] <= 1.01 * k  # golden begins with 16 bits of x
        k = float(golden.k[number])
        left = rest(np.rint(values * k), True)
        assert left.max() - left.min() <= 64 - step and np.abs(np.rint(values[every] * k)).max() <= 128 - step
        assert golden.delta[number] == max(left.min(), -128) and (golden.delta[number] == 0 or offset == "mean")


def test_scales_of_the_others():
    x = np.random.default_rng(4).normal(0, 3, (2, 3, 9, 10)).astype(np.float32)
    golden = sfpr.scales(x)
    m = np.abs(x).max(axis=(0, 2, 3))
    assert np.all(np.abs(golden.k * m / 144 - 1) <= 2.0**-8) and np.array_equal(golden.r, np.float32(1) / golden.k)


def test_nibble_table():
    x = np.random.default_rng(5).normal(0, 9, (500, 64)).round().clip(-128, 127).astype(np.int8)
    x[::7] = 0
    u = np.where(x >= 0, 2 * x.astype(int), -2 * x.astype(int) - 1).reshape(-1, 16, 4)
    need = np.frompyfunc(int.bit_length, 1, 1)(u.max(axis=2))[x.any(axis=1)].astype(int)
    word = 0
    for g in range(16):
        c, cost = np.bincount(need[:, g], minlength=9), {}
        for f, family in enumerate(FAMILIES):
            for b in range(8):
                widths = [0 if more is None else min(b + more, 8) for more in family]
                cost[f, b] = sum(int(c[w]) * min((one for one in widths if one >= w), default=88) for w in range(9))
        f, b = min(cost, key=cost.get)
        word |= (b | f << 3) << 5 * g
    assert nibble.fit(x).word == word


def test_rice_table():
    """What the formula gives is near the best one, and compresses."""
    setting = setting_of("jpeg-act-rice", "rice_table")
    d = np.add.outer(np.arange(8), np.arange(8)).reshape(64)
    x = (np.random.default_rng(6).laplace(0, 1, (500, 64)) * 20 / (1 + d)).round().clip(-128, 127).astype(np.int8)
    u = bits.fold(x.view(np.uint8), False).mean(axis=0)
    k = [min(round(math.log2(max(1, 0.69 * u[d == one].mean()))), 7) for one in range(15)]
    e = [min(one, 8 - max(k[1:])) for one in (1, 2, 3, 5)]
    word = sum(one << 3 * at for at, one in enumerate(k)) | 8 << 45 | sum(one << 50 + 3 * j for j, one in enumerate(e))
    assert legal(setting, word, False)
    assert rice.measure(x, rice.Table.of(word)).sum() < 1.05 * rice.measure(x, rice.fit(x)).sum()


def test_step_of_a_bound():
    random = np.random.default_rng(7)
    for eb in map(float, np.float32([*10.0 ** random.uniform(-37, 38, 500), 2.0**-126, 1.0, 0.75, 2.0**111])):
        cut = int(np.float32(min(2 * eb, 2.0**112)).view(np.uint32)) >> 16
        assert float(np.uint32(cut << 16).view(np.float32)) == prequantise.step(eb)


def test_bins():
    """Each symbol is in one bin, the one in which the unit counts it."""
    seen = []
    for b in range(32):
        o = 4 + (b - 16) // 2
        first, last = (b, b) if b < 16 else ((2 + b % 2) << o - 1, ((3 + b % 2) << o - 1) - 1)
        seen += range(first, last + 1)
        for u in (first, last):
            assert book.histogram(np.full(8, u), sampled=True)[b] == 1
    assert seen == list(range(4096))


def test_a_book_of_a_histogram():
    """The document's steps and prices."""
    h = np.zeros(4096, np.int64)
    h[:40] = (1000 * 0.8 ** np.arange(40)).astype(int)
    h[500] = 3

    def price(lengths, U):
        return (h[:U] @ lengths[:U] + h[U : U + 224].sum() * (lengths[U] + 24) + h[U + 224 :].sum() * (lengths[U] + 48))

    best = math.inf
    for U in range(1, 256):
        w = h[:U].astype(float)
        assert np.all(np.diff(w) <= 0)  # no means here
        w = np.append(w, min(h[U:].sum(), w[-1]))
        lengths = book.lengths(w[::-1])[::-1]
        best = min(best, price(lengths, U))
    golden = book.build(h)
    assert price(golden.length, golden.U) == best == book.cost(golden, h, 16)
