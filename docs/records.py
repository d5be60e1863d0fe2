"""``make docs``: the page of records, ``docs/records.md``, from ``docs/records/*.json``.

Which entries are stale is said by :mod:`docs.figures`.
"""

from collections import Counter
from pathlib import Path

from actcodec.codecs import lane_modes
from actcodec.synth import records
from actcodec.synth.mutate import COLUMNS, cells
from actcodec.units import UNITS
from docs import figures

__all__ = ["DOCUMENT", "page"]

DOCUMENT = Path(__file__).parent / "records.md"
HEAD = """# Records

Results that take long to obtain, rendered by `make docs` from the files in [records/](records), which have more
detail; [synthesis.json](records/synthesis.json) there has what was tried to make units smaller and faster. The methods
are described in [verification.md](verification.md) and [synthesis.md](synthesis.md).
"""
FIGURES = """
## Figures
Each figure is recorded with a key of what it was measured on: the RTL, the flow, its tools, the bench or the data.
`make figures` measures again what has another key now, or none, and only that; `make stale` lists it. Until then tables
mark it with †.
"""
PROOFS = """
## Proofs
`make prove RENEW=1` records them, each with a fault that violates the property: a bit of the unit inverted or stuck. A
property holds for any input that keeps the rules, after one cycle of reset from any state: for any time (k-induction,
pdr), or for so many cycles, where *beyond: N s* of a core were not enough for more.
"""
MUTANTS = """
## Mutants
`make mutate RENEW=1` records them. The score, in per cent, is of the mutants that are not equivalent; seconds are a
core's. A survivor's number replays it: `make mutate UNIT=rice MUTANT=31`; *unknown*: ABC found neither a proof of
equivalence nor a difference.
"""
NETLISTS = """
## Netlists
`make gates RENEW=1` records them: tests of the bench on the netlist of cells; functions (next states and outputs) that
ABC proved equal to the RTL's; cycles of real activations that were replayed through lanes and accelerators.
"""
SOAK = """
## Soak
`make soak RENEW=1` records them. All runs ended well. Mutated streams have flipped bits, cuts, dropped or inserted
beats, noise, holes in `tkeep`, or null beats. Runs with *descriptors of shapes*, as the driver writes them, are older,
and their seeds now stand for others.
"""


def table(head, body, right=()):
    """Lines of a table; the columns ``right`` are numbers."""
    yield f"| {' | '.join(head)} |"
    yield f"|{''.join('---:|' if k in right else '---|' for k in range(len(head)))}"
    yield from (f"| {' | '.join(row)} |" for row in body)


def number(value):
    return "" if value is None else f"{value:,}"


def called(name, label, stale):
    """A name in a table, with a mark if what is recorded of that label is stale."""
    return f"`{name}`" + figures.MARK * (label in stale)


def proofs(record, stale):
    units, count = {}, Counter()
    for label, one in sorted(record.items(), key=lambda item: item[1]["unit"]):
        for name, status, method, *_ in one["properties"] or ():
            units.setdefault(name, {}).setdefault(method, []).append(called(one["unit"], label, stale))
            count[status] += 1
    yield from table(("property", "how", "units"), (
        (name if k == 0 else "", method, "; ".join(some))
        for name, methods in sorted(units.items()) for k, (method, some) in enumerate(sorted(methods.items()))))
    left = [f"`{name}`" for name, one in sorted(record.items()) if one["properties"] is None]
    yield f"\n{count['proved']} properties are proved for any time, {count['bounded']} for so many cycles."
    yield f"Not run: {', '.join(left) or 'none'}."


def mutants(record, stale):
    done = [called(name, name, stale) for name, one in sorted(record.items()) if not one["survived"]]
    yield from table(("unit", *COLUMNS, "survivors"), (
        (called(name, name, stale), *cells(one), "; ".join(f"{number}: {text or 'not examined'}"
                                             for number, text in one["survived"].items()))
        for name, one in sorted(record.items()) if one["survived"]), range(1, 8))
    total = Counter()
    for one in record.values():
        total.update({key: one[key] for key in ("mutants", "killed", "equivalent")})
    yield f"\nOf {total['mutants']:,} mutants of {len(record)} units, {total['killed']:,} were killed, and "
    yield f"{total['equivalent']:,} are equivalent. None survived of {', '.join(done)}."


def netlists(record, stale):
    numbers = {name: [number(one.get(key)) for key in ("tests", "functions", "cycles")] for name, one in record.items()}
    yield from table(("unit", "tests", "functions", "cycles", "remark"), (
        (called(name, name, stale), *numbers[name], one.get("note", "")) for name, one in sorted(record.items())
        if any(numbers[name])), range(1, 4))
    for note in sorted({one["note"] for name, one in record.items() if not any(numbers[name])}):
        some = [f"`{name}`" for name, one in sorted(record.items()) if not any(numbers[name]) and one["note"] == note]
        yield f"\n{note[0].upper()}{note[1:]}: {', '.join(some)}."
    left = [f"`{name}`" for name, unit in sorted(UNITS.items()) if unit.synth is not None
            and not any(label.split(" ")[0] == name for label in record)]
    yield f"\nNothing is recorded of {', '.join(left) or 'no unit'}."


def soak(record, _):
    every = "+".join(mode.name for mode in lane_modes())
    yield from table(("run", "what", "million cycles", "tensors", "on one slave", "faults"), (
        (f"`{name}`", one.get("note") or "; ".join(one["key"]).replace(every, "all modes"),
         f"{one['cycles'] / 1e6:.1f}" if one["cycles"] else "",
         number(one["tensors"]), number(one.get("shared")), number(sum(one["faults"].values())))
        for name, one in sorted(record.items())),
        range(2, 6))
    for what, title in (("codes", "error code"), ("faults", "fault")):
        some = {name: one for name, one in sorted(record.items()) if set(one[what]) - {"all", "NONE"}}
        kinds = dict.fromkeys(kind for one in some.values() for kind in one[what])
        yield ""
        yield from table((title, *(f"`{name}`" for name in some)), (
            (kind, *(number(one[what].get(kind)) for one in some.values())) for kind in kinds), range(1, 1 + len(some)))


def overview(stale):
    yield from table(("figures", "recorded", "with mark", "which"), (
        (kind.title, number(len(kind.recorded())), number(len(stale[name])),
         "all" if len(stale[name]) == len(kind.recorded()) else ", ".join(stale[name])) for name, kind in
        figures.KINDS.items()), (1, 2))


def page():
    """The document."""
    stale = figures.stale_labels()
    parts = [HEAD, FIGURES + "\n" + "\n".join(overview(stale)) + "\n"]
    for text, function in ((PROOFS, proofs), (MUTANTS, mutants), (NETLISTS, netlists), (SOAK, soak)):
        parts.append(text + "\n" + "\n".join(
            function(records.read(function.__name__), stale.get(function.__name__, ()))).rstrip() + "\n")
    return "".join(parts)


if __name__ == "__main__":
    DOCUMENT.write_text(page())
