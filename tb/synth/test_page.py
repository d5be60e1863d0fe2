"""The page: well formed, offline, and its pictures show what they were given."""

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from actcodec.synth.drawings import BIN, histogram, sparkline, squarify, treemap
from actcodec.synth.page import render

VOID = {"meta", "br"}

PARTS = {"": (10.0, 20.0), "dct": (0.0, 50.0), "dct.first": (400.0, 300.0), "dct.second": (300.0, 200.0),
         "sfpr": (100.0, 620.0)}


def row(**others):
    return {"area": 2000.0, "sequential": 810.0, "cells": 900, "flops": 170, "gates": 3, "slack": -4.0, "fmax": 1446.2,
            "start": "dct.first.product[3]", "end": "sfpr.<o>",
            "path": [("dct.first.product[3]", 0.0), ("sfpr.<o>", 650)],
            "slacks": [-4.0, 3.0, 30.0, 31.0], "parts": PARTS,
            "recipe": "fast", "seconds": 31.4, **others}


ROWS = {
    "dct & co": row(macros=500.0, paper=4000, target=1900, paper_power=10.0,
                    power={"compress": {"registers": 2.0, "logic": 1.5, "gates": 0.2, "clock": 0.3, "internal": 2.5,
                                         "switching": 1.25, "leakage": 0.25, "toggles": 0.124, "clocked": 0.5}},
                    fpga={"luts": 1234, "flops": 170, "dsps": 5, "brams": 0, "fmax": 98.7, "seconds": 12.0}),
    "sfpr": row(slack=2.0, paper=None, target=None, power=None, fpga=None),
}
HISTORY = [("c0ffee1", "2026-01-02", {"sfpr": {"area": 2500.0, "slack": -9.0}, "gone": {"area": 1.0, "slack": 1.0}}),
           ("c0ffee2", "2026-01-03", {"sfpr": {"area": 2000.0, "slack": 2.0}, "new": {"area": 5.0, "slack": 7.0}})]


class Outline(HTMLParser):
    """Checks that elements nest; collects identifiers, the cells of tables, links and what is loaded."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.rows, self.sources, self.targets = [], [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.sources += [attributes[key] for key in ("src", "data") if key in attributes]
        (self.targets if tag == "a" else self.sources).extend([attributes["href"]] if "href" in attributes else [])
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        assert "svg" in self.open

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data


def boxes(svg, kind):
    """{title: (x, y, width, height)} of an SVG's rectangles of a class."""
    return {box.findtext("title"): tuple(float(box.get(key)) for key in ("x", "y", "width", "height"))
            for box in ElementTree.fromstring(svg).iter("rect") if box.get("class") == kind}


@pytest.fixture(scope="module")
def text():
    return render(ROWS, ["No wires & no layout."], HISTORY, "ECP5.")


def test_well_formed_and_offline(text):
    page = Outline(text)
    assert page.sources == []
    assert "http" not in text and "@import" not in text and "url(" not in text
    assert len(page.ids) == len(set(page.ids)) == len(ROWS)
    assert {target.removeprefix("#") for target in page.targets} == set(page.ids)
    pictures = re.findall(r"<svg.*?</svg>", text)
    assert len(pictures) == 2 * len(ROWS) + 2 * 3
    for picture in pictures:
        ElementTree.fromstring(picture)
    assert "prefers-color-scheme: dark" in text
    assert "No wires &amp; no layout." in text


def test_figures_beside_those_of_the_paper(text):
    rows = Outline(text).rows
    area, power, fpga = [cells for cells in rows if cells[0] == "dct & co"]
    assert area[1:] == ["2,000", "2,500", "2.5", "810", "1,190", "900", "170", "-4", "1,446", "4,000", "0.50", "1,900",
                        "31", "dct.first.product[3]\u2192 sfpr.<o>"]
    assert power[1:] == ["compress", "2.00", "1.50", "0.20", "0.30", "4.00", "0.25", "10.0", "0.40", "0.12", "50%"]
    assert fpga[1:] == ["1,234", "170", "5", "0", "99", "12"]
    alone, history = [cells for cells in rows if cells[0] == "sfpr"]
    assert (alone[2], alone[10:13]) == ("-", ["-", "-", "-"])
    assert history == ["sfpr", "", "2,500", "2,000", "-20.0%", "", "2"]
    assert [cells[3:5] for cells in rows if cells[0] in ("gone", "new")] == [["5", "+0.0%"], ["gone", "-"]]


def test_late_units_and_missed_targets_are_marked(text):
    assert '<td class="bad">-4</td>' in text and '<td class="good">2</td>' in text
    assert '<td class="bad">1,900</td>' in text
    assert '<td class="good">2,000</td>' in render({"x": row(target=2000)})


def test_what_is_not_there_is_left_out():
    bare = {key: value for key, value in row().items() if key not in ("parts", "slacks", "path")}
    text = render({"x": bare})
    Outline(text)
    assert "<svg" not in text and "Power" not in text and "FPGA" not in text
    assert "No history" in text


@pytest.mark.parametrize("sizes", [[1.0], [6.0, 6.0, 4.0, 3.0, 2.0, 2.0, 1.0], [1000.0, 1.0, 0.001], [1.0] * 37])
@pytest.mark.parametrize("width, height", [(600, 400), (30, 500)])
def test_squares_fill_the_rectangle(sizes, width, height):
    places = squarify(sizes, 5, 7, width, height)
    for size, (x, y, across, down) in zip(sizes, places, strict=True):
        assert across * down == pytest.approx(width * height * size / sum(sizes))
        assert x > 5 - 1e-6 and y > 7 - 1e-6 and x + across < 5 + width + 1e-6 and y + down < 7 + height + 1e-6
    for index, (x, y, across, down) in enumerate(places):
        for left, top, wide, tall in places[:index]:
            overlap = min(x + across, left + wide) - max(x, left), min(y + down, top + tall) - max(y, top)
            assert min(overlap) < 1e-6


def test_squares_are_those_of_the_paper_that_describes_them():
    places = squarify([6, 6, 4, 3, 2, 2, 1], 0, 0, 6, 4)
    expected = [(0, 0, 3, 2), (0, 2, 3, 2), (3, 0, 12 / 7, 7 / 3), (33 / 7, 0, 9 / 7, 7 / 3),
                (3, 7 / 3, 6 / 5, 5 / 3), (21 / 5, 7 / 3, 6 / 5, 5 / 3), (27 / 5, 7 / 3, 3 / 5, 5 / 3)]
    for place, wanted in zip(places, expected, strict=True):
        assert place == pytest.approx(wanted)


def test_treemap_shows_every_sub_unit():
    svg = treemap("cdu", PARTS)
    own = {f"{path or 'cdu'}: {kind} {area:,.0f} um\u00b2": area for path, areas in PARTS.items()
           for kind, area in zip(("registers", "logic"), areas, strict=True) if area}
    shown = boxes(svg, "registers") | boxes(svg, "logic")
    assert shown.keys() == own.keys()
    # Frames and labels take some of the room, the less the larger a sub-unit is.
    assert shown["dct.first: registers 400 um\u00b2"][2] * shown["dct.first: registers 400 um\u00b2"][3] \
        == pytest.approx(400 / 2000 * 920 * 420, rel=0.15)
    assert set(boxes(svg, "unit")) == {"dct: 1,250 um\u00b2", "dct.first: 700 um\u00b2", "dct.second: 500 um\u00b2",
                                       "sfpr: 720 um\u00b2"}
    assert {node.text for node in ElementTree.fromstring(svg).iter("text")} == {"dct", "first", "second", "sfpr"}


def test_treemap_merges_what_is_too_small_to_see():
    many = {"": (1000.0, 1000.0), **{f"a.b{k}": (0.1, 0.1) for k in range(9)}}
    assert set(boxes(treemap("cdu", many), "unit")) == {"a: 2 um\u00b2"}


def test_histogram_counts_every_endpoint_once():
    slacks = [-0.1, 0.0, BIN - 0.1, BIN, 700.0, *[100.0] * 50]
    svg = histogram(slacks)
    late, met = boxes(svg, "late"), boxes(svg, "registers")
    assert set(late) == {f"-{BIN} to 0 ps: 1 endpoints"}
    assert {"0 to 25 ps: 2 endpoints", "25 to 50 ps: 1 endpoints", "100 to 125 ps: 50 endpoints"} < set(met)
    count = sum(int(re.search(r"(\d+) endpoints", title)[1]) for title in [*late, *met])
    assert count == len(slacks)
    assert all(x + width <= 920.1 for x, _, width, _ in met.values())


def test_sparkline_leaves_gaps_out():
    points = ElementTree.fromstring(sparkline([1.0, None, 3.0], 106, 26))[0].get("points")
    assert points == "3.0,23.0 103.0,3.0"
    assert ElementTree.fromstring(sparkline([5.0]))[1].get("cx") == "3.0"
