"""Duplicates the flip-flops that too many cells read, so that no deep tree of buffers stands behind a mode bit."""

__all__ = ["COPIES", "LOADS", "duplicate"]

LOADS = 64  # cells that one copy serves, unless that took more than so many copies:
COPIES = 16


def duplicate(module):
    """Changes a module of Yosys's JSON in place. Neighbours in the list of cells, which the hierarchy has sorted, share
    a copy. Returns how many copies were made."""
    cells, nets = module["cells"], module["netnames"]
    readers = {}  # bit -> [(connections of a cell, port, index)]
    for cell in cells.values():
        for port, bits in cell["connections"].items():
            if cell["port_directions"][port] == "input":
                for index, bit in enumerate(bits):
                    readers.setdefault(bit, []).append((bits, index))
    names = {bit: f"{name}[{index}]" if len(net["bits"]) > 1 else name
             for name, net in reversed(nets.items()) for index, bit in enumerate(net["bits"])}
    # Ports are outputs of the netlist whatever reads them besides.
    fresh = 1 + max((bit for net in nets.values() for bit in net["bits"] if isinstance(bit, int)), default=1)
    made = 0
    for name, cell in list(cells.items()):
        if not cell["type"].startswith("DFF") or not cell["connections"].get("Q"):
            continue
        bit, = cell["connections"]["Q"]
        loads = readers.get(bit, [])
        copies = min(-(-len(loads) // LOADS), COPIES)
        for copy in range(1, copies):
            connections = {port: [fresh] if port == "Q" else list(bits)
                           for port, bits in cell["connections"].items() if port != "QN"}
            cells[f"{name}${copy}"] = {**cell, "connections": connections}
            nets[f"{names[bit]}${copy}"] = {"hide_name": 0, "bits": [fresh], "attributes": {}}
            for bits, index in loads[len(loads) * copy // copies : len(loads) * (copy + 1) // copies]:
                bits[index] = fresh
            fresh, made = fresh + 1, made + 1
    return made
