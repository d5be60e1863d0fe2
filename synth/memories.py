"""Memories that a chip has as macros: taken out before mapping, and what the other tools have to know of them.

A memory of at least :data:`SMALLEST` bits, with a port to write and one to read, both on the clock, becomes a cell
``RAM_<words>X<bits>``. Its name says all that there is to know, so whoever meets one makes its model from that. It has
no area here, as that is the memory compiler's; its bits are reported. Its timing is an assumption: :data:`SETUP` of all
inputs, :data:`ACCESS` from the clock to the outputs.
"""

import re
from pathlib import Path

from synth.library import BUILD, SynthesisError, write

__all__ = ["ACCESS", "SETUP", "SMALLEST", "bits", "extract", "kinds", "large", "liberty", "pins", "verilog"]

SMALLEST = 4096  # bits; smaller ones become flip-flops
SETUP, ACCESS = 100, 500  # ps
CAPACITANCE, EDGE = 2, 0.05  # fF of a pin, ns of an output's transition
KIND = re.compile(r"RAM_(\d+)X(\d+)")


def large(text):
    """Whether RTLIL has a memory that becomes a macro."""
    sizes = re.findall(r"^\s*memory width (\d+) size (\d+)", text, re.MULTILINE)
    return any(int(width) * int(size) >= SMALLEST for width, size in sizes)


def kinds(text):
    """The kinds of macros that a netlist names, in order."""
    return sorted({found[0] for found in KIND.finditer(text)})


def _size(kind):
    return map(int, KIND.fullmatch(kind).groups())


def bits(kind):
    """How many a cell of this kind keeps; 0 if it is no memory."""
    found = KIND.fullmatch(kind)
    return int(found[1]) * int(found[2]) if found else 0


def pins(kind):
    """Its pins by what they are for, each a list from the lowest bit on: clock, enables, addresses and data, to write
    and to read."""
    words, width = _size(kind)
    addresses, data = range((words - 1).bit_length()), range(width)
    return {"CK": ["CK"], "WE": ["WE"], "RE": ["RE"], "WA": [f"WA{k}" for k in addresses],
            "RA": [f"RA{k}" for k in addresses], "WD": [f"WD{k}" for k in data], "RD": [f"RD{k}" for k in data]}


def extract(module):
    """Turns the large memories of a module of Yosys's JSON into macros. Initial contents are dropped: whoever reads
    what was never written must not care.

    Raises
    ------
    SynthesisError
        If one has other ports than those of a macro.
    """
    for name, cell in module["cells"].items():
        if cell["type"] != "$mem_v2":
            continue
        given, nets = {key: int(value.replace("x", "0"), 2) for key, value in cell["parameters"].items()
                       if set(value) <= set("01x")}, cell["connections"]
        if given["SIZE"] * given["WIDTH"] < SMALLEST:
            continue
        if ((given["RD_PORTS"], given["WR_PORTS"], given["RD_CLK_ENABLE"], given["WR_CLK_ENABLE"]) != (1, 1, 1, 1)
                or given["RD_TRANSPARENCY_MASK"] or len(set(nets["WR_EN"])) > 1
                or nets["RD_CLK"] != nets["WR_CLK"] or {nets["RD_ARST"][0], nets["RD_SRST"][0]} - {"0", "x"}):
            raise SynthesisError(f"{name}: a memory of {given['SIZE']} words that no macro can be")
        kind = f"RAM_{given['SIZE']}X{given['WIDTH']}"
        outer = {"CK": "WR_CLK", "WE": "WR_EN", "RE": "RD_EN", "WA": "WR_ADDR", "RA": "RD_ADDR", "WD": "WR_DATA",
                 "RD": "RD_DATA"}
        connections = {pin: [bit] for port, inner in pins(kind).items()
                       for pin, bit in zip(inner, nets[outer[port]], strict=False)}
        module["cells"][name] = {
            "hide_name": 0, "type": kind, "parameters": {}, "attributes": {"keep": "1"}, "connections": connections,
            "port_directions": {pin: "output" if pin.startswith("RD") else "input" for pin in connections}}


HEADER = """  delay_model : table_lookup;
  time_unit : "1ns";
  voltage_unit : "1V";
  current_unit : "1mA";
  leakage_power_unit : "1nW";
  pulling_resistance_unit : "1kohm";
  capacitive_load_unit (1, ff);
  nom_voltage : 1.1;
  nom_temperature : 25;
  nom_process : 1;
"""
THRESHOLDS = {"input": 50, "output": 50, "slew_lower": 30, "slew_upper": 70}  # percent


def liberty(kind, build=BUILD):
    """The Liberty file of a kind, in ``build``; returns its path."""
    def both(values):
        """A number, or {name: number}, for rising and falling edges."""
        return " ".join(f'{name.format(edge)} (scalar) {{ values ("{value}"); }}' for name, value in values.items()
                        for edge in ("rise", "fall"))

    def pin(name):
        related = 'timing () { related_pin : "CK"; timing_type :'
        if name == "CK":
            return f"direction : input; clock : true; capacitance : {CAPACITANCE};"
        if name.startswith("RD"):
            times = both({"cell_{}": ACCESS / 1000, "{}_transition": EDGE})
            return f"direction : output; {related} rising_edge; {times} }}"
        times = both({"{}_constraint": SETUP / 1000})
        return f"direction : input; capacitance : {CAPACITANCE}; {related} setup_rising; {times} }}"

    limits = "".join(f"  {what}_threshold_pct_{edge} : {share};\n" for what, share in THRESHOLDS.items()
                     for edge in ("rise", "fall"))
    body = "".join(f"    pin ({name}) {{ {pin(name)} }}\n" for names in pins(kind).values() for name in names)
    text = f"library ({kind}) {{\n{HEADER}{limits}  cell ({kind}) {{\n    area : 0;\n{body}  }}\n}}\n"
    return write(Path(build, f"{kind}.lib"), text.encode())


def verilog(kind):
    """A model for simulators, of the same ports."""
    words, width = _size(kind)
    ports = pins(kind)

    def joined(port):
        return f"{{{', '.join(reversed(ports[port]))}}}"

    names = [f"{'output' if port == 'RD' else 'input'} {name}" for port in ports for name in ports[port]]
    return f"""module {kind}({', '.join(names)});
  reg [{width - 1}:0] words [{words - 1}:0];
  reg [{width - 1}:0] q;
  wire [{len(ports['WA']) - 1}:0] wa = {joined('WA')}, ra = {joined('RA')};
  always @(posedge CK) begin
    if (RE) q <= words[ra];
    if (WE) words[wa] <= {joined('WD')};
  end
  assign {joined('RD')} = q;
endmodule
"""
