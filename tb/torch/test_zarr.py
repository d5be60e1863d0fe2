"""Zarr arrays of both formats, by the entry points."""

import doctest
import json

import numcodecs
import numpy as np
import pytest
import zarr

import actcodec
import actcodec.numcodecs
import actcodec.zarr
from actcodec import container

OPTIONS = {"jpeg-act": {"dqt": "optH", "cdus": 2}, "sfpr": {"signs": True}}


def activations(shape=(6, 8, 16, 16), dtype=np.float32):
    x = np.maximum(np.random.default_rng(0).normal(size=shape), 0)
    return np.asarray(x, dtype)


def arrays(path, x, chunks, mode, options):
    """Of both formats, as they are when they are opened again, and where their first chunks lie."""
    zarr.create_array(path / "two", shape=x.shape, chunks=chunks, dtype=x.dtype, zarr_format=2,
                      compressors=actcodec.numcodecs.Actcodec(mode, **options))[:] = x
    zarr.create_array(path / "three", shape=x.shape, chunks=chunks, dtype=x.dtype, zarr_format=3, compressors=None,
                      serializer=actcodec.zarr.Actcodec(mode, **options))[:] = x
    zero = ["0"] * x.ndim
    return {"two": path.joinpath("two", ".".join(zero)), "three": path.joinpath("three", "c", *zero)}


@pytest.mark.parametrize("mode", actcodec.modes())
def test_chunks_are_act_files(tmp_path, mode):
    x, options = activations(), OPTIONS.get(mode, {})
    files = arrays(tmp_path, x, (3, 8, 16, 16), mode, options)
    expected = [actcodec.compress(x[i:i + 3], mode, **options) for i in (0, 3)]
    for name, file in files.items():
        assert file.read_bytes() == container.pack(expected[0])
        y = zarr.open_array(tmp_path / name, mode="r")[:]
        np.testing.assert_array_equal(y, np.concatenate([actcodec.decompress(one) for one in expected]))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("shape, chunks", [((100,), (33,)), ((20, 70), (20, 70)), ((2, 3, 2, 5, 9), (1, 3, 2, 5, 9))])
def test_any_shape_and_type(tmp_path, shape, chunks, dtype):
    x = activations(shape).astype(dtype)  # float64 has no more than float32 then
    arrays(tmp_path, x, chunks, "zvc", {})
    for name in ("two", "three"):
        y = zarr.open_array(tmp_path / name)[:]
        assert y.dtype == dtype
        np.testing.assert_array_equal(y, x)


def test_metadata_are_plain_and_found_again(tmp_path):
    table = np.full((8, 8), 16)
    arrays(tmp_path, activations(), (6, 8, 16, 16), "jpeg-act", {"dqt": table})
    two, three = (json.loads((tmp_path / name).read_text()) for name in ("two/.zarray", "three/zarr.json"))
    assert two["compressor"] == {"id": "actcodec", "mode": "jpeg-act", "dqt": [16] * 64}
    assert three["codecs"] == [{"name": "actcodec", "configuration": {"mode": "jpeg-act", "dqt": [16] * 64}}]
    assert type(numcodecs.get_codec(two["compressor"])) is actcodec.numcodecs.Actcodec
    one = actcodec.zarr.Actcodec("jpeg-act", dqt="optH")
    assert actcodec.zarr.Actcodec.from_dict(one.to_dict()) == one


@pytest.mark.parametrize("dtype", ["int8", "int32", "V2"])
def test_chunks_of_other_types_are_refused(tmp_path, dtype):
    x = np.zeros((2, 3, 8, 8), dtype)
    with pytest.raises(TypeError, match="must be float16, float32 or float64"):
        actcodec.numcodecs.Actcodec("sfpr-zvc").encode(x)
    if dtype != "V2":
        array = zarr.create_array(tmp_path / "three", shape=x.shape, chunks=x.shape, dtype=x.dtype, zarr_format=3,
                                  compressors=None, serializer=actcodec.zarr.Actcodec("sfpr-zvc"), fill_value=1)
        with pytest.raises(TypeError, match="must be float16, float32 or float64"):
            array[:] = x


def test_numcodecs_alone():
    codec = numcodecs.get_codec({"id": "actcodec", "mode": "dpr-fp8"})
    x, out = activations(), np.empty((6, 8, 16, 16), np.float32)
    assert codec.decode(codec.encode(x), out) is out
    np.testing.assert_array_equal(out, actcodec.decompress(actcodec.compress(x, "dpr-fp8")))
    assert repr(codec) == "Actcodec('dpr-fp8')" and codec == numcodecs.get_codec(codec.get_config())
    done = doctest.testmod(actcodec.numcodecs)
    assert done.attempted and not done.failed


def by_configuration(mode, **options):
    return numcodecs.get_codec({"id": "actcodec", "mode": mode, **options})


@pytest.mark.parametrize("make", [by_configuration, actcodec.zarr.Actcodec])
def test_options_are_checked(make):
    with pytest.raises(ValueError, match="unknown mode"):
        make("gif")
    with pytest.raises(ValueError, match="cdus is 9"):
        make("sfpr", cdus=9)


@pytest.mark.parametrize("x", [np.asfortranarray(activations()), activations().astype(">f4"), activations()[::2]])
def test_what_could_come_back_wrong_is_refused(x):
    with pytest.raises(ValueError, match="must be in C order"):
        actcodec.numcodecs.Actcodec("raw").encode(x)


def test_a_damaged_chunk_is_an_error(tmp_path):
    files = arrays(tmp_path, activations(), (6, 8, 16, 16), "sfpr", {})
    for name, file in files.items():
        data = bytearray(file.read_bytes())
        data[100] ^= 1
        file.write_bytes(data)
        with pytest.raises(container.ContainerError, match="CRC-32"):
            zarr.open_array(tmp_path / name)[:]


@pytest.mark.parametrize("options", [{"error_bound": np.float32(0.25)}, {"relative_bound": 0.1, "cdus": np.int64(2)}])
def test_options_may_be_numbers_of_numpy(tmp_path, options):
    x = np.ones((4, 8, 8), np.float32)
    array = zarr.create_array(tmp_path / "a", shape=x.shape, dtype=x.dtype, zarr_format=2,
                              compressors=actcodec.numcodecs.Actcodec("comet", **options))
    array[:] = x
    assert abs(zarr.open_array(tmp_path / "a")[:] - x).max() <= 0.25
