"""MX against ml_dtypes' element types and E8M0, gfloat's blocks, torchao's three rules, and exact fractions."""

import warnings
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

import actcodec
from actcodec.codecs import lane_modes
from actcodec.golden.mx import element, path
from actcodec.golden.mx.scale import GROUP, RULES, scales
from actcodec.golden.offload import blocks
from tb.harness import SEED

FORMS = element.FORMATS
TYPES = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "e3m2": ml_dtypes.float6_e3m2fn,
         "e2m3": ml_dtypes.float6_e2m3fn, "e2m1": ml_dtypes.float4_e2m1fn}
MOST = {"int8": Fraction(127, 64), "e4m3": 448, "e5m2": 57344, "e3m2": 28, "e2m3": Fraction(15, 2), "e2m1": 6}
EMAX = {"int8": 0, "e4m3": 8, "e5m2": 15, "e3m2": 4, "e2m3": 2, "e2m1": 2}
MANTISSA = {"int8": 6, "e4m3": 3, "e5m2": 2, "e3m2": 2, "e2m3": 3, "e2m1": 1}
SPECIAL = np.array([np.nan, -np.nan, np.inf, -np.inf, 1e-42, -1e-42, -0.0, 0.0, 3.4e38, -3.4e38, 1.2e-38], np.float32)

each_form = pytest.mark.parametrize("form", FORMS)
each_rule = pytest.mark.parametrize("rule", RULES)


def values(n=600, special=0.0):
    """[n, 32] of all magnitudes, rows of one magnitude or of many; some values exactly at ties."""
    random = np.random.default_rng(SEED)
    x = random.standard_normal((n, GROUP)) * np.exp2(random.integers(-100, 100, (n, 1)))
    x[::3] *= np.exp2(random.integers(-12, 12, (len(x[::3]), GROUP)))
    x[1::3] = np.ldexp(np.round(np.ldexp(np.frexp(x[1::3])[0], 6)), np.frexp(x[1::3])[1] - 6)  # six bits: ties
    x = x.astype(np.float32)
    where = random.random(x.shape) < special
    x[where] = random.choice(SPECIAL, where.sum())
    return x


def exact_scale(row, form, rule):
    """The contract, one row at a time, in fractions."""
    if form in ("int8", "e3m2", "e2m3", "e2m1") and np.isnan(row).any():
        return 255
    finite = [abs(Fraction(float(v))) for v in row if np.isfinite(v) and abs(v) >= 2.0**-126]
    if not finite:
        return 0
    most = max(finite)
    k = most.numerator.bit_length() - most.denominator.bit_length()
    k -= most < Fraction(2) ** k
    f, m = most / Fraction(2) ** k, MANTISSA[form]
    up = {"floor": False, "rceil": f * 2 ** EMAX[form] > MOST[form],
          "even": (f * 2**m + Fraction(1, 2)).__floor__() == 2 ** (m + 1)}[rule]
    return max(-127, min(127, k - EMAX[form] + up)) + 127


@each_rule
@each_form
def test_scales_are_those_of_the_definition(form, rule):
    x = values(special=0.02)
    edges = np.ldexp(np.array([1, 1.5, 1.75, 1.875, 127 / 64, 1.9921875, 1.96875]), 3).astype(np.float32)
    edges = np.concatenate([edges, np.nextafter(edges, np.float32(0)), np.nextafter(edges, np.float32(99))])
    ends = np.concatenate([edges, edges * np.float32(2.0**-128), edges * np.float32(2.0**124)])
    x[: len(ends)], x[: len(ends), 5] = 0, ends
    assert scales(x, FORMS[form], rule).tolist() == [exact_scale(row, form, rule) for row in x]


@each_rule
@each_form
def test_elements_are_the_nearest_of_all_codes(form, rule):
    """Nearest among the values that ml_dtypes gives to all codes (int8: code / 64), ties to the even code."""
    one, x = FORMS[form], values(200)
    scale = scales(x, one, rule)
    codes, beyond = element.encode(x, scale[:, None], one)
    s = np.ldexp(x.astype(np.float64), 127 - scale.astype(int)[:, None])
    if form == "int8":
        expected = np.clip(np.rint(s * 64), -127, 127).astype(np.int8).view(np.uint8)
    else:
        magnitudes = np.arange(one.largest + 1, dtype=np.uint8).view(TYPES[form]).astype(np.float64)
        distance = np.abs(np.abs(s)[..., None] - magnitudes)
        nearest = distance.min(axis=-1, keepdims=True)
        tie = np.argmax((distance == nearest) & (np.arange(len(magnitudes)) % 2 == 0), axis=-1)
        first = np.argmin(distance, axis=-1)
        expected = np.where((distance == nearest).sum(axis=-1) == 2, tie, first) | np.signbit(x) << one.width - 1
    np.testing.assert_array_equal(codes, expected)
    step = np.diff(np.append(magnitudes[-2:], 0))[0] if form != "int8" else 1 / 64
    np.testing.assert_array_equal(beyond, np.abs(s) >= float(MOST[form]) + step / 2)
    assert beyond.any() == (rule == "floor" or (rule, form) == ("even", "e4m3"))


@each_rule
@pytest.mark.parametrize("form", TYPES)
def test_elements_are_ml_dtypes_casts(form, rule):
    one, x = FORMS[form], values()
    scale = scales(x, one, rule)
    s = np.ldexp(x.astype(np.float64), 127 - scale.astype(int)[:, None]).clip(-one.most, one.most).astype(np.float32)
    np.testing.assert_array_equal(element.encode(x, scale[:, None], one)[0], s.astype(TYPES[form]).view(np.uint8))


@pytest.mark.parametrize("form", TYPES)
def test_every_code_with_every_scale_comes_back_as_ml_dtypes_has_it(form):
    one = FORMS[form]
    scale, code = (a.astype(np.uint8) for a in np.meshgrid(np.arange(256), np.arange(1 << one.width)))
    value = code.view(TYPES[form]).astype(np.float64) * scale.view(ml_dtypes.float8_e8m0fnu).astype(np.float64)
    with np.errstate(over="ignore"):
        expected = np.where(np.abs(value) < 2.0**-126, np.copysign(0, value), value).astype(np.float32)
    got = element.decode(code, scale, one)
    nan = np.isnan(expected)
    np.testing.assert_array_equal(got.view(np.uint32)[nan], 0x7FC00000)
    np.testing.assert_array_equal(got.view(np.uint32)[~nan], expected.view(np.uint32)[~nan])
    assert nan[:, 255].all() and (nan[:, :255].any() == (one.nan is not None))


def test_every_code_of_int8_is_a_64th():
    scale, code = (a.astype(np.uint8) for a in np.meshgrid(np.arange(255), np.arange(256)))
    value = np.ldexp(code.view(np.int8) / 64.0, scale.astype(int) - 127)
    with np.errstate(over="ignore"):
        expected = np.where(np.abs(value) < 2.0**-126, np.copysign(0, value), value).astype(np.float32)
    np.testing.assert_array_equal(element.decode(code, scale, FORMS["int8"]).view(np.uint32), expected.view(np.uint32))
    assert expected[128, 127] == -2


@each_form
def test_what_is_no_number(form):
    """NaN, infinities, subnormal numbers and zeros, in blocks of their own and beside others."""
    one, x = FORMS[form], np.zeros((4, GROUP), np.float32)
    x[0, :8] = [np.nan, np.inf, -np.inf, 1e-42, -1e-42, -0.0, 1, -1]
    x[1, :3], x[2, 0] = [np.inf, -np.inf, -1e-42], 1e-42
    scale = scales(x, one, "rceil")
    codes, beyond = element.encode(x, scale[:, None], one)
    back = element.decode(codes, scale[:, None], one)
    sign = 0 if form == "int8" else 1 << one.width - 1
    most = {"e5m2": (0x7C, 0xFC), "int8": (127, 0x81)}.get(form, (one.largest, one.largest | sign))
    assert codes[1, :4].tolist() == [*most, sign, 0] and scale[1:].tolist() == [0, 0, 0] and not codes[2:].any()
    assert beyond.sum() == (0 if form == "e5m2" else 2 + 2 * (form == "e4m3"))
    if form in ("e4m3", "e5m2"):
        assert codes[0, :6].tolist() == [{"e4m3": 0x7F, "e5m2": 0x7E}[form], *most, 0, sign, sign]
        assert np.isnan(back[0]).tolist() == [True] + [False] * 31 and back[0, 6:8].tolist() == [1, -1]
        assert np.isinf(back[0, 1]) == (form == "e5m2")
    else:
        assert scale[0] == 255 and not codes[0].any() and (back[0].view(np.uint32) == 0x7FC00000).all()
    assert path.counts(x, one, "rceil") == (1, beyond.sum())




@each_form
def test_floor_is_gfloats_block(form):
    """Scale and values of its ``quantize_block``."""
    gfloat = pytest.importorskip("gfloat")
    from gfloat import formats

    block = getattr(formats, f"format_info_mx{'int8' if form == 'int8' else f'fp{FORMS[form].width}_{form}'}")
    one, x = FORMS[form], values(60)
    scale = scales(x, one, "floor")
    back = element.decode(element.encode(x, scale[:, None], one)[0], scale[:, None], one)
    for row, got, own in zip(x.astype(np.float64), scale, back, strict=True):
        assert gfloat.compute_scale_amax(one.emax, row) == 2.0 ** (int(got) - 127)
        np.testing.assert_array_equal(gfloat.quantize_block(block, row, gfloat.compute_scale_amax), own)


@pytest.fixture(scope="module")
def torchao():
    pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mx_tensor = pytest.importorskip("torchao.prototype.mx_formats.mx_tensor")
    return mx_tensor


@each_rule
@pytest.mark.parametrize("form", TYPES)
def test_elements_and_scales_are_torchaos(torchao, form, rule):
    import torch

    kinds = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2, "e3m2": torchao.DTYPE_FP6_E3M2,
             "e2m3": torchao.DTYPE_FP6_E2M3, "e2m1": torch.float4_e2m1fn_x2}
    one, x = FORMS[form], values()
    mode = getattr(torchao.ScaleCalculationMode, rule.upper())
    scale, data = torchao.to_mx(torch.from_numpy(x), kinds[form], GROUP, mode)
    own = scales(x, one, rule)
    codes, _ = element.encode(x, own[:, None], one)
    np.testing.assert_array_equal(own, scale.view(torch.uint8).numpy().reshape(-1))
    expected = path.pack(codes, 4) if form == "e2m1" else codes
    np.testing.assert_array_equal(expected, data.view(torch.uint8).numpy().reshape(expected.shape))
    back = torchao.to_dtype(data, scale, kinds[form], GROUP, torch.float32).numpy()
    np.testing.assert_array_equal(element.decode(codes, own[:, None], one), back)


@pytest.mark.parametrize("shape", [(3, 5, 96), (7, 32), (2, 3, 4, 64), (32,)], ids=str)
@pytest.mark.parametrize("form", TYPES)
def test_a_tensor_goes_to_torchao_and_back(torchao, form, shape):
    """Its MXTensor has the same scales and elements, of the same types and shapes, and gives the same values."""
    import torch

    from actcodec import mx

    kinds = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2, "e3m2": torchao.DTYPE_FP6_E3M2,
             "e2m3": torchao.DTYPE_FP6_E2M3, "e2m1": torch.float4_e2m1fn_x2}
    x = np.random.default_rng(SEED).standard_normal(shape).astype(np.float32)
    theirs = torchao.MXTensor.to_mx(torch.from_numpy(x), kinds[form], GROUP, torchao.ScaleCalculationMode.RCEIL)
    for options in ({}, {"cdus": 3}, {"cdus": 2, "scales": "apart"}):
        scale, data = mx.to_torchao(actcodec.compress(x, "mx", format=form, **options))
        for own, other in ((scale, theirs.scale), (data, theirs.qdata)):
            assert (own.dtype, own.shape) == (other.dtype, other.shape)
            assert torch.equal(own.view(torch.uint8), other.view(torch.uint8))
    back = mx.from_torchao(theirs.scale, theirs.qdata, form)
    assert (back.payload, back.shape) == (actcodec.compress(x, "mx", format=form).payload, shape)
    np.testing.assert_array_equal(actcodec.decompress(back), theirs.dequantize(torch.float32).numpy())


def test_what_torchao_cannot_have_is_an_error():
    pytest.importorskip("torch")
    import torch

    from actcodec import mx

    x = np.ones((4, 40), np.float32)
    for compressed, words in ((actcodec.compress(x, "raw"), "mode is raw, must be mx"),
                              (actcodec.compress(x, "mx"), "format is 'int8', torchao has e4m3, e5m2"),
                              (actcodec.compress(x, "mx", format="e4m3"), "rows that are no multiple of 32 values")):
        with pytest.raises(ValueError, match=words):
            mx.to_torchao(compressed)
    with pytest.raises(ValueError, match=r"scales have the shape \(2, 1\), elements need \(2, 2\)"):
        mx.from_torchao(torch.zeros(2, 1, dtype=torch.uint8), torch.zeros(2, 64, dtype=torch.uint8), "e3m2")
    scales = torch.zeros(4, 1, dtype=torch.uint8)
    for elements, form, words in (
            (torch.zeros(4, 32, dtype=torch.float8_e5m2), "e4m3", "elements are torch.float8_e5m2, must be"),
            (torch.zeros(4, 32), "e3m2", "elements are torch.float32, must be uint8"),
            (torch.full((4, 32), 64, dtype=torch.uint8), "e2m3", "up to 64, must be less than 64 in e2m3"),
            (torch.zeros(4, 32, dtype=torch.uint8), "int8", "format is 'int8'")):
        with pytest.raises(ValueError, match=words):
            mx.from_torchao(scales, elements, form)
    with pytest.raises(ValueError, match=r"scales are torch\.float32, must be float8_e8m0fnu or uint8"):
        mx.from_torchao(scales.float(), torch.zeros(4, 32, dtype=torch.uint8), "e3m2")


@each_form
def test_bytes_are_those_of_plain_loops(form):
    one, x = FORMS[form], values(4)
    mode, = lane_modes("mx" if form == "int8" else f"mx-{form}")
    payload, _ = mode.model.encode(x, blocks.view(x.shape), None, {"rule": 0}, 1)
    bits = []
    for first in range(0, 4, 2):
        scale = scales(x[first : first + 2], one, "rceil")
        codes, _ = element.encode(x[first : first + 2], scale[:, None], one)
        bits += [byte >> k & 1 for byte in scale.tolist() for k in range(8)]
        bits += [code >> k & 1 for code in codes.reshape(-1).tolist() for k in range(one.width)]
    assert payload == bytes(sum(bit << k for k, bit in enumerate(bits[n : n + 8])) for n in range(0, len(bits), 8))
    assert len(payload) == 2 * {8: 66, 6: 50, 4: 34}[one.width]


@each_form
@pytest.mark.parametrize("shape", [(2, 3, 7, 13), (1, 5, 8, 9), (3, 2, 1, 3), (4, 40), (70,), (1, 1), (5, 96)], ids=str)
def test_files_come_back_with_scales_in_either_place(form, shape):
    """Ragged tensors, any number of CDUs; the padding of a row lies in a block like any other values."""
    x = np.random.default_rng(SEED).standard_normal(shape).astype(np.float32)
    inline = actcodec.compress(x, "mx", format=form, cdus=3)
    apart = actcodec.compress(x, "mx", format=form, cdus=3, scales="apart")
    one = actcodec.compress(x, "mx", format=form, scales="apart")
    assert apart.payload == one.payload and len(inline.payload) == len(one.payload)
    back = [actcodec.decompress(file) for file in (inline, apart, one)]
    for other in back[1:]:
        np.testing.assert_array_equal(back[0], other)
    sectors = blocks.split(x, blocks.view(one.seen.shape), False).reshape(-1, GROUP)
    assert one.payload[: len(sectors)] == scales(sectors, FORMS[form], "rceil").tobytes()
    bound = {"int8": 2**-7, "e4m3": 2**-4, "e5m2": 2**-3, "e3m2": 2**-3, "e2m3": 2**-4, "e2m1": 2**-2}[form]
    assert np.abs(back[0] - x).max() <= 2 * bound * np.abs(x).max()


def test_an_unknown_option_is_an_error():
    x = np.zeros((4, 8), np.float32)
    for options in ({"format": "e8m0"}, {"rule": "ceil"}, {"scales": "none"}):
        (name, value), = options.items()
        with pytest.raises(ValueError, match=f"{name} is '{value}', must be"):
            actcodec.compress(x, "mx", **options)


def test_evaluate_counts_what_saturates_under_its_rule():
    x = np.array([[1.9, 1, *[0.1] * 30]], np.float32)
    counts = {rule: actcodec.evaluate(x, "mx", format="e4m3", rule=rule, scales="apart").saturated for rule in RULES}
    assert counts == {"rceil": 0, "floor": 1, "even": 1}


@pytest.mark.parametrize("x", [np.ones((2, GROUP)), np.ones((2, GROUP), np.float16), np.ones((2, GROUP), np.int32),
                               np.ones((2, GROUP), ">f4")])
def test_anything_but_float32_is_a_type_error(x):
    with pytest.raises(TypeError, match="has to be float32"):
        scales(x, FORMS["e4m3"], "rceil")
    with pytest.raises(TypeError, match="has to be float32"):
        element.encode(x, np.full((2, 1), 127, np.uint8), FORMS["e4m3"])


@pytest.mark.parametrize("shape, rule, message", [
    ((2, 31), "rceil", r"shape is \(2, 31\), legal is \[..., 32\]"), ((), "rceil", "shape is"),
    ((GROUP, 2), "even", "shape is"), ((2, GROUP), "ceil", "unknown rule 'ceil', legal are rceil, floor, even")])
def test_other_rows_and_rules_are_refused(shape, rule, message):
    with pytest.raises(ValueError, match=message):
        scales(np.ones(shape, np.float32), FORMS["e4m3"], rule)
