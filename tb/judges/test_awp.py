"""AWP against Algorithm 1 of its paper, line by line over batches and layers."""

from math import fsum, sqrt

import numpy as np
import pytest

from actcodec.golden.a2dtwp.awp import INTERVALS, STEP, THRESHOLDS, Awp, norms


def algorithm1(history, threshold, interval, start, step):
    """BitsPerLayer after each batch."""
    layers = len(history[0])
    bits, counters, result = [start] * layers, [0] * layers, []
    for batch in range(len(history)):
        for layer in range(layers):
            if batch:
                old, new = history[batch - 1][layer], history[batch][layer]
                if old > 0 and (new - old) / old < threshold:
                    counters[layer] += 1
            if counters[layer] == interval:
                bits[layer] = min(bits[layer] + step, 32)
                counters[layer] = 0
        result.append(list(bits))
    return result


@pytest.mark.parametrize("interval", [1, 2, 7])
@pytest.mark.parametrize("start, step", [(8, 8), (1, 3), (32, 8), (8, 30)])
@pytest.mark.parametrize("threshold", [-5e-2, -2e-3, 0.0, 1e-2])
def test_bits_are_those_of_algorithm_1(interval, start, step, threshold):
    random = np.random.default_rng(interval)
    drift = random.normal(0, [0.01, 0.1, 0.001, 0], (100, 4))
    history = np.maximum(10 * np.cumprod(1 + drift, axis=0), 0)
    history[50, 1] = 0  # a layer pruned to nothing, and back
    awp = Awp(4, threshold, interval, start, step)
    expected = algorithm1(history.tolist(), threshold, interval, start, step)
    for batch, bits in zip(history, expected, strict=True):
        assert awp.update(batch).tolist() == [-(-b // 8) for b in bits]
        assert awp.bits.tolist() == bits
    if threshold > 0:
        assert len({tuple(bits) for bits in expected}) > (start < 32)


@pytest.mark.parametrize("network", THRESHOLDS)
def test_a_layer_gains_a_byte_after_an_interval_of_shrinking_batches(network):
    threshold, interval = THRESHOLDS[network], INTERVALS[network]
    awp = Awp(2, threshold, interval)
    assert awp.bits.tolist() == [STEP, STEP] == [8, 8]
    norm = np.array([1.0, 1.0])
    awp.update(norm)
    for batch in range(interval):
        assert awp.roundto.tolist() == [1, 1], batch
        awp.update(norm)  # no change at all counts for nothing
        norm = norm * [1 + 2 * threshold, 1 + threshold / 2]
        awp.update(norm)
    assert awp.roundto.tolist() == [2, 1]


def test_no_more_than_32_bits():
    awp = Awp(1, 1e-3, 1, step=7)
    assert [int(awp.update([1.0])[0]) for _ in range(7)] == [1, 2, 3, 4, 4, 4, 4]
    assert awp.bits.tolist() == [32]


def test_norms_are_exact_sums():
    random = np.random.default_rng(0)
    weights = [random.normal(0, 1, shape).astype(np.float32) for shape in ((3, 4, 5), (1000,), (1,))] + [np.zeros(3)]
    exact = [sqrt(fsum(float(v) ** 2 for v in w.ravel())) for w in weights]
    assert np.allclose(norms(weights), exact, rtol=1e-14, atol=0)


@pytest.mark.parametrize("name, changed", [
    ("layers", {"layers": 0}), ("layers", {"layers": 1.5}), ("interval", {"interval": 0}), ("start", {"start": 33}),
    ("start", {"start": 0}), ("step", {"step": -8}), ("threshold", {"threshold": float("nan")}),
])
def test_other_parameters_are_refused(name, changed):
    with pytest.raises(ValueError, match=name):
        Awp(**{"layers": 3, "threshold": -1e-3, "interval": 10, **changed})


def test_another_number_of_layers_is_refused():
    with pytest.raises(ValueError, match="norms have shape"):
        Awp(3, -1e-3, 10).update([1.0, 2.0])


def test_norms_are_those_of_the_time_they_were_told():
    awp, norms = Awp(1, -1e-3, 1), np.ones(1)
    awp.update(norms)
    norms *= 0.5
    assert awp.update(norms).tolist() == [2]


def test_an_interval_that_is_shorter_than_the_state_has_counted_is_over():
    before, after = Awp(1, -1e-3, 10), Awp(1, -1e-3, 3)
    for batch in range(6):
        before.update([0.5**batch])
    after.load(before.state())
    assert after.update([0.5**6]).tolist() == [2]
    assert [int(after.update([0.5**batch])[0]) for batch in range(7, 13)] == [2, 2, 3, 3, 3, 4]
