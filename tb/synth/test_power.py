"""Power: of registers as by hand from the library's tables, and a netlist that answers otherwise is refused."""

import json

import numpy as np
import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from actcodec.elaboration import netlist
from actcodec.synth import power, replay
from actcodec.synth.flow import synthesise
from actcodec.synth.library import PERIOD, SynthesisError
from actcodec.synth.traffic import Record, parse

WIDTH, CYCLES = 8, 200
# Of DFF_X1, in fJ: both edges of CK while D and Q are 0; a transition of Q, on average, with that of QN; of D while CK
# is low. In fF: CK. In nW: leakage. Of CLKGATE_X1, in fJ: a cycle while E is 0.
CK, Q, D, PIN, LEAKAGE, OFF = 4.497803 + 2.441622, 8.5, 3.7, 0.949653, 79.112308, 4.88171


class Bank(wiring.Component):
    """Registers with one enable."""

    i: In(WIDTH)
    enable: In(1)
    o: Out(WIDTH)

    def elaborate(self, platform):
        m = Module()
        register = Signal(WIDTH, reset_less=True)
        with m.If(self.enable):
            m.d.sync += register.eq(self.i)
        m.d.comb += self.o.eq(register)
        return m


@pytest.fixture(scope="module")
def bank(tmp_path_factory):
    build = tmp_path_factory.mktemp("synth")
    _, folder, _ = synthesise("bank", netlist(Bank(), "bank")[0], build, "fast")
    design = json.loads((folder / "net.json").read_text())
    for cell in design["modules"]["bank"]["cells"].values():
        if "DFF" in cell["type"]:
            cell["connections"].setdefault("QN", [])  # as Yosys may write outputs that nobody reads
    (folder / "net.json").write_text(json.dumps(design))

    def estimate(data, enable, wrong=0):
        data, enable = (np.broadcast_to(np.asarray(value, np.uint8), CYCLES) for value in (data, enable))
        kept, expected = 0, []
        for value, on in zip(data, enable, strict=True):
            expected.append(kept ^ wrong)
            kept = value if on else kept

        def bits(values):
            return np.unpackbits(np.asarray(values, np.uint8)[:, None], axis=1, bitorder="little")

        record = Record({"rst": np.zeros((CYCLES, 1), np.uint8), "i": bits(data), "enable": enable[:, None],
                         "o": bits(expected)}, range(10, CYCLES))
        return power.estimate("bank", folder, record, build)
    return estimate


def milliwatts(femtojoules):
    return femtojoules / PERIOD


def test_clocked_registers_take_what_the_library_says(bank):
    report = bank(0, 1)
    assert report.registers == pytest.approx(WIDTH * (milliwatts(CK) + 1e-6 * LEAKAGE), rel=1e-3)
    assert report.clocked == 1 and report.toggles == 0
    assert report.clock == pytest.approx(milliwatts(1.1**2 * (WIDTH * PIN + 1.837892)), rel=1e-3)


def test_registers_behind_a_clock_gate_that_is_off_only_leak(bank):
    report = bank(0, 0)
    assert report.registers == pytest.approx(WIDTH * 1e-6 * LEAKAGE, rel=1e-3)
    assert report.clocked == 0 and report.gates == pytest.approx(milliwatts(OFF) + 1e-6 * 48.64726, rel=1e-3)


def test_data_that_moves_takes_in_proportion(bank):
    rest, half, full = (bank(data, 1) for data in (0, [0, 0, 255, 255] * (CYCLES // 4), [0, 255] * (CYCLES // 2)))
    assert (half.toggles, full.toggles) == (pytest.approx(0.5, abs=0.1), pytest.approx(1, abs=0.2))
    first, second = half.registers - rest.registers, full.registers - rest.registers
    # Energy of the output and of D, and what drives the load of 5 fF; CK takes a tenth more where D and Q differ.
    assert second == pytest.approx(WIDTH * milliwatts(Q + D / 2 + 1.1**2 * 5 / 2), rel=0.3)
    assert first == pytest.approx(second / 2, rel=0.1)
    assert full.total == pytest.approx(full.internal + full.switching + full.leakage, rel=1e-4)


def test_a_netlist_that_does_not_answer_as_the_rtl_is_refused(bank):
    with pytest.raises(SynthesisError, match="bank: its netlist differs from the RTL in cycle 10, at 1 outputs"):
        bank(0, 1, wrong=4)


def test_a_record_is_what_was_printed():
    trace = parse(["1 0 0 0\n", "0 1ff 1 0\n", "0 100 1 1\n", "0 0 0 1\n"],
                  {"rst": 1, "i__payload": 9, "i__valid": 1, "i__ready": 1})
    assert trace.window == range(2, 3)
    assert trace.bits["i__payload"].tolist() == [[0] * 9, [1] * 9, [0] * 8 + [1], [0] * 9]


@pytest.mark.parametrize(("output", "valid"), [
    ("o__payload", "o__valid"), ("m_axi_0_araddr", "m_axi_0_arvalid"), ("m_axi_10_wstrb", "m_axi_10_wvalid"),
    ("s_axil_bresp", "s_axil_bvalid"), ("m_axis_tdata", "m_axis_tvalid"), ("m_axi_0_rready", "m_axi_0_rready"),
    ("m_axi_0_awvalid", "m_axi_0_awvalid"), ("interrupt", "interrupt")])
def test_outputs_are_compared_while_they_mean_something(output, valid):
    assert replay._valid(output) == valid
