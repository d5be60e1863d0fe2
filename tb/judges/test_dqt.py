"""The search for DQTs against SciPy's optimisers, brute force, the real codec, and the paper's equations."""

from functools import cache
from itertools import product

import numpy as np
import pytest
from scipy.fft import idctn
from scipy.optimize import LinearConstraint, approx_fprime, linprog, milp
from scipy.special import entr

from actcodec.golden.jpegact import dct, dqt, dqt_gradient, nibble, quantize, rice, sfpr
from actcodec.golden.offload import blocks
from tb import reference
from tb.judges import blockcodes

PAIRS = np.tile([1, -1, *[0] * 62], (150, 1))  # one shift more and one less, among 64
NAMES = pytest.mark.parametrize("name", quantize.TABLES)


@cache
def tensors():
    return blockcodes.tensors("conv")


@cache
def counts():
    return dqt.total([dqt.sample(x) for x in tensors()])


def shifts_of(name):
    return quantize.shifts(quantize.table(name))


def relative_error(dqt_values):
    """Root of the mean square of the tensors' relative errors, of the whole path there and back."""
    each = []
    for x in tensors():
        y = reference.decompress(reference.compress(x, "jpeg-act", dqt_values)).astype(float)
        each.append(np.square(y - x).sum() / np.square(x, dtype=float).sum())
    return np.mean(each) ** 0.5


def relaxed(error, integral=False):
    """Bytes of the smallest payloads for an error by SciPy: tables may be mixtures of tables unless integral."""
    c = counts()
    size, squares = c.nonzeros.reshape(8, 64).copy(), c.errors.reshape(8, 64) / c.tensors
    allowed = error**2 - c.rest / c.tensors
    one = np.tile(np.eye(64), 8)  # each frequency has one shift
    fixed = np.zeros((8, 64))
    fixed[[s for s in range(8) if s != 3], 0] = 1
    if integral:
        limits = [LinearConstraint(squares.reshape(1, -1) / allowed, -np.inf, 1), LinearConstraint(one, 1, 1)]
        limits.append(LinearConstraint(fixed.reshape(1, -1), 0, 0))
        result = milp(size.reshape(-1), constraints=limits, integrality=np.ones(512), bounds=(0, 1))
    else:
        result = linprog(
            size.reshape(-1), squares.reshape(1, -1) / allowed, [1], np.vstack([one, fixed.reshape(1, -1)]),
            [1] * 64 + [0], bounds=(0, 1),
        )  # fmt: skip
    assert result.status == 0
    return 8 * c.tiles + result.fun


@NAMES
def test_size_and_error_are_those_of_the_codec(name):
    packed = sum(reference.compress(x, "jpeg-act", name).payload_bytes for x in tensors())
    assert counts().size(shifts_of(name)) == packed
    assert counts().nbytes == sum(x.nbytes for x in tensors())
    assert counts().error(shifts_of(name)) == pytest.approx(relative_error(name), rel=0.005)


@pytest.mark.parametrize("s", range(8))
def test_counts_are_those_of_every_frequency(s):
    q = np.concatenate([
        quantize.shift(dct.forward(blocks.split(sfpr.quantize(x, sfpr.scales(x).k), blocks.view(x.shape), True)), s)
        for x in tensors()
    ])  # fmt: skip
    assert np.array_equal(counts().nonzeros[s], np.count_nonzero(q, axis=0))
    assert counts().tiles == len(q)


def test_counts_of_tensors_add_up_and_samples_stand_for_all():
    parts = [dqt.count(dqt.sample(x)) for x in tensors()]
    both = parts[0] + parts[1]
    assert np.array_equal(both.nonzeros, parts[0].nonzeros + parts[1].nonzeros)
    assert (both.tensors, both.nbytes) == (2, parts[0].nbytes + parts[1].nbytes)
    for x, every in zip(tensors(), parts, strict=True):
        some = dqt.sample(x, 128)
        assert len(some.coefficients) == 128 == some.tiles / some.share
        for name in quantize.TABLES:
            assert dqt.count(some).error(shifts_of(name)) == pytest.approx(every.error(shifts_of(name)), rel=0.1)
            assert dqt.count(some).size(shifts_of(name)) == pytest.approx(every.size(shifts_of(name)), rel=0.1)


def test_padding_and_tiles_of_several_channels_count_by_their_values():
    x = np.random.default_rng(0).standard_normal((3, 5, 13, 21)).astype(np.float32)
    x *= np.float32([1, 2, 8, 0, 4])[:, None, None]
    total = dqt.total([dqt.sample(x)])
    c = reference.compress(x, "jpeg-act", "optH")
    error = np.square(reference.decompress(c) - x, dtype=float).sum() / np.square(x, dtype=float).sum()
    assert total.size(shifts_of("optH")) == c.payload_bytes
    assert total.error(shifts_of("optH")) == pytest.approx(error**0.5, rel=0.1)


def test_frontier_is_the_optimum_of_a_linear_program():
    """Between all tables and their mixtures no smaller size is possible for the error of any table of the frontier."""
    frontier = dqt.frontier(counts())
    assert np.all(np.diff(frontier.ratios) < 0)
    assert np.all(np.diff(frontier.errors) < 0)
    assert np.all(frontier.shifts[:, 0, 0] == 3)
    for i in range(3, len(frontier.ratios) - 1, len(frontier.ratios) // 8):
        assert counts().nbytes / frontier.ratios[i] == pytest.approx(relaxed(frontier.errors[i]), rel=1e-7)


def test_frontier_has_every_corner_of_the_hull_of_all_tables():
    """All tables of three frequencies that differ, with costs that do not even fall steadily."""
    random = np.random.default_rng(2)
    nonzeros, errors = np.zeros((8, 8, 8)), np.zeros((8, 8, 8))
    nonzeros[:, 2, 1:4] = np.sort(random.integers(0, 1000, (8, 3)), axis=0)[::-1]
    errors[:, 2, 1:4] = np.sort(random.random((8, 3)) ** 2, axis=0)
    errors[4, 2, 2] = errors[6, 2, 2]
    frontier = dqt.frontier(dqt.Counts(1, 10**6, 10, nonzeros, errors, 0.01))
    every = [(sum(nonzeros[s, 2, j + 1] for j, s in enumerate(t)), sum(errors[s, 2, j + 1] for j, s in enumerate(t)))
             for t in product(range(8), repeat=3)]  # fmt: skip
    corners, at = [], min(every)
    while True:  # from corner to corner by the steepest way
        corners.append(at)
        ways = [((at[1] - e) / (z - at[0]), z, e) for z, e in every if z > at[0] and e < at[1]]
        if not ways:
            break
        at = max(ways)[1:]
    sizes = 10**6 / frontier.ratios - 80
    assert np.allclose(sizes, [z for z, _ in corners])
    assert np.allclose(frontier.errors**2, [e + 0.01 for _, e in corners])


@NAMES
def test_best_is_at_most_half_a_percent_from_the_smallest_of_all_tables(name):
    error = float(counts().error(shifts_of(name)))
    best = dqt.best(counts(), error=error)
    assert counts().error(best) <= error
    assert counts().size(best) <= counts().size(shifts_of(name))
    assert counts().size(best) < 1.005 * relaxed(error, integral=True)
    ratio = counts().nbytes / counts().size(best)
    assert np.array_equal(dqt.best(counts(), ratio=ratio), best)
    assert counts().error(dqt.best(counts(), ratio=1.0001 * ratio)) > counts().error(best)


@pytest.mark.parametrize("name, gain", [("optL", 0.005), ("jpeg80", 0.03), ("optH", 0.06), ("jpeg60", 0.08)])
def test_best_gains_over_the_named_tables(name, gain):
    """At the error of the named table, and so it does when it really compresses."""
    error = float(counts().error(shifts_of(name)))
    table = 2.0 ** dqt.best(counts(), error=error)
    ratio = counts().nbytes / sum(reference.compress(x, "jpeg-act", table).payload_bytes for x in tensors())
    assert ratio * counts().size(shifts_of(name)) / counts().nbytes - 1 == pytest.approx(gain, abs=0.01)
    assert relative_error(table) < 1.005 * relative_error(name)


def test_first_shift_is_3_or_another_or_free():
    free = dqt.frontier(counts(), None)
    assert set(dqt.frontier(counts(), 5).shifts[:, 0, 0].tolist()) == {5}
    assert len(set(free.shifts[:, 0, 0].tolist())) > 1
    error = float(counts().error(shifts_of("optH")))
    assert counts().size(dqt.best(counts(), error, first=None)) <= counts().size(dqt.best(counts(), error))


@pytest.mark.parametrize("coder", [nibble, rice], ids=["nibble", "rice"])
@pytest.mark.parametrize("bound", ["error", "ratio"])
def test_descend_ends_where_no_step_helps(coder, bound):
    """Size and error are real ones, and within the bound; no shift changed alone, and no pair of some, is a gain."""
    samples = [dqt.sample(x, 24) for x in tensors()[::2]]
    some = dqt.total(samples)
    limit = float(some.error(shifts_of("optH"))) if bound == "error" else 10.0
    result = dqt.descend(samples, coder, **{bound: limit})

    def real(shifts, tables):
        size = 0
        for s, table in zip(samples, tables, strict=True):
            q = np.clip(np.floor(s.coefficients / 2.0 ** (6 + shifts) + 0.5), -128, 127).astype(np.int8)
            size += coder.encode(np.ascontiguousarray(q.swapaxes(1, 2)), table)[0].size * s.share
        return some.nbytes / size, float(some.error(shifts))

    assert real(result.shifts, result.tables) == pytest.approx((result.ratio, result.error))
    assert result.error <= limit if bound == "error" else result.ratio >= limit
    assert result.shifts[0, 0] == 3
    random = np.random.default_rng(0)
    for steps in [*np.eye(64, dtype=int)[1:], *-np.eye(64, dtype=int)[1:], *random.permuted(PAIRS, axis=1)]:
        other = result.shifts + steps.reshape(8, 8)
        if steps[0] == 0 and other.min() >= 0 and other.max() <= 7:
            ratio, error = real(other, result.tables)
            if bound == "error":
                assert ratio <= result.ratio or error > limit
            else:
                assert error >= result.error or ratio < limit
    if bound == "error":  # better than the best table for ZVC, with tables of its own
        start = dqt.best(some, error=limit)
        q = [quantize.shift(s.coefficients, start).swapaxes(1, 2) for s in samples]
        assert result.ratio > 1.01 * real(start, [coder.fit(v) for v in q])[0]


def plain_objective(divisors, alpha, coefficients, k):
    """Equation 12 of one tensor, x* by SciPy's inverse without rounding, L2 the root mean square."""
    exact = coefficients / 64.0
    q = np.clip(np.floor(exact / divisors + 0.5), -128, 127)
    p = np.bincount((q + 128).astype(int).ravel(), minlength=256) / q.size
    difference = idctn(exact - q * divisors, axes=(1, 2), norm="ortho") / k[:, None, None]
    return (1 - alpha) * 10 * entr(p).sum() / np.log(2) + alpha * 10000 * np.square(difference).mean() ** 0.5


@cache
def plain_samples():
    """Samples and, for each, the scale of every tile; the sample's tensors have whole tiles in every channel."""
    pairs = []
    for x in tensors():
        tiles = x.shape[2] * x.shape[3] // 64
        k = np.tile(sfpr.scales(x).k.astype(float).repeat(tiles), len(x))
        s = dqt.sample(x, 384)
        pairs.append((s, k[np.linspace(0, len(k) - 1, len(s.coefficients)).astype(int)]))
    return pairs


@pytest.mark.parametrize("alpha", [0.005, 0.025])
def test_objective_is_equation_12(alpha):
    random = np.random.default_rng(1)
    for divisors in (np.full((8, 8), 8.0), random.uniform(1, 60, (8, 8))):
        expected = np.mean([plain_objective(divisors, alpha, s.coefficients, k) for s, k in plain_samples()])
        result = dqt_gradient.objective([s for s, _ in plain_samples()], divisors, alpha)
        assert result == pytest.approx(expected, rel=1e-6)


def test_a_step_goes_against_the_forward_difference():
    """SciPy's gradient of the plain objective, with its difference of 5, times the rate; the first value stays."""
    sample, k = plain_samples()[2]
    start = np.full(64, 8.0)
    slope = approx_fprime(start, lambda d: plain_objective(d.reshape(8, 8), 0.005, sample.coefficients, k), 5.0)
    slope[0] = 0
    result = dqt_gradient.gradient_descent([sample], 0.005, steps=1)
    assert np.allclose(result, np.clip(start - 128 * slope, 1, 255).reshape(8, 8), rtol=1e-4)


def test_the_papers_method_finds_tables_of_the_authors_form():
    """At optH's alpha coarse for low frequencies and finer for high ones, as the authors' 26 to 19; at optL's flat."""
    samples, eight = [s for s, _ in plain_samples()], np.full((8, 8), 8.0)
    high, low = (dqt_gradient.gradient_descent(samples, alpha) for alpha in (0.005, 0.025))
    assert high[0, 0] == low[0, 0] == 8
    assert np.allclose(high[0, 1:], [34, 33, 31, 29, 29, 28, 24], atol=2)
    frequency = np.add.outer(np.arange(8), np.arange(8))
    assert np.corrcoef(frequency[frequency > 0], high[frequency > 0])[0, 1] < -0.8
    assert np.array_equal(quantize.shifts(low), shifts_of("optL"))
    for alpha, table in ((0.005, high), (0.025, low)):
        reached = dqt_gradient.objective(samples, table, alpha)
        assert reached < dqt_gradient.objective(samples, eight, alpha)
        for name in ("optL", "optH", "jpeg80", "jpeg60"):
            assert reached < dqt_gradient.objective(samples, quantize.table(name), alpha)


def test_a_step_too_far_is_taken_back():
    samples = [s for s, _ in plain_samples()]
    ways = [dqt_gradient.gradient_descent(samples, 0.025, steps=n) for n in range(5)]
    objectives = [dqt_gradient.objective(samples, d, 0.025) for d in ways]
    assert np.array_equal(ways[1], ways[0])
    assert objectives == sorted(objectives, reverse=True)
    assert objectives[-1] < objectives[0]


@pytest.mark.parametrize("call, text", [
    (lambda: dqt.sample(np.zeros((1, 1, 8, 8), np.float32)), "all zeros"),
    (lambda: dqt.sample(np.full((1, 1, 8, 8), np.nan, np.float32)), "not finite"),
    (lambda: dqt.sample(np.ones((1, 1, 8, 4), np.float32)), "too small for the DCT"),
    (lambda: dqt.best(counts()), "either"), (lambda: dqt.best(counts(), 0.1, 3.0), "either"),
    (lambda: dqt.best(counts(), error=0.001), "no table has an error of 0.001: errors are 0.0"),
    (lambda: dqt.best(counts(), ratio=40), "no table has a ratio of 40: .* ratios 3.*"),
    (lambda: dqt.descend([dqt.sample(tensors()[2], 8)], nibble, ratio=1e4), "no table has a ratio of 10000"),
])  # fmt: skip
def test_what_cannot_be_found_is_told(call, text):
    with pytest.raises(ValueError, match=text):
        call()


def test_a_tensor_without_a_choice_has_a_table():
    """A constant, whose mean alone is not zero, and clips under the finest shifts only."""
    one = dqt.count(dqt.sample(np.ones((1, 1, 8, 8), np.float32)))
    assert dqt.frontier(one).shifts.shape == (1, 8, 8)


@pytest.mark.parametrize("alpha", [np.nan, np.inf, -np.inf])
def test_an_alpha_that_is_no_number_is_refused(alpha):
    with pytest.raises(ValueError, match=f"alpha is {alpha}, has to be finite"):
        dqt_gradient.gradient_descent([plain_samples()[2][0]], alpha, steps=1)
