"""Prices of sizing: late ends cost more, what comes last at a gate bears its price, and none is lost on the way."""

import numpy as np
import pytest

from actcodec.synth import relaxation
from actcodec.synth.delays import Delays
from actcodec.synth.layout import wires
from actcodec.synth.layout.placement import place
from actcodec.synth.library import liberty
from actcodec.synth.netlist import Netlist
from actcodec.synth.tables import FALL, RISE, tables
from tb.synth.wired import module


@pytest.fixture(scope="module")
def delays(tmp_path_factory):
    """A NAND of a flip-flop and of six inverters in a row behind another, in front of a dozen flip-flops."""
    cells = {"near": ("DFF_X1", {"CK": 2, "D": 3, "Q": 10}), "far": ("DFF_X1", {"CK": 2, "D": 3, "Q": 20}),
             "gate": ("NAND2_X1", {"A1": 10, "A2": 26, "ZN": 30})}
    for k in range(12):
        cells[f"end{k}"] = "DFF_X1", {"CK": 2, "D": 30, "Q": 40 + k}
    for k in range(6):
        cells[f"i{k}"] = "INV_X1", {"A": 20 + k, "ZN": 21 + k}
    netlist = Netlist(module(cells, {"clk": [2], "i": [3]}, {"o": list(range(40, 52))}))
    made = Delays(netlist, wires.wires(netlist, place(netlist)), tables(liberty(tmp_path_factory.mktemp("library"))))
    made.time()
    return made


def node(delays, cell, pin, edge):
    return 2 * delays.netlist.pin[delays.netlist.names.index(cell), pin] + edge


def through(delays, edges, source, target):
    """The price of the edges from one node to another."""
    return edges[(delays.source == source) & (delays.target == target)].sum()


def test_the_late_input_of_a_gate_bears_its_price(delays):
    edges, price = relaxation._prices(delays, np.ones(len(delays.ends)))
    for edge in (RISE, FALL):
        out = node(delays, "gate", "ZN", edge)
        late, early = (through(delays, edges, node(delays, "gate", pin, 1 - edge), out) for pin in ("A2", "A1"))
        assert late > 10 * early > 0
        assert late + early == pytest.approx(price[out])
    for k in range(6):
        assert price[[node(delays, f"i{k}", "A", edge) for edge in (0, 1)]].sum() == pytest.approx(
            price[[node(delays, "gate", "A2", edge) for edge in (0, 1)]].sum())


def test_the_edge_of_an_end_that_is_later_bears_more(delays):
    _, price = relaxation._prices(delays, np.ones(len(delays.ends)))
    nodes = (node(delays, "end0", "D", edge) for edge in (RISE, FALL))
    later, earlier = sorted(nodes, key=lambda one: delays.slack[one])
    assert delays.slack[later] < delays.slack[earlier] - 1 and price[later] > price[earlier]
    assert price[later] + price[earlier] == pytest.approx(1)


def test_ends_bear_what_they_are_given(delays):
    ends = np.arange(1.0, 1 + len(delays.ends))
    edges, price = relaxation._prices(delays, ends)
    twice, double = relaxation._prices(delays, 2 * ends)
    assert twice == pytest.approx(2 * edges) and double == pytest.approx(2 * price)
    assert (edges >= 0).all() and (price >= 0).all()


def test_a_late_path_gets_larger_cells_and_an_early_one_does_not(delays):
    late = [cell for cell, name in enumerate(delays.netlist.names) if name.startswith("end")]
    ends = np.where(np.isin(delays.owner[delays.ends], late), relaxation.MOST, relaxation.LEAST)
    kinds, cost = relaxation._options(delays, ends, np.zeros(len(delays.kinds), bool))
    names = delays.netlist.names
    wanted = {names[cell] for cell in np.flatnonzero(cost < -1e-3)
              if delays.areas[kinds[cell]] > delays.areas[delays.kinds[cell]]}
    assert "gate" in wanted and "near" not in wanted
    _, cost = relaxation._options(delays, np.full(len(ends), relaxation.LEAST), np.zeros(len(delays.kinds), bool))
    assert (cost > -1e-3).all(), "no drive is weaker, and nothing is worth a larger one"


def test_what_is_in_time_spares_area(delays):
    def strongest():
        delays.kinds = np.array([delays.number[delays.tables.family[delays.names[kind]][-1]] for kind in delays.kinds])
        delays.time()
        return delays.worst(), delays.area()

    free = np.zeros(len(delays.kinds), bool)
    slack, area = strongest()
    relaxation._spare(delays, 200, slack - 20, free)
    assert slack - 20 <= delays.worst() and delays.area() < 0.8 * area
    assert relaxation.strengthen(delays) == 0
    held = delays.area()
    strongest()
    relaxation._spare(delays, 200, slack, free)
    assert slack <= delays.worst() and held < delays.area(), "less to spare"
    strongest()
    relaxation._spare(delays, 200, slack - 20, ~free)
    assert delays.area() == area, "cells that are not to change"
