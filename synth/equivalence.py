"""Proves that a mapped netlist computes what the RTL says, with ABC's combinational equivalence checker.

The RTL is taken as Yosys has it just before clock gates: of generic gates, every enable and reset a multiplexer. So
besides mapping and sizing, clock gating is proven, and all that was done to flip-flops: those that were merged, copied,
or found constant. Flip-flops are cut points, known by the RTL's names: for every state of the circuit, the next state
and the outputs are the same. That such registers have the same value to begin with, where the RTL does not reset them,
is assumed. Memories that are macros are cut points, too: what goes into them is compared, what comes out is any value.
Submodules that are mapped apart stay modules in both until all cells are made, and are flattened then.
"""

import json
import re
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic

import numpy as np

from actcodec.synth import memories
from actcodec.synth.cells import cells
from actcodec.synth.flow import yosys
from actcodec.synth.library import BUILD, SynthesisError, liberty, yosys_abc
from actcodec.synth.sources import fingerprint

__all__ = ["CHECKER", "LIMIT", "Proof", "prove"]

CHECKER = tuple(Path(__file__).with_name(f"{name}.py") for name in ("equivalence", "cells", "memories", "flow",
                                                                   "library", "sources"))
LIMIT = 60  # seconds that ABC may take
PINS = {"A": 0, "B": 1, "S": 2}
GENERIC = {"$_NOT_": "~A", "$_BUF_": "A", "$_AND_": "A & B", "$_NAND_": "~(A & B)", "$_OR_": "A | B",
           "$_NOR_": "~(A | B)", "$_XOR_": "A ^ B", "$_XNOR_": "~(A ^ B)", "$_ANDNOT_": "A & ~B", "$_ORNOT_": "A | ~B",
           "$_MUX_": "(A & ~S) | (B & S)"}


@dataclass(frozen=True)
class Proof:
    """``proved``, or not finished after ``seconds``; ``outputs``: how many functions were compared."""

    proved: bool
    outputs: int
    seconds: float


def _labels(module):
    """{name of a bit: bit}, without the prefix that ABC gives to inner names, also to those of flattened modules."""
    return {re.sub(r"(?:^|(?<=\.))\$abc\$\d+(?=\$)", "", f"{name}[{index}]" if len(net["bits"]) > 1 else name): bit
            for name, net in module["netnames"].items() for index, bit in enumerate(net["bits"])}


def _names(module):
    """{bit: its names}."""
    names = {}
    for label, bit in _labels(module).items():
        names.setdefault(bit, []).append(label)
    return names


class _States:
    """Which flip-flops are one register: those that had one name before mapping, and copies."""

    def __init__(self, generic):
        self.labels, self.bits = _labels(generic), {}
        for key, cell in generic["cells"].items():
            if cell["type"].startswith("DFF"):
                for pin in ("Q", "QN"):
                    for bit in cell["connections"].get(pin, []):
                        base, _, copy = key.rpartition("$")
                        copied = copy.isdigit() and base in generic["cells"]  # by synth.fanout
                        self.bits[bit] = base if copied else key, pin == "QN"

    def find(self, names):
        """(register, whether it is the complement) of a bit with these names; ("0" or "1", False) if it is constant; or
        None."""
        for name in names:
            bit = self.labels.get(name)
            if bit in self.bits:
                return self.bits[bit]
            if bit in ("0", "1"):
                return bit, False
        return None


class _Circuit:
    """Logic as the lines of a BLIF file."""

    def __init__(self, inputs):
        self.lines, self.known, self.tables = [], {"0": "c0", "1": "c1", "x": "c0"}, {}
        self.lines += [".names c0", ".names c1\n1"]
        self.inputs = inputs

    def wire(self, bit):
        return self.known.setdefault(bit, f"w{bit}")

    def table(self, output, inputs, function, pins):
        """``output`` is a function of ``inputs``, wires, which it calls ``pins``."""
        if (function, pins) not in self.tables:
            codes = np.arange(1 << len(pins))
            values = {pin: (codes >> k & 1).astype(bool) for k, pin in enumerate(pins)}
            ones = np.flatnonzero(eval(function, values) & np.ones(len(codes), bool))
            self.tables[function, pins] = "\n".join(
                "".join(str(code >> k & 1) for k in range(len(pins))) + " 1" for code in ones.tolist()).strip()
        self.lines.append(f".names {' '.join([*inputs, output])}\n{self.tables[function, pins]}".rstrip())

    def write(self, path, outputs):
        lists = [" ".join(words) for words in (sorted(self.inputs), sorted(outputs))]
        path.write_text(f".model top\n.inputs {lists[0]}\n.outputs {lists[1]}\n" + "\n".join(self.lines) + "\n.end\n")


def _logic(circuit, module, functions):
    for cell in module["cells"].values():
        pins, outputs = functions(cell["type"])
        for output, function in outputs.items():
            if cell["connections"].get(output):
                inputs = [circuit.wire(cell["connections"][pin][0]) for pin in pins]
                circuit.table(circuit.wire(cell["connections"][output][0]), inputs, function, pins)


def _generic(kind):
    if kind in ("$_DFF_P_", "$scopeinfo") or memories.bits(kind):
        return (), {}
    function = GENERIC[kind]
    return tuple(pin for pin in PINS if pin in function), {"Y": function}


def _circuits(name, rtl, generic, netlist, library):
    """Both sides: (RTL, netlist, names of the outputs)."""
    states, ports = _States(generic), netlist["ports"]
    inputs = {(port, k): f"i_{at}_{k}" for at, (port, content) in enumerate(sorted(rtl["ports"].items()))
              if content["direction"] == "input" and port != "clk" for k in range(len(content["bits"]))}
    registers = {}

    def state(place):
        """The wire of a register."""
        return registers.setdefault(place[0], f"s{len(registers)}")

    before, after, compared = _Circuit(None), _Circuit(None), {}

    def compare(one, other):
        compared[f"o{len(compared)}"] = one, other

    for circuit, module in ((before, rtl), (after, netlist)):
        for (port, k), wire in inputs.items():
            if port in module["ports"]:
                circuit.known[module["ports"][port]["bits"][k]] = wire

    macros = {key: cell for key, cell in rtl["cells"].items() if memories.bits(cell["type"])}
    if macros.keys() != {key for key, cell in netlist["cells"].items() if memories.bits(cell["type"])}:
        raise SynthesisError(f"{name}: the netlist has other memories than the RTL")
    for at, (key, cell) in enumerate(macros.items()):
        for pin, bit in cell["connections"].items():
            if cell["port_directions"][pin] == "output":
                inputs[key, pin] = before.known[bit[0]] = f"m_{at}_{pin}"
                other = netlist["cells"][key]["connections"].get(pin)
                if other:
                    after.known[other[0]] = inputs[key, pin]

    # Of the RTL: what each register will be.
    names, coming = _names(rtl), {}
    for cell in rtl["cells"].values():
        if cell["type"] == "$_DFF_P_":
            q, d = cell["connections"]["Q"][0], cell["connections"]["D"][0]
            place = states.find(names.get(q, []))
            if place is None:  # nobody needs it, or else a proof fails
                continue
            if place[0] in ("0", "1"):
                before.known[q] = f"c{place[0]}"
                compare(before.wire(d), f"c{place[0]}")
                continue
            if place[1]:
                before.table(before.wire(q), [state(place)], "~A", ("A",))
                before.table(f"n{q}", [before.wire(d)], "~A", ("A",))
            else:
                before.known[q] = state(place)
            coming.setdefault(place[0], []).append(f"n{q}" if place[1] else d)
    known = cells(library)
    _logic(before, rtl, _generic)
    _logic(after, netlist, lambda kind: ((), {}) if known[kind].kind != "logic" else
           (known[kind].inputs, known[kind].outputs))
    coming = {register: [bit if isinstance(bit, str) and bit[0] == "n" else before.wire(bit) for bit in bits]
              for register, bits in coming.items()}

    # Of the netlist: a clock gate keeps what is not enabled.
    names, enables = _names(netlist), {}
    for cell in netlist["cells"].values():
        if known[cell["type"]].kind == "gate":
            enables[cell["connections"]["GCK"][0]] = cell["connections"]["E"][0]
    clock, = ports["clk"]["bits"] if "clk" in ports else [None]
    for key, cell in netlist["cells"].items():
        if known[cell["type"]].kind != "flop":
            continue
        pins = {pin: bits[0] for pin, bits in cell["connections"].items() if bits}
        q, complement = pins.get("Q"), pins.get("QN")
        place = states.find(names.get(q, []))
        if place is None and complement is not None and (place := states.find(names.get(complement, []))):
            place = place[0], not place[1]
        if place is None or place[0] not in coming:
            raise SynthesisError(f"{name}: the flip-flop {names.get(q) or key} of the netlist is none of the RTL's")
        for bit, inverted in ((q, place[1]), (complement, not place[1])):
            if bit is not None:
                after.table(after.wire(bit), [state(place)], "~A" if inverted else "A", ("A",))
        following = f"f_{key}"
        data = "~D" if place[1] else "D"
        if pins["CK"] == clock:
            after.table(following, [after.wire(pins["D"])], data, ("D",))
        else:
            after.table(following, [after.wire(pins["D"]), after.wire(enables[pins["CK"]]), state(place)],
                        f"({data} & E) | (Q & ~E)", ("D", "E", "Q"))
        for bit in coming[place[0]]:
            compare(bit, following)
    for key, cell in macros.items():
        for pin, bit in cell["connections"].items():
            if cell["port_directions"][pin] == "input" and pin != "CK":
                compare(before.wire(bit[0]), after.wire(netlist["cells"][key]["connections"][pin][0]))
    for port, content in sorted(rtl["ports"].items()):
        if content["direction"] == "output":
            for one, other in zip(content["bits"], ports[port]["bits"], strict=True):
                compare(before.wire(one), after.wire(other))

    outputs = list(compared)
    for circuit, side in ((before, 0), (after, 1)):
        circuit.inputs = [*inputs.values(), *registers.values()]
        for output, pair in compared.items():
            circuit.table(output, [pair[side]], "A", ("A",))
    return before, after, outputs


def prove(name, folder, limit=LIMIT, build=BUILD, library=None):
    """Compares the netlist in ``folder`` with the RTL it was mapped from, or remembers the result: a :class:`Proof`.
    Its cells are those of the Liberty file ``library`` (default: Nangate45's).

    Raises
    ------
    SynthesisError
        If they differ.
    """
    memo = folder / f"proof-{fingerprint([*CHECKER, folder / 'net.json'], limit)}.json"
    if memo.exists():
        return Proof(**json.loads(memo.read_text()))
    start = monotonic()
    commands = (folder / "generic.ys").read_text().splitlines()
    end = next(k for k, command in enumerate(commands) if command.startswith("dfflegalize"))
    flatten = "setattr -mod -unset keep_hierarchy *", "flatten"
    yosys([*commands[:end], "dfflegalize -cell $_DFF_P_ x", "techmap", *flatten, "write_json rtl.json",
           "design -reset", "read_json generic.json", *flatten, "write_json flat.json"], folder, name, "rtl")
    rtl, generic, netlist = (json.loads((folder / f"{stem}.json").read_text())["modules"][name]
                             for stem in ("rtl", "flat", "net"))
    before, after, outputs = _circuits(name, rtl, generic, netlist, library or liberty(build))
    before.write(folder / "rtl.blif", outputs)
    after.write(folder / "net.blif", outputs)
    script = f"read_blif rtl.blif; strash; &get; &w rtl.aig; read_blif net.blif; strash; &get; &cec -T {limit} rtl.aig"
    done = subprocess.run([yosys_abc(), "-c", script], cwd=folder, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    (folder / "cec.log").write_text(done.stdout)
    if "NOT EQUIVALENT" in done.stdout or done.returncode:
        raise SynthesisError(f"{name}: its netlist is not what the RTL says (log: {folder / 'cec.log'})")
    proof = Proof("are equivalent" in done.stdout, len(outputs), round(monotonic() - start, 1))
    memo.write_text(json.dumps(asdict(proof)))
    return proof
