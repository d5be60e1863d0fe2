"""OpenSTA sizes cells: late paths become faster, idle strength goes."""

import re

import pytest

from rtl.units import UNITS
from synth import timing
from synth.flow import netlist, synthesise
from synth.library import areas, liberty
from synth.sizing import resize


@pytest.fixture(scope="module")
def unit(tmp_path_factory):
    build = tmp_path_factory.mktemp("synth")
    figures, folder, _ = synthesise("fadd", netlist(UNITS["fadd"].build(), "fadd")[0], build, "fast")
    assert figures.slack >= 0
    return build, figures, folder


def resized(unit, stem, own, drive):
    """Area and slack of the netlist whose logic of drive ``own`` has another (where there is one), before and after."""
    build, _, folder = unit
    area = areas(liberty(build))

    def other(found):
        kind = f"{found[1]}_X{drive}"
        return f"  {kind} {found[3]} (" if kind in area and not kind.startswith(("DFF", "CLK")) else found[0]

    text = re.sub(rf"^  (\w+)_X({own}) (\w+) \(", other, (folder / "net.v").read_text(), flags=re.MULTILINE)
    (folder / f"{stem}.v").write_text(text)

    def cells():
        return re.findall(r"^  (\w+_X\d+) (\w+) \(", (folder / f"{stem}.v").read_text(), re.MULTILINE)

    def figures():
        return sum(area[kind] for kind, _ in cells()), timing.analyse(liberty(build), folder, stem, "fadd", {}).slack

    before = figures()
    changed = resize(liberty(build), folder, stem, "fadd")
    kinds = {name: kind for kind, name in cells()}
    assert changed and all(kinds[name] == kind for name, kind in changed.items())
    return before, figures()


def test_what_is_too_weak_becomes_stronger(unit):
    (area, slack), (after, better) = resized(unit, "weak", 2, 1)
    assert slack < 0 <= better and after > area


def test_what_is_too_strong_becomes_weaker(unit):
    (area, slack), (after, left) = resized(unit, "strong", 1, 2)
    assert after < 0.8 * area and min(slack, 0) <= left
