"""Writes docs/registers.md: what the register map and the limits declare, as tables."""

from pathlib import Path

from actcodec.codecs import lane_modes
from actcodec.rtl.offload.control.limits import RULES
from actcodec.rtl.offload.control.register_map import ACCESS, ADDRESS_BITS, ERRORS, MAP

__all__ = ["markdown"]

def _bits(field):
    """The bits of a field as text."""
    def span(low):
        return f"{low + field.width - 1}:{low}" if field.width > 1 else str(low)
    ends = [span(field.low), span(field.low + (field.count - 1) * field.step)]
    return ends[0] if field.count == 1 else f"{ends[0]}, ... {ends[1]}"


def _rows(header, rows):
    """A Markdown table."""
    return ["| " + " | ".join(map(str, row)) + " |" for row in (header, ["---"] * len(header), *rows)]


def _default(told):
    """The default of a setting as text."""
    whole = told.default.to_bytes(told.bytes, "little")
    if told.bytes > 16:
        return f"{told.bytes} bytes of 0x{whole[0]:02x}"
    return f"0x{told.default:x}" if told.default > 9 else str(told.default)


def _settings(modes):
    """Rows of a table: a setting, its bits, the modes that are told it, and what it says, keeps and may be."""
    rows = {}
    for mode in modes:
        for told in mode.settings:
            texts = "; ".join(dict.fromkeys(limit.text for limit in told.limits)) or "any"
            bits = f"{told.low + told.width - 1}:{told.low}" if told.width > 1 else told.low
            row = bits, f"`{told.name}`", told.meaning, texts, _default(told)
            rows.setdefault(row, []).append(f"`{mode.name}`")
    names = list(dict.fromkeys(row[1] for row in rows))
    return [(*row[:2], ", ".join(rows[row]), *row[2:]) for row in sorted(rows, key=lambda row: names.index(row[1]))]


def markdown(modes):
    """The page. ``modes`` have ``name``, ``code`` and ``format``, say whether they are ``scaled`` and ``tiled`` and
    take ``shifts``, and what they are ``told``."""
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
        "`limits.py` and `setting.py`), from which the RTL and the driver come as well. They need nothing but Python's",
        "standard library, so a host runs the driver without Amaranth.",
        "",
        f"AXI4-Lite, 32-bit words, {ADDRESS_BITS} address bits, of which the lowest two do not count. Byte strobes are",
        "honoured. A value of more than 32 bits begins in the word with the lowest address. Bits that are not named",
        "here read 0 and ignore writes, and so do read-only fields.",
        "",
        *_rows(("offset", "register", "bits", "field", "access", "reset", "meaning"), rows),
        "",
        *_rows(("access", ""), ((f"`{name}`", meaning) for name, meaning in ACCESS.items())),
        "",
        "## Rules",
        "- Addresses without a register read 0 and ignore writes. The answer is SLVERR.",
        "- While `busy` is 1, writes to the following have no effect and the answer is SLVERR, so that the running",
        f"  tensor cannot be disturbed and the hardware needs no second copy: {locked}.",
        "- Of an address in memory only the lower `address_width` bits exist; the others read 0. Writing 1 to one of",
        "  them has no effect, on the rest of the word neither, and the answer is SLVERR.",
        "- Counters are those of the last tensor, or of the one under way. They stand still once `done` is 1; before",
        "  that, the words of one counter may be of different moments. After a soft reset they mean nothing.",
        "- A soft reset changes no register that can be written, nor what is pending.",
        "- The interrupt is high while anything pending is enabled.",
        "",
        "## A tensor",
        "1. Check `magic` and `major`; look up `modes`, `cdus` and `address_width`.",
        "2. Write the scale table into memory, if the [mode](#modes) scales, and the descriptor, the mode, `TABLE` and",
        "   the mode's [settings](#settings), as far as it has them, into the registers.",
        "3. Clear what is pending, write `start`.",
        "4. Wait for `done`, by the interrupt or by reading `STATUS`. Then `error` says whether it went well.",
        "5. Compressing, `bytes_out` is the true length of the payload. In modes that have streams, `lengths_out` are",
        "   to be kept, and written as `lengths_in` to decompress.",
        "",
        "## Limits",
        "A tensor beyond any of these, or beyond the [limits of a setting](#settings), ends in the error DESCRIPTOR.",
        "Nothing has been read or written then, and a frame that waits at the stream waits on.",
        "",
        *_rows(("of", "limit"), (
            (f"`{rule.name}`" if rule.name.isupper() else rule.name, rule.text) for rule in RULES)),
        "",
        "In modes that have streams, that of each lane has to be shorter than 2^32 bytes. Nothing checks this; no",
        "value takes more than 8 bytes.",
        "",
        "## Modes",
        "Modes of tiles compress 8x8 values together; all others take eight sectors, of 8 values each, in the order of",
        "memory. A whole tile has one base, so it must not lie in two channels. Modes that scale read the table at",
        "`SCALES`, those with shifts `TABLE`. [integration.md](integration.md#views) says which `ROWS`,",
        "`WIDTH`, `HEIGHT` and `CHANNELS` a tensor has.",
        "",
        *_rows(("code", "mode", "tiles", "scales", "shifts", "payload", "settings"), (
            (mode.code, f"`{mode.name}`", "whole" if mode.format.whole else "yes" if mode.tiled else "",
             "yes" if mode.scaled else "", "yes" if mode.shifts else "",
             "streams" if mode.format.endless else "blocks", ", ".join(f"`{told.name}`" for told in mode.settings))
            for mode in sorted(modes, key=lambda mode: mode.code))),
        "",
        "## Settings",
        "Bits of `SETTINGS`, counted from bit 0 of its first word; each mode has its own there. Tables have their",
        "first entry in the lowest bits. A number beyond its limit is refused in both directions, unless the limit",
        "says otherwise. The default works for any tensor;",
        "[integration.md](integration.md#what-software-works-out) says how to find a better one.",
        "",
        *_rows(("bits", "setting", "modes", "meaning", "limit", "default"), _settings(modes)),
        "",
        "## Error codes",
        *_rows(("code", "name", "meaning"), ((int(code), code.name, text) for code, text in ERRORS.items())),
        "",
    ])


if __name__ == "__main__":
    Path(__file__).with_suffix(".md").write_text(markdown(lane_modes()))
