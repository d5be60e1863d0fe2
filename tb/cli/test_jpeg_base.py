"""Mode jpeg-base and the command jpeg: files, tensors and pictures are golden's; wrong files are refused."""

import io
import json
import struct

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

import actcodec
from actcodec import cli, container
from actcodec.codecs.compressed import Compressed
from actcodec.golden.jpegact import div, jpeg, rle
from tb import reference
from tb.cli.line import run
from tb.cli.test_container import sealed
from tb.judges import libjpeg

SHAPES = {(2, 3, 16, 13): (2, 3, 16, 13), (1, 1, 8, 8): (1, 1, 8, 8), (2, 5, 70): (2, 5, 1, 70),
          (2, 3, 2, 5, 9): (2, 3, 10, 9)}
"""Shapes, and what a model sees of them."""
SIDE = 16 + 4 * 4  # where the table begins in a file of four dimensions


def tensor(shape, seed=0):
    return np.random.default_rng(seed).normal(1, 2, shape).astype(np.float32)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", tensor((2, 3, 16, 13)))
    (tmp_path / "mine.txt").write_text(" ".join(map(str, range(1, 65))))
    return tmp_path


def words(k):
    return (k.view(np.uint32) >> 16).astype("<u2").tobytes()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", div.TABLES)
@pytest.mark.parametrize("cdus", [1, 3])
def test_files_and_tensors_are_goldens(shape, name, cdus):
    x, dqt = tensor(shape), div.table(name)
    seen = x.reshape(SHAPES[shape])
    encoded = reference.compress(seen, reference.BASE, dqt, cdus)
    c = actcodec.compress(x, "jpeg-base", dqt=name, cdus=cdus)
    assert (c.payload, c.options) == (encoded.payload, {"dqt": name, "cdus": cdus})
    assert container.pack(c) == sealed(
        b"\x89ACT" + bytes([1, 20, cdus, len(shape)]) + len(c.payload).to_bytes(8, "little")
        + struct.pack(f"<{len(shape)}I", *shape) + bytes([len(name)]) + name.encode() + bytes(dqt.ravel().tolist())
        + words(encoded.scales) + c.payload)
    expected = reference.decompress(encoded)
    np.testing.assert_array_equal(actcodec.decompress(container.unpack(container.pack(c))), expected.reshape(shape))


@pytest.mark.parametrize("shape", [(3, 50), (700,), (2, 3, 7, 7), (1, 1, 7, 9)], ids=str)
def test_a_tensor_without_tiles_is_sfprs(folder, shape):
    x = tensor(shape)
    c = actcodec.compress(x, "jpeg-base", cdus=2)
    assert container.pack(c) == container.pack(actcodec.compress(x, "sfpr", cdus=2))
    np.save("small.npy", x)
    result = CliRunner().invoke(cli.main, ["compress", "small.npy", "y.act", "--mode", "jpeg-base"])
    assert "has no 8x8 tiles, so jpeg-base fell back to sfpr" in result.stderr


def test_command_line_is_the_api(folder):
    x = np.load("x.npy")
    for line, dqt in (("", "jpeg80"), ("--dqt optH-div --cdus 1", "optH-div"), ("--dqt optL", "optL")):
        text = run(f"compress x.npy x.act --mode jpeg-base {line}")
        assert f"jpeg-base {dqt}, ratio" in text
        expected = actcodec.compress(x, "jpeg-base", dqt=dqt)
        assert (folder / "x.act").read_bytes() == container.pack(expected)
        run("decompress x.act y.npy")
        np.testing.assert_array_equal(np.load("y.npy"), actcodec.decompress(expected))
    run("compress x.npy x.act --mode jpeg-base --dqt mine.txt")
    c = container.read("x.act")
    assert c.payload == actcodec.compress(x, "jpeg-base", dqt=np.arange(1, 65)).payload
    assert c.options["dqt"] == "mine.txt" and c.options["dqt"].table.ravel().tolist() == list(range(1, 65))


def test_info_and_evaluate(folder):
    run("compress x.npy x.act --mode jpeg-base --cdus 2")
    facts = json.loads(run("info x.act --json"))
    assert (facts["mode"], facts["dqt"], facts["cdus"]) == ("jpeg-base", "jpeg80", 2)
    assert facts["side_bytes"] == SIDE + 1 + len("jpeg80") + 64 + 2 * 3 + 4
    rows = json.loads(run("evaluate x.npy --mode jpeg-base --mode jpeg-act --dqt jpeg60 --dqt mine.txt --json"))
    assert [row["label"] for row in rows] == [
        f"{mode} {dqt}" for mode in ("jpeg-base", "jpeg-act") for dqt in ("jpeg60", "mine.txt")]
    expected = actcodec.evaluate(np.load("x.npy"), "jpeg-base", dqt="jpeg60")
    assert (rows[0]["ratio"], rows[0]["relative_error"]) == (expected.ratio, expected.relative_error)
    assert rows[0]["options"] == {"dqt": "jpeg60", "cdus": 1, "scaling": "channel", "cap": None,
                                  "clip": 1.125}
    assert rows[0]["ratio"] > rows[2]["ratio"]  # JPEG's codes against ZVC


def test_help_says_what_tables_there_are():
    text = " ".join(run("compress --help").split())
    assert "--dqt optL|optH|jpeg80|jpeg60|optL-div|optH-div|FILE" in text
    assert "each taken to the nearest power of two up to 128. Modes: jpeg-act." in text
    assert "64 whole numbers, 1 to 255. Modes: jpeg-base. [default: optL or jpeg80]" in text


@pytest.mark.parametrize("dqt, what", [
    ("optM", "unknown DQT 'optM', legal are optL"), (np.zeros(64), "1 to 255"), (np.full(64, 256), "1 to 255"),
    (np.full(64, 1.5), "whole number"), (np.ones(63), "63 values"), (np.full(64, np.nan), "1 to 255")], ids=str)
def test_wrong_tables_are_refused(dqt, what):
    with pytest.raises(ValueError, match=what):
        actcodec.compress(tensor((1, 1, 8, 8)), "jpeg-base", dqt=dqt)


@pytest.mark.parametrize("line", ["compress x.npy out --mode jpeg-base --dqt", "jpeg x.npy out --dqt"])
@pytest.mark.parametrize("text, what", [
    ("256 " * 64, "DQT has a value that is not a whole number, 1 to 255"), ("1.5 " * 64, "not a whole number"),
    ("8 " * 63, "63 numbers"), ("eight " * 64, "not a DQT"), (None, "unknown DQT 't.txt': not one of optL")])
def test_wrong_table_files_are_one_line(folder, line, text, what):
    if text:
        (folder / "t.txt").write_text(text)
    error = run(f"{line} t.txt", 2)
    assert what in error and error.count("\n") == 1
    assert not (folder / "out").exists()


def test_the_tables_of_division_are_not_jpeg_acts(folder):
    assert "unknown DQT 'optH-div'" in run("compress x.npy out --mode jpeg-act --dqt optH-div", 2)


@pytest.mark.parametrize("at, value, what", [
    (SIDE + 7, 0, "1 to 255"), (SIDE + 7 + 63, 0, "1 to 255"), (SIDE + 1, 0xFF, "invalid"), (SIDE, 255, "invalid"),
    (SIDE + 7 + 64 + 1, 0xC1, "a scale is not"), (SIDE + 7 + 64 + 1, 0x7F, "a scale is not"), (6, 9, "9 CDUs"),
    (28, 7, "is too small for mode jpeg-base"), (20, 200, "ends within its payload"), (8, 0, "more than its"),
])
def test_a_wrong_field_in_a_file_is_refused(folder, at, value, what):
    run("compress x.npy x.act --mode jpeg-base")
    data = bytearray((folder / "x.act").read_bytes()[:-4])
    data[at] = value
    if value == 7:
        data[24] = 16  # H; W is 7
    (folder / "bad.act").write_bytes(sealed(bytes(data)))
    for command in ("decompress bad.act y.npy", "info bad.act"):
        error = run(command, 2)
        assert what in error and error.count("\n") == 1, error
    assert not (folder / "y.npy").exists()


def test_damaged_blocks_are_told(folder):
    c = actcodec.compress(tensor((2, 3, 16, 13)), "jpeg-base")
    damaged = bytearray(c.payload)
    damaged[1:1 + damaged[0]] = b"\xff" * damaged[0]
    for payload, what in ((bytes(damaged), "block 0 is damaged: a code that is in no table"),
                          (c.payload[:-1], "do not add up"), (c.payload + b"\1\x2b", "do not add up")):
        wrong = Compressed(c.mode, c.shape, payload, c.options, c.side)
        with pytest.raises(ValueError, match=what):
            actcodec.decompress(wrong)
        actcodec.save("bad.act", wrong)
        error = run("decompress bad.act y.npy", 2)
        assert f"invalid payload: {what}" in error.replace("the lengths of 24 blocks ", "") and error.count("\n") == 1
    for payload in (b"", bytes(24), c.payload * 40):
        with pytest.raises(ValueError, match="cannot hold 24 blocks"):
            Compressed(c.mode, c.shape, payload, c.options, c.side).check()
    assert rle.salvage(bytes(damaged), 24).errors.tolist() == [1] + [0] * 23


# The command jpeg

@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dqt", ["jpeg80", "optL-div", "mine.txt"])
def test_a_picture_has_the_coefficients_of_the_mode(folder, shape, dqt):
    """As libjpeg reads them; Pillow opens it."""
    x = tensor(shape)
    np.save("t.npy", x)
    text = run(f"jpeg t.npy t.jpg --dqt {dqt}")
    data = (folder / "t.jpg").read_bytes()
    assert f", {dqt}, {len(data)} bytes, ratio {x.nbytes / len(data):.2f}" in text
    table = np.arange(1, 65).reshape(8, 8) if dqt == "mine.txt" else div.table(dqt)
    q, read = libjpeg.read(data)
    np.testing.assert_array_equal(read, table)
    seen = x.reshape(SHAPES[shape])
    np.testing.assert_array_equal(q.reshape(-1, 8, 8), jpeg.quantized(seen, table))
    payload = np.frombuffer(actcodec.compress(x, "jpeg-base", dqt=table).payload, np.uint8)
    np.testing.assert_array_equal(q.reshape(-1, 64), rle.decode(payload, q.size // 64))
    with Image.open("t.jpg") as picture:
        rows, width = x.size // seen.shape[3], seen.shape[3]
        assert (picture.format, picture.mode) == ("JPEG", "L")
        assert picture.size == (-(-width // 8) * 8, -(-rows // 8) * 8)
        picture.load()


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_pictures_of_other_types_are_those_of_float32(folder, dtype):
    x = tensor((2, 3, 16, 13)).astype(dtype)
    np.save("t.npy", x)
    run("jpeg t.npy t.jpg -q")
    assert (folder / "t.jpg").read_bytes() == jpeg.files(x.astype(np.float32))[0]


def test_a_picture_to_the_standard_output(folder):
    result = CliRunner().invoke(cli.main, ["jpeg", "x.npy", "-"])
    assert result.exit_code == 0 and "standard output: 2x3x16x13, jpeg80" in result.stderr
    with Image.open(io.BytesIO(result.stdout_bytes)) as picture:
        assert picture.size == (16, 96)


def test_a_tall_tensor_is_several_pictures(folder, monkeypatch):
    monkeypatch.setattr(jpeg, "LIMIT", 40)
    assert "t.jpg: 2x3x16x13, jpeg80" in (text := run("jpeg x.npy t.jpg")) and "and 2 more" in text
    sizes = []
    for name in ("t.jpg", "t-1.jpg", "t-2.jpg"):
        with Image.open(name) as picture:
            sizes.append(picture.size)
    assert sizes == [(16, 40), (16, 40), (16, 16)]
    before = sorted(path.name for path in folder.iterdir())
    assert "3 pictures do not fit on the standard output" in run("jpeg x.npy -", 2)
    (folder / "u-2.jpg").mkdir()
    assert "u-2.jpg: is a directory" in run("jpeg x.npy u.jpg", 2)
    (folder / "u-2.jpg").rmdir()
    assert sorted(path.name for path in folder.iterdir()) == before


@pytest.mark.parametrize("line, what", [
    ("jpeg f.npy t.jpg", "f.npy: shape (3, 50) has no tiles"), ("jpeg none.npy t.jpg", "none.npy: No such file"),
    ("jpeg x.npy", "OUT.jpg"), ("jpeg x.npy no/t.jpg", "no: no such directory"), ("jpeg x.npy x.npy", "same file"),
    ("jpeg x.npy t.jpg --dqt optM", "unknown DQT 'optM'"), ("jpeg wide.npy t.jpg", "65504 wide"),
    ("jpeg int.npy t.jpg", "dtype is int64"),
])
def test_errors_of_jpeg_are_one_line(folder, line, what):
    np.save("f.npy", tensor((3, 50)))
    np.save("wide.npy", np.zeros((1, 1, 8, 65497), np.float32))
    np.save("int.npy", np.ones((1, 1, 8, 8), int))
    error = run(line, 2)
    assert what in error and error.count("\n") == 1, error
    assert not (folder / "t.jpg").exists()
