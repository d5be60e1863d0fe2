"""Placed netlists: places are legal, sizes and trees mend what is late, and change no function."""

import copy
import json
from itertools import pairwise

import numpy as np
import pytest

from actcodec.elaboration import netlist
from actcodec.synth import relaxation, timing
from actcodec.synth.delays import Delays
from actcodec.synth.equivalence import prove
from actcodec.synth.flow import synthesise
from actcodec.synth.layout import clock, command, flow, lef, trees, wires
from actcodec.synth.layout.placement import place
from actcodec.synth.library import PERIOD, SynthesisError, liberty
from actcodec.synth.netlist import Netlist
from actcodec.synth.tables import tables
from actcodec.units import UNITS
from tb.synth.wired import chain, module


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return liberty(tmp_path_factory.mktemp("library"))


@pytest.fixture(scope="module")
def mapped(tmp_path_factory):
    """Binarize, mapped: (figures, folder, its module)."""
    unit = UNITS["binarize"]
    figures, folder, _ = synthesise("binarize", netlist(unit.build(**unit.synth), "binarize")[0],
                                    tmp_path_factory.mktemp("synth"), "fast")
    return figures, folder, json.loads((folder / "net.json").read_text())["modules"]["binarize"]


@pytest.fixture
def placed(mapped):
    """(netlist, placement), to be changed."""
    design = Netlist(copy.deepcopy(mapped[2]))
    return design, place(design)


def illegal(design, placement):
    """What is wrong with places: cells outside of the core, off its rows and sites, or the wrong way up, and pairs that
    overlap."""
    widths = np.array([lef.shapes()[kind].width for kind in design.kinds])
    x, y, core = placement.x, placement.y, placement.core
    wrong = [cell for cell in range(len(x)) if x[cell] < 0 or x[cell] + widths[cell] > core.width or y[cell] < 0
             or y[cell] + lef.ROW > core.height or x[cell] % lef.SITE or y[cell] % lef.ROW]
    wrong += np.flatnonzero(placement.turn != (y // lef.ROW % 2 == 1)).tolist()  # neighbours share a rail
    for row in np.unique(y):
        cells = np.flatnonzero(y == row)
        cells = cells[np.argsort(x[cells])]
        wrong += [(int(a), int(b)) for a, b in pairwise(cells) if x[a] + widths[a] > x[b]]
    return wrong


def test_places_are_legal_and_stay_so_when_cells_grow(placed):
    design, placement = placed
    assert illegal(design, placement) == []
    area = sum(lef.shapes()[kind].width for kind in design.kinds) * lef.ROW
    core = placement.core
    assert 0.65 < area / (core.width * core.height) < 0.72
    assert len({tuple(point) for point in placement.ports.tolist()}) == len(design.ports)
    known = tables(liberty())
    for cell, kind in enumerate(design.kinds):
        if kind.endswith("_X1") and len(known.family[kind]) > 1 and cell % 3 == 0:
            design.change(cell, known.family[kind][1])
    assert illegal(design, placement), "what has grown overlaps"
    after = place(design, placement)
    assert illegal(design, after) == [] and after.core == core
    assert np.abs(after.x - placement.x).mean() + np.abs(after.y - placement.y).mean() < core.width / 4


def span(design, placement, bit):
    """Half the perimeter of a net's pins."""
    net = design.nets[bit]
    return int(np.ptp(placement.points(design)[[net.driver, *net.sinks]], axis=0).sum())


def test_late_nets_count_more_and_become_shorter(library):
    design = chain(60)
    placement = place(design)
    bit = max(design.nets, key=lambda bit: span(design, placement, bit))
    after = place(design, weights={bit: 50.0})
    assert illegal(design, after) == [] and span(design, after, bit) < 0.8 * span(design, placement, bit)
    late = hurry(design, placement, library, hurry(design, placement, library, 0).worst() + 50)
    weights = flow.weigh(late)
    slack = {bit: late.slack[2 * design.nets[bit].driver :][:2].min() for bit in weights}
    assert max(weights.values()) == pytest.approx(flow.HEAVIEST, rel=0.01)
    ordered = sorted(weights, key=slack.get)
    assert [weights[bit] for bit in ordered] == sorted(weights.values(), reverse=True)
    assert all(len(design.nets[bit].sinks) <= flow.READERS for bit in weights)
    assert {weight for bit, weight in weights.items() if slack[bit] >= flow.AMPLE} <= {1.0}


def test_overlaps_and_cells_outside_are_seen(placed):
    design, placement = placed
    for change in ({"x": 19}, {"x": -19}, {"x": 1}, {"y": 70}):
        moved = copy.deepcopy(placement)
        cell = int(np.argmin(placement.x if change.get("x") == -19 else -placement.x))
        if change.get("x") == -19:
            moved.x[cell] = 0
        for name, step in change.items():
            getattr(moved, name)[cell] += step
        if change.get("x") == 19:
            moved.x[cell] = placement.core.width - 19
        assert illegal(design, moved), change


def test_more_than_the_core_holds_is_refused(placed):
    design, placement = placed
    for cell in range(len(design.kinds)):
        design.change(cell, "BUF_X32")
    with pytest.raises(SynthesisError, match="do not fit"):
        place(design, placement)


def hurry(design, placement, library, by):
    """Delays of a netlist whose ends are due so many ps earlier."""
    delays = Delays(design, wires.wires(design, placement), tables(library))
    delays.due -= by
    delays.time()
    return delays


def test_sizes_mend_what_is_late_and_spare_what_is_not(library, placed):
    design, placement = placed
    weak = hurry(design, placement, library, 0)
    weakest = np.array([weak.number[weak.tables.family[kind][0]] for kind in design.kinds])
    weak.kinds = weakest
    weak.time()
    relaxation.strengthen(weak)
    late = hurry(design, placement, library, weak.worst() + 10)
    late.kinds = weakest.copy()
    late.time()
    relaxation.strengthen(late)
    before = late.worst(), late.area()
    assert before[0] == pytest.approx(-10, abs=0.1)
    assert relaxation.resize(late) and late.worst() >= 0 and before[1] < late.area() < 1.03 * before[1]
    for step in range(len(late.kinds)):
        kind = late.names[late.kinds[step]]
        late.kinds[step] = late.number[late.tables.family[kind][-1]] if "CLKGATE" not in kind else late.kinds[step]
    late.time()
    largest = late.area()
    assert relaxation.resize(late) and late.area() < 0.7 * largest


def test_chains_of_buffers_become_trees_by_place(library):
    design = chain(60)
    placement = place(design)
    slack = hurry(design, placement, library, 0).worst()
    late = hurry(design, placement, library, slack + 50)
    moved, count = trees.plant(late, placement)
    assert count == 1 and len(moved.x) == len(design.kinds)
    place(design, moved)
    assert not {"b0", "b1", "b2", "b3"} & set(design.names)
    source = {pins.get("Z"): pins["A"] for pins in design.pins if "Z" in pins}
    for name, pins in zip(design.names, design.pins, strict=True):
        if name.startswith("f") and name != "first":
            bit = pins["D"]
            while bit in source:
                bit = source[bit]
            assert bit == 10
    better = hurry(design, place(design, moved), library, slack + 50)
    assert better.worst() > late.worst() + 20
    assert trees.plant(hurry(design, moved, library, 0), moved)[1] == 0, "nothing is late"


def test_a_changed_netlist_is_proved_and_a_broken_one_is_not(mapped, library, tmp_path, placed, monkeypatch):
    monkeypatch.setattr(trees, "GAIN", -1000)  # any tree will do
    monkeypatch.setattr(trees, "MANY", 2)
    _, source, _ = mapped
    design, placement = placed
    delays = hurry(design, placement, library, 420)
    assert delays.worst() < 0
    kinds = list(design.kinds)
    moved, count = trees.plant(delays, placement)
    delays = hurry(design, moved, library, 420)
    relaxation.resize(delays)
    for cell, kind in enumerate(delays.kinds):
        design.change(cell, delays.names[kind])
    assert count and sorted(design.kinds) != sorted(kinds)
    flow._write("binarize", source, tmp_path, design.module)
    assert prove("binarize", tmp_path).proved
    cell = next(cell for cell, kind in enumerate(design.kinds) if kind.startswith("NAND2"))
    one, other = (pin for pin in design.pins[cell] if pin != "ZN")
    design.connect(cell, one, design.pins[cell][other])
    flow._write("binarize", source, tmp_path, design.module)
    with pytest.raises(SynthesisError, match="not what the RTL says"):
        prove("binarize", tmp_path)


def test_a_unit_is_placed_and_remembered(mapped, tmp_path):
    figures, source, _ = mapped
    layout, folder, cached = flow.lay("binarize", figures, source, build=tmp_path)
    assert not cached and flow.lay("binarize", figures, source, build=tmp_path) == (layout, folder, True)
    assert layout.slack >= 0 and layout.left == 0 and layout.functions == prove("binarize", source).outputs
    assert layout.mapped == [figures.slack, figures.area]
    assert layout.corners["low"] > layout.corners["high"] > layout.corners["load"]
    places = json.loads((folder / "places.json").read_text())
    netlist = json.loads((folder / "net.json").read_text())["modules"]["binarize"]["cells"]
    kinds = {name: kind for name, (kind, *_) in places["cells"].items()}
    assert kinds == {name: one["type"] for name, one in netlist.items()}
    assert min(slack for *_, slack in places["cells"].values()) == pytest.approx(layout.slack, abs=0.2)
    assert {way for *_, way, _ in places["cells"].values()} <= {"N", "S", "FN", "FS"} and not places["macros"]


def test_a_late_unit_is_placed_again_by_its_slack(mapped, tmp_path, monkeypatch):
    figures, source, _ = mapped
    calls = []
    monkeypatch.setattr(flow, "place", lambda *arguments: calls.append(arguments[1:]) or place(*arguments))
    layout, *_ = flow.lay("binarize", figures, source, {"*": timing.ARRIVAL["*"] + 360}, tmp_path)
    (_, before), (_, weights), *later = calls
    assert layout.placed < 0 < layout.late and before is None
    assert [one is None for one, _ in calls[:3]] == [True, True, False]
    assert max(weights.values()) == flow.HEAVIEST and all(one is weights for _, one in later)
    assert layout.slack >= 0 == layout.left and layout.functions


def test_what_has_no_place_is_refused(mapped, tmp_path):
    figures, _, content = mapped
    design = {"modules": {"binarize": copy.deepcopy(content)}}
    next(iter(design["modules"]["binarize"]["cells"].values()))["type"] = "lane"
    (tmp_path / "net.json").write_text(json.dumps(design))
    with pytest.raises(SynthesisError, match="no place for lane"):
        flow.lay("binarize", figures, tmp_path, build=tmp_path / "build")


def test_the_clock_s_tree_is_what_few_flip_flops_need(library):
    design = Netlist(module({f"f{k}": ("DFF_X1", {"CK": 2, "D": 3, "Q": 10 + k}) for k in range(200)},
                            {"clk": [2], "i": [3]}, {"o": list(range(10, 210))}))
    planned = clock.plan(design, place(design), tables(library))
    assert planned.levels == 1 and 200 * 0.95 / clock.DRIVES < planned.buffers < 16
    assert planned.area == pytest.approx(planned.buffers * 1.862, abs=0.1)
    assert 200 * 0.95 / 1000 < planned.load < 1 and 0 < planned.skew < 20
    few = Netlist(module({"f": ("DFF_X1", {"CK": 2, "D": 3, "Q": 4})}, {"clk": [2], "i": [3]}, {"o": [4]}))
    assert clock.plan(few, place(few), tables(library)).buffers == 0


def test_where_nothing_is_timed_there_is_no_highest_frequency():
    layout = flow.Layout(cells=1, mapped=(488.8, 0.5), placed=PERIOD, late=0, slack=PERIOD, left=0, area=0.5,
                         corners={}, length=0.1, share=0.1, core=(1, 1), trees=0, buffers=0, clock={}, functions=2)
    assert command.row("unbinarize", layout, False).count("-") == 2
