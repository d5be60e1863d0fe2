"""Errors of real activations beside those of the paper's arithmetic, which test_paper.py judges."""

import numpy as np
import pytest

from actcodec.golden.division import codec, paper, table
from tb.judges.division import oracle

SAMPLE = oracle.sample()


def relative(error, x):
    return np.linalg.norm(error.astype(float)) / np.linalg.norm(x.astype(float))


@pytest.mark.parametrize(("bits", "seeds", "low", "high"), [
    (1, 2, -0.03, 0.03), (2, 5, -0.02, 0.02), (3, 2, -0.02, 0.02), (4, 2, -0.05, 0.01)])
def test_error_is_that_of_the_paper_s_arithmetic(bits, seeds, low, high):
    """Relative L2 error of each tensor, mean over seeds, beside the paper's in float64."""
    random = np.random.default_rng(bits)
    for name, x in SAMPLE.items():
        t = table.table(x, bits)
        ours, theirs = [], []
        for seed in range(seeds):
            ours.append(relative(codec.decode(codec.encode(x, t, bits, seed).payload, t.k, x.shape, bits) - x, x))
            theirs.append(relative(paper.decompress(paper.compress(x, 8, bits, random)) - x, x))
        assert low < np.mean(ours) / np.mean(theirs) - 1 < high, name


def test_means_of_blocks_are_nearer_than_with_independent_noise():
    """Error of the 8 x 8 means over that of the paper's arithmetic: less over all tensors, at most 15 % more in one."""
    shares = []
    for name, x in SAMPLE.items():
        t = table.table(x)
        errors = [[], []]
        for seed in range(3):
            results = (codec.decode(codec.encode(x, t, 2, seed).payload, t.k, x.shape),
                       paper.decompress(paper.compress(x, 8, 2, np.random.default_rng(seed))))
            for one, result in zip(errors, results, strict=True):
                one.append(relative(paper.pool(result - x.astype(float), 8), paper.pool(x.astype(float), 8)))
        shares.append(np.mean(errors[0]) / np.mean(errors[1]))
        assert shares[-1] < 1.15, name
    assert 0.7 < np.mean(shares) < 0.9
