"""Native kernels read and write bfloat16 and float16: golden's bits, of every value, with no float32 copy of them."""

import shutil

import ml_dtypes
import numpy as np
import pytest
import torch

import actcodec
import actcodec.torch as at
from actcodec.golden.offload.memory import formats
from actcodec.torch import kernels
from actcodec.torch.golden import codec
from actcodec.torch.signed import Signed
from tb.torch.memory import measured
from tb.torch.test_lane import SHAPES, WAYS, nasty, random, tiny

# what rounds to an infinity is wanted here
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
FORMATS = {torch.bfloat16: "bfloat16", torch.float16: "float16"}
WORDS = "raw", "zvc"  # modes that move words
NATIVE = [way for way in WAYS if way[0] not in WORDS]
SOURCE = """
#include "common.h"
EXPORT int64_t widen(const Value *x, int64_t n, float *y, int64_t) {
    for (int64_t i = 0; i < n; i++) y[i] = x[i];
    return 0;
}
EXPORT int64_t narrow(const float *x, int64_t n, Value *y, int64_t) {
    for (int64_t i = 0; i < n; i++) y[i] = Value(x[i]);
    return 0;
}
"""


@pytest.fixture(params=FORMATS, ids=FORMATS.values())
def dtype(request):
    return request.param


@pytest.fixture
def used(monkeypatch):
    """The sources that were asked for, each with the type of its values."""
    log, library = set(), kernels.library
    monkeypatch.setattr(kernels, "library", lambda *one: log.add(one) or library(*one))
    return log


def words(x):
    """The bits of values of 16 bits."""
    return x.reshape(-1).view(torch.int16).numpy().view(np.uint16)


def every(dtype):
    """All values of a type, no two neighbours of like magnitude."""
    order = np.random.default_rng(0).permutation(1 << 16).astype(np.uint16)
    return torch.from_numpy(order.view(np.int16)).view(dtype).view(1, 4, 128, 128)


def check(x, mode, options):
    """A tensor of 16 bits has golden's payload, and comes back with golden's bits."""
    one, shape = codec(mode, options), tuple(x.shape)
    values = formats.widen(words(x), FORMATS[x.dtype]).reshape(shape)
    if mode in WORDS:
        values = words(x).view(np.float16 if x.dtype is torch.float16 else ml_dtypes.bfloat16).reshape(shape)
    try:
        expected = actcodec.compress(values, mode, **options)
    except ValueError as error:  # a share of almost nothing
        assert "2^-126" in str(error)
        return
    assert one.reads(x) and not one.reads(x.float())
    packed = one.encode(x)
    assert (packed.mode, int(packed.payload), packed.side) == (expected.mode, expected.payload_bytes,
                                                               len(expected.side))
    y = one.decode(packed)
    assert y.dtype == x.dtype and y.shape == x.shape
    z = actcodec.decompress(expected).reshape(-1)
    z = z.view(np.uint16) if mode in WORDS else formats.narrow(z, FORMATS[x.dtype])
    if mode in ("ssdc", "comet"):  # what they keep is not rounded: a NaN that signals still does
        z = np.where(x.isnan().view(-1).numpy(), words(x), z)
    np.testing.assert_array_equal(words(y), z)


def test_conversions_are_golden(dtype, tmp_path, monkeypatch):
    """Of all values, of the float32 ones half way between two, those beside all of these, and any."""
    shutil.copy(kernels.FOLDER / "common.h", tmp_path)
    (tmp_path / "conversions.cpp").write_text(SOURCE)
    monkeypatch.setattr(kernels, "FOLDER", tmp_path)
    native, x = kernels.library("conversions", dtype), every(dtype)
    wide = torch.empty(x.numel())
    native.widen(x, x.numel(), wide)
    bits = wide.numpy().view(np.uint32)
    np.testing.assert_array_equal(bits, formats.widen(words(x), FORMATS[dtype]).view(np.uint32))
    up = formats.widen(words(x) + np.uint16(1), FORMATS[dtype]).view(np.uint32)
    between = (bits.astype(np.uint64) + up >> 1).astype(np.uint32)
    bits = np.concatenate([around + step for around in (bits, between) for step in np.uint32([0, 1, 0xFFFFFFFF])] +
                          [np.random.default_rng(1).integers(0, 1 << 32, 1 << 20, np.uint32)])
    y = torch.empty(bits.size, dtype=dtype)
    native.narrow(torch.from_numpy(bits.view(np.float32)), y.numel(), y)
    np.testing.assert_array_equal(words(y), formats.narrow(bits.view(np.float32), FORMATS[dtype]))


@pytest.mark.parametrize("mode, options", WAYS, ids=str)
def test_every_value_is_golden(mode, options, dtype, used):
    check(every(dtype), mode, options)
    assert mode in WORDS or dtype in {one[1] for one in used if len(one) == 2}


@pytest.mark.parametrize("mode, options", WAYS, ids=str)
@pytest.mark.parametrize("make", [random, nasty, tiny])
def test_any_values_in_any_shape_are_golden(make, mode, options, dtype):
    for seed, shape in enumerate(SHAPES):
        check(torch.from_numpy(make(shape, seed)).to(dtype), mode, options)


@pytest.mark.parametrize("mode, options", [way for way in WAYS if way[1].get("coder") != "rice"], ids=str)
def test_several_threads_give_the_same_bits(mode, options, dtype):
    threads = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        check(torch.from_numpy(random((1, 3, 335, 201), 7)).to(dtype), mode, options)
        check(torch.from_numpy(random((1,), 8)).to(dtype), mode, options)
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("mode, options", NATIVE, ids=str)
def test_operations_give_the_same_values(mode, options, dtype, monkeypatch):
    """NaN apart, whose bits depend on the processor in PyTorch."""
    x, one = torch.from_numpy(nasty((2, 5, 9, 19), 2)).to(dtype), codec(mode, options)
    y = one.decode(one.encode(x))
    monkeypatch.setattr(kernels, "enabled", False)
    assert not one.reads(x)
    z = one.decode(one.encode(x.float())).to(dtype)
    assert torch.equal(y.isnan(), z.isnan())
    np.testing.assert_array_equal(words(y.nan_to_num(1)), words(z.nan_to_num(1)))


@pytest.mark.parametrize("mode, options", NATIVE, ids=str)
def test_no_float32_copy_is_made(mode, options, dtype):
    """Of the same values as float32, a codec needs as much memory at the least."""
    torch.manual_seed(0)
    x = torch.nn.functional.interpolate(torch.randn(16, 32, 8, 8), size=(64, 64), mode="bicubic").relu_().to(dtype)
    one, peaks = codec(mode, options), []
    for values in x, x.float():
        one.decode(one.encode(values))  # what is allocated at first
        encoded = measured(lambda values=values: one.encode(values))
        decoded = measured(lambda encoded=encoded: one.decode(encoded.result))
        peaks.append((encoded.peak, decoded.peak))
    (encoded, decoded), (wide_encoded, wide_decoded) = peaks
    assert encoded <= wide_encoded
    assert decoded < wide_decoded or "relative_bound" in options  # where integers need more than values


@pytest.mark.parametrize("mode", ["sfpr-zvc", "ssdc-fp8", "mx"])
def test_what_is_above_0_stays_so_beside_a_mask(mode, dtype):
    x = torch.from_numpy(random((2, 5, 9, 19), 1)).to(dtype).relu_() ** 9
    one = Signed(codec(mode, {}), codec("brc", {}))
    assert one.reads(x)
    y = one.decode(one.encode(x))
    assert y.dtype == dtype and torch.equal(y > 0, x > 0)


@pytest.mark.parametrize("mode", WORDS)
def test_words_are_moved_by_both_engines(mode, dtype, native):
    for make, shape in (every, None), (random, (2, 5, 9, 19)):
        x = make(dtype) if shape is None else torch.from_numpy(make(shape, 1)).to(dtype).relu_()
        packed = [codec(mode, {}, engine).encode(x) for engine in ("torch", "golden")]
        assert packed[0].nbytes == packed[1].nbytes
        for one, engine in zip(packed, ("torch", "golden"), strict=True):
            y = codec(mode, {}, engine).decode(one)
            assert y.dtype == dtype and y.shape == x.shape
            np.testing.assert_array_equal(words(y), words(x))


@pytest.mark.parametrize("preset", ["jpeg-act", "gist", "gist-fp8", "sfpr", "division", "comet", "mx", "cdma"])
def test_a_model_has_the_gradients_of_the_operations(preset, dtype, used, monkeypatch):
    x, gradients = torch.from_numpy(random((4, 3, 16, 16), 1)).to(dtype), []
    for enabled in True, False:
        monkeypatch.setattr(kernels, "enabled", enabled)
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(),
                                    torch.nn.Conv2d(8, 8, 3), torch.nn.ReLU6(), torch.nn.Dropout(0.2),
                                    torch.nn.Conv2d(8, 4, 3)).to(dtype)
        with at.Compress(model, preset, min_values=1):
            loss = model(x).square().mean()
        loss.backward()
        gradients.append(torch.cat([one.grad.reshape(-1) for one in model.parameters()]))
    assert torch.equal(*gradients)
    assert any(one[1:] == (dtype,) for one in used)
