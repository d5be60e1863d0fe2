"""The whole path against plain loops, the contract's vectors, the paper's arithmetic in PyTorch, and its own bounds."""

from itertools import product

import numpy as np
import pytest

from actcodec.golden.division import average, codec, dither, stream, table, view
from actcodec.golden.division.table import Table
from actcodec.golden.jpegact import sfpr
from tb.judges import oracles
from tb.judges.division import oracle

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")

BITS = pytest.mark.parametrize("bits", dither.BITS)
SAMPLE = oracle.sample()


def words(text):
    return bytes.fromhex(text)


@pytest.mark.parametrize(("bits", "k", "delta", "stochastic", "nearest"), [
    (1, 0x40A2, -16, "f0 40 10 03 49 cb f9 f6 ff", "f0 00 00 00 00 ff ff ff ff"),
    (2, 0x40F3, -24, "e8 00 10 10 51 55 55 96 65 aa a5 aa be ba fb fb ff",
     "e8 00 00 40 55 55 55 55 55 aa aa aa aa aa fe ff ff"),
    (4, 0x4118, -30, "e2 00 10 11 12 21 22 33 43 44 44 54 55 66 76 76 77 88 88 88 99 9a aa ba bb cb cc cd dd dd ee fe "
     "fe", None)])  # fmt: skip
def test_a_tile_is_the_published_vector(bits, k, delta, stochastic, nearest):
    x = ((np.arange(64) - 32).astype(np.float32) / np.float32(10)).reshape(1, 1, 8, 8)
    t = table.table(x, bits)
    assert (t.k.view(np.uint32).tolist(), t.delta.tolist()) == ([k << 16], [delta])
    assert codec.encode(x, t, bits, 1) == (words(stochastic), 0, 0, 0)
    assert nearest is None or codec.encode(x, t, bits, 1, rounding="nearest").payload == words(nearest)


def test_flat_rows_are_the_published_vector():
    x = ((np.arange(150) % 11 - 3) / 4).astype(np.float32).reshape(3, 50)
    t = table.table(x, 2)
    assert (t.k.view(np.uint32) >> 16).tolist() == [0x4199, 0x4195, 0x418F] and t.delta.tolist() == [-23, -25, -22]
    e = codec.encode(x, t, 2, 0x12345678)
    assert e.payload == words("f2 40 a9 3e 51 a9 4f 55 f9 03 a5 fa 44 05 00 f2 fa 03 f1 95 fe 50 99 3a 55 a9 4f 65 ea "
                              "07 00 f0 54 ea 4e 55 f3 e5 03 a5 aa 40 a5 3e 51 09 00 00 00 00 00 00 00")


@pytest.mark.parametrize(("bits", "way"), [
    *((bits, {}) for bits in dither.BITS), (1, {"lfc": False}), (2, {"lfc": False}), (2, {"offset": "min"}),
    (3, {"offset": "min"}), (2, {"rounding": "nearest"}), (4, {"rounding": "nearest"})], ids=str)  # fmt: skip
def test_payload_and_clipped_values_are_those_of_the_plain_loops(bits, way):
    """With the tensor's table, and with a stale one whose k is too large and whose delta is anything."""
    random = np.random.default_rng(bits)
    for number, shape in enumerate([*oracle.SHAPES[:: 2 if way else 1], *oracle.VIEWS]):
        x, seed = oracle.awkward(oracle.edges(shape), number), int(random.integers(1 << 32))
        v = view.view(shape)
        t = table.table(x, bits, **{key: value for key, value in way.items() if key != "rounding"}, view=v)
        finite = np.where(np.isfinite(x), x, np.float32(0))
        stale = Table(np.minimum(t.k, sfpr.LARGEST / 4) * np.float32(4),
                      random.integers(-128, 128, t.delta.size).astype(np.int8))
        for values, one in ((x, t), (finite, t), (x, stale)):
            e = codec.encode(values, one, bits, seed, **way, view=v)
            nearest = way.get("rounding") == "nearest"
            blocks, clipped = oracle.encoded(values, *one, bits, seed, way.get("lfc", True), nearest,
                                             way.get("offset", "mean"), shape)
            assert e.payload == b"".join(blocks) and e.clipped == clipped, shape
            assert (e.nans, e.saturated) == sfpr.counts(values.reshape(v.rows, -1), one.k[v.plane, None])
            if values is finite:
                assert e[1:] == (0, 0, 0)


@BITS
def test_with_signs_positive_values_are_one_at_least(bits):
    """As if each that SFPR would round to 0 were 1 / k."""
    for number, shape in enumerate(oracle.VIEWS):
        v, x = view.view(shape), oracle.awkward(oracle.edges(shape), number)
        k = np.float32(2) ** (np.arange(v.planes, dtype=np.float32) % 5)
        t = Table(k, np.full(v.planes, -2, np.int8))
        rows = x.reshape(v.rows, v.width)
        small = (rows <= 0.5 / k[v.plane, None]) & (rows >= np.finfo(np.float32).tiny)
        ones = np.where(small, 1 / k[v.plane, None], rows)
        assert codec.encode(x, t, bits, 7, view=v, signs=True).payload == codec.encode(ones, t, bits, 7, view=v).payload


@BITS
def test_payloads_of_one_to_eight_cdus_have_the_same_blocks(bits):
    """Groups are encoded one by one by the plain loops, and collected as JPEG-ACT's CDUs are."""
    for shape in [(1, 2, 24, 40), (2, 3, 7, 13), (5, 500), (1, 1, 8, 8), view.View(False, 300, 3, 7, 5)]:
        x, v = oracle.awkward(oracle.edges(shape)), view.view(shape)
        t = table.table(x, bits, view=v)
        payload = codec.encode(x, t, bits, 99, view=v).payload
        blocks, _ = oracle.encoded(x, *t, bits, 99, shape=shape)
        for cdus in range(1, 9):
            mixed = stream.interleave(payload, v, bits, cdus)
            assert mixed == oracles.collected(blocks, cdus)
            assert stream.deinterleave(mixed, v, bits, cdus) == payload
    for cdus, wrong in product((0, 9, True, 2.0), (stream.interleave, stream.deinterleave)):
        with pytest.raises(ValueError, match="cdus"):
            wrong(payload, v, bits, cdus)


@BITS
def test_any_group_can_be_encoded_alone(bits):
    """What a group becomes does not depend on the groups before it: changing them changes nothing else."""
    x = SAMPLE["conv0"][:1]
    t, v = table.table(x, bits), view.view(x.shape)
    other = x.copy()
    other[0, :8] = 0  # 8 planes of 16 tiles: groups 0 to 31
    ends = np.cumsum(codec.block_sizes(v, bits))
    one, two = (codec.encode(values, t, bits, 5).payload for values in (x, other))
    assert one[ends[127] :] == two[ends[127] :] and one[: ends[127]] != two[: ends[127]]


@BITS
def test_any_bytes_are_decoded_as_the_definition_says(bits):
    """Base and codes of every lane by the plain loops; what saturates; y' * r in float64."""
    random = np.random.default_rng(bits)
    for shape in [*oracle.SHAPES, *oracle.VIEWS]:
        payload = random.integers(0, 256, codec.size(shape, bits), np.uint8).tobytes()
        planes, edges = view.view(shape).planes, oracle.edges(shape)
        k = (random.integers(0x3000, 0x5000, planes).astype(np.uint32) << 16).view(np.float32)
        k[random.random(planes) < 0.2] = 0
        expected, rest = np.zeros(np.prod(edges), np.float32), payload
        for block, parts in zip(oracle.blocks_of(shape), oracle.segments_of(shape), strict=True):
            begins = {rows[0] for rows in parts}
            for i, (plane, _, _, indices) in enumerate(block):
                if i in begins:
                    base, rest = int.from_bytes(rest[:1], signed=True), rest[1:]
                codes, rest = int.from_bytes(rest[:bits], "little"), rest[bits:]
                for lane, index in enumerate(indices):
                    code = codes >> lane * bits & 2**bits - 1
                    r = np.float32(1) / k[plane] if k[plane] else np.float32(0)
                    expected[index] = np.float32(min(127, base + code * 2 ** (6 - bits)) * float(r))
        x = codec.decode(payload, k, shape, bits)
        assert x.dtype == np.float32 and x.shape == edges and not rest
        assert np.array_equal(x, expected.reshape(edges)), shape
        assert not np.any(np.signbit(x) & (x == 0))


@BITS
def test_decoded_values_lie_within_the_bounds(bits):
    """Section 8: less than a step, by value; mean square error at most a quarter of a step squared and SFPR's share."""
    for name, x in [*SAMPLE.items(), ("ramp", np.arange(7 * 130, dtype=np.float32).reshape(7, 130))]:
        t, v = table.table(x, bits), view.view(x.shape)
        unit = 2.0 ** (6 - bits)
        e = codec.encode(x, t, bits, 3)
        rows = x.reshape(v.rows, v.width).astype(float)
        k = t.k[v.plane, None].astype(float)
        y = sfpr.quantize(rows.astype(np.float32), k)
        back = codec.decode(e.payload, t.k, x.shape, bits).reshape(rows.shape).astype(float)
        assert np.all(np.abs(np.rint(back * k) - y) <= unit - 1), name
        assert np.all(np.abs(back - rows) * k <= (unit - 0.5) * (1 + 2.0**-17)), name
        error = np.mean(np.square((back - rows) * k)) / unit**2
        assert error <= 0.25 + 1 / unit**2 / 4, name
        nearest = codec.decode(codec.encode(x, t, bits, rounding="nearest").payload, t.k, x.shape, bits)
        assert np.all(np.abs(nearest.reshape(rows.shape) - rows) * k <= unit / 2 + 0.5 + 2.0**-10), name


@BITS
def test_decoded_values_are_unbiased(bits):
    """Mean over 4,096 seeds of base + code * 2^F within 5 standard errors of y, for every value; nearer for most."""
    x = np.random.default_rng(8).standard_normal((3, 78)).astype(np.float32)
    x[:, 70:] = 0
    t, v = table.table(x, bits), view.view(x.shape)
    s = view.segments(v)
    y = view.split(sfpr.quantize(x, t.k[v.plane, None]), v)
    base = average.bases(y, v, t.delta)[s.segment, None]
    random = dither.phases(np.zeros(4096, int), np.arange(4096)).reshape(4096, 4, 8, 2)
    codes, _ = codec.quantize(y, base, dither.thresholds(random, bits), bits)
    back = codec.dequantize(codes, base, bits)[:, s.exists]
    error = np.abs(back.mean(0) - y[s.exists])
    deviation = back.std(0) / 64
    assert y[s.exists].size == x.size and np.all(error <= 5 * deviation)
    assert 0.6 < np.mean((error <= deviation)[deviation > 0]) < 0.76  # 0.683 for a normal distribution


@BITS
def test_codes_are_packed_with_the_first_lane_in_the_lowest_bits(bits):
    codes = np.random.default_rng(0).integers(0, 1 << bits, (50, 8, 8)).astype(np.uint8)
    packed = codec.pack(codes, bits)
    expected = [[list(sum(code << bits * lane for lane, code in enumerate(row)).to_bytes(bits, "little"))
                 for row in block] for block in codes.tolist()]
    assert packed.tolist() == expected
    assert np.array_equal(codec.unpack(packed, bits), codes)


def test_nan_and_inf_are_counted_and_reach_no_other_block():
    clean = np.random.default_rng(4).standard_normal((1, 1, 24, 24)).astype(np.float32)
    clean[0, 0, 9, 9] = 0
    t = table.table(clean)
    before = codec.encode(clean, t)
    for value, nans, saturated in ((np.nan, 1, 0), (np.inf, 0, 1), (-np.inf, 0, 1)):
        x = clean.copy()
        x[0, 0, 9, 9] = value  # in block 4 of 9
        e = codec.encode(x, t)
        assert (e.nans, e.saturated) == (nans, saturated) and (e.clipped > 0) == (saturated > 0)
        assert e.payload[:68] == before.payload[:68] and e.payload[85:] == before.payload[85:]
        if nans:
            assert e.payload == before.payload
        else:
            bases = np.frombuffer(before.payload + e.payload, np.int8)[[68, 153 + 68]].astype(int)
            assert 1 <= abs(bases[1] - bases[0]) <= 2
        assert np.all(np.isfinite(codec.decode(e.payload, t.k, x.shape)))


def test_a_stale_table_clips_and_nothing_wraps():
    x = SAMPLE["conv_layers_0_bn1"][:1]
    t, unit = table.table(x), 16
    stale = Table(t.k * np.float32(2), t.delta)
    e = codec.encode(x, stale)
    assert e.clipped > 0 and codec.encode(x, t).clipped == 0
    back = codec.decode(e.payload, stale.k, x.shape)
    assert np.all(np.sign(back[np.abs(x) > 0.9 * np.abs(x).max()]) == np.sign(x[np.abs(x) > 0.9 * np.abs(x).max()]))
    k = stale.k.reshape(1, -1, 1, 1)
    y = sfpr.quantize(x, k).astype(int)
    decoded = np.rint(back * k).astype(int)
    assert np.mean(np.abs(decoded - y) < unit) > 0.6 and np.abs(decoded).max() <= 128
    # a base above the mean is legal as well: all that lies below it becomes the base
    above = codec.encode(x, Table(t.k, np.abs(t.delta)))
    assert above.clipped > x.size / 2


def test_k_is_read_as_sfpr_reads_it():
    """Without its sign; subnormal as 0; an exponent of 255 is one like all others."""
    x = np.random.default_rng(0).standard_normal((1, 6, 8, 8)).astype(np.float32)
    t = table.table(x)
    odd = t.k.copy()
    odd[1] *= -1
    odd.view(np.uint32)[2:6] = 0x007F0000, 0x80010000, 0x7F800000, 0x7FC00000
    e = codec.encode(x, Table(odd, t.delta))
    plain = codec.encode(x, Table(np.where(np.arange(6) < 2, t.k, np.float32(0)), t.delta))
    assert e.payload[: 4 * 17] == plain.payload[: 4 * 17]
    back = codec.decode(e.payload, odd, x.shape)
    assert np.array_equal(back[0, :2], codec.decode(plain.payload, t.k, x.shape)[0, :2])
    assert not np.any(back[0, 2:])
    y = np.where(x[0, 4:] > 0, 127, -128)  # what 2^128 makes of them
    level = (y.reshape(2, 64).sum(1) + 32 >> 6) + t.delta[4:]
    assert np.frombuffer(e.payload, np.int8)[[4 * 17, 5 * 17]].tolist() == np.maximum(level, -128).tolist()


def test_a_plane_of_zeros_stays_zero():
    x = np.zeros((1, 2, 8, 8), np.float32)
    t = table.table(x)
    e = codec.encode(x, t)
    assert e.payload == bytes(34) and not np.any(t.k) and not np.any(t.delta)
    back = codec.decode(e.payload, t.k, x.shape)
    assert not np.any(back.view(np.uint32))


@pytest.mark.parametrize("layout", ["transposed", "reversed", "strided"])
def test_tensors_need_not_be_contiguous(layout):
    big = np.random.default_rng(0).standard_normal((2, 3, 16, 32)).astype(np.float32)
    x = {"transposed": big.transpose(1, 0, 3, 2), "reversed": big[:, ::-1], "strided": big[..., ::2]}[layout]
    t = table.table(x)
    assert all(map(np.array_equal, t, table.table(x.copy())))
    assert codec.encode(x, t, 2, 1) == codec.encode(x.copy(), t, 2, 1)


GOOD = np.random.default_rng(0).standard_normal((2, 3, 8, 8)).astype(np.float32)


@pytest.mark.parametrize(("arguments", "text"), [
    ({"bits": 8}, "bits is 8, legal are the integers 1 to 4"), ({"bits": 0}, "bits is 0"), ({"bits": None}, "bits is"),
    ({"seed": -1}, "seed is -1, legal are the integers 0 to"), ({"seed": 1 << 32}, "seed is 4294967296"),
    ({"rounding": "truncate"}, "rounding is 'truncate', legal are stochastic, nearest"),
    ({"offset": "median"}, "offset is 'median', legal are mean, min"),
    ({"x": np.zeros((1, 1, 1, 1, 8, 8), np.float32)}, "has 6 dimensions, legal are 2"),
    ({"x": np.zeros((8,), np.float32)}, "has 1 dimensions"), ({"x": np.zeros((0, 8), np.float32)}, "is empty"),
    ({"x": GOOD[:1]}, r"k is float32 \[6\], has to be float32 \[3\]"),
    ({"table": Table(np.ones(6), np.zeros(6, np.int8))}, "k is float64"),
    ({"table": Table(np.full(6, 1.001, np.float32), np.zeros(6, np.int8))}, "of bfloat16 numbers"),
    ({"table": Table(np.ones(6, np.float32), np.zeros(6, int))}, r"delta is int64 \[6\], has to be int8 \[6\]"),
    ({"table": Table(np.ones(6, np.float32), np.zeros(5, np.int8))}, r"delta is int8 \[5\], has to be int8 \[6\]"),
])  # fmt: skip
def test_wrong_parameters_are_refused(arguments, text):
    with pytest.raises(ValueError, match=text):
        codec.encode(**{"x": GOOD, "table": table.table(GOOD), **arguments})


@pytest.mark.parametrize("x", [np.zeros((8, 8)), np.zeros((8, 8), np.float16), [[1.0]], None])
def test_anything_but_a_float32_array_is_a_type_error(x):
    with pytest.raises(TypeError, match="float32"):
        codec.encode(x, table.table(GOOD))


@BITS
def test_payloads_of_another_length_are_refused(bits):
    for shape in oracle.SHAPES[::3]:
        k, size = np.ones(view.view(shape).planes, np.float32), codec.size(shape, bits)
        for length in (0, size - 1, size + 1, 2 * size):
            with pytest.raises(ValueError, match=f"payload has {length} bytes, shape .* with {bits} bits has {size}"):
                codec.decode(bytes(length), k, shape, bits)


@pytest.mark.parametrize("bits", [0, 5, 8, True])
def test_other_bits_are_refused_by_all(bits):
    for call in (lambda: codec.decode(bytes(17), np.ones(1, np.float32), (1, 1, 8, 8), bits),
                 lambda: codec.size((8, 8), bits), lambda: codec.block_sizes(view.view((8, 8)), bits)):
        with pytest.raises(ValueError, match="bits is"):
            call()


def test_signs_may_make_values_clip_that_else_do_not():
    x = np.zeros((1, 1, 8, 8), np.float32)
    x.ravel()[:40], x[0, 0, 7, 6:] = 1e-6, (-1, 1)  # signs lift the average, and the least value is below it
    assert [codec.encode(x, table.table(x, 4), 4, 1, signs=signs).clipped for signs in (False, True)] == [0, 1]
