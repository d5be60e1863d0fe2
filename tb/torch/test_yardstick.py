"""What predicts the gradient's error: the table of docs/ratios.md has all groups, a case is train-check's."""

import json
import re

import pytest

from tb.torch import check, yardstick


def test_the_table_has_every_group():
    table = yardstick.DOCUMENT.read_text().partition("<!-- yardstick -->")[2].partition("<!-- /yardstick -->")[0]
    rows = dict(re.findall(r"^\| (.*?) \| (\d+) \|", table, re.M))
    sizes = {name: len(cases) for name, cases in yardstick.groups().items()}
    assert list(rows) == [*sizes, "the last three together", "all"]
    assert all(1 < int(rows[name]) <= size for name, size in sizes.items())
    assert int(rows["all"]) == sum(int(rows[name]) for name in sizes)


@pytest.mark.regress
def test_a_case_is_that_of_train_check():
    recorded = json.loads(check.RECORD.read_text())
    error, tensors, channels = yardstick.measure(*check.CASES["sfpr"])
    assert error == pytest.approx(recorded["sfpr"]["error"], rel=check.FACTOR["error"] - 1)
    assert 0.01 < tensors < 0.02 and 0.01 < channels < 0.02
    assert yardstick.measure("raw", {}) is None
