"""The accelerator on LiteDRAM and DDR3, in examples/dram: every mode, there and back, by the driver."""

import re

import numpy as np
import pytest

from actcodec import codecs
from actcodec.demo import sample
from drivers.interfaces import Port, interfaces
from tb.harness import ROOT
from tb.soak.chance import LANE

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::SyntaxWarning")  # of LiteX

PAGE = ROOT / "docs/dram.md"
MODES = [(mode.name, dict(values)) for mode in codecs.MODES.values() if mode.format
         for values in dict.fromkeys([(), *(tuple(values.items()) for values, _ in mode.variants)])]


def test_the_page_has_both_tables():
    for name in ("rates", "sweep"):
        table, = re.findall(rf"<!-- {name} -->\n(.*?)<!-- end -->", PAGE.read_text(), re.DOTALL)
        lines = table.strip().splitlines()
        assert len(lines) > 2 and len({line.count("|") for line in lines}) == 1


def test_buses_are_those_whose_names_begin_so():
    names = ("clk", "m_axi_0_araddr", "m_axi_payload_wdata", "s_axil_bresp", "m_axis_tdata", "s_axis_tkeep",
             "max_tdata")
    buses, others = interfaces([Port(name, "input", 1) for name in names])
    assert [(bus.name, bus.bus, bus.side) for bus in buses] == [
        ("m_axi_0", "AXI4", "master"), ("m_axi_payload", "AXI4", "master"), ("s_axil", "AXI4Lite", "slave"),
        ("m_axis", "AXI4Stream", "master"), ("s_axis", "AXI4Stream", "slave")]
    assert [port.name for port in others] == ["clk", "max_tdata"]


@pytest.fixture(scope="module")
def machine():
    from examples.dram.simulation import Machine

    with Machine(LANE.modes, formats=LANE.formats) as one:  # whose lane is compiled anyway
        yield one


@pytest.mark.regress
@pytest.mark.parametrize(("mode", "options"), MODES, ids=lambda it: it if isinstance(it, str) else "-".join(
    map(str, it.values())))
def test_every_mode_there_and_back(machine, mode, options, random):
    """Golden's bytes, and cycles that are no less than the port allows, nor twice what a busy DDR3 needs."""
    from examples.dram.trips import trip

    name = random.choice(["conv0", "ReLU_layers_0_relu1"])
    one = trip(machine, np.ascontiguousarray(sample()[name][:2, :8]), mode, **options)
    assert 8 <= one.least <= min(one.compressing, one.decompressing), one
    assert max(one.compressing, one.decompressing) < 3 * one.least, one


@pytest.mark.regress
def test_a_payload_that_is_not_golden_s_shows(machine, monkeypatch):
    from examples.dram.trips import trip

    x = np.ascontiguousarray(sample()["conv0"][:1, :4])
    write = machine.write
    monkeypatch.setattr(machine, "write", lambda address, data: write(address, bytes(4) + data[4:]))
    with pytest.raises(AssertionError, match="payload is not golden's"):
        trip(machine, x, "sfpr")
