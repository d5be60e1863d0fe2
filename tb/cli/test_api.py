"""The Python API: what it takes and gives, its examples, and how light it is."""

import doctest
import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import actcodec
from actcodec import api, codecs, container, metrics
from actcodec.golden.jpegact import sfpr
from actcodec.golden.offload.memory import formats
from tb import reference

ROOT = Path(__file__).parents[2]
SHAPES = {(700,): (1, 700), (9, 70): (9, 70), (2, 5, 70): (2, 5, 1, 70), (2, 5, 9, 19): (2, 5, 9, 19),
          (2, 3, 2, 5, 9): (2, 3, 10, 9)}
"""Shapes, and what a model sees of them."""
DTYPES = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]


def tensor(shape, seed=0):
    x = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    x[x < -0.5] = 0
    return x


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("mode", actcodec.modes())
def test_a_tensor_of_any_number_of_dimensions_is_its_view(mode, shape):
    x = tensor(shape)
    compressed = actcodec.compress(x, mode)
    seen = actcodec.compress(x.reshape(SHAPES[shape]), mode)
    assert (compressed.shape, compressed.payload, compressed.side) == (shape, seen.payload, seen.side)
    y = actcodec.decompress(compressed)
    assert y.dtype == np.float32
    np.testing.assert_array_equal(y, actcodec.decompress(seen).reshape(shape))


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("mode", actcodec.modes())
def test_a_tensor_of_any_type_is_its_float32_and_comes_back_as_it_was(tmp_path, mode, dtype):
    x = tensor((2, 3, 8, 9)).astype(dtype)
    compressed = actcodec.compress(x, mode, engine="golden")
    plain = actcodec.compress(x.astype(np.float32), mode)
    assert (compressed.side, compressed.options) == (plain.side, plain.options)
    if mode in ("raw", "zvc") and np.dtype(dtype).itemsize == 2:  # in words of its own
        half = np.count_nonzero(x.view(np.uint16)) if mode == "zvc" else 64 * 12
        masks = 8 * 12 if mode == "zvc" else 0
        assert (compressed.payload_bytes, plain.payload_bytes) == (masks + 2 * half, masks + 4 * half)
    else:
        assert compressed.payload == plain.payload
        assert compressed.ratio == pytest.approx(plain.ratio * np.dtype(dtype).itemsize / 4)
    assert actcodec.save(tmp_path / "x.act", compressed) == compressed.nbytes == (tmp_path / "x.act").stat().st_size
    y = actcodec.decompress(actcodec.load(tmp_path / "x.act"))
    assert (y.dtype, y.shape) == (np.dtype(dtype), x.shape)
    np.testing.assert_array_equal(y, actcodec.decompress(plain).astype(dtype))
    if not codecs.MODES[mode].lossy:
        np.testing.assert_array_equal(y, x)


@pytest.mark.parametrize("dtype", DTYPES[:2], ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("mode", ["raw", "zvc"])
def test_words_of_16_bits_are_kept_bit_for_bit(mode, dtype):
    """NaNs that are not quiet and -0.0 among them; of both byte orders, and in any memory order."""
    every = np.arange(1 << 16, dtype=np.uint16).reshape(4, 2, 64, 128)
    for x in (every.view(dtype), every.view(dtype).transpose(0, 2, 1, 3)):
        y = actcodec.decompress(actcodec.compress(x, mode, cdus=3))
        assert y.dtype == np.dtype(dtype)
        np.testing.assert_array_equal(y.view(np.uint16), np.ascontiguousarray(x).view(np.uint16))
    swapped = np.arange(512, dtype=">u2").view(">f2").reshape(8, 64)
    y = actcodec.decompress(actcodec.compress(swapped, mode))
    assert y.dtype.isnative
    np.testing.assert_array_equal(y.view(np.uint16), np.arange(512).reshape(8, 64))


def test_what_a_mode_gives_back_is_rounded_once_as_hardware_does():
    x = np.array([[65504.0, -65504.0, 6e-8, np.nan, np.inf, 1, 0, 3e-8]] * 8, np.float16)
    compressed = actcodec.compress(x, "comet", error_bound=16.0)
    np.testing.assert_array_equal(
        actcodec.decompress(compressed).view(np.uint16),
        formats.narrow(actcodec.decompress(actcodec.compress(x.astype(np.float32), "comet", error_bound=16.0)),
                       "float16"))


@pytest.mark.filterwarnings("error")
def test_what_float64_loses_is_said():
    x = np.linspace(0, 1, 64).reshape(8, 8)
    with pytest.warns(UserWarning, match=r"float64 is rounded to float32: relative L2 error [1-9].*e-08$"):
        actcodec.compress(x, "raw")
    with pytest.warns(UserWarning, match="rounded"):
        assert actcodec.compress(np.append(x, np.inf), "raw").dtype == "float64"
    actcodec.compress(x.astype(np.float32).astype(np.float64), "raw")  # any warning is an error here


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("values, count, largest", [([1e39, 1, 2], 1, "1e+39"), ([-1e300, 3.4028236e38, np.nan], 2,
                                                                              "1e+300")])
def test_float64_beyond_float32_is_refused(values, count, largest):
    """Made infinite, they could not be had back."""
    for way in (actcodec.compress, actcodec.evaluate):
        for mode in actcodec.modes():
            with pytest.raises(ValueError, match=re.escape(f"{count} values beyond float32's range, up to {largest};")):
                way(np.array(values), mode)
    edge = np.array([np.finfo(np.float32).max, np.inf, np.nan], np.float64)
    np.testing.assert_array_equal(actcodec.decompress(actcodec.compress(edge, "raw")), edge)


def test_an_error_that_is_not_finite_has_a_psnr():
    """float16 has no room for the largest values that come back."""
    x = np.float32([1, 2, 65504])
    assert metrics.errors(x, np.float16([1, 2, np.inf])).psnr == -np.inf
    x = np.random.default_rng(0).choice([-65504, 65504], (1, 1, 64, 64)).astype(np.float16)
    with np.errstate(over="ignore"):
        result = actcodec.evaluate(x, "division")
    assert (result.relative_error, result.psnr) == (np.inf, -np.inf)


@pytest.mark.parametrize("mask", [[0, 1, 0], [0, 0, 0], np.ma.nomask])
def test_masked_arrays_are_refused(mask):
    x = np.ma.array(np.ones(3, np.float32), mask=mask)
    for way in (actcodec.compress, actcodec.evaluate):
        with pytest.raises(TypeError, match=r"masked array.*pass x.filled\(value\) or x.data"):
            way(x, "zvc")


@pytest.mark.parametrize("wrong", [None, b"", np.ones(3)], ids=["None", "bytes", "array"])
def test_only_what_was_compressed_is_decompressed_and_saved(tmp_path, wrong):
    what = f"compressed is {type(wrong).__name__}, must be an actcodec.Compressed"
    with pytest.raises(TypeError, match=what):
        actcodec.decompress(wrong)
    with pytest.raises(TypeError, match=what):
        actcodec.save(tmp_path / "x.act", wrong)
    assert not list(tmp_path.iterdir())


def test_a_mode_shows_as_its_name():
    assert repr(actcodec.modes()["jpeg-act"]) == "<Mode jpeg-act, code 3>"
    assert repr(codecs.lane_modes("division-4-flat")) == "(<Mode division-4-flat, code 32>,)"


@pytest.mark.parametrize("change", [np.asfortranarray, lambda x: np.flip(x, 1), lambda x: x[:, ::2], lambda x: x.T,
                                    lambda x: x.astype(">f4"), lambda x: np.broadcast_to(x[:1], x.shape)])
def test_memory_order_does_not_matter(change):
    x = change(tensor((2, 6, 9, 10)))
    plain = np.array(x, np.float32, order="C")
    for mode in actcodec.modes():
        assert container.pack(actcodec.compress(x, mode)) == container.pack(actcodec.compress(plain, mode))


@pytest.mark.parametrize("x, error, what", [
    ([1.0], TypeError, "tensor is list, must be a NumPy array"), (np.ones(3, int), TypeError, "dtype is int64"),
    (np.ones((2, 2), "c8"), TypeError, "dtype is complex64"), (np.float32(1), TypeError, "float32"),
    (np.array(1, np.float32), ValueError, "has 0 dimensions, legal are 1 to 5"),
    (np.ones((1,) * 6, np.float32), ValueError, "has 6 dimensions"),
    (np.ones((2, 0), np.float32), ValueError, "is empty"), (np.ones(3, "V4"), TypeError, "dtype is"),
], ids=str)
def test_what_is_no_tensor_is_refused(x, error, what):
    for mode in actcodec.modes():
        with pytest.raises(error, match=what):
            actcodec.compress(x, mode)


@pytest.mark.parametrize("options, what", [
    ({"cdus": 9}, "cdus is 9, must be 1 to 8"), ({"cdus": True}, "cdus is True"), ({"cdus": 2.0}, "cdus is 2.0"),
    ({"dqt": "optM"}, "unknown DQT 'optM'"), ({"dqt": [1, 2]}, "DQT has 2 values"), ({"dqt": np.zeros(64)}, "below 1"),
    ({"quality": 3}, "mode jpeg-act has no option quality; its options: dqt, coder, quantizer, dead_zone, scaling, "
     "cap, clip, cdus"),
    ({"coder": "huffman"}, "coder is 'huffman', must be zvc, nibble, rice"), ({"engine": "fpga"}, "engine is"),
])
def test_options_are_checked(options, what):
    with pytest.raises(ValueError, match=what):
        actcodec.compress(tensor((1, 1, 8, 8)), "jpeg-act", **options)


def test_an_unknown_mode_names_all():
    with pytest.raises(ValueError, match=r"unknown mode 'gif', legal are raw, sfpr, .*bitpack-3"):
        actcodec.compress(tensor((8, 8)), "gif")


def test_dqt_is_a_name_or_64_numbers():
    x = tensor((2, 3, 16, 16))
    named = actcodec.compress(x, "jpeg-act", dqt="jpeg60", cdus=3)
    numbers = actcodec.compress(x, "jpeg-act", dqt=named.options["dqt"].table, cdus=np.int64(3))
    assert (str(named.options["dqt"]), str(numbers.options["dqt"])) == ("jpeg60", "custom")
    assert named.payload == numbers.payload == reference.compress(x, "jpeg-act", "jpeg60", 3).payload


def test_a_wrong_payload_is_refused():
    c = actcodec.compress(tensor((2, 3, 16, 16)), "zvc")
    with pytest.raises(ValueError, match="masks"):
        actcodec.decompress(type(c)(c.mode, c.shape, c.payload[:-1], c.options))
    with pytest.raises(ValueError, match="cannot hold"):
        actcodec.decompress(type(c)(c.mode, c.shape, b"", c.options))


def test_evaluation_is_the_textbooks():
    x = tensor((2, 3, 16, 16))
    x[0, 0, 0, :4] = np.nan, np.inf, -np.inf, 1e30
    for mode in actcodec.modes():
        result, c = actcodec.evaluate(x, mode), actcodec.compress(x, mode)
        y = actcodec.decompress(c).astype(np.float64)[np.isfinite(x)]
        finite = x[np.isfinite(x)].astype(np.float64)
        assert (result.mode, result.ratio, result.ratio_with_side) == (mode, x.nbytes / len(c.payload),
                                                                       x.nbytes / len(container.pack(c)))
        # In mx, a NaN may take its neighbours with it.
        assert result.relative_error == pytest.approx(np.linalg.norm(y - finite) / np.linalg.norm(finite), nan_ok=True)
        np.testing.assert_equal(result.largest_error, np.abs(y - finite).max())
        assert result.psnr == pytest.approx(metrics.psnr(finite, y), nan_ok=True)
        assert (result.nans, result.infinities) == (1, 2)
        expected = {"sfpr": sfpr.counts(x, sfpr.scales(x).k).saturated, "dpr-fp16": 3, "ssdc-fp8": 3, "zvc": 0}
        assert result.saturated == expected.get(mode, result.saturated)
    nothing = actcodec.evaluate(np.full((1, 8), np.nan, np.float32), "raw")
    assert (nothing.relative_error, nothing.largest_error, nothing.nans) == (0, 0, 8)


def test_channel_error_is_that_of_each_channel():
    """Finite values alone, as everywhere; a channel of zeros counts as 0 while it stays one. Without channels it is the
    array's."""
    x = tensor((2, 5, 16, 16)) * np.float32([1, 10, 0.1, 0, 100])[:, None, None]
    x[1, 0, 0, 0] = np.inf
    for mode in ("jpeg-act", "comet", "zvc"):
        y = actcodec.decompress(actcodec.compress(x, mode))
        pairs = [(y[:, c][kept].astype(float), x[:, c][kept].astype(float)) for c, kept in enumerate(
            np.isfinite(x).swapaxes(0, 1))]
        errors = [np.linalg.norm(y - x) / (np.linalg.norm(x) or 1) for y, x in pairs]
        assert actcodec.evaluate(x, mode).channel_error == pytest.approx(np.sqrt(np.mean(np.square(errors))), rel=1e-6)
    flat = actcodec.evaluate(x[0, 1].ravel(), "sfpr")
    assert flat.channel_error == flat.relative_error > 0
    assert metrics.channel_error(np.array([[0.0, 1.0]]), np.array([[0.5, 1.0]])) == np.inf


def test_error_of_float64_counts_what_float32_loses():
    x = np.random.default_rng(0).normal(size=(8, 8))
    assert 1e-9 < actcodec.evaluate(x, "raw").relative_error < 1e-7


def test_examples_run():
    for module in (actcodec, api):
        result = doctest.testmod(module)
        assert result.attempted and not result.failed
    result = doctest.testfile(str(ROOT / "docs/api.md"), module_relative=False)
    assert result.attempted and not result.failed


def test_version():
    assert actcodec.__version__ == version("actcodec")
    with pytest.raises(AttributeError):
        _ = actcodec.compres
    assert set(actcodec.__all__) <= set(dir(actcodec))


def test_nothing_but_numpy_is_imported():
    script = ("import sys; before = set(sys.modules); import actcodec; assert 'numpy' not in sys.modules; "
              "import numpy as np; x = np.ones((2, 3, 8, 8), np.float32); "
              "[actcodec.evaluate(x, mode) for mode in actcodec.modes()]; "
              "new = {name.split('.')[0] for name in set(sys.modules) - before}; "
              "print(*sorted(new - set(sys.stdlib_module_names)))")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True,
                          env={key: value for key, value in os.environ.items() if key != "COV_CORE_SOURCE"})
    assert [name for name in done.stdout.split() if not name.startswith("_")] == ["actcodec", "numpy"]


def test_modes_of_the_package_have_all_that_is_shown_of_them():
    for mode in actcodec.modes().values():
        assert mode.summary and mode.tensors and mode.source and mode.model
        assert ("rtl" in mode.engines) == bool(mode.format)
    codes = {mode.name: mode.code for mode in actcodec.modes().values()}
    assert list(codes.values())[:16] == [*range(6), *range(7, 17)]  # 6 is an old one
    assert [codes[name] for name in ("jpeg-base", "comet", "division")] == [20, 21, 22]


def test_tiny_numbers_that_are_lost_are_errors():
    x = np.full((2, 3), 1e-170)
    x[0, 0] = -1e-170
    errors = metrics.errors(x, np.zeros_like(x))
    assert errors.relative_error == errors.channel_error == pytest.approx(1)
    assert errors.psnr == pytest.approx(20 * np.log10(2)) and errors.largest_error == 1e-170


def test_errors_of_tiny_numbers_are_no_less():
    assert actcodec.evaluate(np.full((8, 8), 1e-200), "raw").relative_error == 1
