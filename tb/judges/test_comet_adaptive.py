"""The control of the error bound against SciPy's correlation: the gradients of a convolution's weights, with compressed
activations and without; and the schedule and the batch against plain rules."""

import numpy as np
import pytest
from scipy import signal, stats

from actcodec.golden.comet import comet, prequantise
from actcodec.golden.comet.adaptive import Adaptive, batch, calibrate, momentum

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")


def weight_gradients(x, g):
    """Of a convolution with input x [N, C, H, W], whose output's gradient is g: sums over images and positions."""
    return np.array([[signal.correlate(x[:, c], g[:, o], "valid")[0] for c in range(x.shape[1])]
                     for o in range(g.shape[1])])


def adaptive(window=1000, **changes):
    return Adaptive(["a", "b"], **{"a": 2.0, "window": window} | changes)


def run(control, a, b, iterations):
    """Bounds of two layers by what their momentum is in an iteration (the rest is 1); returns when they were set."""
    due = []
    for i in range(1, iterations + 1):
        if control.due(i):
            due.append(i)
            control.update(i, {"a": a(i), "b": b(i)}, {"a": 1, "b": 1}, 1, {"a": 1, "b": 1})
    return due


@pytest.mark.parametrize("positions, density, law", [(14, 0.5, "norm"), (6, 1.0, "norm"), (14, 0.2, "laplace"),
                                                     (8, 0.8, "uniform")])
def test_the_error_of_weight_gradients_is_one_percent_of_the_momentum(positions, density, law):
    """Equations 1 and 3 with the calibrated coefficient, on a convolution of 3 x 3."""
    random = np.random.default_rng(positions)
    x = random.standard_normal((8, 8, positions + 2, positions + 2)).astype(np.float32)
    x[random.random(x.shape) >= density] = 0
    g = getattr(stats, law).rvs(size=(8, 12, positions, positions), random_state=1) * 3e-3
    g -= g.mean()
    exact = weight_gradients(x.astype(np.float64), g)
    control = Adaptive(["conv"], calibrate(positions**2, g))
    eb = control.update(1000, {"conv": exact}, {"conv": g}, len(x), {"conv": np.count_nonzero(x) / x.size})["conv"]
    y, _ = comet.decompress(comet.compress(x, eb), x.shape)
    error = weight_gradients(y.astype(np.float64), g) - exact
    # the step is up to 1 % below twice the bound
    assert np.std(error) == pytest.approx(0.01 * np.abs(exact).mean() * prequantise.step(eb) / (2 * eb), rel=0.06)


def test_the_coefficient_of_normal_gradients():
    g = np.random.default_rng(0).normal(0, 1e-4, 1 << 20)
    assert calibrate(49, g) == pytest.approx(np.sqrt(np.pi / 6) * 7, rel=2e-3)


def test_equation_2_as_printed():
    assert momentum([1.0, 2.0], [10.0, -4.0], 0.9, 0.1).tolist() == pytest.approx([1.9, 1.4])


def test_equation_3():
    control = Adaptive(["a", "b"], {"a": 2.0, "b": 8.0}, fraction=0.05)
    bounds = control.update(1000, {"a": np.array([-4.0, 2.0]), "b": [[1.0]]}, {"a": [-1.0, 0.0], "b": np.array([4.0])},
                            16, {"a": 0.25, "b": 1.0})
    assert bounds == {"a": pytest.approx(0.05 * 3 / (2 * 0.5 * 2)), "b": pytest.approx(0.05 * 1 / (8 * 4 * 4))}
    assert control.bounds == bounds


def test_nothing_is_compressed_before_iteration_w():
    control = adaptive()
    assert [i for i in range(1, 1001) if control.due(i)] == [1000]
    assert control.bounds == {"a": None, "b": None}
    with pytest.raises(ValueError, match="nothing is due in iteration 999"):
        control.update(999, {}, {}, 1, {})


def test_w_stays_while_bounds_change_by_up_to_two():
    assert run(adaptive(), lambda i: 1.0 + (i == 2000), lambda i: 1.0, 5000) == [1000, 2000, 3000, 4000, 5000]


@pytest.mark.parametrize("factor", [2.001, 1 / 2.001, 1e6])
def test_w_halves_when_one_bound_changes_by_more_than_two_and_comes_back(factor):
    assert run(adaptive(), lambda i: 1.0, lambda i: factor if i >= 2000 else 1.0, 5000) == [
        1000, 2000, 2500, 3500, 4500]


def test_w_halves_again_and_again_but_stays_at_least_1():
    control = adaptive(window=10)
    assert run(control, lambda i: 3.0**i, lambda i: 1.0, 33) == [10, 20, 25, 27, *range(28, 34)]
    assert control.interval == 1


@pytest.mark.parametrize("wrong", [np.nan, np.inf, 0.0, 1e-40])
def test_a_layer_without_a_legal_bound_keeps_its_last_one_or_stays_uncompressed(wrong):
    control = adaptive()
    assert run(control, lambda i: 1.0 if i == 2000 else wrong, lambda i: 1.0, 3500) == [1000, 2000, 3000]
    assert control.bounds == {"a": 0.005, "b": 0.005}
    control = adaptive()
    run(control, lambda i: wrong, lambda i: 1.0, 3500)
    assert control.bounds == {"a": None, "b": 0.005}
    assert control.interval == 1000


@pytest.mark.parametrize("loss, density", [(0, 1), (1, 0), (0, 0), (np.nan, 1)])
def test_a_layer_without_gradients_or_activations_has_no_bound(loss, density):
    control = Adaptive(["a"], 1.0)
    assert control.update(1000, {"a": [1.0]}, {"a": [loss]}, 1, {"a": density}) == {"a": None}


@pytest.mark.parametrize("changes", [
    {"a": 0}, {"a": {"a": 1.0}}, {"a": {"a": 1.0, "b": -1}}, {"fraction": 0}, {"fraction": np.nan}, {"window": 0},
    {"window": 2.5}, {"window": True}, {"change": 0.5},
])  # fmt: skip
def test_wrong_parameters_are_refused(changes):
    with pytest.raises(ValueError, match=r"^(a|fraction|window|change) (is|has)"):
        adaptive(**changes)


def test_gradients_that_are_all_zero_give_no_coefficient():
    with pytest.raises(ValueError, match="all gradients are 0"):
        calibrate(9, np.zeros(4))


@pytest.mark.parametrize("memory, fixed, sample, ratio, maximum", [
    (16e9, 2e9, 100e6, 1.0, 256), (16e9, 2e9, 100e6, 10.0, 256), (16e9, 2e9, 100e6, 10.0, 2000), (1000, 0, 95, 1, 100),
    (1000, 150, 100, 1.0, 100), (1000, 151, 100, 1.0, 100), (1000, 0, 950, 1.0, 1), (1e9, 0, 1, 1, 1000),
])  # fmt: skip
def test_the_batch_is_the_largest_power_of_two_within_95_percent(memory, fixed, sample, ratio, maximum):
    legal = [2**k for k in range(20) if 2**k <= maximum and fixed + 2**k * sample / ratio <= 0.95 * memory]
    assert batch(memory, fixed, sample, ratio, maximum) == max(legal)


@pytest.mark.parametrize("memory, fixed, maximum", [(1000, 0, 0), (1000, 900, 8), (10, 0, 8)])
def test_no_room_for_a_single_sample_is_told(memory, fixed, maximum):
    with pytest.raises(ValueError, match="no batch"):
        batch(memory, fixed, 100, 1.0, maximum)


@pytest.mark.parametrize("place", range(5))
def test_a_batch_of_what_is_no_number_is_refused(place):
    arguments = [1000.0, 0.0, 100.0, 1.0, 8.0]
    arguments[place] = np.nan
    with pytest.raises(ValueError, match=r"no batch|ratio is nan"):
        batch(*arguments)


@pytest.mark.parametrize("ratio", [0, -1.0])
def test_a_ratio_that_is_none_is_refused(ratio):
    with pytest.raises(ValueError, match=f"ratio is {ratio}, has to be positive"):
        batch(1000, 0, 100, ratio, 8)
