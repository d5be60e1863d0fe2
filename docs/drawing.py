"""Pictures of the documentation as SVG: boxes and arrows that a light and a dark page can show."""

from html import escape

__all__ = ["Drawing"]

STYLE = """\
  text { fill: #222; text-anchor: middle } .quiet { fill: #666; font-size: 12px } .left { text-anchor: start }
  .right { text-anchor: end } .unit { fill: #e8f1fb; stroke: #2b6cb0; stroke-width: 1.5 }
  .port { fill: #fff4e0; stroke: #b7791f; stroke-width: 1.5 } .group { fill: none; stroke: #999; stroke-dasharray: 5 4 }
  .wire { fill: none; stroke: #444; stroke-width: 1.6 } .dashed { stroke-dasharray: 4 4 } .tip { fill: #444 }
  .grid { stroke: #ddd } .a { fill: #2b6cb0; stroke: #2b6cb0 } .b { fill: #c05621; stroke: #c05621 }
  .c { fill: #2f855a; stroke: #2f855a } .d { fill: #805ad5; stroke: #805ad5 } .e { fill: #b83280; stroke: #b83280 }
  .f { fill: #718096; stroke: #718096 } .line { fill: none; stroke-width: 2 } .tile { stroke: #fff; stroke-width: 1 }
  @media (prefers-color-scheme: dark) {
    text { fill: #eee } .quiet { fill: #aaa } .unit { fill: #1c3a57; stroke: #7fb3e6 }
    .port { fill: #4a3813; stroke: #e0b25c } .group { stroke: #888 } .wire { stroke: #ccc } .tip { fill: #ccc }
    .grid { stroke: #444 } .a { fill: #7fb3e6; stroke: #7fb3e6 } .b { fill: #f0a875; stroke: #f0a875 }
    .c { fill: #7fcfa0; stroke: #7fcfa0 } .d { fill: #b79df0; stroke: #b79df0 } .e { fill: #f09ac8; stroke: #f09ac8 }
    .f { fill: #a0aec0; stroke: #a0aec0 } .line { fill: none } .tile { stroke: #1e2129 }
  }"""


class Drawing:
    """A picture of that size, in pixels, under a title that is read aloud where it is not seen."""

    def __init__(self, width, height, title):
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            'font-family="system-ui, sans-serif" font-size="14" role="img">',
            f"<title>{escape(title)}</title>", f"<style>\n{STYLE}\n</style>",
            '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
            'orient="auto-start-reverse"><path class="tip" d="M0 0 8 4 0 8z"/></marker></defs>']

    def rectangle(self, x, y, width, height, kind, radius=0):
        self.parts.append(f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" '
                          f'rx="{radius}"/>')

    def text(self, x, y, text, kind=""):
        style = f' class="{kind}"' if kind else ""
        self.parts.append(f'<text{style} x="{x:g}" y="{y:g}">{escape(text)}</text>')

    def box(self, x, y, width, height, *lines, kind="unit"):
        """A box with its name, and under it what is said of it, in a smaller type."""
        self.rectangle(x, y, width, height, kind, 6)
        for k, line in enumerate(lines):
            self.text(x + width / 2, y + height / 2 + 5 + 16 * k - 8 * (len(lines) - 1), line, "quiet" if k else "")

    def group(self, x, y, width, height, text):
        """A frame around boxes."""
        self.rectangle(x, y, width, height, "group", 10)
        self.text(x + width - 10, y + 17, text, "quiet right")

    def arrow(self, *points, both=False, dashed=False, text="", at=None):
        """A line through points, with a tip at its end, or at both ends."""
        path = "M" + " ".join(f"{x:g} {y:g}" for x, y in points)
        self.parts.append(f'<path class="wire{" dashed" if dashed else ""}" d="{path}" marker-end="url(#arrow)"'
                          + (' marker-start="url(#arrow)"' if both else "") + "/>")
        if text:
            (x0, y0), (x1, y1) = points[:2]
            self.text(*(at or ((x0 + x1) / 2, (y0 + y1) / 2 - 6)), text, "quiet")

    def svg(self):
        return "\n".join([*self.parts, "</svg>"]) + "\n"
