"""From a component to Verilog."""

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["flat", "module", "modules", "netlist", "rare_collection", "verilog"]


@contextmanager
def rare_collection() -> Iterator[None]:
    """While this is open, Python looks for garbage rarely. Elaboration makes millions of objects that live until its
    end; half of its time would go into looking through them again and again."""
    before = gc.get_threshold()
    gc.set_threshold(100_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)


@rare_collection()
def module(component: Any, name: str, target: str = "cells") -> tuple[str, dict[str, Any]]:
    """The Verilog of a component as the module ``name``, made for a target (:mod:`actcodec.rtl.common.target`); and, by
    the names of their modules, the components that it has several of and calls shared, which are left out."""
    from amaranth.back.verilog import convert

    from actcodec.rtl.common import axi
    from actcodec.rtl.common.shared_module import Parts

    # The default would prefer whatever Yosys happens to be installed, and its version shows in the text.
    os.environ.setdefault("AMARANTH_USE_YOSYS", "builtin")
    parts = Parts(f"{name}_", target)
    text = convert(component, name=name, platform=parts, emit_src=False, strip_internal_attrs=True)
    asks = getattr(component, "memory", None) == "independent"
    head = f"// Made for independent memory: {axi.CONDITION}.\n" if asks else ""
    return head + text, parts.components


def modules(component: Any, name: str, target: str = "cells") -> dict[str, str]:
    """The Verilog of a component by its modules' names: itself first, then each part that it has several of, once."""
    text, parts = module(component, name, target)
    return {name: text} | {other: text for part in parts for other, text in modules(parts[part], part, target).items()}


@rare_collection()
def netlist(component: Any, name: str, target: str = "cells") -> tuple[str, dict[str, str]]:
    """The same as RTLIL, with the RTLIL of what is left out."""
    from amaranth.back import rtlil

    from actcodec.rtl.common.shared_module import Parts

    parts = Parts(f"{name}_", target)
    text = rtlil.convert(component, name=name, platform=parts, emit_src=False)
    return text, {part: netlist(one, part, target)[0] for part, one in parts.components.items()}


def verilog(component: Any, name: str, target: str = "cells") -> str:
    """The Verilog of a component as a string. The module is called ``name``; a stream ``i`` becomes ``i__payload``,
    ``i__valid`` and ``i__ready``. What the component has several of and calls shared is written once, as a module
    ``name_part``. What the design asks of its surroundings stands at the top."""
    return "".join(modules(component, name, target).values())


@rare_collection()
def flat(component: Any, name: str, target: str = "cells") -> str:
    """The same, all of it merged into one module."""
    from amaranth._toolchain.yosys import find_yosys
    from amaranth.back import rtlil

    from actcodec.rtl.common.target import Target

    text = rtlil.convert(component, name=name, platform=Target(target), emit_src=False)
    script = f"read_rtlil <<rtlil\n{text}\nrtlil\nproc -norom\nflatten\nwrite_verilog -noattr\n"
    return find_yosys(lambda version: version >= (0, 40)).run(["-q", "-"], script)
