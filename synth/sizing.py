"""The size of every cell, by OpenSTA: ABC's own choice knows neither clocks nor flip-flops."""

import re
from pathlib import Path

from synth import timing

__all__ = ["resize"]

SCRIPT = Path(__file__).with_suffix(".tcl")


def resize(library, folder, stem, top, parts=()):
    """Gives the cells of ``folder/stem.v`` other drives: paths that are too slow become faster, as far as that goes,
    then all cells that can afford it smaller. The netlists of its ``parts``, boxes, stay as they are. Changes the file
    and returns {cell: its new kind}."""
    path = folder / f"{stem}.v"
    script = SCRIPT.read_text().replace("SIZES", f"{stem}.sizes")
    timing.run(timing.link(library, [*parts, path.name], top) + timing.CONSTRAINTS + script, folder)
    kinds = dict(line.split() for line in (folder / f"{stem}.sizes").read_text().splitlines())
    path.write_text(re.sub(r"^  \w+ (\w+) \(", lambda found: f"  {kinds[found[1]]} {found[1]} (" if found[1] in kinds
                           else found[0], path.read_text(), flags=re.MULTILINE))
    return kinds
