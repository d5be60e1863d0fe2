"""What runs have met: shown as a table, and recorded in docs/records/soak.json."""

from collections import Counter

from actcodec.rtl.offload.control.register_map import ErrorCode
from actcodec.synth import records

__all__ = ["FAULTS", "SLAVE", "record", "table"]

HEAD = ("accelerator", "runs", "Mcycles", "tensors", "on one slave", "mutated streams", "memory errors", "soft resets",
        "other faults", "error codes")
FAULTS = ("mutated", "memory error", "soft reset", "hard reset", "refused", "locked", "frame kept",
          "ring: memory error", "ring: ring error", "ring: stop", "ring: soft reset")
SLAVE = "on one slave"  # tensors with all ports on the same one
CODES = tuple(code.name for code in ErrorCode)


def rows(counters):
    """The cells of a table of {accelerator: Counter}, all accelerators' sum at the end."""
    total = sum(counters.values(), Counter())
    return [_row(name, counts) for name, counts in [*sorted(counters.items()), (f"all {len(counters)}", total)]]


def _row(name, counts):
    def summed(*starts):
        return sum(count for kind, count in counts.items() if kind.startswith(starts))

    codes = ", ".join(f"{code} {counts[f'code {code}']:,}" for code in CODES if counts[f"code {code}"])
    other = summed(*(kind for kind in FAULTS[3:] if kind not in ("ring: memory error", "ring: soft reset")))
    return (name, f"{counts['runs']:,}", f"{counts['cycles'] / 1e6:,.1f}", f"{counts['tensors']:,}",
            f"{counts[SLAVE]:,}", f"{summed('mutated'):,}", f"{summed('memory error', 'ring: memory error'):,}",
            f"{summed('soft reset', 'ring: soft reset'):,}", f"{other:,}", codes)


def table(counters):
    """Lines for a terminal: a few for each accelerator."""
    lines = []
    for name, *cells, codes in rows(counters):
        lines += ["", name, "  " + ", ".join(f"{cell} {head}" for head, cell in zip(HEAD[1:-1], cells, strict=True)),
                  f"  error codes: {codes}"]
    total = sum(counters.values(), Counter())
    kinds = Counter({kind: total[kind] for kind in total if kind.startswith(("compressed", "decompressed", *FAULTS))})
    return [*lines, "", "all tensors and faults: " + ", ".join(f"{kind} {kinds[kind]:,}" for kind in sorted(kinds))]


def record(name, counters, keys):
    """Records a soak that ended well: {accelerator: Counter}, and {accelerator: its key}."""
    total = sum(counters.values(), Counter())
    records.renew("soak", {name: {
        "key": keys, "cycles": total["cycles"], "tensors": total["tensors"], "shared": total[SLAVE],
        "faults": {kind: total[kind] for kind in sorted(total) if kind.startswith(FAULTS)},
        "codes": {code: total[f"code {code}"] for code in CODES if total[f"code {code}"]}}})
