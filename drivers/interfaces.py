"""The buses of an accelerator, from the ports of its Verilog."""

import re
from dataclasses import dataclass

__all__ = ["BUSES", "Interface", "Port", "interfaces", "ports"]

PORT = re.compile(r"^ *(input|output) (?:\[(\d+):0\] )?(\w+);$", re.MULTILINE)
BUSES = {"s_axil": ("AXI4Lite", "slave"), "m_axi": ("AXI4", "master"), "s_axis": ("AXI4Stream", "slave"),
         "m_axis": ("AXI4Stream", "master")}
"""{what the name of a port begins with: (the bus that it belongs to, which side of it)}."""


@dataclass(frozen=True)
class Port:
    """A port of the top module."""

    name: str
    direction: str  # input or output
    width: int


@dataclass(frozen=True)
class Interface:
    """A bus of the top module. ``wires``: {name in the bus's standard: port}."""

    name: str
    bus: str  # AXI4, AXI4Lite or AXI4Stream
    side: str  # master or slave
    wires: dict


def ports(verilog, name):
    """The ports of the module ``name`` of a text that Yosys wrote, by name.

    Raises
    ------
    ValueError
        If the text has no such module.
    """
    match = re.search(rf"^module {re.escape(name)}\(.*?^endmodule", verilog, re.MULTILINE | re.DOTALL)
    if match is None:
        raise ValueError(f"name {name!r}: the Verilog has no module of that name")
    return sorted((Port(port, direction, int(high or 0) + 1) for direction, high, port in PORT.findall(match[0])),
                  key=lambda port: port.name)


def interfaces(ports):
    """The buses that ports belong to, and the ports that belong to none."""
    buses: dict[str, Interface] = {}
    others: list[Port] = []
    for port in ports:
        name, _, wire = port.name.rpartition("_")
        kind = name if name in BUSES else re.sub("_(\\d+|[a-z]+)$", "", name)
        if kind in BUSES:
            buses.setdefault(name, Interface(name, *BUSES[kind], {})).wires[wire.upper()] = port
        else:
            others.append(port)
    return list(buses.values()), others
