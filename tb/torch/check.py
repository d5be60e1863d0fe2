"""``make train-check``: what every preset does to the gradient of a network, and that networks train with it.

The gradient: that of a ResNet-8 at the same weights and for the same pictures, with and without compression; the
relative L2 error of all gradients together, held against ``check.json``. Then 60 steps of training: no loss may be NaN
or infinite, and the mean of the last ten is held against the record, too. Everything is deterministic, but other
processors round convolutions differently; so records hold within a factor. Presets without loss have to give the very
same gradients.

``--renew`` records, and writes the table of ``docs/pytorch.md``; names of presets pick some.
"""

import argparse
import json
import math
import multiprocessing
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table
from torch.nn import functional as F

import actcodec.torch as at
from actcodec import codecs
from actcodec.codecs.jpegact import TABLES
from actcodec.torch import rules
from actcodec.torch.resnet import resnet8
from tb.torch.models import lossless, relative

RECORD = Path(__file__).with_name("check.json")
DOCUMENT = Path(__file__).parents[2] / "docs/pytorch.md"
BEGIN, END = "<!-- presets -->\n", "<!-- /presets -->"
FACTOR = {"error": 1.25, "ratio": 1.05, "loss": 2}
"""Within which a record holds. Runs that are rounded differently at first have quite different losses in the end."""
STEPS, LAST = 60, 10

CASES = {name: (name, {}) for name in rules.names()}
CASES |= {f"jpeg-act {table}": ("jpeg-act", {"dqt": table}) for table in TABLES if table != "optL"}
CASES |= {f"{name} signs": (name, {"signs": True}) for name in ("jpeg-act", "sfpr", "sfpr-zvc")}
CASES |= {"jpeg-act optH signs": ("jpeg-act", {"dqt": "optH", "signs": True})}
CASES |= {f"division {words}": ("division", options) for words, options in (
    ("1 bit", {"bits": 1}), ("4 bits", {"bits": 4}), ("no LFC", {"lfc": "off"}), ("LFC", {"lfc": "on"}),
    ("minimum", {"lfc": "on", "offset": "min"}))}
VARIANTS = {variant.name: (name, values) for name, mode in codecs.MODES.items() for values, variant in mode.variants
            if values and values.keys() <= {"format", "coder"}}
CODERS = {case for case, (_, values) in VARIANTS.items() if "coder" in values}
"""Other coders: the values are the same, so that no network is trained with them."""
CASES |= VARIANTS


def batch(number, count, size):
    """Pictures of ten classes, [count, 3, size, size]: a smooth pattern for each class, moved about, and noise."""
    pattern = torch.randn(10, 3, 4, 4, generator=torch.Generator().manual_seed(1))
    pattern = F.interpolate(pattern, size=(size, size), mode="bicubic")
    random = torch.Generator().manual_seed(1000 + number)
    classes = torch.randint(0, 10, (count,), generator=random)
    moves = torch.randint(-size // 8, size // 8 + 1, (count, 2), generator=random).tolist()
    x = torch.stack([pattern[one].roll(move, (1, 2)) for one, move in zip(classes, moves, strict=True)])
    return x + 0.7 * torch.randn(x.shape, generator=random), classes


def train(model, steps, size, compress=None):
    """The loss of every step of SGD with momentum."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    losses = []
    for step in range(steps):
        x, y = batch(step, 16, size)
        optimizer.zero_grad()
        if compress is None:
            loss = F.cross_entropy(model(x), y)
        else:
            with compress:
                loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses


def fresh(width=8):
    torch.manual_seed(0)
    return resnet8(width=width)


@cache
def trained():
    """A network after 20 exact steps, and the exact gradient of a batch."""
    torch.set_num_threads(1)
    model = fresh(16)
    train(model, 20, 32)
    return model, gradient(model)


def gradient(model, compress=None):
    x, y = batch(999, 16, 32)
    model.zero_grad()
    if compress is None:
        loss = F.cross_entropy(model(x), y)
    else:
        with compress:
            loss = F.cross_entropy(model(x), y)
    loss.backward()
    return torch.cat([one.grad.reshape(-1) for one in model.parameters()])


def measure(case):
    """Error of the gradient, ratio, and loss in the end, of one of :data:`CASES`."""
    warnings.simplefilter("ignore")  # that some modes are slow
    name, options = CASES[case]
    model, exact = trained()
    compress = at.Compress(model, name, error_every=0, **options)
    error = relative(gradient(model, compress), exact)
    results = {"error": error, "ratio": compress.report().total["ratio"]}
    if case in CODERS:
        return results
    other = fresh()
    losses = train(other, STEPS, 16, at.Compress(other, name, min_values=1024, error_every=0, **options))
    last = sum(losses[-LAST:]) / LAST if all(map(math.isfinite, losses)) else math.nan
    return results | {"loss": last}


def faults(case, results, recorded):
    """What is wrong with what was measured, as text, if anything."""
    if not math.isfinite(results.get("loss", 0)):
        return "a loss is NaN or infinite"
    if lossless(CASES[case][0]) and results["error"]:
        return "the gradient is another one, though nothing is lost"
    if recorded is None:
        return "nothing is recorded; run make train-check RENEW=1"
    for key, value in results.items():
        if not value / FACTOR[key] <= recorded[key] <= value * FACTOR[key]:
            return f"{key} was {recorded[key]:.4g}"
    return ""


def renewed(results, recorded):
    """The record with what was measured, unless that cannot be right."""
    fresh = {case: {key: float(f"{value:.4g}") for key, value in one.items()} for case, one in results.items()}
    recorded = recorded | {case: one for case, one in fresh.items() if not faults(case, results[case], one)}
    return {case: recorded[case] for case in CASES if case in recorded}


def documented(text, recorded):
    """A document with the table of what is recorded."""
    lines = [f"| preset | ratio | error of the gradient | loss after {STEPS} steps |", "|---|---|---|---|"]
    for case, one in recorded.items():
        name, _, rest = case.partition(" ")
        error = f"{100 * one['error']:.3g} %" if one["error"] else "none"
        loss = f"{one['loss']:.3f}" if "loss" in one else ""
        lines.append(f"| `{name}`{rest and ' ' + rest} | {one['ratio']:.2f} | {error} | {loss} |")
    before, table = text.split(BEGIN)
    return before + BEGIN + "".join(line + "\n" for line in lines) + table[table.index(END):]


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)}")
    parser.add_argument("--renew", action="store_true", help="record what is measured")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args(arguments)
    if unknown := [case for case in options.cases if case not in CASES]:
        parser.error(f"unknown case {unknown[0]!r}, legal are {', '.join(CASES)}")
    start, cases = time.monotonic(), options.cases or list(CASES)
    recorded = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    with ProcessPoolExecutor(options.jobs, multiprocessing.get_context("spawn")) as pool:
        results = dict(zip(cases, pool.map(measure, cases), strict=True))
    if options.renew:
        recorded = renewed(results, recorded)
        RECORD.write_text(json.dumps(recorded, indent=1) + "\n")
        DOCUMENT.write_text(documented(DOCUMENT.read_text(), recorded))
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("preset", no_wrap=True)
    for name in ("ratio", "error of the gradient", f"loss after {STEPS} steps"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column()
    wrong = {case: faults(case, one, recorded.get(case)) for case, one in results.items()}
    for case, one in results.items():
        table.add_row(case, f"{one['ratio']:.2f}", f"{100 * one['error']:.3g} %" if one["error"] else "none",
                      f"{one['loss']:.3f}" if "loss" in one else "-", wrong[case])
    Console(width=120, highlight=False).print(table)
    print(f"{len(results)} presets in {time.monotonic() - start:.0f} s")
    return any(wrong.values())


if __name__ == "__main__":
    sys.exit(main())
