"""Mode comet: files and tensors are golden's by both engines, every value keeps its bound, and wrong files are
refused."""

import json
import struct

import numpy as np
import pytest

import actcodec
from actcodec import container, demo, engines
from actcodec.codecs.compressed import Compressed
from actcodec.golden.comet import comet, lorenzo, prequantise
from tb.cli.line import run, same_by_both_engines
from tb.cli.test_container import sealed
from tb.harness import regress
from tb.judges.test_comet_turns import cycles, demands

SHAPES = {(2, 3, 16, 13): (2, 3, 16, 13), (2, 3, 7, 5): (2, 3, 7, 5), (3, 50): (3, 50), (700,): (1, 700), (1,): (1, 1),
          (2, 5, 70): (2, 5, 1, 70), (2, 3, 2, 5, 9): (2, 3, 10, 9)}
"""Shapes, and what a model sees of them."""
SOME = list(SHAPES)[::3]  # of make sim
PREDICTORS = ["none", "line", "row", "column", "plane"]
SIDE = 16 + 4 * 4  # where side information begins in a file of four dimensions


def tensor(shape, seed=0):
    x = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    return np.where(np.arange(x.size).reshape(shape) % 3 == 0, np.float32(0), x)


def awkward(shape, seed=0):
    """Numbers of all sizes, with NaNs of several kinds, infinities, subnormal numbers and zeros of either sign."""
    random = np.random.default_rng(seed)
    words = random.integers(0, 2**32, shape, np.uint32)
    special = np.array([0x7FC00000, 0xFFC01234, 0x7F800000, 0xFF800000, 1, 0x807FFFFF, 0, 0x80000000, 0x7F7FFFFF],
                       np.uint32)
    normal = random.normal(size=shape).astype(np.float32).view(np.uint32)
    kind = random.integers(0, 3, shape)
    return np.choose(kind, [words, random.choice(special, shape), normal]).astype(np.uint32).view(np.float32)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", tensor((2, 3, 16, 13)))
    return tmp_path


def flags(config):
    return config.tiled | config.horizontal << 1 | config.vertical << 2 | config.signed << 3


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("cdus", [1, 3, 8])
def test_files_and_tensors_are_goldens(shape, cdus):
    x = tensor(shape)
    seen = x.reshape(SHAPES[shape])
    encoded = comet.compress(seen, 0.02, cdus=cdus)
    c = actcodec.compress(x, "comet", error_bound=0.02, cdus=cdus)
    payload = b"".join(encoded.streams)
    assert (c.payload, c.options) == (payload, {"cdus": cdus})
    lengths = struct.pack(f"<{cdus}Q", *map(len, encoded.streams)) if cdus > 1 else b""
    step = struct.unpack("<I", struct.pack("<f", encoded.s))[0] >> 16
    assert container.pack(c) == sealed(
        b"\x89ACT" + bytes([1, 21, cdus, len(shape)]) + len(payload).to_bytes(8, "little")
        + struct.pack(f"<{len(shape)}I", *shape) + struct.pack("<HB", step, flags(encoded.config))
        + bytes(encoded.book.counts[:7]) + lengths + payload)
    expected, error = comet.decompress(encoded, seen.shape)
    assert not error
    np.testing.assert_array_equal(actcodec.decompress(container.unpack(container.pack(c))), expected.reshape(shape))


@pytest.mark.parametrize("predictor", PREDICTORS)
def test_predictors_are_those_of_golden(predictor):
    x = tensor((2, 3, 16, 13))
    s = prequantise.step(0.05)
    names = ["none+", "none"] if predictor == "none" else [predictor]
    config, book = comet.choose(x, s, [lorenzo.CONFIGS[name] for name in names])
    c = actcodec.compress(x, "comet", error_bound=0.05, predictor=predictor)
    assert c.payload == comet.compress(x, 0.05, config, book).streams[0]
    assert c.side[2] == flags(config)
    np.testing.assert_array_equal(actcodec.decompress(c), actcodec.decompress(
        actcodec.compress(x, "comet", error_bound=0.05)))


def test_without_a_predictor_the_cheaper_form_of_symbols_is_taken():
    x = tensor((2, 3, 16, 13))
    both, positive = (actcodec.compress(y, "comet", error_bound=0.05, predictor="none") for y in (x, np.maximum(x, 0)))
    assert (both.side[2], positive.side[2]) == (8, 0)


@pytest.mark.parametrize("predictor", ["auto", *PREDICTORS])
@pytest.mark.parametrize("eb", [2.0**-125, 1e-30, 1e-3, 0.37, 1e4, 3e30])
def test_every_value_keeps_the_bound_through_a_file(tmp_path, predictor, eb):
    """In float64, with no tolerance; zeros become +0.0, what is no number keeps its bits."""
    for seed, x in enumerate([awkward((2, 3, 8, 19)), np.float32(eb) * tensor((2, 3, 16, 13)),
                              np.float32(40 * eb) * tensor((2, 3, 16, 13), 3)]):
        actcodec.save(tmp_path / "x.act", actcodec.compress(x, "comet", error_bound=eb, predictor=predictor,
                                                            cdus=1 + 2 * seed))
        y = actcodec.decompress(actcodec.load(tmp_path / "x.act"))
        finite = np.isfinite(x)
        assert np.all(np.abs(y[finite].astype(np.float64) - x[finite]) <= eb)
        np.testing.assert_array_equal(y[~finite].view(np.uint32), x[~finite].view(np.uint32))
        assert not y[x == 0].view(np.uint32).any()
        beyond = np.abs(x, where=finite, out=np.zeros_like(x), dtype=np.float32) > 2048.0 * min(2 * eb, 2.0**112)
        np.testing.assert_array_equal(y[beyond].view(np.uint32), x[beyond].view(np.uint32))


def test_a_relative_bound_is_a_share_of_the_range():
    x = tensor((2, 3, 16, 13))
    x[0, 0, 0, :3] = np.nan, np.inf, -np.inf
    values = x[np.isfinite(x)].astype(np.float64)
    for share in (1e-5, 0.004, 0.3):
        absolute = actcodec.compress(x, "comet", error_bound=share * float(np.ptp(values)))
        relative = actcodec.compress(x, "comet", relative_bound=share)
        assert container.pack(absolute) == container.pack(relative)
    assert container.pack(actcodec.compress(x, "comet")) == container.pack(
        actcodec.compress(x, "comet", relative_bound=0.01))
    constant = np.full((4, 9), -3, np.float32)  # without a range: a share of the magnitude
    assert np.abs(actcodec.decompress(actcodec.compress(constant, "comet", relative_bound=0.1)) + 3).max() <= 0.3


@pytest.mark.parametrize("error", [1e-7, 0.0635, 0.1737, 0.9, 1.0])
def test_an_l2_error_is_kept_by_the_largest_step_that_does(error):
    for x in [*demo.sample().values()][::3]:
        c = actcodec.compress(x, "comet", l2=error)
        y = actcodec.decompress(c).astype(np.float64)
        norm = np.linalg.norm(x.astype(np.float64))
        actual = np.linalg.norm(y - x) / norm
        assert actual <= error
        step = np.frombuffer(c.side, "<u2", 1).astype(np.uint32) << 16
        above = float((step + (1 << 16)).view(np.float32)[0])  # the next step misses it
        q, outliers = prequantise.quantize(x, above)
        lost = np.where(outliers, 0, prequantise.dequantize(q, above) - x.astype(np.float64))
        assert np.linalg.norm(lost) > error * norm or error == 1
        assert actual > 0.9 * error or error < 1e-6


def test_tensors_without_a_finite_number_have_no_error():
    for x in (np.zeros((2, 3, 8, 8)), np.full((2, 70), np.nan), np.full(5, -np.inf)):
        x = x.astype(np.float32)
        for options in ({}, {"l2": 0.1}, {"relative_bound": 1.0}):
            y = actcodec.decompress(actcodec.compress(x, "comet", **options))
            np.testing.assert_array_equal(y.view(np.uint32), x.view(np.uint32))


def test_command_line_is_the_api(folder):
    x = np.load("x.npy")
    for line, options in (("--error-bound 0.01", {"error_bound": 0.01}), ("--l2 0.1 --cdus 3", {"l2": 0.1, "cdus": 3}),
                          ("--relative-bound 0.05 --predictor row", {"relative_bound": 0.05, "predictor": "row"}),
                          ("", {})):
        text = run(f"compress x.npy x.act --mode comet {line}")
        assert "comet, ratio" in text
        expected = actcodec.compress(x, "comet", **options)
        assert (folder / "x.act").read_bytes() == container.pack(expected)
        run("decompress x.act y.npy")
        np.testing.assert_array_equal(np.load("y.npy"), actcodec.decompress(expected))


def check_engines(x, **options):
    """Both engines write the same file, and each reads the other's as itself. Returns both cycles."""
    golden, _ = engines.compress("golden", x, "comet", **options)
    simulated, there = engines.compress("rtl", x, "comet", **options)
    assert container.pack(simulated) == container.pack(golden)
    expected, _ = engines.decompress("golden", simulated)
    after, back = engines.decompress("rtl", golden)
    assert after.shape == x.shape
    np.testing.assert_array_equal(after.view(np.uint32), expected.view(np.uint32))
    assert all(0 < way.latency < way.cycles for way in (there, back))
    return there, back


@pytest.mark.parametrize("shape", [*SOME, *regress(*((shape,) for shape in SHAPES if shape not in SOME))], ids=str)
@pytest.mark.parametrize("cdus", [1, *regress(4, 3)])
def test_engines_agree(cdus, shape):
    """Each predictor with a small and a large bound, which tensors have in turn."""
    bounds = [0.02, 1.5]
    for predictor in ["auto", *(PREDICTORS if len(shape) > 3 and shape[-1] > 8 else ["none", "line"])]:
        for x, eb in zip((tensor(shape), awkward(shape)), bounds, strict=True):
            check_engines(x, error_bound=eb, predictor=predictor, cdus=cdus)
        bounds.reverse()


@pytest.mark.parametrize("width", [8, 9, 16, 17, 24, 25, 33])
@pytest.mark.parametrize("cdus", [1, *regress(4)])
def test_engines_agree_on_every_class_of_width(width, cdus):
    """Tiles in rows of one, two, three, four and five."""
    check_engines(tensor((2, 3, 21, width)), error_bound=0.1, predictor="plane", cdus=cdus)


@pytest.mark.regress
@pytest.mark.parametrize("eb", [1.2e-38, 1e-30, 3e30, 1e38])
def test_engines_agree_at_the_ends_of_the_steps(eb):
    check_engines(awkward((2, 3, 8, 19)), error_bound=eb, cdus=4)
    check_engines(np.float32(min(eb, 1e36)) * np.float32(40) * tensor((2, 3, 16, 13)), error_bound=eb)


@pytest.mark.regress
@pytest.mark.parametrize("cdus", [1, *regress(4)])
def test_engines_agree_on_the_sample(cdus):
    """In the cycles that the longest lane's steps take, at least 0.96 of a sector a cycle, and those for which it waits
    for the others' turns, by the model of the wire; besides, for the plan and until the first values come out."""
    for x in demo.sample().values():
        lanes = demands(x, 0.0635, cdus)
        assert max(map(len, lanes)) < x.size // 8 // cdus / 0.96
        for decompress, result in enumerate(check_engines(x, l2=0.0635, cdus=cdus)):
            assert result.blocks == x.size // 64 // cdus
            least = cycles(lanes, 8, 128, bool(decompress))
            assert least < result.cycles < least + 200 + 35 * (cdus - 1)
            # From the start, so with the plan; compressing, until codes fill a packet.
            assert result.latency in (range(110, 181) if decompress else range(185, 250))


def test_both_engines_refuse_streams_that_are_cut_lengthened_or_garbage():
    c = actcodec.compress(tensor((2, 3, 16, 13)), "comet", cdus=4)
    lengths = list(struct.unpack_from("<4Q", c.side, 10))
    ends = np.cumsum(lengths)
    random = np.random.default_rng(3)
    streams = [c.payload[end - length:end] for end, length in zip(ends, lengths, strict=True)]
    for change in (lambda s: s[:-1], lambda s: s[:-30], lambda s: b"", lambda s: s + b"\1", lambda s: s + bytes(200),
                   lambda s: random.bytes(len(s))):
        for cdu in range(4):
            new = [change(stream) if cdu == k else stream for k, stream in enumerate(streams)]
            wrong = Compressed(c.mode, c.shape, b"".join(new), c.options,
                               c.side[:10] + struct.pack("<4Q", *map(len, new)))
            with pytest.raises(ValueError, match=r"the streams end early|the streams have bytes left") as error:
                engines.decompress("golden", wrong)
            with pytest.raises(ValueError, match="SHORT" if "early" in str(error.value) else "EXCESS"):
                engines.decompress("rtl", wrong)


def test_a_stream_of_a_cdu_without_groups_is_refused():
    c = actcodec.compress(tensor((9, 9)), "comet", cdus=4)
    wrong = Compressed(c.mode, c.shape, c.payload + b"\1", c.options,
                       c.side[:10] + struct.pack("<4Q", len(c.payload), 1, 0, 0))
    for engine, what in (("golden", "the streams have bytes left"), ("rtl", "EXCESS")):
        with pytest.raises(ValueError, match=what):
            engines.decompress(engine, wrong)


def test_the_rtl_engine_refuses_the_same_bounds():
    tiny = np.float32(1e-37) * tensor((8, 8))
    for engine in engines.ENGINES:
        with pytest.raises(ValueError, match="needs an error bound"):
            engines.compress(engine, tiny, "comet", l2=1e-3)
        with pytest.raises(ValueError, match="has no tiles"):
            engines.compress(engine, tensor((3, 50)), "comet", predictor="plane")


def test_commands_give_the_same_files_with_both_engines(folder):
    for line in ("--l2 0.05", "--error-bound 0.1 --predictor plane --cdus 4"):
        same_by_both_engines(folder, "comet", line)


def test_info_shows_what_the_file_has(folder):
    run("compress x.npy x.act --mode comet --error-bound 0.3 --predictor plane --cdus 2")
    facts = json.loads(run("info x.act --json"))
    assert (facts["mode"], facts["cdus"], facts["predictor"]) == ("comet", 2, "plane")
    assert 0.3 * 128 / 129 <= facts["error_bound"] <= 0.3
    assert facts["side_bytes"] == SIDE + 10 + 2 * 8 + 4
    assert sum(count * 2 ** (8 - length) for length, count in enumerate(facts["code_lengths"], 1)) == 256
    assert "l2" not in facts and "relative_bound" not in facts
    assert "plane" in run("info x.act")


def test_evaluate_tries_each_bound(folder):
    rows = json.loads(run("evaluate x.npy --mode comet --mode raw --l2 0.05 --l2 0.2 --predictor auto --json"))
    assert [row["label"] for row in rows] == ["comet 0.05 auto", "comet 0.2 auto", "raw"]
    assert rows[0]["options"] == {"error_bound": None, "relative_bound": None, "l2": 0.05, "predictor": "auto",
                                  "cdus": 1}
    assert rows[0]["relative_error"] <= 0.05 < rows[1]["relative_error"] <= 0.2
    default, = json.loads(run("evaluate x.npy --mode comet --json"))
    assert default["options"]["relative_bound"] == 0.01
    assert default["largest_error"] <= 0.01 * np.ptp(np.load("x.npy"))


def test_help_says_what_there_is():
    text = " ".join(run("compress --help").split())
    for what in ("--error-bound EB", "--relative-bound R", "--l2 E", "[default: 0.01; 1e-07<=x<=1.0]",
                 "--predictor [auto|none|line|row|column|plane]", "Modes of COMET (Jin et al., VLDB 2022): comet"):
        assert what in text


@pytest.mark.parametrize("options, what", [
    *(({"error_bound": bound}, "error_bound is .*, must be 1.2e-38 to 1e.38")
      for bound in (0, -0.1, 1e-39, float("nan"), float("inf"), "much", True)),
    ({"relative_bound": 0}, "relative_bound is 0"), ({"relative_bound": 1.5}, "relative_bound is 1.5"),
    ({"l2": float("nan")}, "l2 is nan"), ({"l2": 0.0}, "l2 is 0.0, must be 1e-07 to 1.0"),
    ({"l2": 0.1, "error_bound": 1.0}, "takes one of error_bound, relative_bound, l2, not error_bound and l2"),
    ({"relative_bound": 0.01, "l2": 0.1}, "not relative_bound and l2"), ({"predictor": "3-D"}, "predictor is '3-D'"),
    ({"predictor": "plane"}, "has no tiles"), ({"cdus": 0}, "cdus is 0"), ({"bits": 2}, "no option bits"),
])
def test_wrong_options_are_refused(options, what):
    with pytest.raises(ValueError, match=what):
        actcodec.compress(tensor((3, 50)), "comet", **options)


def test_a_bound_that_would_be_too_small_is_refused(folder):
    tiny = np.float32(1e-37) * tensor((8, 8))
    for options in ({"relative_bound": 1e-3}, {"l2": 1e-3}):
        with pytest.raises(ValueError, match="needs an error bound"):
            actcodec.compress(tiny, "comet", **options)
    np.save("tiny.npy", tiny)
    assert "needs an error bound of 3" in run("compress tiny.npy x.act --mode comet --relative-bound 1e-3", 2)


@pytest.mark.parametrize("line, what", [
    ("--error-bound 0", "--error-bound"), ("--l2 2", "--l2"), ("--predictor 3-D", "--predictor"),
    ("--l2 0.1 --error-bound 1", "takes one of error-bound, relative-bound, l2")])
def test_wrong_options_are_one_line(folder, line, what):
    error = run(f"compress x.npy x.act --mode comet {line}", 2)
    assert what in error and error.count("\n") == 1
    assert not (folder / "x.act").exists()


def test_a_predictor_without_tiles_is_one_line(folder):
    np.save("f.npy", tensor((3, 50)))
    error = run("compress f.npy x.act --mode comet --predictor row", 2)
    assert "f.npy: shape (3, 50) has no tiles" in error and error.count("\n") == 1


def changed(c, at, values):
    """A Compressed whose side information has other bytes."""
    side = bytearray(c.side)
    side[at:at + len(values)] = values
    return Compressed(c.mode, c.shape, c.payload, c.options, bytes(side))


@pytest.mark.parametrize("at, values, what", [
    (0, b"\0\0", "step is 0.0"), (0, b"\xc0\x7f", "step is nan"), (0, b"\x80\x7f", "step is inf"),
    (0, b"\x01\xbf", "step is -0.5"), (0, b"\x81\x77", "step is"), (0, b"\x7f\x00", "step is"),
    (2, b"\x10", "flags are 0x10"), (2, b"\xff", "flags are 0xff"), (2, b"\x04", "has to be tiled"),
    (3, b"\xff" * 7, "is not complete"), (3, b"\3" + bytes(6), "is not complete"), (3, b"\2\1", "is not complete"),
    (10, b"\0", "the streams have"), (18, b"\xff" * 8, "the streams have"),
])
def test_wrong_side_information_is_refused(at, values, what):
    c = actcodec.compress(tensor((2, 3, 16, 13)), "comet", cdus=2)
    with pytest.raises(ValueError, match=what):
        container.pack(changed(c, at, values))


def test_a_file_of_other_side_information_is_refused(folder):
    run("compress x.npy x.act --mode comet")
    data = bytearray((folder / "x.act").read_bytes()[:-4])
    data[SIDE + 2] |= 0x20
    (folder / "bad.act").write_bytes(sealed(bytes(data)))
    for command in ("decompress bad.act y.npy", "info bad.act"):
        assert "bad.act: invalid: flags are" in run(command, 2)


def test_a_predictor_that_the_shape_cannot_have_is_refused():
    c = actcodec.compress(tensor((3, 50)), "comet")
    with pytest.raises(ValueError, match="needs tiles, which shape"):
        changed(c, 2, b"\x01").check()


@pytest.mark.parametrize("cdus", [1, 3])
def test_streams_that_are_cut_or_lengthened_are_refused(folder, cdus):
    c = actcodec.compress(tensor((2, 3, 16, 13)), "comet", cdus=cdus)
    lengths = list(struct.unpack_from(f"<{cdus}Q", c.side, 10)) if cdus > 1 else [len(c.payload)]
    for change in (-1, -20, 1, 100):
        new = lengths[:-1] + [lengths[-1] + change]
        payload = c.payload[:change] if change < 0 else c.payload + bytes(change)
        side = c.side[:10] + (struct.pack(f"<{cdus}Q", *new) if cdus > 1 else b"")
        wrong = Compressed(c.mode, c.shape, payload, c.options, side)
        with pytest.raises(ValueError, match="the streams end early" if change < 0 else "the streams have bytes left"):
            actcodec.decompress(wrong)
        actcodec.save("bad.act", wrong)
        error = run("decompress bad.act y.npy", 2)
        assert "invalid payload: the streams" in error and error.count("\n") == 1


def test_random_streams_end(folder):
    """Every pattern of bits means something: they decode to something, or are too short or too long."""
    c = actcodec.compress(tensor((2, 3, 16, 13)), "comet")
    for seed in range(20):
        payload = np.random.default_rng(seed).bytes(len(c.payload))
        with pytest.raises(ValueError, match=r"the streams end early|the streams have bytes left"):
            actcodec.decompress(Compressed(c.mode, c.shape, payload, c.options, c.side))


def test_a_small_file_does_not_ask_for_a_large_tensor():
    c = actcodec.compress(tensor((2, 3, 16, 13)), "comet")
    for shape in ((2**32 - 1,) * 4, (2**32 - 1, 9), (1, 8 * len(c.payload) + 1)):
        with pytest.raises(ValueError, match="cannot hold"):
            Compressed(c.mode, shape, c.payload, c.options, c.side[:2] + b"\x08" + c.side[3:]).check()


def test_a_value_takes_at_least_an_eighth_of_a_byte():
    """So that the check of sizes refuses no file that there is: of a tensor of zeros codes have one bit."""
    for shape in ((1,), (7, 9), (8, 1000), (2, 3, 64, 64)):
        for cdus in (1, 8):
            c = actcodec.compress(np.zeros(shape, np.float32), "comet", cdus=cdus)
            assert c.length <= 8 * c.payload_bytes
            container.unpack(container.pack(c))


def test_ratios_of_the_sample_are_near_the_contracts():
    """Its sample has eight images, this one four of them: dense 9.75 and 15.44, ReLU 12.28 and 19.03."""
    sample = demo.sample()
    for kind, error, ratio in (("conv", 0.0635, 9.75), ("conv", 0.1737, 15.44), ("ReLU", 0.0635, 12.28),
                               ("ReLU", 0.1737, 19.03)):
        bits = [32 / actcodec.compress(x, "comet", l2=error).ratio for name, x in sample.items()
                if name.startswith(kind)]
        assert 32 / np.mean(bits) == pytest.approx(ratio, rel=0.08)
