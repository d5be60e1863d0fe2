"""Binarize against a plain loop."""

import numpy as np
import pytest

from actcodec.golden.gist import binarize

VALUES = np.array([0.0, -0.0, 1e-45, -1e-45, 1.0, -1.0, np.inf, -np.inf, np.nan, -np.nan, 3e38], np.float32)


@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 64, 1000])
def test_forward_sets_a_bit_for_each_positive_value(length):
    x = np.random.default_rng(length).choice(VALUES, length)
    expected = bytearray(-(-length // 8))
    for i, value in enumerate(x):
        expected[i // 8] |= (value > 0) << i % 8
    assert binarize.forward(x).tobytes() == bytes(expected)


def test_backward_copies_bits_where_the_mask_is_set():
    random = np.random.default_rng(0)
    x = random.choice(VALUES, (3, 5, 7))
    dy = random.integers(0, 2**32, x.shape, np.uint32).view(np.float32)  # NaNs with payloads among them
    dx = binarize.backward(dy, binarize.forward(x))
    assert np.array_equal(dx.view(np.uint32), np.where(x > 0, dy.view(np.uint32), 0))


@pytest.mark.parametrize("length", [0, 1, 3])
def test_backward_refuses_a_mask_of_another_length(length):
    with pytest.raises(ValueError, match="bytes"):
        binarize.backward(np.ones(12, np.float32), np.zeros(length, np.uint8))


def test_backward_refuses_a_mask_that_is_no_bytes():
    with pytest.raises(ValueError, match="content is int64, has to be uint8"):
        binarize.backward(np.ones(12, np.float32), np.array([257, 0]))
