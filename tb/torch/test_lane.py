"""The modes in torch are golden bit for bit: values, and bytes of payload and scales."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import actcodec
from actcodec import codecs
from actcodec.golden.jpegact import dct as golden_dct
from actcodec.golden.jpegact import div, rle
from actcodec.golden.mx import element
from actcodec.golden.offload import blocks
from actcodec.torch import dct, kernels, lane, mx, packing, quantize, runlength, sfpr, tiles
from actcodec.torch.compiled import compiled
from actcodec.torch.golden import Golden, codec
from actcodec.torch.packed import Packed

SAMPLE = np.load(Path(actcodec.__file__).parent / "data/resnet20.npz")
SHAPES = [(700,), (9, 70), (2, 70, 2, 2), (2, 5, 70), (2, 5, 9, 19), (2, 3, 2, 5, 9), (1, 1, 8, 8), (3, 4, 3, 3),
          (1, 2, 33, 24), (4, 3, 16, 200)]
OPTIONS = {"jpeg-act": [{"dqt": "optL"}, {"dqt": "optH"}, {"dqt": "jpeg80"}, {"dqt": np.arange(1, 65)},
                        {"coder": "nibble"}, {"coder": "rice", "dqt": "optH"}, {"quantizer": "div", "dqt": 3.25},
                        {"quantizer": "div", "dqt": "optH-div", "dead_zone": 3, "coder": "rice", "cdus": 3}],
           "sfpr": [{}, {"signs": True}, {"scaling": "tensor", "clip": 1.0}],
           "sfpr-zvc": [{}, {"signs": True}, {"scaling": "cap", "cap": 2.7, "clip": 8.0}, {"coder": "nibble"},
                        {"coder": "rice", "cdus": 2, "signs": True}],
           "mx": [{}, {"format": "e4m3"}, {"format": "e5m2", "rule": "floor"}, {"format": "e3m2", "rule": "even"},
                  {"format": "e2m3", "cdus": 3}, {"format": "e2m1", "rule": "floor"}, {"rule": "even"},
                  {"coder": "zvc", "rule": "floor"}, {"format": "e4m3", "coder": "zvc"},
                  {"format": "e2m1", "coder": "zvc", "cdus": 2}, {"coder": "nibble"}, {"coder": "rice", "cdus": 3}],
           "jpeg-base": [{}, {"dqt": "optL-div"}, {"dqt": "optH-div", "cdus": 3}, {"dqt": np.arange(1, 255, 4)},
                         {"dqt": np.full(64, 1)}],
           "division": [{}, {"bits": 1, "seed": 5, "cdus": 3}, {"bits": 4, "rounding": "nearest", "lfc": "on"},
                        {"offset": "min", "lfc": "on", "seed": 2**32 - 1}, {"bits": 4, "offset": "min"},
                        {"lfc": "off"}],
           "comet": [{}, {"relative_bound": 0.1, "cdus": 3}, {"l2": 0.06}, {"error_bound": 0.01, "predictor": "none"},
                     {"error_bound": 1e-4, "predictor": "line"}]}
HERE = {name: codecs.import_object(mode.torch) for name, mode in codecs.MODES.items() if mode.torch}
WAYS = [(mode, options) for mode in HERE for options in OPTIONS.get(mode, [{}])]


def random(shape, seed):
    x = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    x[x < -0.6] = 0
    return x


def nasty(shape, seed):
    """NaN, infinities, subnormal and huge numbers, zeros of both signs; a channel of zeros but for an infinity."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape).astype(np.float32) * np.exp2(rng.integers(-149, 127, shape)).astype(np.float32)
    special = [np.nan, np.inf, -np.inf, 1e-40, -1e-40, 0.0, -0.0, 3.4e38, -3.4e38, 1.18e-38]
    where = rng.random(shape) < 0.1
    x[where] = rng.choice(special, where.sum())
    return x


def tiny(shape, seed):
    """Scales at their limit, where subnormal numbers would matter."""
    x = random(shape, seed) * np.float32(2e-38)
    if len(shape) > 1:
        x[:, 0] = 0
        x.reshape(-1)[0] = -np.inf
    return x


def same(x, mode, options, device="cpu", engine="torch"):
    torch_codec = codec(mode, options, engine)
    assert type(torch_codec) is HERE[mode]
    try:
        expected = actcodec.compress(x, mode, **options)
    except ValueError as error:  # a share of almost nothing
        assert "2^-126" in str(error)
        with pytest.raises(ValueError, match=re.escape(str(error))):
            torch_codec.encode(torch.from_numpy(x).to(device))
        return
    y = actcodec.decompress(expected)
    packed = torch_codec.encode(torch.from_numpy(x).to(device))
    assert packed.mode == expected.mode
    assert int(packed.payload) == expected.payload_bytes
    assert packed.side == len(expected.side)
    z = torch_codec.decode(packed)
    assert z.shape == x.shape and z.dtype == torch.float32 and z.device.type == device
    np.testing.assert_array_equal(z.cpu().numpy().view(np.uint32), y.view(np.uint32))


@pytest.mark.parametrize("mode, options", WAYS, ids=str)
@pytest.mark.parametrize("name", SAMPLE.files)
def test_real_activations_are_those_of_golden(name, mode, options, device, native):
    same(SAMPLE[name], mode, options, device)


@pytest.mark.parametrize("mode, options", WAYS, ids=str)
@pytest.mark.parametrize("make", [random, nasty, tiny])
def test_any_values_in_any_shape_are_those_of_golden(make, mode, options, device, native):
    for seed, shape in enumerate(SHAPES):
        same(make(shape, seed), mode, options, device)


@pytest.mark.parametrize("mode, options, shape", [
    ("jpeg-act", {"dqt": "optH"}, (1, 2, 33, 24)), ("sfpr-zvc", {"signs": True}, (2, 5, 9, 19)),
    ("comet", {"relative_bound": 0.05}, (1, 2, 33, 24)), ("division", {}, (2, 5, 9, 19)),
    ("division", {"offset": "min"}, (1, 2, 24, 20)), ("dpr-fp10", {}, (2, 5, 70)), ("ssdc-fp8", {}, (9, 70)),
], ids=str)
def test_what_is_compiled_is_golden(mode, options, shape, device):
    for seed, make in enumerate((nasty,) if mode == "jpeg-act" else (random, nasty, tiny)):  # whose compilation is long
        same(make(shape, seed), mode, options, device, "compiled")


def test_the_transform_is_golden_for_every_extreme_and_in_parts(monkeypatch, device):
    rng = np.random.default_rng(0)
    blocks = np.concatenate([rng.integers(-128, 128, (20000, 8, 8)), rng.choice([-128, 127], (20000, 8, 8))])
    c = dct.forward(torch.from_numpy(blocks.astype(np.int32)).to(device).permute(1, 2, 0).contiguous()).permute(2, 0, 1)
    np.testing.assert_array_equal(c.cpu().numpy(), golden_dct.forward(blocks.astype(np.int8)))
    wild = np.concatenate([rng.integers(-16384, 16257, (20000, 8, 8)), rng.choice([-2048, 2047], (20000, 8, 8))])
    y = dct.inverse(torch.from_numpy(wild.astype(np.int32)).to(device).permute(1, 2, 0).contiguous()).permute(2, 0, 1)
    np.testing.assert_array_equal(y.cpu().numpy(), golden_dct.inverse(wild))
    monkeypatch.setattr(packing, "part_of", lambda x: 200)
    for shape in SHAPES:
        same(random(shape, 1), "jpeg-act", {}, device)


@pytest.mark.parametrize("way", [lambda function: function, compiled])
def test_division_is_golden_for_every_coefficient(way, device):
    c = np.arange(-1 << 16, 1 << 16, dtype=np.int32).reshape(8, 8, -1)
    for d in 1, 2, 3, 24, 128, 255:
        table = torch.full((8, 8, 1), d, dtype=torch.int32, device=device)
        q = way(quantize.divide)(torch.from_numpy(c.copy()).to(device), table)
        np.testing.assert_array_equal(q.cpu().numpy(), div.quantize(c, d))
        back = way(quantize.multiply)(q, table)
        np.testing.assert_array_equal(back.cpu().numpy(), div.dequantize(div.quantize(c, d), d))


def test_lengths_of_jpeg_codes_are_goldens(device, native):
    rng = np.random.default_rng(5)
    blocks = rng.integers(-128, 128, (3000, 64)) * (rng.random((3000, 64)) < rng.random((3000, 1)) ** 3)
    blocks[0], blocks[1, :-1] = 0, 0
    blocks[1, -1] = -128
    q = torch.from_numpy(blocks.astype(np.int8)).to(device).T.reshape(8, 8, -1)
    for part in (slice(0, 1), slice(1, 2), slice(0, 3000)):
        assert int(runlength.size(q[:, :, part].contiguous())) == len(
            rle.encode(blocks[part].astype(np.int8))[0]) - len(blocks[part])


@pytest.mark.parametrize("name", element.FORMATS)
def test_ties_at_the_largest_element_of_mx_are_goldens(name, device, native):
    form = element.FORMATS[name]
    tie = np.float32(form.most + 2.0 ** (form.emax - form.mantissa - 1))  # of the largest and what would be next
    x = np.tile([tie, np.nextafter(tie, np.float32(0)), np.nextafter(tie, np.float32(np.inf)), form.most], 16)
    x[32:] *= -1
    same(np.float32(x).reshape(2, 32), "mx", {"format": name, "rule": "floor"}, device)


@pytest.mark.parametrize("name", element.FORMATS)
@pytest.mark.parametrize("rule", ["rceil", "even", "floor"])
def test_small_values_of_mx_are_goldens(rule, name, device, native):
    """Groups that are subnormal in part or in whole, up to scales for which these are nothing."""
    rng = np.random.default_rng(3)
    x = np.exp2(rng.uniform(-150, np.linspace(-127, -80, 200)[:, None], (200, 32))).astype(np.float32)
    x *= rng.choice(np.float32([1, -1]), x.shape)
    same(x, "mx", {"format": name, "rule": rule}, device)


def every_code(name, device):
    """All codes of a format with any scale, and all scales with any code, decoded here and by golden."""
    rng = np.random.default_rng(4)
    form = element.FORMATS[name]
    scale = np.concatenate([np.repeat(np.uint8([0, 1, 126, 127, 128, 253, 254, 255]), 2**form.width // 32 or 1),
                            np.arange(256, dtype=np.uint8)])
    if len(scale) % 2:
        scale = np.append(scale, np.uint8(127))
    codes = np.resize(np.arange(2**form.width, dtype=np.uint8), (len(scale), 32))
    codes[-256:] = rng.integers(0, 2**form.width, (256, 32))
    data = mx.pack(torch.from_numpy(codes), form.width).to(device)
    packed = Packed("mx", codes.shape, (torch.from_numpy(scale).to(device), data), 0, 0, 0, torch.float32)
    here = mx.Mx("mx", format=name).decode(packed).cpu().numpy()
    return here.view(np.uint32), element.decode(codes, scale[:, None], form).view(np.uint32)


@pytest.mark.parametrize("name", element.FORMATS)
def test_every_code_of_mx_is_goldens(name, device, native):
    """Those, too, that no tensor here is encoded to."""
    np.testing.assert_array_equal(*every_code(name, device))


def test_what_is_kept_as_it_is_must_not_be_changed_in_place(device):
    x = torch.ones(8, 8, device=device)
    one = lane.Lane("raw")
    packed = one.encode(x)
    x.add_(1)
    with pytest.raises(RuntimeError, match="changed in place after it was saved"):
        one.decode(packed)


@pytest.mark.parametrize("mode, options, lane", [(name, values, one) for name, mode in codecs.MODES.items()
                                                 for values, one in mode.file_modes], ids=str)
def test_every_mode_of_the_registry_has_a_codec_and_its_engines_agree(mode, options, lane, recwarn):
    x = torch.from_numpy(random((2, 5, 9, 19), 3))
    one, slow = codec(mode, options), codec(mode, options, "golden")
    assert type(slow) is Golden and type(one) is (codecs.import_object(lane.torch) if lane.torch else Golden)
    a, b = one.encode(x), slow.encode(x)
    assert (a.mode, a.nbytes, a.side) == (b.mode, b.nbytes, b.side)
    np.testing.assert_array_equal(one.decode(a).numpy(), slow.decode(b).numpy())


def test_a_slow_mode_is_said_once(monkeypatch, recwarn):
    monkeypatch.setattr("actcodec.torch.golden._said", set())
    monkeypatch.setitem(codecs.MODES, "bitpack-2", replace(codecs.find("bitpack-2"), torch=""))
    for _ in range(2):
        codec("bitpack-2", {})
        codec("sfpr", {})
    assert [str(one.message) for one in recwarn] == [
        "mode bitpack-2 has no torch version: its NumPy model does the work, on the CPU"]


def test_options_are_checked():
    with pytest.raises(ValueError, match="unknown DQT 'optM'"):
        lane.Lane("jpeg-act", dqt="optM")
    with pytest.raises(ValueError, match="unknown mode"):
        codec("gif", {})


@pytest.mark.parametrize("cdus", [1, 2])
def test_escapes_of_comet_count_wherever_they_are(cdus, device, native):
    """In the last round above all, whose last step adds nothing to a stream."""
    rng = np.random.default_rng(4)
    for count in range(1, 40, 2):
        x = np.rint(rng.normal(size=(1, 9 * count)) * np.exp(rng.normal(size=(1, 9 * count)) * 3)).astype(np.float32)
        x[0, rng.integers(0, x.size, count % 3)] = np.nan
        same(x, "comet", {"error_bound": 0.5, "cdus": cdus}, device)


@pytest.mark.parametrize("mode, options", [way for way in WAYS if way[1].get("coder") != "rice"], ids=str)
def test_native_kernels_in_several_threads_give_the_same_bits(mode, options, native):
    """Of a tensor that is large enough for three, whose parts are no whole tiles or words; and of one value."""
    threads = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        same(random((1, 3, 335, 201), 7), mode, options)
        same(random((1,), 8), mode, options)
    finally:
        torch.set_num_threads(threads)


def extreme_tiles(quantizer, rows, device="cpu"):
    """Coefficients of extreme integers, also as a CDU's blocks, and values of extreme coefficients, likewise."""
    rng, (forward, back, _) = np.random.default_rng(0), quantize.WAYS[quantizer]
    shape = 1, 1, rows, 204
    view, scales = blocks.view(shape), sfpr.Scales(torch.ones(1, device=device), torch.ones(1, device=device), True)
    y = np.where(rng.random(shape) < 0.5, rng.integers(-128, 128, shape), rng.choice([-128, 127], shape))
    x = torch.from_numpy(y.astype(np.float32)).to(device)
    q = torch.from_numpy(rng.integers(-128, 128, (8, 8, view.blocks(True))).astype(np.int8)).to(device)
    name, options = {"shift": ("jpeg-act", {}), "divide": ("jpeg-base", {}),
                     "steps": ("jpeg-act", {"quantizer": "div"})}[quantizer]
    one = codec(name, options)
    table = one._table(one._plan(shape, x.dtype), x.device)
    of_blocks = q.permute(2, 1, 0).reshape(-1, 64).view(torch.uint8)
    return ([tiles.encode(x, view, scales, False, forward, table, lines) for lines in (False, True)],
            [tiles.decode(one, view, scales, back, table, x.dtype) for one in (q, of_blocks)])


@pytest.mark.parametrize("quantizer", quantize.WAYS)
def test_native_tiles_are_those_of_the_operations_for_every_extreme(quantizer, monkeypatch):
    results = extreme_tiles(quantizer, 800)
    monkeypatch.setattr(kernels, "enabled", False)
    for native, expected in zip(results, extreme_tiles(quantizer, 800), strict=True):
        assert all(map(torch.equal, native, expected))
