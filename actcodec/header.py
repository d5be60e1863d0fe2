"""What stands at the top of the Verilog that is taken away, and what names its modules can have."""

import re
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from actcodec.rtl.common.target import TARGETS

__all__ = ["RESERVED", "check_name", "command", "header", "written"]

# A module called like one of these is a syntax error.
WORDS = """
    always and assign automatic begin buf bufif0 bufif1 case casex casez cell cmos config deassign default
    defparam design disable edge else end endcase endconfig endfunction endgenerate endmodule endprimitive
    endspecify endtable endtask event for force forever fork function generate genvar highz0 highz1 if ifnone
    incdir include initial inout input instance integer join large liblist library localparam macromodule medium
    module nand negedge nmos nor noshowcancelled not notif0 notif1 or output parameter pmos posedge primitive
    pull0 pull1 pulldown pullup pulsestyle_onevent pulsestyle_ondetect rcmos real realtime reg release repeat
    rnmos rpmos rtran rtranif0 rtranif1 scalared showcancelled signed small specify specparam strong0 strong1
    supply0 supply1 table task time tran tranif0 tranif1 tri tri0 tri1 triand trior trireg unsigned use vectored
    wait wand weak0 weak1 while wire wor xnor xor logic bit byte int class interface package program property
    sequence
"""
RESERVED = frozenset(WORDS.split())


def check_name(name: str) -> str:
    """``name`` if a module can be called so. Raises ValueError otherwise."""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or name in RESERVED:
        raise ValueError(f"name is {name!r}, legal are Verilog's identifiers: letters, digits and _, no digit first, "
                         "no word of the language")
    return name


def written(value: object) -> str:
    """A parameter as one types it."""
    if not isinstance(value, tuple):
        return str(value)
    return ",".join(map(str, value))


def command(unit: str, name: str, parameters: Mapping[str, Any], target: str = TARGETS[0]) -> str:
    """The command that makes a unit with these parameters for a target."""
    words = ["actcodec verilog", unit]
    for key, value in parameters.items():
        option = key.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{option}" if value else f"--no-{option}")
        else:
            words.append(f"--{option} {written(value)}")
    words += [f"--name {name}"] if name != unit else []
    return " ".join([*words, *([f"--target {target}"] if target != TARGETS[0] else [])])


def header(unit: str, summary: str, name: str, parameters: Mapping[str, Any], target: str = TARGETS[0]) -> str:
    """Comments: licence, version, unit, parameters, and the command."""
    try:
        release = version("actcodec")
    except PackageNotFoundError:  # the sources alone
        release = "(not installed)"
    values = ", ".join(f"{key} {written(value)}" for key, value in parameters.items()) or "none"
    return "".join(f"// {line}\n" for line in (
        f"{name}: {summary}", "Copyright (c) 2026, the actcodec authors", "SPDX-License-Identifier: BSD-2-Clause",
        f"Made by actcodec {release} from unit {unit}; parameters: {values}",
        f"  {command(unit, name, parameters, target)}"))
