"""Registers around an ECP5's multipliers become those within, which Yosys 0.70 leaves unused.

From a register through a multiplier to a register is the slowest path of what uses one: with the wires to and from it
10 ns. ``MULT18X18D`` has registers for its operands and its product, with a clock enable.
"""

import json
from collections import defaultdict

__all__ = ["absorb", "absorbed"]


def absorb(path):
    """Changes a netlist of Yosys, a file of JSON, and returns how many registers are gone."""
    netlist = json.loads(path.read_text())
    number = sum(absorbed(module) for module in netlist["modules"].values())
    path.write_text(json.dumps(netlist))
    return number


def absorbed(module):
    """Changes a module of such a netlist, and returns how many registers are gone.

    All registers of a product, or of both operands, have to have the same clock and enable, those of a product no other
    reader, and none a reset. Registers of operands that others read stay, for these. Within, registers wake up as
    zeros, so those that do not are left as they are.
    """
    cells = module["cells"]
    before, multipliers = len(cells), [cell for cell in cells.values() if cell["type"] == "MULT18X18D"]

    _, loads = _ends(module)
    for cell in multipliers:
        products = {port: loads[bits[0]] for port, bits in cell["connections"].items()
                    if port[0] == "P" and bits and loads[bits[0]]}
        if all(len(pins) == 1 and pins[0][1] == "DI" for pins in products.values()):
            names = {port: pins[0][0] for port, pins in products.items()}
            if _absorb(cell, {port: cells[name] for port, name in names.items()}, "Q", "REG_OUTPUT"):
                for name in names.values():
                    del cells[name]

    drivers, _ = _ends(module)
    for cell in multipliers:
        operands = {port: bits[0] for port, bits in cell["connections"].items() if port[0] in "AB"}
        # A constant gets a register, too. That wakes up as 0, which makes no difference if the other operand does.
        if len({port[0] for port, bit in operands.items() if bit == "1"}) < 2:
            _absorb(cell, {port: cells.get(drivers.get(bit)) for port, bit in operands.items() if isinstance(bit, int)},
                    "DI", "REG_INPUTA", "REG_INPUTB")

    _, loads = _ends(module)
    for name in [name for name, cell in cells.items() if _clocked(cell) and not loads[cell["connections"]["Q"][0]]]:
        del cells[name]
    return before - len(cells)


def _ends(module):
    """The name of the cell that drives each bit, and the cells, with their ports, that each bit goes to."""
    drivers, loads = {}, defaultdict(list)
    for name, cell in module["cells"].items():
        for port, bits in cell["connections"].items():
            if cell["port_directions"][port] == "output":
                drivers |= dict.fromkeys(bits, name)
            else:
                for bit in bits:
                    loads[bit].append((name, port))
    for port in module["ports"].values():
        for bit in port["bits"]:
            loads[bit].append((None, None))
    return drivers, loads


def _clocked(cell):
    """Clock and enable of a register that can be one of a multiplier, or None."""
    if cell is None or cell["type"] != "TRELLIS_FF":
        return None
    parameters, pins = cell["parameters"], cell["connections"]
    enables = {"1 ": ["1"], "CE": pins.get("CE")}
    plain = parameters["CLKMUX"] == "CLK" and parameters["REGSET"] == "RESET" and pins.get("LSR", ["0"]) == ["0"]
    return (pins["CLK"], enables[parameters["CEMUX"]]) if plain and parameters["CEMUX"] in enables else None


def _absorb(cell, registers, side, *names):
    """Lets a multiplier's ports take the place of {port: register}, and what is at one ``side`` of these come to them,
    if the multiplier's registers can be these; returns whether they can."""
    controls = [_clocked(register) for register in registers.values()]
    pins = cell["connections"]
    control = controls[0] if controls else None
    if control is None or any(other != control for other in controls) or pins.get("CLK0", control[0]) != control[0] \
            or pins.get("CE0", control[1]) != control[1]:
        return False
    cell["parameters"] |= {f"{name}_CLK": "CLK0" for name in names}
    pins |= {"CLK0": control[0], "CE0": control[1], "RST0": ["0"]}
    pins |= {port: register["connections"][side] for port, register in registers.items()}
    cell["port_directions"] |= dict.fromkeys(("CLK0", "CE0", "RST0"), "input")
    return True
