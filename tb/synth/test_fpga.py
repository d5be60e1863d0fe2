"""The FPGA flow: known circuits take known parts of the device, and what it cannot hold or must not is refused."""

import json

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out
from click.testing import CliRunner

from actcodec.elaboration import netlist
from actcodec.synth import fpga, records
from actcodec.synth.fpga import fit, recall
from actcodec.synth.library import SynthesisError
from tb.synth.bank import Bank, Pair


class Multipliers(wiring.Component):
    """Products of ``count`` pairs of 18 bits, in a row, without registers; and a bit that needs no time."""

    def __init__(self, count):
        super().__init__({"i": In(18), "o": Out(36), "quick": Out(1)})
        self.count = count

    def elaborate(self, platform):
        m = Module()
        product = Signal(36)
        m.d.comb += product.eq(self.i * self.i)
        for index in range(1, self.count):
            following = Signal(36, name=f"product{index}")
            m.d.comb += following.eq(product[:18] * product[18:])
            product = following
        m.d.comb += [self.o.eq(product), self.quick.eq(self.i[0])]
        return m


class Ram(wiring.Component):
    """1,024 words of 16 bits: 16 kbit."""

    address: In(10)
    i: In(16)
    write: In(1)
    o: Out(16)

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = words = memory.Memory(shape=16, depth=1024, init=[])
        write, read = words.write_port(), words.read_port(transparent_for=())
        m.d.comb += [write.addr.eq(self.address), write.data.eq(self.i), write.en.eq(self.write),
                     read.addr.eq(self.address), self.o.eq(read.data)]
        return m


# Amaranth would not let this through.
OSCILLATOR = """
module \\unit
  wire input 1 \\i
  wire output 2 \\o
  cell $and $ring
    parameter \\A_SIGNED 0
    parameter \\B_SIGNED 0
    parameter \\A_WIDTH 1
    parameter \\B_WIDTH 1
    parameter \\Y_WIDTH 1
    connect \\A \\i
    connect \\B \\o
    connect \\Y \\o
  end
end
"""


def text(component):
    return netlist(component, "unit")[0]


@pytest.fixture(scope="module")
def registers(tmp_path_factory):
    build = tmp_path_factory.mktemp("fpga")
    return build, *fit("unit", text(Bank(8)), build)


def test_registers_are_counted_without_those_around_them(registers):
    _, figures, _ = registers
    assert (figures.luts, figures.flops, figures.dsps, figures.brams) == (8 + 1, 8, 0, 0)  # one is a zero
    assert figures.fmax > 150
    assert figures.seconds > 0


def test_an_unchanged_unit_is_remembered(registers):
    build, figures, cached = registers
    assert not cached
    assert fit("unit", text(Bank(8)), build) == (figures, True)
    assert recall("unit", text(Bank(8)), build) == figures
    assert recall("unit", text(Bank(9)), build) is None


def test_a_module_that_a_unit_has_twice(tmp_path):
    whole, parts = netlist(Pair(), "unit")
    assert list(parts) == ["unit_bank"]
    figures, _ = fit("unit", whole, tmp_path, parts)
    assert figures.flops == 16
    assert recall("unit", whole, tmp_path, parts) == figures
    assert recall("unit", whole, tmp_path, {"unit_bank": ""}) is None


def test_multipliers_and_paths_from_port_to_port(tmp_path):
    figures, _ = fit("unit", text(Multipliers(4)), tmp_path)
    assert (figures.dsps, figures.flops) == (4, 0)
    assert figures.fmax < 100  # four products in a row


def test_memories(tmp_path):
    figures, _ = fit("unit", text(Ram()), tmp_path)
    assert (figures.brams, figures.dsps) == (1, 0)


def test_refused_when_it_does_not_fit(tmp_path):
    for _ in range(2):  # a failure is not remembered as a success
        with pytest.raises(SynthesisError, match=r"unit on LFE5U-85F.*: .*MULT18X18D"):
            fit("unit", text(Multipliers(157)), tmp_path)
    assert recall("unit", text(Multipliers(157)), tmp_path) is None


def test_refused_when_it_oscillates(tmp_path):
    with pytest.raises(SynthesisError, match=r"unit: .*loop"):
        fit("unit", OSCILLATOR, tmp_path)


def test_a_missing_tool_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(fpga, "TOOLS", (("no-such-router", "router"),))
    with pytest.raises(SynthesisError, match=r"no router: .*no-such-router"):
        fit("unit", text(Bank(8)), tmp_path)
    assert recall("unit", text(Bank(8)), tmp_path) is None


def test_one_accelerator_fits_and_every_unit_is_placed():
    labels = [job.label for job in fpga.placed(["quantize", "dct", "maxpool", "accelerator"])]
    assert labels == ["quantize", "dct", "maxpool (width 16)", "accelerator (1 CDU)"]


def test_variants_are_placed_by_their_own_names():
    jobs = fpga.placed(["quantize", "accelerator-1-cdu-standalone", "splitter-rice"])
    assert [job.label for job in jobs] == ["quantize", "accelerator (1 CDU, standalone)", "splitter (rice)"]


def test_the_command_prints_what_fits_and_fails_with_what_does_not(monkeypatch):
    def place(name, text, parts):
        if name == "fadd":
            raise SynthesisError("fadd: no room")
        return fpga.Fit(1234, 220, 5, 6, 98.7, 2.0, "heap"), False

    monkeypatch.setattr(fpga, "fit", place)
    result = CliRunner().invoke(fpga.command, ["quantize", "fadd"], env={"COLUMNS": "120"})
    assert result.exit_code == 1
    assert "quantize 1,234 220 5 6 99 2 heap" in " ".join(result.output.split())
    assert "error: fadd: no room" in result.output
    assert CliRunner().invoke(fpga.command, ["quantize"]).exit_code == 0


def test_figures_are_recorded_beside_those_of_others(tmp_path):
    path = tmp_path / "fpga.json"
    for label, luts in (("dct", 5), ("zvc", 7), ("dct", 6)):
        fpga.record({label: fpga.Fit(luts, 2, 0, 1, 99.5, 3.0, "static")}, {label: f"key of {label}"}, path)
    record = json.loads(path.read_text())
    assert record == {label: {"luts": luts, "flops": 2, "dsps": 0, "brams": 1, "fmax": 99.5, "placer": "static",
                              "key": f"key of {label}", **records.stamp()} for label, luts in (("dct", 6), ("zvc", 7))}
    assert list(record) == ["dct", "zvc"]
