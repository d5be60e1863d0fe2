"""Collector and splitter order against queues of a plain loop."""

import numpy as np
import pytest

from actcodec.golden.jpegact import zvc
from actcodec.golden.offload.wire import stream
from tb.judges import oracles

BLOCKS = [0, 1, 3, 4, 5, 16, 31, 32, 33, 100]


def coded(count, item):
    """Blocks of every size, and their payload in ascending order."""
    random = np.random.default_rng(count)
    data = random.integers(1, 256, (count, 64)) * (random.random((count, 64)) < random.random((count, 1)))
    blocks = [oracles.zvc_block(block, item) for block in data]
    return blocks, np.frombuffer(b"".join(blocks), np.uint8), np.array([len(b) for b in blocks], int)


@pytest.mark.parametrize("cdus", range(1, 9))
@pytest.mark.parametrize("count", BLOCKS)
def test_collector_takes_one_block_from_each_cdu_in_turn(count, cdus):
    blocks, payload, sizes = coded(count, 1)
    assert stream.interleave(payload, sizes, cdus)[0].tobytes() == oracles.collected(blocks, cdus)


@pytest.mark.parametrize("item", [1, 4])
@pytest.mark.parametrize("cdus", range(1, 9))
@pytest.mark.parametrize("count", BLOCKS)
def test_splitter_needs_the_masks_alone(count, cdus, item):
    _, payload, sizes = coded(count, item)
    mixed, _ = stream.interleave(payload, sizes, cdus)
    split, actual = stream.deinterleave(mixed, zvc.sizes(mixed, count, item), cdus)
    assert np.array_equal(split, payload)
    assert np.array_equal(actual, sizes)


@pytest.mark.parametrize("length, count", [(0, 0), (1, 1), (128, 1), (129, 2)])
def test_packets_are_padded_with_zeros(length, count):
    packets = stream.packets(np.full(length, 7, np.uint8))
    assert packets.shape == (count, 128)
    assert packets.tobytes() == bytes([7] * length).ljust(128 * count, b"\0")


@pytest.mark.parametrize("cdus", [0, 9, -1, True, 2.0, "2", None, np.int64(2)])
def test_other_numbers_of_cdus_are_refused(cdus):
    with pytest.raises(ValueError, match="legal are the integers 1 to 8"):
        stream.order(4, cdus)
