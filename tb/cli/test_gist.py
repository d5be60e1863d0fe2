"""The modes of Gist and A2DTWP: the golden engine writes what its models give, and the rtl engine writes the same files
and reads them as the golden one does. SSDC has no lane."""

import json
import struct
import zlib

import numpy as np
import pytest

from actcodec import codecs, container, demo, engines, files
from actcodec.codecs import a2dtwp, gist
from actcodec.golden.a2dtwp import bitpack
from actcodec.golden.gist import dpr, ssdc
from tb.cli.line import run, same_by_both_engines

MODES = [mode.name for mode in (*gist.MODES, *a2dtwp.MODES)]
LANE = [mode.name for mode in (*gist.MODES, *a2dtwp.MODES) if mode.format]
SSDC = [name for name in MODES if name not in LANE]
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


def check_equal(x, mode, cdus=1):
    """Both engines write the same file, and each reads the other's as itself. Returns both cycles."""
    golden, none = engines.compress("golden", x, mode, cdus=cdus)
    simulated, there = engines.compress("rtl", x, mode, cdus=cdus)
    assert none is None
    assert container.pack(simulated) == container.pack(golden)
    expected, _ = engines.decompress("golden", simulated)
    after, back = engines.decompress("rtl", golden)
    assert after.shape == expected.shape == x.shape
    np.testing.assert_array_equal(bits(after), bits(expected))
    return there, back


# ------------------------------------------------------------------------------------------------------------- engines
def golden_values(x, mode):
    """What a tensor becomes, by the models of the encodings."""
    kind, _, parameter = mode.partition("-")
    flat = x.ravel()
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
        payload = (dpr.encode(x, parameter) if kind == "dpr" else bitpack.pack(x, int(parameter))).tobytes()
    assert (c.mode, c.shape, c.options, c.payload) == (mode, shape, {"cdus": 1}, payload)
    np.testing.assert_array_equal(bits(engines.decompress("golden", c)[0].ravel()), bits(golden_values(x, mode)))


@pytest.mark.parametrize("mode", LANE)
def test_a_file_does_not_depend_on_the_cdus(mode):
    """But for their number, which it tells; and what passes the stream is blocks in the collector's order."""
    for shape in SHAPES:
        x = awkward(shape, 1)
        one, three = (engines.compress("golden", x, mode, cdus=cdus)[0] for cdus in (1, 3))
        assert one.payload == three.payload and one.side == three.side and three.cdus == 3
        model = codecs.find(mode).model
        lane = model.unpack(three.seen)
        assert len(lane.payload) == lane.blocks * lane.mode.format.longest
        assert model.pack(lane).payload == three.payload
        words, settings = model.fit(x)
        rows = x.reshape(lane.view.rows, lane.view.width)
        assert (words, settings) == (None, {}) and model.encode(rows, lane.view, None, {}, 3)[0] == lane.payload
        np.testing.assert_array_equal(bits(model.decode(lane.payload, lane.view, None, {}, 3).ravel()),
                                      bits(golden_values(x, mode)))


@pytest.mark.parametrize("mode", [name for name in LANE if name.startswith("dpr")])
def test_codes_that_no_encoder_writes_pass_a_lane(mode):
    """Subnormal numbers, infinities and NaNs of all kinds, in files of others."""
    form = mode.partition("-")[2]
    codes = np.arange(1 << dpr.named(form).width, dtype=np.uint16)
    c, _ = engines.compress("golden", np.zeros((4, codes.size // 4), np.float32), mode, cdus=4)
    object.__setattr__(c, "payload", dpr.join(codes, form).tobytes())
    for engine in engines.ENGINES:
        np.testing.assert_array_equal(bits(engines.decompress(engine, c)[0].ravel()), bits(dpr.dequantize(codes, form)))


def test_a_flat_tensor_that_no_lane_can_see_is_told():
    """A row is at most 2^24 - 8 values, and other rows would have padding; golden has no such limit."""
    x = np.zeros((1, 2**24 + 1), np.float32)
    c, _ = engines.compress("golden", x, "bitpack-1")
    assert not engines.decompress("golden", c)[0].any()
    for call in (lambda: engines.compress("rtl", x, "bitpack-1"), lambda: engines.decompress("rtl", c)):
        with pytest.raises(ValueError, match="has 16777217 values, in a lane legal are multiples of 8, and up to"):
            call()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("mode", LANE)
def test_engines_agree(mode, shape):
    check_equal(awkward(shape, SHAPES.index(shape)), mode, (1, 4)[SHAPES.index(shape) % 2])


@pytest.mark.parametrize("name", ["zeros", "-zeros", "ones", "NaN", "one value", "one zero", "all special"])
@pytest.mark.parametrize("mode", LANE)
def test_engines_agree_on_uniform_tensors(mode, name):
    fill = {"zeros": 0, "-zeros": -0.0, "ones": 1, "NaN": np.nan, "one value": 0, "one zero": -2, "all special": 0}
    x = np.full((1, 3, 12, 16), fill[name], np.float32)  # two rows and a quarter
    if name == "all special":
        x = np.resize(SPECIAL, x.shape).view(np.float32)
    elif name.startswith("one "):
        x[0, 2, 7, 15] = -1 - fill[name] // 2
    check_equal(x, mode)


@pytest.mark.parametrize("mode", LANE)
def test_a_long_tensor_takes_eight_cycles_a_block(mode):
    x = demo.sample()["ReLU_layers_0_relu1"]
    for cycles in check_equal(x, mode):
        assert cycles.blocks == 1024
        assert 8 <= cycles.cycles_per_block < 8.21  # what is above 8.00 is the latency


@pytest.mark.parametrize("mode", SSDC)
def test_ssdc_has_no_lane(mode):
    x = awkward((2, 3))
    c, _ = engines.compress("golden", x, mode)
    for call in (lambda: engines.compress("rtl", x, mode), lambda: engines.decompress("rtl", c)):
        with pytest.raises(files.UserError, match=f"mode {mode} has no hardware; use the golden engine"):
            call()


def test_binarize_is_brc():
    x = awkward((2, 3, 7, 13), 2)
    c, _ = engines.compress("golden", x, "binarize")
    assert (c.mode, c.payload) == ("brc", engines.compress("golden", x, "brc")[0].payload)
    assert codecs.find("binarize") is codecs.find("brc") is codecs.by_code(6)[0] is codecs.by_code(4)[0]
    assert codecs.lane_modes("binarize", "brc") == codecs.lane_modes("brc")
    assert "binarize" not in codecs.MODES
    assert sum(mode.name == "brc" for mode in codecs.lane_modes()) == 1


def binarized(shape, payload, cdus=1, kind=0):
    """A file of before, when Binarize was mode 6."""
    data = struct.pack("<4sBBBBQ", b"\x89ACT", 1, 6, cdus, kind << 4 | len(shape), len(payload))
    data += struct.pack(f"<{len(shape)}I", *shape) + payload
    return data + struct.pack("<I", zlib.crc32(data))


@pytest.mark.parametrize("kind, dtype", [(0, "float32"), (1, "float16")])
@pytest.mark.parametrize("shape", [*SHAPES, (70,), (2, 3, 2, 5, 9)], ids=str)
def test_files_of_binarize_stay_readable(shape, kind, dtype):
    x = awkward(shape, 3)
    c = container.unpack(binarized(shape, np.packbits(x.ravel() > 0, bitorder="little").tobytes(), kind=kind))
    assert (c.mode, c.shape, c.dtype) == ("brc", shape, dtype)
    assert container.unpack(container.pack(c)).payload == c.payload == engines.compress("golden", x, "brc")[0].payload
    after, _ = engines.decompress("golden", c)
    assert after.dtype == dtype
    np.testing.assert_array_equal(after, (x > 0).astype(dtype))


@pytest.mark.parametrize("arguments, what", [
    (((3, 9), bytes(3)), "3 bytes, 27 values need 4"), (((3, 9), bytes(5)), "5 bytes"),
    (((1 << 20, 1 << 20, 9), b"\1"), "mask has 1 bytes"), (((3, 9), bytes(4), 2), "2 CDUs in mode brc")], ids=str)
def test_wrong_files_of_binarize_are_refused(arguments, what):
    with pytest.raises(container.ContainerError, match=what):
        container.unpack(binarized(*arguments))


@pytest.mark.parametrize("mode", MODES)
def test_memory_order_of_the_input_does_not_matter(mode):
    x = awkward((2, 3, 7, 13))
    for engine in codecs.find(mode).engines:
        ordered, other = (engines.compress(engine, y, mode)[0] for y in (x, np.asfortranarray(x)))
        assert container.pack(other) == container.pack(ordered)


def test_engines_refuse_what_is_no_tensor_of_theirs():
    x = np.ones((2, 3), np.float32)
    for engine in engines.ENGINES:
        with pytest.raises(TypeError, match="int64"):
            engines.compress(engine, x.astype(np.int64), "dpr-fp16")
        with pytest.raises(ValueError, match="empty"):
            engines.compress(engine, x[:0], "bitpack-1")
        with pytest.raises(ValueError, match="cdus is 9, must be 1 to 8"):
            engines.compress(engine, x, "dpr-fp8", cdus=9)


# -------------------------------------------------------------------------------------------------------- command line
@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", awkward((2, 3, 7, 13), 2))
    return tmp_path


@pytest.mark.parametrize("mode", LANE)
def test_commands_give_the_same_files_with_both_engines(folder, mode):
    same_by_both_engines(folder, mode, "--cdus 4")
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


@pytest.mark.parametrize("mode", SSDC)
def test_more_cdus_than_one_are_an_error(folder, mode):
    run(f"compress x.npy x.act --mode {mode} --cdus 1")
    error = run(f"compress x.npy y.act --mode {mode} --cdus 2", 2)
    assert error == f"actcodec: error: --cdus is 2, must be 1, for mode {mode}\n"
    assert not (folder / "y.act").exists()


def test_an_unknown_mode_is_an_error_that_names_all(folder):
    error = run("compress x.npy y.act --mode bitpack-4", 2)
    assert error.count("\n") == 1
    assert "did you mean bitpack-3?" in error
    assert set(error.rstrip().partition("there are ")[2].split(", ")) >= set(codecs.MODES)


@pytest.mark.parametrize("verb", ["decompress bad.act y.npy", "decompress bad.act y.npy --engine rtl", "info bad.act"])
@pytest.mark.parametrize(("mode", "at", "byte", "what"), [
    ("ssdc-fp8", -2, 35, "row 2 counts 35 values and has room for 34"), ("ssdc-fp8", -2, 0, "the row counts ask for"),
    ("ssdc", -7, 34, "columns do not ascend, or lie beyond"), ("ssdc-fp10", -7, 0, "columns do not ascend"),
    ("ssdc-fp16", 32, 1, "payload has"), ("dpr-fp10", 8, 255, "ends within its payload"),
    ("bitpack-2", 16, 3, "payload has"), ("dpr-fp8", 6, 9, "9 CDUs"), ("ssdc", 6, 2, "2 CDUs"),
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
