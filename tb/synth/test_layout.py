"""Placed netlists: legal places, wires whose R and C are what a hand computes, and changes that change no function."""

import copy
import json
from itertools import pairwise

import numpy as np
import pytest

from actcodec.synth import timing
from actcodec.synth.equivalence import prove
from actcodec.synth.flow import netlist, synthesise
from actcodec.synth.layout import clock, flow, lef, sizing, trees, wires
from actcodec.synth.layout.delays import Delays
from actcodec.synth.layout.judge import judge
from actcodec.synth.layout.netlist import Netlist
from actcodec.synth.layout.placement import Core, Placement, _snap, place
from actcodec.synth.layout.steiner import tree
from actcodec.synth.layout.tables import tables
from actcodec.synth.library import SynthesisError, liberty
from actcodec.units import UNITS


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
    found = Netlist(copy.deepcopy(mapped[2]))
    return found, place(found)


def module(cells, inputs=(), outputs=()):
    """A module of Yosys's JSON: {cell: (kind, {pin: bit})}, where Z, ZN and Q are outputs; ports {name: bits}."""
    ports = {name: {"direction": way, "bits": bits} for way, group in (("input", inputs), ("output", outputs))
             for name, bits in dict(group).items()}
    return {"ports": ports, "netnames": {name: {"bits": port["bits"]} for name, port in ports.items()}, "cells": {
        name: {"type": kind, "connections": {pin: [bit] for pin, bit in pins.items()},
               "port_directions": {pin: "output" if pin in ("Z", "ZN", "Q", "QN") else "input" for pin in pins}}
        for name, (kind, pins) in cells.items()}}


def illegal(found, placement):
    """What is wrong with places: cells outside of the core or off its rows and sites, and pairs that overlap."""
    widths = np.array([lef.shapes()[kind].width for kind in found.kinds])
    x, y, core = placement.x, placement.y, placement.core
    wrong = [cell for cell in range(len(x)) if x[cell] < 0 or x[cell] + widths[cell] > core.width or y[cell] < 0
             or y[cell] + lef.ROW > core.height or x[cell] % lef.SITE or y[cell] % lef.ROW]
    for row in np.unique(y):
        cells = np.flatnonzero(y == row)
        cells = cells[np.argsort(x[cells])]
        wrong += [(int(a), int(b)) for a, b in pairwise(cells) if x[a] + widths[a] > x[b]]
    return wrong


def test_places_are_legal_and_stay_so_when_cells_grow(placed):
    found, placement = placed
    assert illegal(found, placement) == []
    area = sum(lef.shapes()[kind].width for kind in found.kinds) * lef.ROW
    core = placement.core
    assert 0.65 < area / (core.width * core.height) < 0.72
    assert len({tuple(point) for point in placement.ports.tolist()}) == len(found.ports)
    known = tables(liberty())
    for cell, kind in enumerate(found.kinds):
        if kind.endswith("_X1") and len(known.family[kind]) > 1 and cell % 3 == 0:
            found.change(cell, known.family[kind][1])
    assert illegal(found, placement), "what has grown overlaps"
    after = place(found, placement)
    assert illegal(found, after) == [] and after.core == core
    assert np.abs(after.x - placement.x).mean() + np.abs(after.y - placement.y).mean() < core.width / 4


def test_overlaps_and_cells_outside_are_seen(placed):
    found, placement = placed
    for change in ({"x": 19}, {"x": -19}, {"x": 1}, {"y": 70}):
        moved = copy.deepcopy(placement)
        cell = int(np.argmin(placement.x if change.get("x") == -19 else -placement.x))
        if change.get("x") == -19:
            moved.x[cell] = 0
        for name, step in change.items():
            getattr(moved, name)[cell] += step
        if change.get("x") == 19:
            moved.x[cell] = placement.core.width - 19
        assert illegal(found, moved), change


def test_cells_go_to_sites_in_their_order_and_within_their_row():
    random = np.random.default_rng(5)
    core = Core(60 * lef.SITE, 2)
    for _ in range(40):
        widths = random.integers(1, 9, 12) * lef.SITE
        gaps = random.multinomial(core.width - int(widths[:6].sum()), np.ones(7) / 7)
        assert core.width >= widths[:6].sum()
        x = np.cumsum(gaps[:6]) + np.cumsum(np.concatenate([[0], widths[:5]]))
        x = np.concatenate([x, x])
        y = np.repeat([0, lef.ROW], 6)
        widths[6:] = widths[:6]
        snapped = _snap(x, y, widths, core)
        assert (snapped % lef.SITE == 0).all() and snapped.min() >= 0 and (snapped + widths).max() <= core.width
        assert (snapped[1:6] >= snapped[:5] + widths[:5]).all() and np.abs(snapped - x).max() < 6 * lef.SITE


def test_more_than_the_core_holds_is_refused(placed):
    found, placement = placed
    for cell in range(len(found.kinds)):
        found.change(cell, "BUF_X32")
    with pytest.raises(SynthesisError, match="do not fit"):
        place(found, placement)


@pytest.mark.parametrize("points, length", [
    ([(0, 0), (30, 40)], 70), ([(0, 0), (20, 0), (10, 10)], 30), ([(10, 0), (0, 10), (20, 10), (10, 20)], 40),
    ([(0, 0), (0, 0), (5, 0)], 5), ([(0, 0), (10, 2), (20, 0), (30, 2)], 34)])
def test_steiner_trees_of_known_length(points, length):
    nodes, parents = tree(points)
    assert nodes[: len(points)] == points and parents[0] == -1
    assert sum(abs(nodes[k][0] - nodes[p][0]) + abs(nodes[k][1] - nodes[p][1])
               for k, p in enumerate(parents) if p >= 0) == length


def test_steiner_trees_join_all_points_for_no_more_than_a_spanning_tree():
    random = np.random.default_rng(3)
    for count in (2, 3, 5, 12, 40):
        points = [tuple(point) for point in random.integers(0, 1000, (count, 2)).tolist()]
        nodes, parents = tree(points)
        for node in range(len(nodes)):
            for _ in range(len(nodes)):
                node = max(parents[node], 0)
            assert node == 0
        xs, ys = zip(*points, strict=True)
        chain, left = 0, points[1:]
        inside = [points[0]]
        while left:
            apart, one = min((min(abs(x - a) + abs(y - b) for a, b in inside), (x, y)) for x, y in left)
            chain, inside = chain + apart, inside + [one]
            left.remove(one)
        total = sum(abs(nodes[k][0] - nodes[p][0]) + abs(nodes[k][1] - nodes[p][1]) for k, p in enumerate(parents) if k)
        assert max(xs) - min(xs) + max(ys) - min(ys) <= total <= chain


def test_r_and_c_of_a_wire_are_what_a_hand_computes():
    """20 um to the right and 10 up in metal3 and metal2, then 60 up in metal6: 0.0888758, 0.0674606 and 0.102044 fF/um,
    3.5714, 3.5714 and 1.5 ohm/um."""
    wire = wires.wire((7, 8, 9), [(0, 0), (2000, 1000), (2000, 7000)])
    assert wire.parents == [-1, 0, 1] and wire.length == 9000
    first, second = 20 * 0.0888758 + 10 * 0.0674606, 60 * 0.102044
    assert wire.capacitance == pytest.approx([first / 2, (first + second) / 2, second / 2])
    assert wire.resistance == pytest.approx([0, 30 * 3.5714e-3, 60 * 1.5e-3])
    one = 30 * 3.5714e-3 * (first / 2 + second + 2 + 3)
    assert wire.delays({8: 2, 9: 3}) == pytest.approx([one, one + 0.09 * (second / 2 + 3)])
    heavy = wires.wire((7, 8), [(0, 0), (2000, 1000)], wires.LOAD)
    assert sum(heavy.capacitance) == pytest.approx(30 * 0.177) and heavy.resistance[1] == pytest.approx(30 * 3.5714e-3)


def test_the_spef_says_the_same_and_opensta_sees_it(library, tmp_path):
    """A flip-flop, 400 um of wire in metal5, a flip-flop: by Elmore that takes R (C / 2 + pin)."""
    found = Netlist(module({"a": ("DFF_X1", {"CK": 2, "D": 3, "Q": 4}), "b": ("DFF_X1", {"CK": 2, "D": 4, "Q": 5})},
                           {"clk": [2], "i": [3]}, {"o": [5]}))
    ways = np.zeros(2, bool)

    def apart(x):
        return Placement(Core(50008, 1), np.array([0, x]), np.zeros(2, int), ways, ways, np.array([(0, 0)] * 3))

    near, far = wires.wires(found, apart(1900)), wires.wires(found, apart(1900 + 38000))
    text = wires.spef(found, far, "pair")
    total = sum(far[4].capacitance)
    length = far[4].length / lef.UM
    assert 395 < length < 400
    section = text.split("*D_NET n4 ")[1].split("*END")[0]
    assert float(section.split()[0]) == pytest.approx(total, abs=1e-4)
    assert total == pytest.approx(length * 0.10896, rel=0.01)
    assert "*I c0:Q O" in section and "*I c1:D I" in section
    _, one, other, ohm = section.split("*RES\n")[1].split()
    assert {one, other} == {"c0:Q", "c1:D"} and float(ohm) == pytest.approx(length * 1.5e-3, rel=0.01)
    slack = {name: judge(found, what, library, tmp_path, name, "pair").slacks["c1/D"]
             for name, what in (("near", near), ("far", far))}
    mine = {}
    for name, what in (("near", near), ("far", far)):
        delays = Delays(found, what, tables(library))
        delays.time()
        mine[name] = float(delays.end_slack[[found.label[pin] for pin in delays.ends.tolist()].index("D", 1)])
    assert slack["near"] - slack["far"] > 60
    assert slack["near"] - slack["far"] == pytest.approx(mine["near"] - mine["far"], rel=0.2)


def test_a_spef_of_another_netlist_is_refused(library, tmp_path, placed):
    found, placement = placed
    wired = wires.wires(found, placement)
    bit, wire = next((bit, wire) for bit, wire in wired.items() if len(wire.pins) == 2)
    other = next(one for one in wired.values() if one is not wire)
    with pytest.raises(SynthesisError, match="OpenSTA"):
        judge(found, wired | {bit: other}, library, tmp_path, "wrong", "binarize")


def test_delays_are_those_of_the_tables(library):
    known = tables(library)
    row = known.first["NAND2_X1"]
    found = known.look(np.array([row]), known.slews[[2]], known.loads[row, [3]])
    assert np.array(found)[:, 0] == pytest.approx(known.values[row, 2, 3])
    between = known.loads[row, 3:5].mean()
    assert known.look(np.array([row]), known.slews[[2]], np.array([between]))[0] == pytest.approx(
        known.values[row, 2, 3:5, 0].mean())
    assert known.family["NAND2_X2"] == ("NAND2_X1", "NAND2_X2", "NAND2_X4")


def test_own_slacks_are_close_to_opensta_and_become_equal_to_them(library, tmp_path, placed):
    found, placement = placed
    wired = wires.wires(found, placement)
    verdict = judge(found, wired, library, tmp_path, "net", "binarize")
    delays = Delays(found, wired, tables(library))
    delays.time()
    assert abs(delays.worst() - verdict.worst) < 15
    clocked = delays.source[delays.arrival[delays.source] == 0]
    first = np.concatenate([2 * delays.begins, 2 * delays.begins + 1, clocked])
    assert delays.slack[first].min() == pytest.approx(delays.worst()), "what is missing at the end is at the start"
    delays.calibrate(verdict.slacks)
    assert delays.worst() == pytest.approx(verdict.worst, abs=0.1)


def hurry(found, placement, library, by):
    """Delays of a netlist whose ends are due so many ps earlier."""
    delays = Delays(found, wires.wires(found, placement), tables(library))
    delays.due -= by
    delays.time()
    return delays


def test_sizes_mend_what_is_late_and_spare_what_is_not(library, placed):
    found, placement = placed
    weak = hurry(found, placement, library, 0)
    weakest = np.array([weak.number[weak.tables.family[kind][0]] for kind in found.kinds])
    weak.kinds = weakest
    weak.time()
    sizing.strengthen(weak)
    late = hurry(found, placement, library, weak.worst() + 10)
    late.kinds = weakest.copy()
    late.time()
    sizing.strengthen(late)
    before = late.worst(), late.area()
    assert before[0] == pytest.approx(-10, abs=0.1)
    assert sizing.resize(late) and late.worst() >= 0 and before[1] < late.area() < 1.03 * before[1]
    for step in range(len(late.kinds)):
        kind = late.names[late.kinds[step]]
        late.kinds[step] = late.number[late.tables.family[kind][-1]] if "CLKGATE" not in kind else late.kinds[step]
    late.time()
    largest = late.area()
    assert sizing.resize(late) and late.area() < 0.7 * largest


def chain(count):
    """A flip-flop whose output ``count`` others take at the end of four buffers in a row."""
    cells = {"first": ("DFF_X1", {"CK": 2, "D": 3, "Q": 10})}
    for k in range(4):
        cells[f"b{k}"] = "BUF_X1", {"A": 10 + k, "Z": 11 + k}
    for k in range(count):
        cells[f"f{k}"] = "DFF_X1", {"CK": 2, "D": 10 + k % 5, "Q": 100 + k}
    return Netlist(module(cells, {"clk": [2], "i": [3]}, {"o": list(range(100, 100 + count))}))


def test_chains_of_buffers_become_trees_by_place(library):
    found = chain(60)
    placement = place(found)
    slack = hurry(found, placement, library, 0).worst()
    late = hurry(found, placement, library, slack + 50)
    moved, count = trees.plant(late, placement)
    assert count == 1 and len(moved.x) == len(found.kinds)
    place(found, moved)
    assert not {"b0", "b1", "b2", "b3"} & set(found.names)
    source = {pins.get("Z"): pins["A"] for pins in found.pins if "Z" in pins}
    for name, pins in zip(found.names, found.pins, strict=True):
        if name.startswith("f") and name != "first":
            bit = pins["D"]
            while bit in source:
                bit = source[bit]
            assert bit == 10
    better = hurry(found, place(found, moved), library, slack + 50)
    assert better.worst() > late.worst() + 20
    assert trees.plant(hurry(found, moved, library, 0), moved)[1] == 0, "nothing is late"


def test_a_changed_netlist_is_proved_and_a_broken_one_is_not(mapped, library, tmp_path, placed, monkeypatch):
    monkeypatch.setattr(trees, "GAIN", -1000)  # any tree will do
    monkeypatch.setattr(trees, "MANY", 2)
    _, source, _ = mapped
    found, placement = placed
    delays = hurry(found, placement, library, 420)
    assert delays.worst() < 0
    kinds = list(found.kinds)
    moved, count = trees.plant(delays, placement)
    delays = hurry(found, moved, library, 420)
    sizing.resize(delays)
    for cell, kind in enumerate(delays.kinds):
        found.change(cell, delays.names[kind])
    assert count and sorted(found.kinds) != sorted(kinds)
    flow._write("binarize", source, tmp_path, found.module)
    assert prove("binarize", tmp_path).proved
    cell = next(cell for cell, kind in enumerate(found.kinds) if kind.startswith("NAND2"))
    one, other = (pin for pin in found.pins[cell] if pin != "ZN")
    found.connect(cell, one, found.pins[cell][other])
    flow._write("binarize", source, tmp_path, found.module)
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
    assert {name: kind for name, (_, _, kind) in places.items()} == {name: one["type"] for name, one in netlist.items()}


def test_what_has_no_place_is_refused(mapped, tmp_path):
    figures, _, content = mapped
    design = {"modules": {"binarize": copy.deepcopy(content)}}
    next(iter(design["modules"]["binarize"]["cells"].values()))["type"] = "RAM_64X64"
    (tmp_path / "net.json").write_text(json.dumps(design))
    with pytest.raises(SynthesisError, match="no place for RAM_64X64"):
        flow.lay("binarize", figures, tmp_path, build=tmp_path / "build")


def test_the_clock_s_tree_is_what_few_flip_flops_need(library):
    found = Netlist(module({f"f{k}": ("DFF_X1", {"CK": 2, "D": 3, "Q": 10 + k}) for k in range(200)},
                           {"clk": [2], "i": [3]}, {"o": list(range(10, 210))}))
    planned = clock.plan(found, place(found), tables(library))
    assert planned.levels == 1 and 200 * 0.95 / clock.DRIVES < planned.buffers < 16
    assert planned.area == pytest.approx(planned.buffers * 1.862, abs=0.1)
    assert 200 * 0.95 / 1000 < planned.load < 1 and 0 < planned.skew < 20
    few = Netlist(module({"f": ("DFF_X1", {"CK": 2, "D": 3, "Q": 4})}, {"clk": [2], "i": [3]}, {"o": [4]}))
    assert clock.plan(few, place(few), tables(library)).buffers == 0


def test_ports_with_the_same_net_are_timed_once(library, tmp_path):
    found = Netlist(module({"f": ("DFF_X1", {"CK": 2, "D": 3, "Q": 4})}, {"clk": [2], "i": [3]},
                           {"o": [4, 4], "p": [4]}))
    wired = wires.wires(found, place(found))
    assert found.twins() == {"p": 2}
    verdict = judge(found, wired, library, tmp_path, "twins", "twins")
    assert sorted(verdict.slacks) == ["c0/D", "p"]
    delays = Delays(found, wired, tables(library))
    delays.time()
    assert delays.load[found.pin[0, "Q"]] == pytest.approx(3 * timing.LOAD + sum(wired[4].capacitance))
