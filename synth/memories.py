"""Memories that a chip has as macros: cells in the netlist, and what each tool has to know of them.

A memory of at least :data:`SMALLEST` bits has a port to write and one to read, both on the clock, and becomes a cell
``RAM_<words>X<bits>``. Its name has all of its parameters, so that each tool's model is made from it. Its area,
reported beside that of cells, is an estimate from the macros that come with the library (:func:`macros`). These
have one port, for which they would have to be as large at least. Its timing is an assumption: :data:`SETUP` of all
inputs, :data:`ACCESS` from the clock to the outputs; those macros are faster.
"""

import re
from functools import cache
from pathlib import Path

from actcodec.synth.library import BUILD, SynthesisError, libraries, write

__all__ = ["ACCESS", "SETUP", "SMALLEST", "area", "bits", "kinds", "large", "liberty", "macros", "pins", "techmap",
           "verilog"]

SMALLEST = 4096  # bits; smaller ones become flip-flops
SETUP, ACCESS = 100, 500  # ps
CAPACITANCE, EDGE = 2, 0.05  # fF of a pin, ns of an output's transition
KIND = re.compile(r"RAM_(\d+)X(\d+)")


def large(text):
    """The kinds of macros that the memories of RTLIL become, one for each."""
    sizes = re.findall(r"^\s*memory width (\d+) size (\d+)", text, re.MULTILINE)
    return [f"RAM_{words}X{width}" for width, words in sizes if int(width) * int(words) >= SMALLEST]


def kinds(text):
    """The kinds of macros that a netlist names, in order."""
    return sorted({match[0] for match in KIND.finditer(text)})


def _size(kind):
    return map(int, KIND.fullmatch(kind).groups())


def bits(kind):
    """How many a cell of this kind keeps; 0 if it is no memory."""
    match = KIND.fullmatch(kind)
    return int(match[1]) * int(match[2]) if match else 0


@cache
def macros():
    """{(words, bits): um2} of the ``fakeram45`` macros that come with the library."""
    areas = {}
    for path in sorted(libraries().glob("fakeram45_*.lib")):
        size = re.fullmatch(r"fakeram45_(\d+)x(\d+)", path.stem)
        areas[int(size[1]), int(size[2])] = float(re.search(r"^\s*area\s*:\s*([\d.]+)", path.read_text(), re.M)[1])
    return areas


def area(kind):
    """Estimated um2 of a cell of this kind: that of macros side by side, as many bits for the least area. Each has all
    words, so that nothing has to choose between outputs.

    Raises
    ------
    SynthesisError
        If no macro has so many words.
    """
    words, width = _size(kind)
    able = [(columns, each) for (depth, columns), each in macros().items() if depth >= words]
    if not able:
        raise SynthesisError(f"{kind}: no macro of the library has {words} words")
    least = [0.0]  # for so many bits
    for count in range(1, width + 1):
        least.append(min(each + least[max(count - columns, 0)] for columns, each in able))
    return round(least[width], 3)


def pins(kind):
    """Its pins by what they are for, each a list from the lowest bit on: clock, enables, addresses and data, to write
    and to read."""
    words, width = _size(kind)
    addresses, data = range((words - 1).bit_length()), range(width)
    return {"CK": ["CK"], "WE": ["WE"], "RE": ["RE"], "WA": [f"WA{k}" for k in addresses],
            "RA": [f"RA{k}" for k in addresses], "WD": [f"WD{k}" for k in data], "RD": [f"RD{k}" for k in data]}


# Initial contents are dropped: nothing may depend on a word that was never written.
MAP = """(* techmap_celltype = "$mem_v2" *)
module map_{kind}(RD_CLK, RD_EN, RD_ARST, RD_SRST, RD_ADDR, RD_DATA, WR_CLK, WR_EN, WR_ADDR, WR_DATA);
  parameter MEMID = "", INIT = 0, SIZE = 0, OFFSET = 0, ABITS = 0, WIDTH = 0, RD_PORTS = 0, RD_CLK_ENABLE = 0,
    RD_CLK_POLARITY = 0, RD_TRANSPARENCY_MASK = 0, RD_COLLISION_X_MASK = 0, RD_WIDE_CONTINUATION = 0,
    RD_CE_OVER_SRST = 0, RD_ARST_VALUE = 0, RD_SRST_VALUE = 0, RD_INIT_VALUE = 0, WR_PORTS = 0, WR_CLK_ENABLE = 0,
    WR_CLK_POLARITY = 0, WR_PRIORITY_MASK = 0, WR_WIDE_CONTINUATION = 0;
  input RD_CLK, RD_EN, RD_ARST, RD_SRST, WR_CLK;
  input [{addresses}-1:0] RD_ADDR, WR_ADDR;
  input [{width}-1:0] WR_EN, WR_DATA;
  output [{width}-1:0] RD_DATA;
  wire _TECHMAP_FAIL_ = SIZE != {words} || WIDTH != {width} || RD_PORTS != 1 || WR_PORTS != 1 || !RD_CLK_ENABLE ||
    !WR_CLK_ENABLE || RD_TRANSPARENCY_MASK;
  {kind} _TECHMAP_REPLACE_ ({connections});
endmodule
"""


def techmap(kind):
    """The rule by which Yosys makes a macro of a memory."""
    words, width = _size(kind)
    outer = {"CK": "WR_CLK", "WE": "WR_EN[0]", "RE": "RD_EN", "WA": "WR_ADDR", "RA": "RD_ADDR", "WD": "WR_DATA",
             "RD": "RD_DATA"}
    connections = ", ".join(f".{pin}({outer[port]}{f'[{k}]' if port[1:] in ('A', 'D') else ''})"
                            for port, names in pins(kind).items() for k, pin in enumerate(names))
    return MAP.format(kind=kind, words=words, width=width, addresses=(words - 1).bit_length(), connections=connections)


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
