"""The whole codec: the contract's examples, round trips, and streams that are damaged or random."""

import math
import zlib

import numpy as np
import pytest

from actcodec.golden.comet import book, comet, lorenzo, prequantise
from actcodec.golden.comet.book import Book
from actcodec.golden.comet.comet import Encoded, Error
from actcodec.golden.comet.lorenzo import CONFIGS
from actcodec.golden.offload.blocks import View
from tb.judges import oracles
from tb.judges.test_sfpr import every_exponent

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")

SMALL, OTHER, LARGE = (Book(counts) for counts in (
    (1, 1, 2, 0, 0, 0, 0, 0), (0, 1, 3, 2, 4, 4, 4, 8), (0, 0, 0, 0, 0, 0, 0, 256)))
TILED = [s for s in oracles.SHAPES if len(s) == 4 and s[3] >= 8 and math.prod(s[:3]) >= 8]
CASES = [(s, name) for s in oracles.SHAPES if math.prod(s) < 50000
         for name, config in CONFIGS.items() if s in TILED or not config.tiled]
VIEWS = [View(rows, width, 1, height, rows >= 8 and width >= 8) for rows, width, height in (
    (2, 9, 1), (9, 31, 4), (40, 8, 3), (1, 300, 1), (70, 3, 2), (3, 264, 2))]


def awkward(shape):
    """A half sparse tensor with -0.0, NaN (quiet, signalling), Inf, subnormals and values that are far away."""
    random = np.random.default_rng(0)
    x = (random.standard_normal(shape) * (random.random(shape) > 0.5)).astype(np.float32)
    special = 0x80000000, 0x7FC00000, 0x7F800001, 0xFF800001, 0x7F800000, 0xFF800000, 1, 0x807FFFFF, 0x7F7FFFFF
    place = random.integers(0, x.size, min(x.size // 4, 60))
    x.view(np.uint32).reshape(-1)[place] = np.resize(np.uint32(special), place.size)
    return x


def checked(x, encoded, eb):
    """The tensor that comes back; checks what holds for every value."""
    y, error = comet.decompress(encoded, x.shape)
    assert (y.shape, y.dtype, error) == (x.shape, np.float32, Error(0))
    far = ~np.isfinite(x) | (np.abs(x, where=np.isfinite(x), out=np.zeros_like(x)) >= 2047.5 * encoded.s)
    assert np.array_equal(x[far].view(np.uint32), y[far].view(np.uint32))
    assert np.all(np.abs(x[~far].astype(np.float64) - y[~far]) <= eb)
    assert not y[x == 0].view(np.uint32).any()
    return y


# ------------------------------------------------------------------------------------------------------------- examples
@pytest.mark.parametrize("name, values, back, stream", [
    ("none+", [0, 1, 2, 0, 1, 0, 7, 0.4], [0, 1, 2, 0, 1, 0, 7, 0],
     "0080c0008000e000 0000000000008000 0000000000000000"),
    ("line", [-1, 1, 2, 0, 1, 0, np.inf, 300], [-1, 1, 2, 0, 1, 0, np.inf, 300],
     "80e0c0e0c080fefc 002000000000004b 0000000000000000 00000000 10000fe0 00"),
])  # fmt: skip
def test_the_contracts_short_examples(name, values, back, stream):
    encoded = comet.compress(np.float32([values]), 0.5, CONFIGS[name], SMALL)
    assert encoded == Encoded(1.0, CONFIGS[name], SMALL, (bytes.fromhex(stream),))
    assert comet.decompress(encoded, (1, 8))[0].tolist() == [back]


def test_the_contracts_long_example():
    i = np.arange(2 * 2 * 9 * 11)
    x = ((7919 * i % 997 - 300) / 64).astype(np.float32).reshape(2, 2, 9, 11)
    x[0, 0, 0, 0], x[1, 1, 8, 10], x[0, 1, 3, 3] = np.nan, -1e9, 100
    encoded = comet.compress(x, 0.05, CONFIGS["plane"], OTHER)
    (stream,) = encoded.streams
    assert (len(stream), f"{zlib.crc32(stream):08x}", stream[:8].hex()) == (428, "434c282b", "fffff6f2f6f6f6f6")
    checked(x, encoded, 0.05)


def test_a_tensor_of_one_value_takes_16_bytes():
    assert comet.compress(np.zeros((1, 1), np.float32), 1.0).payload_bytes == 16


# ---------------------------------------------------------------------------------------------------------- round trips
@pytest.mark.parametrize("shape, name", CASES, ids=str)
def test_round_trip(shape, name):
    x = awkward(shape)
    results = {checked(x, comet.compress(x, 0.01, CONFIGS[name], code, cdus), 0.01).tobytes()
               for code, cdus in ((SMALL, 1), (OTHER, 3), (LARGE, 8))}
    assert len(results) == 1


@pytest.mark.parametrize("view", VIEWS, ids=str)
def test_rows_of_a_descriptor_make_streams_of_their_groups_and_come_back(view):
    """On any number of CDUs; one without padding gives the stream of a shape."""
    x = awkward((view.rows, view.width))
    for config in (CONFIGS["line"], CONFIGS["none"], *([CONFIGS["plane"]] if view.tileable else [])):
        expected = comet.decompress(comet.compress(x, 0.01, CONFIGS["none"], LARGE), x.shape)[0]
        for code, cdus in ((SMALL, 1), (OTHER, 3), (LARGE, 8)):
            encoded = comet.compress(x, 0.01, config, code, cdus, view)
            y, error = comet.decompress(encoded, view)
            assert (y.shape, error) == (x.shape, Error(0))
            assert y.tobytes() == expected.tobytes()
            if not config.tiled and (view.rows == 1 or view.width % 8 == 0):
                assert encoded == comet.compress(x, 0.01, config, code, cdus)


@pytest.mark.parametrize("eb", np.geomspace(2.0**-126, 1e30, 20))
def test_the_bound_holds_and_zeros_stay_for_any_bound(eb):
    x = np.concatenate([every_exponent(), np.float32(np.random.default_rng(0).normal(0, 50 * eb, 512))])
    x = x.reshape(8, 1, 8, -1)
    for config, code in ((CONFIGS["plane"], OTHER), (CONFIGS["none"], LARGE)):
        checked(x, comet.compress(x, eb, config, code), eb)


@pytest.mark.parametrize("shape", [(1, 5, 56, 56), (3, 2, 9, 24), (1, 2, 40, 16), (1, 1, 36, 8), (13, 70)], ids=str)
@pytest.mark.parametrize("cdus", [2, 8])
def test_each_cdu_makes_the_stream_of_its_groups_alone(shape, cdus):
    """As a tensor that consists of these groups only; four tiles side by side, or 256 values."""
    x = awkward(shape)
    for name in ("line", *(["plane"] if shape in TILED else [])):
        config = CONFIGS[name]
        encoded = comet.compress(x, 0.01, config, OTHER, cdus)
        order, groups = lorenzo.order(shape, config.tiled), lorenzo.groups(shape, config.tiled)
        q, outliers = prequantise.quantize(x, encoded.s)
        u = lorenzo.residuals(q, shape, config)
        for cdu, stream in enumerate(encoded.streams):
            own = groups % cdus == cdu
            given = comet.huffman.steps(u[own], outliers.ravel()[order][own], x.ravel()[order][own], OTHER)
            assert stream == comet.interleave(*given)
            assert bool(stream) == own.any()


def test_outliers_in_every_lane_at_once():
    x = np.random.default_rng(0).integers(0x7F800000, 0x80000000, (4, 4, 8, 8), np.uint32).view(np.float32)
    for name in CONFIGS:
        encoded = comet.compress(x, 1.0, CONFIGS[name], Book((2, 0, 0, 0, 0, 0, 0, 0)))
        assert checked(x, encoded, 1.0).tobytes() == x.tobytes()


def test_a_tensor_need_not_be_contiguous():
    x = awkward((8, 9, 12, 10))
    assert comet.compress(x.T, 0.1).streams == comet.compress(x.T.copy(), 0.1).streams


def test_what_is_not_given_is_what_costs_least():
    x = awkward((2, 3, 8, 16))
    s = prequantise.step(0.3)
    config, code = comet.choose(x, s)
    assert comet.compress(x, 0.3) == comet.compress(x, 0.3, config, code)

    def cost(config, code=None):
        counts = book.histogram(lorenzo.residuals(prequantise.quantize(x, s)[0], x.shape, config))
        return book.cost(code or book.build(counts), counts)

    assert cost(config, code) == min(map(cost, CONFIGS.values()))
    assert comet.compress(x, 0.3, book=OTHER).book == OTHER
    assert cost(comet.compress(x, 0.3, book=OTHER).config, OTHER) == min(cost(c, OTHER) for c in CONFIGS.values())
    assert comet.compress(x, 0.3, config=CONFIGS["row"]).config == CONFIGS["row"]
    assert not comet.choose(x[:1, :1, :7], s)[0].tiled
    assert comet.choose(np.abs(x[..., :3]), s)[0] == CONFIGS["none+"]


# --------------------------------------------------------------------------------------------------------------- errors
@pytest.mark.parametrize("eb", [0, -1, np.nan, 1e-38])
def test_a_bound_that_is_none_is_refused(eb):
    with pytest.raises(ValueError, match="error bound"):
        comet.compress(np.zeros((8, 8), np.float32), eb)


@pytest.mark.parametrize("x", [np.zeros((8, 8)), np.zeros((8, 8), np.float16), [[1.0]], "x"])
def test_anything_but_a_float32_array_is_a_type_error(x):
    with pytest.raises(TypeError, match="float32"):
        comet.compress(x, 1.0)


@pytest.mark.parametrize("shape", [(8,), (0, 8), (1, 8, 0, 8), (1, 1, 1, 8, 8), ()])
def test_a_shape_without_a_view_is_refused(shape):
    with pytest.raises(ValueError, match=r"dimension"):
        comet.compress(np.zeros(shape, np.float32), 1.0)


@pytest.mark.parametrize("config, book", [(None, None), (CONFIGS["line"], SMALL), (CONFIGS["plane"], OTHER)])
@pytest.mark.parametrize("values", [128, 1024])
def test_a_view_of_another_number_of_values_is_refused(values, config, book):
    with pytest.raises(ValueError, match=f"tensor has {values} values, a view of 16 rows has 256"):
        comet.compress(np.zeros((8, values // 8), np.float32), 1.0, config, book, view=View(16, 16, 1, 1, True))


@pytest.mark.parametrize("cdus", [0, 9, True, 2.0])
def test_other_numbers_of_cdus_are_refused(cdus):
    with pytest.raises(ValueError, match="legal are the integers 1 to 8"):
        comet.compress(np.zeros((8, 8), np.float32), 1.0, cdus=cdus)


@pytest.mark.parametrize("s, streams", [(1.001, 1), (0.0, 1), (2.0**113, 1), (1.0, 0), (1.0, 9)])
def test_parts_that_are_none_are_refused(s, streams):
    with pytest.raises(ValueError, match="legal are"):
        Encoded(s, CONFIGS["none"], SMALL, (b"",) * streams)


def test_tiles_that_the_shape_does_not_have_are_refused():
    for call in (lambda: comet.compress(np.zeros((8, 8), np.float32), 1.0, CONFIGS["row"]),
                 lambda: comet.decompress(Encoded(1.0, CONFIGS["row"], SMALL, (b"",)), (8, 8))):
        with pytest.raises(ValueError, match="no tiles"):
            call()


@pytest.mark.parametrize("name", ["line", "plane"])
def test_streams_that_are_cut_lengthened_or_random_make_a_tensor_and_an_error(name):
    random, x = np.random.default_rng(0), awkward((2, 3, 9, 11))
    encoded = comet.compress(x, 0.01, CONFIGS[name], OTHER, cdus=3)
    a, b, c = encoded.streams
    for streams, expected in [((a, b[:-1], c), Error.SHORT), ((a, b, c + b"\0"), Error.EXCESS),
                              ((a[:9], b + a, c), Error.SHORT | Error.EXCESS), ((b"", b"", b""), Error.SHORT)]:
        y, error = comet.decompress(Encoded(encoded.s, encoded.config, OTHER, streams), x.shape)
        assert (y.shape, error) == (x.shape, expected)
        assert error
    for _ in range(20):
        streams = tuple(random.integers(0, 256, random.integers(0, 2000), np.uint8).tobytes() for _ in range(3))
        y, error = comet.decompress(Encoded(encoded.s, encoded.config, OTHER, streams), x.shape)
        assert (y.shape, y.dtype) == (x.shape, np.float32)
        assert error


def test_zeros_after_the_end_of_a_stream_are_symbol_0():
    y, error = comet.decompress(Encoded(1.0, CONFIGS["line"], SMALL, (b"",)), (4, 300))
    assert (error, y.view(np.uint32).any()) == (Error.SHORT, False)


def test_garbage_of_minus_2048_is_a_number_as_well():
    """u = 4095 signed: the third symbol's escape, 0xEF 0xFF in the second lane."""
    u = np.int64([0, 4095, *[0] * 6])
    stream = comet.interleave(*comet.huffman.steps(u, u < 0, np.zeros(8, np.float32), SMALL))
    y, error = comet.decompress(Encoded(2.0**112, CONFIGS["none"], SMALL, (stream,)), (1, 8))
    assert (y.tolist(), error) == ([[0, -(2.0**123), 0, 0, 0, 0, 0, 0]], Error(0))
