"""The modes of Gist and A2DTWP: the golden engine writes what its models give, and the rtl engine, which simulates the
units, writes the same files and reads them as the golden one does."""

import json
import struct
import zlib

import numpy as np
import pytest

from actcodec import codecs, container, demo, engines, files
from actcodec.codecs import a2dtwp, gist
from actcodec.codecs.models.gist import Ssdc
from actcodec.golden.a2dtwp import bitpack
from actcodec.golden.gist import binarize, dpr, ssdc
from actcodec.rtl.a2dtwp.bitunpack import Bitunpack
from actcodec.rtl.gist.binarize import Binarize, Unbinarize
from actcodec.sim import streams
from tb.cli.line import run, same_by_both_engines

MODES = [mode.name for mode in (*gist.MODES, *a2dtwp.MODES)]
SHAPES = [(1, 1, 1, 1), (2, 3, 7, 13), (1, 64, 14, 14), (3, 9), (1, 256), (2, 4, 8, 8), (1, 1, 1, 8), (5, 103), (2, 7)]
SPECIAL = np.array([0x7FC00000, 0xFF800001, 0x7F800000, 0xFF800000, 1, 0x807FFFFF, 0x80000000, 0x7F7FFFFF, 0x38800000,
                    0x387FFFFF, 0x477FF000, 0x3C800000, 0xBC7FFFFF, 0x43700000], np.uint32)
"""NaNs, infinities, subnormal numbers, -0.0, and the ends of DPR's ranges."""


def awkward(shape, seed=0, density=0.5):
    """Positive and negative numbers of all sizes, zeros of either sign and special ones among them."""
    rng = np.random.default_rng(seed)
    words = np.where(rng.random(shape) < 0.5, rng.normal(size=shape).astype(np.float32).view(np.uint32),
                     rng.integers(0, 2**32, shape, np.uint32))
    words = np.where(rng.random(shape) < 0.1, rng.choice(SPECIAL, shape), words)
    zeros = rng.integers(0, 2, shape, np.uint32) << 31
    return np.where(rng.random(shape) < density, words, zeros).astype(np.uint32).view(np.float32)


def bits(x):
    assert x.dtype == np.float32
    return x.view(np.uint32)


def check_equal(x, mode):
    """Both engines write the same file, and each reads the other's as itself. Returns both cycles."""
    golden, none = engines.compress("golden", x, mode)
    simulated, there = engines.compress("rtl", x, mode)
    assert none is None
    assert container.pack(simulated) == container.pack(golden)
    expected, _ = engines.decompress("golden", simulated)
    after, back = engines.decompress("rtl", golden)
    assert after.shape == expected.shape == x.shape
    np.testing.assert_array_equal(bits(after), bits(expected))
    return there, back


# ------------------------------------------------------------------------------------------------------------- engines
def restored(x, mode):
    """What a tensor becomes, by the models of the encodings."""
    kind, _, parameter = mode.partition("-")
    flat = x.ravel()
    if kind == "binarize":
        return np.where(flat > 0, np.float32(1), np.float32(0))
    if kind == "bitpack":
        return (flat.view(np.uint32) & np.uint32(-1 << 32 - 8 * int(parameter) & 0xFFFFFFFF)).view(np.float32)
    rounded = dpr.dequantize(dpr.quantize(flat, parameter), parameter) if parameter else flat
    return np.where(bits(flat) << 1 == 0, np.float32(0), rounded) if kind == "ssdc" else rounded


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("mode", MODES)
def test_golden_engine_is_the_models(mode, shape):
    x = awkward(shape, 1)
    c, _ = engines.compress("golden", x, mode)
    kind, _, parameter = mode.partition("-")
    if kind == "ssdc":
        payload = b"".join(array.tobytes() for array in ssdc.encode(x, parameter or None))
    else:
        payload = {"binarize": lambda: binarize.forward(x), "dpr": lambda: dpr.encode(x, parameter),
                   "bitpack": lambda: bitpack.pack(x, int(parameter))}[kind]().tobytes()
    assert (c.mode, c.shape, c.options, c.payload) == (mode, shape, {"cdus": 1}, payload)
    np.testing.assert_array_equal(bits(engines.decompress("golden", c)[0].ravel()), bits(restored(x, mode)))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("mode", MODES)
def test_engines_agree(mode, shape):
    check_equal(awkward(shape, SHAPES.index(shape)), mode)


@pytest.mark.parametrize("name", ["zeros", "-zeros", "ones", "NaN", "one value", "one zero", "all special"])
@pytest.mark.parametrize("mode", MODES)
def test_engines_agree_on_uniform_tensors(mode, name):
    fill = {"zeros": 0, "-zeros": -0.0, "ones": 1, "NaN": np.nan, "one value": 0, "one zero": -2, "all special": 0}
    x = np.full((1, 3, 12, 16), fill[name], np.float32)  # two rows and a quarter
    if name == "all special":
        x = np.resize(SPECIAL, x.shape).view(np.float32)
    elif name.startswith("one "):
        x[0, 2, 7, 15] = -1 - fill[name] // 2
    check_equal(x, mode)


@pytest.mark.parametrize("mode", MODES)
def test_a_long_tensor_takes_eight_cycles_a_block(mode):
    x = demo.sample()["ReLU_layers_0_relu1"]
    for cycles in check_equal(x, mode):
        assert cycles.blocks == 1024
        assert 8 <= cycles.cycles_per_block < 8.1  # what is above 8.00 is the latency


@pytest.mark.parametrize("mode", MODES)
def test_memory_order_of_the_input_does_not_matter(mode):
    x = awkward((2, 3, 7, 13))
    for engine in engines.ENGINES:
        ordered, other = (engines.compress(engine, y, mode)[0] for y in (x, np.asfortranarray(x)))
        assert container.pack(other) == container.pack(ordered)


def test_engines_refuse_what_is_no_tensor_of_theirs():
    x = np.ones((2, 3), np.float32)
    for engine in engines.ENGINES:
        with pytest.raises(TypeError, match="int64"):
            engines.compress(engine, x.astype(np.int64), "ssdc")
        with pytest.raises(ValueError, match="empty"):
            engines.compress(engine, x[:0], "binarize")
        with pytest.raises(ValueError, match="cdus is 2, must be 1"):
            engines.compress(engine, x, "dpr-fp8", cdus=2)


@pytest.mark.parametrize(("mode", "name"), [
    ("dpr-fp10", None), ("bitpack-2", None), ("ssdc", "values"), ("ssdc-fp8", "values"), ("ssdc-fp8", "columns"),
    ("ssdc", "counts"),
])
def test_an_error_that_a_unit_reports_is_told(monkeypatch, mode, name):
    """Of an array that ends early; no file gets that far."""
    c, _ = engines.compress("golden", awkward((2, 3, 7, 13)), mode)
    if name:
        arrays = codecs.find(c.mode).model.arrays(c)
        short = arrays | {name: arrays[name][:-4]}
        monkeypatch.setattr(Ssdc, "arrays", lambda self, compressed: short)
    else:
        object.__setattr__(c, "payload", c.payload[:-4])
    with pytest.raises(files.UserError, match="reports error"):
        engines.decompress("rtl", c)


# -------------------------------------------------------------------------------------------------------- command line
@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", awkward((2, 3, 7, 13), 2))
    return tmp_path


@pytest.mark.parametrize("mode", MODES)
def test_commands_give_the_same_files_with_both_engines(folder, mode):
    same_by_both_engines(folder, mode)
    assert np.load("rtl.npy").shape == (2, 3, 7, 13)


@pytest.mark.parametrize("mode", MODES)
def test_info_counts_every_byte(folder, mode):
    run(f"compress x.npy x.act --mode {mode}")
    facts = json.loads(run("info x.act --json"))
    size = (folder / "x.act").stat().st_size
    side = 16 + 4 * 4 + 4 + (8 if mode.startswith("ssdc") else 0)
    assert facts == {"mode": mode, "cdus": 1, "shape": [2, 3, 7, 13], "dtype": "float32",
                     "payload_bytes": size - side, "side_bytes": side,
                     "ratio": 4 * 546 / (size - side), "ratio_with_side": 4 * 546 / size}
    assert mode in run("info x.act")


def test_help_names_every_mode():
    text = run("compress --help")
    assert all(f" {mode} " in text.replace(",", " ") for mode in codecs.MODES)


@pytest.mark.parametrize("mode", MODES)
def test_more_cdus_than_one_are_an_error(folder, mode):
    run(f"compress x.npy x.act --mode {mode} --cdus 1")
    error = run(f"compress x.npy y.act --mode {mode} --cdus 2", 2)
    assert error == f"actcodec: error: --cdus is 2, must be 1, for mode {mode}\n"
    assert not (folder / "y.act").exists()


def test_an_unknown_mode_is_an_error_that_names_all(folder):
    error = run("compress x.npy y.act --mode bitpack-4", 2)
    assert error.count("\n") == 1
    assert all(f"'{mode}'" in error for mode in codecs.MODES)


@pytest.mark.parametrize("verb", ["decompress bad.act y.npy", "decompress bad.act y.npy --engine rtl", "info bad.act"])
@pytest.mark.parametrize(("mode", "at", "byte", "what"), [
    ("ssdc-fp8", -2, 35, "row 2 counts 35 values and has room for 34"), ("ssdc-fp8", -2, 0, "the row counts ask for"),
    ("ssdc", -7, 34, "columns do not ascend, or lie beyond"), ("ssdc-fp10", -7, 0, "columns do not ascend"),
    ("ssdc-fp16", 32, 1, "payload has"), ("dpr-fp10", 8, 255, "ends within its payload"),
    ("bitpack-2", 16, 3, "payload has"), ("binarize", 28, 14, "payload has"), ("dpr-fp8", 6, 2, "2 CDUs"),
])
def test_a_wrong_file_with_a_right_crc_is_one_line(folder, verb, mode, at, byte, what):
    run(f"compress x.npy x.act --mode {mode}")
    data = bytearray((folder / "x.act").read_bytes()[:-4])
    data[at] = byte
    (folder / "bad.act").write_bytes(data + struct.pack("<I", zlib.crc32(data)))
    error = run(verb, 2)
    assert error.startswith("actcodec: error: bad.act: ") and error.count("\n") == 1
    assert what in error
    assert not (folder / "y.npy").exists()


# --------------------------------------------------------------------------------------------------------- simulation
def test_a_unit_that_leaves_input_is_an_error():
    words = np.zeros((3, 9), np.uint32)
    words[2, 8] = 1
    with pytest.raises(streams.SimulationError, match="Binarize does not take its input"):
        streams.run(Binarize, {"i": words}, {"o": 1})


def test_a_unit_that_gives_nothing_is_an_error():
    with pytest.raises(streams.SimulationError, match="Unbinarize gives nothing"):
        streams.run(Unbinarize, {"i": np.zeros((0, 1), np.uint32)}, {"o": 1})


def test_results_are_those_at_the_end():
    """Two beats, the second of which has more than the eight values asked for."""
    beats = np.zeros((2, 9), np.uint32)
    beats[:, 8] = 32, 32 | 1 << 6
    done = streams.run(Bitunpack, {"length": np.array([[8]], np.uint32), "i": beats}, {"o": 2}, width=3)
    assert done.results == {"error": 2}
    assert len(done.beats["o"]) == 1
    assert (done.latency, done.cycles) == (2, 3)
