"""What a run says: the table on screen, and the same as JSON and as Markdown."""

import json
from dataclasses import asdict, dataclass, field, fields, replace

from rich import box
from rich.table import Table

from actcodec.codecs import PAPERS
from actcodec.synth import baseline, fpga, memories, page
from actcodec.synth.flow import Figures
from actcodec.synth.library import BUILD, NAND2, PERIOD
from actcodec.synth.power import Power

__all__ = ["NOTES", "PAPER", "TARGET", "Row", "lines", "macros", "sharing", "sums", "table", "whole", "write"]

# What the papers say of what is built here, too, and what this project wants to need.
ROWS = [row for paper in PAPERS for row in getattr(paper, "ROWS", ())]
PAPER = {row.name: row.area for row in ROWS}
TARGET = {row.name: row.target for row in ROWS if row.target}
POWER = {row.name: row.power for row in ROWS}

NOTES = (
    "Nangate45, typical corner, 1.455 GHz with 5 % uncertainty. The library's usual wires, no clock tree, no test "
    "logic: synthesis alone, before any layout.",
    f"kGE: thousands of NAND2_X1 of {NAND2} um2; flop %: share of flip-flops and clock gates; slack: by OpenSTA, in ps "
    f"of a period of {PERIOD}, to and from registered neighbours; mW: while real activations pass, in the direction "
    "that takes more.",
    "paper: JPEG-ACT, Tables IV and V, in um2, by Synopsys Design Compiler and FreePDK45. Its text says that results "
    "were scaled to 15 nm and 50 % added for wires, not whether the tables' were; ours are as mapped, so a ratio is a "
    "rough guide.",
    "The paper's figure for a CDU is our sum of its SFPR, DCT + iDCT, SH and ZVC + ZVD, without the buffers. Ours for "
    "4 CDUs has collector and splitter, but neither AXI nor registers.",
)


@dataclass(frozen=True)
class Row:
    """One line of the table: a label, the row of :data:`PAPER` beside it or None, the figures; what it takes of an
    FPGA and {direction: :class:`~actcodec.synth.power.Power`}, if known."""

    label: str
    paper: str | None
    figures: Figures
    fit: fpga.Fit | None = None
    power: dict = field(default_factory=dict)

    @property
    def ratio(self):
        """Our area over the paper's."""
        return self.figures.area / PAPER[self.paper] if self.paper else None


HEADER = ("unit", "um2", "with memories", "kGE", "flops", "flop %", "slack", "MHz", "mW", "paper", "ratio", "target")


WIDE = 120  # characters that all of it takes
NARROW = ("with memories", "kGE", "flop %", "MHz")  # what is left out of less


def lines(rows):
    """The table's cells as text, a tuple for each row, under :data:`HEADER`."""
    return [
        (
            row.label,
            f"{row.figures.area:,.0f}",
            f"{row.figures.area + row.figures.macros:,.0f}" if row.figures.memory else "-",
            f"{row.figures.area / NAND2 / 1000:.2f}",
            f"{row.figures.flops:,}",
            f"{row.figures.sequential / row.figures.area:.0%}" if row.figures.area else "-",
            f"{row.figures.slack:.0f}" + ("!" if row.figures.slack < 0 else ""),
            f"{row.figures.fmax:.0f}",
            f"{max(power.total for power in row.power.values()):.1f}" if row.power else "-",
            f"{PAPER[row.paper]:,}" if row.paper else "-",
            f"{row.ratio:.2f}" if row.paper else "-",
            f"{TARGET[row.paper]:,}" + ("!" if row.figures.area > TARGET[row.paper] else "")
            if row.paper in TARGET else "-",
        )
        for row in rows
    ]


# What has no power of its own because no traffic was recorded for it as a whole: {label: {label of a part: how many}}.
WHOLES = {"accelerator": {"lane": 4, "collector": 1, "splitter": 1, "tensor_plan": 1}}


def together(powers):
    """The power of [({direction: power}, how many)], in each direction that all of them have."""
    result = {}
    for direction in set.intersection(*(set(power) for power, _ in powers)):
        several = [power[direction] for power, count in powers for _ in range(count)]
        mean = {"toggles", "clocked", "cycles"}
        result[direction] = Power(**{
            one.name: sum(getattr(power, one.name) for power in several) / (len(several) if one.name in mean else 1)
            for one in fields(Power)})
    return dict(sorted(result.items()))


# Rows that stand beside one of the paper's together: {label: (the paper's row, {label of a part: how many})}.
SUMS = {
    "quantize + round": ("Quantize (SH)", {"quantize": 1, "round": 1}),
    "collector + splitter": ("Collector + Splitter", {"collector": 1, "splitter": 1}),
    "4 CDUs, collector, splitter": ("JPEG-ACT, 4 CDUs", {"cdu (in a lane)": 4, "collector": 1, "splitter": 1}),
}


def sums(rows):
    """The rows of :data:`SUMS` all of whose parts are there."""
    figures, powers = {row.label: row.figures for row in rows}, {row.label: row.power for row in rows}
    result = []
    for label, (paper, parts) in SUMS.items():
        if set(parts) <= set(figures):
            slowest = min((figures[part] for part in parts), key=lambda part: part.slack)
            added = {name: sum(count * getattr(figures[part], name) for part, count in parts.items())
                     for name in ("area", "sequential", "cells", "flops", "gates", "memory", "macros", "seconds")}
            several = [(f"{part} {index}" if count > 1 else part, figures[part])
                       for part, count in parts.items() for index in range(count)]
            added["parts"] = {f"{part}.{unit}".rstrip("."): areas for part, one in several
                              for unit, areas in one.parts.items()}
            added["slacks"] = tuple(sorted(slack for _, one in several for slack in one.slacks))
            power = together([(powers[part], count) for part, count in parts.items()])
            result.append(Row(label, paper, replace(slowest, **added), power=power))
    return result


def whole(rows):
    """The rows, with the power of :data:`WHOLES`."""
    powers = {row.label: row.power for row in rows}
    return [replace(row, power=together([(powers.get(part, {}), count) for part, count in WHOLES[row.label].items()]))
            if row.label in WHOLES else row for row in rows]


def sharing(rows):
    """What one DCT for both directions saves over one for each, as a sentence, or None if those were not mapped."""
    area = {row.label: row.figures.area for row in rows}
    both, forward, inverse = (area.get(label) for label in ("dct", "dct (forward)", "dct (inverse)"))
    if None in (both, forward, inverse):
        return None
    return (f"DCT: one unit for both directions takes {both:,.0f} um2, one for each {forward + inverse:,.0f} um2 "
            f"({forward:,.0f} + {inverse:,.0f}): sharing saves {1 - both / (forward + inverse):.0%}.")


def macros(rows):
    """What memories the rows' areas leave out, as a sentence, or None if there are none."""
    phrases = [f"{row.label} {row.figures.memory:,} bits, {row.figures.macros:,.0f} um2" for row in rows
               if row.figures.memory]
    if not phrases:
        return None
    return (f"Memories that um2, and all that follows from it, leave out, by the fakeram45 macros that come with the "
            f"library (one port; setup {memories.SETUP} ps, access {memories.ACCESS} ps are assumed): "
            f"{'; '.join(phrases)}.")


def table(rows, width):
    """The table for a screen of ``width`` characters; on a narrow one without what its other columns and notes say."""
    shown = [k for k, column in enumerate(HEADER) if width >= WIDE or column not in NARROW]
    result = Table(box=box.SIMPLE, show_edge=False, padding=(0, 1, 0, 0))
    for k in shown:
        if k == 0:
            result.add_column(HEADER[k], overflow="fold", min_width=16)
        else:
            result.add_column(HEADER[k], justify="right", no_wrap=True)
    for line in lines(rows):
        result.add_row(*(line[k] for k in shown))
    return result


def write(rows, build=BUILD):
    """Writes ``report.html``, ``report.json`` and ``report.md`` into ``build``."""
    build.mkdir(parents=True, exist_ok=True)
    everything = {row.label: {**asdict(row.figures), "paper": PAPER.get(row.paper), "ratio": row.ratio,
                              "target": TARGET.get(row.paper), "paper_power": POWER.get(row.paper),
                              "power": {direction: asdict(power) for direction, power in row.power.items()},
                              "fpga": asdict(row.fit) if row.fit else None} for row in rows}
    (build / "report.html").write_text(page.render(everything, NOTES, baseline.history(), fpga.NOTE))
    (build / "report.json").write_text(json.dumps(everything, indent=1) + "\n")
    markdown = [HEADER, ("---",) + ("---:",) * (len(HEADER) - 1), *lines(rows)]
    text = "\n".join(f"| {' | '.join(line)} |" for line in markdown)
    notes = "\n".join(f"- {note}" for note in (sharing(rows), macros(rows), *NOTES) if note)
    (build / "report.md").write_text(f"{text}\n\n{notes}\n")
