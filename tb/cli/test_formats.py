"""Tensors of 16 bits: both engines, the driver, and what they refuse."""

import zlib
from dataclasses import replace

import numpy as np
import pytest

import actcodec
from actcodec import codecs, container, driver, engines
from actcodec.codecs import compressed as files
from actcodec.golden.jpegact import sfpr
from actcodec.golden.offload.memory import formats
from actcodec.tensors import restore, words
from tb.cli.test_driver import Accelerator, opened
from tb.harness import regress
from tb.soak.chance import SMALL

SHAPES = [(1, 1, 8, 8), (2, 3, 7, 13), (3, 9), (1, 5, 14, 14)]
MODES = [mode for mode in codecs.MODES.values() if "rtl" in mode.engines]


def tensor(shape, form, seed=0):
    """Of a network, with words of any bits among them."""
    random = np.random.default_rng(seed)
    x = formats.narrow(np.maximum(random.normal(size=shape), -0.3).astype(np.float32), form)
    some = random.random(shape) < 0.05
    x[some] = random.integers(0, 1 << 16, some.sum(), np.uint16)
    return restore(x, shape, form)


@pytest.mark.usefixtures("small_lane")
@pytest.mark.parametrize("form", formats.HALVES)
@pytest.mark.parametrize("mode", [name for name in codecs.MODES if name in SMALL]
                         + regress(*(mode.name for mode in MODES if mode.name not in SMALL)))
def test_engines_agree(mode, form):
    for seed, shape in enumerate(SHAPES):
        x = tensor(shape, form, seed)
        golden, _ = engines.compress("golden", x, mode, cdus=2)
        simulated, _ = engines.compress("rtl", x, mode, cdus=2)
        assert container.pack(simulated) == container.pack(golden)
        expected, _ = engines.decompress("golden", golden)
        y, _ = engines.decompress("rtl", golden)
        assert (y.dtype, y.shape) == (x.dtype, shape)
        np.testing.assert_array_equal(words(y), words(expected))
        if mode in ("raw", "zvc"):
            np.testing.assert_array_equal(words(y), words(x))


def test_files_of_earlier_versions_have_words_of_float32():
    """Of a tensor of 16 bits in a mode that moves words: hardware, too, gives it as it was."""
    x = tensor((2, 3, 7, 13), "float16")
    whole, _ = engines.compress("golden", formats.widen(words(x), "float16"), "zvc")
    old = replace(whole, dtype="float16", wide=True)
    expected = words(engines.decompress("golden", old)[0])
    np.testing.assert_array_equal(words(engines.decompress("rtl", old)[0]), expected)


def test_the_driver_knows_what_is_built_in():
    """Of a device with float16 beside float32."""
    device = Accelerator(formats=0b10)
    host = opened(device)
    assert host.formats == ("float32", "float16")
    with pytest.raises(ValueError, match="dtype bfloat16 was not built in, there are float32, float16"):
        driver.run(host.compress(0x1000, (8, 8), "raw", dtype="bfloat16"))
    with pytest.raises(ValueError, match="dtype float64 was not built in"):
        driver.run(host.decompress(0x1000, (8, 8), "raw", dtype="float64"))
    with pytest.raises(ValueError, match="BASE is 4097, must be a multiple of 4"):
        driver.run(host.compress(0x1001, (8, 8), "raw", dtype="float16"))
    with pytest.raises(ValueError, match="BASE is 4098, must be"):
        driver.run(host.compress(0x1002, (8, 8), "raw"))
    with pytest.raises(ValueError, match="STRIDE is 14, must be"):
        driver.run(host.compress(0x1002, (8, 8), "raw", dtype="float16", stride=14))


def test_the_driver_reads_values_of_2_bytes_for_scales():
    device = Accelerator(formats=0b11)
    device.compress = lambda: None
    host = opened(device)
    x = tensor((2, 3, 8, 8), "bfloat16", 1)
    device.memory[0x1002 : 0x1002 + x.nbytes] = words(x).tobytes()
    result = driver.run(host.compress(0x1002, x.shape, "sfpr", dtype="bfloat16", scale_table=0x20000))
    np.testing.assert_array_equal(result.scales, sfpr.scales(formats.widen(words(x), "bfloat16")).k)
    assert [device.values[name] for name in ("format", "stride", "base")] == [1, 16, 0x1002]
    assert device.reads[-1] == (0x1002, x.nbytes)


def test_a_file_of_hardware_is_one_of_golden_with_its_type():
    assert set(formats.HALVES) < set(files.DTYPES)
    for form in formats.HALVES:
        x = tensor((8, 8), form)
        assert actcodec.compress(x, "raw").ratio == 1 and actcodec.compress(x, "sfpr").ratio == 2


# ----------------------------------------------------------------------------------------------------------- codes
CODED = [mode for mode in MODES if mode.codes]


def coded(shape, seed=0):
    """SFPR's codes of a tensor of a network, with any among them."""
    random = np.random.default_rng(seed)
    x = np.maximum(random.normal(size=shape), -0.3).astype(np.float32)
    any_ = random.integers(-128, 128, shape, np.int8)
    return np.where(random.random(shape) < 0.05, any_, sfpr.quantize(x, 30))


def test_sfpr_and_its_codes_give_the_same_payload():
    """What SFPR is passed by, it would have made: of any float32 tensor, behind it, and in front of it again."""
    x = np.random.default_rng(3).normal(size=(2, 3, 8, 16)).astype(np.float32)
    scales = sfpr.scales(x)
    codes = sfpr.quantize(x, scales.k)
    assert [mode.name for mode in CODED] == ["sfpr", "sfpr-zvc", "jpeg-act", "jpeg-base"]
    for mode in CODED:
        whole, behind = actcodec.compress(x, mode.name), actcodec.compress(codes, mode.name)
        assert behind.payload == whole.payload and len(whole.side) - len(behind.side) == 2 * len(scales.k)
        again = actcodec.decompress(container.unpack(container.pack(behind)))
        assert again.dtype == np.int8
        np.testing.assert_array_equal(actcodec.decompress(whole), sfpr.dequantize(again, scales.r))
        if not mode.tiled:
            np.testing.assert_array_equal(again, codes)


@pytest.mark.usefixtures("small_lane")
@pytest.mark.parametrize("mode", [mode.name for mode in CODED if mode.name in SMALL]
                         + regress(*(mode.name for mode in CODED if mode.name not in SMALL)))
def test_engines_agree_on_codes(mode):
    for seed, shape in enumerate(SHAPES):
        x = coded(shape, seed)
        golden, _ = engines.compress("golden", x, mode, cdus=2)
        simulated, _ = engines.compress("rtl", x, mode, cdus=2)
        assert container.pack(simulated) == container.pack(golden)
        expected, _ = engines.decompress("golden", golden)
        y, _ = engines.decompress("rtl", golden)
        assert (y.dtype, y.shape) == (np.int8, shape)
        np.testing.assert_array_equal(y, expected)


def test_codes_are_refused_where_nothing_begins_with_sfpr():
    x = coded((2, 3, 8, 8))
    for mode in set(codecs.MODES.values()) - set(CODED):
        with pytest.raises(ValueError, match=f"mode {mode.name} takes no int8: these are codes of SFPR"):
            actcodec.compress(x, mode.name)
    for option, value in (("signs", True), ("scaling", "tensor"), ("clip", 2.0)):
        with pytest.raises(ValueError, match=f"{option} is {value}, which is for SFPR: int8 values bypass it"):
            actcodec.compress(x, "sfpr-zvc", **{option: value})
    good = container.pack(actcodec.compress(x, "sfpr-zvc"))
    with pytest.raises(ValueError, match="mode zvc takes no int8"):
        files.Compressed("zvc", x.shape, b"", {}, dtype="int8")
    bad = bytearray(good[:-4])
    bad[5] = codecs.find("zvc").code
    with pytest.raises(container.ContainerError, match="invalid header: mode 5, type 6, 4 dimensions"):
        container.unpack(bytes(bad) + zlib.crc32(bytes(bad)).to_bytes(4, "little"))


def test_the_driver_has_no_table_of_scales_for_codes():
    device = Accelerator(formats=0b111)
    device.compress = lambda: None
    host = opened(device)
    assert host.formats == ("float32", "bfloat16", "float16", "int8")
    x = coded((2, 3, 8, 8))
    device.memory[0x1003 : 0x1003 + x.size] = x.tobytes()
    result = driver.run(host.compress(0x1003, x.shape, "sfpr-zvc", dtype="int8"))
    assert result.scales is None and "scales" not in result.settings
    assert [device.values[name] for name in ("format", "stride", "base")] == [3, 8, 0x1003]
    with pytest.raises(ValueError, match="format is int8, must be int8 only in modes that begin with SFPR"):
        driver.run(host.compress(0x1003, x.shape, "raw", dtype="int8"))
    with pytest.raises(ValueError, match="STRIDE is 7, must be"):
        driver.run(host.compress(0x1003, x.shape, "sfpr-zvc", dtype="int8", stride=7))
