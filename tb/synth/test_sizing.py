"""Cells get sizes: late paths become faster, idle strength goes."""

import json
import os
import re
import subprocess
import sys
import time

import numpy as np
import pytest

from actcodec.elaboration import netlist
from actcodec.synth import sizing, timing
from actcodec.synth.delays import Delays
from actcodec.synth.flow import synthesise, yosys
from actcodec.synth.judge import judge
from actcodec.synth.library import areas, liberty
from actcodec.synth.netlist import Netlist, reached
from actcodec.synth.sizing import resize
from actcodec.synth.tables import tables
from actcodec.units import UNITS
from tb.synth.wired import module


def load(folder, stem, top):
    """The netlist of ``STEM.v``."""
    yosys([f"read_liberty -lib {liberty(folder)}", f"read_verilog {stem}.v", f"hierarchy -top {top}",
           f"write_json {stem}.json"], folder, top, "load")
    return Netlist(json.loads((folder / f"{stem}.json").read_text())["modules"][top])


@pytest.fixture(scope="module")
def unit(tmp_path_factory):
    build = tmp_path_factory.mktemp("synth")
    figures, folder, _ = synthesise("fadd", netlist(UNITS["fadd"].build(), "fadd")[0], build, "fast")
    assert figures.slack >= 0
    return build, figures, folder


def resized(unit, stem, own, drive):
    """Area and slack of the netlist whose logic of drive ``own`` has another (where there is one), before and after."""
    build, _, folder = unit
    area = areas(liberty(build))

    def other(match):
        kind = f"{match[1]}_X{drive}"
        return f"  {kind} {match[3]} (" if kind in area and not kind.startswith(("DFF", "CLK")) else match[0]

    text = re.sub(rf"^  (\w+)_X({own}) (\w+) \(", other, (folder / "net.v").read_text(), flags=re.MULTILINE)
    (folder / f"{stem}.v").write_text(text)

    def cells():
        return re.findall(r"^  (\w+_X\d+) (\w+) \(", (folder / f"{stem}.v").read_text(), re.MULTILINE)

    def figures():
        return sum(area[kind] for kind, _ in cells()), timing.analyse(liberty(build), folder, stem, "fadd", {}).slack

    before = figures()
    changed, _ = resize(liberty(build), folder, stem, "fadd", load(folder, stem, "fadd"))
    kinds = {name: kind for kind, name in cells()}
    assert changed and all(kinds[name] == kind for name, kind in changed.items())
    return before, figures()


def test_what_is_too_weak_becomes_stronger(unit):
    (area, slack), (after, better) = resized(unit, "weak", 2, 1)
    assert slack < 0 <= better and after > area


def test_what_is_too_strong_becomes_weaker(unit):
    (area, slack), (after, left) = resized(unit, "strong", 1, 2)
    assert after < 0.8 * area and min(slack, 0) <= left


def test_equal_inputs_change_places_where_it_is_late(tmp_path):
    def gates(text):
        instances = re.findall(r"^  (\w+) (\w+) \(\n(.*?)^  \);", text, re.MULTILINE | re.DOTALL)
        return {name: (kind, dict(re.findall(r"\.(\w+)\((.*?)\)", ports))) for kind, name, ports in instances}

    # A chain of the slowest inputs, beside signals that come from flip-flops.
    nor = "".join(f"""  NOR4_X1 g{i} (
    .A1(b),
    .A2(b),
    .A3(b),
    .A4(n{i}),
    .ZN(n{i + 1})
  );
  AOI22_X1 h{i} (
    .A1(b),
    .A2(b),
    .B1(b),
    .B2(m{i}),
    .ZN(m{i + 1})
  );
""" for i in range(12))
    wires = "".join(f"  wire n{i}, m{i};\n" for i in range(13))
    (tmp_path / "chain.v").write_text(f"""module chain(clk, a, b, y, z);
  input clk, a, b;
  output y, z;
{wires}  assign n0 = a;
  assign m0 = a;
{nor}  assign y = n12;
  assign z = m12;
endmodule
""")
    before = gates((tmp_path / "chain.v").read_text())
    slack = timing.analyse(liberty(tmp_path), tmp_path, "chain", "chain", {}).slack
    _, pins = resize(liberty(tmp_path), tmp_path, "chain", "chain", load(tmp_path, "chain", "chain"))
    after = gates((tmp_path / "chain.v").read_text())
    assert timing.analyse(liberty(tmp_path), tmp_path, "chain", "chain", {}).slack > slack + 100
    for name, (_, ports) in before.items():
        assert after[name][1] == {pins.get(name, {}).get(pin, pin): net for pin, net in ports.items()}
        groups = [("A1", "A2", "A3", "A4")] if name[0] == "g" else [("A1", "A2"), ("B1", "B2")]
        if name[1:] != "0":  # where all signals come at the same time
            assert after[name][1][groups[0][0]] == ports[groups[-1][-1]]
        assert (sorted(sorted(after[name][1][pin] for pin in group) for group in groups)
                == sorted(sorted(ports[pin] for pin in group) for group in groups))


def test_what_drives_more_than_it_may_becomes_stronger_though_nothing_is_late(tmp_path):
    loads = range(12)
    inverters = "".join(f"  INV_X1 h{k} (\n    .A(n),\n    .ZN(y{k})\n  );\n" for k in loads)
    (tmp_path / "load.v").write_text(f"""module load(clk, a, {", ".join(f"y{k}" for k in loads)});
  input clk, a;
  output {", ".join(f"y{k}" for k in loads)};
  wire n;
  NOR4_X1 g0 (
    .A1(a),
    .A2(a),
    .A3(a),
    .A4(a),
    .ZN(n)
  );
{inverters}endmodule
""")
    before = timing.analyse(liberty(tmp_path), tmp_path, "load", "load", {})
    kinds, _ = resize(liberty(tmp_path), tmp_path, "load", "load", load(tmp_path, "load", "load"))
    after = timing.analyse(liberty(tmp_path), tmp_path, "load", "load", {})
    assert (before.slack > 0, before.overloads, after.overloads) == (True, ("g0/ZN",), ())
    assert kinds["g0"] in ("NOR4_X2", "NOR4_X4")


def test_what_is_far_too_slow_is_given_up_early(tmp_path, monkeypatch):
    """Chains of gates that take twice the clock's period, whatever their sizes."""
    chains = range(8)
    wires = "".join(f"  wire n{i}_{j};\n" for i in chains for j in range(25))
    gates = "".join(f"  XOR2_X1 g{i}_{j} (\n    .A(n{i}_{j}),\n    .B(i[{i}]),\n    .Z(n{i}_{j + 1})\n  );\n"
                    for i in chains for j in range(24))
    ends = "".join(f"  assign n{i}_0 = i[{i}];\n  assign o[{i}] = n{i}_24;\n" for i in chains)
    ports = "(clk, i, o);\n  input clk;\n  input [7:0] i;\n  output [7:0] o;\n"

    def tried(far):
        """How many times OpenSTA was asked, and the slack, if slacks beyond ``far`` ps are given up."""
        (tmp_path / "chains.v").write_text(f"module chains{ports}{wires}{ends}{gates}endmodule\n")
        asked = []
        with monkeypatch.context() as patch:
            patch.setattr(sizing, "FAR", far)
            patch.setattr(sizing, "judge", lambda *arguments, **rest: asked.append(1) or judge(*arguments, **rest))
            resize(liberty(tmp_path), tmp_path, "chains", "chains", load(tmp_path, "chains", "chains"))
        return len(asked), timing.analyse(liberty(tmp_path), tmp_path, "chains", "chains", {}).slack

    (few, slack), (many, better) = tried(sizing.FAR), tried(-np.inf)
    assert few < many == sizing.TRIES + 1 and better < -300 and slack > 1.02 * better


def row(loads, names=str):
    """A flip-flop with an inverter that drives ``loads`` others; ``names`` makes the cells' names."""
    cells = {"first": ("DFF_X1", {"CK": 2, "D": 3, "Q": 10}), names("g"): ("INV_X1", {"A": 10, "ZN": 11})}
    for k in range(loads):
        cells[f"f{k}"] = "DFF_X1", {"CK": 2, "D": 11, "Q": 100 + k}
    return Netlist(module(cells, {"clk": [2], "i": [3]}, {"o": list(range(100, 100 + loads))}))


@pytest.mark.parametrize("loads", [1, 4, 7, 9, 10, 14, 40])
def test_usual_wires_are_opensta_s(tmp_path, loads):
    library = liberty(tmp_path).absolute()
    netlist, table = row(loads), tables(library)
    usual = {bit: sizing._Usual(table.usual(len(net.sinks))) for bit, net in netlist.nets.items()}
    delays = Delays(netlist, usual, table)
    delays.time()
    verdict = judge(netlist, None, library, tmp_path, "row", "row")
    said = timing.run(timing.link(library, tmp_path, ["row.v"], "row")
                      + 'puts "load [expr {1e15 * [[get_pins c1/ZN] capacitance rise $corner max]}]"', tmp_path)
    load = float(re.search(r"load ([\d.]+)", said)[1])
    assert delays.load[netlist.pin[1, "ZN"]] == pytest.approx(load, abs=1e-3)
    mine = dict(zip(delays.ends.tolist(), delays.end_slack.tolist(), strict=True))
    assert mine[netlist.pin[2, "D"]] == pytest.approx(verdict.slacks["c2/D"], abs=3)


def test_cells_of_parts_stay_as_they_are(tmp_path):
    """An inverter that drives forty flip-flops gets another drive, unless it lies in a part."""
    for names, stays in ((str, False), ("lane_0.{}".format, True)):
        (tmp_path / "row.v").write_text("")
        kinds, pins = resize(liberty(tmp_path).absolute(), tmp_path, "row", "row", row(40, names))
        assert (names("g") in kinds) != stays and not pins


def test_clock_gates_drive_their_flip_flops(tmp_path):
    library = liberty(tmp_path).absolute()
    for count, kinds in ((4, {"CLKGATE_X1"}), (64, {"CLKGATE_X2", "CLKGATE_X4"})):
        cells = {"gate": ("CLKGATE_X1", {"CK": 2, "E": 3, "GCK": 9})}
        for k in range(count):
            cells[f"f{k}"] = "DFF_X1", {"CK": 9, "D": 4, "Q": 100 + k}
        made = module(cells, {"clk": [2], "e": [3], "d": [4]}, {"o": list(range(100, 100 + count))})
        made["cells"]["gate"]["port_directions"]["GCK"] = "output"
        netlist = Netlist(made)
        sizing._drive(netlist, tables(library))
        assert netlist.kinds[0] in kinds


def test_of_parts_only_what_is_reached_from_outside_is_timed():
    """A part whose first register the module feeds, whose last one it reads, and with two in between."""
    made = module({
        "mine": ("DFF_X1", {"CK": 2, "D": 3, "Q": 10}),
        "part.in": ("INV_X1", {"A": 10, "ZN": 11}), "part.load": ("INV_X1", {"A": 11, "ZN": 12}),
        "part.gate": ("CLKGATE_X1", {"CK": 2, "E": 31, "GCK": 30}),
        "part.first": ("DFF_X1", {"CK": 30, "D": 11, "Q": 13}),
        "part.inner": ("NAND2_X1", {"A1": 13, "A2": 12, "ZN": 14}),
        "part.second": ("DFF_X1", {"CK": 2, "D": 14, "Q": 15}), "part.loads": ("INV_X1", {"A": 15, "ZN": 16}),
        "part.deep": ("INV_X1", {"A": 16, "ZN": 19}), "part.third": ("DFF_X1", {"CK": 2, "D": 19, "Q": 17}),
        "part.out": ("INV_X1", {"A": 17, "ZN": 18}), "part.beside": ("DFF_X1", {"CK": 2, "D": 18, "Q": 31}),
        "other": ("DFF_X1", {"CK": 2, "D": 18, "Q": 40}),
    }, {"clk": [2], "i": [3]}, {"o": [40]})
    made["cells"]["part.gate"]["port_directions"]["GCK"] = "output"
    # Paths from outside end at "first" and, by "inner", at "second"; those to outside begin at "third".
    assert set(made["cells"]) - set(reached(made)["cells"]) == {"part.deep"}
    assert reached({**made, "cells": {"mine": made["cells"]["mine"]}})["cells"].keys() == {"mine"}


def test_workers_end_with_who_made_them(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("""
import os, time
from actcodec.synth.sizing import WORKERS

if __name__ == "__main__":
    print(WORKERS.submit(os.getpid).result(), flush=True)
    time.sleep(600)
""")
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as made:
        worker = int(made.stdout.readline())
        made.kill()
    for _ in range(200):
        try:
            os.kill(worker, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    raise AssertionError("a worker goes on")
