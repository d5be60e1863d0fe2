"""Wires: trees of known length, R and C as a hand computes them, and what OpenSTA makes of them."""

import numpy as np
import pytest

from actcodec.synth import timing
from actcodec.synth.delays import Delays
from actcodec.synth.judge import judge
from actcodec.synth.layout import lef, wires
from actcodec.synth.layout.placement import Core, Placement, place
from actcodec.synth.layout.steiner import tree
from actcodec.synth.library import SynthesisError, liberty
from actcodec.synth.netlist import Netlist
from actcodec.synth.tables import tables
from tb.synth.wired import chain, module


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return liberty(tmp_path_factory.mktemp("library"))


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
    netlist = Netlist(module({"a": ("DFF_X1", {"CK": 2, "D": 3, "Q": 4}), "b": ("DFF_X1", {"CK": 2, "D": 4, "Q": 5})},
                             {"clk": [2], "i": [3]}, {"o": [5]}))
    ways = np.zeros(2, bool)

    def apart(x):
        return Placement(Core(50008, 1), np.array([0, x]), np.zeros(2, int), ways, ways, np.array([(0, 0)] * 3))

    near, far = wires.wires(netlist, apart(1900)), wires.wires(netlist, apart(1900 + 38000))
    text = wires.spef(netlist, far, "pair")
    total = sum(far[4].capacitance)
    length = far[4].length / lef.UM
    assert 395 < length < 400
    section = text.split("*D_NET n4 ")[1].split("*END")[0]
    assert float(section.split()[0]) == pytest.approx(total, abs=1e-4)
    assert total == pytest.approx(length * 0.10896, rel=0.01)
    assert "*I c0:Q O" in section and "*I c1:D I" in section
    _, one, other, ohm = section.split("*RES\n")[1].split()
    assert {one, other} == {"c0:Q", "c1:D"} and float(ohm) == pytest.approx(length * 1.5e-3, rel=0.01)
    slack = {name: judge(netlist, wires.spef(netlist, what, "pair"), library, tmp_path, name, "pair").slacks["c1/D"]
             for name, what in (("near", near), ("far", far))}
    mine = {}
    for name, what in (("near", near), ("far", far)):
        delays = Delays(netlist, what, tables(library))
        delays.time()
        mine[name] = float(delays.end_slack[[netlist.label[pin] for pin in delays.ends.tolist()].index("D", 1)])
    assert slack["near"] - slack["far"] > 60
    assert slack["near"] - slack["far"] == pytest.approx(mine["near"] - mine["far"], rel=0.2)


def test_a_spef_of_another_netlist_is_refused(library, tmp_path):
    netlist = chain(30)
    placement = place(netlist)
    wired = wires.wires(netlist, placement)
    bit, wire = next((bit, wire) for bit, wire in wired.items() if len(wire.pins) == 2)
    other = next(one for one in wired.values() if one is not wire)
    with pytest.raises(SynthesisError, match="OpenSTA"):
        judge(netlist, wires.spef(netlist, wired | {bit: other}, "chain"), library, tmp_path, "wrong", "chain")


def test_delays_are_those_of_the_tables(library):
    known = tables(library)
    row = known.first["NAND2_X1"]
    result = known.look(np.array([row]), known.slews[[2]], known.loads[row, [3]])
    assert np.array(result)[:, 0] == pytest.approx(known.values[row, 2, 3])
    between = known.loads[row, 3:5].mean()
    assert known.look(np.array([row]), known.slews[[2]], np.array([between]))[0] == pytest.approx(
        known.values[row, 2, 3:5, 0].mean())
    assert known.family["NAND2_X2"] == ("NAND2_X1", "NAND2_X2", "NAND2_X4")


def test_own_slacks_are_close_to_opensta_and_become_equal_to_them(library, tmp_path):
    netlist = chain(30)
    placement = place(netlist)
    wired = wires.wires(netlist, placement)
    verdict = judge(netlist, wires.spef(netlist, wired, "chain"), library, tmp_path, "net", "chain")
    delays = Delays(netlist, wired, tables(library))
    delays.time()
    assert abs(delays.worst() - verdict.worst) < 15
    clocked = delays.source[delays.arrival[delays.source] == 0]
    first = np.concatenate([2 * delays.begins, 2 * delays.begins + 1, clocked])
    assert delays.slack[first].min() == pytest.approx(delays.worst()), "what is missing at the end is at the start"
    delays.calibrate(verdict.slacks)
    assert delays.worst() == pytest.approx(verdict.worst, abs=0.1)


def test_ports_with_the_same_net_are_timed_once(library, tmp_path):
    netlist = Netlist(module({"f": ("DFF_X1", {"CK": 2, "D": 3, "Q": 4})}, {"clk": [2], "i": [3]},
                             {"o": [4, 4], "p": [4]}))
    wired = wires.wires(netlist, place(netlist))
    assert netlist.twins() == {"p": 2}
    verdict = judge(netlist, wires.spef(netlist, wired, "twins"), library, tmp_path, "twins", "twins")
    assert sorted(verdict.slacks) == ["c0/D", "p"]
    delays = Delays(netlist, wired, tables(library))
    delays.time()
    assert delays.load[netlist.pin[0, "Q"]] == pytest.approx(3 * timing.LOAD + sum(wired[4].capacitance))
