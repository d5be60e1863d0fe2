"""The rtl engine, which simulates the generated hardware, against the golden one: same files, same tensors."""

from dataclasses import replace
from itertools import chain, product

import numpy as np
import pytest

from actcodec import codecs, container, demo, engines
from actcodec.bench import cycles as bench_cycles
from actcodec.codecs.codec import LanePayload
from actcodec.files import UserError
from actcodec.golden.jpegact import div, steps
from actcodec.sim import rtl_engine
from actcodec.sim.accelerator import configurations
from tb import reference
from tb.cli.line import same_by_both_engines
from tb.harness import regress, selection

SHAPES = [(1, 1, 8, 8), (2, 3, 7, 13), (1, 5, 56, 56), (4, 16, 32, 32), (3, 2, 9, 24), (1, 64, 14, 14), (2, 40, 1, 1)]
TABLES = ["optL", "optH", "jpeg80", "jpeg60"]
CDUS = (1, 4)  # every number of them is a simulator of its own
SUBNORMAL = np.float32(1e-41)


def awkward(shape, seed):
    """A tensor with channels of all zeros, huge, tiny and subnormal values, and with NaN, Inf and -0 among them."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape).astype(np.float32)
    x[rng.random(shape) < 0.4] = 0
    special = np.array([np.nan, -np.nan, np.inf, -np.inf, SUBNORMAL, -SUBNORMAL, -0.0, 1e30, -3e-39], np.float32)
    where = rng.random(shape) < 0.02
    x[where] = rng.choice(special, np.count_nonzero(where))
    channels = [0.0, 3e38, 1e-37, SUBNORMAL, 1.0, np.inf]
    for channel in range(shape[1]):
        pick = (channel + seed) % (len(channels) + 3)  # three in nine stay as they are
        if pick < len(channels) and shape[1] > 1:
            with np.errstate(over="ignore", invalid="ignore", under="ignore"):
                x[:, channel] *= np.float32(channels[pick])
    return x


def check_equal(x, mode, dqt, cdus, **more):
    """Both engines write the same file, and each reads it as the other does."""
    options = {"cdus": cdus, **more} | ({"dqt": dqt} if mode in ("jpeg-act", "jpeg-base") else {})
    golden, _ = engines.compress("golden", x, mode, **options)
    simulated, cycles = engines.compress("rtl", x, mode, **options)
    assert container.pack(simulated) == container.pack(golden)
    expected, _ = engines.decompress("golden", simulated)
    after, back = engines.decompress("rtl", golden)
    assert (after.shape, after.dtype) == (x.shape, np.float32)
    np.testing.assert_array_equal(after.view(np.uint32), expected.view(np.uint32))
    assert all(0 < way.latency < way.cycles for way in (cycles, back))  # a short packet is held until it is used up
    return cycles, back


@pytest.mark.usefixtures("small_lane")
def test_hardware_finds_the_scales_that_golden_has():
    for dtype in (np.float32, np.float16):
        with np.errstate(over="ignore"):
            x = awkward((2, 3, 7, 13), 1).astype(dtype)
        golden, _ = engines.compress("golden", x, "sfpr-zvc", cdus=2)
        simulated, _ = engines.compress("rtl", x, "sfpr-zvc", True, cdus=2)
        assert container.pack(simulated) == container.pack(golden)


def test_a_scan_is_for_hardware_and_for_scales():
    x = awkward((1, 1, 8, 8), 2)
    with pytest.raises(UserError, match="a scan needs the rtl engine"):
        engines.compress("golden", x, "sfpr-zvc", True)
    for mode in ("brc", "division"):
        with pytest.raises(ValueError, match=f"mode {mode} has no scales that a scan finds"):
            engines.compress("rtl", x, mode, True)
    for more in ({"scaling": "tensor"}, {"clip": 1.5}):
        with pytest.raises(ValueError, match="a scan finds the scales of channels, with the paper's clip"):
            engines.compress("rtl", x, "sfpr-zvc", True, **more)


@pytest.mark.regress
def test_the_accelerators_that_the_engine_chooses_are_golden_in_all_their_modes(random, own_lanes):
    """A quarter of them, by chance: each is compiled for this alone."""
    for mode in codecs.lane_modes(*chain(*selection.part(random, configurations(), 4))):
        if codecs.by_code(mode.code)[0]:  # what has no code in files takes flat tensors in place of one that has
            for shape, back in product([(2, 3, 8, 13), (3, 9)], (False, True)):
                bench_cycles.simulate(awkward(shape, 0), mode.name, "optL", 1, back)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("mode", reference.MODES)
def test_engines_agree_on_every_shape_and_mode(mode, shape):
    number = SHAPES.index(shape) * len(reference.MODES) + reference.MODES.index(mode)
    check_equal(awkward(shape, number), mode, TABLES[number % 4], CDUS[number % 2])


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("mode", ["sfpr-zvc", "jpeg-act"])
@pytest.mark.parametrize("coder", ["nibble", "rice"])
def test_engines_agree_with_every_coder(coder, mode, shape):
    number = SHAPES.index(shape)
    check_equal(awkward(shape, number), mode, TABLES[number % 4], CDUS[number % 2], coder=coder)


@pytest.mark.regress
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("coder", ["zvc", "nibble", "rice"])
def test_engines_agree_on_div_in_quarters(coder, shape):
    number = SHAPES.index(shape)
    own = np.random.default_rng(number).integers(steps.LEAST, steps.MOST + 1, 64) / 4
    for dqt, zone in ((list(steps.TABLES)[number % 6], number % 4), (own, (number + 2) % 4)):
        check_equal(awkward(shape, number), "jpeg-act", dqt, 4, coder=coder, quantizer="div", dead_zone=zone)


@pytest.mark.regress
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("cdus", CDUS)
def test_engines_agree_on_jpeg_base(cdus, shape):
    number = SHAPES.index(shape)
    own = np.random.default_rng(number).integers(1, 256, 64)
    for dqt in (list(div.TABLES)[number % 6], own):
        check_equal(awkward(shape, number), "jpeg-base", dqt, cdus)


def test_engines_agree_on_real_activations_in_jpeg_base():
    x = demo.sample()["conv0"][:1]
    for dqt in div.TABLES:
        check_equal(x, "jpeg-base", dqt, 1)


def test_both_engines_refuse_a_damaged_block_of_jpeg_base():
    golden, _ = engines.compress("golden", demo.sample()["conv0"][:1], "jpeg-base")
    for at, to in ((1, 0xFF), (0, 1), (0, golden.payload[0] + 3)):  # codes that are none; blocks cut where they are not
        payload = bytearray(golden.payload)
        payload[at] = to
        if at:
            payload[1:4] = [to] * 3
        for engine in engines.ENGINES:
            with pytest.raises(ValueError, match=r"damaged|do not add up|BLOCK|SHORT|EXCESS"):
                engines.decompress(engine, replace(golden, payload=bytes(payload)))


@pytest.mark.parametrize("coder", ["nibble", "rice"])
def test_both_engines_refuse_a_malformed_block(coder):
    x = demo.sample()["conv0"][:1]
    golden, _ = engines.compress("golden", x, "jpeg-act", coder=coder)
    payload = bytearray(golden.payload)
    payload[1] ^= 1 << 7  # codes, or planes, that no longer add up to the length
    payload[2] ^= 1 << 5
    for engine in engines.ENGINES:
        with pytest.raises(ValueError, match=r"malformed|BLOCK"):
            engines.decompress(engine, replace(golden, payload=bytes(payload)))


def test_all_modes_of_a_lane_share_an_accelerator(monkeypatch):
    """Back to back through four lanes on one memory, in random order: tensors, and payloads of any time before."""
    names = tuple(mode.name for mode in codecs.lane_modes())
    monkeypatch.setattr(rtl_engine, "configuration", lambda mode: names)
    rng, shape, there = np.random.default_rng(5), (2, 3, 16, 24), []
    host = rtl_engine.SimulatedHost(shape, None, 4, shared=True)
    todo = [(mode, values) for mode in codecs.MODES.values() for values, lane in (({}, mode), *mode.variants)
            if lane.format and mode.variant(values) is lane] * 2
    todo += [(codecs.find("comet"), {"predictor": predictor}) for predictor in ("none", "row")]  # either of its modes
    rng.shuffle(todo)
    assert len(todo) >= 2 * 11
    while todo or there:
        if there and (not todo or rng.integers(2)):
            golden, expected = there.pop(int(rng.integers(len(there))))
            model = codecs.find(golden.mode).model
            _, y = host.decompress(model.unpack(golden))
            np.testing.assert_array_equal(y.view(np.uint32), expected.view(np.uint32), golden.mode)
            continue
        mode, values = todo.pop()
        options = mode.option_values(values)
        options.pop("cdus")
        x = np.maximum(rng.normal(size=shape), -0.5).astype(np.float32)
        lane, words, settings = mode.model.plan(x, **options)
        golden = mode.model.compress(x, cdus=4, **options)
        result, payload = host.compress(x, lane.name, scales=words, settings=settings,
                                        signs=options.get("signs", False))
        actual = mode.model.pack(LanePayload(lane, shape, payload, result.scales, result.settings, 4, result.lengths),
                                 **options)
        assert container.pack(actual) == container.pack(golden), lane.name
        there.append((golden, mode.model.decompress(golden)))


@pytest.mark.parametrize("cdus", [*CDUS, *regress(3)])
@pytest.mark.parametrize("mode", reference.MODES)
def test_engines_agree_for_every_number_of_cdus(mode, cdus):
    check_equal(awkward((3, 4, 9, 24), cdus), mode, "optH", cdus)  # 42 tiles, 54 blocks: no multiple of a group


@pytest.mark.parametrize("width", [8, 9, 16, 17, 24, 25, 32, 40, 100])
def test_engines_agree_on_every_class_of_width(width):
    check_equal(awkward((1, 3, 11, width), width), "jpeg-act", "jpeg80", cdus=4)


@pytest.mark.parametrize("name", ["zeros", "ones", "nan", "inf", "one value"])
@pytest.mark.parametrize("mode", reference.MODES)
def test_engines_agree_on_uniform_tensors(mode, name):
    x = np.full((1, 2, 8, 16), {"zeros": 0, "ones": 1, "nan": np.nan, "inf": -np.inf, "one value": 0}[name], np.float32)
    if name == "one value":
        x[0, 1, 7, 15] = -1
    check_equal(x, mode, "optL", cdus=1)


@pytest.mark.parametrize("mode", reference.MODES)
def test_a_long_tensor_takes_eight_cycles_a_block(mode):
    x = demo.sample()["ReLU_layers_0_relu1"]
    for cycles in check_equal(x, mode, "optL", cdus=1):
        assert cycles.blocks == 1024
        assert 8 <= cycles.cycles_per_block < 8.21  # what is above 8.00 is the latency


@pytest.mark.parametrize("cdus", CDUS)
@pytest.mark.parametrize("mode", ["sfpr-zvc", "jpeg-act"])
def test_both_engines_refuse_a_payload_that_is_short_or_too_long(mode, cdus):
    golden, _ = engines.compress("golden", awkward((1, 2, 24, 24), 5), mode, cdus=cdus)
    for payload in (golden.payload[:-1], golden.payload[:20], golden.payload + b"\1", golden.payload + bytes(900)):
        wrong = replace(golden, payload=payload)
        for engine in engines.ENGINES:
            with pytest.raises(ValueError):
                engines.decompress(engine, wrong)
    x, _ = engines.decompress("rtl", golden)
    assert x.tobytes() == engines.decompress("golden", golden)[0].tobytes()


def test_counts_nans_and_saturated_values():
    x = np.full((1, 2, 8, 16), 0.5, np.float32)
    x[0, 0, :3, 5], x[0, 1, 7, :] = np.nan, np.inf
    x[0, 1, 0, 0] = 1
    _, cycles = engines.compress("rtl", x, "sfpr", cdus=4)
    assert (cycles.nans, cycles.saturated) == (3, 17 + 125)  # the largest values clip, since S > 1


@pytest.mark.parametrize("mode, options", [
    ("jpeg-act", "--cdus 4"), ("jpeg-base", "--cdus 4"),
    ("jpeg-act", "--cdus 4 --quantizer div --coder rice --dead-zone 2")])
def test_commands_give_the_same_files_with_both_engines(tmp_path, monkeypatch, mode, options):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", awkward((2, 3, 7, 13), 1))
    (tmp_path / "t.txt").write_text(" ".join(str(2 ** (i % 8)) for i in range(64)))
    same_by_both_engines(tmp_path, mode, f"--dqt t.txt {options}")
