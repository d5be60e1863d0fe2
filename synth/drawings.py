"""Pictures of the report's page, as SVG: where the area goes, slacks, and how figures changed."""

from collections import Counter
from html import escape

__all__ = ["BIN", "histogram", "sparkline", "squarify", "treemap"]

BIN = 25  # ps of a bar of the histogram
LABEL = 13  # height in pixels of a line of text in a treemap
LETTER = 6.2  # its width, at most
KINDS = "registers", "logic"


def squarify(sizes, x, y, width, height):
    """Rectangles (x, y, width, height) of areas proportional to ``sizes``, which fill one and are near to squares.

    Sizes are positive and fall. Source: Bruls, Huizing, van Wijk, Squarified Treemaps, 2000.
    """
    result, start = [], 0
    while start < len(sizes):
        scale = width * height / sum(sizes[start:])
        side = min(width, height)
        # A row along the shorter side grows as long as its worst rectangle becomes no more oblong.
        end, worst = start, None
        while end < len(sizes):
            depth = scale * sum(sizes[start:end + 1]) / side
            oblong = max(max(depth * depth / (scale * size), scale * size / (depth * depth))
                         for size in (sizes[start], sizes[end]))
            if worst is not None and oblong > worst:
                break
            end, worst = end + 1, oblong
        depth, at = scale * sum(sizes[start:end]) / side, 0
        for size in sizes[start:end]:
            length = scale * size / depth
            result.append((x, y + at, depth, length) if width >= height else (x + at, y, length, depth))
            at += length
        if width >= height:
            x, width = x + depth, max(width - depth, 0)
        else:
            y, height = y + depth, max(height - depth, 0)
        start = end
    return result


class _Node:
    """A sub-unit: its own (registers, logic) and, by name, those in it."""

    def __init__(self):
        self.own, self.children = (0, 0), {}

    def all(self):
        """Its (registers, logic) with those of all in it."""
        return tuple(map(sum, zip(self.own, *(child.all() for child in self.children.values()), strict=True)))


def _tree(parts):
    """The root of {path in dots: (registers, logic)}."""
    root = _Node()
    for path, areas in parts.items():
        node = root
        for name in path.split(".") if path else ():
            node = node.children.setdefault(name, _Node())
        node.own = areas
    return root


def _box(kind, box, title):
    x, y, width, height = box
    return (f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}">'
            f"<title>{escape(title)}</title></rect>")


def _draw(name, node, box, path):
    """Shapes of a sub-unit in its box: frame and label, its own registers and logic, and the sub-units in it."""
    x, y, width, height = box
    labelled = path and width > 30 and height > 2 * LABEL
    small = path and not labelled  # to show what is in it
    inner = (x + 2, y + LABEL, width - 4, height - LABEL - 2) if labelled else box
    leaves = [(area, kind, None) for area, kind in zip(node.all() if small else node.own, KINDS, strict=True)]
    leaves += [(sum(child.all()), key, child) for key, child in node.children.items() if not small]
    leaves = sorted((leaf for leaf in leaves if leaf[0] > 0), key=lambda leaf: (-leaf[0], leaf[1]))
    shapes = []
    for (area, key, child), place in zip(leaves, squarify([leaf[0] for leaf in leaves], *inner), strict=True):
        if child:
            shapes += _draw(key, child, place, f"{path}.{key}" if path else key)
        else:
            shapes.append(_box(key, place, f"{path or name}: {key} {area:,.0f} um\u00b2"))
    if path:
        shapes.append(_box("unit", box, f"{path}: {sum(node.all()):,.0f} um\u00b2"))
    if labelled:
        letters = int((width - 4) / LETTER)
        text = name if len(name) <= letters else name[:letters - 1] + "\u2026"
        shapes.append(f'<text x="{x + 3:.1f}" y="{y + 10:.1f}">{escape(text)}</text>')
    return shapes


def treemap(label, parts, width=920, height=420):
    """An SVG of {path of a sub-unit in dots, "" for the unit itself: (registers, logic)} in um2."""
    shapes = _draw(label, _tree(parts), (0, 0, width, height), "")
    return f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}">{"".join(shapes)}</svg>'


def histogram(slacks, width=920, height=130):
    """An SVG with a bar for each :data:`BIN` ps of slack: how many endpoints have it. Bars left of zero are red."""
    bins = Counter(int(slack // BIN) for slack in slacks)
    first, last = min(*bins, 0), max(*bins, 0) + 1
    step, floor = width / (last - first), height - 18
    shapes = []
    for index, count in sorted(bins.items()):
        size = max(count / max(bins.values()) * (floor - 4), 1.5)
        place = (step * (index - first), floor - size, step, size)
        shapes.append(_box("late" if index < 0 else "registers", place,
                           f"{index * BIN} to {index * BIN + BIN} ps: {count:,} endpoints"))
    shapes.append(f'<line class="axis" x1="0" y1="{floor}" x2="{width}" y2="{floor}"/>')
    every = 4 * max(1, (last - first) // 40)
    for index in range(first, last + 1):
        if index % every == 0:
            anchor = "start" if index == first else "end" if index == last else "middle"
            shapes.append(f'<text class="dim" x="{step * (index - first):.1f}" y="{height - 4}" '
                          f'text-anchor="{anchor}">{index * BIN}</text>')
    return f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}">{"".join(shapes)}</svg>'


def sparkline(values, width=150, height=24):
    """An SVG of a curve through ``values``; None leaves a place out."""
    points = [(index, value) for index, value in enumerate(values) if value is not None]
    low, high = min(value for _, value in points), max(value for _, value in points)
    across, up = (width - 6) / max(len(values) - 1, 1), (height - 6) / ((high - low) or 1)
    places = [(3 + index * across, height - 3 - (value - low) * up) for index, value in points]
    curve = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    x, y = places[-1]
    return (f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}"><polyline class="curve" '
            f'points="{curve}"/><circle class="now" cx="{x:.1f}" cy="{y:.1f}" r="2.5"/></svg>')
