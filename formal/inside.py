"""RTLIL of units of which one sees more than their ports."""

import re

from amaranth.back import rtlil
from amaranth.hdl import Signal

from actcodec.synth.flow import yosys
from formal.harness import Harness

__all__ = ["Inside", "flat", "opened", "peeked"]

FIRST = 100000  # index of a port, behind all others


def flat(component, folder, *commands, absent=()):
    """A unit's RTLIL as one module ``unit``. Submodules ``absent``, patterns of their paths, are left out, and what
    they give may have any value in any cycle."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "unit.il").write_text(rtlil.convert(component, name="unit", emit_src=False))
    yosys(["read_rtlil unit.il", "hierarchy -check -top unit", "proc", *(f"cutpoint t:unit.{path}" for path in absent),
           "flatten", *commands, "write_rtlil flat.il"], folder, "unit", "flat")
    return (folder / "flat.il").read_text()


def opened(component, folder):
    """A unit of which registers are no part: what they hold comes from the input ``state``, what they will hold next
    goes to the output ``following``. What is undefined, as a memory's word beyond its depth, is 0: all copies have the
    same. Returns its RTLIL and the number of bits."""
    size = 0

    def cut(cell):
        nonlocal size
        d, q, width = (re.search(rf"^    \w+ \\{name} (.*)$", cell[0], re.M)[1] for name in ("D", "Q", "WIDTH"))
        low, size = size, size + int(width)
        bits = f"[{size - 1}:{low}]"
        return f"  connect {q} \\state {bits}\n  connect \\following {bits} {d}\n"

    text = re.sub(r"^  cell \$dff .*?^  end\n", cut, flat(component, folder, "opt_clean", "memory_map", "opt_clean",
                                                          "dffunmap", "setundef -undriven -zero"), flags=re.M | re.S)
    if left := re.search(r"^  cell \$\w*(?:ff|latch|mem)\w* ", text, re.M):
        raise ValueError(f"a register that is no $dff: {left[0]}")
    if size:
        ports = f"  wire width {size} input {FIRST} \\state\n  wire width {size} output {FIRST + 1} \\following\n"
        text = text.replace("module \\unit\n", "module \\unit\n" + ports)
    return text, size


def peeked(component, folder, *names, cut=(), absent=()):
    """A unit whose signals ``names``, those of submodules with a path before them, are outputs as well. Signals ``cut``
    may have any value in any cycle, as those of submodules ``absent``: what holds all the same holds of the unit."""
    text = flat(component, folder, *(f"cutpoint w:{name}" for name in cut), absent=absent)
    for index, name in enumerate(names):
        text, count = re.subn(rf"^  wire (width \d+ )?(\\{re.escape(name)})$", rf"  wire \1output {FIRST + index} \2",
                              text, flags=re.M)
        if not count:
            raise ValueError(f"there is no signal {name}")
    return text


class Inside(Harness):
    """A harness that sees more of a unit than its ports: all but the component is as in :func:`peeked`.

    Attributes
    ----------
    ports
        The unit.
    inner : dict
        Signal by name.
    """

    def __init__(self, component, folder, *names, cut=(), absent=()):
        super().__init__(component, peeked(component, folder, *names, cut=cut, absent=absent))
        wires = re.findall(r"^  wire (?:width (\d+) )?output \d+ \\(\S+)$", self.text, re.M)
        widths = {name: int(width or 1) for width, name in wires}
        self.inner = {name: Signal(widths[name], name=name.replace(".", "_")) for name in names}
        self.ports = self.unit(**{f"o_{name}": value for name, value in self.inner.items()})
