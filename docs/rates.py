"""``make docs``: rates of the accelerator, and of the golden model beside others, from ``docs/records/bench.json``.

``python -m docs.rates`` writes the tables of docs/performance.md and docs/ratios.md that lie between lines like
``<!-- rates -->`` and ``<!-- /rates -->``. ``python -m docs.rates FOLDER`` records first what ``make bench`` left in
that folder. What it did not measure stays.
"""

import json
import sys
from copy import deepcopy
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from statistics import median

from actcodec import codecs
from actcodec.bench.cycles import AT_CACHE, CACHE, CLOCK, DENSE, FIXED, ONE_PORT, PAPER, SECTOR, SFPR, SHOWN
from actcodec.bench.queued import ACCESS
from actcodec.synth.records import alone, stamp, write
from docs import content, figures, marks

__all__ = ["DOCUMENTS", "RECORD", "load", "merge", "render"]

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / "docs/records/bench.json"
WAYS = ("compress", "decompress")
# What a ring runs: small tensors of a step, all of them, of one sample and of several, those of the best ratio.
QUEUES = ("queue", "step", "batch", "best")
# Rows of the table of offload rates: what they are called, what the record calls them, and the paper's figure.
LONG = (
    ("ResNet-20, zvc (cDMA+)", "cDMA+", "cDMA+"), ("ResNet-20, jpeg-act optL and sfpr-zvc", "JPEG-ACT optL", ""),
    ("ResNet-20, jpeg-act optH and sfpr-zvc", "JPEG-ACT optH", ""),
    *((f"ResNet-20, the same with {coder}, {dqt}", f"JPEG-ACT {dqt} {coder}", "")
      for coder in ("nibble", "rice") for dqt in ("optL", "optH")),
    *((f"ResNet-20, dense maps alone, {name}optH", f"JPEG-ACT optH{coder}{DENSE}", "")
      for name, coder in (("jpeg-act ", ""), ("nibble, ", " nibble"), ("rice, ", " rice"))),
    ("synthetic", "2x", ""), ("synthetic", "4x", "SFPR"), ("synthetic", "8x", "JPEG-ACT"), ("synthetic", "12x", ""))


def merge(record, folder):
    """A record with what ``make bench`` left in a folder: of :data:`SHOWN` CDUs, rates, and the median over widths of
    cycles outside of blocks; offload rates of compression. Of what ``actcodec.bench.speed`` leaves alone there are no
    rates."""
    report = dict.fromkeys(("rates", "offload", "streamed", "coding", "queued"), ())
    if (rates := folder / "report.json").exists():
        report |= json.loads(rates.read_text())
    new = deepcopy(record)
    queues = {section: [one for one in report["queued"] if section == ran(one)] for section in QUEUES}
    ways = {section: [one for one in report["offload"] if (one["name"] in AT_CACHE) == (section == "cache")]
            for section in ("offload", "cache")}
    sections = [section for section, rows in (
        ("rates", report["rates"]), ("tensors", report["rates"]), *ways.items(), ("streams", report["streamed"]),
        ("coders", report["coding"]), *queues.items()) if rows]
    for one in report["rates"]:
        if one["cdus"] == SHOWN:
            rates = new["rates"].setdefault(one["mode"], {way: {} for way in WAYS})
            rates[WAYS[one["decompress"]]][str(one["width"])] = round(one["steady"], 4)
    apart = itemgetter("mode", "decompress")
    shown = [one for one in report["rates"] if one["cdus"] == SHOWN]
    for (mode, back), some in groupby(sorted(shown, key=apart), apart):
        new["tensors"].setdefault(mode, [None, None])[back] = round(median(
            one["cycles"] - one["steady"] * one["blocks"] for one in some))
    for section, one in ((section, one) for section, some in ways.items() for one in some if not one["decompress"]):
        entry = new[section].setdefault(one["name"], {"rates": {}})
        entry["ratio"] = round(one["ratio"], 3)
        entry["rates"][str(one["cdus"])] = round(one["rate"], 2)
    key = itemgetter("mode", "error", "cdus")
    for (mode, error, cdus), some in groupby(sorted(report["streamed"], key=key), key):
        some = list(some)
        new["streams"].setdefault(mode, {}).setdefault(str(error), {})[str(cdus)] = [
            round(rate, 4) for way in range(2) for rate in (
                min(one["rates"][way] for one in some),
                sum(8 * one["blocks"] for one in some) / sum(one["cycles"][way] for one in some))]
    for one in report["coding"]:
        entry = new["coders"].setdefault(one["dqt"], {"cycles": {}})
        entry["symbols"] = round(one["symbols"], 2)
        entry["cycles"].setdefault(str(one["coders"]), [None, None])[one["decompress"]] = round(one["steady"], 3)
    for section, one in ((section, one) for section, some in queues.items() for one in some):
        label = f"{one['minibatch'] or 1}, {one['cdus']}"
        new.setdefault(section, {})[label] = {name: one[name] for name in (
            "tensors", "bytes", "payload", "ring", "alone")}
    if (speed := folder / "speed.json").exists():
        sections.append("speed")
        new["speed"] = {one["name"]: [round(one["ratio"], 3), round(one["error"], 5), round(one["compress"]),
                                      round(one["decompress"]),
                                      round(max(one["memory_compress"], one["memory_decompress"]), 2), one["better"]]
                        for one in json.loads(speed.read_text())}
    today = figures.sections("bench")
    new["keys"] = record.get("keys", {}) | {section: {"key": today[section], **stamp()} for section in sections}
    return new


def ran(one):
    """Which of :data:`QUEUES` a row of a report is."""
    number = one["minibatch"]
    return "best" if one["policy"] else "queue" if not number else "step" if number == 1 else "batch"


def check(folder):
    """Refuses a folder without measurements, and those of sources that have been written since."""
    reports = {name: folder / name for name in ("report.json", "speed.json") if (folder / name).exists()}
    if not reports:
        raise SystemExit(f"{folder} has no report.json and no speed.json: run make bench")
    for name, path in reports.items():
        for section, (places, _) in figures.SOURCES["bench"].items():
            if (section == "speed") == (name == "speed.json") and (late := written_since(path, places)):
                raise SystemExit(f"{path} was measured before {late} was written: run make bench")


def written_since(path, places):
    """A file in ``places`` that is newer than ``path``, or None."""
    measured = path.stat().st_mtime
    return next((str(file.relative_to(ROOT)) for place in places for file in content.files(place)
                 if file.stat().st_mtime > measured), None)


def cells(head, body, right=1):
    """A table's lines; columns from ``right`` on are numbers."""
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * right}{'---:|' * (len(head) - right)}"
    yield from (f"| {' | '.join(line)} |" for line in body)


def by_width(record, number):
    """Modes with the same figures share a row."""
    order = [name for name in codecs.MODES if name in record["rates"]]
    widths = sorted({int(width) for mode in order for width in record["rates"][mode]["compress"]})
    groups = {}
    for mode in order:
        both = tuple(tuple(f"{number(record['rates'][mode][way][str(width)])}" for width in widths) for way in WAYS)
        groups.setdefault(both, []).append(f"`{mode}`")
    body = []
    for both, modes in groups.items():
        names = ", ".join(modes)
        body += ([[f"{names}, both ways", *both[0]]] if both[0] == both[1] else
                 [[f"{names}, {way}", *figures] for way, figures in zip(WAYS, both, strict=True)])
    return cells(["mode", *(f"width {width}" if k == 0 else str(width) for k, width in enumerate(widths))], body)


def fractions(record):
    return by_width(record, lambda steady: f"{8 / steady:.3f}")


def offload(record, rows, numbers, head):
    body = []
    for name, key, paper in rows:
        one = record["offload"][key]
        beside = f"{PAPER[paper][1]} at {PAPER[paper][0]} ({paper})" if paper else ""
        body.append([name, f"{one['ratio']:.2f}", *(
            f"{one['rates'][str(n)]:.1f}" if str(n) in one["rates"] else "" for n in numbers), beside])
    return cells(["tensors", "ratio", *head, f"paper, {SHOWN} CDUs"], body)


def long(record):
    return offload(record, LONG, (1, 2, 3, 4, 8), ("1 CDU", "2", "3", "4", "8"))


def cache(record):
    body = []
    for ratio in (ratio for ratio in FIXED if ratio >= SFPR):
        for port, ports in (("", "one for each"), (ONE_PORT, "one for all")):
            for place, where in (("", "in the CDU"), (CACHE, "at the cache")):
                name = f"{ratio}x{place}{port}"
                one = record["cache" if name in AT_CACHE else "offload"][name]
                body.append([f"{ratio}", ports, where, *(f"{one['rates'][str(n)]:.1f}" for n in (1, 2, 4, 8))])
    return cells(["ratio", "ports", "SFPR", "1 CDU", "2", "4", "8"], body, 3)


def streams(record):
    body = [[f"`{mode}`", error, cdus, *(f"{rate:.3f}" for rate in rates)]
            for mode, errors in record["streams"].items() for error, entry in errors.items()
            for cdus, rates in entry.items()]
    return cells(["mode", "relative L2 error", "CDUs", "compress: slowest tensor", "all", "decompress: slowest tensor",
                  "all"], body, 2)


def queue(record, section):
    body, hosts = [], ACCESS if any(one["alone"] for one in record[section].values()) else ()
    for label, one in sorted(record[section].items(), key=lambda item: [int(number) for number in item[0].split(", ")]):
        minibatch, cdus = label.split(", ")
        for way, name in enumerate(WAYS):
            cycles = [one["ring"][way], *(host[way] for host in one["alone"])]
            rates = [f"{one['bytes'] / count * CLOCK:.1f}" for count in cycles]
            body.append([minibatch, cdus, name, f"{one['tensors']}", f"{one['bytes'] / one['payload']:.2f}",
                         f"{SECTOR * int(cdus) * CLOCK:.1f}", f"{cycles[0]:,}", *rates,
                         *[""] * (1 + len(hosts) - len(rates))])
    return cells(["minibatch", "CDUs", "", "tensors", "ratio", "limit, GB/s", "cycles by a ring", "GB/s",
                  *(f"host, {3 + rest}" for rest in hosts)], body, 3)


def coders(record):
    numbers = sorted({int(n) for one in record["coders"].values() for n in one["cycles"]})
    body = [[dqt, f"{one['symbols']:.1f}", *(", ".join(f"{way:.2f}" for way in one["cycles"][str(n)]) for n in numbers)]
            for dqt, one in sorted(record["coders"].items(), key=lambda item: item[1]["symbols"])]
    return cells(["table", "codes a block", *(f"{n} coder{'s' * (n > 1)}" for n in numbers)], body)


def speed(record):
    body = []
    for name, (ratio, error, there, back, memory, better) in record["speed"].items():
        mode, _, rest = name.partition(" ")
        name = f"`{mode}`{rest and ', '}{rest}" if mode in codecs.MODES else name
        body.append([name, f"{ratio:.2f}", f"{error:.4f}", f"{there}", f"{back}", f"{memory:.1f}", ", ".join(better)])
    return cells(["method", "ratio", "error", "compress, MB/s", "decompress, MB/s", "memory", "better in"], body)


DOCUMENTS = {
    "docs/performance.md": {"rates": fractions, "offload": long, "cache": cache, "streams": streams, "speed": speed,
                            **{section: partial(queue, section=section) for section in QUEUES}},
    "docs/ratios.md": {"coders": coders},
}


def load():
    """What the tables are made from."""
    return json.loads(RECORD.read_text())


def render(text, name, record, stale=()):
    """The document of that name with the tables of a record."""
    return marks.render(text, {table: partial(marks.legend, lines(record), table in stale)
                               for table, lines in DOCUMENTS[name].items()})


def main(folder=None):
    if folder:
        check(Path(folder))
        with alone():
            write(RECORD, text(merge(load(), Path(folder))))
    stale = figures.stale_labels()["bench"]
    for name in DOCUMENTS:
        path = ROOT / name
        path.write_text(render(path.read_text(), name, load(), stale))


def text(record):
    """A record as JSON, a line for each of its rows."""
    parts = [f' "{name}": {{\n' + ",\n".join(f"  {json.dumps(key)}: {json.dumps(row)}" for key, row in rows.items())
             + "\n }" for name, rows in record.items()]
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    main(*sys.argv[1:])
