"""Mode division: files and tensors are golden's, on the command line and in Python; wrong files are refused."""

import json
import struct
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import actcodec
from actcodec import container, demo, engines
from actcodec.golden.division import codec, stream, table
from actcodec.golden.division import view as views
from actcodec.sim import rtl_engine
from tb.cli.line import run
from tb.cli.test_container import sealed
from tb.division import tensors
from tb.harness import SEED

SHAPES = [(2, 3, 16, 13), (2, 3, 7, 13), (3, 5, 2, 2), (3, 50), (1, 1, 1, 1), (2, 9, 8, 8)]
HEAD = 16 + 4 * 4  # bytes of a file of four dimensions in front of its scales
CODES = {1: 28, 2: 22, 4: 29}  # of the mode, by bits


def tensor(shape, seed=0):
    x = np.random.default_rng(seed).normal(1, 2, shape).astype(np.float32)
    return np.where(np.arange(x.size).reshape(shape) % 5 == 0, np.float32(0), x)


def words(k):
    return (k.view(np.uint32) >> 16).astype("<u2").tobytes()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", tensor((2, 3, 16, 13)))
    return tmp_path


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("bits, rounding, lfc, offset, cdus", [
    (1, "stochastic", "on", "mean", 1), (2, "stochastic", "off", "min", 3), (2, "nearest", "on", "min", 8),
    (4, "nearest", "off", "mean", 2), (4, "stochastic", "on", "mean", 5)])
def test_files_and_tensors_are_goldens(shape, bits, rounding, lfc, offset, cdus):
    x = tensor(shape)
    planes = table.table(x, bits, lfc == "on", offset)
    encoded = codec.encode(x, planes, bits, 7, lfc == "on", rounding, offset)
    c = actcodec.compress(x, "division", bits=bits, rounding=rounding, lfc=lfc, offset=offset, seed=7, cdus=cdus)
    payload = stream.interleave(encoded.payload, views.view(shape), bits, cdus)
    assert c.payload == payload and c.options == {"bits": bits, "cdus": cdus}
    assert container.pack(c) == sealed(
        b"\x89ACT" + bytes([1, CODES[bits], cdus, len(shape)]) + len(payload).to_bytes(8, "little")
        + struct.pack(f"<{len(shape)}I", *shape) + words(planes.k) + payload)
    expected = codec.decode(encoded.payload, planes.k, shape, bits)
    np.testing.assert_array_equal(actcodec.decompress(container.unpack(container.pack(c))), expected)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("sign", [False, True])
def test_auto_is_goldens_choice(shape, sign):
    x = tensor(shape) if sign else np.maximum(tensor(shape), 0)
    planes, lfc = table.auto(x, 2)
    assert actcodec.compress(x, "division").payload == codec.encode(x, planes, 2, 0, lfc).payload


def test_command_line_is_the_api(folder):
    x = np.load("x.npy")
    for bits, rounding, lfc, offset in product((1, 4), ("nearest", "stochastic"), ("auto", "off"), ("mean", "min")):
        options = f"--bits {bits} --seed 5 --rounding {rounding} --lfc {lfc} --offset {offset} --cdus 2"
        assert "division, ratio" in run(f"compress x.npy x.act --mode division {options}")
        expected = actcodec.compress(x, "division", bits=bits, seed=5, rounding=rounding, lfc=lfc, offset=offset,
                                     cdus=2)
        assert (folder / "x.act").read_bytes() == container.pack(expected)
        run("decompress x.act y.npy")
        np.testing.assert_array_equal(np.load("y.npy"), actcodec.decompress(expected))


@pytest.mark.regress
@pytest.mark.parametrize("cdus", [1, 4])
@pytest.mark.parametrize("bits", [1, 2, 4])
def test_both_engines_give_the_same(bits, cdus):
    """Tiles in one column, two and more, narrow ones; planes of a few sectors and of many; tensors of one row."""
    random = np.random.default_rng([SEED, bits, cdus])
    shapes = [*SHAPES, (1, 1, 8, 8), (1, 2, 16, 40), (4, 7, 5, 5), (1, 3, 33, 20), (5, 3, 3, 3), (40, 9),
              (2, 70, 1, 64), *(shape for shape in tensors.shapes(random, 8) if type(shape) is tuple)]  # no view
    for shape in shapes:
        x = tensor(shape, int(random.integers(1 << 32)))
        options = {"bits": bits, "cdus": cdus, "seed": int(random.integers(1 << 32))} | {
            name: str(random.choice(values)) for name, values in (
                ("rounding", ("stochastic", "nearest")), ("lfc", ("auto", "on", "off")), ("offset", ("mean", "min")))}
        golden, _ = engines.compress("golden", x, "division", **options)
        other, cycles = engines.compress("rtl", x, "division", **options)
        assert container.pack(other) == container.pack(golden), f"SEED={SEED} {shape} {options}"
        y, back = engines.decompress("rtl", golden)
        assert y.tobytes() == actcodec.decompress(golden).tobytes(), f"SEED={SEED} {shape} {options}"
        assert cycles.bytes == back.bytes == golden.payload_bytes


@pytest.mark.parametrize("shape", [(2, 3, 16, 13), (2, 3, 7, 13)], ids=["tiles", "flat"])
def test_the_lane_tells_of_streams_and_tables_that_do_not_fit(shape):
    x = tensor(shape)
    c = actcodec.compress(x, "division", cdus=4)
    for payload, what in ((c.payload[:-1], "SHORT"), (c.payload[:9], "SHORT"), (c.payload + b"\0", "EXCESS")):
        with pytest.raises(ValueError, match=what):
            rtl_engine.decompress(replace(c, payload=payload))
    host = rtl_engine.SimulatedHost(shape, "division", 4)
    result, payload = host.compress(x, "division", options={"lfc": "on"})
    assert not result.clipped
    planes = table.table(x, 2)
    k = np.where(planes.k > 0, 2 * planes.k, 1).astype(np.float32)
    result, payload = host.compress(x, "division", settings=result.settings,
                                    scales=k.view(np.uint32) | planes.delta.view(np.uint8))
    encoded = codec.encode(x, table.Table(k, planes.delta))
    assert encoded.clipped and result.clipped
    assert payload == stream.interleave(encoded.payload, views.view(shape), 2, 4)
    assert not host.compress(x, "division", options={})[0].clipped


def test_info_counts_the_scales(folder):
    run("compress x.npy x.act --mode division --bits 4")
    facts = json.loads(run("info x.act --json"))
    assert (facts["mode"], facts["bits"], facts["cdus"]) == ("division", 4, 1)
    assert facts["payload_bytes"] == codec.size((2, 3, 16, 13), 4)
    assert facts["side_bytes"] == HEAD + 2 * 6 + 4  # a scale for each of six planes
    assert "seed" not in facts and "lfc" not in facts


def test_evaluate_tries_each_with_each(folder):
    rows = json.loads(run("evaluate x.npy --mode division --bits 1 --bits 2 --rounding nearest --rounding stochastic "
                          "--seed 3 --json"))
    x = np.load("x.npy")
    assert [row["label"] for row in rows] == [
        f"division {bits} 3 {rounding}" for bits in (1, 2) for rounding in ("nearest", "stochastic")]
    for row in rows:
        assert row["options"] == {"bits": row["options"]["bits"], "seed": 3, "rounding": row["options"]["rounding"],
                                  "lfc": "auto", "offset": "mean", "cdus": 1}
        expected = actcodec.evaluate(x, "division", **row["options"])
        assert (row["ratio"], row["relative_error"]) == (expected.ratio, expected.relative_error)


def test_help_says_what_there_is():
    text = " ".join(run("compress --help").split())
    for what in ("--bits [1|2|4]", "--seed INTEGER RANGE", "--rounding [stochastic|nearest]", "--lfc [auto|on|off]",
                 "--offset [mean|min]", "Modes of DIVISION (Wang et al., ICML 2023): division"):
        assert what in text


def test_stochastic_rounding_is_unbiased_and_seeds_differ():
    """Of a tensor within steps of its plane; the mean of many seeds goes to what rounding to 8 bits makes of it."""
    x = tensor((1, 2, 16, 16))
    runs = [actcodec.decompress(actcodec.compress(x, "division", seed=seed)) for seed in range(400)]
    assert len({run.tobytes() for run in runs}) == 400
    one = np.abs(runs[0] - x).mean()
    assert np.abs(np.mean(runs, axis=0) - x).mean() < 0.1 * one
    assert np.abs(actcodec.decompress(actcodec.compress(x, "division", rounding="nearest")) - x).mean() < 0.8 * one


def test_awkward_values():
    x = tensor((1, 2, 16, 16))
    x[0, 0, 0, :4] = np.nan, np.inf, -np.inf, 1e-40
    result = actcodec.evaluate(x, "division")
    assert (result.nans, result.infinities, result.saturated) == (1, 2, 2)
    y = actcodec.decompress(actcodec.compress(x, "division"))
    assert np.all(np.isfinite(y))
    np.testing.assert_array_equal(y[0, 1], actcodec.decompress(actcodec.compress(
        np.where(np.isfinite(x), x, 0).astype(np.float32), "division"))[0, 1])
    nothing = np.zeros((2, 2, 8, 8), np.float32)
    assert not actcodec.decompress(actcodec.compress(nothing, "division")).any()


@pytest.mark.parametrize("options, what", [
    ({"bits": 3}, "bits is 3, must be 1, 2, 4"), ({"bits": 8}, "bits is 8"), ({"bits": True}, "bits is True"),
    ({"seed": -1}, "seed is -1, must be 0 to 4294967295"), ({"seed": 2**32}, "seed is"), ({"seed": 0.5}, "seed is"),
    ({"rounding": "up"}, "rounding is 'up', must be stochastic, nearest"), ({"lfc": True}, "must be auto, on, off"),
    ({"offset": "max"}, "must be mean, min"), ({"cdus": 9}, "cdus is 9"), ({"dqt": "optL"}, "has no option dqt"),
])
def test_wrong_options_are_refused(options, what):
    with pytest.raises(ValueError, match=what):
        actcodec.compress(tensor((8, 8)), "division", **options)


@pytest.mark.parametrize("line, what", [
    ("--bits 3", "--bits"), ("--seed -1", "--seed"), ("--lfc maybe", "--lfc")])
def test_wrong_options_are_one_line(folder, line, what):
    error = run(f"compress x.npy x.act --mode division {line}", 2)
    assert what in error and error.count("\n") == 1
    assert not (folder / "x.act").exists()


@pytest.mark.parametrize("at, value, what", [
    (5, 28, "mode division needs"), (5, 29, "needs"),
    (HEAD + 1, 0xC1, "a scale is not"), (HEAD + 1, 0x7F, "a scale is not"), (6, 0, "0 CDUs"), (6, 9, "9 CDUs"),
    (16, 3, "ends within its payload"), (16, 1, "more than its header says"), (8, 0, "more than its header says"),
    (28, 12, "mode division needs"), (7, 6, "invalid header"),
])
def test_a_wrong_field_in_a_file_is_refused(folder, at, value, what):
    run("compress x.npy x.act --mode division")
    data = bytearray((folder / "x.act").read_bytes()[:-4])
    data[at] = value
    if (at, value) == (28, 12):
        data[24:28] = bytes([8, 0, 0, 0])  # as many planes, of fewer values
    (folder / "bad.act").write_bytes(sealed(bytes(data)))
    for command in ("decompress bad.act y.npy", "info bad.act"):
        error = run(command, 2)
        assert what in error and error.count("\n") == 1, error
    assert not (folder / "y.npy").exists()


def test_a_small_file_does_not_ask_for_a_large_tensor():
    for shape in ((2**32 - 1,) * 4, (1, 1, 2**32 - 8, 2**32 - 1), (2**32 - 1, 1), (1, 2**32 - 1)):
        data = b"\x89ACT" + bytes([1, 22, 1, len(shape)]) + (64).to_bytes(8, "little")
        data += struct.pack(f"<{len(shape)}I", *shape) + bytes(66)
        with pytest.raises(container.ContainerError, match=r"ends within its side information|needs"):
            container.unpack(sealed(data))


def test_ratios_of_the_sample_are_the_contracts():
    """256 / (1 + 8 bits) where H and W are multiples of 8."""
    for x in demo.sample().values():
        for bits, ratio in ((1, 28.44), (2, 15.06), (4, 7.76)):
            assert actcodec.compress(x, "division", bits=bits).ratio == pytest.approx(ratio, abs=0.005)
