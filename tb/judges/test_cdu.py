"""The whole path against plain loops, on every mode, shape and number of CDUs, and on real activations."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import actcodec
from actcodec.golden.jpegact import nibble, rice, sfpr
from actcodec.golden.offload import blocks
from tb import reference
from tb.harness import regress
from tb.judges import oracles, test_nibble, test_rice

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")

MODES = pytest.mark.parametrize("mode", reference.LEGAL)
PLAIN = {nibble: test_nibble.encoded, rice: test_rice.encoded}
SHAPES = pytest.mark.parametrize("shape", oracles.SHAPES, ids=str)
SAMPLE = Path(actcodec.__file__).parent / "data" / "resnet20.npz"


def awkward(shape):
    """A half sparse tensor with a huge and a zero channel, -0.0, NaN (quiet, signalling), Inf and subnormals."""
    random = np.random.default_rng(0)
    x = (random.standard_normal(shape) * (random.random(shape) > 0.5)).astype(np.float32)
    x[:, 1:2] *= np.float32(5e37)
    x[:, 2:3] = 0
    special = 0x80000000, 0x7FC00000, 0x7F800001, 0xFF800001, 0x7F800000, 0xFF800000, 0x00000001, 0x807FFFFF
    x.view(np.uint32).flat[: x.size // 8 * 8 : 1 + x.size // 9] = special[: -(-(x.size // 8 * 8) // (1 + x.size // 9))]
    return x


@MODES
@SHAPES
def test_payload_equals_the_plain_loops(mode, shape):
    x = awkward(shape)
    for cdus in [1, 3, 8] if x.size < 10000 else [5]:
        c = reference.compress(x, mode, "optH", cdus, dead_zone=cdus % 4)
        coder = PLAIN.get(reference.CODERS.get(c.mode))
        code = coder and (lambda values, coder=coder, c=c: coder(values, c.code.word))
        seen = x.reshape(1, -1) if mode in reference.FLAT else x
        assert c.payload == oracles.payload_of(seen, c.mode, "optH", cdus, code, cdus % 4)


@pytest.mark.parametrize("mode, rows, width, height, channels", [
    (mode, *size) for mode in reference.LEGAL for size in (
        (9, 13, 2, 3), (40, 3, 7, 2), (8, 8, 100, 1), (23, 70, 1, 23), (30, 17, 4, 50), (1, 1, 1, 1))
    if mode not in reference.TILED or min(size[:2]) >= 8])
def test_rows_through_any_view_are_those_of_the_plain_loops(mode, rows, width, height, channels):
    """Channels that come back after the last one, more of them than rows, a last one with fewer rows, tiles in rows of
    several channels."""
    tiled = mode in reference.TILED
    x, view = awkward((rows, width)), blocks.View(rows, width, channels, height, tiled)
    scale = np.float32(2) ** np.random.default_rng(rows).integers(-3, 6, channels).astype(np.float32)
    k = scale if mode in reference.SCALED else None
    path = reference.LANE[mode].model.path
    settings = path.fit(x, view, k, path.settings(dqt="optH"))
    coder = reference.CODERS.get(mode)
    plain = coder and (lambda values: PLAIN[coder](values, settings[reference.NAMES[coder]]))
    own = np.array([scale[row // height % channels] for row in range(rows)])[:, None]
    payload = path.to_payload(x, view, k, settings, 3)
    assert payload == oracles.payload_of(x, mode, "optH", 3, plain, 0, own)
    r = None if k is None else sfpr.reciprocal(k)
    back = path.from_payload(payload, view, r, settings, 3)
    assert back.shape == x.shape
    again = path.to_payload(x, view, k, settings)
    assert np.array_equal(back.view(np.uint32), path.from_payload(again, view, r, settings).view(np.uint32))
    if mode == "sfpr":
        assert np.array_equal(back, sfpr.dequantize(sfpr.quantize(x, own), 1 / own))


@MODES
@SHAPES
@pytest.mark.parametrize("cdus", [3, *regress(1, 2, 4, 5, 6, 7, 8)])
def test_round_trip(mode, shape, cdus):
    x = awkward(shape)
    y = reference.decompress(reference.compress(x, mode, "optL", cdus))
    assert y.shape == shape
    assert y.dtype == np.float32
    if mode in reference.FLAT:
        expected = actcodec.decompress(actcodec.compress(x, mode))  # by way of a file
        assert np.array_equal(y.view(np.uint32), expected.view(np.uint32))
    elif mode in ("raw", "zvc"):
        assert np.array_equal(y.view(np.uint32), x.view(np.uint32))
    elif mode == "brc":
        assert np.array_equal(y.view(np.uint32), (x > 0).astype(np.float32).view(np.uint32))
    else:
        assert np.all(np.isfinite(y))
        assert np.array_equal(y, reference.decompress(reference.compress(x, mode)))  # for any number of CDUs


@pytest.mark.parametrize("mode, bound", [("sfpr", 0.5), ("sfpr-zvc", 0.5), ("jpeg-act", 80)])
def test_error_of_finite_values_is_bounded(mode, bound):
    """Half a step of the scale without the DCT; with it, no more than half of 8 steps in every coefficient."""
    x = np.random.default_rng(0).standard_normal((2, 3, 24, 40)).astype(np.float32)
    c = reference.compress(x, mode)
    steps = np.abs(reference.decompress(c) - x) * c.scales.reshape(-1, 1, 1)
    assert np.all((steps <= bound + 0.01) | (np.abs(x) * c.scales.reshape(-1, 1, 1) > 126))


@MODES
def test_a_tensor_need_not_be_contiguous(mode):
    x = awkward((3, 9, 12, 10))
    assert reference.compress(x.T, mode).payload == reference.compress(x.T.copy(), mode).payload


@pytest.mark.parametrize("shape, mode", [
    ((1, 1, 8, 8), "jpeg-act"), ((8, 1, 1, 8), "jpeg-act"), ((1, 1, 7, 8), "sfpr-zvc"), ((9, 9, 9, 7), "sfpr-zvc"),
    ((80, 80), "sfpr-zvc"),
])  # fmt: skip
def test_jpeg_act_falls_back_where_there_is_no_tile(shape, mode):
    c = reference.compress(awkward(shape), "jpeg-act", "jpeg80")
    assert c.mode == mode
    assert (c.table is None) == (mode != "jpeg-act")


@MODES
def test_ratio_is_bytes_of_the_tensor_over_bytes_of_the_payload(mode):
    x = awkward((2, 3, 7, 13))
    c = reference.compress(x, mode)
    assert c.payload_bytes == len(c.payload)
    assert c.ratio == x.nbytes / len(c.payload)
    assert c.blocks == (12 if mode.startswith("jpeg-") else 9 if mode in reference.FLAT else 11)


def test_a_table_of_ones_own_is_rounded_to_powers_of_two():
    x = awkward((2, 3, 16, 16))
    own = np.full((8, 8), 9.5)
    c = reference.compress(x, "jpeg-act", own)
    assert c.payload == reference.compress(x, "jpeg-act", "optL").payload


@pytest.mark.parametrize("kind, mode, dqt, ratio", [
    ("conv", "jpeg-act", "optL", 5.0), ("conv", "jpeg-act", "optH", 7.0), ("ReLU", "sfpr-zvc", "optL", 6.0),
    ("ReLU", "brc", "optL", 32.0), ("conv", "sfpr", "optL", 4.0),
])  # fmt: skip
def test_real_activations_compress_as_expected(kind, mode, dqt, ratio):
    with np.load(SAMPLE) as sample:
        tensors = [x for name, x in sample.items() if name.startswith(kind)]
    packed = [reference.compress(x, mode, dqt) for x in tensors]
    pooled = sum(x.nbytes for x in tensors) / sum(c.payload_bytes for c in packed)
    assert pooled == pytest.approx(ratio, rel=0.03)


@MODES
@pytest.mark.parametrize("change", [-64, -1, 1, 64])
def test_a_payload_of_another_length_is_refused(mode, change):
    c = reference.compress(awkward((2, 3, 7, 13)), mode, cdus=3)
    payload = c.payload[:change] if change < 0 else c.payload.ljust(len(c.payload) + change, b"\0")
    with pytest.raises(ValueError, match="payload"):
        reference.decompress(replace(c, payload=payload))


@pytest.mark.parametrize("mode", reference.CODERS)
def test_a_table_is_fitted_or_given(mode):
    """Of a ReLU tensor a straight one without the DCT; what another tensor of the layer had does as well, or nearly."""
    with np.load(SAMPLE) as sample:
        x, dense = sample["ReLU_layers_0_relu1"], sample["conv0"]
    c = reference.compress(x[:2], mode)
    assert c.code == reference.fit(x[:2], mode) and c.code.straight == mode.startswith("sfpr")
    assert not reference.fit(dense, mode).straight
    own, stale = reference.compress(x[2:], mode), reference.compress(x[2:], mode, code=c.code)
    assert stale.code == c.code and own.payload_bytes <= stale.payload_bytes < 1.05 * own.payload_bytes
    np.testing.assert_array_equal(reference.decompress(stale), reference.decompress(own))


@pytest.mark.parametrize("mode, ratio", [("jpeg-act-nibble", 11.98), ("jpeg-act-rice", 14.09)])
def test_coders_compress_real_activations_as_expected(mode, ratio):
    with np.load(SAMPLE) as sample:
        packed = [(x.nbytes, reference.compress(x, mode, "optH")) for name, x in sample.items()
                  if name.startswith("conv")]
    assert sum(size for size, _ in packed) / sum(c.payload_bytes for _, c in packed) == pytest.approx(ratio, rel=0.003)


@pytest.mark.parametrize("mode", reference.CODERS)
def test_a_malformed_block_is_refused(mode):
    c = reference.compress(awkward((2, 3, 9, 13)), mode, cdus=3)
    payload = bytearray(c.payload)
    payload[0] ^= 0xFF
    with pytest.raises(ValueError, match=r"block|lengths"):
        reference.decompress(replace(c, payload=bytes(payload)))


@pytest.mark.parametrize("mode", reference.ITEM)
def test_a_changed_mask_is_refused(mode):
    c = reference.compress(awkward((2, 3, 7, 13)), mode, cdus=3)
    for bit in range(64):
        payload = bytearray(c.payload)
        payload[bit // 8] ^= 1 << bit % 8
        try:
            y = reference.decompress(replace(c, payload=bytes(payload)))
        except ValueError as error:
            assert "do not add up" in str(error)
        else:  # masks of other blocks may make up for it: then it is only another tensor
            assert y.shape == c.shape


@pytest.mark.parametrize("part, wrong", [
    ("mode", "gzip"), ("shape", (2, 3, 7)), ("shape", (2, 3, 7, 0)), ("shape", (2, 3, 7, 7)),
    ("options", {"cdus": 0}), ("options", {"cdus": 9}), ("options", {"cdus": True}), ("options", {"dqt": "optX"}),
    ("side", b""), ("side", bytes(4)),
    *(("side", b"\x80\x3f\x80\x3f" + np.float32(scale).tobytes()[2:]) for scale in (np.nan, np.inf, -1, 1e-37, 2e38)),
])  # fmt: skip
def test_parts_that_do_not_fit_together_are_refused(part, wrong):
    c = actcodec.compress(awkward((2, 3, 7, 13)), "jpeg-act")
    with pytest.raises(ValueError, match=r"mode|shape|cdus|scale|side|DQT"):
        replace(c, **{part: wrong}).check()


def test_a_coders_table_that_is_none_is_refused():
    c = actcodec.compress(awkward((2, 3, 16, 13)), "jpeg-act", coder="rice")
    with pytest.raises(ValueError, match="rice_table"):
        replace(c, side=c.side[:-8] + b"\xff" * 8).check()


@pytest.mark.parametrize("x", [np.zeros((8, 8)), np.zeros((8, 8), np.float16), np.zeros((8, 8), np.int8)])
def test_anything_but_a_float32_array_is_a_type_error(x):
    with pytest.raises(TypeError, match="float32"):
        reference.compress(x, "raw")


@pytest.mark.parametrize("shape", [(), (8,), (2, 8, 8), (1, 1, 1, 8, 8), (0, 8), (1, 2, 0, 8)])
def test_other_shapes_are_refused(shape):
    with pytest.raises(ValueError, match="dimension"):
        reference.compress(np.zeros(shape, np.float32), "raw")


@pytest.mark.parametrize("mode, dqt, cdus, message", [
    ("jpeg-act", "optM", 1, "unknown DQT"), ("jpeg-act", np.ones(8), 1, "DQT"),
    ("raw", "optL", 0, "cdus"), ("raw", "optL", 9, "cdus"),
])  # fmt: skip
def test_wrong_parameters_are_refused(mode, dqt, cdus, message):
    with pytest.raises(ValueError, match=message):
        reference.compress(np.zeros((1, 1, 8, 8), np.float32), mode, dqt, cdus)
