"""The search for steps and their dead zone against all of them, and against the real codec."""

from functools import cache

import numpy as np
import pytest

from actcodec.golden.jpegact import dqt, dqt_steps, nibble, rice
from tb import reference
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
    return [dqt.sample(x, 48) for x in tensors()[::2]]


@cache
def every(coder):
    """All steps and dead zones."""
    least = dqt_steps.floors(some())
    found = [dqt_steps.measured(some(), CODERS[coder], np.maximum(quarters, least), zone)
             for quarters in range(2, 256) for zone in range(4)]
    return {(one.dead_zone, one.quarters.tobytes()): one for one in found}


@CODER
@pytest.mark.parametrize("quarters, zone", [(2, 0), (31, 1), (90, 2), (255, 3)])
def test_ratio_and_error_are_those_of_the_codec(coder, quarters, zone):
    table = np.full((8, 8), quarters, np.uint8)
    table[0, 0] = max(32, quarters)
    found = dqt_steps.measured([dqt.sample(x) for x in tensors()], CODERS[coder], table, zone)
    mode = "jpeg-act-div" if coder == "zvc" else f"jpeg-act-div-{coder}"
    packed = [reference.compress(x, mode, table / 4, dead_zone=zone) for x in tensors()]
    size = sum(c.payload_bytes for c in packed)
    assert found.quarters is table and found.dead_zone == zone
    assert found.ratio == pytest.approx(sum(x.nbytes for x in tensors()) / size)
    each = [np.square(reference.decompress(c) - x, dtype=float).sum() / np.square(x, dtype=float).sum()
            for c, x in zip(packed, tensors(), strict=True)]
    assert found.error == pytest.approx(np.mean(each) ** 0.5, rel=0.01)


@EACH
@pytest.mark.parametrize("error", [0.04, 0.06, 0.15, 0.23])
def test_no_other_step_is_better_for_an_error(coder, error):
    found = dqt_steps.best(some(), CODERS[coder], error=error)
    assert found[2:] == every(coder)[found.dead_zone, found.quarters.tobytes()][2:] and found.error <= error
    assert found.ratio > 0.995 * max(one.ratio for one in every(coder).values() if one.error <= error)


@EACH
@pytest.mark.parametrize("ratio", [5.0, 7.0, 9.0])
def test_no_other_step_is_better_for_a_ratio(coder, ratio):
    found = dqt_steps.best(some(), CODERS[coder], ratio=ratio)
    assert found[2:] == every(coder)[found.dead_zone, found.quarters.tobytes()][2:] and found.ratio >= ratio
    assert found.error < 1.005 * min(one.error for one in every(coder).values() if one.ratio >= ratio)


def test_floors_are_the_smallest_steps_that_do_not_clip():
    least, c = dqt_steps.floors(some()).astype(int), np.concatenate([s.coefficients for s in some()])
    assert np.all(least >= 2) and least[0, 0] == least.max()
    for quarters, clips in ((least, False), (np.maximum(least - 1, 2), True)):
        beyond = np.abs(c / (16 * quarters)).max(axis=0) > 127
        assert np.array_equal(beyond, (least > 2) & clips)


@pytest.mark.parametrize("call, text", [
    (lambda: dqt_steps.best(some()), "either"), (lambda: dqt_steps.best(some(), rice, 0.1, 3.0), "either"),
    (lambda: dqt_steps.best(some(), nibble, error=0.001), "no table has an error of 0.001: errors are 0.0"),
    (lambda: dqt_steps.best(some(), ratio=40), "no table has a ratio of 40: .* ratios "),
])
def test_what_cannot_be_found_is_told(call, text):
    with pytest.raises(ValueError, match=text):
        call()
