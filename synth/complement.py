"""What the second output of flip-flops saves: inverters at their outputs and inputs.

ABC sees no flip-flops, hence not that the complement of each comes for nothing, nor that one may as well keep the
complement of what the RTL says.
"""

__all__ = ["complement"]

READERS = 12  # that an output of a flip-flop may have to take over an inverter's
INVERTED = {"INV": None} | {f"{kind}{inputs}": f"N{kind}{inputs}" for kind in ("AND", "OR") for inputs in (2, 3, 4)}


class _Netlist:
    """A mapped module of Yosys's JSON, and who reads what."""

    def __init__(self, module):
        self.cells, self.readers, self.driver = module["cells"], {}, {}
        self.ports = {bit for port in module["ports"].values() if port["direction"] == "output" for bit in port["bits"]}
        for name, cell in self.cells.items():
            for pin, bits in cell["connections"].items():
                for bit in bits:
                    if cell["port_directions"][pin] == "input":
                        self.readers.setdefault(bit, []).append((name, pin))
                    else:
                        self.driver[bit] = name

    def remove(self, inverter):
        """Returns the pins that it has had."""
        pins = self.cells.pop(inverter)["connections"]
        self.readers[pins["A"][0]].remove((inverter, "A"))
        return pins

    def bypass(self, inverter, bit):
        """All readers of the inverter read ``bit`` instead."""
        old, = self.remove(inverter)["ZN"]
        loads = self.readers.pop(old, [])
        for name, pin in loads:
            pins = self.cells[name]["connections"]
            pins[pin] = [bit if one == old else one for one in pins[pin]]  # those of a module may be several
        self.readers.setdefault(bit, []).extend(loads)

    def before(self):
        """A gate that nothing but flip-flops takes leaves its inverter out, and they keep the complement."""
        for bit, name in self.driver.items():
            kind, _, size = self.cells[name]["type"].rpartition("_") if name in self.cells else ("", "", "")
            loads = self.readers.get(bit, [])
            if kind not in INVERTED or bit in self.ports or not loads or any(pin != "D" for _, pin in loads):
                continue
            for flop in [self.cells[name] for name, _ in loads]:
                pins = flop["connections"]
                pins["Q"], pins["QN"] = pins.get("QN", []), pins.get("Q", [])
                flop["port_directions"] |= {"Q": "output", "QN": "output"}
            if INVERTED[kind]:
                self.cells[name]["type"] = f"{INVERTED[kind]}_{size}"
            else:
                self.bypass(name, self.cells[name]["connections"]["A"][0])

    def behind(self, flop, pin, other):
        """The flip-flop's pin ``other`` takes the place of inverters of ``pin``."""
        pins = flop["connections"]
        for name, _ in list(self.readers.get((pins.get(pin) or [None])[0], ())):
            if not self.cells[name]["type"].startswith("INV"):
                continue
            bit, = self.cells[name]["connections"]["ZN"]
            drives, = pins.get(other) or [None]
            if bit in self.ports or len(self.readers.get(bit, ())) + len(self.readers.get(drives, ())) > READERS:
                continue
            if drives is None:  # takes the wire
                pins[other] = self.remove(name)["ZN"]
                flop["port_directions"][other] = "output"
            else:
                self.bypass(name, drives)


def complement(module):
    """Removes inverters at the flip-flops of a mapped module of Yosys's JSON; returns how many."""
    netlist = _Netlist(module)
    count = len(netlist.cells)
    netlist.before()
    for flop in list(netlist.cells.values()):
        if flop["type"].startswith("DFF"):
            netlist.behind(flop, "Q", "QN")
            netlist.behind(flop, "QN", "Q")
    return count - len(netlist.cells)
