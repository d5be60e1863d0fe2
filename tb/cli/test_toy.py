"""A codec that nothing but this file knows, the bytes of every value reversed: registered, it is a mode like any
other."""

import json
import re

import numpy as np
import pytest
from click.testing import CliRunner

import actcodec
from actcodec import cli, codecs, container
from actcodec.codecs.compressed import Compressed

TOY = codecs.Mode(
    "toy", 60, golden="tb.cli.test_toy", summary="bytes of every value reversed", tensors="toys",
    source="this bench, section 1", options=(
        codecs.Option("flips", int, 0, "Bits to flip in every byte.", range=(0, 255)),
        codecs.Option("gain", float, 1.0, "What values are multiplied with.", range=(0.5, 2.0)),
        codecs.Option("order", str, "byte", "What is reversed.", choices=("byte", "nothing")),
        codecs.Option("loud", bool, False, "Nothing."),
        codecs.Option("step", int, 2, "Nothing.", choices=(1, 2, 300)),
        codecs.Option("low", float, None, "Nothing.", range=(0.0, 1.0), stored=False),
        codecs.Option("high", float, 0.5, "Nothing; unless low is given.", range=(0.0, 1.0), stored=False)),
    exclusive=("low", "high"))


def compress(x, mode, flips, gain, order, loud, step, low, high):
    data = np.ascontiguousarray(x * np.float32(gain), "<f4").view(np.uint8).reshape(-1, 4)
    data = (data[:, ::-1] if order == "byte" else data) ^ np.uint8(flips)
    return Compressed(mode.name, x.shape, data.tobytes(), {"flips": flips, "gain": gain, "order": order, "loud": loud,
                                                             "step": step})


def decompress(compressed):
    data = np.frombuffer(compressed.payload, np.uint8).reshape(-1, 4) ^ np.uint8(compressed.options["flips"])
    data = np.ascontiguousarray(data[:, ::-1] if compressed.options["order"] == "byte" else data)
    return (data.view("<f4") / np.float32(compressed.options["gain"])).reshape(compressed.shape)


@pytest.fixture
def toy(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    codecs.register(TOY)
    yield np.random.default_rng(0).normal(size=(2, 3, 4, 5)).astype(np.float32)
    codecs.unregister("toy")


def run(line, code=0):
    result = CliRunner().invoke(cli.main, line.split(), prog_name="actcodec")
    assert result.exit_code == code, result.output
    return result.stderr if code else result.stdout


def test_it_compresses_on_the_command_line(toy, tmp_path):
    np.save("x.npy", toy)
    assert "toy byte, ratio 1.00" in run("compress x.npy x.act --mode toy --flips 85 --gain 2 --loud")
    data = (tmp_path / "x.act").read_bytes()
    options = b"\x55" + np.array(2, "<f8").tobytes() + b"\0\1\2\0"
    assert data[5] == 60 and data[32:45] == options
    assert data[45:-4] == (np.ascontiguousarray(2 * toy).view(np.uint8).reshape(-1, 4)[:, ::-1] ^ 85).tobytes()
    run("decompress x.act y.npy")
    np.testing.assert_array_equal(np.load("y.npy"), toy)
    facts = json.loads(run("info x.act --json"))
    assert (facts["mode"], facts["flips"], facts["gain"], facts["order"], facts["loud"]) == ("toy", 85, 2, "byte", True)


def test_it_shows_wherever_modes_do(toy):
    text = " ".join(run("compress --help").split())
    assert "Modes of this bench: toy toys: bytes of every value reversed" in text
    assert "--flips INTEGER RANGE Bits to flip in every byte. Modes: toy. [default: (0); 0<=x<=255]" in text
    assert "--step [1|2|300] Nothing. Modes: toy. [default: (2)]" in text
    assert "--low FLOAT RANGE Nothing. Modes: toy. [0.0<=x<=1.0]" in text
    assert "--order [byte|nothing]" in text and "--loud / --no-loud" in text and "--gain FLOAT RANGE" in text
    assert re.search(r"^60 +toy +toys +bytes of every value", run("modes"), re.MULTILINE)
    assert json.loads(run("modes --json"))[-1]["mode"] == "toy"
    assert list(actcodec.modes())[-1] == "toy"
    np.save("x.npy", toy)
    found = json.loads(run("evaluate x.npy --mode toy --flips 1 --flips 2 --order nothing --json"))
    assert [row["label"] for row in found] == ["toy 1 nothing", "toy 2 nothing"]


def test_what_it_does_not_have_is_an_error(toy):
    np.save("x.npy", toy)
    assert "--flips" in run("compress x.npy x.act --mode toy --flips 256", 2)
    assert "mode toy has no hardware" in run("compress x.npy x.act --mode toy --engine rtl", 2)
    assert "--step" in run("compress x.npy x.act --mode toy --step 3", 2)
    error = run("compress x.npy x.act --mode toy --low 1 --high 1", 2)
    assert "mode toy takes one of low, high, not low and high" in error
    with pytest.raises(ValueError, match="step is 3, must be 1, 2, 300"):
        actcodec.compress(toy, "toy", step=3)
    with pytest.raises(ValueError, match="mode toy has no option cdus; its options: flips, gain, order, loud"):
        actcodec.compress(toy, "toy", cdus=1)
    with pytest.raises(ValueError, match="order is 'word', must be byte, nothing"):
        actcodec.compress(toy, "toy", order="word")


def test_options_that_exclude_each_other(toy):
    assert [TOY.settings(given)[name] for given in ({}, {"low": 0.1}, {"low": None, "high": 1})
            for name in ("low", "high")] == [None, 0.5, 0.1, None, None, 1.0]
    assert actcodec.evaluate(toy, "toy", low=0.25).options == {
        "flips": 0, "gain": 1.0, "order": "byte", "loud": False, "step": 2, "low": 0.25, "high": None}
    assert "low" not in actcodec.compress(toy, "toy", low=0.25).options


@pytest.mark.parametrize("kind, more, what", [
    (int, {}, "numbers have a range"), (int, {"range": (0, 1), "choices": (0, 1)}, "some integers have choices"),
    (float, {"choices": (0.0, 1.0)}, "numbers have a range"), (str, {}, "words"),
    (bool, {"range": (0, 1)}, "nothing else"),
    (int, {"range": (1, 2)}, "x is 0, must be 1 to 2"), (int, {"choices": (1, 2)}, "x is 0, must be 1, 2"),
    (int, {"default": None, "range": (0, 1)}, "files keep it, so it needs a default"),
])
def test_options_that_cannot_be_are_refused(kind, more, what):
    with pytest.raises(ValueError, match=what):
        codecs.Option("x", **{"type": kind, "default": 0, "help": ""} | more)


@pytest.mark.parametrize("at, byte", [(41, 2), (42, 2), (43, 3), (44, 2), (6, 2), (39, 0xC0)])
def test_a_wrong_field_in_a_file_is_refused(toy, at, byte):
    data = bytearray(container.pack(actcodec.compress(toy, "toy")))
    data[at] = byte
    with pytest.raises(container.ContainerError, match="invalid"):
        container.unpack(bytes(data[:-4]) + container.CRC.pack(container.zlib.crc32(data[:-4])))


def test_names_codes_and_options_are_taken_once(toy):
    with pytest.raises(ValueError, match="has the name or the code 60 of mode toy"):
        codecs.register(codecs.Mode("other", 60))
    with pytest.raises(ValueError, match="has the name or the code 61 of mode toy"):
        codecs.register(codecs.Mode("toy", 61))
    with pytest.raises(ValueError, match="option flips of mode other has the name of another one"):
        codecs.register(codecs.Mode("other", 61, options=(codecs.Option("flips", bool, False, ""),)))
    with pytest.raises(ValueError, match="0 to 255"):
        codecs.register(codecs.Mode("other", 256))
    assert "other" not in codecs.MODES


def test_without_it_nothing_is_left():
    assert "toy" not in codecs.MODES and "toy" not in run("compress --help")
