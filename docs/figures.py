"""``make figures``: measures again what was measured on something else than what is there now, and nothing else.

Each recorded figure has the key of what it was measured on. ``python -m docs.figures`` runs for each kind of figure the
command that records it, with the units whose key is another one now; what these commands have done before they remember
by content, so that an interrupted run goes on. ``--stale`` (``make stale``) lists these units, and writes them into
``docs/records/stale.json``, from which ``make docs`` marks tables. ``--check``, of CI, fails if a figure is stale and
has no mark, or is in the README.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

from docs import content

__all__ = ["KINDS", "MARK", "PATH", "Kind", "changed", "outdated", "sections", "stale_labels"]

PATH = content.ROOT / "docs/records/stale.json"
MARK = "†"
SAMPLE = "actcodec/data/resnet20.npz"
LANES = (SAMPLE, "rtl/common", "rtl/offload", "rtl/jpegact", "rtl/comet", "rtl/division", "actcodec/driver.py",
         "actcodec/sim", "actcodec/bench/cycles.py")
OTHERS = (SAMPLE, "docs/beside.py", "requirements-bench.lock")
QUANTIZERS = ((*OTHERS, "docs/quantizers.py", "golden/jpegact/dqt_steps.py"), ("jpeg-act", "sfpr-zvc", "comet", "mx"))
PAPER = ("raw", "sfpr", "sfpr-zvc", "jpeg-act", "brc", "zvc")
TORCH = (*(f"actcodec/torch/{name}.py" for name in (
    "bitpack", "blockcodes", "comet", "compress", "dct", "division", "entry", "gist", "lane", "mx", "needs",
    "operations", "packing", "planes", "quantize", "rules", "runlength", "saved", "sfpr", "signed", "tiles")),
    "actcodec/torch/kernels", "requirements-torch.lock")
TORCH_MODES = ("sfpr", "sfpr-zvc", "jpeg-act", "jpeg-base", "division", "comet", "mx")
SOURCES = {
    "bench": {**dict.fromkeys(("rates", "tensors", "offload", "cache"), (LANES, PAPER)), "streams": (LANES, ("comet",)),
              **dict.fromkeys(("queue", "step", "batch", "best"), ((*LANES, "actcodec/bench/queued.py"), PAPER)),
              "coders": (LANES, ("jpeg-base",)), "speed": ((SAMPLE, "golden", "actcodec/bench/speed.py"), ())},
    "measured": {"beside": (OTHERS, ("jpeg-act", "sfpr-zvc", "comet")),
                 "quantizers": QUANTIZERS, "channels": QUANTIZERS,
                 "gradients": ((*OTHERS, "docs/gradients.py", "tb/torch/check.py"), ("jpeg-act", "comet", "mx"))},
    "torch": {"memory": ((*TORCH, "actcodec/train/networks.py", "docs/torch_memory.py", "tb/torch/memory.py"),
                         TORCH_MODES),
              "speed": ((*TORCH, "actcodec/torch/resnet.py", "docs/torch_memory.py", "docs/torch_speed.py"),
                        TORCH_MODES),
              "networks": ((*TORCH, "docs/torch_networks.py", "tb/torch/networks.py"), TORCH_MODES),
              "temporaries": ((*TORCH, "docs/torch_temporaries.py", "tb/torch/memory.py",
                               "tb/torch/test_temporaries.py"), TORCH_MODES),
              "halves": ((*TORCH, "docs/torch_memory.py", "docs/torch_halves.py"), TORCH_MODES)},
}
"""What sections of records depend on: {record: {section: (places, modes whose streams count)}}."""


@dataclass(frozen=True)
class Kind:
    """Figures that one command records."""

    title: str
    recorded: Callable  # {label: key, or None where it is not known}
    today: Callable  # of labels: {label: key}
    commands: Callable  # of labels: [arguments of Python]
    quick: bool = False  # whether keys take less than a second


def read(path):
    return json.loads((content.ROOT / path).read_text())


def keys(path):
    return {label: one.get("key") for label, one in read(path).items()}


def orders():
    """{label: name on the command line} of all that is mapped; lanes come with an accelerator."""
    from actcodec.synth import catalogue

    names = {}
    for name in catalogue.NAMES:
        for label, (_, unit, parameters) in catalogue.orders([name]).items():
            names.setdefault(label, name)
            if unit.name == "accelerator":
                names.setdefault(catalogue._lane(parameters)[1], name)
    return names


def jobs(labels, target="cells"):
    """The jobs of these labels, by label, made for a target; nothing else is elaborated."""
    from actcodec.synth import catalogue

    names = sorted({name for label, name in orders().items() if label in labels})
    if not names:
        return {}
    known = catalogue.orders(names)
    selection = [(unit.name, parameters) for label, (_, unit, parameters) in known.items()
                 if label in labels or (unit.name == "accelerator" and catalogue._lane(parameters)[1] in labels)]
    return {job.label: job for job in catalogue.jobs(
        names, lambda unit, parameters: (unit.name, parameters) in selection, target)
        if job.label in labels}


def mapping_keys(labels):
    from actcodec.synth import catalogue

    return {label: catalogue.key(job) for label, job in jobs(labels).items()}


def placement_keys(labels):
    from actcodec.synth import fpga

    return {label: fpga.key(job.name, job.text, job.texts) for label, job in jobs(labels, "lut").items()}


def layout_keys(labels):
    from actcodec.synth.layout import flow

    return {label: flow.identity(key) for label, key in mapping_keys(labels).items()}


def sky130_keys(labels):
    from actcodec.synth.sky130 import flow

    return {label: flow.identity(key) for label, key in mapping_keys(labels).items()}


def mutant_keys(labels):
    from actcodec.synth import mutate

    entries = read("docs/records/mutants.json")
    return {label: mutate.key(mutate.SUBJECTS[label], entries[label]["mutants"], entries[label]["seed"])
            for label in labels if label in mutate.SUBJECTS}


def proof_keys(labels):
    import warnings

    from amaranth._unused import UnusedMustUse

    from formal.catalogue import key, proofs

    warnings.filterwarnings("ignore", category=UnusedMustUse)  # parts of a unit are examined without the rest
    return {label: key(label) for label in labels if label in proofs()}


def synth(command, *options, unit=False):
    """Commands of ``actcodec.synth`` for labels, but for those of units that are gone; with ``unit`` they know units
    alone, not their variants."""
    def commands(labels):
        known = orders()
        names = {label.split(" ")[0] if unit else known[label] for label in labels if label in known}
        return [["-m", "actcodec.synth", command, *sorted(names), *options]] if names else []
    return commands


def formal(labels):
    entries = read("docs/records/proofs.json")
    return [["-m", "formal", *sorted({entries[label]["unit"].split(" ")[0] for label in labels}), "--renew"]]


def rates(labels):
    images = {"step": "1", "batch": "16"}  # of sections that make bench leaves out, as they take long
    runs = {"build/bench": []} if set(labels) - set(images) else {}
    runs |= {f"build/{name}": ["--step", number] for name, number in images.items() if name in labels}
    return [command for folder, options in runs.items() for command in (
        ["-m", "actcodec", "bench", *options, "--output", folder], ["-m", "docs.rates", folder])]


def sections(record):
    """{section: key of today} of a record that is measured on sources."""
    return {section: content.key(*places, modes=modes) for section, (places, modes) in SOURCES[record].items()}


def recorded_sections(record):
    """{section: its recorded key} of one."""
    return {section: read(f"docs/records/{record}.json").get("keys", {}).get(section, {}).get("key")
            for section in SOURCES[record]}


KINDS = {
    "areas": Kind("areas and slacks", lambda: keys("synth/baseline.json"), mapping_keys, synth("baseline", "--renew")),
    "fpga": Kind("FPGA", lambda: keys("synth/fpga.json"), placement_keys, synth("fpga", "--renew", unit=True)),
    "placed": Kind("placed netlists", lambda: keys("docs/records/placed.json"), layout_keys, synth("place", "--renew")),
    "sky130": Kind("sky130", lambda: keys("docs/records/sky130.json"), sky130_keys, synth("sky130", "--renew")),
    "power": Kind("power", lambda: keys("docs/records/power.json"), mapping_keys, synth("map", "--power", "--renew")),
    "netlists": Kind("netlists", lambda: keys("docs/records/netlists.json"), mapping_keys, synth("gates", "--renew")),
    "mutants": Kind("mutants", lambda: keys("docs/records/mutants.json"), mutant_keys, lambda labels: [
        ["-m", "actcodec.synth", "mutate", *sorted(labels), "--renew"]]),
    "proofs": Kind("proofs", lambda: {label: one["key"] for label, one in read("docs/records/proofs.json").items()
                                      if one["properties"]}, proof_keys, formal),
    "bench": Kind("rates", lambda: recorded_sections("bench"), lambda _: sections("bench"), rates, quick=True),
    "measured": Kind("ratios beside others", lambda: recorded_sections("measured"), lambda _: sections("measured"),
                     lambda labels: [["-m", f"docs.{name}"] for name in sorted(
                         {"quantizers" if label == "channels" else label for label in labels})], quick=True),
    "torch": Kind("PyTorch", lambda: recorded_sections("torch"), lambda _: sections("torch"),
                  lambda labels: [["-m", f"docs.torch_{label}"] for label in labels], quick=True),
}
"""The kinds of figures, in the order in which they are measured."""


def outdated(kind):
    """The labels whose figures were measured on something else, or nobody knows on what."""
    recorded = kind.recorded()
    known = {label for label, key in recorded.items() if key is not None}
    today = kind.today(known) if known else {}
    return sorted(label for label, key in recorded.items() if key is None or today.get(label) != key)


def stale_labels():
    """{kind: labels} as tables have them: those that are slow to compute by the file, the others as they are now."""
    recorded = json.loads(PATH.read_text()) if PATH.exists() else {}
    return {name: outdated(kind) if kind.quick else recorded.get(name, []) for name, kind in KINDS.items()}


def changed(names):
    """{kind: labels} that are stale now, printed one by one."""
    stale = {}
    for name in names:
        stale[name] = outdated(KINDS[name])
        print(f"{KINDS[name].title}: {len(stale[name])} of {len(KINDS[name].recorded())} are stale, or nobody knows on "
              f"what they were measured{': ' if stale[name] else ''}{', '.join(stale[name])}", flush=True)
    return stale


def write(stale):
    """Into the file, what is slow to compute."""
    recorded = json.loads(PATH.read_text()) if PATH.exists() else {}
    recorded |= {name: labels for name, labels in stale.items() if not KINDS[name].quick}
    PATH.write_text("{\n" + ",\n".join(f" {json.dumps(name)}: {json.dumps(labels)}" for name, labels in sorted(
        recorded.items())) + "\n}\n")


def check(stale):
    """What is wrong, a sentence each."""
    recorded = stale_labels()
    for name, labels in stale.items():
        if fresh := sorted(set(labels) - set(recorded[name])):
            yield f"{KINDS[name].title} without a mark: {', '.join(fresh)}; run make stale docs"
    if MARK in (content.ROOT / "README.md").read_text():
        yield "README.md has figures that were measured on something else; run make figures"


def measure(names, jobs):
    """Measures what is stale, kind by kind. Returns the commands that failed."""
    failed = []
    for name in names:
        start, labels = monotonic(), outdated(KINDS[name])
        if not labels:
            continue
        print(f"{KINDS[name].title}: {', '.join(labels)}", flush=True)
        for command in KINDS[name].commands(labels):
            threads = ["--jobs", str(jobs)] if command[1] in ("actcodec.synth", "formal") else []
            if subprocess.run([sys.executable, *command, *threads], cwd=content.ROOT, check=False).returncode:
                failed.append(" ".join(command))
                break  # what follows would record figures of before
        print(f"{KINDS[name].title}: {monotonic() - start:.0f} s", flush=True)
        write({name: outdated(KINDS[name])})
    return failed


def main():
    parser = argparse.ArgumentParser(prog="python -m docs.figures", description=__doc__.split("\n\n")[0])
    parser.add_argument("kinds", nargs="*", metavar="kind", help=f"of figures, all by default: {', '.join(KINDS)}")
    parser.add_argument("--stale", action="store_true", help="list what is stale, and mark it, instead")
    parser.add_argument("--check", action="store_true", help="fail if a stale figure has no mark, instead")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    options = parser.parse_args()
    names = options.kinds or list(KINDS)
    if unknown := [name for name in names if name not in KINDS]:
        parser.error(f"no figures {unknown[0]!r}; there are {', '.join(KINDS)}")
    if options.check:
        wrong = list(check(changed(names)))
    elif options.stale:
        wrong = write(changed(names))
    else:
        wrong = [f"failed: {command}" for command in measure(names, options.jobs)]
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
