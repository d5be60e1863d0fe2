"""The check of gradients finds what it is for. `make train-check` runs all of it."""

import json
import math

import pytest

import actcodec.torch as at
from tb.torch import check

GOOD = {"error": 0.02, "ratio": 4.0, "loss": 0.2}


def test_everything_is_recorded():
    assert set(json.loads(check.RECORD.read_text())) == set(check.CASES)


@pytest.mark.parametrize("case", ["none", "zvc", "jpeg-act", "sfpr signs"])
def test_errors_of_gradients_are_the_recorded_ones(case):
    name, options = check.CASES[case]
    model, exact = check.trained()
    compress = at.Compress(model, name, error_every=0, **options)
    error = check.relative(check.gradient(model, compress), exact)
    result = {"error": error, "ratio": compress.report().total["ratio"], "loss": 0.1}
    assert check.faults(case, result, json.loads(check.RECORD.read_text())[case] | {"loss": 0.1}) == ""


@pytest.mark.parametrize("case, change, what", [
    ("sfpr", {}, ""), ("sfpr", {"error": 0.015}, "error was 0.02"), ("sfpr", {"error": 0.026}, "error was 0.02"),
    ("sfpr", {"ratio": 3.7}, "ratio was 4"), ("sfpr", {"loss": 0.41}, "loss was 0.2"), ("sfpr", {"loss": 0.39}, ""),
    ("sfpr", {"loss": math.nan}, "a loss is NaN or infinite"), ("zvc", {}, "the gradient is another one"),
])
def test_what_is_wrong_is_said(case, change, what):
    assert check.faults(case, GOOD | change, GOOD).startswith(what)
    assert bool(check.faults(case, GOOD | change, GOOD)) == bool(what)
    if not what:
        assert check.faults(case, GOOD, None) == "nothing is recorded; run make train-check RENEW=1"


def test_a_network_that_diverges_is_seen(monkeypatch):
    monkeypatch.setattr(check, "train", lambda *arguments: [1.0] * 59 + [math.inf])
    monkeypatch.setattr(check, "trained", lambda: (check.fresh(), 0))
    monkeypatch.setattr(check, "gradient", lambda *arguments: 0)
    monkeypatch.setattr(check, "relative", lambda *arguments: 0.0)
    assert math.isnan(check.measure("none")["loss"])


def test_pictures_are_the_same_every_time():
    (x, y), (again, _) = check.batch(3, 16, 32), check.batch(3, 16, 32)
    assert x.equal(again) and x.shape == (16, 3, 32, 32) and len(set(y.tolist())) > 4
    assert not x.equal(check.batch(4, 16, 32)[0])


def test_names_pick_cases(capsys):
    with pytest.raises(SystemExit):
        check.main(["gif"])
    assert "unknown case 'gif', legal are none, cdma" in capsys.readouterr().err


def test_what_cannot_be_right_is_not_recorded():
    case, *_, other = check.CASES
    before = {case: GOOD}
    results = {case: GOOD | {"loss": float("nan")}, other: GOOD | {"ratio": 4.00001}}
    assert check.renewed(results, before) == {case: GOOD, other: GOOD | {"ratio": 4.0}}
