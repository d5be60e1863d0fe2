"""Kernels in Triton are golden bit for bit, as the operations are; without a GPU, by Triton's interpreter."""

import dataclasses
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

import actcodec.torch as at
from actcodec.golden.comet import book as books
from actcodec.golden.comet import lorenzo, prequantise
from actcodec.golden.jpegact import nibble, rice, rle
from actcodec.golden.mx import element
from actcodec.golden.offload import blocks
from actcodec.torch import blockcodes, comet, kernels, packing, quantize, runlength
from actcodec.torch.golden import codec
from tb.torch import ptx
from tb.torch.conftest import IN_TRITON
from tb.torch.test_blockcodes import CODES
from tb.torch.test_blockcodes import blocks as blocks_of_a_spectrum
from tb.torch.test_blockcodes import tables as some_tables
from tb.torch.test_lane import every_code, extreme_tiles, nasty, random, same, tiny
from tb.torch.test_packing import bits_of_bounds

# some products are infinite, before other codes take the place of theirs, or as float16
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
SHAPES = [(2, 5, 9, 19), (1, 2, 24, 20), (3, 4, 3, 3), (700,), (1,)]  # tiles across planes, in planes, and none


def ties(shape, seed):
    """Half way between two codes, and scales half way between two bfloat16."""
    rng = np.random.default_rng(seed)
    x = (rng.integers(-4096, 4096, shape) >> rng.integers(0, 12, shape)) * np.exp2(rng.integers(-8, 1, shape))
    if len(shape) > 1:
        scale = (rng.integers(128, 256, shape[1]) + 0.5) / 128
        x = x / np.maximum(np.abs(x).max(), 1)
        x.reshape(*shape[:2], -1)[0, :, 0] = 144 / scale
    return x.astype(np.float32)


@pytest.fixture
def launches(triton, monkeypatch):
    """The launches of a test."""
    from actcodec.torch.kernels import launch

    log = []
    monkeypatch.setattr(launch, "record", lambda *one: log.append(ptx.Launch.of(*one)))
    return log


@pytest.mark.parametrize("mode, options", IN_TRITON, ids=str)
@pytest.mark.parametrize("make, shapes", [(random, SHAPES), (nasty, SHAPES[::2]), (tiny, SHAPES[1::2])],
                         ids=["random", "nasty", "tiny"])
def test_modes_are_golden(make, shapes, mode, options, triton, launches):
    for seed, shape in enumerate(shapes):
        same(make(shape, seed), mode, options, triton)
    same(ties(SHAPES[0], ord(make.__name__[0])), mode, options, triton)
    assert launches


def bits_of(data):
    """The bits of all tensors of a payload."""
    if isinstance(data, torch.Tensor):
        return [data.contiguous().view(-1).view(torch.uint8).tolist()]
    return [bits for one in data for bits in bits_of(one)] if isinstance(data, tuple) else []


@pytest.mark.parametrize("mode, options", [one for one in IN_TRITON if one[1].get("coder") not in CODES], ids=str)
def test_what_is_held_is_that_of_the_operations(mode, options, triton, monkeypatch):
    one, x = codec(mode, options), torch.from_numpy(ties((2, 4, 3, 20), 6)).to(triton)  # some rows end with a block
    bits = bits_of(one.encode(x).data)
    monkeypatch.setattr(kernels, "enabled", False)
    assert bits and bits == bits_of(one.encode(x).data)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_bits_of_bounds(dtype, triton):
    for bits, expected in bits_of_bounds(dtype, triton):
        assert torch.equal(bits, expected)


def test_many_channels_and_programs(triton):
    for mode in "sfpr-zvc", "mx", "dpr-fp10":
        same(ties((2, 1500, 2, 2), 1), mode, {}, triton)
    same(random((2, 3, 40, 41), 2), "jpeg-act", {}, triton)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("mode, options", [("sfpr", {}), ("jpeg-act", {}), ("dpr-fp10", {}), ("mx", {"rule": "even"}),
                                           ("division", {}), ("brc", {}), ("ssdc-fp8", {}), ("bitpack-1", {}),
                                           ("bitpack-3", {}),
                                           ("mx", {"format": "e4m3", "coder": "zvc"}), ("comet", {}),
                                           ("comet", {"error_bound": 1e-3})], ids=str)
def test_tensors_of_16_bits_are_read_and_written(mode, options, dtype, triton):
    one = codec(mode, options)
    for make in nasty, random:
        x = torch.from_numpy(make((2, 5, 9, 19), 2)).to(triton, dtype)
        assert one.reads(x) and not one.reads(x.float()) and not one.reads(x.transpose(2, 3))
        packed, expected = one.encode(x), one.encode(x.float())
        assert (packed.nbytes, packed.side) == (expected.nbytes, expected.side)
        outliers = expected.data[-1] if mode == "comet" else expected.data[:0]  # which are kept as they are
        assert packed.held == expected.held - 2 * len(outliers)
        y, z = one.decode(packed), one.decode(expected).to(dtype)
        assert y.dtype == dtype and torch.equal(y.isnan(), z.isnan())
        assert torch.equal(y.nan_to_num(1).view(torch.int16), z.nan_to_num(1).view(torch.int16))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("preset", ["jpeg-act", "gist-fp8"])
def test_a_model_of_16_bits_has_the_gradients_of_the_operations(preset, dtype, triton, launches, monkeypatch):
    x, gradients = torch.from_numpy(random((4, 3, 8, 8), 1)).to(triton, dtype), []
    for enabled in True, False:
        monkeypatch.setattr(kernels, "enabled", enabled)
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(),
                                    torch.nn.Conv2d(8, 4, 3)).to(triton, dtype)
        with at.Compress(model, preset, min_values=1):
            loss = model(x).square().mean()
        loss.backward()
        gradients.append(torch.cat([one.grad.reshape(-1) for one in model.parameters()]))
    assert torch.equal(*gradients)
    assert any(f"*{ptx.TYPES[dtype]}" in one.types for one in launches)


@pytest.mark.parametrize("way", quantize.WAYS)
def test_tiles_are_those_of_the_operations_for_every_extreme(way, triton, monkeypatch):
    if triton == "cpu":
        monkeypatch.setattr("actcodec.torch.kernels.tiles.TILES", 2048)  # in one program
    results = extreme_tiles(way, 400, triton)
    monkeypatch.setattr(kernels, "enabled", False)
    for fused, expected in zip(results, extreme_tiles(way, 400, triton), strict=True):
        assert all(map(torch.equal, fused, expected))


def test_lengths_of_jpeg_codes_are_goldens(triton):
    rng = np.random.default_rng(5)
    q = rng.integers(-128, 128, (300, 64)) * (rng.random((300, 64)) < rng.random((300, 1)) ** 3)
    q[0], q[1, :-1], q[1, -1] = 0, 0, -128
    q = q.astype(np.int8)
    rows = torch.from_numpy(q).to(triton).T.reshape(8, 8, -1)
    for part in slice(0, 1), slice(1, 2), slice(0, 300):
        size = len(rle.encode(q[part])[0]) - len(q[part])
        assert int(runlength.size(rows[:, :, part].contiguous())) == size


@pytest.mark.parametrize("name", element.FORMATS)
def test_ties_at_the_largest_element_of_mx_are_goldens(name, triton):
    form = element.FORMATS[name]
    tie = np.float32(form.most + 2.0 ** (form.emax - form.mantissa - 1))  # of the largest and what would be next
    x = np.tile([tie, np.nextafter(tie, np.float32(0)), np.nextafter(tie, np.float32(np.inf)), form.most], 16)
    x[32:] *= -1
    same(np.float32(x).reshape(2, 32), "mx", {"format": name, "rule": "floor"}, triton)


@pytest.mark.parametrize("name", element.FORMATS)
def test_every_code_of_mx_is_goldens(name, triton):
    np.testing.assert_array_equal(*every_code(name, triton))


@pytest.mark.parametrize("dtype", packing.KINDS, ids=str)
def test_packing_is_that_of_the_operations(dtype, triton, monkeypatch):
    for count in 1, 8, 15003:
        x = torch.from_numpy(np.random.default_rng(count).integers(-2, 2, count)).to(triton, dtype)
        if dtype is torch.float32 and count > 8:
            x[:4] = torch.tensor([float("nan"), -0.0, 1e-45, -1e-45])
        x[count // 2:] = 0  # or it would save nothing
        packing_is_that_of_the_operations(x, count, monkeypatch)


def packing_is_that_of_the_operations(x, count, monkeypatch):
    results = []
    for enabled in True, False:
        monkeypatch.setattr(kernels, "enabled", enabled)
        some = packing.sparse(x, x.dtype is torch.float32)
        bits = packing.pack_bits(x)
        results.append([some.values, some.dense(count), bits, packing.unpack_bits(bits, count),
                        packing.unpack_values(bits, count, torch.float32), some.bits, some.count])
    (*tensors, _), (*others, _) = results
    assert results[0][-1] == results[1][-1]
    for one, two in zip(tensors, others, strict=True):
        assert (one is two is None) or torch.equal(one.view(torch.uint8), two.view(torch.uint8))


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_codes_are_packed(bits, triton, monkeypatch):
    codes = torch.from_numpy(np.random.default_rng(bits).integers(0, 1 << bits, 3001).astype(np.uint8)).to(triton)
    data = packing.pack_codes(codes, bits)
    assert torch.equal(packing.unpack_codes(data, bits, len(codes)), codes)
    monkeypatch.setattr(kernels, "enabled", False)
    assert torch.equal(packing.pack_codes(codes, bits), data)


TABLES = {"nibble": [nibble.Table([2] * 16, [1] * 16), nibble.Table([6] + [7] * 15, [0] + [3] * 15),
                     nibble.Table([0, 5] * 8, [2, 0] * 8)],
          "rice": [rice.Table([2] * 15, 16, (0, 1, 3, 6)), rice.Table([7] * 15, 0, (7, 7, 7, 7)),
                   rice.Table([5, 4, 5] * 5, 9, (0, 2, 4, 4))]}


def every_kind():
    """Blocks of zeros, of one value alone, of extremes, of more and more large values, until they are raw, and of some
    large ones anywhere."""
    rng = np.random.default_rng(0)
    large = np.arange(64) >= 64 - np.arange(65)[:, None]
    alone = np.eye(64, dtype=int) * np.where(np.arange(64) % 2, 1, -128)
    ends = np.array([-128, 127])[:, None] * np.ones(64, int)
    anywhere = rng.integers(-128, 128, (40, 64)) * (rng.random((40, 64)) < 0.4)
    return np.concatenate([alone * 0, ends, alone, large * 3, large * -9, large * 100, anywhere]).astype(np.int8)


def block_code_is_goldens(name, x, table, triton, monkeypatch):
    """The payload and its size are those of golden, of C++ and of operations, as are the blocks."""
    values, (payload, _) = torch.from_numpy(x.view(np.uint8)), CODES[name].encode(x, table)
    encoded = blockcodes.coder_of(name, values.to(triton)).encode(values.to(triton), table.word)
    native = blockcodes.NATIVE[name](kernels.library("blockcodes"))
    assert encoded.data.cpu().numpy().tobytes() == payload.tobytes()
    assert torch.equal(encoded.data.cpu(), native.encode(values, table.word).data)
    assert blockcodes.coder_of(name, values.to(triton)).size(values.to(triton), table.word) == len(payload)
    assert encoded.nbytes == len(payload) + 2 * -(-len(x) // 32)
    assert torch.equal(blockcodes.decode(name, encoded).cpu(), values)
    assert torch.equal(native.decode(encoded._replace(data=encoded.data.cpu())), values)
    monkeypatch.setattr(kernels, "enabled", False)
    assert blockcodes.coder_of(name, values) is None
    assert torch.equal(blockcodes.decode(name, encoded).cpu(), values)
    assert blockcodes.CODERS[name].size(values, table) == len(payload)
    monkeypatch.setattr(kernels, "enabled", True)


@pytest.mark.parametrize("straight", [False, True])
@pytest.mark.parametrize("name", CODES)
@pytest.mark.parametrize("n", [0, 1, 31, 32, 33, 100])
def test_block_codes_are_goldens(name, n, straight, triton, monkeypatch):
    rng = np.random.default_rng([n, straight])
    x = blocks_of_a_spectrum(rng, n)
    values = torch.from_numpy(x.view(np.uint8)).to(triton)
    assert blockcodes.coder_of(name, values).fit(values, straight) == CODES[name].fit(x, straight).word
    for table in some_tables(rng, CODES[name], x, straight):
        block_code_is_goldens(name, x, table, triton, monkeypatch)


@pytest.mark.parametrize("straight", [False, True])
@pytest.mark.parametrize("name", CODES)
def test_block_codes_of_every_kind_of_blocks_are_goldens(name, straight, triton, monkeypatch):
    x, lengths = every_kind(), set()
    for one in TABLES[name]:
        table = dataclasses.replace(one, straight=straight)
        lengths |= {*CODES[name].encode(x, table)[1].tolist()}
        block_code_is_goldens(name, x, table, triton, monkeypatch)
    assert {1, 65, 64 if name == "nibble" else 63} <= lengths


@pytest.mark.parametrize("straight", [False, True])
@pytest.mark.parametrize("name", CODES)
def test_tables_of_block_codes_are_those_of_many_blocks(name, straight, triton):
    x = blocks_of_a_spectrum(np.random.default_rng(4), 5000)
    values = torch.from_numpy(x.view(np.uint8)).to(triton)
    assert blockcodes.coder_of(name, values).fit(values, straight) == CODES[name].fit(x, straight).word


def test_the_smaller_of_two_payloads_is_held(triton):
    for sign in 1, -1:
        x = torch.from_numpy(np.arange(64 * 5) % 7 * sign).to(triton, torch.int8).view(torch.uint8).view(-1, 64)
        for name in CODES:
            encoded, size = blockcodes.smallest(name, x, (False, True))
            both = [blockcodes.smallest(name, x, (way,)) for way in (False, True)]
            assert size == min(each for _, each in both) == len(encoded.data)
            assert encoded.table == both[size != both[0][1]][0].table


STEPS = [prequantise.SMALLEST_STEP, 0.01171875, 1.0, 255 / 128, prequantise.LARGEST_STEP]
TILES = [(2, 5, 9, 19), (1, 1, 37, 13), (1, 2, 15, 8), (3, 1, 16, 40), (1, 1, 35, 300)]  # across one to many, not whole


@pytest.mark.parametrize("s", STEPS)
def test_integers_of_comet_are_goldens_beside_every_tie(s, triton):
    ties = np.float32((np.arange(-2050, 2050) + 0.5) * s)
    x = [np.nextafter(ties, np.float32(way)) for way in (-np.inf, np.inf)]
    x = np.concatenate([ties, *x, ties - np.float32(s / 2), nasty((300,), 1), tiny((300,), 2)])
    q, outliers = kernels.fused("comet", torch.empty(0, device=triton)).quantize(torch.from_numpy(x).to(triton), s)
    expected, outside = prequantise.quantize(x, s)
    np.testing.assert_array_equal(q.cpu().numpy(), expected)
    np.testing.assert_array_equal(outliers.cpu().numpy(), np.flatnonzero(outside))


@pytest.mark.parametrize("shape", [*SHAPES[3:], *TILES], ids=str)
def test_histograms_of_comet_are_goldens(shape, triton):
    rng, view, configs = np.random.default_rng(1), blocks.view((1, *shape)[-4:]), lorenzo.legal((1, *shape)[-4:])
    q = np.rint(np.exp(rng.normal(size=view.rows * view.width) * 3)).clip(-2047, 2047).astype(np.int16)
    q *= rng.choice(np.int16([-1, 1]), q.size)
    there = torch.from_numpy(q).to(triton)
    counts = kernels.fused("comet", there).histograms(there, view, [*map(comet.way, configs)])
    for config, own in zip(configs, counts, strict=True):
        np.testing.assert_array_equal(own, books.histogram(lorenzo.residuals(q, (1, *shape)[-4:], config)))


@pytest.mark.parametrize("predictor, cdus", [("none", 1), ("line", 3), ("row", 1), ("column", 8), ("plane", 1),
                                             ("plane", 3)])
def test_streams_of_comet_are_goldens(predictor, cdus, triton):
    """With rounds of escapes and outliers, the last ones of streams among them, and streams of nothing."""
    for seed, shape in enumerate(TILES):
        x = random(shape, seed).cumsum(2).cumsum(3)
        x *= np.exp2(np.random.default_rng(seed).integers(-2, 9, x.shape) // 8 * 4)
        x.reshape(-1)[[-3, -40]] = np.nan, 1e9
        for values in x, np.where(x > 20, x, 0):  # of which few symbols have codes, shorter than 8 bits
            same(np.float32(values), "comet", {"error_bound": 0.3, "predictor": predictor, "cdus": cdus}, triton)


class Counter(TorchDispatchMode):
    """How many operations of PyTorch run that a GPU would have to launch something for."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        name = function.overloadpacket.__name__
        self.count += not (function.is_view or name.startswith(("empty", "new_empty")))
        return function(*arguments, **(keywords or {}))


def operations(one, x, monkeypatch):
    """Launches of a codec, there and back, in operations of PyTorch, and in kernels."""
    from actcodec.torch.kernels import launch

    def start(*arguments):  # Triton's interpreter has operations of its own
        with _disable_current_modes():
            real(*arguments)

    one.decode(one.encode(x))  # tables are made once
    before, real = launch.launches, launch.start
    monkeypatch.setattr(launch, "start", start)
    with Counter() as counter:
        one.decode(one.encode(x))
    monkeypatch.setattr(launch, "start", real)
    return counter.count, launch.launches - before


MOST = {"sfpr": 5, "sfpr-zvc": 12, "jpeg-act": 15, "jpeg-base": 15, "brc": 2, "dpr-fp10": 2, "mx": 2, "division": 9,
        "comet": 24, "jpeg-act nibble": 14, "jpeg-act rice": 12, "sfpr-zvc nibble": 19, "mx rice": 9}


@pytest.mark.parametrize("mode", MOST)
def test_launches_are_few(mode, triton, monkeypatch):
    name, _, coder = mode.partition(" ")
    x, one = torch.from_numpy(random((4, 8, 2, 2), 3)).to(triton), codec(name, {"coder": coder} if coder else {})
    x = torch.nn.functional.interpolate(x, size=(16, 16), mode="bilinear")  # most coefficients are 0
    few = sum(operations(one, x, monkeypatch))
    monkeypatch.setattr(kernels, "enabled", False)
    many = sum(operations(one, x, monkeypatch))
    print(f"{mode}: {many} launches by operations, {few} by kernels")
    assert few <= MOST[mode] and many > 2 * few


@pytest.mark.parametrize("name", CODES)
def test_launches_of_block_codes_are_few(name, triton, monkeypatch):
    """To choose a table apart, five to encode, with the sums of sizes, what the CPU learns of them, and the zeros that
    a payload begins with, and two to decode."""
    x = torch.from_numpy(blocks_of_a_spectrum(np.random.default_rng(1), 40).view(np.uint8)).to(triton)
    table = CODES[name].fit(x.cpu().numpy()).word
    one = SimpleNamespace(encode=lambda x: blockcodes.coder_of(name, x).encode(x, table),
                          decode=lambda encoded: blockcodes.decode(name, encoded))
    assert sum(operations(one, x, monkeypatch)) <= 7


def kernels_of_sources():
    """The names of all kernels."""
    import re

    sources = [path.read_text() for path in kernels.FOLDER.glob("*.py")]
    return {name for source in sources for name in re.findall(r"^def (\w+_kernel)\(", source, re.M)}


def test_ptx_rounds_as_golden_does(triton, launches, tmp_path, monkeypatch):
    """Compiled for a GPU, no multiply-add is contracted, no subnormal is flushed, and no division is approximate."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    x = torch.from_numpy(random((2, 3, 16, 24), 1)).to(triton)
    for mode, options in IN_TRITON:
        one = codec(mode, options)
        one.decode(one.encode(x))
    for mode, y in (("jpeg-act", x.half()), ("sfpr", x.bfloat16()), ("mx", x.bfloat16()), ("brc", x.bfloat16()),
                    ("division", x[..., :7].half()), ("comet", x.bfloat16()),
                    ("jpeg-act", x[:1, :1, :8, :8]),  # with dimensions of 1, which are constants to Triton
                    *((mode, x[0, 0, 0, :1]) for mode in ("sfpr-zvc", "brc", "dpr-fp10", "mx", "division", "comet"))):
        one = codec(mode, {})
        one.decode(one.encode(y.contiguous()))
    for coder in CODES:
        one = codec("sfpr-zvc", {"coder": coder})
        one.decode(one.encode(x[0, 0, 0, :1].contiguous()))
    codec("comet", {"predictor": "plane", "cdus": 3}).encode(x)
    codes = torch.zeros(100, dtype=torch.uint8, device=triton)  # which no mode unpacks alone
    packing.unpack_codes(packing.pack_codes(codes, 4), 4, len(codes))
    different = {repr(one): one for one in launches}.values()
    assert {one.kernel for one in different} == kernels_of_sources()
    assert ptx.check([*different]) == {}


@pytest.mark.parametrize("line", ["fma.rn.f32 %f3, %f1, %f2, %f4;", "mul.ftz.f32 %f3, %f1, %f2;",
                                  "rcp.approx.ftz.f32 %f2, %f1;", "div.full.f32 %f3, %f1, %f2;"])
def test_wrong_ptx_is_found(line):
    assert ptx.wrong(f"{{\n\tadd.rn.f32 %f3, %f1, %f2;\n\t{line}\n\tmad.lo.s32 %r3, %r1, %r2, %r4;\n}}") == [line]


def test_without_triton_operations_do_the_work(triton, monkeypatch):
    kernels._in_triton.cache_clear()
    for name in "sfpr", "launch":
        monkeypatch.delitem(sys.modules, f"{kernels.__name__}.{name}", raising=False)
    monkeypatch.setitem(sys.modules, "triton", None)
    with pytest.warns(UserWarning, match="no kernels of sfpr in Triton"):
        same(random((2, 5, 9, 19), 1), "sfpr", {}, triton)
    kernels._in_triton.cache_clear()


def test_triton_is_imported_for_a_gpu_alone():
    code = """
import sys, torch
from actcodec.torch.golden import codec
one = codec("jpeg-act", {})
one.decode(one.encode(torch.ones(1, 1, 8, 8)))
assert "triton" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "TRITON_INTERPRET": "0"})


def test_which_tensors_they_take(triton, monkeypatch):
    x = torch.zeros(8, 8, device=triton)
    assert kernels.fused("gist", x) is not None and kernels.fused("signed", x) is None
    assert kernels.fused("gist", x, x.T) is None
    assert kernels.fused("gist", x.to("meta")) is None
    monkeypatch.setattr(kernels, "enabled", False)
    assert kernels.fused("gist", x) is None
