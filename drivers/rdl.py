"""The registers as SystemRDL 2.0: the text, from the map's declaration, the modes and their settings.

An instance has parameters there as it has in hardware: ``CDUS``, ``MODES`` (a bit for each code), ``ADDRESS_WIDTH``,
``FORMATS`` (a bit for each format but float32), ``PAYLOADS``, ``SCANS``, ``QUEUES``. Registers and fields that only
some modes bring are present as ``MODES`` says, the format as ``FORMATS``, places of payloads as ``PAYLOADS``, what a
scan and a queue have as ``SCANS`` and ``QUEUES`` say; arrays of a word per lane have ``CDUS`` of them, SETTINGS the
words that the modes use. By default everything is there.

Modes share the bits of SETTINGS, so a layout of them is an address map of its own at the same addresses, one for all
modes that have one of its settings; the register map itself has them as words.
"""

from actcodec.codecs import Mode, lane_modes
from actcodec.rtl.offload.control import setting
from actcodec.rtl.offload.control.limits import FORMATS
from actcodec.rtl.offload.control.register_map import ERRORS, LANES, MAP, PAYLOAD, QUEUE, SCAN, STREAMS, ErrorCode

__all__ = ["TOP", "formats_mask", "layouts", "mask", "parameters", "systemrdl"]

TOP = "actcodec"
WORD = 32
ACCESS = {
    "fixed": "sw = r; hw = na;",
    "ro": "sw = r; hw = w;",
    "rw": "sw = rw; hw = r;",
    "w1c": "sw = rw; hw = r; onwrite = woclr; hwset; precedence = hw;",
    "pulse": "sw = w; hw = r; singlepulse;",
}
ENCODED = {"mode": "mode_e", "error": "error_e"}


def mask(modes):
    """Bits of the register MODES."""
    return sum(1 << mode.code for mode in modes)


def formats_mask(names):
    """Bits of the field ``formats``: which formats there are besides the first. Raises ValueError for no format."""
    for name in names:
        if name not in FORMATS:
            raise ValueError(f"formats must be any of {', '.join(FORMATS)}, not {name!r}")
    return sum(1 << FORMATS.index(name) - 1 for name in {*names} - {FORMATS[0]})


def parameters(modes):
    """The values of the map that are parameters of an instance, and what they are where everything is there."""
    known = {"cdus": LANES, "modes": mask(modes), "address_width": 64, "payloads": 2}
    return {field.name: known.get(field.name, (1 << field.width) - 1) for register in MAP for field in register.fields
            if field.reset is None}


def layouts(modes):
    """What modes have in SETTINGS: {name of a layout: {name of a setting: those that modes declare}}. Settings of one
    mode are in one layout, which has the name of its first setting."""
    groups: list[set[str]] = []
    for mode in modes:
        names = {one.name for one in mode.settings}
        joined = [group for group in groups if names & group]
        groups = [group for group in groups if group not in joined]
        groups += [names.union(*joined)] if names else []
    declared: dict[str, list[setting.Setting]] = {}
    for one in sorted((one for mode in modes for one in mode.settings), key=lambda one: one.low):
        declared.setdefault(one.name, []).append(one)
    places = [[name for name in declared if name in group] for group in groups]
    return {names[0]: {name: declared[name] for name in names} for names in _apart(places, declared)}


def _apart(groups, declared):
    """The same groups of names, without settings that overlap: of modes that have one of several coders."""
    for names in groups:
        while names:
            layout, end = [], 0
            for name in names:
                if declared[name][0].low >= end:
                    layout.append(name)
                    end = declared[name][0].low + declared[name][0].width
            yield layout
            names = [name for name in names if name not in layout]


def systemrdl():
    """The text, with all modes of the registry that a lane can have."""
    modes = sorted(lane_modes(), key=lambda mode: mode.code)
    lines = [
        "// The registers of actcodec's accelerator, as docs/registers.md describes them.",
        "property locked { component = reg; type = boolean; default = false; };  // not written while a tensor is"
        " under way",
        "",
        *_enum("error_e", 4, ((code.name, int(code), code.name, ERRORS[code]) for code in ErrorCode)),
        *_enum("mode_e", 8, ((mode.name.replace("-", "_"), mode.code, mode.name, _modes_text(mode)) for mode in modes)),
        f"addrmap {TOP} #(",
        ",\n".join(f"    longint unsigned {name.upper()} = 64'h{most:x}" for name, most in parameters(modes).items()),
        ") {",
        '    name = "Registers of the accelerator"; desc = "AXI4-Lite, words of 32 bits.";',
        "    default regwidth = 32; default accesswidth = 32; addressing = compact; littleendian; lsb0;",
        "",
    ]
    for register in MAP:
        lines += _register(register, modes)
    lines += ["};", ""]
    for name, settings in layouts(modes).items():
        lines += _layout(name, settings, modes)
    return "\n".join(lines)


def _enum(name, width, entries):
    rows = (f"    {key} = {width}'d{number} {{ name = {_quoted(title)}; desc = {_quoted(text)}; }};"
            for key, number, title, text in entries)
    return [f"enum {name} {{", *rows, "};", ""]


def _quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _modes_text(mode):
    settings = ", ".join(one.name for one in mode.settings)
    return "; ".join(text for text in (
        "tiles" if mode.tiled else "sectors in memory order", "scales" if mode.scaled else "",
        "shifts in TABLE" if mode.shifts else "", "streams" if mode.format.endless else "blocks",
        f"settings {settings}" if settings else "") if text)


def _present(name, modes):
    """An expression: whether the modes bring a value. Those that all instances have have none."""
    if name in STREAMS:
        return f"(MODES & 64'h{mask(mode for mode in modes if mode.format.endless):x}) != 0"
    if name == "format":
        return "FORMATS != 0"
    if name == "clipped":
        return f"(MODES & 64'h{mask(mode for mode in modes if mode.format.segmented):x}) != 0"
    for count, *values in (PAYLOAD, SCAN, QUEUE):
        if name in values:
            return f"{count.upper()} != 0"
    if name == "payload_memory":
        return "PAYLOADS == 2"
    return "(" + _settings_words(modes) + ") != 0" if name == "settings" else ""


def _settings_words(modes):
    """An expression: the words of SETTINGS that there are."""
    words: dict[int, list[Mode]] = {}
    for mode in modes:
        if mode.settings:
            words.setdefault(-(-setting.width([mode]) // WORD), []).append(mode)
    text = "0"
    for count in sorted(words):
        text = f"(MODES & 64'h{mask(words[count]):x}) != 0 ? {count} : {text}"
    return text


def _count(register, modes):
    """An expression: words of a register that has several."""
    name = register.fields[0].name
    if name == "settings":
        words = _settings_words(modes)
        return f"({words}) != 0 ? ({words}) : 1"
    return "CDUS" if name.startswith("lengths") else str(register.count)


def _reset(field, word):
    if field.reset is not None:
        return f"{field.width}'h{field.reset >> WORD * word & (1 << field.width) - 1:x}"
    return f"({field.name.upper()} >> {WORD * word}) & 64'h{(1 << field.width) - 1:x}"


def _register(register, modes):
    """Its words, as an array unless they have resets of their own."""
    several = register.count > 1 and register.fields[0].reset is None
    for word in range(register.count if several else 1):
        array = register.count > 1 and not several
        yield "    reg {"
        yield f"        name = {_quoted(register.name)}; locked = {str(register.locked).lower()};"
        if condition := _present(register.fields[0].name, modes) if len({
                _present(field.name, modes) for field in register.fields}) == 1 else "":
            yield f"        ispresent = {condition};"
        for field in register.fields:
            for k in range(field.count):
                low = field.low + k * field.step
                name = field.name + (str(k) if field.count > 1 else "")
                own = "" if condition else _present(field.name, modes)
                yield (f"        field {{ {ACCESS[field.access]} desc = {_quoted(field.meaning)};"
                       + (f" encode = {ENCODED[field.name]};" if field.name in ENCODED else "")
                       + (f" ispresent = {own};" if own else "")
                       + f" }} \\{name}[{low + field.width - 1}:{low}] = {_reset(field, word)};")
        name = register.name + (str(word) if several else "")
        size = f"[{_count(register, modes)}]" if array else ""
        yield f"    }} {name}{size} @ 0x{register.offset + 4 * word:x}" + (" += 4;" if array else ";")


def _layout(name, settings, modes):
    """An address map: settings in the words of SETTINGS, each in as many fields of its name as it has words."""
    base = next(register.offset for register in MAP if register.name == "SETTINGS")
    users = ", ".join(mode.name for mode in modes if {one.name for one in mode.settings} & set(settings))
    yield f"addrmap settings_{name} {{"
    yield f'    name = "SETTINGS: {", ".join(settings)}"; desc = "Modes {users}";'
    yield "    default regwidth = 32; default accesswidth = 32; addressing = compact; littleendian; lsb0;"
    words: dict[int, list[str]] = {}
    for declared in settings.values():
        one = declared[0]
        for at in range(one.low // WORD, -(-(one.low + one.width) // WORD)):
            low, high = max(one.low, WORD * at), min(one.low + one.width, WORD * at + WORD)
            limits = "; ".join(dict.fromkeys(limit.text for each in declared for limit in each.limits))
            text = one.meaning + (f". Legal: {limits}" if limits else "")
            words.setdefault(at, []).append(
                f"        field {{ sw = rw; hw = r; desc = {_quoted(text)}; }} "
                f"\\{one.name}[{high - 1 - WORD * at}:{low - WORD * at}] = 0;")
    for at, fields in words.items():
        yield f"    reg {{\n        name = {_quoted(f'SETTINGS[{at}]')}; locked = true;"
        yield from fields
        yield f"    }} SETTINGS{at} @ 0x{base + 4 * at:x};"
    yield "};"
    yield ""
