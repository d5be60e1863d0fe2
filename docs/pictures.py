"""``make docs``: the pictures of the documentation, ``docs/pictures/*.svg``, but for ``lane.svg``, the README's.

``areas`` is drawn from ``synth/baseline.json``, ``ratios`` from the tables of ``docs/ratios.md`` and from
``docs/records/measured.json``; the others are block diagrams. ``python -m docs.pictures`` writes them.
"""

import json
import math
import re
from itertools import pairwise
from pathlib import Path

from docs.drawing import Drawing

__all__ = ["FOLDER", "PICTURES", "areas", "points", "treemap"]

ROOT = Path(__file__).resolve().parents[1]
FOLDER = Path(__file__).parent / "pictures"


def accelerator():
    d = Drawing(960, 470, "The accelerator: host, memory and DMA engine around lanes, collector and splitter")
    d.box(20, 30, 120, 50, "host", "AXI4-Lite", kind="port")
    d.box(190, 30, 130, 50, "registers", "register_map.py")
    d.box(370, 30, 130, 50, "tensor plan", "shares of lanes")
    d.arrow((140, 55), (190, 55), both=True)
    d.arrow((320, 55), (370, 55))
    d.group(170, 105, 610, 345, "lane, 1 to 8")
    for k, (name, what) in enumerate((("addresses", "requested"), ("addresses", "arriving"), ("addresses", "written"))):
        d.box(195 + 195 * k, 135, 150, 48, name, what)
        d.arrow((435, 80), (435, 95), (270 + 195 * k, 95), (270 + 195 * k, 135))
    d.box(195, 225, 150, 48, "beat planner", "beats to request")
    d.box(195, 305, 150, 48, "bursts", "AR")
    d.box(390, 225, 150, 48, "reader", "sectors, scales")
    d.box(390, 305, 150, 60, "CDU", "SFPR, DCT, SH, ZVC")
    d.box(585, 225, 150, 48, "beat planner", "beats to write")
    d.box(585, 305, 150, 48, "bursts", "AW")
    d.box(390, 395, 150, 42, "writer: beats")
    for x, y0, y1 in ((270, 183, 225), (465, 183, 225), (660, 183, 225), (270, 273, 305), (465, 273, 305),
                      (660, 273, 305), (465, 365, 395)):
        d.arrow((x, y0), (x, y1))
    d.box(20, 290, 120, 78, "memory", "AXI4, 256 bits", "300 cycles", kind="port")
    d.arrow((195, 329), (140, 329))
    d.arrow((100, 290), (100, 205), (365, 205), (365, 249), (390, 249), text="R", at=(110, 250))
    d.arrow((390, 416), (80, 416), (80, 368), text="W", at=(250, 410))
    d.arrow((660, 353), (660, 440), (50, 440), (50, 368), text="AW", at=(620, 434))
    d.box(800, 180, 140, 50, "collector", "blocks to packets")
    d.box(800, 380, 140, 50, "splitter", "packets to blocks")
    d.box(800, 280, 140, 56, "DMA engine", "AXI4-Stream", kind="port")
    d.arrow((540, 325), (563, 325), (563, 289), (755, 289), (755, 205), (800, 205))
    d.arrow((870, 230), (870, 280))
    d.arrow((870, 336), (870, 380))
    d.arrow((800, 405), (563, 405), (563, 345), (540, 345))
    return d


def streams():
    d = Drawing(960, 190, "A lane for byte streams: a codec with a FIFO between it and the units that deal out turns")
    d.box(20, 30, 110, 52, "reader")
    d.box(190, 30, 170, 52, "codecs.py", "a CDU, or COMET")
    d.box(420, 30, 110, 52, "writer")
    d.box(190, 120, 170, 52, "address.py", "what arrives")
    d.box(420, 120, 130, 52, "FIFO", "128 bytes")
    d.box(620, 120, 190, 52, "collector, splitter", "of streams: turns of 8 bytes")
    d.box(850, 120, 90, 52, "stream", kind="port")
    d.arrow((130, 56), (190, 56))
    d.arrow((360, 56), (420, 56))
    d.arrow((190, 146), (75, 146), (75, 82), text="places")
    d.arrow((275, 120), (275, 82), text="neighbours", at=(238, 106))
    d.arrow((330, 82), (330, 100), (485, 100), (485, 120), both=True)
    d.arrow((550, 146), (620, 146), both=True)
    d.arrow((810, 146), (850, 146), both=True)
    return d


def cdu():
    d = Drawing(960, 330, "A CDU: the units that each mode passes, with their latencies in cycles")
    x, y = 20, 60
    units = (("sectors", "32 bytes", "port", 96), ("SFPR", "4 cycles", "unit", 92),
             ("align", "9 to 30, 2 to 26", "unit", 124), ("DCT", "20 cycles", "unit", 92),
             ("SH", "1 cycle", "unit", 80), ("ZVC", "10, 9 cycles", "unit", 104),
             ("bytes", "to the collector", "port", 118))
    places = {}
    for name, what, kind, width in units:
        d.box(x, y, width, 56, name, what, kind=kind)
        places[name] = x, width
        x += width + 35
    order = list(places)
    for one, two in pairwise(order):
        d.arrow((sum(places[one]) + 1, y + 28), (places[two][0] - 1, y + 28), both=True)

    def middle(name):
        return places[name][0] + places[name][1] / 2

    d.arrow((middle("SFPR"), y), (middle("SFPR"), 32), (middle("ZVC"), 32), (middle("ZVC"), y), both=True)
    d.text((middle("SFPR") + middle("ZVC")) / 2, 24, "sfpr-zvc", "quiet")
    for k, (start, label) in enumerate((
            ("sectors", "raw; bitpack: top bits; dpr: rounding 1 cycle; brc: Binarize; zvc: ZVC of words"),
            ("SFPR", "sfpr"),
            ("align", "division: averages and codes, 1, 2 or 4 bits"),
            ("DCT", "jpeg-base: DIV 1 cycle, RLE 17 to 73, 10 to 67 cycles"))):
        depth = 290 - 45 * k
        end = middle("bytes") + 40 - 26 * k
        d.arrow((middle(start), y + 56), (middle(start), depth), (end, depth), (end, y + 56), both=True, dashed=True)
        d.text((middle(start) + end) / 2, depth - 6, label, "quiet")
    d.text(20, 318, "Left to right compresses, right to left decompresses; two latencies are those of both directions. "
           "rice (18, 16) or nibble (11, 4) may replace ZVC.", "quiet left")
    return d


def flow():
    d = Drawing(960, 220, "From RTL to figures: Yosys, ABC and OpenSTA, and what is done with the netlist")
    steps = (("Amaranth", "RTLIL"), ("Yosys", "flip-flops, gates"), ("fanout.py", "copies, buffers"),
             ("ABC", "cells, by recipe"), ("complement.py", "inverters"), ("relaxation.py", "sizes"),
             ("OpenSTA", "slack"))
    for k, lines in enumerate(steps):
        d.box(10 + 137 * k, 30, 116, 54, *lines)
        if k:
            d.arrow((137 * k - 11, 57), (10 + 137 * k, 57))
    d.arrow((832, 66), (811, 66))
    d.box(815, 130, 130, 54, "net.v", "the smallest in time", kind="port")
    d.arrow((890, 84), (890, 130))
    uses = (("equivalence", "by ABC"), ("power", "real activations"), ("simulation", "of the gates"))
    for k, lines in enumerate(uses):
        d.box(335 + 160 * k, 130, 130, 54, *lines)
        d.arrow((880, 184), (880, 206), (400 + 160 * k, 206), (400 + 160 * k, 184))
    return d


def squarify(sizes, x, y, width, height):
    """Rectangles of these areas, the largest first, that fill one: Bruls, Huizing, van Wijk, "Squarified treemaps",
    2000."""
    sizes = [size * width * height / sum(sizes) for size in sizes]
    rectangles = []
    while sizes:
        side = min(width, height)

        def worst(row, side=side):
            return max(max(side**2 * size / sum(row)**2, sum(row)**2 / (side**2 * size)) for size in row)

        row = sizes[:1]
        while len(row) < len(sizes) and worst(sizes[: len(row) + 1]) <= worst(row):
            row = sizes[: len(row) + 1]
        sizes = sizes[len(row):]
        depth, at = sum(row) / side, 0
        for size in row:
            long = size / depth
            rectangles.append((x, y + at, depth, long) if width >= height else (x + at, y, long, depth))
            at += long
        if width >= height:
            x, width = x + depth, width - depth
        else:
            y, height = y + depth, height - depth
    return rectangles


def areas(recorded):
    """[(what, um2)] of an accelerator with four lanes, by its parts: what is not a unit of its own is the rest."""
    area = {label: one["area"] for label, one in recorded.items()}
    inner = {"SFPR": area["sfpr"], "DCT": area["dct"], "ZVC": area["zvc"], "alignment": area["align"],
             "SH": area["quantize"] + area["round"]}
    lane = {"reader": area["reader"], "writer": area["writer"], "addresses": 3 * area["address_generator"]}
    cdu = area["cdu (in a lane)"]
    parts = {**inner, "rest of the CDU": cdu - sum(inner.values()), **lane,
             "rest of the lane": area["lane"] - cdu - sum(lane.values())}
    whole = {"collector": area["collector"], "splitter": area["splitter"], "plan": area["tensor_plan"],
             "registers": area["registers"]}
    rest = area["accelerator"] - 4 * area["lane"] - sum(whole.values())
    return [("four lanes", {name: 4 * size for name, size in parts.items()}),
            ("shared", {**whole, "rest": rest})]


def treemap(recorded=None):
    recorded = recorded or json.loads((ROOT / "synth/baseline.json").read_text())
    groups = areas(recorded)
    total = sum(size for _, parts in groups for size in parts.values() if size > 0)
    d = Drawing(960, 480, "Area of an accelerator with four lanes, by its parts")
    d.text(480, 24, f"accelerator with four lanes, memories excepted: {total:,.0f} um²")
    kinds = {"SFPR": "a", "DCT": "a", "ZVC": "a", "alignment": "a", "SH": "a", "rest of the CDU": "a", "reader": "c",
             "writer": "c", "addresses": "c", "rest of the lane": "c"}
    flat = sorted(((name, size) for _, parts in groups for name, size in parts.items() if size > 0),
                  key=lambda item: -item[1])
    for (name, size), (x, y, width, height) in zip(flat, squarify([size for _, size in flat], 10, 40, 940, 410),
                                                   strict=True):
        d.parts.append(f'<rect class="tile {kinds.get(name, "b")}" style="fill-opacity: .3; stroke-width: 1" '
                       f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}">'
                       f"<title>{name}: {size:,.0f} um²</title></rect>")
        if width > 8 * len(name) and height > 34:
            d.text(round(x + width / 2, 1), round(y + height / 2 - 2, 1), name)
            d.text(round(x + width / 2, 1), round(y + height / 2 + 15, 1), f"{100 * size / total:.1f} %", "quiet")
        elif height > 6 * len(name) and width > 16:
            d.parts.append(f'<text class="quiet" transform="translate({x + width / 2 + 4:.1f} {y + height / 2:.1f}) '
                           f'rotate(-90)">{name}</text>')
    for k, (kind, label) in enumerate((("a", "CDU"), ("c", "the rest of a lane"), ("b", "shared by the lanes"))):
        d.parts.append(f'<rect class="{kind}" style="fill-opacity: .3" x="{10 + 190 * k}" y="460" width="14" '
                       'height="14"/>')
        d.text(30 + 190 * k, 472, label, "quiet left")
    return d


def points(text, record):
    """{series: [(relative L2 error, ratio)]} of dense tensors: files, side information included. What has a larger
    error without a larger ratio is left out."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")]
            for line in text[text.index("<!-- ratios -->"):text.index("<!-- /ratios -->")].splitlines()[3:]]
    curves = {}
    for first, _, ratio, error, *_ in rows:
        mode, options = re.match(r"`([\w-]+)` ?(.*)", first).groups()
        options = dict(word.split("=") for word in options.split())
        if mode == "jpeg-act":
            series = f"jpeg-act, {options.get('coder', 'zvc')}"
            if "quantizer" in options:
                continue
        elif mode in ("jpeg-base", "comet", "mx") or (mode == "division" and set(options) <= {"bits"}):
            series = mode
        elif mode.startswith("dpr-"):
            series = "dpr"
        else:
            continue
        curves.setdefault(series, []).append((float(error), float(ratio)))
    errors = {table: next(error for error, ratio in curves["jpeg-act, zvc"] if ratio == zvc)
              for table, coder, zvc, *_ in record["quantizers"] if coder == "zvc" and table != "MXFP8"}
    for table, coder, *ratios in record["quantizers"]:
        if coder == "rice" and table in errors:
            for name, ratio in (("jpeg-act, rice, div", ratios[1]), ("SZ3", ratios[-3]), ("zfp", ratios[-2])):
                curves.setdefault(name, []).append((errors[table], ratio))
    return {series: sorted(point for point in some if not any(
        other != point and other[0] <= point[0] and other[1] >= point[1] for other in some))
        for series, some in curves.items()}


def ratios():
    record = json.loads((ROOT / "docs/records/measured.json").read_text())
    series = points((ROOT / "docs/ratios.md").read_text(), record)
    d = Drawing(960, 470, "Compression ratio of dense tensors against their relative L2 error")
    left, right, top, bottom = 70, 720, 30, 410
    first, last = math.log10(0.005), math.log10(1.0)

    def place(error, ratio):
        x = left + (right - left) * (math.log10(error) - first) / (last - first)
        return round(x, 1), round(bottom - (bottom - top) * (math.log2(ratio) - 1) / 4, 1)

    for error in (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0):
        x, _ = place(error, 2)
        d.parts.append(f'<path class="grid" d="M{x} {top}V{bottom}"/>')
        d.text(x, bottom + 18, f"{error:g}", "quiet")
    for ratio in (2, 4, 8, 16, 32):
        _, y = place(1, ratio)
        d.parts.append(f'<path class="grid" d="M{left} {y}H{right}"/>')
        d.text(left - 8, y + 4, f"{ratio}", "quiet right")
    d.text((left + right) / 2, bottom + 40, "relative L2 error", "quiet")
    d.text(left, top - 12, "ratio of files", "quiet left")
    kinds = {"jpeg-act, zvc": "f", "jpeg-act, nibble": "c", "jpeg-act, rice": "a", "jpeg-act, rice, div": "a",
             "jpeg-base": "e", "comet": "d", "division": "c", "dpr": "f", "mx": "e", "SZ3": "b", "zfp": "b"}
    dashed = {"SZ3", "zfp", "jpeg-act, rice, div", "division", "dpr", "mx"}
    for k, (name, some) in enumerate((name, series[name]) for name in kinds if name in series):
        shown = [place(*point) for point in some if 0.005 <= point[0] <= 1.0 and 2 <= point[1] <= 32]
        path = " ".join(f"{x} {y}" for x, y in shown)
        dash = f' stroke-dasharray="{"2 4" if name == "zfp" else "6 4"}"' if name in dashed else ""
        d.parts.append(f'<path class="line {kinds[name]}" style="fill: none"{dash} d="M{path}"/>')
        for x, y in shown:
            d.parts.append(f'<circle class="{kinds[name]}" cx="{x}" cy="{y}" r="4"/>' if name not in dashed else
                           f'<rect class="{kinds[name]}" x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8"/>')
        y = top + 12 + 24 * k
        d.parts.append(f'<path class="line {kinds[name]}" style="fill: none"{dash} '
                       f'd="M{right + 25} {y}H{right + 60}"/>')
        d.text(right + 70, y + 5, name, "left")
    return d


PICTURES = {"accelerator": accelerator, "areas": treemap, "cdu": cdu, "flow": flow, "ratios": ratios,
            "streams": streams}
"""What draws each."""


def main():
    for name, function in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(function().svg())


if __name__ == "__main__":
    main()
