"""What the report says, and that it adds up."""

import doctest
import json

import pytest

import actcodec.torch as at
from actcodec.files import UserError
from actcodec.torch import report
from tb.torch.models import gradients, small


@pytest.fixture(scope="module")
def summary():
    model = small()
    compress = at.Compress(model, "jpeg-act", dqt="optH")
    for _ in range(2):
        gradients(model, compress)
    return compress.report()


def test_totals_are_those_of_the_rows(summary):
    assert summary.total["nbytes"] == sum(row.nbytes for row in summary.rows) > 2e5
    assert summary.total["packed"] == sum(row.packed for row in summary.rows)
    assert summary.total["ratio"] == summary.total["nbytes"] / summary.total["packed"] > 4
    assert summary.total["packed"] < summary.total["peak"] < summary.total["peak_without"]
    everything = summary.total["nbytes"] + summary.total["other"]
    assert summary.total["peak_without"] == everything == sum(row.nbytes for row in summary.rows + summary.other)
    assert summary.total["peak"] <= sum(row.held for row in summary.rows + summary.other)
    for row in summary.rows:
        assert row.nbytes == 4 * report.math.prod(row.shape) and row.ratio == row.nbytes / row.packed > 1
        assert row.passes == 2 and row.encode_seconds > 0 and row.decode_seconds > 0


def test_the_table_has_a_line_for_each_row(summary):
    lines = str(summary).splitlines()
    assert len(lines) == len(summary.rows) + 3
    assert lines[0].split()[:4] == ["layer", "kind", "mode", "shape"]
    first = next(line for line in lines if line.startswith("layers.0.bn1"))
    assert first.split()[:5] == ["layers.0.bn1", "dense", "jpeg-act", "optH", "8x8x16x16"]
    assert lines[-2].split()[0] == "all" and f"{summary.total['ratio']:.2f}" in lines[-2].split()
    assert lines[-1].startswith("peak memory: ")


def test_json_is_the_same(summary, tmp_path):
    text = summary.to_json(tmp_path / "report.json")
    assert (tmp_path / "report.json").read_text() == text + "\n"
    read = json.loads(text)
    assert read["passes"] == 2 and read["total"] == summary.total
    assert [row["layer"] for row in read["rows"]] == [row.layer for row in summary.rows]
    assert [row["packed"] for row in read["rows"]] == [row.packed for row in summary.rows]
    assert any(row["error"] is None for row in read["rows"]) and all("shape" in row for row in read["rows"])


@pytest.mark.parametrize("name", ["report.png", "report.svg"])
def test_the_picture(summary, tmp_path, name):
    summary.plot(tmp_path / name)
    assert (tmp_path / name).stat().st_size > 5000
    with pytest.raises(UserError, match="not the name of a picture"):
        summary.plot(tmp_path / "report.txt")


def test_a_report_without_passes():
    empty = at.Compress(small()).report()
    assert not empty.rows and empty.total["ratio"] == 1 and "all" in str(empty)


@pytest.mark.parametrize("count, text", [(0, "0 B"), (999, "999 B"), (1000, "0.977 KiB"), (4096, "4 KiB"),
                                         (1 << 20, "1 MiB"), (5 << 28, "1.25 GiB"), (7 << 40, "7168 GiB")])
def test_sizes_are_readable(count, text):
    assert report.size(count) == text


def test_examples_run():
    done = doctest.testmod(at)
    assert done.attempted and not done.failed
