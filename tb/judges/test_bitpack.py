"""Bitpack against Python's own packing of floats."""

import struct

import numpy as np
import pytest

from actcodec.golden.a2dtwp import bitpack

LENGTHS = (0, 1, 7, 8, 9, 31, 1000)


def values(length):
    return np.random.default_rng(length).integers(0, 2**32, length, np.uint32).view(np.float32)


@pytest.mark.parametrize("roundto", [1, 2, 3, 4])
@pytest.mark.parametrize("length", LENGTHS)
def test_the_first_bytes_big_endian_are_kept(length, roundto):
    x = values(length)
    # A float32 is copied through its bits: Python's floats are of 64, in which a signalling NaN may become a quiet one.
    expected = b"".join(struct.pack(">I", word)[:roundto][::-1] for word in x.view(np.uint32).tolist())
    packed = bitpack.pack(x, roundto)
    assert packed.dtype == np.uint8 and packed.tobytes() == expected


@pytest.mark.parametrize("roundto", [1, 2, 3, 4])
@pytest.mark.parametrize("length", LENGTHS)
def test_unpack_clears_what_was_dropped(length, roundto):
    x = values(length)
    restored = bitpack.unpack(bitpack.pack(x, roundto), roundto, length)
    assert restored.dtype == np.float32
    assert restored.view(np.uint32).tolist() == [word >> 32 - 8 * roundto << 32 - 8 * roundto
                                                 for word in x.view(np.uint32).tolist()]


def test_values_are_cut_and_not_rounded():
    x = np.float32([1.99999, -1.99999, 3.4e38, np.inf, -0.0, 1e-45])
    assert bitpack.unpack(bitpack.pack(x, 2), 2, 6).tolist() == [1.9921875, -1.9921875, 3.3895313892515355e38, np.inf,
                                                                0.0, 0.0]
    assert bitpack.pack(x[:1], 3).tolist() == [255, 255, 63]


@pytest.mark.parametrize("roundto", [2, 3])
def test_shape_and_order_are_those_of_memory(roundto):
    x = values(60).reshape(3, 4, 5)
    assert bitpack.pack(x, roundto).tobytes() == bitpack.pack(x.reshape(-1), roundto).tobytes()
    assert bitpack.pack(x.T, roundto).tobytes() == bitpack.pack(np.ascontiguousarray(x.T), roundto).tobytes()


@pytest.mark.parametrize("roundto", [0, 5, -1, 1.5, None])
def test_other_roundto_are_refused(roundto):
    with pytest.raises(ValueError, match="RoundTo must be"):
        bitpack.pack(values(3), roundto)
    with pytest.raises(ValueError, match="RoundTo must be"):
        bitpack.unpack(np.zeros(12, np.uint8), roundto, 3)


def test_an_array_that_is_too_short_is_refused():
    with pytest.raises(ValueError, match="3 values of 3 bytes need 9 bytes, there are 8"):
        bitpack.unpack(np.zeros(8, np.uint8), 3, 3)


@pytest.mark.parametrize("content, count, message", [
    (np.array([300, 257]), 2, "content is int64, has to be uint8"), (np.ones(4, np.float32), 2, "content is float32"),
    (np.arange(4, dtype=np.uint8), -1, "count is -1, has to be at least 0")])
def test_other_content_and_counts_are_refused(content, count, message):
    with pytest.raises(ValueError, match=message):
        bitpack.unpack(content, 1, count)
