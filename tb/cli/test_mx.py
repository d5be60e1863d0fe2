"""Both engines make the same files of MX, and give the same values back."""

import numpy as np
import pytest

import actcodec
from actcodec import container, engines
from actcodec.golden.mx.element import FORMATS
from actcodec.golden.offload.memory import formats
from actcodec.tensors import restore, words
from tb.harness import SEED, regress
from tb.mx.tensors import SPECIAL

SHAPES = ((2, 3, 7, 13), (5, 96), (1, 1), (3, 40, 33))


def tensor(shape):
    """Magnitudes of all kinds, and values that are none."""
    random = np.random.default_rng(SEED)
    x = (random.standard_normal(shape) * np.exp2(random.integers(-40, 40, shape))).astype(np.float32)
    some = random.random(shape) < 0.02
    x[some] = random.choice(SPECIAL, some.sum())
    return x


@pytest.mark.parametrize("form", [pytest.param(form, marks=[] if form in ("int8", "e2m1") else pytest.mark.regress)
                                  for form in FORMATS])
def test_files_and_values_are_the_same(form):
    """Ragged tensors, fewer blocks than lanes; all rules, and scales in either place."""
    for shape, rule, scales in zip(SHAPES, ("rceil", "floor", "even", "rceil"), ("inline", "apart") * 2, strict=True):
        x, options = tensor(shape), {"format": form, "rule": rule, "scales": scales, "cdus": 4}
        golden, rtl = (actcodec.compress(x, "mx", engine=engine, **options) for engine in ("golden", "rtl"))
        assert (golden.payload, golden.options) == (rtl.payload, rtl.options), (shape, rule)
        back = [actcodec.decompress(golden, engine=engine).view(np.uint32) for engine in ("golden", "rtl")]
        np.testing.assert_array_equal(*back)


@pytest.mark.parametrize("coder", ["zvc", *regress("nibble", "rice")])
def test_files_behind_a_coder_are_the_same(coder):
    """Of ReLU maps and of others, in formats of 8 bits or fewer."""
    for shape, rule, form in zip(SHAPES, ("rceil", "floor", "even", "rceil"),
                                 ("e4m3", "e2m1", "e3m2", "int8") if coder == "zvc" else ["int8"] * 4, strict=True):
        x = tensor(shape) if shape[0] == 5 else np.maximum(tensor(shape), 0)
        options = {"format": form, "rule": rule, "coder": coder, "cdus": 4}
        golden, rtl = (actcodec.compress(x, "mx", engine=engine, **options) for engine in ("golden", "rtl"))
        assert (golden.payload, golden.side, golden.options) == (rtl.payload, rtl.side, rtl.options), (shape, form)
        back = [actcodec.decompress(golden, engine=engine).view(np.uint32) for engine in ("golden", "rtl")]
        np.testing.assert_array_equal(*back)


@pytest.mark.regress
@pytest.mark.parametrize("dtype", ["bfloat16", *regress("float16")])
def test_values_of_16_bits_go_through_a_coder(dtype):
    """Widened, as everywhere but in raw and zvc; both engines, and the file has the type."""
    x = np.maximum(np.random.default_rng(SEED).standard_normal((3, 40, 33)), 0).astype(np.float32)
    x = restore(formats.narrow(x, dtype), x.shape, dtype)
    for options in ({"format": "e4m3", "coder": "zvc"}, {"coder": "rice", "cdus": 2}):
        golden, rtl = (engines.compress(engine, x, "mx", **options)[0] for engine in ("golden", "rtl"))
        assert container.pack(golden) == container.pack(rtl)
        back = [engines.decompress(engine, container.unpack(container.pack(golden)))[0] for engine in ("golden", "rtl")]
        assert back[0].dtype == x.dtype
        np.testing.assert_array_equal(*map(words, back))


@pytest.mark.parametrize("cdus", [1, *regress(4)])
def test_hardware_counts_what_golden_counts_in_eight_cycles_a_block(cdus):
    from actcodec import codecs
    from actcodec.sim import rtl_engine

    x = np.full((32, 256), 1.9, np.float32)  # as many blocks in each lane
    x[:, 1::32] = np.nan
    x[0, 2] = np.inf
    mode = codecs.find("mx")
    options = mode.option_values({"format": "e4m3", "rule": "floor", "cdus": cdus})
    _, cycles = rtl_engine.compress(x, mode, **options)
    assert (cycles.nans, cycles.saturated) == (256, 32 * 256 - 256)
    _, more = rtl_engine.compress(np.tile(x, (5, 1)), mode, **options)
    assert more.cycles - cycles.cycles == 8 * (more.blocks - cycles.blocks)
    back = [rtl_engine.decompress(mode.model.compress(x, **options))[1] for x in (x, np.tile(x, (5, 1)))]
    assert back[1].cycles - back[0].cycles == 8 * (back[1].blocks - back[0].blocks)
