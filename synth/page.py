"""The report as one HTML page that needs nothing else: tables, where the area goes, slacks, and how they changed."""

import re
from html import escape

from actcodec.synth.drawings import histogram, sparkline, treemap
from actcodec.synth.library import NAND2

__all__ = ["render"]

STYLE = """
:root { color-scheme: light dark; --back: #fff; --text: #1d2329; --dim: #667080; --line: #d5dae0; --registers: #8fb3d9;
  --logic: #dbe6f1; --good: #2c7a4b; --bad: #b3382c; }
@media (prefers-color-scheme: dark) { :root { --back: #14181d; --text: #dfe4ea; --dim: #929dab; --line: #353d47;
  --registers: #35618f; --logic: #22364b; --good: #6cc08b; --bad: #ef8577; } }
body { margin: 2rem auto; max-width: 76rem; padding: 0 1rem; background: var(--back); color: var(--text);
  font: 14px/1.45 system-ui, sans-serif; }
h1 { font-size: 1.5rem } h2 { font-size: 1.1rem; margin-top: 2.5rem }
.wide { overflow-x: auto }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { padding: .15rem .5rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap }
th { color: var(--dim); font-weight: 500; vertical-align: bottom }
th:first-child, td:first-child, .path { text-align: left }
.path { font: 12px/1.3 ui-monospace, monospace }
a { color: inherit }
.dim, figcaption { color: var(--dim) } .good { color: var(--good) } .bad { color: var(--bad) }
details { border-bottom: 1px solid var(--line); padding: .3rem 0 } summary { cursor: pointer }
figure { margin: 1rem 0 } figcaption { font-size: 12px }
svg { display: block; max-width: 100%; height: auto }
svg text { font: 10px system-ui, sans-serif; fill: var(--text) } svg text.dim { fill: var(--dim) }
.registers { fill: var(--registers) } .logic { fill: var(--logic) } .late { fill: var(--bad) }
.registers, .logic { stroke: var(--back); stroke-width: .5 } .unit { fill: none; stroke: var(--dim) }
.axis { stroke: var(--dim) } .curve { fill: none; stroke: var(--text); stroke-width: 1.5 } .now { fill: var(--text) }
"""

# A link from a table opens the unit that it leads to.
SCRIPT = """
function show() {
  const unit = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (unit && unit.tagName === "DETAILS") { unit.open = true; unit.scrollIntoView(); }
}
addEventListener("hashchange", show);
show();
"""


def _slug(label):
    return re.sub(r"\W+", "-", label).strip("-")


def _number(value, digits=0):
    return "-" if value is None else f"{value:,.{digits}f}"


def _table(header, lines):
    """A table; a cell is HTML, or a pair of it and its class."""
    def row(tag, line):
        cells = (value if isinstance(value, tuple) else (value, "") for value in line)
        return "".join(f'<{tag} class="{kind}">{text}</{tag}>' if kind else f"<{tag}>{text}</{tag}>"
                       for text, kind in cells)

    body = "".join(f"<tr>{row('td', line)}</tr>" for line in lines)
    return f'<div class="wide"><table><thead><tr>{row("th", header)}</tr></thead><tbody>{body}</tbody></table></div>'


def _link(label):
    return f'<a href="#{_slug(label)}">{escape(label)}</a>'


def _ratio(ours, theirs):
    return f"{ours / theirs:.2f}" if ours is not None and theirs else "-"


def _area(rows):
    header = ("unit", "area, um\u00b2", "with memories", "kGE", "registers", "logic", "cells", "flops", "slack, ps",
              "Fmax, MHz", "paper, um\u00b2", "ratio", "target", "flow, s", ("critical path", "path"))
    return _table(header, [(
        _link(label), _number(row["area"]), _number(row["area"] + row["macros"] if row.get("macros") else None),
        _number(row["area"] / NAND2 / 1000, 1), _number(row["sequential"]),
        _number(row["area"] - row["sequential"]), _number(row["cells"]), _number(row["flops"]),
        (_number(row["slack"]), "good" if row["slack"] >= 0 else "bad"), _number(row["fmax"]),
        _number(row.get("paper")), _ratio(row["area"], row.get("paper")),
        (_number(row.get("target")), "good" if row["area"] <= row["target"] else "bad") if row.get("target") else "-",
        _number(row["seconds"]), (f"{escape(row['start'])}<br>\u2192 {escape(row['end'])}", "path"),
    ) for label, row in rows.items()])


def _power(rows):
    header = ("unit", "", "registers, mW", "logic", "clock gates", "clock", "total", "of it leakage", "paper, mW",
              "ratio", "toggles", "clocked")
    lines = []
    for label, row in rows.items():
        for direction, power in (row.get("power") or {}).items():
            parts = [power[kind] for kind in ("registers", "logic", "gates", "clock")]
            total = sum(parts)
            lines.append((_link(label), escape(direction), *(_number(part, 2) for part in (*parts, total)),
                          _number(power["leakage"], 2), _number(row.get("paper_power"), 1),
                          _ratio(total, row.get("paper_power")), f"{power['toggles']:.2f}", f"{power['clocked']:.0%}"))
    return _table(header, lines)


def _fpga(rows):
    header = ("unit", "LUTs", "flip-flops", "multipliers", "block RAMs", "Fmax, MHz", "flow, s")
    keys = ("luts", "flops", "dsps", "brams", "fmax", "seconds")
    return _table(header, [(_link(label), *(_number(row["fpga"][key]) for key in keys))
                           for label, row in rows.items() if row.get("fpga")])


def _history(history):
    labels = list(dict.fromkeys(label for _, _, figures in reversed(history) for label in figures))
    lines = []
    for label in labels:
        areas, slacks = ([figures.get(label, {}).get(key) for _, _, figures in history] for key in ("area", "slack"))
        known = [area for area in areas if area is not None]
        absent = areas[-1] is None
        lines.append((escape(label), sparkline(areas), _number(known[0]), "gone" if absent else _number(areas[-1]),
                      "-" if absent else f"{areas[-1] / known[0] - 1:+.1%}", sparkline(slacks), _number(slacks[-1])))
    commits = ", ".join(f"{escape(commit)} ({escape(date)})" for commit, date, _ in history)
    return (_table(("unit", "area", "first, um\u00b2", "now, um\u00b2", "change", "slack", "now, ps"), lines)
            + f'<p class="dim">Recorded in synth/baseline.json by {commits}.</p>')


def _unit(label, row, shown):
    """What is known of one unit, to be folded out if it is not ``shown`` at first."""
    late = f'<span class="{"good" if row["slack"] >= 0 else "bad"}">{_number(row["slack"])} ps</span>'
    figures = []
    if len(row.get("parts", ())) > 1:
        figures.append((treemap(label, row["parts"]), "Area by sub-unit: registers and clock gates strong, logic "
                        "faint. Logic counts where the register or port is that it reaches in the fewest gates."))
    if row.get("slacks"):
        figures.append((histogram(row["slacks"]), f"Slack in ps of {len(row['slacks']):,} endpoints."))
    drawn = "".join(f"<figure>{svg}<figcaption>{caption}</figcaption></figure>" for svg, caption in figures)
    path = _table(("critical path", "ps"), [(escape(name), _number(ps)) for name, ps in row["path"]]) \
        if row.get("path") else ""
    title = f"{escape(label)}: {_number(row['area'])} um\u00b2, {late}"
    return (f'<details id="{_slug(label)}"{" open" * shown}><summary>{title}</summary>'
            f'<p class="dim">recipe {escape(row["recipe"])}</p>{drawn}{path}</details>')


def render(rows, notes=(), history=None, fpga=""):
    """The page.

    Parameters
    ----------
    rows : dict
        {label: figures}, as in ``report.json``: what :class:`actcodec.synth.flow.Figures` holds; and, where there is
        one, areas ``paper`` and ``target`` in um2, ``paper_power`` in mW, ``power`` as {direction: a dict of what
        :class:`actcodec.synth.power.Power` holds}, ``fpga`` as a dict of what :class:`actcodec.synth.fpga.Fit` holds.
    notes : sequence of str
        Sentences under the first table.
    history : list or None
        What :func:`actcodec.synth.baseline.history` found; None where there is no git.
    fpga : str
        A sentence under the table of the FPGA.
    """
    sections = [("Area and timing", _area(rows) + "".join(f'<p class="dim">{escape(note)}</p>' for note in notes))]
    if any(row.get("power") for row in rows.values()):
        sections.append(("Power", _power(rows) + '<p class="dim">While real activations pass, at 1.455 GHz. Toggles: '
                         "how often a net moves in a cycle; clocked: the share of cycles in which a flip-flop is.</p>"))
    if any(row.get("fpga") for row in rows.values()):
        sections.append(("FPGA", _fpga(rows) + f'<p class="dim">{escape(fpga)}</p>'))
    largest = max(rows, key=lambda label: rows[label]["area"])
    sections.append(("Units", "".join(_unit(label, row, label == largest) for label, row in rows.items())))
    sections.append(("History", _history(history) if history else
                     '<p class="dim">No history: it comes from git, of the commits of synth/baseline.json.</p>'))
    body = "".join(f"<h2>{title}</h2>{content}" for title, content in sections)
    return (f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>actcodec: synthesis</title>'
            f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head><body>'
            f"<h1>actcodec: synthesis</h1>{body}<script>{SCRIPT}</script></body></html>\n")
