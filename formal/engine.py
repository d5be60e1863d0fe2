"""Proves the properties of a harness with Yosys and ABC, and shows that a broken unit does not have them.

Yosys makes two and-inverter graphs of a harness. In one the unit is as it is; in the other, every one of its copies has
the same faults (``mutate`` of Yosys: a bit of a cell inverted or stuck), of which at most one is active, chosen by the
signal ``mutant``. ABC proves each property of the first one for all time (property directed reachability, behind
sequential sweeping), or, where that takes too long, for as many cycles as it can; and finds a fault with which the
second one violates it.
"""

import hashlib
import json
import re
import shutil
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from resource import RLIMIT_CPU, RUSAGE_CHILDREN, RUSAGE_SELF, getrusage, setrlimit

from actcodec.synth.flow import yosys
from actcodec.synth.library import SynthesisError, version, yosys_abc
from formal.harness import MUTANTS

__all__ = ["BUILD", "Result", "fingerprint", "prove"]

BUILD = Path(__file__).resolve().parent.parent / "build" / "prove"
ABC = yosys_abc()

READ = ["read_rtlil unit.il", "read_rtlil top.il", "hierarchy -check -top top", "proc",
        # Registers and memories wake up with any value; only resets and writes give them one.
        "setattr -unset init w:*", "delete t:$meminit*", "setattr -set init 1'0 top/w:started",
        "setattr -set keep 1 top/w:mutant", "flatten unit",
        "opt_clean"]
GATES = ["flatten", "setundef -anyseq", "memory_map", "setundef -undriven -anyseq", "opt_expr", "opt_merge",
         "opt_clean", "dffunmap", "simplemap", "techmap", "aigmap", "opt_clean -purge"]
UNTOUCHED = re.compile(r" -port (CLK|[AS]RST) ")  # registers have no such resets yet, and memories only say so
MODES = ("inv", "const0", "const1")
INDUCTION = 20  # seconds that are worth trying it
FAULTS, DEPTH = 120, 30  # faults that are tried, and cycles in which one has to show
NOT_RUN = "not run"
REDUCE = "scleanup; dc2; scorr; dc2; scleanup"


@dataclass(frozen=True)
class Result:
    """What is known of a property: ``status`` is "proved", "bounded", "failed" or "open", ``method`` how, ``seconds``
    for how long; ``fault`` is what breaks it, None if nothing was found, and ``trace`` a counterexample's file."""

    name: str
    status: str
    method: str
    seconds: float
    fault: str | None
    trace: str | None = None

    @property
    def good(self):
        """It holds, and can fail."""
        return self.status in ("proved", "bounded") and self.fault is not None


def spent():
    """Seconds of a core that this process and all that it has started have used."""
    return sum(sum(getrusage(who)[:2]) for who in (RUSAGE_SELF, RUSAGE_CHILDREN))


def sample(near, everywhere, count, seed):
    """Draws faults, half of them from the places ``near``: lines for Yosys, each with its number. Of these, ports of a
    single bit come first, with all kinds of faults. The others are as likely as each other, however wide."""
    random, drawn = Random(seed), {}

    def draw(line, mode):
        drawn[line.replace("-mode inv", f"-mode {mode}")] = None

    for places, enough in ((near, count // 2), (everywhere, count)):
        pins = {}
        for line in places:
            if not UNTOUCHED.search(line):
                pins.setdefault(re.search(r"-cell \S+ -port \S+", line)[0], []).append(line)
        names = sorted(pins)
        narrow = [pins[name][0] for name in names if len(pins[name]) == 1]
        for line in random.sample(narrow, len(narrow)) if places is near else ():
            for mode in MODES if len(drawn) < enough else ():
                draw(line, mode)
        for _ in range(20 * count if names else 0):
            if len(drawn) < enough:
                draw(random.choice(pins[random.choice(names)]), random.choice(MODES))
    return "".join(line.replace("mutate ", f"mutate -ctrl mutant {MUTANTS} {number} ", 1) + "\n"
                   for number, line in enumerate(drawn, 1))


def single(source, target, index):
    """Copies an AIGER file with one of its outputs only."""
    content = source.read_bytes()
    head, rest = content.split(b"\n", 1)
    _, most, inputs, latches, outputs, ands, *_ = head.split()
    lines = rest.split(b"\n", int(latches) + int(outputs))
    kept = [*lines[:int(latches)], lines[int(latches) + index]]
    target.write_bytes(b"\n".join([b"aig %s %s %s 1 %s" % (most, inputs, latches, ands), *kept, lines[-1]]))


def abc(folder, name, limit, *commands):
    """Runs ABC for ``limit`` seconds of a core, at least one; returns what it prints."""
    limit = max(1, round(limit))
    with open(folder / f"{name}.log", "w") as log:
        subprocess.run([ABC, "-c", "; ".join(commands)], cwd=folder, stdout=log, stderr=subprocess.STDOUT,
                       preexec_fn=lambda: setrlimit(RLIMIT_CPU, (limit, limit)))
    text = (folder / f"{name}.log").read_text(errors="replace")
    if reason := re.search(r".*(?:cmd error|has failed|Cannot open).*", text):
        raise SynthesisError(f"ABC: {reason[0]} (log: {folder / name}.log)")
    return text


def trace(folder, name, property_, depth):
    """Writes a waveform of a violation that ABC can find; returns its file."""
    abc(folder, f"{property_}-trace", 600, f"read_aiger {property_}.aig", f"bmc3 -F {depth}",
        f"write_cex -a -t {property_}.aiw")
    yosys([*READ, "flatten", "memory_map",
           f"sim -clock clk -map sound.aim -r {property_}.aiw -vcd {property_}.vcd -scope top top"],
          folder, name, f"{property_}-sim")
    return folder / f"{property_}.vcd"


def decide(folder, name, index, limit, bound):
    """Tries to prove a property, in ``limit`` seconds of a core: (status, method, trace). ``bound``: cycles to look at;
    None: all, or, if half of the time was not enough for that, as many as the other half is enough for."""
    key, start = f"p{index}", spent()
    read, found = f"read_aiger {key}.aig", None

    def left(whole):
        return whole - (spent() - start)

    single(folder / "sound.aig", folder / f"{key}.aig", index)
    if bound is None:
        # Most properties are inductive, and a few cycles are cheap to look at. Then internal signals that are always
        # equal are found and merged, which for some leaves nothing, and the rest is for PDR.
        step = abc(folder, f"{key}-step", min(INDUCTION, limit / 4), read, "scleanup", "ind -v -F 4")
        cycles = int((re.findall(r"Completed (\d+) iterations", step) or [4])[-1])
        base = abc(folder, f"{key}-base", left(limit / 2), read, f"bmc3 -F {cycles + 1}")
        found = re.search(r"asserted in frame (\d+)", base)
        if not found and "Networks are equivalent" in step and f"No output asserted in {cycles + 1} frames" in base:
            return "proved", f"k-induction, k = {cycles - 1}", None
        if not found:
            abc(folder, f"{key}-reduce", left(limit / 2) / 2, read, REDUCE, f"write_aiger {key}-reduced.aig")
            reduced = folder / f"{key}-reduced.aig"
            if not reduced.exists():
                reduced = folder / f"{key}.aig"
            head, output = reduced.read_bytes().split(b"\n")[:2]
            if head.split()[3] == head.split()[5] == output == b"0":
                return "proved", "k-induction, k = 1", None
            text = abc(folder, key, left(limit / 2), f"read_aiger {reduced.name}", "pdr")
            if "Property proved" in text:
                return "proved", "pdr", None
            found = re.search(r"asserted in frame (\d+)", text)
        if not found:
            half = round(limit / 2)
            text = abc(folder, f"{key}-deep", half + 5, f"read_aiger {reduced.name}", f"bmc3 -T {half}")
            found = re.search(r"asserted in frame (\d+)", text)
            cycles = int((re.findall(r"No output asserted in (\d+) frames", text) or [0])[-1])
            if not found:
                return "bounded" if cycles else "open", f"{cycles} cycles (beyond: {half} s)", None
    else:
        text = abc(folder, key, limit, read, REDUCE, f"bmc3 -F {bound}")
        found = re.search(r"asserted in frame (\d+)", text)
        if not found:
            complete = f"No output asserted in {bound} frames" in text
            return "bounded" if complete else "open", f"{bound} cycles", None
    return "failed", f"cycle {found[1]}", str(trace(folder, name, key, int(found[1]) + 1))


def breaks(folder, index, limit, depth):
    """A fault that violates a property within ``depth`` cycles; None if none was found."""
    key = f"f{index}"
    single(folder / "broken.aig", folder / f"{key}.aig", index)
    abc(folder, key, limit, f"read_aiger {key}.aig", f"bmc3 -F {depth}", f"write_cex -a {key}.aiw")
    path = folder / f"{key}.aiw"
    if not path.exists():
        return None
    values = path.read_text().splitlines()[1]
    number = 0
    for place, position in re.findall(r"^input (\d+) (\d+) mutant_chosen$", (folder / "broken.aim").read_text(), re.M):
        number |= int(values[int(place)]) << int(position)
    for line in (folder / "faults.ys").read_text().splitlines():
        if int(line.split("mutant ")[1].split()[1]) == number:
            words = dict(re.findall(r"-(\w+) (\S+)", line))
            return f"{words['mode']} {words.get('wire') or words['cell'] + '.' + words['port']}"
    return None


def settled(result, bounds):
    """Whether more time can find nothing more."""
    final = result.status in ("proved", "failed") or (result.status == "bounded" and result.name in bounds)
    return final and (result.status == "failed" or result.fault is not None)


def fingerprint(harness, bounds=(), faults=FAULTS, seed=1, depth=DEPTH):
    """Sixteen characters that change with whatever the results of :func:`prove` depend on."""
    key = repr((harness.text, harness.top, Path(__file__).read_text(), version("pyosys", "Yosys"),
                sorted(dict(bounds).items()), faults, seed, depth))
    return hashlib.sha256(key.encode()).hexdigest()[:16]


def prove(name, harness, limit=600, bounds=(), faults=FAULTS, seed=1, depth=DEPTH, build=BUILD):
    """Decides on all properties of a harness, or remembers what was decided; returns a list of :class:`Result`. An
    earlier attempt that was interrupted, or that had less time, goes on with what it left open.

    Parameters
    ----------
    name : str
    harness : Harness
    limit : int
        Seconds of a core for a property, whatever is tried, and as many for finding a fault that breaks it.
    bounds : dict
        Cycles for which properties are proved, by name, where that for all time takes too long.
    faults, seed : int
        How many faults are tried, at most 255, and which.
    depth : int
        Cycles in which a fault has to show.
    build : Path

    Raises
    ------
    SynthesisError
        If Yosys fails.
    """
    bounds = dict(bounds)
    folder = Path(build, f"{name}-{fingerprint(harness, bounds, faults, seed, depth)}")
    kept = folder / "results.json"
    tried, results = 0, None
    if kept.exists():
        tried, results = json.loads(kept.read_text())
        results = [Result(**one) for one in results]
    if results and (tried >= limit or all(settled(result, bounds) for result in results)):
        return results
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "unit.il").write_text(harness.text)
    (folder / "top.il").write_text(harness.top)
    lists = [f"mutate -list 10000000 -mode inv -o {where}.ys {cells}"
             for where, cells in (("near", harness.near), ("all", "unit"))]
    yosys([*READ, "write_rtlil read.il", *lists], folder, name, "read")
    near, everywhere = ((folder / f"{where}.ys").read_text().splitlines() for where in ("near", "all"))
    (folder / "faults.ys").write_text(sample(near, everywhere, faults, seed))
    yosys(["read_rtlil read.il", "design -save sound", *GATES, "write_aiger -zinit -map sound.aim sound.aig",
           "design -load sound", "script faults.ys",
           *GATES, "write_aiger -zinit -map broken.aim broken.aig"], folder, name, "gates")

    def keep(seconds):
        part = kept.with_suffix(".part")
        part.write_text(json.dumps([seconds, [asdict(result) for result in results]], indent=1))
        part.replace(kept)

    results = results or [Result(property_, "open", NOT_RUN, 0, None) for property_ in harness.checks]
    for index, property_ in enumerate(harness.checks):
        if settled(results[index], bounds):
            continue
        start = spent()
        status, method, found = decide(folder, name, index, limit, bounds.get(property_))
        seconds = spent() - start
        fault = breaks(folder, index, limit, depth) if status != "failed" else None
        results[index] = Result(property_, status, method, round(seconds, 1), fault, found)
        keep(0)
    keep(limit)
    return results
