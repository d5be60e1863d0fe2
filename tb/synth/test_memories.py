"""Memories that become macros: mapped, timed, replayed and proved around them; what is in them and what is not."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from actcodec.elaboration import netlist
from actcodec.rtl.common.fifo import Fifo
from actcodec.synth import memories, report
from actcodec.synth.cells import cells
from actcodec.synth.equivalence import prove
from actcodec.synth.flow import synthesise
from actcodec.synth.library import SynthesisError, liberty
from actcodec.synth.replay import Netlist
from actcodec.synth.traffic import Record

WIDTH, DEPTH = 64, 64


@pytest.fixture(scope="module")
def fifo(tmp_path_factory):
    build = tmp_path_factory.mktemp("synth")
    return synthesise("fifo", netlist(Fifo(WIDTH, DEPTH), "fifo")[0], build, "fast")[:2]


def test_a_large_memory_is_a_macro_and_a_small_one_flip_flops(fifo, tmp_path):
    figures, folder = fifo
    assert figures.memory == WIDTH * DEPTH == memories.SMALLEST
    assert WIDTH < figures.flops < 2 * WIDTH, "the output register, and counters"
    assert "RAM_64X64" in (folder / "net.v").read_text()
    small, _, _ = synthesise("fifo", netlist(Fifo(WIDTH - 1, DEPTH), "fifo")[0], tmp_path, "fast")
    assert small.memory == 0 and small.flops > (WIDTH - 1) * DEPTH


def test_its_area_is_that_of_the_macros_side_by_side_that_take_least(fifo):
    assert len(memories.macros()) == 12 and memories.macros()[512, 64] == pytest.approx(17301.438)
    small, large = memories.macros()[64, 32], memories.macros()[512, 64]
    assert memories.area("RAM_64X64") == fifo[0].macros == pytest.approx(2 * small)
    assert memories.area("RAM_65X64") == memories.area("RAM_200X61") > 2 * small, "none of 64 words"
    assert memories.area("RAM_384X256") == pytest.approx(4 * large)
    assert memories.area("RAM_384X257") == pytest.approx(4 * large + memories.macros()[1024, 32])
    assert memories.area("RAM_16X265") < 10000
    with pytest.raises(SynthesisError, match="RAM_4096X8: no macro of the library has 4096 words"):
        memories.area("RAM_4096X8")


def test_the_report_has_areas_with_and_without(fifo):
    figures, _ = fifo
    row = report.Row("fifo", None, figures)
    without, all_of_it = report.lines([row])[0][1:3]
    assert (without, all_of_it) == (f"{figures.area:,.0f}", f"{figures.area + 2481.248:,.0f}")
    assert "fifo 4,096 bits, 2,481 um2" in report.macros([row])
    assert report.lines([report.Row("fifo", None, replace(figures, memory=0, macros=0.0))])[0][2] == "-"


def test_its_netlist_is_proved_and_a_wrong_one_told(fifo):
    _, folder = fifo
    assert prove("fifo", folder, build=folder.parent).proved
    for change in ("RE", "WD3", "WA0"):
        wrong = folder.with_name(f"wrong-{change}")
        shutil.copytree(folder, wrong, ignore=shutil.ignore_patterns("proof.json"))
        design = json.loads((wrong / "net.json").read_text())
        macro, = (cell for cell in design["modules"]["fifo"]["cells"].values() if memories.bits(cell["type"]))
        macro["connections"][change] = ["1"]
        (wrong / "net.json").write_text(json.dumps(design))
        with pytest.raises(SynthesisError, match="its netlist is not what the RTL says"):
            prove("fifo", wrong, build=folder.parent)


@pytest.mark.parametrize("wrong", [False, True])
def test_its_netlist_is_replayed(fifo, wrong):
    """Ten beats go in, then all come out; with a wrong bit in one of them the netlist is told to differ."""
    _, folder = fifo
    module = json.loads((folder / "net.json").read_text())["modules"]["fifo"]
    beats = np.random.default_rng(7).integers(0, 2, (10, WIDTH), np.uint8)
    cycles = 2 + 30
    bits = {name: np.zeros((cycles, len(port["bits"])), np.uint8) for name, port in module["ports"].items()}
    bits["rst"][:2] = 1
    bits["i__payload"][2:12], bits["i__valid"][2:12] = beats, 1
    bits["i__ready"][:] = 1
    bits["o__ready"][:] = 1
    bits["o__payload"][5:15], bits["o__valid"][5:15] = beats, 1
    bits["o__payload"][9, 5] ^= wrong
    record, known = Record(bits, range(2, cycles)), Netlist("fifo", module, cells(liberty(folder.parent)))
    if wrong:
        with pytest.raises(SynthesisError, match="differs from the RTL in cycle 9, at 1 outputs"):
            known.run(record)
    else:
        assert known.run(record).cycles == cycles - 2


class TwoReaders(wiring.Component):
    a: In(6)
    b: In(6)
    d: In(WIDTH)
    one: Out(WIDTH)
    other: Out(WIDTH)

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = Memory(shape=WIDTH, depth=DEPTH, init=[])
        write, *reads = memory.write_port(), memory.read_port(), memory.read_port()
        m.d.comb += [write.addr.eq(self.a), write.data.eq(self.d), write.en.eq(1), reads[0].addr.eq(self.a),
                     reads[1].addr.eq(self.b), reads[0].en.eq(1), reads[1].en.eq(1), self.one.eq(reads[0].data),
                     self.other.eq(reads[1].data)]
        return m


def test_what_no_macro_can_be_is_refused(tmp_path):
    with pytest.raises(SynthesisError, match=r"Assertion failed: .*RAM_"):
        synthesise("two", netlist(TwoReaders(), "two")[0], tmp_path, "fast")
