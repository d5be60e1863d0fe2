"""DPR's formats against NumPy's float16, ml_dtypes' IEEE-like float8, and a quantiser in exact fractions."""

from fractions import Fraction
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import actcodec
from actcodec.golden.gist import dpr

FORMATS = {"fp16": (5, 10, 2), "fp10": (5, 4, 3), "fp8": (4, 3, 4)}  # exponent, mantissa, values in a word
JUDGES = {"fp16": np.float16, "fp8": ml_dtypes.float8_e4m3}


def exact(code, exponent, mantissa):
    """What a code stands for by IEEE 754: a Fraction, or "inf", "nan"; and its sign."""
    bias = 2 ** (exponent - 1) - 1
    m, e, sign = code % 2**mantissa, code >> mantissa & 2**exponent - 1, code >> mantissa + exponent
    if e == 2**exponent - 1:
        return "nan" if m else "inf", sign
    if e == 0:
        return Fraction(m, 2**mantissa) * Fraction(2) ** (1 - bias), sign
    return (1 + Fraction(m, 2**mantissa)) * Fraction(2) ** (e - bias), sign


def nearest(value, exponent, mantissa):
    """The code of a float32 by the definition: exact fractions, one value at a time."""
    sign = int(np.signbit(value)) << exponent + mantissa
    ones = 2**exponent - 1
    if np.isnan(value):
        return sign | ones << mantissa | 1 << mantissa - 1
    bias = 2 ** (exponent - 1) - 1
    most = (ones - 1) << mantissa | 2**mantissa - 1
    if np.isinf(value):
        return sign | most
    x = abs(Fraction(float(value)))
    if x == 0:
        return sign
    power = x.numerator.bit_length() - x.denominator.bit_length()
    power -= x < Fraction(2) ** power  # now 2^power <= x < 2^(power + 1)
    digits = round(x / Fraction(2) ** (power - mantissa))  # of a Fraction: to nearest, ties to even
    if digits == 2 ** (mantissa + 1):
        digits, power = 2**mantissa, power + 1
    if power < 1 - bias:
        return sign
    if power > ones - 1 - bias:
        return sign | most
    return sign | power + bias << mantissa | digits - 2**mantissa


def boundaries(mantissa):
    """Every float32 halfway between neighbours of a format with that mantissa, at every exponent and sign, all numbers
    of the format, and the neighbours of both in float32."""
    step = 1 << 23 - mantissa - 1
    points = np.arange(0, 2**32, step, np.uint64)
    return np.unique((points[:, None] + np.array([-1, 0, 1])).astype(np.uint64) & 0xFFFF_FFFF).astype(np.uint32)


def expected(x, name):
    """Codes by the judge, which knows subnormal numbers and infinity, made those of DPR by the definition."""
    exponent, mantissa, _ = FORMATS[name]
    ones = 2**exponent - 1
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
        codes = x.astype(JUDGES[name]).view(np.uint16 if name == "fp16" else np.uint8).astype(np.uint16)
    sign, magnitude = codes & 1 << exponent + mantissa, codes & (1 << exponent + mantissa) - 1
    # The judge rounds subnormal numbers at a fixed point, so that it may round up to the smallest normal number what
    # is nearer to it than to the number below, had that all its digits.
    smallest = 2.0 ** (2 - 2 ** (exponent - 1))
    below = np.abs(wide) < smallest * (1 - 2.0 ** -(mantissa + 2))
    magnitude = np.where(below | (magnitude < 1 << mantissa), 0, magnitude)
    magnitude = np.where(magnitude == ones << mantissa, (ones << mantissa) - 1, magnitude)
    quiet = ones << mantissa | 1 << mantissa - 1
    return np.where(np.isnan(x), quiet, magnitude) | sign


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_is_what_the_definition_says(name):
    exponent, mantissa, per_word = FORMATS[name]
    form = dpr.named(name)
    assert (form.exponent, form.mantissa, form.per_word) == FORMATS[name]
    assert form.width * per_word <= 32 and form.bias == 2 ** (exponent - 1) - 1
    assert form.largest == exact(((2**exponent - 1) << mantissa) - 1, exponent, mantissa)[0]
    assert form.smallest == exact(1 << mantissa, exponent, mantissa)[0]
    if name in JUDGES:
        info = ml_dtypes.finfo(JUDGES[name])
        assert (form.largest, form.smallest) == (float(info.max), float(info.smallest_normal))


@pytest.mark.parametrize("name", JUDGES)
def test_every_boundary_rounds_as_the_judge_says(name):
    mantissa = FORMATS[name][1]
    for points in np.array_split(boundaries(mantissa), 8):
        x = points.view(np.float32)
        codes = dpr.quantize(x, name)
        wrong = np.flatnonzero(codes != expected(x, name))
        assert not wrong.size, (hex(points[wrong[0]]), hex(codes[wrong[0]]))


@pytest.mark.parametrize("name", FORMATS)
def test_boundaries_round_as_exact_fractions_do(name):
    """All of FP10 and FP8; of FP16 a sample, and all around the ends of its range."""
    exponent, mantissa, _ = FORMATS[name]
    points = boundaries(mantissa)
    near = np.isin(points >> 23 & 255, [0, 1, 254, 255, *(127 + d + side * 2 ** (exponent - 1)
                                                          for d in (-2, -1, 0, 1, 2) for side in (-1, 1))])
    random = np.random.default_rng(0)
    if name == "fp16":
        points = np.concatenate([random.choice(points[near], 8000), random.choice(points, 4000)])
    x = np.concatenate([points, random.integers(0, 2**32, 4000, np.uint32)]).view(np.float32)
    codes = dpr.quantize(x, name)
    for value, code in zip(x, codes.tolist(), strict=True):
        assert code == nearest(value, exponent, mantissa), (value.tobytes()[::-1].hex(), hex(code))


@pytest.mark.parametrize("name", FORMATS)
def test_every_code_is_decoded_exactly(name):
    exponent, mantissa, _ = FORMATS[name]
    codes = np.arange(2 ** (1 + exponent + mantissa))
    decoded = dpr.dequantize(codes, name)
    assert decoded.dtype == np.float32
    for code, value in zip(codes.tolist(), decoded, strict=True):
        magnitude, sign = exact(code, exponent, mantissa)
        assert np.signbit(value) == sign
        if magnitude == "nan":
            assert np.isnan(value)
        else:
            assert abs(float(value)) == (np.inf if magnitude == "inf" else magnitude), hex(code)
    if name in JUDGES:
        judge = codes.astype(np.uint16 if name == "fp16" else np.uint8).view(JUDGES[name]).astype(np.float32)
        nan = np.isnan(judge)
        assert np.array_equal(nan, np.isnan(decoded))
        assert np.array_equal(judge[~nan].view(np.uint32), decoded[~nan].view(np.uint32))


@pytest.mark.parametrize("name", FORMATS)
def test_normal_codes_come_back(name):
    exponent, mantissa, _ = FORMATS[name]
    codes = np.arange(2 ** (1 + exponent + mantissa))
    field = codes >> mantissa & 2**exponent - 1
    normal = (field > 0) & (field < 2**exponent - 1) | (codes << 1 & 2 ** (1 + exponent + mantissa) - 1 == 0)
    assert np.array_equal(dpr.quantize(dpr.dequantize(codes, name), name)[normal], codes[normal])


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 5, 7, 8, 23, 24, 25, 1000])
def test_words_hold_the_first_value_in_the_low_bits(name, length):
    exponent, mantissa, per_word = FORMATS[name]
    width = 1 + exponent + mantissa
    x = np.random.default_rng(length).normal(0, 3, length).astype(np.float32)
    codes = dpr.quantize(x, name).tolist()
    words = [sum(code << width * k for k, code in enumerate(codes[i : i + per_word]))
             for i in range(0, length, per_word)]
    encoded = dpr.encode(x, name)
    assert encoded.dtype == np.uint8
    assert encoded.tobytes() == b"".join(word.to_bytes(4, "little") for word in words)
    decoded = dpr.decode(encoded, name, length)
    assert decoded.tobytes() == dpr.dequantize(codes, name).tobytes()
    if length:
        with pytest.raises(ValueError, match=f"{length} values of {name} need"):
            dpr.decode(encoded[:-1], name, length)


@pytest.mark.parametrize("name", FORMATS)
def test_relu_activations_keep_their_digits(name):
    _, mantissa, _ = FORMATS[name]
    form = dpr.named(name)
    with np.load(Path(actcodec.__file__).parent / "data" / "resnet20.npz") as sample:
        tensors = {key: sample[key] for key in sample.files if sample[key].dtype == np.float32}
    tensors = {key: x for key, x in tensors.items() if x.min() >= 0}
    assert tensors
    for key, x in tensors.items():
        decoded = dpr.decode(dpr.encode(x, name), name, x.size).reshape(x.shape)
        inside = (x >= form.smallest) & (x <= form.largest)
        assert inside.any() and np.all(decoded[x == 0] == 0), key
        assert np.all(np.abs(decoded - x)[inside] <= x[inside] * 2.0 ** -(mantissa + 1)), key


@pytest.mark.parametrize("name", ["fp32", "FP16", None])
def test_other_formats_are_refused(name):
    with pytest.raises(ValueError, match="unknown DPR format"):
        dpr.quantize(np.ones(3, np.float32), name)


@pytest.mark.parametrize("content, count, message", [
    (np.arange(256, 264), 2, "content is int64, has to be uint8"), (np.zeros(8, np.uint8), -1, "count is -1")])
def test_other_content_and_counts_are_refused(content, count, message):
    with pytest.raises(ValueError, match=message):
        dpr.decode(content, "fp16", count)
