"""What runs have seen, added up over time in a file, and shown as tables."""

import fcntl
import json
from collections import Counter
from pathlib import Path

from actcodec.codecs import lane_modes

__all__ = ["add", "load", "markdown", "rows", "table"]

PATH = Path("build/soak/counts.json")
HEAD = ("accelerator", "runs", "Mcycles", "tensors", "mutated streams", "memory errors", "soft resets", "other faults",
        "error codes")
FAULTS = ("mutated", "memory error", "soft reset", "hard reset", "refused", "locked", "frame kept")
CODES = ("NONE", "DESCRIPTOR", "MODE", "SHORT", "EXCESS", "READ", "WRITE", "BEAT", "BLOCK")


def load(path=PATH):
    """{accelerator: Counter}; empty if there is no such file."""
    if not path.exists():
        return {}
    return {name: Counter(counts) for name, counts in json.loads(path.read_text()).items()}


def add(found, path=PATH):
    """Adds {accelerator: Counter} to the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        total = load(path)
        for name, counts in found.items():
            total[name] = total.get(name, Counter()) + counts
        part = path.with_suffix(".part")
        part.write_text(json.dumps(total, indent=1, sort_keys=True))
        part.replace(path)


def rows(found):
    """The cells of a table of {accelerator: Counter}, all accelerators' sum at the end."""
    total = sum(found.values(), Counter())
    return [_row(name, counts) for name, counts in [*sorted(found.items()), (f"all {len(found)}", total)]]


def _row(name, counts):
    def summed(*starts):
        return sum(count for kind, count in counts.items() if kind.startswith(starts))

    codes = ", ".join(f"{code} {counts[f'code {code}']:,}" for code in CODES if counts[f"code {code}"])
    other = summed(*FAULTS[3:])
    return (name, f"{counts['runs']:,}", f"{counts['cycles'] / 1e6:,.1f}", f"{counts['tensors']:,}",
            f"{summed('mutated'):,}", f"{summed('memory error'):,}", f"{summed('soft reset'):,}", f"{other:,}", codes)


def table(found):
    """Lines for a terminal: a few for each accelerator."""
    lines = []
    for name, *cells, codes in rows(found):
        lines += ["", name, "  " + ", ".join(f"{cell} {head}" for head, cell in zip(HEAD[1:-1], cells, strict=True)),
                  f"  error codes: {codes}"]
    total = sum(found.values(), Counter())
    kinds = Counter({kind: total[kind] for kind in total if kind.startswith(("compressed", "decompressed", *FAULTS))})
    return [*lines, "", "all tensors and faults: " + ", ".join(f"{kind} {kinds[kind]:,}" for kind in sorted(kinds))]


def markdown(found):
    """A table for docs/verification.md, a row for each number of lanes and kind of memory, and the kinds of faults."""
    total = sum(found.values(), Counter())
    groups = {}
    for name, counts in found.items():
        lanes, memory = name.split(" x ")[0], "independent" if "independent" in name else "shared"
        groups.setdefault((int(lanes), memory), []).append((name, counts))
    lines = ["| lanes | `memory` | accelerators " + "".join(f"| {head} " for head in HEAD[1:-1]) + "|",
             "|---:|---|---:|" + "---:|" * (len(HEAD) - 2)]
    for (lanes, memory), members in [*sorted(groups.items()), (("all", ""), list(found.items()))]:
        cells = _row("", sum((counts for _, counts in members), Counter()))[1:-1]
        lines.append(" | ".join((f"| {lanes}", memory, str(len(members)), *cells)) + " |")
    kinds = [kind for kind in sorted(total) if kind.startswith(FAULTS)]
    lines += ["", "| fault | times |", "|---|---:|", *(f"| {kind} | {total[kind]:,} |" for kind in kinds)]
    lines += ["", "| error code | tensors |", "|---|---:|",
              *(f"| {code} | {total[f'code {code}']:,} |" for code in CODES)]
    for head, start in (("mode", "mode "), ("beyond its limit", "beyond the limit of ")):
        kinds = [kind for kind in total if kind.startswith(start)]
        lines += ["", f"| {head} | tensors |", "|---|---:|",
                  *(f"| `{kind.removeprefix(start)}` | {total[kind]:,} |" for kind in sorted(kinds))]
    built = {mode for name in found for mode in name.split(",")[0].split(" x ")[1].split("+")}
    modes = [mode.name for mode in lane_modes() if mode.name in built]
    return [*lines, "", f"Modes that were built in somewhere: {', '.join(modes)}."]
