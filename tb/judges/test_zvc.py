"""ZVC against a plain loop."""

import numpy as np
import pytest

from golden.jpegact import zvc
from tb.judges import oracles

ITEMS = pytest.mark.parametrize("dtype", [np.uint8, np.uint32])


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
