"""Outside of the simulator: builds a component's Verilog and runs the cocotb tests of a file on it."""

import fcntl
import hashlib
import json
import os
import random
import re
import shutil
import sys
from pathlib import Path

import cocotb_tools.runner
from amaranth.lib.wiring import In
from cocotb_tools.runner import get_results, get_runner

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "sim"
WAVEFORMS = []  # left by the runs of this process


class Verilator(cocotb_tools.runner.Verilator):
    """cocotb's runner, also for designs of which Verilator compiles ``parts`` on their own: {module: its Verilog}.

    What does not depend on the design, Verilator's runtime, is compiled once, and each part for all designs."""

    parts = {}

    def _build_command(self):
        verilate, make = super()._build_command()
        made = {f"{name}.o": verilate[0] for name in (  # made anew only if older than what they come from
            "verilated", "verilated_vpi", "verilated_dpi", "verilated_threads")}
        made |= {f"V{name}/{file}": text for name, text in self.parts.items()
                 for file in (f"{name}.sv", f"V{name}.mk", f"lib{name}.a")}
        fetch, keep = [], []
        for path, content in made.items():
            key = hashlib.sha256(f"{content} {self.waves} {os.environ['MAKEFLAGS']}".encode()).hexdigest()[:16]
            kept = BUILD / f"{key}-{Path(path).name}"
            fetch.append(f"if [ -e {kept} ]; then mkdir -p {Path(path).parent}; cp {kept} {path}; fi")
            keep.append(f"if [ -e {path} ] && [ ! -e {kept} ]; then cp {path} {kept}.$$; mv {kept}.$$ {kept}; fi")
        keep.reverse()  # for those who fetch meanwhile: a part's library is there before what makes it look new
        if self.parts:
            verilate = [*verilate, "--hierarchical"]
            make = ["Vtop_hier.mk" if word == "Vtop.mk" else word for word in make]
        return [verilate, ["sh", "-ec", "\n".join(fetch)], make, ["sh", "-ec", "\n".join(keep)]]


def _tidy(build):
    """Removes what a simulator was made from, gigabytes for all benches; the simulator and the Verilog stay."""
    for path in build.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.suffix in (".cpp", ".h", ".o", ".a", ".d", ".gch", ".dat", ".mk"):
            path.unlink()


def simulate(component, module, tests=None, seen=(), **parameters):
    """Builds ``component`` and runs the cocotb tests of the file ``module`` on it (all, or those that ``tests``, a
    regular expression, matches). Besides its ports they can look at the signals ``seen``. ``parameters`` reach the
    tests through :func:`parameters`."""
    from actcodec.units import verilog

    simulator = os.environ.get("SIM", "verilator")
    waves = os.environ.get("WAVES", "") not in ("", "0")
    gates, mutants = os.environ.get("GATES", ""), os.environ.get("MUTANTS", "")
    if gates or mutants:
        from tb import netlist

        unit, place, chosen = (gates or mutants).split(":", 2)
        text = netlist.verilog(component, unit, place)
        tests = f"^(?=.*(?:{tests or ''}))(?=.*(?:{chosen}))"
    else:
        text = verilog(component, "dut", flatten=simulator == "icarus")
    key = hashlib.sha256(f"{simulator} {waves} {seen} {text}".encode()).hexdigest()[:16]
    build = BUILD / f"{type(component).__name__.lower()}-{key}"
    build.mkdir(parents=True, exist_ok=True)

    # The wheel lacks this variable; set outright, since under make there are other flags, of no use to this one.
    # Most of a bench's time is its build: compilers need not try hard.
    os.environ["MAKEFLAGS"] = f"CFG_CXXFLAGS_PCH_I=-include OPT_FAST=-O{0 if gates else 1} OPT_SLOW=-O0 OPT_GLOBAL=-O1"
    os.environ["PATH"] = f"{ROOT / 'tb' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    os.environ["PYTHON"] = sys.executable
    runner = Verilator() if simulator == "verilator" else get_runner(simulator)
    with open(build / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        source, done = build / "dut.v", build / "built"
        if not done.exists():
            source.write_text(text)
            sources, arguments = [source], []
            if simulator == "verilator":
                # Modules behind the design's own are those that it has several of.
                parts = re.split(r"^(?=module dut_\w)", text, flags=re.MULTILINE)[1:]
                runner.parts = {re.match(r"module (\w+)", part)[1]: part for part in parts}
                control = [f'hier_block -module "{name}"' for name in runner.parts]
                # No others, since what can be seen from outside is not optimised, and takes long to compile.
                ports = re.search(r"^module dut\((.*?)\);", text, re.MULTILINE | re.DOTALL)[1]
                control += [f'public_flat_rw -module "dut" -var "{name}"'
                            for name in (*re.findall(r"\w+", ports), *seen)]
                (build / "control.vlt").write_text("\n".join(["`verilator_config", *control, ""]))
                sources.append(build / "control.vlt")
                arguments = ["-Wno-fatal", "-O3", "--x-assign", "fast", *(netlist.ARGUMENTS if gates else ())]
            try:
                runner.build(sources=sources, hdl_toplevel="dut", build_dir=build, build_args=arguments, waves=waves,
                             timescale=("1ns", "1ps"), log_file=build / "build.log")
            except RuntimeError as error:
                log = (build / "build.log").read_text(errors="replace")
                raise AssertionError(f"{simulator} did not build {build}: {error}\n{log[-4000:]}") from None
            if simulator == "verilator":
                _tidy(build)
            done.touch()
    seed = os.environ.get("SEED") or str(random.SystemRandom().randrange(2**31))
    name = Path(module).stem + "-" + hashlib.sha256(json.dumps([tests, parameters], sort_keys=True).encode()
                                                    ).hexdigest()[:8]
    folder = build / name
    folder.mkdir(exist_ok=True)
    runner.hdl_toplevel_lang = "verilog"
    inputs = ["__".join(map(str, path)) for path, member, _ in component.signature.flatten(component)
              if member.flow is In]
    modules = [".".join(Path(module).resolve().relative_to(ROOT).with_suffix("").parts)]
    environment = {"TB_PARAMETERS": json.dumps(parameters), "TB_INPUTS": json.dumps(inputs)}
    if mutants and (job := netlist.job(place, folder)):
        modules.append("tb.mutants")
        environment |= {"MUTANTS_JOB": json.dumps(job), "COCOTB_MAX_FAILURES": "1"}
        if not job["numbers"]:
            return
    try:
        results = runner.test(
            hdl_toplevel="dut", test_module=modules, build_dir=build, test_dir=folder, seed=seed, waves=waves,
            results_xml=str(folder / "results.xml"), test_filter=tests, log_file=folder / "run.log",
            hdl_toplevel_lang="verilog", plusargs=netlist.PLUSARGS if gates else (),
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
