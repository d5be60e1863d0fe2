"""ZVC against a plain loop."""

import numpy as np
import pytest

from actcodec.golden.jpegact import zvc
from tb.judges import oracles

ITEMS = pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])


def blocks_of_every_population(dtype):
    """Blocks with 0 to 64 non-zero items, in random places, the items' extremes among them."""
    random = np.random.default_rng(1)
    values = random.integers(1, np.iinfo(dtype).max, (650, 64), dtype, endpoint=True)
    values[random.random(values.shape) < 0.1] = 1 << 8 * np.dtype(dtype).itemsize - 1  # -128, and -0.0
    places = random.random(values.shape).argsort(axis=1)
    return np.where(places < np.arange(650)[:, None] % 65, values, 0).astype(dtype)


@ITEMS
def test_encode_is_mask_then_nonzero_items(dtype):
    data = blocks_of_every_population(dtype)
    coded = [oracles.zvc_block(block, np.dtype(dtype).itemsize) for block in data]
    payload, sizes = zvc.encode(data)
    assert payload.tobytes() == b"".join(coded)
    assert sizes.tolist() == [len(block) for block in coded]


@ITEMS
@pytest.mark.parametrize("count", [0, 1, 2, 3, 63, 64, 65, 650])
def test_decode_reverses_encode(dtype, count):
    data = blocks_of_every_population(dtype)[:count]
    payload, sizes = zvc.encode(data)
    decoded = zvc.decode(payload, count, dtype)
    assert decoded.dtype == dtype
    assert np.array_equal(decoded, data)
    assert np.array_equal(zvc.sizes(payload, count, np.dtype(dtype).itemsize), sizes)


@ITEMS
@pytest.mark.parametrize("change", [-200, -9, -8, -7, -1, 1, 7, 8, 9])
def test_a_payload_of_another_length_is_refused(dtype, change):
    payload, sizes = zvc.encode(blocks_of_every_population(dtype))
    payload = payload[:change] if change < 0 else np.pad(payload, (0, change))
    with pytest.raises(ValueError, match="do not add up"):
        zvc.decode(payload, sizes.size, dtype)


@ITEMS
@pytest.mark.parametrize("count", [0, 649, 651])
def test_another_number_of_blocks_is_refused(dtype, count):
    payload, _ = zvc.encode(blocks_of_every_population(dtype))
    with pytest.raises(ValueError, match="do not add up"):
        zvc.decode(payload, count, dtype)


def test_a_changed_mask_of_the_last_block_is_refused():
    payload, sizes = zvc.encode(blocks_of_every_population(np.uint8))
    for bit in range(64):
        changed = payload.copy()
        changed[payload.size - sizes[-1] + bit // 8] ^= 1 << bit % 8
        with pytest.raises(ValueError, match="do not add up"):
            zvc.decode(changed, sizes.size)


@pytest.mark.parametrize("dtype", ["i1", "u1", "?", "<f2", ">u2", "<f4", ">f4", "<i4", ">u4"])
def test_items_of_any_type_count_by_their_bits(dtype):
    bits = blocks_of_every_population({"2": np.uint16, "4": np.uint32}.get(dtype[-1], np.uint8))
    bits = bits != 0 if dtype == "?" else bits
    data = bits.view(dtype) if dtype[0] != ">" else bits.byteswap().view(dtype)
    expected, sizes = zvc.encode(bits)
    payload, actual = zvc.encode(data)
    assert np.array_equal(payload, expected)
    assert np.array_equal(actual, sizes)
    assert zvc.decode(payload, len(data), dtype).tobytes() == data.tobytes()


def test_negative_zero_is_not_zero():
    payload, sizes = zvc.encode(np.full((1, 64), -0.0, np.float32))
    assert sizes.tolist() == [8 + 4 * 64]
    assert np.all(np.signbit(zvc.decode(payload, 1, np.float32)))


@ITEMS
def test_blocks_may_be_tiles_and_payloads_bytes(dtype):
    data, item = blocks_of_every_population(dtype), np.dtype(dtype).itemsize
    for count in (0, 650):
        payload, sizes = zvc.encode(data[:count])
        assert np.array_equal(zvc.encode(data[:count].reshape(-1, 8, 8))[0], payload)
        assert np.array_equal(zvc.sizes(payload.tobytes(), count, item), sizes)
        assert np.array_equal(zvc.decode(payload.tobytes(), count, dtype), data[:count])


@pytest.mark.parametrize("dtype", ["V3", np.float64, np.complex64, object])
def test_items_of_another_size_are_refused(dtype):
    with pytest.raises(ValueError, match="legal are 1, 2 and 4"):
        zvc.encode(np.zeros((1, 64), dtype))
    with pytest.raises(ValueError, match="legal are 1, 2 and 4"):
        zvc.decode(bytes(8), 1, dtype)


@pytest.mark.parametrize("shape", [(), (64,), (2, 63), (2, 4, 16), (1, 1, 8, 8)])
def test_blocks_of_another_shape_are_refused(shape):
    with pytest.raises(ValueError, match="shape of the blocks"):
        zvc.encode(np.zeros(shape, np.uint8))
