"""Pictures of placed netlists as SVG: which sub-unit each cell belongs to, and how much time is left at it."""

from collections import defaultdict, deque
from html import escape
from itertools import takewhile

from actcodec.synth.hierarchy import registers, signals
from actcodec.synth.layout.lef import ROW, SITE, UM, shapes

__all__ = ["GROUPS", "LEVELS", "draw", "groups", "owners"]

GROUPS = 8  # sub-units with a colour of their own
LEVELS = ((0, "late"), (20, "under 20 ps"), (60, "20 to 60"), (150, "60 to 150"), (None, "more"))  # of slack
SIDE, GAP, LINE, DETAIL = 440, 60, 18, 0.3  # of a picture, in pixels

STYLE = """
text { font: 12px system-ui, sans-serif; fill: #222 } .head { font-size: 14px } .core { fill: none; stroke: #999 }
.macro { fill: #0000000d; stroke: #999 } path { fill: none; stroke-width: .92 }
.u0 { stroke: #2b6cb0; fill: #2b6cb0 } .u1 { stroke: #dd6b20; fill: #dd6b20 } .u2 { stroke: #2f855a; fill: #2f855a }
.u3 { stroke: #805ad5; fill: #805ad5 } .u4 { stroke: #d53f8c; fill: #d53f8c } .u5 { stroke: #b7901f; fill: #b7901f }
.u6 { stroke: #319795; fill: #319795 } .u7 { stroke: #744210; fill: #744210 } .rest { stroke: #a0aec0; fill: #a0aec0 }
.s0 { stroke: #9b1c1c; fill: #9b1c1c } .s1 { stroke: #e04f2f; fill: #e04f2f } .s2 { stroke: #f0a04b; fill: #f0a04b }
.s3 { stroke: #a9c4df; fill: #a9c4df } .s4 { stroke: #dbe5ef; fill: #dbe5ef } path.cells { fill: none }
@media (prefers-color-scheme: dark) {
  text { fill: #eee } .core, .macro { stroke: #777 } .macro { fill: #ffffff12 }
  .u0 { stroke: #63a4e8; fill: #63a4e8 } .u2 { stroke: #57b881; fill: #57b881 } .u3 { stroke: #a98ae8; fill: #a98ae8 }
  .u5 { stroke: #e0bc4f; fill: #e0bc4f } .u7 { stroke: #b98a5a; fill: #b98a5a } .rest { stroke: #667080; fill: #667080 }
  .s0 { stroke: #ff4d4d; fill: #ff4d4d } .s1 { stroke: #ff8a5c; fill: #ff8a5c } .s2 { stroke: #e8b24a; fill: #e8b24a }
  .s3 { stroke: #41658a; fill: #41658a } .s4 { stroke: #2a3b4d; fill: #2a3b4d } path.cells { fill: none } }
"""


def owners(module):
    """{cell: its sub-unit's path in dots} of a flat module of Yosys's JSON: a register's is in its name, logic has that
    of the register or port which it reaches in the fewest gates."""
    names, cells = signals(module), module["cells"]
    driver = {bit: name for name, cell in cells.items() for pin, bits in cell["connections"].items()
              if cell["port_directions"][pin] == "output" for bit in bits}
    result = {name: names.get(name, "").rpartition(".")[0] for name in sorted(registers(module))}
    queue = deque(result)
    for port in module["ports"].values():
        if port["direction"] == "output":
            for name in dict.fromkeys(driver[bit] for bit in port["bits"] if bit in driver):
                if name not in result:
                    result[name] = names.get(name, "").rpartition(".")[0]
                    queue.append(name)
    while queue:
        cell = cells[(name := queue.popleft())]
        for pin, bits in cell["connections"].items():
            for bit in bits if cell["port_directions"][pin] == "input" else ():
                if (source := driver.get(bit)) is not None and source not in result:
                    result[source] = result[name]
                    queue.append(source)
    return {name: result.get(name, "") for name in cells}


def groups(paths, areas):
    """{path of a sub-unit: the group that it is shown in} for at most :data:`GROUPS` groups, which are sub-units with
    all that is in them but in other groups, and "" for the rest; ``areas``: {path: area}. Each in turn is the one that
    divides a group most evenly."""
    def inside(group, path):
        return path == group or path.startswith(f"{group}.") or not group

    group = dict.fromkeys(areas, "")

    def divides(one):
        """How evenly, and by how much area; of sub-units that are all the same, the innermost is best."""
        own = [path for path in areas if inside(one, path) and inside(group[path], one)]
        area = sum(areas[path] for path in own)
        whole = sum(areas[path] for path in areas if own and group[path] == group[own[0]])
        return min(area, whole - area), area, one.count(".")

    able = {path.rsplit(".", k)[0] for path in areas for k in range(path.count(".") + 1)} - {""}
    for _ in range(min(GROUPS, len(able))):
        best = max(sorted(able), key=divides)
        if not divides(best)[1]:
            break
        able.remove(best)
        group |= {path: best for path in areas if inside(best, path) and inside(group[path], best)}
    return {path: group[path] for path in paths}


def _level(slack):
    return next(k for k, (most, _) in enumerate(LEVELS) if most is None or (slack is not None and slack < most))


def _path(runs, close=0):
    """The data of a path for [(x, row, width)]: lines as wide as a row, those that are ``close`` or touch are one."""
    parts, at = [], (0, 0)
    rows = defaultdict(list)
    for x, row, width in sorted(runs, key=lambda run: (run[1], run[0])):
        if rows[row] and x - sum(rows[row][-1]) <= close:
            rows[row][-1][1] = x + width - rows[row][-1][0]
        else:
            rows[row].append([x, width])
    for row, pieces in rows.items():
        for x, width in pieces:
            parts.append(f"m{x - at[0]} {row - at[1]}h{width}")
            at = x + width, row
    return "".join(parts)


def _scale(places):
    """Where a picture begins, pixels for a step, and its height."""
    width, height = places["core"]
    low = min([0, *(block["x"] for block in places["macros"])])
    high = max([width, *(block["x"] + block["width"] for block in places["macros"])])
    scale = SIDE / max(high - low, height)
    return low, scale, round(height * scale)


def _panel(places, classes, left, title, legend):
    """One picture of the core: ``classes`` {cell: class}, ``legend`` [(class, text)]."""
    (width, height), shape = places["core"], shapes()
    low, scale, tall = _scale(places)
    runs = defaultdict(list)
    for name, (kind, x, y, *_) in places["cells"].items():
        if kind in shape:
            runs[classes[name]].append((x // SITE, height // ROW - 1 - y // ROW, shape[kind].width // SITE))
    across, top = left - low * scale, 30
    parts = [f'<text class="head" x="{left}" y="18">{escape(title)}</text>',
             f'<rect class="core" x="{across:.1f}" y="{top}" width="{width * scale:.1f}" '
             f'height="{height * scale:.1f}"/>']
    parts += [f'<rect class="macro" x="{across + block["x"] * scale:.1f}" '
              f'y="{top + (height - block["y"] - block["height"]) * scale:.1f}" width="{block["width"] * scale:.1f}" '
              f'height="{block["height"] * scale:.1f}"><title>{escape(block["name"])}</title></rect>'
              for block in places["macros"]]
    parts.append(f'<g transform="translate({across:.1f} {top}) scale({SITE * scale:.5f} {ROW * scale:.5f}) '
                 'translate(0 .5)">')
    close = int(DETAIL / (SITE * scale))
    parts += [f'<path class="cells {kind}" d="M0 0{_path(runs[kind], close)}"/>' for kind, _ in legend if kind in runs]
    parts.append("</g>")
    for k, (kind, text) in enumerate(legend):
        y = top + tall + LINE * (k // 2 + 1)
        x = left + 0.54 * SIDE * (k % 2)
        parts += [f'<rect class="{kind}" x="{x:.0f}" y="{y - 10}" width="11" height="11"/>',
                  f'<text x="{x + 17:.0f}" y="{y}">{escape(text)}</text>']
    return "".join(parts)


def draw(label, places, module):
    """The SVG of a placed netlist: ``places`` as :func:`actcodec.synth.layout.flow.lay` writes them, and its module."""
    paths, shape = owners(module), shapes()
    areas = defaultdict(float)
    for name, (kind, *_) in places["cells"].items():
        areas[paths[name]] += shape[kind].width * ROW / UM**2 if kind in shape else 0
    group = groups(set(paths.values()), areas)
    total = defaultdict(float)
    for path, area in areas.items():
        total[group[path]] += area
    shown = sorted((name for name in total if name), key=lambda name: -total[name])
    classes = {name: f"u{k}" for k, name in enumerate(shown)} | {"": "rest"}
    levels = zip(*(name.split(".")[:-1] for name in shown), strict=False)
    same = sum(1 for _ in takewhile(lambda names: len(set(names)) == 1, levels))  # around all of them: not worth a word
    label_of = {name: ".".join(name.split(".")[same:]) for name in shown} | {"": "the rest"}
    legend = [(classes[name], f"{label_of[name]}: {total[name]:,.0f} um\u00b2") for name in
              [*shown, *[""] * (total[""] > 0)]]
    counts = [0] * len(LEVELS)
    for *_, slack in places["cells"].values():
        counts[_level(slack)] += 1
    slacks = [(f"s{k}", f"{text}: {count:,} cells")
              for k, ((_, text), count) in enumerate(zip(LEVELS, counts, strict=True))]
    lines = max(-(-len(legend) // 2), -(-len(slacks) // 2))
    width, height = 2 * SIDE + GAP + 4, 30 + _scale(places)[2] + LINE * lines + 12
    sides = " x ".join(f"{side / UM:.0f}" for side in places["core"])
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"><title>'
            f'{escape(label)}: places of its cells by sub-unit and by slack</title><style>{STYLE}</style>'
            + _panel(places, {name: classes[group[path]] for name, path in paths.items()}, 2,
                     f"{label}, {sides} um: sub-units", legend)
            + _panel(places, {name: f"s{_level(slack)}" for name, (*_, slack) in places["cells"].items()},
                     SIDE + GAP + 2, "slack of the worst path through a cell", slacks) + "</svg>\n")
