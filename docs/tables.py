"""``make docs``: the figures in the documents' tables, from ``synth/baseline.json``, ``synth/fpga.json`` and the
records of placed netlists and of power in ``docs/records``.

``python -m docs.tables`` writes areas, flip-flops, slacks and ratios into the tables between the lines ``<!-- figures
-->`` and ``<!-- /figures -->``; with ``--check`` it only tells whether they are up to date. What a row is called says
which records it adds up; everything else in a table stays as it is. ``docs/synthesis.md`` has four tables more:
``fpga``, ``placed`` and ``sky130`` have a row for each unit that was placed on an FPGA or as cells, or mapped to those
of sky130, ``late`` one for each that does not meet the clock. What is stale, by :mod:`docs.figures`, has a mark.
"""

import json
import re
import sys
from pathlib import Path

from actcodec.synth.layout.command import mhz
from actcodec.synth.library import NAND2, PERIOD
from actcodec.synth.sky130.flow import gates as sky130_gates
from docs import figures, marks

__all__ = ["DOCUMENTS", "PLACED", "POWER", "ROWS", "fpga", "late", "mark", "placed", "power", "render",
           "render_power", "render_synthesis", "sky130"]

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = ("README.md", "docs/units.md")
PLACED, POWER = "docs/synthesis.md", "docs/power.md"
BEGIN, END = "<!-- figures -->", "<!-- /figures -->"
# Rows that are not called after one record: {first cell: {record: how many}}.
ROWS = {
    "`quantize` and `round`": {"quantize": 1, "round": 1},
    "`cdu --no-packed`": {"cdu (in a lane)": 1},
    "`cdu --no-packed`, nibble": {"cdu (in a lane, nibble)": 1},
    "`cdu --modes zvc`": {"cdu (cDMA+)": 1},
    "`division_encode` in a CDU": {"division_encode (in a CDU)": 1},
    "`division_decode` in a CDU": {"division_decode (in a CDU)": 1},
    **{f"`mx_{way}`, {form}": {f"mx_{way} ({form})": 1} for way in ("encode", "decode")
       for form in ("e4m3", "int8", "e2m1")},
    "`cdu --no-packed`, rice": {"cdu (in a lane, rice)": 1},
    "`cdu --no-packed`, DIVISION": {"cdu (in a lane, DIVISION)": 1},
    "`cdu --no-packed`, JPEG-BASE": {"cdu (in a lane, JPEG-BASE)": 1},
    "both together": {"collector": 1, "splitter": 1},
    "lane": {"lane": 1},
    "lane, `--memory independent`": {"lane (independent memory)": 1},
    "lane, `--scan`": {"lane (scan)": 1},
    "4 CDUs, collector, splitter": {"cdu (in a lane)": 4, "collector": 1, "splitter": 1},
    **{f"the same with `{coder}`": {f"cdu (in a lane, {coder})": 4, f"collector ({coder})": 1, f"splitter ({coder})": 1}
       for coder in ("nibble", "rice")},
    "`accelerator --memory independent`": {"accelerator (independent memory)": 1},
    "`accelerator --cdus 1`": {"accelerator (1 CDU)": 1},
    "`accelerator --preset standalone --cdus 1`": {"accelerator (1 CDU, standalone)": 1},
    "`maxpool`, rows up to 16": {"maxpool (width 16)": 1},
    "`maxpool_backward`, the same": {"maxpool_backward (width 16)": 1},
}


def mark(text, stale):
    """The text of a figure with a mark if it is stale, and without one otherwise."""
    return text.replace(figures.MARK, "") + (figures.MARK if stale else "")


def records(cell, recorded):
    """[(record, how many)] of the row with that first cell. Raises ValueError for one that nothing is recorded of."""
    named = re.match(r"`(\w+)`", cell)
    counts = ROWS.get(cell) or ({named[1]: 1} if named else {})
    if not counts or not set(counts) <= set(recorded):
        raise ValueError(f"no figures are recorded for the row {cell!r}")
    return [(recorded[label] | {"label": label}, count) for label, count in counts.items()]


def row(header, cells, recorded, stale):
    """The cells of a row with what is recorded; the first figure has the mark of all that are ``stale``."""
    parts = records(cells[0], recorded)
    area = sum(record["area"] * count for record, count in parts)
    memories = sum(record.get("macros", 0) * count for record, count in parts)
    new = {"area": f"{area:,.0f}", "with memories": f"{area + memories:,.0f}",
           "flip-flops": f"{sum(record['flops'] * count for record, count in parts):,}",
           "slack": f"{min(record['slack'] for record, _ in parts):+.0f}"}
    paper = cells[header.index("paper")].replace(",", "") if "paper" in header else ""
    if paper:
        new["ratio"] = f"{area / int(paper):.2f}"
    # what follows a number is not recorded
    cells = [re.sub(r"^[-+]?[\d,.]+", new[name], cell) if name in new and cell else cell
             for name, cell in zip(header, cells, strict=True)]
    area = header.index("area")
    cells[area] = mark(cells[area], any(record["label"] in stale for record, _ in parts))
    return cells


def split(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def table(lines, recorded, stale):
    """A table's lines with what is recorded."""
    header = [cell.split(",")[0] for cell in split(lines[0])]
    for line in lines[2:]:
        cells = split(line)
        yield line if (new := row(header, cells, recorded, stale)) == cells else "| " + " | ".join(new) + " |"


def render(text, recorded, stale=()):
    """A document with what is recorded, and marks on what is ``stale``. Raises ValueError for a row that nothing is
    recorded of."""
    pieces = re.split(f"({re.escape(BEGIN)}\n.*?{re.escape(END)})", text, flags=re.DOTALL)
    for i, piece in enumerate(pieces):
        if piece.startswith(BEGIN):
            lines = piece.splitlines()
            body = [line for line in lines if line.startswith("|")]
            start = lines.index(body[0])
            lines[start + 2 : start + len(body)] = table(body, recorded, stale)
            pieces[i] = "\n".join(lines)
    return "".join(pieces)


def fpga(entries, stale=()):
    """The lines of the FPGA's table."""
    yield "| unit | LUTs | flip-flops | multipliers | MHz |"
    yield "|---|---:|---:|---:|---:|"
    for label, one in entries.items():
        luts = mark(format(one["luts"], ","), label in stale)
        yield f"| {label} | {luts} | {one['flops']:,} | {one['dsps']} | {one['fmax']:.0f} |"


def late(recorded, stale=()):
    """The lines of the table of what does not meet the clock, or that nothing is such."""
    if all(one["slack"] >= 0 for one in recorded.values()):
        before = ", ".join(f"`{label}`" for label in recorded if label in stale)
        yield f"Everything that is mapped meets 1.455 GHz{'; by the flow or RTL before: ' * bool(before)}{before}."
        return
    yield "| unit | area, um² | slack, ps | recipe |"
    yield "|---|---:|---:|---|"
    for label, one in recorded.items():
        if one["slack"] < 0:
            area = mark(format(one["area"], ",.0f"), label in stale)
            yield f"| {label} | {area} | {one['slack']} | `{one['recipe']}` |"


def placed(entries, stale=()):
    """The lines of the table of placed netlists."""
    yield ("| unit | before placement | placed (late) | MHz | sized (late) | MHz | um² | more | mm | "
           "0.0675, 0.110, 0.177 fF/um | clock: um², mW, skew |")
    yield "|---|" + 10 * "---:|"
    for label, one in entries.items():
        (slack, area), tree = one["mapped"], one["clock"]
        cells = [f"{slack:+.0f}", f"{one['placed']:+.0f} ({one['late']:,})", mhz(one["placed"]),
                 f"{one['slack']:+.0f} ({one['left']:,})", mhz(one["slack"]),
                 mark(f"{one['area']:,.0f}", label in stale), f"{one['area'] / area - 1:+.1%}", f"{one['length']:,.0f}",
                 ", ".join(f"{late:+.0f}" for late in one["corners"].values()),
                 f"{tree['area']:,.0f}, {tree['power']:.1f}, {tree['skew']:.0f}"]
        yield f"| {label} | {' | '.join(cells)} |"


def sky130(entries, stale=()):
    """The lines of the table of netlists of sky130's cells."""
    yield "| unit | kGE, Nangate45 | MHz | kGE, sky130 | more | um² | slack, ps | MHz | recipe |"
    yield "|---|" + 7 * "---:|" + "---|"
    for label, one in entries.items():
        first = one["nangate45"]
        before, after = first["area"] / NAND2 / 1000, sky130_gates(one["area"])
        recipe = f"`{one['recipe']}`" + (f" (`{first['recipe']}`)" if one["recipe"] != first["recipe"] else "")
        yield (f"| {label} | {before:,.2f} | {1e6 / (PERIOD - first['slack']):,.0f} | "
               f"{mark(f'{after:,.2f}', label in stale)} | {after / before - 1:+.0%} | {one['area']:,.0f} | "
               f"{one['slack']:+.0f} | {one['fmax']:.0f} | {recipe} |")


def render_synthesis(text, recorded, stale=None):
    """docs/synthesis.md with what is recorded of the FPGA, and of units that do not meet the clock."""
    stale = stale or {"fpga": (), "areas": (), "placed": (), "sky130": ()}
    return marks.render(text, {
        "fpga": lambda: fpga(json.loads((ROOT / "synth/fpga.json").read_text()), stale["fpga"]),
        "placed": lambda: placed(json.loads((ROOT / "docs/records/placed.json").read_text()), stale["placed"]),
        "sky130": lambda: sky130(json.loads((ROOT / "docs/records/sky130.json").read_text()), stale["sky130"]),
        "late": lambda: late(recorded, stale["areas"])})


# Rows of the table of power: {first cell: {record: how many}}, all of a CDU's modes apart from what is idle.
WATTS = {
    "SFPR (paper 34.3)": {"sfpr": 1}, "alignment buffer": {"align": 1}, "DCT (paper 273.4)": {"dct": 1},
    "SH, `quantize`": {"quantize": 1}, "CDU in a lane": {"cdu (in a lane)": 1}, "lane": {"lane": 1},
    "collector, 4 CDUs": {"collector": 1}, "splitter, 4 CDUs": {"splitter": 1},
    "tensor_plan, 4 CDUs": {"tensor_plan": 1},
    "4 CDUs, collector, splitter (paper: 1,360)": {"cdu (in a lane)": 4, "collector": 1, "splitter": 1},
    "4 lanes, collector, splitter, plan": {"lane": 4, "collector": 1, "splitter": 1, "tensor_plan": 1},
}
IDLE = {("collector, 4 CDUs", "decompress"), ("splitter, 4 CDUs", "compress")}


def power(entries, stale=()):
    """The lines of the table of power."""
    yield "| mW | compress | decompress |"
    yield "|---|---:|---:|"
    for name, parts in WATTS.items():
        cells = []
        for way in ("compress", "decompress"):
            total = sum(count * entries[label][way] for label, count in parts.items())
            text = f"{total:,.1f}" if len(parts) == 1 else f"{total:,.0f}"
            cells.append(mark(text, set(parts) & set(stale)) + ", idle" * ((name, way) in IDLE))
        yield f"| {name} | {' | '.join(cells)} |"


def render_power(text, entries, stale=()):
    """docs/power.md with what is recorded."""
    return marks.render(text, {"power": lambda: power(entries, stale)})


def main(check):
    recorded = json.loads((ROOT / "synth/baseline.json").read_text())
    watts = json.loads((ROOT / "docs/records/power.json").read_text())
    stale, differ = figures.stale_labels(), []
    for name, function in [*((name, lambda text: render(text, recorded, stale["areas"])) for name in DOCUMENTS),
                           (PLACED, lambda text: render_synthesis(text, recorded, stale)),
                           (POWER, lambda text: render_power(text, watts, stale["power"]))]:
        before = (ROOT / name).read_text()
        after = function(before)
        if after != before:
            differ.append(name)
            if not check:
                (ROOT / name).write_text(after)
    if check and differ:
        sys.exit(f"figures differ from the records in synth: {', '.join(differ)}; run make docs")


if __name__ == "__main__":
    main("--check" in sys.argv[1:])
