"""Units of which a design has several: one Verilog module for all of them."""

from amaranth.hdl import ClockSignal, Instance, Module, ResetSignal
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from actcodec.rtl.common.target import TARGETS, Target

__all__ = ["Parts", "shared"]

# Verilator compiles such a module on its own, and then calls C++ variables like its ports.
RESERVED = {
    "abort", "assert", "bit", "break", "byte", "case", "char", "class", "config", "const", "continue", "default",
    "delete", "do", "end", "enum", "event", "export", "final", "float", "for", "goto", "if", "input", "int",
    "interrupt", "long", "new", "operator", "output", "priority", "private", "public", "register", "return", "short",
    "signed", "static", "struct", "switch", "table", "task", "this", "type", "union", "unsigned", "void",
    "wait", "wire",
}


class Parts(Target):
    """A platform for Amaranth: what :func:`shared` makes is left out of a design that is elaborated for it.

    ``components`` are these, by the names of the modules that the design expects for them, all with ``prefix``.
    """

    def __init__(self, prefix, target=TARGETS[0]):
        super().__init__(target)
        self.prefix, self.components = prefix, {}


def shared(platform, name, build):
    """What ``build()`` returns, or, for the platform :class:`Parts`, an instance of a module called after ``name`` with
    its ports.

    Amaranth writes a module for each submodule, even where they are alike. For units as large as a lane of the
    accelerator, one text is easier to read, and takes a simulator or a synthesis tool a fraction of the time.
    ``name`` stands for the class and its parameters: the same name, the same hardware. Raises ValueError for that
    platform if a port is called like a word of Verilog or C++.
    """
    if not isinstance(platform, Parts):
        return build()
    module, components = platform.prefix + name, platform.components
    if module not in components:
        component = components[module] = build()
        if reserved := RESERVED.intersection(component.signature.members):
            raise ValueError(f"ports of {name} must not be words of Verilog or C++: {', '.join(sorted(reserved))}")
    return _Instance(module, components[module].signature)


class _Instance(wiring.Component):
    def __init__(self, name, signature):
        self.name = name
        super().__init__(signature)

    def elaborate(self, platform):
        m = Module()
        ports = {"i_clk": ClockSignal(), "i_rst": ResetSignal()}
        for path, member, value in self.signature.flatten(self):
            ports[("i_" if member.flow is In else "o_") + "__".join(map(str, path))] = value
        m.submodules.instance = Instance(self.name, **ports)
        return m
