"""Pictures of placed netlists: every cell is drawn once, where it is, in the colour of its sub-unit or of its slack."""

import json
import re
from collections import defaultdict
from xml.etree import ElementTree

import pytest

from actcodec.elaboration import netlist
from actcodec.synth.flow import synthesise
from actcodec.synth.hierarchy import breakdown
from actcodec.synth.layout import lef, pictures
from actcodec.synth.layout.flow import lay
from actcodec.synth.library import areas, liberty
from tb.synth.bank import Nested


@pytest.fixture(scope="module")
def placed(tmp_path_factory):
    """Places of a unit with two sub-units, and its module."""
    build = tmp_path_factory.mktemp("synth")
    figures, folder, _ = synthesise("nested", netlist(Nested(), "nested")[0], build, "fast")
    _, folder, _ = lay("nested", figures, folder, build=build)
    return (json.loads((folder / "places.json").read_text()),
            json.loads((folder / "net.json").read_text())["modules"]["nested"])


def test_cells_belong_to_sub_units_as_areas_do(placed):
    _, module = placed
    area = areas(liberty())
    sums = defaultdict(float)
    for name, path in pictures.owners(module).items():
        sums[path] += area[module["cells"][name]["type"]]
    assert sums == pytest.approx({path: sum(both) for path, both in breakdown(module, area).items()}, abs=0.2)
    assert set(sums) == {"", "front"}, "the registers of the other bank are the port"


def test_the_largest_sub_units_are_divided_as_long_as_there_are_colours():
    sizes = {"a.x": 50, "a.y": 30, "a.y.z": 5, "b": 10, "c": 5, "": 2}
    assert pictures.groups(sizes, sizes) == {"a.x": "a.x", "a.y": "a.y", "a.y.z": "a.y.z", "b": "b", "c": "c", "": ""}
    many = {f"u{k}": 100 - k for k in range(12)}
    shown = pictures.groups(many, many)
    assert {path for path, group in shown.items() if group} == {f"u{k}" for k in range(pictures.GROUPS)}
    deep = {"top.a": 60, "top.b": 40, "top": 1}
    assert pictures.groups(deep, deep) == {"top.a": "top.a", "top.b": "top.b", "top": "top"}


def test_one_sub_unit_around_many_is_divided_as_well():
    sizes = {"": 4, **{f"in.u{k}": 5 for k in range(12)}, "in.cdu.x": 40, "in.cdu.y": 35}
    names = pictures.groups(sizes, sizes)
    assert (names["in.cdu.x"], names["in.cdu.y"]) == ("in.cdu.x", "in.cdu"), "what is left of it keeps its name"
    assert len(set(names.values()) - {""}) == pictures.GROUPS


@pytest.mark.parametrize("slack, level", [(-0.1, 0), (0, 1), (19.9, 1), (20, 2), (60, 3), (150, 4), (None, 4)])
def test_levels_of_slack(slack, level):
    assert pictures._level(slack) == level


def runs(data):
    """[(x, row, width)] of the data of a path."""
    x = y = 0
    result = []
    for dx, dy, width in re.findall(r"m(-?\d+) (-?\d+)h(\d+)", data):
        x, y = x + int(dx), y + int(dy)
        result.append((x, y, int(width)))
        x += int(width)
    return result


def test_a_path_has_each_run_and_joins_those_that_touch():
    data = "M0 0" + pictures._path([(10, 2, 5), (0, 0, 3), (3, 0, 4), (9, 0, 1)])
    assert runs(data) == [(0, 0, 7), (9, 0, 1), (10, 2, 5)]


def test_both_pictures_cover_what_the_cells_take(placed):
    places, module = placed
    svg = pictures.draw("nested", places, module)
    tree = ElementTree.fromstring(svg)
    space = "{http://www.w3.org/2000/svg}"
    panels = tree.findall(f"{space}g")
    assert len(panels) == 2
    width = sum(lef.shapes()[kind].width for kind, *_ in places["cells"].values()) // lef.SITE
    for panel in panels:
        pieces = [run for path in panel for run in runs(path.get("d"))]
        assert sum(size for *_, size in pieces) == width
        assert all(x >= 0 and x + size <= places["core"][0] // lef.SITE and 0 <= row < places["core"][1] // lef.ROW
                   for x, row, size in pieces)
    texts = [text.text for text in tree.iter(f"{space}text")]
    late = sum(slack is not None and slack < 0 for *_, slack in places["cells"].values())
    assert f"late: {late} cells" in texts and any(text.startswith("nested, ") for text in texts)


def test_macros_are_drawn_beside_the_core(placed):
    places, module = placed
    block = {"name": "fakeram45_64x15", "x": places["core"][0] + 500, "y": 0, "width": 1121, "height": 5880}
    svg = pictures.draw("nested", places | {"macros": [block]}, module)
    assert svg.count('class="macro"') == 2 and "fakeram45_64x15" in svg
