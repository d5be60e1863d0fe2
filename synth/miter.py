"""Proves that a mutant is equivalent: that nobody who obeys the rules of streams can tell it from the unit.

Both stand side by side with the same inputs, and start with the values that the RTL gives to registers; the first cycle
is a reset. Outputs are compared in every cycle without reset, the payload of a stream in those in which it is valid;
but no more, once a stream's source has not kept what it offered until that was taken. Where a unit's docstring says
more of when its outputs mean something, :data:`CONTRACTS` does. ABC merges registers that are the
same in both (scorr), looks for inputs that show a difference (bmc3), and for an inductive invariant that excludes any
(pdr).
"""

import hashlib
import re
import subprocess
from contextlib import suppress
from dataclasses import dataclass, field

from actcodec.synth import records
from actcodec.synth.flow import yosys
from actcodec.synth.library import SynthesisError, yosys_abc

__all__ = ["EQUIVALENT", "LIMIT", "UNKNOWN", "prove"]

LIMIT = 20  # seconds for each of ABC's engines; merging registers first has four times as many
EQUIVALENT, UNKNOWN = "equivalent", "unknown"


@dataclass(frozen=True)
class Contract:
    """What the ports of a unit that are no streams promise, in Verilog, where outputs are called ``a_...``.

    ``stable``: {port: while it stands still}; ``broken``: what users never do; ``meaningful``: {regular expression of
    outputs: when these mean something}. ``state``: what those conditions are made of.
    """

    state: str = ""
    stable: dict = field(default_factory=dict)
    broken: tuple = ()
    meaningful: dict = field(default_factory=dict)


# A direction stands while any vector is inside.
_STEADY = Contract("reg [5:0] inside = 0; always @(posedge clk)"
                   " inside <= rst ? 0 : inside + (i__valid & a_i__ready) - (a_o__valid & o__ready);",
                   stable={"inverse": "inside != 0"})
CONTRACTS = {
    "dct8": _STEADY,
    "dct": _STEADY,
    "book": Contract(
        "reg busy = 0, stands = 0; always @(posedge clk) begin"
        " busy <= ~rst & (start | busy & ~a_done); stands <= ~rst & ~start & (stands | a_done); end",
        stable={"counts": "busy", "decompress": "busy"}, broken=("busy & start",),
        meaningful={"bad": "(stands | a_done)", "tables": "(stands | a_done) & ~a_bad"}),
    "places": Contract(broken=("next & ~a_some", "start & (a_o__valid | i__valid & a_i__ready)")),
    "tensor_plan": Contract(
        "reg busy = 0, done = 0; wire told = done & ~start | a_done; always @(posedge clk) begin"
        " busy <= ~rst & (start | busy & ~a_done); done <= ~rst & told; end",
        stable={"descriptor": "(busy | done) & ~start"}, broken=("busy & start",),
        meaningful={"error": "told", "blocks|layout|geometry|shares__.*": "told & ~a_error", "origin": "|a_load"}),
}


def _ports(text, name):
    """{port: (its width, whether it is an input)} of a module in RTLIL, without clock and reset."""
    module = text[text.index(f"\nmodule \\{name}\n"):].split("\nend\n", 1)[0]
    matches = re.findall(r"^ *wire(?: width (\d+))? (input|output) \d+ (?:signed)? *\\(\w+)$", module, re.MULTILINE)
    return {port: (int(width or 1), kind == "input") for width, kind, port in matches
            if port not in ("clk", "rst", "mutant")}


def _verilog(name, ports, pins, number):
    """The circuit: ``bad`` is 1 while the two differ. ``pins``: which of clk and rst the unit has."""
    inputs = [port for port, (_, is_input) in ports.items() if is_input]
    outputs = [port for port in ports if port not in inputs]
    lines = ["module miter(input clk, input rst, output bad",
             *(f", input [{ports[port][0] - 1}:0] \\{port} " for port in inputs), ");"]  # it may be a keyword
    for side, chosen in (("a", 0), ("b", number)):
        lines += [f"wire [{ports[port][0] - 1}:0] {side}_{port};" for port in outputs]
        joined = [f".\\{port} (\\{port} )" for port in [*pins, *inputs]]
        joined += [f".\\{port} ({side}_{port})" for port in outputs]
        lines.append(f"{name} {side}({', '.join(joined)}, .mutant(16'd{chosen}));")
    contract = CONTRACTS.get(name, Contract())
    broken, plain = ["miter_first & ~rst", *(f"~rst & {term}" for term in contract.broken)], set(outputs)
    different = []
    lines.append(contract.state)
    for port, condition in contract.stable.items():
        lines += [f"reg [{ports[port][0] - 1}:0] {port}_last; always @(posedge clk) {port}_last <= {port};"]
        broken.append(f"~rst & {condition} & {port}_last != {port}")
    for pattern, condition in contract.meaningful.items():
        hidden = {port for port in plain if re.fullmatch(pattern, port)}
        different += [f"{condition} & (a_{port} != b_{port})" for port in sorted(hidden)]
        plain -= hidden
    for valid in ports:
        stream, _, kind = valid.rpartition("valid")
        ready = f"{stream}ready"
        if kind or not stream.endswith(("__", "_t")) or ready not in ports:
            continue
        prefix = stream.removesuffix("t")
        payload = [port for port in ports if port.startswith(prefix) and port not in (valid, ready)]
        if not payload:
            continue
        if valid in inputs:
            now, width = "{" + ", ".join(payload) + "}", sum(ports[port][0] for port in payload)
            lines += [f"reg [{width - 1}:0] {prefix}last; reg {prefix}waits = 0;",
                      f"always @(posedge clk) begin {prefix}last <= {now};",
                      f"{prefix}waits <= {valid} & ~a_{ready} & ~rst; end"]
            broken.append(f"{prefix}waits & ~rst & (~{valid} | {prefix}last != {now})")
        else:
            different += [f"a_{valid} & (a_{port} != b_{port})" for port in payload]
            plain -= set(payload)
    different += [f"a_{port} != b_{port}" for port in sorted(plain)]
    lines += ["reg miter_first = 1, miter_free = 0;",  # names that no port has
              "always @(posedge clk) begin miter_first <= 0; miter_free <= miter_free | miter_breaks; end",
              f"wire miter_breaks = {' | '.join(f'({term})' for term in broken)};",
              f"assign bad = ~rst & ~miter_free & ~miter_breaks & ({' | '.join(f'({term})' for term in different)});",
              "endmodule"]
    return "\n".join(lines) + "\n"


def prove(name, folder, number, limit=LIMIT):
    """What is known of the mutant ``number`` in ``folder``: EQUIVALENT, "different after N cycles", or UNKNOWN as no
    engine has finished in ``limit`` seconds. Remembers it.

    Raises
    ------
    SynthesisError
        If Yosys or ABC fail.
    """
    text, stem = (folder / "mutated.il").read_text(), f"miter-{number}"
    pins = [pin for pin in ("clk", "rst") if re.search(rf"^ *wire.* input \d+ +\\{pin}$", text, re.MULTILINE)]
    verilog = _verilog(name, _ports(text, name), pins, number)
    commands = [
        "read_rtlil mutated.il", f"read_verilog -sv {stem}.v", "hierarchy -check -top miter",
        # What nobody cares about is zero in both of them, as in the simulator. Bits are split, as Yosys refuses
        # a wire of which one bit is a constant and has lost its initial value; and such a bit goes first.
        "proc", "flatten", "splitnets", "setundef -zero", "opt_clean", "opt", "setundef -zero -init", "memory_map",
        "opt", "techmap", "opt -fast", "setundef -zero", "dfflegalize -cell $_DFF_P_ 0", "aigmap", "opt_clean",
        f"write_aiger -zinit {stem}.aig",
    ]
    # The first takes a second where the second alone would take minutes; but that one merges more.
    merges = f"&read {stem}.aig; &scorr; &put", f"read {stem}-less.aig; scorr"
    digest = hashlib.sha256(repr((verilog, commands, merges, limit)).encode()).hexdigest()[:8]
    record = folder / f"proof-{number}-{digest}"
    if record.exists():
        return record.read_text()
    (folder / f"{stem}.v").write_text(verilog)
    yosys(commands, folder, name, stem)

    def abc(script):
        done = subprocess.run([yosys_abc(), "-c", script], cwd=folder, text=True, timeout=4 * limit,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        (folder / f"{stem}.abc").write_text(done.stdout)
        if done.returncode or "Error" in done.stdout:
            raise SynthesisError(f"{name}: ABC fails (log: {folder / stem}.abc)")
        return done.stdout

    def merged(script):
        """Merges registers; how many are left."""
        return int(re.search(r"lat = *(\d+)", abc(f"{script}; write {stem}-less.aig; print_stats"))[1])

    try:  # merging and iprove know no limit of their own
        registers = merged(merges[0])
        with suppress(subprocess.TimeoutExpired):
            registers = registers and merged(merges[1])
        engines = f"bmc3 -T {limit}; pdr -T {limit}" if registers else "iprove"
        result = abc(f"read {stem}-less.aig; {engines}")
    except subprocess.TimeoutExpired:
        result = ""
    frame = re.search(r"was asserted in frame (\d+)", result)
    proved = re.search(r"^(UNSATISFIABLE|Property proved)", result, re.MULTILINE)
    verdict = f"different after {frame[1]} cycles" if frame else EQUIVALENT if proved else UNKNOWN
    records.write(record, verdict)
    return verdict
