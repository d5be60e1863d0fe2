"""The ratios of COMET beside SZ3, zfp and cuSZ's codes that docs/ratios.md has."""

import numpy as np
import pytest

from actcodec import demo
from docs import beside, measured


@pytest.mark.regress
def test_what_is_recorded_is_measured_again():
    assert measured.round_cells(beside.rows()) == measured.load()["beside"], "run python -m docs.beside"


def test_cuszs_codes_are_no_shorter_than_the_entropy_of_its_symbols():
    x = demo.sample()["conv0"]
    q = np.floor(x.reshape(-1, 32).astype(np.float64) / 0.125 + 0.5).astype(int)  # no ties there
    assert not np.any(x / 0.125 % 1 == 0.5)
    d = q.copy()
    for row, column in np.ndindex(q.shape):
        above, left = row % 16 > 0, column % 16 > 0
        d[row, column] -= ((q[row - 1, column] if above else 0) + (q[row, column - 1] if left else 0)
                           - (q[row - 1, column - 1] if above and left else 0))
    _, counts = np.unique(d, return_counts=True)
    entropy = -np.sum(counts * np.log2(counts / d.size)) / 8
    assert np.abs(d).max() < 512
    assert entropy <= beside.cusz(x, 0.125) <= 1.03 * entropy
