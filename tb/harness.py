"""Runs a component's Verilog under cocotb, and drives its streams.

A bench is a file with two halves. Its ``@cocotb.test`` coroutines run inside the simulator and use :class:`Bench`;
its pytest functions run outside and call :func:`simulate`, which builds the component (once for each content) and
starts the simulator on that same file.

Environment: ``SIM`` (verilator, icarus), ``SEED`` (replays a run), ``WAVES=1`` (leaves a waveform in the run's folder
under ``build/sim``), ``GATES=UNIT:FOLDER:TESTS`` (puts the netlist of ``FOLDER`` in the place of that unit, and runs
those of the tests only that match the regular expression ``TESTS``; see ``synth/gates.py``), ``MUTANTS=`` the same with
a netlist of mutants (see ``synth/mutate.py``): ``MUTANT`` chooses one; else it is all that the file ``VERDICTS`` does
not know yet.
"""

import fcntl
import hashlib
import inspect
import json
import os
import random
import re
import shutil
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path

import cocotb
import cocotb_tools.runner
import numpy as np
from amaranth.lib.wiring import In
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, FallingEdge, RisingEdge
from cocotb_tools.runner import get_results, get_runner

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "sim"
WAVEFORMS = []  # left by the runs of this process
SEED = int(os.environ.get("COCOTB_RANDOM_SEED", 0))  # of the run; cocotb.RANDOM_SEED is another one for each test


# ------------------------------------------------------------------------------------------------ outside the simulator
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


# ------------------------------------------------------------------------------------------------- inside the simulator
def parameters():
    """What :func:`simulate` was given."""
    return json.loads(os.environ.get("TB_PARAMETERS", "{}"))


def rng():
    """A generator that depends on the run's seed and on the test that asks."""
    caller = inspect.stack()[1].function
    return np.random.default_rng([SEED, zlib.crc32(caller.encode())])


def pack(values, width):
    """Packs integers into one, the first in the least significant bits."""
    mask = (1 << width) - 1
    result = 0
    for value in reversed(list(values)):
        result = (result << width) | (int(value) & mask)
    return result


def unpack(number, width, count, signed=False):
    """Undoes :func:`pack`; returns a list of ``count`` integers."""
    mask, top = (1 << width) - 1, 1 << (width - 1)
    values = [(number >> (width * k)) & mask for k in range(count)]
    return [value - 2 * top if value & top else value for value in values] if signed else values


def beats(vectors, width):
    """Vectors [..., n] of integers as payloads: ``n`` values of ``width`` bits, then ``last``, set on the last one."""
    values = np.ascontiguousarray(vectors, "<i8")
    size = values.shape[-1]
    bits = np.unpackbits(values.reshape(-1, size, 1).view(np.uint8), axis=2, count=width, bitorder="little")
    rows = np.packbits(bits.reshape(-1, size * width), axis=1, bitorder="little")
    return [int.from_bytes(row.tobytes(), "little") | (k == len(rows) - 1) << size * width
            for k, row in enumerate(rows)]


def chunk(content, last, size):
    """Up to ``size`` bytes as the payload of a stream of chunks: the bytes, how many they are, and ``last``."""
    count = 8 * size
    return int.from_bytes(bytes(content), "little") | len(content) << count | last << count + size.bit_length()


def chunks(content, size):
    """Bytes as full chunks, of which only the last may have less than ``size``; no bytes are an empty chunk."""
    starts = range(0, max(len(content), 1), size)
    return [chunk(content[start : start + size], start == starts[-1], size) for start in starts]


def sectors(words, empty=False):
    """A flat array of 32-bit words as payloads of 8 words, how many of them count, and ``last``; none are one beat of
    none, and ``empty`` puts such a beat behind the others."""
    words = np.asarray(words, "<u4")
    starts = range(0, len(words) + 8 * empty if len(words) else 1, 8)
    return [int.from_bytes(part.tobytes(), "little") | len(part) << 256 | (start == starts[-1]) << 260
            for start in starts for part in [words[start : start + 8]]]


# How often a port rests: name -> function of a generator that yields True in cycles in which it rests.
def _bursts(random):
    resting = False
    while True:
        for _ in range(int(random.integers(1, 24))):
            yield resting
        resting = not resting


def _chance(probability):
    def pattern(random):
        while True:
            yield from random.random(256) < probability
    return pattern


def _never(random):
    while True:
        yield False


PATTERNS = {"never": _never, "seldom": _chance(0.1), "half": _chance(0.5), "mostly": _chance(0.9), "bursts": _bursts}
STALLS = [*PATTERNS, "shy"]  # a shy sink is ready only once it has seen valid: a source that waits for ready never ends


@dataclass
class Run:
    """What :meth:`Bench.run` saw: the beats of each output and the cycle of each transfer of every port."""

    beats: dict
    cycles: dict

    def __getitem__(self, port):
        return self.beats[port]


class Bench:
    """Drives the streams of ``dut`` (ports named ``NAME__payload``, ``NAME__valid``, ``NAME__ready``).

    In every cycle of :meth:`run` it checks the stream rule on the ports in ``sinks``, and on no others: a beat that was
    offered stays as it is until taken. That valid does not wait for ready shows with the stall "shy" alone, as a run
    without an end.
    """

    def __init__(self, dut):
        self.dut = dut
        self.clk = dut.clk

    async def start(self):
        """Sets all inputs to zero, starts the clock, and resets."""
        for name in json.loads(os.environ["TB_INPUTS"]):
            getattr(self.dut, name).value = 0
        cocotb.start_soon(Clock(self.clk, 2, "ns").start())
        await self.reset()

    async def reset(self, cycles=2):
        """Holds ``rst`` for some cycles."""
        await FallingEdge(self.clk)
        self.dut.rst.value = 1
        await ClockCycles(self.clk, cycles)
        await FallingEdge(self.clk)
        self.dut.rst.value = 0

    def _handles(self, port):
        return [getattr(self.dut, f"{port}__{part}") for part in ("payload", "valid", "ready")]

    async def run(self, sources, sinks, random, idle="never", stall="never", limit=None, until=None):
        """Sends the integers ``sources[port]`` and collects ``sinks[port]`` beats, all ports at once.

        ``idle`` names one of :data:`PATTERNS` for the sources and ``stall`` one of :data:`STALLS` for the sinks, or
        they map ports to names. A sink whose count is None collects until all others are done. ``until`` is a function
        of no argument that ends the run early when true. Fails after ``limit`` cycles (default: generous) without
        completion.
        """
        def resting(port, choice):
            name = choice if isinstance(choice, str) else choice.get(port, "never")
            generator = np.random.default_rng(random.integers(2**63))
            return PATTERNS[name](generator) if name != "shy" else None

        sending, taking = [], []
        for port, stream in sources.items():
            payload, valid, ready = self._handles(port)
            sending.append([port, payload, valid, ready, iter(stream), resting(port, idle), None])
        for port in sinks:
            payload, valid, ready = self._handles(port)
            taking.append([port, payload, valid, ready, resting(port, stall), None, False])
        total = sum(map(len, sources.values())) + sum(count or 0 for count in sinks.values())
        limit = limit or 2000 + 100 * total
        result = Run({port: [] for port in sinks}, {port: [] for port in (*sources, *sinks)})
        wanted = [(port, count) for port, count in sinks.items() if count is not None]

        cycle = 0
        await FallingEdge(self.clk)
        while True:
            # Between the edges: what both sides offer in this cycle.
            for state in sending:
                if state[6] is None and not next(state[5]):
                    state[6] = next(state[4], None)
                    if state[6] is not None:
                        state[1].value = state[6]
                state[2].value = int(state[6] is not None)
            for state in taking:
                state[6] = not next(state[4]) if state[4] is not None else state[5] is not None
                state[3].value = int(state[6])
            await RisingEdge(self.clk)
            for state in sending:
                if state[6] is not None and state[3].value == 1:
                    result.cycles[state[0]].append(cycle)
                    state[6] = None
            for state in taking:
                port, payload, valid, _, _, held, ready = state
                if valid.value == 1:
                    value = int(payload.value)
                    assert held is None or held == value, f"{port}: payload changed before it was taken, cycle {cycle}"
                    state[5] = None if ready else value
                    if ready:
                        result.beats[port].append(value)
                        result.cycles[port].append(cycle)
                else:
                    assert held is None, f"{port}: valid withdrawn before the beat was taken, cycle {cycle}"
            cycle += 1
            done = all(len(result.beats[port]) >= count for port, count in wanted) and all(
                len(result.cycles[port]) == len(stream) for port, stream in sources.items())
            if done or (until is not None and until()):
                break
            if cycle == limit:
                progress = {port: len(cycles) for port, cycles in result.cycles.items()}
                raise AssertionError(f"no end after {cycle} cycles; transfers so far: {progress}")
            await FallingEdge(self.clk)
        await FallingEdge(self.clk)
        for state in sending:
            state[2].value = 0
        for state in taking:
            state[3].value = 0
        return result

    def equal(self, got, expected, what):
        """Compares lists beat by beat; a mismatch names the seed, the index, and both values."""
        for index, (one, other) in enumerate(zip(got, expected, strict=False)):
            assert one == other, f"{what}: SEED={SEED} index {index}: expected {other}, got {one}"
        assert len(got) == len(expected), (
            f"{what}: SEED={SEED}: expected {len(expected)} beats, got {len(got)}")
