"""What a tensor's descriptor and settings have to keep, declared once as data: hardware (tensor_plan.py), the driver,
docs/registers.md and the benches have it from here. Imports nothing but the standard library."""

from collections.abc import Callable
from typing import NamedTuple

__all__ = ["BLOCKS", "CODES", "FORMATS", "LINE", "RANGES", "RULES", "TILE", "WORD", "around", "check", "of_codes",
           "scaled", "scanned", "value_bytes", "violated"]

RANGES = {"rows": (1, 2**31 - 1), "width": (1, 2**24 - 8), "height": (1, 2**24 - 1), "channels": (1, 2**24 - 1)}
"""Least and most of the numbers of a descriptor."""

FORMATS = ("float32", "bfloat16", "float16", "int8")
"""What a value is in memory, by its code."""

CODES = "int8"
"""The one that is no number: what the first stage of a mode, SFPR, has made of values elsewhere."""

TILE = 8  # rows and values in a row of a tile
WORD, HALF, LINE = 4, 2, 32  # bytes: of a float32 value, of one of 16 bits, of what memory has in a beat
BLOCKS = 2**32 - 4  # most of a tensor
_WORDS = 1 << 32  # of a register


class Rule(NamedTuple):
    """What is kept, as a formula and as a function of a descriptor, a mode and the bits of an address; and a function
    of the same that gives changes of a legal descriptor: to what is just legal, and just not, by this rule."""

    name: str  # a register, or what else it is about
    text: str
    keeps: Callable
    beside: Callable
    number: Callable | None = None  # what is limited, of a descriptor and a mode, if it is no register


def scanned(d):
    """Whether the tensor of a descriptor is scanned."""
    return bool(d.get("scan")) and not d.get("decompress")


def of_codes(d):
    """Whether the values of a descriptor are codes."""
    return d.get("format", 0) == FORMATS.index(CODES)


def scaled(d, mode):
    """Whether a table of scales is looked at, or written."""
    return (mode.scaled and not of_codes(d)) or scanned(d)


def value_bytes(d):
    """Bytes of a value, by the descriptor's ``format``, a code; float32 if it lacks."""
    return 1 if of_codes(d) else HALF if d.get("format") else WORD


def _power(number):
    """As a power of two and what it is less than that."""
    bits = number.bit_length()
    return f"2^{bits} - {(1 << bits) - number}"


def _size(d):
    """Bytes from the first one of the tensor to its end."""
    return (d["rows"] - 1) * d["stride"] + value_bytes(d) * d["width"]


def _blocks(d, mode):
    sectors = -(-d["width"] // TILE)
    return -(-d["rows"] // TILE) * sectors if mode.tiled else -(-d["rows"] * sectors // TILE)


def _last(end, multiple, address_width):
    """Addresses around the last one at which ``end`` bytes fit."""
    last = ((1 << address_width) - end) // multiple * multiple
    return [place for place in (0, last - multiple, last, last + multiple) if 0 <= place < 1 << address_width]


def _range(name, text="", tile=False, whole=False):
    """The rule of a number that has a range. ``tile``: a tile has so many of these; ``whole``: whole tiles have to."""
    least, most = RANGES[name]

    def keeps(d, mode, address_width):
        return (least <= d[name] <= most and not (tile and mode.tiled and d[name] < TILE)
                and not (whole and mode.format.whole and d[name] % TILE))

    def beside(d, mode, address_width):
        numbers = {least - 1, least, most, most + 1, _WORDS - 1, TILE - 1, TILE, TILE + 1, TILE + 4, 2 * TILE,
                   most // TILE * TILE}
        size = value_bytes(d)
        stride = lambda n: {"stride": min(max(d["stride"], size * n), _WORDS - WORD)}  # noqa: E731
        return [{name: n} | (stride(n) if name == "width" else {}) for n in sorted(numbers)]

    text = f"{least} to {_power(most)}" + text
    return Rule(name.upper(), text, keeps, beside)


RULES = (
    Rule("format", f"{CODES} only in modes that begin with SFPR, but for those of DIVISION, and without `scan`",
         lambda d, mode, bits: not of_codes(d) or bool(mode.codes and not scanned(d)),
         lambda d, mode, bits: [], lambda d, mode: FORMATS[d["format"]]),
    _range("rows", f"; at least {TILE} in tiled modes; a multiple of {TILE} in modes of whole tiles", True, True),
    _range("width", f"; at least {TILE} in tiled modes", True),
    Rule("STRIDE", f"a multiple of {WORD}, at least {WORD} * `WIDTH`; with 16-bit values {HALF} in place of each "
         f"{WORD}, with {CODES} 1",
         lambda d, mode, bits: d["stride"] % value_bytes(d) == 0 and d["stride"] >= value_bytes(d) * d["width"],
         lambda d, mode, bits: [{"stride": value_bytes(d) * d["width"] + more}
                                for more in (-WORD, -HALF, -1, 0, 1, 2, 3, WORD)]),
    _range("height", f", also in modes without scales; a multiple of {TILE} in modes of whole tiles", whole=True),
    _range("channels", ", also in modes without scales"),
    Rule("BASE", f"a multiple of {WORD}; `BASE` + (`ROWS` - 1) * `STRIDE` + {WORD} * `WIDTH` is at most "
         f"2^`address_width`; with 16-bit values {HALF} in place of each {WORD}, with {CODES} 1",
         lambda d, mode, bits: d["base"] % value_bytes(d) == 0 and 0 <= d["base"] <= (1 << bits) - _size(d),
         lambda d, mode, bits: [{"base": base} for base in (
             *range(1, WORD + 1), *_last(_size(d), value_bytes(d), bits))]),
    Rule("SCALES", f"in modes that scale, but with {CODES}, and with `scan`: a multiple of {LINE}; `SCALES` + {WORD} * "
         "`CHANNELS` is at most 2^`address_width`",
         lambda d, mode, bits: not scaled(d, mode) or "scales" not in d or (
             d["scales"] % LINE == 0 and 0 <= d["scales"] <= (1 << bits) - WORD * d["channels"]),
         lambda d, mode, bits: [{"scales": scales} for scales in (
             1, 2, 4, 8, LINE // 2, LINE, *_last(WORD * d["channels"], LINE, bits))]),
    Rule("blocks", f"at most {_power(BLOCKS)}: in tiled modes ceil(`ROWS` / {TILE}) * ceil(`WIDTH` / {TILE}), else "
         f"ceil(`ROWS` * ceil(`WIDTH` / {TILE}) / {TILE})",
         lambda d, mode, bits: _blocks(d, mode) <= BLOCKS,
         lambda d, mode, bits: [
             {"base": 0, "rows": rows, "width": TILE * tiles, "stride": WORD * TILE * tiles, "height": TILE}
             for tiles, rows in ((15, 2**31 - 8), (16, 2**31 - 32), (16, 2**31 - 24), (16, 2**31 - 8), (17, 2**31 - 8),
                                 (2**18, 2**17), (2**18, 2**17 - 8), (2**18 - 1, 2**17), (2**21 - 1, 16392),
                                 (2**21 - 1, 16384), (2**21 - 1, 16376))], _blocks),
    Rule("images", "a whole number with `scan`: `ROWS` / (`HEIGHT` * `CHANNELS`)",
         lambda d, mode, bits: not scanned(d) or d["rows"] % (d["height"] * d["channels"]) == 0,
         lambda d, mode, bits: [
             {}, {"height": 2 * d["height"]}, {"channels": 2 * d["channels"]}, {"channels": 2**24 - 1},
             {"height": d["rows"], "channels": 1}, {"rows": d["rows"] + TILE}] if scanned(d) else [],
         lambda d, mode: f"{d['rows']} / {d['height'] * d['channels']}"),
    Rule("PAYLOAD", f"a multiple of {LINE}, less than 2^`address_width`; anything with `scan_only`",
         lambda d, mode, bits: "payload" not in d or (scanned(d) and bool(d.get("scan_only"))) or (
             d["payload"] % LINE == 0 and 0 <= d["payload"] < 1 << bits),
         lambda d, mode, bits: [{"payload": d["payload"] ^ other} for other in (0, 1, 2, 4, 8, 16, 31)]
         if "payload" in d else []),
    Rule("PAYLOAD_SIZE", "less than 2^`address_width`, beyond which the register has no bits",
         lambda d, mode, bits: 0 <= d.get("payload_size", 0) < 1 << bits,
         lambda d, mode, bits: []),
)
"""What a descriptor keeps, whatever the codecs. One that keeps all is legal."""


def _setting(setting, descriptor):
    return descriptor["settings"] >> setting.low & (1 << setting.width) - 1


def violated(descriptor, mode, address_width):
    """The name of the first limit that a tensor does not keep, a rule's or a setting's; None if it is legal.

    ``descriptor`` has a number for each register by its name in the map: ``rows``, ``width``, ``stride``, ``height``,
    ``channels``, ``base``, ``decompress``; and ``scales``, ``settings``, ``payload`` and ``payload_size``, which are
    legal if they lack, ``format`` and ``scan``.
    """
    for rule in RULES:
        if not rule.keeps(descriptor, mode, address_width):
            return rule.name
    for setting in mode.settings if "settings" in descriptor else ():
        if setting.broken(_setting(setting, descriptor), bool(descriptor["decompress"])):
            return setting.name
    return None


def check(descriptor, mode, address_width):
    """Raises ValueError unless a tensor is legal, as :func:`violated` says."""
    name = violated(descriptor, mode, address_width)
    if rule := next((rule for rule in RULES if rule.name == name), None):
        value = rule.number(descriptor, mode) if rule.number else descriptor[name.lower()]
        raise ValueError(f"{name} is {value}, must be {rule.text.replace('`', '')}")
    if name:
        setting = next(setting for setting in mode.settings if setting.name == name)
        number = _setting(setting, descriptor)
        text = setting.broken(number, bool(descriptor["decompress"])).text
        raise ValueError(f"setting {name} of mode {mode.name} is {number:#x}, must keep: {text}")


def around(descriptor, mode, address_width):
    """Pairs of a limit's name and a descriptor on one side of it: for every limit such that just keep it, and such that
    just do not, made from a legal ``descriptor``. Which are legal, :func:`violated` says."""
    for rule in RULES:
        for change in rule.beside(descriptor, mode, address_width):
            yield rule.name, descriptor | change
    for setting in mode.settings if "settings" in descriptor else ():
        number = _setting(setting, descriptor)
        for other in setting.around(number):
            yield setting.name, descriptor | {"settings": descriptor["settings"] ^ (number ^ other) << setting.low}
