"""The documents' figures are those that are recorded."""

import json
import re

import pytest

from docs import ratios, tables

RECORDED = json.loads((tables.ROOT / "synth/baseline.json").read_text())


@pytest.mark.parametrize("name", tables.DOCUMENTS)
def test_the_figures_in_the_documents_are_up_to_date(name):
    text = (tables.ROOT / name).read_text()
    assert tables.BEGIN in text
    assert tables.renewed(text, RECORDED) == text, "run make docs"


def test_the_ratios_of_all_modes_are_up_to_date():
    text = ratios.DOCUMENT.read_text()
    stale = text.replace("| `raw` | 1.00 |", "| `raw` | 2.00 |")
    assert stale != text
    assert ratios.renewed(stale) == text, "run make docs"


def rows(text, header):
    """The cells of a table's rows, by the beginning of its header."""
    lines = text[text.index(header):].split("\n\n")[0].split("\n<!--")[0].splitlines()[2:]
    return [tables.split(line) for line in lines]


def test_the_ratios_in_the_readme_are_those_of_all_modes():
    """Each stands in a row of its mode, rounded as it is there."""
    known = {}
    for first, *cells in rows(ratios.DOCUMENT.read_text(), "| mode | dense: ratio |"):
        known.setdefault(re.match(r"`([\w-]+)`", first)[1], []).extend(float(cells[k]) for k in (0, 3))
    seen = 0
    for first, _, _, cell, _ in rows((tables.ROOT / "README.md").read_text(), "| mode | for |"):
        named = re.findall(r"`([\w-]+)", first)  # `ssdc-fp16`, `-fp10`
        modes = [named[0].rsplit("-", 1)[0] + name if name.startswith("-") else name for name in named]
        legal = [ratio for mode in modes for ratio in known[mode]]
        for number in re.findall(r"\b[\d.]+\b", cell.split(" at ")[0]):
            assert float(number) in [round(ratio, len(number.partition(".")[2])) for ratio in legal], (first, number)
            seen += 1
    assert seen > 20


def test_stale_figures_are_replaced_and_nothing_else():
    text = ("| `dct` | 1 |\n<!-- figures -->\n| unit | area, um² | slack, ps | paper, um² | ratio |\n"
            "|---|---|---|---|---|\n| `dct`, both | 1 and 7 bits | +9 | 20 | 0.1 |\n"
            "| both together | 0 | | | |\n<!-- /figures -->\n| 1 |\n")
    figures = {"dct": {"area": 10.4, "flops": 3, "slack": -0.6}, "collector": {"area": 1000, "flops": 1, "slack": 2},
               "splitter": {"area": 500, "flops": 1, "slack": 1}}
    assert tables.renewed(text, figures) == (
        text.replace("1 and 7 bits | +9 | 20 | 0.1", "10 and 7 bits | -1 | 20 | 0.52").replace(
            "| both together | 0 | | | |", "| both together | 1,500 |  |  |  |"))
    with pytest.raises(ValueError, match="no figures are recorded for the row '`fadd`'"):
        tables.renewed(text.replace("`dct`, both", "`fadd`"), figures)
