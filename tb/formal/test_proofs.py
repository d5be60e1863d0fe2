"""The engine of proofs proves what holds, refutes what does not, and says where nothing can fail; what is recorded."""

from pathlib import Path

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.skid import Skid
from actcodec.rtl.jpegact.rld import SLOTS
from actcodec.rtl.jpegact.runlength_coder import Coder
from actcodec.rtl.offload.memory import beat_planner
from actcodec.rtl.offload.memory import writer as memory_writer
from actcodec.synth import records
from formal import rld, rle, writer
from formal.beats import PLANNED, plans
from formal.catalogue import proofs
from formal.engine import fingerprint, prove
from formal.harness import Harness
from formal.order import whole
from formal.runlength import GOES_ON, KNOWN
from formal.streams import HOLDS, INDEPENDENT, independent, keeps


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


def only(harness, name):
    """The harness with one of its properties."""
    harness.checks = {name: harness.checks[name]}
    return harness


def test_a_window_longer_than_the_steps_that_fit_is_told(tmp_path, monkeypatch):
    """The kept beat and a full FIFO of steps may be one burst, which then has to be closed."""
    statuses = []
    for window in (5, 6):
        for module in (memory_writer, writer):
            monkeypatch.setattr(module, "DEPTH", 4)
            monkeypatch.setattr(module, "WINDOW", window)
        harness = only(writer.writes(memory_writer.Writer(12, 5, "independent"), tmp_path / "flat"), writer.OPEN)
        statuses += [result.status for result in prove(f"window {window}", harness, 60, build=tmp_path, faults=1)]
    assert statuses == ["proved", "failed"]


def test_a_planner_that_takes_all_values_for_such_of_4_bytes_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(beat_planner, "of_size", lambda about, four, two, one: four)
    harness = only(plans(beat_planner.BeatPlanner(12, halves=True, codes=True), tmp_path / "flat"), PLANNED)
    (result,) = prove("planner", harness, 60, build=tmp_path, faults=1)
    assert result.status == "failed"


class Hasty(Coder):
    """A coder that tells that a block is complete while rows of it still come."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.comb += m.submodules.decoder.may.eq(~self.done)
        return m


class Shy(Coder):
    """A coder that does not begin to write where all share rows, even when its turn has come."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        encoder = m.submodules.encoder
        m.d.comb += encoder.may.eq(~self.done & (encoder.line_of < SLOTS))
        return m


@pytest.mark.parametrize("module, coder, property_", [(rld, Hasty, KNOWN), (rle, Shy, GOES_ON)], ids=["hasty", "shy"])
def test_a_coder_that_breaks_its_guarantee_is_told(module, coder, property_, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "Coder", coder)
    harness = only(module.goes_on(tmp_path / "flat"), property_)
    (result,) = prove("coder", harness, 60, build=tmp_path, faults=1)
    assert result.status == "failed"


def test_every_proof_is_recorded_and_nothing_else():
    """Also those that have not been run, without properties."""
    assert {name: one["unit"] for name, one in records.read("proofs").items()} == {
        name: proof.label for name, proof in proofs().items()}


def test_the_key_changes_with_the_unit_and_with_what_is_asked():
    keys = [fingerprint(whole(Skid(size), 2, 1), **options)
            for size, options in ((1, {}), (1, {}), (2, {}), (1, {"faults": 40}))]
    h = whole(Skid(1), 2, 1)
    h.check("more", 1)
    assert keys[0] == keys[1] and len({*keys, fingerprint(h)}) == 4
