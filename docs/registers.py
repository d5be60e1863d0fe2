"""Writes docs/registers.md: what the register map and the limits declare, as tables."""

from pathlib import Path

from actcodec.codecs import lane_modes
from actcodec.rtl.offload.control.limits import RULES
from actcodec.rtl.offload.control.register_map import ACCESS, ADDRESS_BITS, ERRORS, MAP, REPORT

__all__ = ["markdown"]

REPORTED = {"status": ": as in the register `STATUS`, with `done`, `error` and `clipped`",
            "number": ": the descriptor's, as in `TAIL`"}

def _bits(field):
    """The bits of a field as text."""
    def span(low):
        return f"{low + field.width - 1}:{low}" if field.width > 1 else str(low)
    ends = [span(field.low), span(field.low + (field.count - 1) * field.step)]
    return ends[0] if field.count == 1 else f"{ends[0]}, ... {ends[1]}"


def _rows(header, rows):
    """A Markdown table."""
    return ["| " + " | ".join(map(str, row)) + " |" for row in (header, ["---"] * len(header), *rows)]


def _default(setting):
    """The default of a setting as text."""
    whole = setting.default.to_bytes(setting.bytes, "little")
    if setting.bytes > 16:
        return f"{setting.bytes} bytes of 0x{whole[0]:02x}"
    return f"0x{setting.default:x}" if setting.default > 9 else str(setting.default)


def _settings(modes):
    """Rows of a table: a setting, its bits, the modes that have it, its meaning, limits and default."""
    rows = {}
    for mode in modes:
        for setting in mode.settings:
            texts = "; ".join(dict.fromkeys(limit.text for limit in setting.limits)) or "any"
            bits = f"{setting.low + setting.width - 1}:{setting.low}" if setting.width > 1 else setting.low
            row = bits, f"`{setting.name}`", setting.meaning, texts, _default(setting)
            rows.setdefault(row, []).append(f"`{mode.name}`")
    names = list(dict.fromkeys(row[1] for row in rows))
    return [(*row[:2], ", ".join(rows[row]), *row[2:]) for row in sorted(rows, key=lambda row: names.index(row[1]))]


def markdown(modes):
    """The page. ``modes`` have ``name``, ``code`` and ``format``, say whether they are ``scaled`` and ``tiled`` and
    take ``shifts``, and list their ``settings``."""
    rows = []
    for register in MAP:
        last = register.offset + 4 * (register.count - 1)
        offset = f"0x{register.offset:02x}" + (f" to 0x{last:02x}" if register.count > 1 else "")
        for k, field in enumerate(register.fields):
            reset = "parameter" if field.reset is None else f"0x{field.reset:x}" if field.reset > 9 else field.reset
            rows.append((*((offset, f"`{register.name}`") if k == 0 else ("", "")), _bits(field), f"`{field.name}`",
                         field.access, reset, field.meaning))
    locked = ", ".join(f"`{register.name}`" for register in MAP if register.locked)
    return "\n".join([
        "# Registers of the accelerator",
        "",
        "Written by `python -m docs.registers` from the declarations in `rtl/offload/control/` (`register_map.py`,",
        "`limits.py` and `setting.py`), which the RTL and the driver also use. The declarations need only Python's",
        "standard library, so the driver runs without Amaranth.",
        "",
        f"AXI4-Lite, 32-bit words, {ADDRESS_BITS} address bits, of which the lowest two are ignored. Byte strobes are",
        "honoured. Values of more than 32 bits have their low word at the lower address. Bits not listed here read 0",
        "and ignore writes; read-only fields ignore writes.",
        "",
        *_rows(("offset", "register", "bits", "field", "access", "reset", "meaning"), rows),
        "",
        *_rows(("access", ""), ((f"`{name}`", meaning) for name, meaning in ACCESS.items())),
        "",
        "## Rules",
        "- Addresses without a register read 0 and ignore writes. The response is SLVERR.",
        "- While `busy` is 1, writes to the following registers have no effect and the response is SLVERR, which",
        f"  protects the running tensor without a second copy in hardware: {locked}.",
        "- Of a memory address only the lower `address_width` bits exist; the others read 0. A write of 1 to one of",
        "  them leaves the whole word unchanged, and the response is SLVERR.",
        "- Counters belong to the last or the current tensor. They are stable once `done` is 1; before that, the words",
        "  of one counter may be from different cycles. After a soft reset they are undefined.",
        "- A soft reset changes neither writable registers nor pending bits.",
        "- The interrupt is high while any pending bit is enabled.",
        "",
        "## A tensor",
        "[integration.md](integration.md#a-tensor) has the order of accesses for a tensor.",
        "",
        "## Reports of a ring",
        "The last 64 bytes of a descriptor after the end of its tensor; bits count from the first of these bytes.",
        "[integration.md](integration.md#a-ring-of-descriptors) has the rest of a descriptor.",
        "",
        *_rows(("bits", "value"), ((f"{low + size - 1}:{low}", f"`{name}`" + REPORTED.get(name, ""))
                                   for name, (low, size) in REPORT.items())),
        "",
        "The second half has `lengths_out` after compression in a mode with streams, otherwise the five values after",
        "it, 0 where their registers do not exist.",
        "",
        "## Limits",
        "A tensor beyond any of these, or beyond the [limits of a setting](#settings), ends in the error DESCRIPTOR.",
        "Nothing is read or written then, and a frame at the stream keeps waiting.",
        "",
        *_rows(("of", "limit"), (
            (f"`{rule.name}`" if rule.name.isupper() else rule.name, rule.text) for rule in RULES)),
        "",
        "In modes with streams, the stream of each lane must be shorter than 2^32 bytes. The hardware does not check",
        "this; no value takes more than 8 bytes.",
        "",
        "## Modes",
        "Tiled modes compress tiles of 8x8 values, all others eight sectors, of 8 values each, in memory order. A",
        "*whole* tile must not span two channels, as it has a single base. Modes that scale read the table at",
        "`SCALES`, those with shifts read `TABLE`. [integration.md](integration.md#views) has the `ROWS`, `WIDTH`,",
        "`HEIGHT` and `CHANNELS` of a tensor.",
        "",
        *_rows(("code", "mode", "tiles", "scales", "shifts", "payload", "settings"), (
            (mode.code, f"`{mode.name}`", "whole" if mode.format.whole else "yes" if mode.tiled else "",
             "yes" if mode.scaled else "", "yes" if mode.shifts else "",
             "streams" if mode.format.endless else "blocks",
             ", ".join(f"`{one.name}`" for one in mode.settings))
            for mode in sorted(modes, key=lambda mode: mode.code))),
        "",
        "## Settings",
        "Bits of `SETTINGS`, counted from bit 0 of its first word; each mode has its own layout. Tables have their",
        "first entry in the lowest bits. A number beyond its limit is refused in both directions, unless the limit",
        "says otherwise. The default works for any tensor;",
        "[integration.md](integration.md#what-software-works-out) has better ones.",
        "",
        *_rows(("bits", "setting", "modes", "meaning", "limit", "default"), _settings(modes)),
        "",
        "## Error codes",
        *_rows(("code", "name", "meaning"), ((int(code), code.name, text) for code, text in ERRORS.items())),
        "",
    ])


if __name__ == "__main__":
    Path(__file__).with_suffix(".md").write_text(markdown(lane_modes()))
