"""Lorenzo prediction against plain loops, and back against NumPy's cumsum."""

import itertools
import math

import numpy as np
import pytest

from actcodec.golden.comet import lorenzo
from actcodec.golden.comet.lorenzo import CONFIGS, Config
from actcodec.golden.offload.blocks import View
from tb.judges import comet_oracles, oracles

ALL = [Config(*flags) for flags in itertools.product([False, True], repeat=4) if flags[0] or not flags[2]]
SHAPES = [*oracles.SHAPES, (2, 3, 24, 8), (3, 1, 5, 20), (1, 2, 8, 33)]
CASES = [(shape, config) for shape in SHAPES for config in ALL
         if not config.tiled or (len(shape) == 4 and shape[3] >= 8 and math.prod(shape[:3]) >= 8)]
# Rows of descriptors: ragged by every remainder, shorter than a sector, longer than a group, channels of any height.
VIEWS = [View(rows, width, 3, height, rows >= 8 and width >= 8) for rows, width, height in (
    *((9, width, 4) for width in range(1, 25)), (1, 13, 1), (2, 9, 1), (70, 8, 70), (5, 300, 2), (3, 512, 9),
    (300, 3, 7), (40, 33, 1), (17, 31, 5))]
ROWS = [(view, config) for view in VIEWS for config in ALL if view.tileable or not config.tiled]
EACH = pytest.mark.parametrize("shape, config", CASES, ids=str)


def integers(shape, seed=0):
    """Integers of all sizes, the extremes among them."""
    random = np.random.default_rng(seed)
    q = random.integers(-3, 4, shape)
    return np.where(random.random(shape) < 0.3, random.integers(-2047, 2048, shape), q).astype(np.int16)


@EACH
def test_residuals_equal_the_plain_loops(shape, config):
    q = integers(shape)
    if q.size > 10000:
        q = q[:1]
    u, groups = comet_oracles.symbols(q, config)
    assert lorenzo.residuals(q, q.shape, config).tolist() == u
    assert lorenzo.groups(q.shape, config.tiled).tolist() == groups


@pytest.mark.parametrize("view, config", ROWS, ids=str)
def test_rows_of_any_descriptor_equal_the_plain_loops(view, config):
    q = integers((view.rows, view.width))
    u, groups = comet_oracles.symbols(q, config, view.height)
    assert lorenzo.residuals(q, view, config).tolist() == u
    assert lorenzo.groups(view, config.tiled).tolist() == groups
    assert np.array_equal(lorenzo.restore(u, view, config), q)


@EACH
def test_restore_reverses_residuals(shape, config):
    for q in (integers(shape), np.full(shape, 2047, np.int16), np.full(shape, -2047, np.int16)):
        u = lorenzo.residuals(q, shape, config)
        assert u.dtype == np.uint16
        assert u.max() < 4096
        back = lorenzo.restore(u, shape, config)
        assert back.dtype == np.int16
        assert np.array_equal(back, q)


@EACH
def test_any_symbols_make_integers_of_12_bits_that_have_these_symbols(shape, config):
    u = np.random.default_rng(1).integers(0, 4096, math.prod(shape))
    q = lorenzo.restore(u, shape, config)
    assert q.min() >= -2048
    assert q.max() <= 2047
    assert np.array_equal(lorenzo.residuals(q, shape, config), u)


def zigzag(u):
    return [v // 2 if v % 2 == 0 else -(v + 1) // 2 for v in u.tolist()]


def test_a_group_of_a_line_is_a_cumulated_sum():
    u = np.random.default_rng(2).integers(0, 4096, 3 * 256 + 17)
    q = lorenzo.restore(u, (1, 785), CONFIGS["line"]).reshape(-1)
    for first in range(0, u.size, 256):
        expected = np.cumsum(zigzag(u[first : first + 256])) % 4096
        assert np.array_equal(q[first : first + 256] % 4096, expected)


@pytest.mark.parametrize("name, axes", [("row", [1]), ("column", [0]), ("plane", [1, 0])])
def test_a_group_of_tiles_is_cumulated_along_rows_and_columns(name, axes):
    u = np.random.default_rng(3).integers(0, 4096, 4 * 8 * 64)
    q = lorenzo.restore(u, (2, 2, 8, 64), CONFIGS[name]).reshape(-1, 8, 64)
    d = np.reshape(zigzag(u), (-1, 2, 8, 32)).swapaxes(1, 2)  # rows of eight tiles are two groups
    for axis in axes:
        d = np.cumsum(d, axis=1 if axis == 0 else 3)
    assert np.array_equal(q % 4096, d.reshape(-1, 8, 64) % 4096)


@pytest.mark.parametrize("shape", [(2, 3, 16, 24), (1, 2, 40, 16), (1, 1, 36, 8), (1, 5, 56, 56)], ids=str)
@pytest.mark.parametrize("name", CONFIGS)
def test_no_group_depends_on_another(shape, name):
    config, q = CONFIGS[name], integers(shape)
    groups, order = lorenzo.groups(shape, config.tiled), lorenzo.order(shape, config.tiled)
    before = lorenzo.residuals(q, shape, config)
    for group in {0, int(groups.max()) // 2, int(groups.max())}:
        changed = q.copy().reshape(-1)
        changed[order[groups == group]] += 1
        assert set(groups[before != lorenzo.residuals(changed, shape, config)]) == {group}


def test_zeros_have_symbol_zero_and_small_residuals_small_symbols():
    q = np.int16([[0, 1, -1, 2, -2, 2047, -2047]])
    assert lorenzo.residuals(q, q.shape, CONFIGS["none"]).tolist() == [0, 2, 1, 4, 3, 4094, 4093]
    assert lorenzo.residuals(q, q.shape, CONFIGS["none+"]).tolist() == [0, 1, 4095, 2, 4094, 2047, 2049]
    q = np.int16([[0, 0, 5, 5, 5, 0, 0]])
    assert lorenzo.residuals(q, q.shape, CONFIGS["line"]).tolist() == [0, 0, 10, 0, 0, 9, 0]


@pytest.mark.parametrize("shape", [(1, 1, 7, 8), (9, 9, 9, 7), (80, 80), (1, 1, 1, 1)])
@pytest.mark.parametrize("name", ["row", "column", "plane"])
def test_a_shape_without_tiles_is_refused(shape, name):
    for function in (lorenzo.residuals, lorenzo.restore):
        with pytest.raises(ValueError, match="has no tiles"):
            function(np.zeros(math.prod(shape), int), shape, CONFIGS[name])


def test_vertical_prediction_needs_tiles():
    with pytest.raises(ValueError, match="has to be tiled"):
        Config(tiled=False, horizontal=True, vertical=True, signed=True)
