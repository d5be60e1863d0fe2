"""Memories beside the cells: macros stand apart, pins are where the LEF files say, and both timings know a memory's."""

import numpy as np
import pytest

from actcodec.synth import memories
from actcodec.synth.delays import Delays
from actcodec.synth.judge import judge
from actcodec.synth.layout import lef, macros, wires
from actcodec.synth.layout.placement import place
from actcodec.synth.library import PERIOD, UNCERTAINTY, SynthesisError, liberty
from actcodec.synth.netlist import Netlist
from actcodec.synth.tables import tables
from tb.synth.wired import module

KIND = "RAM_16X265"


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return liberty(tmp_path_factory.mktemp("library"))


def around(kind, bits, memory="memory"):
    """A memory of this name between flip-flops: of its data, so many bits."""
    names = memories.pins(kind)
    pins, bit, cells = {"CK": 2}, 10, {}
    for port in ("WE", "RE", "WA", "RA", "WD", "RD"):
        for name in names[port][:bits] if port in ("WD", "RD") else names[port]:
            pins[name] = bit
            cells[f"f_{name}"] = ("DFF_X1", {"CK": 2, "D": bit, "Q": bit + 1000} if port == "RD" else
                                  {"CK": 2, "D": 3, "Q": bit})
            bit += 1
    content = module(cells | {memory: (kind, pins)}, {"clk": [2], "i": [3]},
                     {"o": [bits for _, (_, one) in cells.items() if (bits := one["Q"]) > 1000]})
    content["cells"][memory]["port_directions"] = {
        pin: "output" if pin.startswith("RD") else "input" for pin in pins}
    return Netlist(content)


@pytest.mark.parametrize("kind", ["RAM_384X257", "RAM_16X265", "RAM_128X257", "RAM_16X289"])
def test_macros_are_those_of_the_estimate(kind):
    assert sum(memories.macros()[size] for size in macros.shares(kind)) == pytest.approx(memories.area(kind))


def test_a_memory_deeper_than_any_macro_is_refused():
    with pytest.raises(SynthesisError, match="9000 words"):
        macros.shares("RAM_9000X8")


def test_sides_and_pins_are_those_of_the_lef_file():
    """fakeram45_64x15: w_mask_in[0] at 2.065 to 2.135 um of the left edge, rd_out[0] at 16.135."""
    width, height, pins = macros.shape(64, 15)
    assert (width, height) == (1121, 5880)
    assert pins["w_mask_in[0]"] == (4, 210) and pins["rd_out[0]"] == (4, 1617) and pins["clk"] == (4, 5250)


def test_macros_stand_apart_from_each_other_and_from_the_core():
    width, rows, arranged = macros.arrange({"one": "RAM_384X257", "other": KIND}, 2.3e8)
    sizes = [size for kind in ("RAM_384X257", KIND) for size in macros.shares(kind)]
    assert sorted(block.name for block in arranged.blocks) == sorted(f"fakeram45_{w}x{b}" for w, b in sizes)
    boxes = [(0, 0, width, rows * lef.ROW), *((b.x, b.y, b.width, b.height) for b in arranged.blocks)]
    for k, (x, y, w, h) in enumerate(boxes):
        for x1, y1, w1, h1 in boxes[:k]:
            assert x + w <= x1 or x1 + w1 <= x or y + h <= y1 or y1 + h1 <= y
    assert width * rows * lef.ROW >= 2.3e8
    assert all(block.y >= 0 and block.y + block.height <= rows * lef.ROW + macros.HALO for block in arranged.blocks)
    for cell, kind in (("one", "RAM_384X257"), ("other", KIND)):
        assert set(arranged.spots[cell]) == {pin for names in memories.pins(kind).values() for pin in names}
        shared = len(macros.shares(kind)) - 1
        assert {len(arranged.taps[cell, pin]) for pin in ("WA0", "RE", "CK")} == {shared}
        edges = {block.x if block.x > 0 else block.x + block.width for block in arranged.blocks}
        assert all(min(abs(x - edge) for edge in edges) < 10 for x, _ in arranged.spots[cell].values()), "at the core"


def test_cells_are_placed_between_macros_and_stay_there():
    netlist = around(KIND, 40)
    placement = place(netlist)
    memory = netlist.names.index("memory")
    points = placement.points(netlist)
    for pin in ("RD0", "WD30", "WA1"):
        assert tuple(points[netlist.pin[memory, pin]]) == placement.macros.spots["memory"][pin]
    inside = [cell for cell in range(len(netlist.kinds)) if cell != memory]
    assert (placement.x[inside] >= 0).all() and (placement.x[inside] < placement.core.width).all()
    again = place(netlist, placement)
    assert again.macros is placement.macros and (again.points(netlist)[netlist.pin[memory, "RD0"]] == points[
        netlist.pin[memory, "RD0"]]).all()


def test_a_signal_for_all_macros_has_a_wire_to_each(library):
    netlist = around(KIND, 40)
    placement = place(netlist)
    memory = netlist.names.index("memory")
    wired = wires.wires(netlist, placement)
    shared, alone = (wired[netlist.pins[memory][pin]] for pin in ("WA0", "WD0"))
    count = len(macros.shares(KIND))
    driver = netlist.nets[netlist.pins[memory]["WA0"]].driver
    points = placement.points(netlist)
    reached = [tuple(points[driver]), placement.macros.spots["memory"]["WA0"], *placement.macros.taps["memory", "WA0"]]
    assert len(reached) == 1 + count and len(shared.pins) == 2 == len(alone.pins)
    xs, ys = zip(*reached, strict=True)
    assert shared.length >= max(xs) - min(xs) + max(ys) - min(ys)
    rc = wires.wire((0, 1), reached[:2], taps=reached[2:])
    assert sum(rc.capacitance) == pytest.approx(sum(shared.capacitance))
    bare = sum(wires.wire((0, 1, *range(2, 1 + count)), reached).capacitance)
    assert sum(rc.capacitance) - bare == pytest.approx((count - 1) * memories.CAPACITANCE)


@pytest.mark.parametrize("name", ["memory", "fifo.memory"])
def test_both_timings_give_a_memory_the_same_time(name, library, tmp_path):
    netlist = around(KIND, 20, name)
    placement = place(netlist)
    wired = wires.wires(netlist, placement)
    verdict = judge(netlist, wires.spef(netlist, wired, "around"), library, tmp_path, "net", "around")
    delays = Delays(netlist, wired, tables(library))
    delays.time()
    memory = netlist.names.index(name)
    ends = {(int(netlist.owner[pin]), netlist.label[pin]): slack
            for pin, slack in zip(delays.ends.tolist(), delays.end_slack.tolist(), strict=True)}
    for pin in ("WA0", "WD3", "WE"):
        assert ends[memory, pin] == pytest.approx(verdict.slacks[f"{netlist.instance(memory)}/{pin}"], abs=8)
    reader = netlist.names.index("f_RD0")
    assert ends[reader, "D"] == pytest.approx(verdict.slacks[f"c{reader}/D"], abs=8)
    assert PERIOD - UNCERTAINTY - memories.ACCESS > ends[reader, "D"] > 50
    assert np.isfinite(delays.slack[2 * netlist.pin[memory, "RD0"]])
