"""Registers that become those of multipliers: which ones do, and that the netlist still does the same."""

import json

import pytest
from amaranth.hdl import Module, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from actcodec.elaboration import netlist
from actcodec.synth.flow import yosys
from actcodec.synth.fpga import SYNTHESIS
from actcodec.synth.library import SynthesisError
from actcodec.synth.multipliers import absorb

# Lattice's, as far as it is used: TN1267, sysDSP Usage Guide. The other registers, and resets, have no model.
MODEL = """
module MULT18X18D ({pins} input SIGNEDA, SIGNEDB, SOURCEA, SOURCEB, CLK0, CE0, RST0);
  parameter REG_INPUTA_CLK = "NONE";
  parameter REG_INPUTB_CLK = "NONE";
  parameter REG_OUTPUT_CLK = "NONE";
  wire [17:0] a = {{{A}}};
  wire [17:0] b = {{{B}}};
  reg [17:0] a_q, b_q;
  reg [35:0] p_q;
  wire [17:0] a_i = REG_INPUTA_CLK == "CLK0" ? a_q : a;
  wire [17:0] b_i = REG_INPUTB_CLK == "CLK0" ? b_q : b;
  wire [35:0] p = {{{{18{{SIGNEDA & a_i[17]}}}}, a_i}} * {{{{18{{SIGNEDB & b_i[17]}}}}, b_i}};
  always @(posedge CLK0) if (CE0) begin
    a_q <= a;
    b_q <= b;
    p_q <= p;
  end
  assign {{{P}}} = REG_OUTPUT_CLK == "CLK0" ? p_q : p;
endmodule
""".format(pins="".join(f"{way} {side}{k}, " for side, way, size in (("A", "input", 18), ("B", "input", 18),
                                                                     ("C", "input", 18), ("P", "output", 36))
                        for k in range(size)),
           **{side: ", ".join(f"{side}{k}" for k in reversed(range(36 if side == "P" else 18))) for side in "ABP"})


class Product(wiring.Component):
    """A product between registers, with what stands in the way: ``how``."""

    def __init__(self, how):
        super().__init__({"a": In(signed(5)), "b": In(signed(5)), "enable": In(1), "other": In(1), "o": Out(signed(10)),
                          "also": Out(10)})
        self.how = how

    def elaborate(self, platform):
        m = Module()
        a, b = (Signal(signed(5), name=name, reset_less=self.how != "reset") for name in "ab")
        product = Signal(signed(10), reset_less=True, init=1 if self.how == "awake" else 0)
        left, right = a, b
        if self.how == "constant":
            right = -13
        elif self.how == "ones":  # of both operands bits are constant
            left, right = (one[:4] | 1 for one in (a, b))
        with m.If(self.enable):
            m.d.sync += a.eq(self.a)
        with m.If(self.other if self.how == "mixed" else self.enable):
            m.d.sync += b.eq(self.b)
        with m.If(self.other if self.how == "enables" else self.enable):
            m.d.sync += product.eq(left * right)
        m.d.comb += [self.o.eq(product), self.also.eq({"read": a, "product": left * right}.get(self.how, 0))]
        return m


# How many registers go, of 10 of the operands and as many as the product has.
ABSORBED = {"": 20, "constant": 15, "read": 15, "product": 10, "enables": 10, "mixed": 10, "ones": 8, "reset": 10,
            "awake": 10}


@pytest.mark.parametrize("how", ABSORBED)
def test_the_netlist_does_the_same(how, tmp_path):
    text, _ = netlist(Product(how), "unit")
    (tmp_path / "unit.il").write_text(text)
    (tmp_path / "model.v").write_text(MODEL)
    yosys(["read_rtlil unit.il", f"{SYNTHESIS} -top unit -json unit.json"], tmp_path, "unit", "synthesis")
    registers = _registers(tmp_path)
    assert absorb(tmp_path / "unit.json") == registers - _registers(tmp_path) == ABSORBED[how]
    _check(tmp_path)


def test_what_does_not_the_same_is_seen(tmp_path):
    """Of the test before: a product whose register is one of the multiplier's, but stands in the netlist, too."""
    (tmp_path / "unit.il").write_text(netlist(Product(""), "unit")[0])
    (tmp_path / "model.v").write_text(MODEL)
    yosys(["read_rtlil unit.il", f"{SYNTHESIS} -top unit -json unit.json"], tmp_path, "unit", "synthesis")
    content = json.loads((tmp_path / "unit.json").read_text())
    multiplier, = (cell for cell in content["modules"]["unit"]["cells"].values() if cell["type"] == "MULT18X18D")
    register = next(cell for cell in content["modules"]["unit"]["cells"].values() if cell["type"] == "TRELLIS_FF")
    multiplier["parameters"]["REG_OUTPUT_CLK"] = "CLK0"
    multiplier["connections"] |= {"CLK0": register["connections"]["CLK"], "CE0": ["1"]}
    multiplier["port_directions"] |= {"CLK0": "input", "CE0": "input"}
    (tmp_path / "unit.json").write_text(json.dumps(content))
    with pytest.raises(SynthesisError, match="proof did fail"):
        _check(tmp_path)


def _registers(folder):
    cells = json.loads((folder / "unit.json").read_text())["modules"]["unit"]["cells"]
    return sum(cell["type"] == "TRELLIS_FF" for cell in cells.values())


def _check(folder):
    """Whatever comes in, in eight cycles, netlist and RTL give the same."""
    unit = json.loads((folder / "unit.json").read_text())["modules"]["unit"]
    (folder / "alone.json").write_text(json.dumps({"modules": {"unit": unit}}))
    yosys(["read_verilog -overwrite +/lattice/cells_sim_ecp5.v", "read_verilog -overwrite model.v",
           "read_json alone.json", "hierarchy -top unit", "proc", "flatten", "rename unit netlist",
           "design -stash netlist", "read_rtlil unit.il", "hierarchy -top unit", "proc", "flatten", "rename unit rtl",
           "design -copy-from netlist netlist", "miter -equiv -make_assert -flatten netlist rtl miter",
           "hierarchy -top miter", "opt -full", "async2sync", "dffunmap",
           "sat -verify -set-init-zero -prove-asserts -tempinduct-baseonly -maxsteps 8 miter"],
          folder, "unit", "proof")
