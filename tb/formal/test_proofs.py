"""The engine of proofs: it proves what holds, finds what does not, and says where nothing can fail."""

from pathlib import Path

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.skid import Skid
from formal.__main__ import label
from formal.catalogue import proofs
from formal.engine import prove
from formal.harness import Harness
from formal.order import whole
from formal.streams import HOLDS, INDEPENDENT, independent, keeps

PAGE = Path(__file__).resolve().parents[2] / "docs/verification.md"


class Broken(wiring.Component):
    """A register that waits for ``ready`` before it is valid, and forgets its beat two cycles later."""

    i: In(stream.Signature(1))
    o: Out(stream.Signature(1))

    def elaborate(self, platform):
        m = Module()
        valid, waited = Signal(), Signal()
        m.d.comb += [self.o.valid.eq(valid & (waited | self.o.ready)), self.i.ready.eq(~valid)]
        m.d.sync += waited.eq(valid & ~waited)
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [valid.eq(1), self.o.payload.eq(self.i.payload)]
        with m.Elif(waited | self.o.ready):
            m.d.sync += valid.eq(0)
        return m


def test_what_holds_is_proved_and_can_fail(tmp_path):
    results = prove("skid", whole(Skid(1), 2, 1), build=tmp_path, faults=40)
    assert len(results) == 3
    for result in results:
        assert result.good, result
        assert result.status == "proved"
    assert prove("skid", whole(Skid(1), 2, 1), build=tmp_path, faults=40) == results  # remembered


def test_what_is_broken_fails(tmp_path):
    (held,) = prove("held", keeps(Broken()), build=tmp_path)
    assert (held.name, held.status) == (HOLDS, "failed")
    assert Path(held.trace).stat().st_size > 0
    (waits,) = prove("waits", independent(Broken(), tmp_path / "opened"), build=tmp_path, depth=1)
    assert (waits.name, waits.status) == (INDEPENDENT, "failed")


def test_what_cannot_fail_is_told(tmp_path):
    h = Harness(Skid(1))
    unit = h.unit()
    h.check("nothing", unit.o.valid | ~unit.o.valid)
    (result,) = prove("nothing", h, build=tmp_path, faults=10)
    assert result.status == "proved"
    assert result.fault is None
    assert not result.good


@pytest.mark.parametrize("name", proofs())
def test_the_page_has_every_proof(name):
    assert f"| {label(proofs()[name])} |" in PAGE.read_text()
