"""Outside of the simulator: builds a component's Verilog and runs the cocotb tests of a file on it."""

import hashlib
import json
import os
import random
import re
from pathlib import Path

import cocotb_tools.config
from amaranth.lib.wiring import In
from cocotb_tools.runner import get_results, get_runner

from actcodec.sim import build
from actcodec.sim.toolchain import build_once, cache_folder, key
from tb.harness import native
from tb.harness.selection import covering, select

ROOT = Path(__file__).resolve().parents[2]
RUNS = ROOT / "build" / "sim"  # what they leave: results, logs, waveforms
WAVEFORMS = []  # left by the runs of this process
BRIEF = []  # not empty if patterns of ports are chosen, not multiplied
LARGE = 1 << 19  # bytes of Verilog
MAIN = cocotb_tools.config.share_dir / "lib" / "verilator" / "verilator.cpp"
LIBRARY = cocotb_tools.config.libs_dir / "libcocotbvpi_verilator.so"


def verilated(design, signals=(), waves=False, mutants=False, arguments=()):
    """A program that simulates a design, {module: Verilog}, with cocotb's main loop. From outside it shows the top's
    ports and ``signals``, and no others unless there are ``waves``: what can be seen is not optimised, and takes long
    to compile. ``arguments`` are more of Verilator's."""
    if waves:  # which show what is in the parts only if all is one piece
        design = {"dut": "".join(design.values())}
    ports = re.search(r"^module dut\((.*?)\);", design["dut"], re.MULTILINE | re.DOTALL)[1]
    names = *re.findall(r"\w+", ports), *signals
    control = "".join(f'public_flat_rw -module "dut" -var "{name}"\n' for name in names)
    # Most of a bench's time is Python's, then its build's: a compiler need not try hard, but where lanes, other
    # large units or hundreds of mutants run.
    level = build.FAST if len(design) > 1 or mutants or len(design["dut"]) > LARGE else build.SLOW
    arguments = ("--vpi", *(("--trace", "--public-flat-rw") if waves else ()), *arguments)
    objects = build.compiled(design, level, arguments, control)
    return build.linked("dut", objects, [MAIN], library=LIBRARY, traced=waves)


def interpreted(text, waves=False):
    """The same for Icarus Verilog."""
    def make(folder):
        (folder / "dut.v").write_text(text)
        get_runner("icarus").build(sources=[folder / "dut.v"], hdl_toplevel="dut", build_dir=folder / "made",
                                   timescale=("1ns", "1ps"), log_file=folder / "build.log", waves=waves)
        return folder / "made"

    return build_once(cache_folder() / f"icarus-{key(text, waves)}", make) / "sim.vvp"


def simulate(component, file, tests=None, without=(), inside=None, target="cells", **parameters):
    """Builds ``component`` and runs cocotb tests of the file on it: ``tests``, by default all of them, less those in
    ``without``. ``inside`` says which ones look at signals besides the ports, {test: names}, which a netlist does not
    have. ``target`` is what the component is made for; it and ``parameters`` reach the tests through the functions of
    these names."""
    from actcodec import elaboration

    module = ".".join(Path(file).resolve().relative_to(ROOT).with_suffix("").parts)
    chosen, inside = select(component, module, tests, without), inside or {}
    signals = tuple(name for names in inside.values() for name in names)
    simulator = os.environ.get("SIM", "verilator")
    waves = os.environ.get("WAVES", "") not in ("", "0")
    gates, mutants = os.environ.get("GATES", ""), os.environ.get("MUTANTS", "")
    target = "cells" if gates or mutants else target
    if gates or mutants:
        from tb import netlist

        unit, place = netlist.place()
        program = verilated({"dut": netlist.verilog(component, unit, place)}, signals, waves, bool(mutants),
                            netlist.ARGUMENTS if gates else ())
        chosen = [one for one in chosen if one not in inside]
    elif simulator == "verilator":
        program = verilated(elaboration.modules(component, "dut", target), signals, waves)
    else:
        program = interpreted(elaboration.flat(component, "dut", target), waves)
    seed = os.environ.get("SEED") or str(random.SystemRandom().randrange(2**31))
    some = [test for one in chosen for test in one.generate_tests() if not gates or netlist.suits(test)]
    names = [test.fullname for test in (covering(some, seed) if BRIEF else some)]
    run = hashlib.sha256(json.dumps([names, target, parameters], sort_keys=True).encode()).hexdigest()[:8]
    content = program.parent.name.rpartition("-")[2]
    folder = RUNS / f"{type(component).__name__.lower()}-{content}" / f"{Path(file).stem}-{run}"
    folder.mkdir(parents=True, exist_ok=True)
    runner = get_runner(simulator)
    runner.hdl_toplevel_lang = "verilog"
    inputs = ["__".join(map(str, path)) for path, member, _ in component.signature.flatten(component)
              if member.flow is In]
    modules = [module]
    environment = {"TB_PARAMETERS": json.dumps(parameters), "TB_TARGET": target, "TB_INPUTS": json.dumps(inputs),
                   # Without it pytest rewrites the assertions of all that is imported, hundreds of modules each time.
                   "COCOTB_REWRITE_ASSERTION_FILES": "tb/*.py",
                   "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # of other packages, such as Zarr's, which imports all of it
                   "LD_LIBRARY_PATH": str(LIBRARY.parent), native.ENVIRONMENT: str(native.library())}
    if mutants and (job := netlist.job(place, folder)):
        modules.append("tb.mutants")
        environment |= {"MUTANTS_JOB": json.dumps(job), "COCOTB_MAX_FAILURES": "1"}
        if not job["numbers"]:
            return
    plusargs = [*(netlist.PLUSARGS if gates else ()), *([f"+dumpfile_path={folder / 'dut.fst'}"] if waves else ())]
    try:
        results = runner.test(
            hdl_toplevel="dut", test_module=modules, build_dir=program.parent, test_dir=folder, seed=seed, waves=waves,
            results_xml=str(folder / "results.xml"), log_file=folder / "run.log", hdl_toplevel_lang="verilog",
            test_filter=f"^({'|'.join(map(re.escape, names))})$", plusargs=plusargs,
            extra_env=environment)
        count, failed = get_results(results)
        good = count > 0 and failed == 0
        if gates:
            print(f"\n{count} tests on the netlist")
    except (SystemExit, RuntimeError):
        good = False
    WAVEFORMS.extend(sorted(folder.glob("*.[vf][cs][dt]")) if waves else [])
    if not good:
        path = folder / "run.log"
        log = path.read_text(errors="replace") if path.exists() else "the simulator did not start"
        causes = "\n".join(dict.fromkeys(line.strip() for line in log.splitlines() if "Error: " in line))
        raise AssertionError(f"cocotb tests failed with SEED={seed}; log: {path}\n{causes[:4000] or log[-4000:]}")


def synthesised(unit, name, otherwise):
    """The parameter ``name`` that the unit's netlist has, while benches run on that; or else ``otherwise``."""
    from actcodec.units import UNITS

    mapped = any(os.environ.get(kind, "").startswith(f"{unit}:") for kind in ("GATES", "MUTANTS"))
    return {**UNITS[unit].parameters, **UNITS[unit].synth}[name] if mapped else otherwise
