"""JPEG-BASE's whole path against libjpeg, and against the CDU of jpeg-act where both have to be equal."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import actcodec
from actcodec.golden.jpegact import dct, div, jpeg, rle
from actcodec.golden.offload import blocks
from actcodec.golden.offload.wire import stream
from tb import reference
from tb.judges import libjpeg

with np.load(Path(actcodec.__file__).parent / "data" / "resnet20.npz") as sample:
    DENSE = {name: x for name, x in sample.items() if name.startswith("conv")}
SHAPES = [(1, 1, 8, 8), (2, 3, 7, 13), (1, 5, 17, 40), (3, 2, 9, 24), (1, 9, 1, 8)]


def tensor(shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("name", div.TABLES)
@pytest.mark.parametrize("tensor", DENSE)
@pytest.mark.parametrize("cdus", [1, 3])
def test_coefficients_are_those_that_libjpeg_reads(name, tensor, cdus):
    """Of a file of the same tensor, which another framing, other DC values and stuffed bytes make."""
    x, dqt = DENSE[tensor], div.table(name)
    encoded = reference.compress(x, reference.BASE, dqt, cdus)
    n = x.size // 64
    payload = np.frombuffer(encoded.payload, np.uint8)
    q = rle.decode(stream.deinterleave(payload, rle.sizes(payload, n), cdus)[0], n)
    read, _ = libjpeg.read(jpeg.files(x, dqt)[0])
    np.testing.assert_array_equal(q.reshape(-1, 8, 8), read.reshape(-1, 8, 8))
    back = dct.inverse(div.dequantize(read.reshape(-1, 8, 8), dqt))
    r = 1 / encoded.scales[blocks.view(x.shape).channel].astype(np.float64)[:, None]
    expected = blocks.join(back, blocks.view(x.shape), True) * np.float32(r)
    np.testing.assert_array_equal(reference.decompress(encoded), expected.reshape(x.shape))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("shift", [0, 3, 7])
@pytest.mark.parametrize("cdus", [1, 2, 8])
def test_powers_of_two_give_the_tensor_of_jpeg_act(shape, shift, cdus):
    """DIV by 2^s is SH, and what the coders keep is the same."""
    x, dqt = tensor(shape), np.full((8, 8), 2**shift)
    encoded = reference.compress(x, reference.BASE, dqt, cdus)
    other = reference.compress(x, "jpeg-act", dqt)
    np.testing.assert_array_equal(encoded.scales, other.scales)
    np.testing.assert_array_equal(reference.decompress(encoded), reference.decompress(other))


def test_payloads_of_any_number_of_cdus_have_the_same_blocks():
    x, dqt = tensor((2, 5, 30, 40)), div.table("jpeg80")
    n = blocks.view(x.shape).blocks(True)
    alone = reference.compress(x, reference.BASE, dqt).payload
    for cdus in range(2, 9):
        payload = np.frombuffer(reference.compress(x, reference.BASE, dqt, cdus).payload, np.uint8)
        assert stream.deinterleave(payload, rle.sizes(payload, n), cdus)[0].tobytes() == alone


def test_parts_are_coded_as_the_whole(monkeypatch):
    x, dqt = tensor((2, 5, 30, 40)), div.table("jpeg60")
    whole = reference.compress(x, reference.BASE, dqt, 3)
    monkeypatch.setattr("actcodec.golden.jpegact.cdu.PART", 24)
    parted = reference.compress(x, reference.BASE, dqt, 3)
    assert parted.payload == whole.payload
    np.testing.assert_array_equal(reference.decompress(parted), reference.decompress(whole))


def test_awkward_values_are_sfprs():
    x = tensor((1, 2, 8, 16))
    x[0, 0, 0, :3], x[0, 1] = (np.nan, np.inf, -np.inf), 0
    largest = np.nanmax(np.abs(x, where=np.isfinite(x), out=np.zeros_like(x)))
    plain = x.copy()
    plain[0, 0, 0, :3] = 0, largest, -largest  # 144 of SFPR's steps, which clip
    result, expected = (reference.compress(values, reference.BASE, "jpeg80") for values in (x, plain))
    assert result.payload == expected.payload
    np.testing.assert_array_equal(result.scales, expected.scales)
    assert not reference.decompress(result)[0, 1].any()


def test_damage_is_told():
    x, dqt = tensor((2, 3, 16, 16)), div.table("optL-div")
    encoded = reference.compress(x, reference.BASE, dqt)
    for payload in (encoded.payload[:-1], encoded.payload + b"\1", b"", encoded.payload[1:]):
        with pytest.raises(ValueError, match=r"do not add up|is damaged"):
            reference.decompress(replace(encoded, payload=payload))
    broken = bytearray(encoded.payload)
    broken[1:1 + broken[0]] = b"\xff" * broken[0]
    with pytest.raises(ValueError, match="block 0 is damaged: a code that is in no table"):
        reference.decompress(replace(encoded, payload=bytes(broken)))


@pytest.mark.parametrize("x, dqt, cdus, error, message", [
    (np.zeros((1, 1, 8, 8)), np.ones(64), 1, TypeError, "float32"),
    (np.zeros((1, 1, 8, 8), np.float32), np.zeros(64), 1, ValueError, "DQT"),
    (np.zeros((1, 1, 8, 8), np.float32), np.full(64, 256), 1, ValueError, "DQT"),
    (np.zeros((1, 1, 8, 8), np.float32), "optM", 1, ValueError, "unknown DQT"),
    (np.zeros((1, 1, 8, 8), np.float32), np.ones(64), 9, ValueError, "9"),
])  # fmt: skip
def test_what_cannot_be_compressed_is_refused(x, dqt, cdus, error, message):
    with pytest.raises(error, match=message):
        reference.compress(x, reference.BASE, dqt, cdus)


@pytest.mark.parametrize("shape", [(1, 1, 7, 8), (80, 80)], ids=str)
def test_what_has_no_tiles_is_sfprs(shape):
    x = tensor(shape)
    result, expected = reference.compress(x, reference.BASE, "optL-div"), reference.compress(x, "sfpr")
    assert (result.mode, result.code, result.payload) == ("sfpr", None, expected.payload)


def test_tables_are_words():
    dqt = np.arange(1, 65).reshape(8, 8)
    c = reference.compress(tensor((1, 1, 8, 8)), reference.BASE, dqt)
    assert c.table is None and c.code.word == sum(v << 8 * k for k, v in enumerate(range(1, 65)))
    np.testing.assert_array_equal(div.Table.of(c.code.word).divisors, dqt)
    with pytest.raises(ValueError, match="DQT"):
        div.Table.of(c.code.word - 1)
