"""README and docs/pytorch.md: their code runs, and prints what stands there."""

import json
import math
import re
from pathlib import Path

import pytest

from docs import training
from tb.torch import check

ROOT = Path(__file__).resolve().parents[2]
TIMES = 2  # columns at the end of a report's line, of which nobody knows how long they take
BLOCKS = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(name, heading=""):
    """[(code, what it prints)] of a document, from a heading on to the next one of its level."""
    text = (ROOT / name).read_text()
    if heading:
        text = re.split(r"^## ", text[text.index(f"\n## {heading}\n") + 1:], flags=re.MULTILINE)[1]
    matches = BLOCKS.findall(text)
    assert [kind for kind, _ in matches] == ["python", "text"] * (len(matches) // 2) and matches
    return [(matches[i][1], matches[i + 1][1]) for i in range(0, len(matches), 2)]


def number(word):
    try:
        return float(word.rstrip("%"))
    except ValueError:
        return None


def same(expected, printed):
    """Whether two texts are, but for times, and for numbers that another processor rounds differently."""
    expected, printed = (text.strip().splitlines() for text in (expected, printed))
    if len(expected) != len(printed):
        return False
    timed = expected and expected[0].endswith("dec. ms")
    for one, two in zip(expected, printed, strict=True):
        cut = TIMES if timed and not one.startswith(("layer ", "peak")) else 0
        one, two = (line.split()[: len(line.split()) - cut] for line in (one, two))
        if len(one) != len(two):
            return False
        for a, b in zip(one, two, strict=True):
            close = number(a) is not None and number(b) is not None and math.isclose(number(a), number(b), rel_tol=0.1,
                                                                                      abs_tol=2e-4)
            if a != b and not close:
                return False
    return True


@pytest.mark.parametrize("name, heading", [("README.md", "In PyTorch"), ("docs/pytorch.md", "")])
def test_code_prints_what_stands_there(name, heading, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    space = {}
    for code, expected in blocks(name, heading):
        exec(compile(code, name, "exec"), space)
        printed = capsys.readouterr().out
        assert same(expected, printed), f"{name} says\n{expected}\nand it prints\n{printed}"
    if name == "docs/pytorch.md":
        assert (tmp_path / "report.png").stat().st_size > 10_000


def test_differences_are_found():
    text = "layer kind  enc. ms  dec. ms\nlayers.bn dense 4.63 1.0 2.0\npeak memory: 4 MiB\n"
    assert same(text, text.replace("1.0 2.0", "9.9 0.1").replace("4.63", "4.65"))
    for old, new in (("4.63", "5.63"), ("bn", "bm"), ("4 MiB", "4 KiB"), ("peak", "pick"), ("\npeak", "\nmore\npeak")):
        assert not same(text, text.replace(old, new))


def test_the_table_of_presets_is_the_record():
    text, recorded = check.DOCUMENT.read_text(), json.loads(check.RECORD.read_text())
    assert check.documented(text, recorded) == text, "run make train-check RENEW=1"
    first = next(iter(recorded))
    recorded[first]["ratio"] += 1
    assert check.documented(text, recorded) != text


def test_the_tables_of_trainings_are_the_results():
    text = training.DOCUMENT.read_text()
    assert training.render(text) == text, "run python -m docs.training"
    with pytest.raises(ValueError, match="0 places for the table table1"):
        training.render("")


def test_what_was_trained_is_at_a_glance_in_the_readme():
    text = (ROOT / "README.md").read_text()
    cells = {label: rest for label, *rest in training.rows(training.results("long") + training.results("tables"))}
    none, low, high = (cells[label] for label in ("none", "jpeg-act optL", "jpeg-act optH"))
    assert f"{none[1]} % without compression, {low[1]} % with optL and {high[1]} % with optH" in " ".join(text.split())
