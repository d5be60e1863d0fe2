"""Mutants: a bench kills them, a weak one lets some survive, and only what no bench can tell counts as equivalent."""

import os
import re
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from click.testing import CliRunner

from actcodec.synth import miter, mutate
from actcodec.synth.library import SynthesisError
from actcodec.synth.miter import prove
from actcodec.synth.mutants import SUBJECTS, draw, drawn
from actcodec.synth.mutate import campaign, judge
from tb.harness import ROOT
from tb.synth.half import half

SKID = SUBJECTS["skid"]
COUNT, SEED = 12, 3


@pytest.mark.parametrize("name", SUBJECTS)
def test_every_subject_can_be_built(name):
    subject = SUBJECTS[name]
    assert isinstance(subject.component(**subject.parameters), wiring.Component)


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    return tmp_path_factory.mktemp("mutate")


def test_the_bench_of_the_skid_buffer_kills_its_mutants_and_a_weak_one_does_not(build):
    score = judge(SKID, COUNT, SEED, build=build)
    assert len(score.killed) == COUNT and score.row()[4] == "100.0"
    assert all("test_skid." in failed for failed in score.killed.values())
    weak = judge(replace(SKID, bench="tb/synth/weak.py"), COUNT, SEED, build=build)
    assert weak.folder == score.folder
    assert 0 < len(weak.survived) < COUNT and len(weak.killed) + len(weak.survived) == COUNT
    assert all(verdict.startswith("different after ") for verdict in weak.survived.values())
    assert all(failed.endswith("weak.passes_beats") for failed in weak.killed.values()), "one is never valid"
    messages = []
    assert campaign(SKID, score.folder, SEED, messages.append).keys() == {*range(COUNT + 1)}
    assert not messages, "remembered"


@pytest.mark.parametrize("bench, chosen, other", [
    ("test_skid", "test_skid[False]", "test_skid[True]"), ("test_counter", None, "test_counter[1-64-16]")])
def test_benches_of_other_components_are_not_run_and_told(build, bench, chosen, other):
    folder = draw(SKID, COUNT, SEED, build)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-p", "no:cacheprovider", f"tb/common/{bench}.py"], cwd=ROOT,
        text=True, stdout=subprocess.PIPE, env={**os.environ, "MUTANTS": f"skid:{folder}", "SIM": "verilator",
                                                     "PYTEST_ADDOPTS": ""}).stdout
    assert re.findall(r"::(.*)", done) == [chosen] * bool(chosen)
    assert re.search(rf"^not run, \d+ without .*: .*{re.escape(other)}", done, re.MULTILINE), done


def test_a_seed_draws_the_same_mutants(build):
    numbers = [[str(mutant) for mutant in drawn(draw(SKID, COUNT, seed, build))] for seed in (SEED, SEED + 1)]
    assert numbers[0] != numbers[1] and [len(row) for row in numbers] == [COUNT, COUNT]
    assert numbers[0] == [str(mutant) for mutant in drawn(draw(SKID, COUNT, SEED, build.with_name("again")))]
    assert any("rtl/common/skid.py:" in text for text in numbers[0])


@pytest.fixture
def replay(build, monkeypatch):
    """Replays a mutant of the skid buffer, with a bench that ends with this status."""
    monkeypatch.setattr(mutate, "prove", lambda *_: "unknown")

    def run(number, status):
        monkeypatch.setattr(mutate, "_call", lambda *_, **__: SimpleNamespace(wait=lambda: status))
        mutate.replay(SKID, draw(SKID, COUNT, SEED, build), number, SEED)
    return run


@pytest.mark.parametrize("status, text", [(0, "survives: unknown"), (1, "killed")])
def test_a_replay_says_what_became_of_the_mutant(replay, status, text, capsys):
    replay(COUNT, status)
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith(f"skid {COUNT}: ") and second == text


@pytest.mark.parametrize("number, status, reason", [
    (0, 0, "skid: mutant 0: choose from 1 to 12"), (13, 0, "skid: mutant 13: choose from 1 to 12"),
    (1, 2, "pytest has ended with status 2"), (1, 5, "pytest has ended with status 5")])
def test_a_replay_that_says_nothing_of_the_mutant_fails(replay, number, status, reason):
    with pytest.raises(SynthesisError, match=reason):
        replay(number, status)


def test_a_replay_that_fails_ends_with_an_error(build, monkeypatch):
    monkeypatch.setattr(mutate, "draw", lambda *_: draw(SKID, COUNT, SEED, build))
    done = CliRunner().invoke(mutate.command, ["skid", "--mutant", "99"])
    assert (done.exit_code, done.output.strip()) == (1, "error: skid: mutant 99: choose from 1 to 12")


class Register(wiring.Component):
    """A beat as a register, and what some mutants of it do."""

    i: In(stream.Signature(4))
    o: Out(stream.Signature(4))
    mutant: In(16)

    def elaborate(self, platform):
        m = Module()
        take, before, waits = Signal(), Signal(4), Signal()
        withdrawn = waits & (~self.i.valid | (self.i.payload != before))
        m.d.sync += [before.eq(self.i.payload), waits.eq(self.i.valid & ~self.i.ready)]
        m.d.comb += [take.eq(~self.o.valid | self.o.ready), self.i.ready.eq(take ^ ((self.mutant == 1) & withdrawn))]
        with m.If(take):
            m.d.sync += [self.o.valid.eq(self.i.valid), self.o.payload.eq(
                Mux(self.i.valid | (self.mutant != 2), self.i.payload, 0) ^ (self.mutant == 3))]
        with m.If((self.mutant == 4) & (before == 7) & self.o.valid & ~self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        return m


@pytest.mark.parametrize("number, verdict", [
    (0, "equivalent"),
    (1, "equivalent"),  # unlike the unit only if a source breaks the rules
    (2, "equivalent"),  # another payload only while not valid
    (3, "different after 2 cycles"),
    (4, "different after 3 cycles")])
def test_equivalent_is_what_nobody_who_obeys_the_rules_can_tell(tmp_path, number, verdict):
    (tmp_path / "mutated.il").write_text(rtlil.convert(Register(), name="register"))
    assert prove("register", tmp_path, number) == verdict
    assert prove("register", tmp_path, number) == verdict, "remembered"


def test_a_verdict_is_remembered_only_when_all_of_it_is_written(tmp_path):
    (tmp_path / "mutated.il").write_text(rtlil.convert(Register(), name="register"))
    with half("different"):
        prove("register", tmp_path, 3)
    assert prove("register", tmp_path, 3) == "different after 2 cycles"


class Sum(wiring.Component):
    """Adds up a number that stands from ``start`` on, three times; what some mutants do."""

    start: In(1)
    number: In(4)
    done: Out(1)
    total: Out(6)
    mutant: In(16)

    def elaborate(self, platform):
        m = Module()
        step = Signal(3)
        m.d.sync += step.eq(Mux(self.start, 1, step << 1))
        with m.If(self.start):
            m.d.sync += self.total.eq(Mux(self.mutant == 1, 5, 0))
        with m.If(step.any()):
            m.d.sync += self.total.eq(self.total + (self.number ^ ((self.mutant == 2) & step[1])))
        with m.If((self.mutant == 3) & step[0]):
            m.d.sync += self.total.eq(0)
        with m.If((self.mutant == 3) & step[1]):
            m.d.sync += self.total.eq(self.number << 1)
        m.d.sync += self.done.eq(Mux(self.mutant == 4, step[1], step[2]))
        return m


@pytest.mark.parametrize("number, verdict", [
    (0, "equivalent"),
    (1, "different after 5 cycles"),  # wherever the sum begins shows in the end
    (2, "different after 5 cycles"),
    (3, "equivalent"),  # what the sum is before it is done
    (4, "different after 4 cycles")])
def test_what_a_contract_hides_is_what_it_says(tmp_path, monkeypatch, number, verdict):
    contract = miter.Contract(
        "reg busy = 0; always @(posedge clk) busy <= ~rst & (start | busy & ~a_done);", stable={"number": "busy"},
        broken=("busy & start",), meaningful={"total": "a_done"})
    (tmp_path / "mutated.il").write_text(rtlil.convert(Sum(), name="sum"))
    assert prove("sum", tmp_path, 3).startswith("different"), "without the contract"
    monkeypatch.setitem(miter.CONTRACTS, "sum", contract)
    assert prove("sum", tmp_path, number) == verdict
