"""SFPR against exact rational arithmetic, and its scale against ml_dtypes' bfloat16."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from actcodec.golden.jpegact import sfpr, zvc
from actcodec.golden.offload import blocks
from tb.judges import blockcodes

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")

TINY = Fraction(2) ** -126
FRACTIONS = [0, 1, 2, 0x2AAAAA, 0x3FFFFF, 0x400000, 0x400001, 0x7FFFFE, 0x7FFFFF]


def floats(sign, exponent, fraction):
    """float32 numbers of all combinations of bit fields."""
    fields = np.meshgrid(np.uint32(sign), np.uint32(exponent), np.uint32(fraction))
    return (fields[0] << 31 | fields[1] << 23 | fields[2]).ravel().view(np.float32)


def every_exponent():
    """Both signs, all 256 exponents (zero, subnormal, normal, Inf, NaN), special and random fractions."""
    random = np.random.default_rng(0).integers(0, 1 << 23, 4)
    return floats([0, 1], np.arange(256), [*FRACTIONS, *random])


def quantized(x, k):
    """The specification of `quantize`, for one value."""
    if np.isnan(x):
        return 0
    if np.isinf(x):
        return 127 if x > 0 else -128
    exact = Fraction(float(x)) if abs(Fraction(float(x))) >= TINY else Fraction(0)
    return max(-128, min(127, round(exact * Fraction(float(k)))))  # round() takes ties to even


def to_float32(exact):
    """The float32 nearest to a positive fraction, ties to even, with unlimited exponent; a Fraction."""
    unit = Fraction(2) ** (exact.numerator.bit_length() - exact.denominator.bit_length() - 25)
    while exact / unit >= 1 << 24:
        unit *= 2
    return round(exact / unit) * unit


def expected_scale(largest):
    """k and r of a channel, from the specification."""
    largest = Fraction(float(largest))
    if largest < TINY:
        return 0.0, 0.0
    once = min(to_float32(Fraction(144) / largest), Fraction(2) ** 126)
    k = np.float32(float(once)).astype(ml_dtypes.bfloat16)
    return float(k), float(to_float32(1 / Fraction(float(k))))


@pytest.mark.parametrize("k", [0.0, 2.0**-126, sfpr.SMALLEST, 0.71484375, 1.0, 1.9921875, 144.0, 3.25e30, sfpr.LARGEST])
def test_quantize_is_exact_on_every_exponent(k):
    x = every_exponent()
    assert sfpr.quantize(x, np.float32(k)).tolist() == [quantized(v, k) for v in x]


def test_words_of_a_table_are_read_as_the_hardware_does():
    """Without their sign; subnormal ones are 0. k without its lower half, so that an exponent of 255 is 2^128 and more;
    such an r is infinite."""
    words = every_exponent().view(np.uint32)
    for word, k, r in zip(words.tolist(), sfpr.compressing(words), sfpr.decompressing(words), strict=True):
        exponent, fraction = word >> 23 & 255, word & (1 << 23) - 1
        assert Fraction(float(k)) == (Fraction(2) ** (exponent - 134) * (128 + (fraction >> 16)) if exponent else 0)
        if exponent == 255:
            assert r == np.inf
        else:
            assert Fraction(float(r)) == (Fraction(2) ** (exponent - 150) * ((1 << 23) + fraction) if exponent else 0)


@pytest.mark.parametrize("k", [2.0**-100, 0.5, 1.0, 1.5, 4.53125, 255.0, 129 * 2.0**90])
def test_quantize_takes_ties_to_even(k):
    odd = np.arange(-261, 262, 2)
    tie = [Fraction(int(n), 2) / Fraction(k) for n in odd]
    # multiples of k's odd part are ties that a float32 can hold; around all others the neighbours decide
    x = np.array([float(t) for t in tie], np.float32)
    exact = [Fraction(float(v)) == t for v, t in zip(x, tie, strict=True)]
    assert any(exact)
    x = np.concatenate([x, np.nextafter(x, np.float32(np.inf)), np.nextafter(x, np.float32(-np.inf))])
    assert sfpr.quantize(x, np.float32(k)).tolist() == [quantized(v, k) for v in x]


def test_every_tie_of_a_power_of_two_goes_to_even():
    x = np.float32((np.arange(-130, 130) + 0.5) / 8)
    y = sfpr.quantize(x, np.float32(8))
    assert np.all((y % 2 == 0) | (y == 127))


def test_scale_is_the_bfloat16_of_the_exact_quotient_on_every_exponent():
    largest = floats(0, np.arange(255), [*FRACTIONS, *np.random.default_rng(0).integers(0, 1 << 23, 40)])
    x = np.zeros((2, largest.size, 3, 8), np.float32)
    x[0, :, 0, 0] = largest / 2
    x[1, :, 2, 7] = -largest
    k, r = sfpr.scales(x)
    assert list(zip(k.tolist(), r.tolist(), strict=True)) == [expected_scale(v) for v in largest]


def test_scale_takes_ties_of_bfloat16_to_even():
    tie = np.arange(257, 512, 2)  # 9 bits, the last one set: between two bfloat16 numbers
    near = np.float32(144 / tie)
    x = np.concatenate([near, np.nextafter(near, np.float32(0)), np.nextafter(near, np.float32(1))])
    assert np.isin(np.float32(144) / x, tie).sum() > 128
    k, _ = sfpr.scales(x.reshape(1, -1, 1, 1).repeat(8, axis=3))
    assert k.tolist() == [expected_scale(v)[0] for v in x]


def test_scales_go_by_channel_over_all_images_and_positions():
    x = np.random.default_rng(0).standard_normal((3, 5, 9, 11)).astype(np.float32)
    k, r = sfpr.scales(x)
    expected = [expected_scale(np.abs(x[:, c]).max()) for c in range(5)]
    assert list(zip(k.tolist(), r.tolist(), strict=True)) == expected


@pytest.mark.parametrize(
    "shape, channels", [((2, 3, 4, 9), 3), ((2, 3, 4, 2), 3), ((2, 3, 7, 1), 1), ((2, 3, 1, 1), 1), ((2, 30), 1)]
)
def test_small_channels_share_one_scale(shape, channels):
    x = np.ones(shape, np.float32)
    assert sfpr.scales(x).k.shape == sfpr.scales(x).r.shape == (channels,)


def test_only_finite_normal_values_make_the_scale():
    x = np.zeros((1, 6, 8, 8), np.float32)
    x[0, 0, 0, :4] = np.nan, np.inf, -np.inf, -3
    x[0, 1, 0, :2] = np.nan, np.inf
    x[0, 2, 0, 0] = floats(0, 0, 0x7FFFFF).item()
    x[0, 3, 0, 0] = floats(1, 1, 0).item()
    x[0, 4, 0, 0] = floats(0, 254, 0x7FFFFF).item()
    x.view(np.uint32)[0, 5, 0, :2] = 0xFF800001, 0x3F800000  # a signalling NaN
    k, r = sfpr.scales(x)
    assert k.tolist() == [48, 0, 0, 2.0**126, sfpr.SMALLEST, 144]
    assert r[1] == r[2] == 0
    k, _ = sfpr.scales(x, clip=1.0)  # the smallest scale of files is the limit
    assert k.tolist() == [42.75, 0, 0, 2.0**126, sfpr.SMALLEST, 128]


def shared_scale(largest, least, clip):
    """k of a channel, from the specification: the others allow no magnitude below ``least`` to count."""
    if largest < float(TINY):
        return 0.0
    once = min(to_float32(Fraction(clip) * 128 / Fraction(float(max(largest, least)))), Fraction(2) ** 126)
    return max(float(np.float32(float(once)).astype(ml_dtypes.bfloat16)), float(sfpr.SMALLEST))


@pytest.mark.parametrize("clip", [0.5, 1.0, 1.125, 1.3, 8.0])
@pytest.mark.parametrize("scaling, cap", [("channel", None), ("tensor", None), ("cap", None), ("cap", 1.0),
                                          ("cap", 2.7), ("cap", 65536.0)])
def test_a_cap_limits_the_scales_of_small_channels(scaling, cap, clip):
    some = np.float32([0.001, 0.3, 0, 1, 4, 7, 1e-39, 1e-37])
    for largest in (some, some[:1], np.float32(1e37) * some, np.float32([0, 0])):
        x = np.zeros((2, largest.size, 3, 8), np.float32)
        x[0, :, 0, 0], x[1, :, 2, 7], x[0, :, 1, 0] = largest / 2, -largest, np.nan
        least = np.float32(0)
        if scaling != "channel":
            times = {"tensor": 1.0, "cap": cap or sfpr.CAP}[scaling]
            least = np.float32(float(largest.max()) / float(np.float32(times)))  # float64 holds enough of the quotient
        k, r = sfpr.scales(x, scaling, cap, clip)
        assert k.tolist() == [shared_scale(m, least, float(np.float32(clip * 128)) / 128) for m in largest]
        np.testing.assert_array_equal(r, sfpr.reciprocal(k))
        if scaling == "tensor":
            assert len(set(k[k > 0])) <= 1


@pytest.mark.parametrize("k", [sfpr.SMALLEST, 2.0**-119, 0.71484375, 1.0, 144.0, 1.9921875 * 2.0**125, sfpr.LARGEST])
def test_dequantize_rounds_the_exact_product_once(k):
    r = sfpr.reciprocal(np.float32([k]))
    y = np.arange(-128, 128).astype(np.int8)
    x = sfpr.dequantize(y, r)
    assert x.dtype == np.float32
    for value, result in zip(y.tolist(), x.tolist(), strict=True):
        exact = Fraction(abs(value)) * Fraction(float(r[0]))
        assert abs(Fraction(result)) == (to_float32(exact) if value else 0)
        assert np.sign(result) == np.sign(value)
    assert not np.signbit(x[128])


def test_dequantize_gives_positive_zero_for_what_is_not_normal():
    y = np.arange(-128, 128).astype(np.int8)
    for r in (0.0, 2.0**-149, 2.0**-134):
        assert not np.any(sfpr.dequantize(y, np.float32(r)).view(np.uint32))


def test_recovered_values_lie_within_half_a_step():
    x = np.random.default_rng(0).standard_normal((4, 6, 16, 16)).astype(np.float32)
    k, r = sfpr.scales(x)
    step = 1 / k.reshape(-1, 1, 1)
    error = np.abs(sfpr.dequantize(sfpr.quantize(x, k), r) - x)
    assert np.all((error <= 0.5001 * step) | (np.abs(x) > 126 * step))  # the largest values clip


def test_counts_tell_nans_and_clipped_values():
    x = np.float32([np.nan, -np.nan, np.inf, -np.inf, 127.5, 127.49, -128.5, -128.51, 0, 1e38])
    assert sfpr.counts(x, np.float32(1)) == (2, 5)
    assert sfpr.counts(x, np.float32(0)) == (2, 2)


def test_anything_but_float32_is_a_type_error():
    for function in (sfpr.scales, lambda x: sfpr.quantize(x, 1), lambda x: sfpr.counts(x, 1)):
        with pytest.raises(TypeError, match="float32"):
            function(np.zeros((1, 1, 8, 8)))


def test_scale_is_one_or_one_for_each_channel_or_broadcasts():
    x = np.random.default_rng(0).standard_normal((2, 3, 5, 3)).astype(np.float32) * 50
    k = np.float32([1, 2, 3])
    per_channel = sfpr.quantize(x, k)
    assert np.array_equal(per_channel, sfpr.quantize(x, k.reshape(3, 1, 1)))
    assert np.array_equal(per_channel[:, 1:2], sfpr.quantize(x[:, 1:2], k[1:2]))
    assert np.array_equal(sfpr.dequantize(per_channel, k), sfpr.dequantize(per_channel, k.reshape(3, 1, 1)))


@pytest.mark.parametrize("k", [0.0, 2.0**-126, sfpr.SMALLEST, 0.71484375, 1.0, 144.0, 3.25e30, sfpr.LARGEST])
def test_signs_changes_zeros_of_positive_normal_values_into_ones_and_nothing_else(k):
    x = every_exponent()
    expected = [quantized(v, k) or int(TINY <= v < np.inf) for v in x.tolist()]
    assert sfpr.quantize(x, np.float32(k), signs=True).tolist() == expected


@pytest.mark.parametrize("k", [2.0**-100, 1.0, 2.0**90])
def test_signs_moves_the_first_step_alone(k):
    tie = np.float32(0.5 / k)  # goes to the even 0 otherwise
    x = np.float32([tie, np.nextafter(tie, np.float32(0)), np.nextafter(tie, np.float32(np.inf)), 1.5 / k, -tie])
    assert sfpr.quantize(x, np.float32(k)).tolist() == [0, 0, 1, 2, 0]
    assert sfpr.quantize(x, np.float32(k), signs=True).tolist() == [1, 1, 1, 2, 0]


def test_signs_keeps_the_mask_of_every_relu_for_one_percent_of_its_bytes():
    lost = positive = plain = kept = raw = 0
    for x in blockcodes.tensors("ReLU"):
        scales, view = sfpr.scales(x), blocks.view(x.shape)
        y, signed = sfpr.quantize(x, scales.k), sfpr.quantize(x, scales.k, signs=True)
        assert np.array_equal(sfpr.dequantize(signed, scales.r) > 0, x > 0)
        assert np.array_equal(signed != y, (x > 0) & (y == 0))
        lost, positive = lost + np.count_nonzero(signed != y), positive + np.count_nonzero(x > 0)
        plain += zvc.encode(blocks.split(y, view, False))[0].size
        kept += zvc.encode(blocks.split(signed, view, False))[0].size
        raw += x.nbytes
    assert 100 * lost / positive == pytest.approx(1.07, abs=0.01)
    assert (raw / plain, raw / kept) == pytest.approx((5.906, 5.855), abs=0.001)


@pytest.mark.parametrize("way, message", [
    ({"scaling": "row"}, "scaling is 'row', legal are channel, tensor, cap"), ({"scaling": None}, "scaling is None"),
    *(({"scaling": "cap", "cap": cap}, "cap is .*, legal are 1 to 65536") for cap in (0.99, -1, np.nan, np.inf)),
    *(({"clip": clip}, "clip is .*, legal are 0.5 to 8") for clip in (0, -1, 0.49, 8.01, np.nan, np.inf))])
def test_other_ways_to_scale_are_refused(way, message):
    with pytest.raises(ValueError, match=message):
        sfpr.scales(np.ones((2, 3), np.float32), **way)
