"""Modes, their settings and the error codes as a C header, which the driver in C is made with."""

from actcodec.codecs import by_code, division, lane_modes
from actcodec.codecs.models import flat
from actcodec.golden.offload import blocks
from actcodec.rtl.offload.control.limits import FORMATS
from actcodec.rtl.offload.control.register_map import (
    DESCRIPTOR,
    ERRORS,
    LANES,
    PAYLOADS,
    REPORT,
    REPORT_BYTES,
    VALUES,
    ErrorCode,
)

__all__ = ["VIEWS", "c_header"]

VIEWS = ("rows", "flat", "planes")
"""How modes see a tensor (docs/integration.md, "Views"): as most do, as values in a row, by DIVISION's planes."""

PROBE = (2, 3, 9, 9)  # a shape that each sees in its own way
FLAGS = {"scaled": lambda mode: mode.scaled, "tiled": lambda mode: mode.tiled, "shifts": lambda mode: mode.shifts,
         "streams": lambda mode: mode.format.endless, "whole": lambda mode: mode.format.whole,
         "codes": lambda mode: bool(mode.codes)}


def _view(mode):
    own = mode.model.view(PROBE)
    if mode.name in division.LANE:
        return "planes"
    return "flat" if own == flat.view(PROBE) else "rows" if own == blocks.view(PROBE) else _unknown(mode)


def _unknown(mode):
    raise ValueError(f"mode {mode.name} sees a tensor in a way that a driver in C does not know")


def _shifts(modes):
    """The default of the first mode that has shifts, 64 numbers."""
    mode, values = by_code(next(mode.code for mode in modes if mode.shifts))
    assert mode is not None  # a mode with shifts has files
    table = mode.model.settings(**mode.option_values(values))["table"]
    width = VALUES["table"].width // 64
    return ", ".join(str(table >> width * k & (1 << width) - 1) for k in range(64))


def _macro(name):
    return name.upper().replace("-", "_")


def c_header():
    """The text, with all modes of the registry that a lane can have."""
    modes = sorted(lane_modes(), key=lambda mode: mode.code)
    codes = {mode.name: mode.code for mode in modes}
    places = {one.name: one for mode in modes for one in mode.settings}
    groups = list(dict.fromkeys(tuple((one.name, one.default) for one in mode.settings) for mode in modes))
    firsts = {group: sum(map(len, groups[:number])) for number, group in enumerate(groups)}
    wide = max(one.bytes for one in places.values())
    table = []
    for mode in modes:
        assert mode.format is not None  # a lane's mode
        first = firsts[tuple((one.name, one.default) for one in mode.settings)]
        flags = " | ".join(f"ACTCODEC_{name.upper()}" for name, holds in FLAGS.items() if holds(mode)) or "0"
        table.append(f'{{"{mode.name}", {mode.code}, {codes[mode.fallback or mode.name]}, '
                     f"ACTCODEC_VIEW_{_view(mode).upper()}, {flags}, {mode.format.row}, {first}, "
                     f"{len(mode.settings)}}}")
    settings = [
        f'{{"{name}", {places[name].low}, {places[name].width}, '
        f"{{{', '.join(f'0x{byte:02x}' for byte in default.to_bytes(places[name].bytes, 'little'))}}}}}"
        for group in groups for name, default in group]
    return "\n".join([
        "/* Modes, settings and error codes of actcodec's accelerator; `make registers` writes this file. */",
        "#ifndef ACTCODEC_MODES_H",
        "#define ACTCODEC_MODES_H",
        "",
        *_defines("Codes of the modes.", ((f"ACTCODEC_MODE_{_macro(mode.name)}", mode.code) for mode in modes)),
        *_defines("Codes in which a tensor ends.", (
            (f"ACTCODEC_ERROR_{code.name}", int(code)) for code in ErrorCode)),
        *_defines("Properties of a mode.", ((f"ACTCODEC_{name.upper()}", 1 << bit) for bit, name in enumerate(FLAGS))),
        *_defines("How a mode sees a tensor.", (
            (f"ACTCODEC_VIEW_{name.upper()}", number) for number, name in enumerate(VIEWS))),
        *_defines("What a value is in memory: its codes, and how many there are.", (
            *((f"ACTCODEC_FORMAT_{name.upper()}", code) for code, name in enumerate(FORMATS)),
            ("ACTCODEC_FORMATS", len(FORMATS)))),
        *_defines("Where payloads of an accelerator pass.", (
            (f"ACTCODEC_PAYLOAD_{name.upper()}", code) for code, name in enumerate(PAYLOADS))),
        *_defines("Settings: first bit, number of bits.", (
            pair for one in places.values() for pair in (
                (f"ACTCODEC_{_macro(one.name)}_LOW", one.low), (f"ACTCODEC_{_macro(one.name)}_WIDTH", one.width)))),
        *_defines("Sizes.", (
            ("ACTCODEC_LANES", LANES), ("ACTCODEC_SETTING_BYTES", wide),
            ("ACTCODEC_SETTINGS_BITS", max(one.low + one.width for one in places.values())))),
        *_defines("Bytes of a descriptor, and of the report at its end; bytes of a report before each of its values.", (
            ("ACTCODEC_DESCRIPTOR_BYTES", len(DESCRIPTOR)), ("ACTCODEC_REPORT_BYTES", REPORT_BYTES),
            *((f"ACTCODEC_REPORT_{name.upper()}", low // 8) for name, (low, _) in REPORT.items()))),
        *_list("Of struct actcodec_mode.", "ACTCODEC_MODE_LIST", table),
        *_list("Of struct actcodec_setting; each mode has some of them, one after another.", "ACTCODEC_SETTING_LIST",
               settings),
        *_list("The DQT of shifts that works for any tensor: log2 of its entries.", "ACTCODEC_SHIFT_LIST",
               [_shifts(modes)]),
        *_list("What error codes mean, in their order.", "ACTCODEC_ERROR_LIST", (
            f'"{ERRORS[code]}"' for code in ErrorCode)),
        "#endif",
        "",
    ])


def _defines(title, pairs):
    return [f"/* {title} */", *(f"#define {name} {number}" for name, number in pairs), ""]


def _list(title, name, rows):
    return [f"/* {title} */", f"#define {name} \\", ", \\\n".join(f"    {row}" for row in rows), ""]
