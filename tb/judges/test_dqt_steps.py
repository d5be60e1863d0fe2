"""The search for steps and their dead zone against all of them, and against the real codec."""

from functools import cache

import numpy as np
import pytest

import actcodec
from actcodec.golden.jpegact import dqt_steps, nibble, rice
from actcodec.golden.jpegact.dqt_steps import Scaling
from actcodec.metrics import channel_error, relative_error
from tb.harness import regress
from tb.judges import blockcodes

CODERS = {"zvc": None, "nibble": nibble, "rice": rice}
CODER = pytest.mark.parametrize("coder", CODERS)
EACH = pytest.mark.parametrize("coder", ["zvc", "nibble", *regress("rice")])  # where all steps are measured


@cache
def tensors():
    return blockcodes.tensors("conv")


@cache
def some():
    return [dqt_steps.sample(x, 48) for x in tensors()[::2]]


@cache
def scaled():
    return [dqt_steps.scaled(one) for one in some()]


@cache
def every(coder):
    """All steps and dead zones."""
    least = dqt_steps.floors(scaled())
    return {(zone, step): dqt_steps.measured(scaled(), CODERS[coder], np.maximum(np.uint8(step), least), zone)
            for step in range(2, 256) for zone in range(4)}


@CODER
@pytest.mark.parametrize("quarters, zone, scaling", [
    (2, 0, dqt_steps.PAPER), (31, 1, Scaling("tensor", None, 1.0)), (90, 2, Scaling("cap", 2.0, 1.3)),
    (255, 3, dqt_steps.PAPER)])
def test_ratio_and_errors_are_those_of_the_codec(coder, quarters, zone, scaling):
    table = np.full((8, 8), quarters, np.uint8)
    table[0, 0] = max(32, quarters)
    every = [*tensors(), np.ascontiguousarray(tensors()[0][:, :3, :13, :19])]  # with padding on both sides
    samples = [dqt_steps.scaled(dqt_steps.sample(x), scaling) for x in every]
    ratio, error = dqt_steps.measured(samples, CODERS[coder], table, zone)
    packed = [actcodec.compress(x, "jpeg-act", quantizer="div", coder=coder, dqt=table / 4, dead_zone=zone,
                                **scaling._asdict()) for x in every]
    assert ratio == pytest.approx(sum(x.nbytes for x in every) / sum(c.payload_bytes for c in packed))
    pairs = [(x, actcodec.decompress(c)) for c, x in zip(packed, every, strict=True)]
    assert error == pytest.approx(np.mean([relative_error(*pair) ** 2 for pair in pairs]) ** 0.5, rel=1e-5)
    _, error = dqt_steps.measured(samples, CODERS[coder], table, zone, channels=True)
    assert error == pytest.approx(np.mean([channel_error(*pair) ** 2 for pair in pairs]) ** 0.5, rel=1e-5)


@EACH
@pytest.mark.parametrize("error", [0.04, 0.06, 0.15, 0.23])
def test_no_other_step_is_better_for_an_error(coder, error):
    best = dqt_steps.best(some(), CODERS[coder], error=error)
    assert best[-2:] == every(coder)[best.dead_zone, best.step] and best.error <= error
    assert best.ratio > 0.995 * max(ratio for ratio, one in every(coder).values() if one <= error)


@EACH
@pytest.mark.parametrize("ratio", [5.0, 7.0, 9.0])
def test_no_other_step_is_better_for_a_ratio(coder, ratio):
    best = dqt_steps.best(some(), CODERS[coder], ratio=ratio)
    assert best[-2:] == every(coder)[best.dead_zone, best.step] and best.ratio >= ratio
    assert best.error < 1.005 * min(error for one, error in every(coder).values() if one >= ratio)


def test_the_best_way_to_scale_is_taken(monkeypatch):
    """Also where few tiles are tried first."""
    each = {way: dqt_steps.best(some(), None, 0.15, scalings=[way]) for way in dqt_steps.SCALINGS}
    most = max(one.ratio for one in each.values())
    assert most > 1.01 * each[dqt_steps.PAPER].ratio
    assert dqt_steps.best(some(), None, 0.15, scalings=dqt_steps.SCALINGS).ratio == most
    monkeypatch.setattr(dqt_steps, "FEW", 24)
    best = dqt_steps.best(some(), None, 0.15, scalings=dqt_steps.SCALINGS, dead_zones=(0, 1))
    assert best.error <= 0.15 and best.dead_zone < 2 and best.ratio > 0.97 * most


def test_floors_are_the_smallest_steps_that_do_not_clip():
    least, c = dqt_steps.floors(scaled()).astype(int), np.concatenate([s.coefficients for s in scaled()])
    assert np.all(least >= 2) and least[0, 0] == least.max()
    for quarters, clips in ((least, False), (np.maximum(least - 1, 2), True)):
        beyond = (np.abs(c / (16 * quarters) + 0.5) > 128).any(axis=0)
        assert np.array_equal(beyond, (least > 2) & clips)


@pytest.mark.parametrize("call, text", [
    (lambda: dqt_steps.best(some()), "either"), (lambda: dqt_steps.best(some(), rice, 0.1, 3.0), "either"),
    (lambda: dqt_steps.best(some(), nibble, error=0.001), "no table has an error of 0.001: errors are 0.0"),
    (lambda: dqt_steps.best(some(), ratio=40), "no table has a ratio of 40: .* ratios "),
])
def test_what_cannot_be_found_is_told(call, text):
    with pytest.raises(ValueError, match=text):
        call()


@pytest.mark.parametrize("channels", [False, True])
def test_tiles_that_are_all_zeros_do_not_count(channels):
    """What is picked of a tensor may be, though the tensor is not."""
    x = np.zeros((1, 1, 8, 32), np.float32)
    x[..., 8:16] = 1
    empty = dqt_steps.sample(x, 2)
    assert not empty.x.any()
    table = np.full((8, 8), 32, np.uint8)
    both = dqt_steps.measured([*scaled(), dqt_steps.scaled(empty)], None, table, 0, channels)
    assert both[1] == dqt_steps.measured(scaled(), None, table, 0, channels)[1] > 0
    assert dqt_steps.measured([dqt_steps.scaled(empty)], None, table, 0, channels)[1] == 0
    assert dqt_steps.best([*some(), empty], error=0.06, channels=channels).error <= 0.06
