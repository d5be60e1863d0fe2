"""The size of every cell and the order of its equal inputs, by OpenSTA: ABC's own choice knows neither clocks nor
flip-flops."""

import re
from pathlib import Path

from actcodec.synth import timing

__all__ = ["resize"]

SCRIPTS = [Path(__file__).with_name(f"{name}.tcl") for name in ("order", "sizing")]


def resize(library, folder, stem, top, parts=(), arrival=timing.ARRIVAL):
    """Gives the cells of ``folder/stem.v`` other drives and their equal inputs another order: paths that are too slow
    become faster, as far as that goes, then all cells that can afford it smaller. The netlists of its ``parts``, boxes,
    stay as they are. Changes the file and returns {cell: its new kind} and {cell: {pin: the one that has its net now}}.
    """
    path = folder / f"{stem}.v"
    script = "".join(script.read_text() for script in SCRIPTS).replace("SIZES", f"{stem}.sizes")
    timing.run(timing.link(library, folder, [*parts, path.name], top) + timing.constraints(arrival) + script, folder)
    kinds, pins = {}, {}
    for line in (folder / f"{stem}.sizes").read_text().splitlines():
        cell, before, after = line.split()
        if before == "kind":
            kinds[cell] = after
        elif before != after:
            pins.setdefault(cell, {})[before] = after

    def changed(found):
        kind, cell, ports = found.groups()
        new = pins.get(cell, {})
        ports = re.sub(r"^    \.(\w+)\(", lambda port: f"    .{new.get(port[1], port[1])}(", ports, flags=re.MULTILINE)
        return f"  {kinds.get(cell, kind)} {cell} (\n{ports}  );"

    instance = re.compile(r"^  (\w+) (\w+) \(\n(.*?)^  \);", re.MULTILINE | re.DOTALL)
    path.write_text(instance.sub(changed, path.read_text()))
    return kinds, pins
