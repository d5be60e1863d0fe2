"""Codecs that nothing but this file knows, the bytes of every value reversed: registered, they are modes like any
other. ``toy`` has options of every kind; ``mirror`` is hardware as well."""

import json
import re

import numpy as np
import pytest
from amaranth.hdl import Cat, Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

import actcodec
from actcodec import codecs, container, units
from actcodec.bench import cycles
from actcodec.bench import run as bench
from actcodec.bench.tables import rate_table
from actcodec.codecs.codec import Codec
from actcodec.codecs.compressed import Compressed
from actcodec.codecs.jpegact import CDUS
from actcodec.demo import picture
from actcodec.demo.run import Result
from actcodec.golden.jpegact import path
from actcodec.rtl.common.skid import Skid
from actcodec.rtl.common.vectors import words
from actcodec.rtl.offload.control.stage import Hop, Stage
from actcodec.rtl.offload.wire.block_format import BlockFormat
from actcodec.synth.catalogue import jobs
from actcodec.synth.flow import synthesise
from tb.cli.line import run

TURNS = tuple(({"turn": turn}, codecs.Mode(f"toy-{turn}", 60 + turn)) for turn in (1, 2))
TOY = codecs.Mode(
    "toy", 60, golden="tb.cli.test_toy:Toy", summary="bytes of every value reversed", tensors="toys",
    variants=(*TURNS, ({"turn": 2, "back": "yes"}, codecs.Mode("toy-back", 63))),
    source="this bench, section 1", options=(
        codecs.Option("flips", int, 0, "Bits to flip in every byte.", range=(0, 255)),
        codecs.Option("gain", float, 1.0, "What values are multiplied with.", range=(0.5, 2.0)),
        codecs.Option("order", str, "byte", "What is reversed.", choices=("byte", "nothing")),
        codecs.Option("turn", int, 0, "Bytes to turn values by.", range=(0, 2)),
        codecs.Option("back", str, "no", "Nothing.", choices=("no", "yes")),
        codecs.Option("loud", bool, False, "Nothing."),
        codecs.Option("step", int, 2, "Nothing.", choices=(1, 2, 300)),
        codecs.Option("low", float, None, "Nothing.", range=(0.0, 1.0), stored=False),
        codecs.Option("high", float, 0.5, "Nothing; unless low is given.", range=(0.0, 1.0), stored=False)),
    exclusive=("low", "high"))


class Toy(Codec):
    """The model."""

    def compress(self, x, flips, gain, order, turn, back, loud, step, low, high):
        assert self.mode is TOY
        data = np.ascontiguousarray(x * np.float32(gain), "<f4").view(np.uint8).reshape(-1, 4)
        data = (data[:, ::-1] if order == "byte" else data) ^ np.uint8(flips)
        options = {"flips": flips, "gain": gain, "order": order, "turn": turn, "back": back, "loud": loud, "step": step}
        return Compressed("toy", x.shape, np.roll(data, turn, axis=1).tobytes(), options)

    def decompress(self, compressed):
        data = np.frombuffer(compressed.payload, np.uint8).reshape(-1, 4) ^ np.uint8(compressed.options["flips"])
        data = np.roll(data, -compressed.options["turn"], axis=1)
        data = np.ascontiguousarray(data[:, ::-1] if compressed.options["order"] == "byte" else data)
        return (data.view("<f4") / np.float32(compressed.options["gain"])).reshape(compressed.shape)


@pytest.fixture
def toy(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    codecs.register(TOY)
    yield np.random.default_rng(0).normal(size=(2, 3, 4, 5)).astype(np.float32)
    codecs.unregister("toy")


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
    assert "--flips INTEGER RANGE Bits to flip in every byte. Modes: toy. [default: 0; 0<=x<=255]" in text
    assert "--step [1|2|300] Nothing. Modes: toy. [default: 2]" in text
    assert "--low FLOAT RANGE Nothing. Modes: toy. [0.0<=x<=1.0]" in text
    assert "--order [byte|nothing]" in text and "--loud / --no-loud" in text and "--gain FLOAT RANGE" in text
    assert re.search(r"^60 +toy +toys +bytes of every value", run("modes"), re.MULTILINE)
    facts = json.loads(run("modes --json"))[-1]
    assert facts["mode"] == "toy" and facts["variants"][1] == {"options": {"turn": 2}, "code": 62}
    assert list(actcodec.modes())[-1] == "toy"
    np.save("x.npy", toy)
    rows = json.loads(run("evaluate x.npy --mode toy --flips 1 --flips 2 --order nothing --json"))
    assert [row["label"] for row in rows] == ["toy 1 nothing", "toy 2 nothing"]


@pytest.mark.parametrize("options, code", [({}, 60), ({"turn": 1}, 61), ({"turn": 2}, 62),
                                           ({"turn": 2, "back": "yes"}, 63)], ids=str)
def test_a_variant_is_a_code(toy, options, code):
    """One mode to the user; the file says by its code alone which one it is."""
    compressed = actcodec.compress(toy, "toy", **options)
    data = container.pack(compressed)
    again = container.unpack(data)
    assert data[5] == code and len(data) == len(container.pack(actcodec.compress(toy, "toy")))
    assert again.mode == "toy" and again.options == compressed.options
    np.testing.assert_array_equal(actcodec.decompress(again), toy)


def test_a_variant_shows_as_the_mode_and_its_options(toy):
    np.save("x.npy", toy)
    assert "toy byte yes, ratio" in run("compress x.npy x.act --mode toy --turn 2 --back yes")
    facts = json.loads(run("info x.act --json"))
    assert (facts["mode"], facts["turn"], facts["back"]) == ("toy", 2, "yes")
    assert "toy-1" not in run("modes") and "toy-1" not in actcodec.modes()
    with pytest.raises(ValueError, match="mode toy has no turn 1 with back yes"):
        actcodec.compress(toy, "toy", turn=1, back="yes")


def test_what_it_does_not_have_is_an_error(toy):
    np.save("x.npy", toy)
    assert "--flips" in run("compress x.npy x.act --mode toy --flips 256", 2)
    assert "mode toy has no hardware" in run("compress x.npy x.act --mode toy --engine rtl", 2)
    assert "--step" in run("compress x.npy x.act --mode toy --step 3", 2)
    error = run("compress x.npy x.act --mode toy --low 1 --high 1", 2)
    assert "mode toy takes one of low, high, not low and high" in error
    with pytest.raises(ValueError, match="step is 3, must be 1, 2, 300"):
        actcodec.compress(toy, "toy", step=3)
    with pytest.raises(ValueError, match="toy has no option cdus; its options: flips, gain, order, turn, back, loud"):
        actcodec.compress(toy, "toy", cdus=1)
    with pytest.raises(ValueError, match="order is 'word', must be byte, nothing"):
        actcodec.compress(toy, "toy", order="word")


def test_options_that_exclude_each_other(toy):
    assert [TOY.option_values(given)[name] for given in ({}, {"low": 0.1}, {"low": None, "high": 1})
            for name in ("low", "high")] == [None, 0.5, 0.1, None, None, 1.0]
    assert actcodec.evaluate(toy, "toy", low=0.25).options == {
        "flips": 0, "gain": 1.0, "order": "byte", "turn": 0, "back": "no", "loud": False, "step": 2, "low": 0.25,
        "high": None}
    assert "low" not in actcodec.compress(toy, "toy", low=0.25).options


@pytest.mark.parametrize("kind, more, what", [
    (int, {}, "numbers have a range"), (int, {"range": (0, 1), "choices": (0, 1)}, "some integers have choices"),
    (float, {"choices": (0.0, 1.0)}, "numbers have a range"), (str, {}, "words"),
    (bool, {"range": (0, 1)}, "nothing else"),
    (int, {"range": (1, 2)}, "x is 0, must be 1 to 2"), (int, {"choices": (1, 2)}, "x is 0, must be 1, 2"),
    (int, {"default": None, "range": (0, 1)}, "it is stored in files, so it needs a default"),
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
    with pytest.raises(ValueError, match="mode other has the name or the code 62 of mode toy-2"):
        codecs.register(codecs.Mode("other", 62))
    with pytest.raises(ValueError, match="has the name or the code 59 of mode toy"):
        codecs.register(codecs.Mode("toy", 59))
    with pytest.raises(ValueError, match="option flips of mode other has the name of another option"):
        codecs.register(codecs.Mode("other", 59, options=(codecs.Option("flips", bool, False, ""),)))
    with pytest.raises(ValueError, match="0 to 255"):
        codecs.register(codecs.Mode("other", 256))
    assert "other" not in codecs.MODES


def test_without_it_nothing_is_left():
    assert "toy" not in codecs.MODES and "toy" not in run("compress --help")


# The same in a lane.

class Reverse(wiring.Component):
    """A register that reverses the bytes of each word. Throughput: a vector a cycle. Latency: 1 cycle."""

    i: In(stream.Signature(words))
    o: Out(stream.Signature(words))

    def elaborate(self, platform):
        m = Module()
        m.submodules.skid = skid = Skid(words)
        m.d.comb += [skid.i.valid.eq(self.i.valid), self.i.ready.eq(skid.i.ready),
                     skid.i.payload.last.eq(self.i.payload.last)]
        wiring.connect(m, skid.o, wiring.flipped(self.o))
        for k, word in enumerate(self.i.payload.data):
            m.d.comb += skid.i.payload.data[k].eq(Cat(word[at : at + 8] for at in (24, 16, 8, 0)))
        return m


def reverse(context, here):
    """The stage."""
    unit = context.add("reverse", Reverse)
    both = Hop(unit.i, unit.o)
    return Stage(both, both)


class Reversed(path.Stage):
    """Its model."""

    def forward(self, x, settings):
        return x.view(np.uint32).byteswap().view(np.float32)

    backward = forward


MIRROR = codecs.Mode("mirror", 58, (codecs.Stage("tb.cli.test_toy:reverse", "tb.cli.test_toy:Reversed",
                                                 BlockFormat("fixed", 32)),),
                     summary="bytes of every value reversed, in a lane", tensors="toys", source="this bench, section 2",
                     options=(CDUS,))
REVERSE = units.Unit("reverse", Reverse, "bytes of every word reversed", bench="cli/toy")


@pytest.fixture
def mirror(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    codecs.register(MIRROR)
    units.register(REVERSE)
    x = np.random.default_rng(0).normal(size=(2, 3, 5, 11)).astype(np.float32)
    np.save("x.npy", x)
    yield x
    codecs.unregister("mirror")
    del units.UNITS["reverse"]


@pytest.mark.regress
def test_a_lane_has_it(mirror, tmp_path):
    """On the command line, by both engines, with a lane and an accelerator that were built for it."""
    for engine in ("golden", "rtl"):
        run(f"compress x.npy {engine}.act --mode mirror --engine {engine}")
    assert (tmp_path / "rtl.act").read_bytes() == (tmp_path / "golden.act").read_bytes()
    assert container.read("golden.act").payload[:4] == mirror.tobytes()[3::-1]
    for engine in ("golden", "rtl"):
        run(f"decompress golden.act {engine}.npy --engine {engine}")
        np.testing.assert_array_equal(np.load(f"{engine}.npy"), mirror)


def test_it_is_measured(mirror):
    """The bench has its rates, at every width; it draws what it measured, as the demo does."""
    assert cycles.measured()[-1] == "mirror"
    assert len([job for job in bench.jobs(True) if "mirror" in job[1]]) == 2 * 3 * 2
    rates = [cycles.Rate("mirror", back, width, 4, (1, 1, 8, 8), 1000, 8400, 8.5)
             for back in (False, True) for width in (8, 16)]
    assert [rate_table(rates).columns[0]._cells, rate_table(rates).columns[2]._cells] == [2 * ["mirror"], 2 * ["8.50"]]
    results = [Result(mode, "dense", mode, {}, mirror, mirror, 1.0) for mode in ("raw", "mirror")]
    assert len(set(picture.colours(results).values())) == 2


def test_its_unit_is_one_like_any_other(mirror, tmp_path):
    assert re.search(r"^ reverse +bytes of every word reversed", run("units"), re.MULTILINE)
    assert "module reverse(" in run("verilog reverse")
    job, = jobs(["reverse"])
    figures, _, _ = synthesise(job.name, job.text, tmp_path, "fast")
    assert 2 * 257 + 2 <= figures.flops < 2 * 257 + 12  # a skid buffer, and copies that sizing makes
