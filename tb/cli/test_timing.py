"""The timing diagrams of the documentation show what the hardware does."""

import json
import re
from pathlib import Path

import pytest

from docs.timing import diagrams

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.regress
def test_diagrams_are_what_simulation_gives():
    drawn = diagrams()
    assert {path.stem for path in (DOCS / "timing").glob("*.json")} == set(drawn)
    for name, wave in drawn.items():
        assert json.loads((DOCS / f"timing/{name}.json").read_text()) == wave, f"{name}: run python -m docs.timing"


def test_every_diagram_is_shown():
    shown = re.findall(r"\]\(timing/(\w+)\.svg\)", (DOCS / "timing.md").read_text())
    assert sorted(shown) == sorted(path.stem for path in (DOCS / "timing").glob("*.json"))


@pytest.mark.parametrize("path", sorted((DOCS / "timing").glob("*.json")), ids=lambda path: path.stem)
def test_pictures_are_those_of_the_diagrams(path):
    picture = path.with_suffix(".svg").read_text()
    wave = json.loads(path.read_text())
    names = [lane["name"] for lane in wave["signal"] if lane]
    labels = [text for lane in wave["signal"] if lane for text in lane.get("data", [])]
    texts = re.findall(r">([^<>]+)</(?:tspan|text)>", picture)
    assert wave["head"]["text"] in texts
    assert [text for text in texts if text in names] == names
    assert sorted(text for text in texts if text in labels) == sorted(labels)
