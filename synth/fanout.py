"""High fan-out that ABC does not see, at the inputs of flip-flops and on gated clocks, or that it turns into chains of
buffers, at their outputs."""

__all__ = ["CLOCKED", "COPIES", "LOADS", "PINS", "buffer", "duplicate", "gate"]

LOADS = 72  # cells that one copy of a flip-flop serves, unless that took more than so many copies:
COPIES = 64
MANY, LOADS_OF_MANY = 8000, 48  # among so many flip-flops fewer
CLOCKED = 64  # flip-flops that one clock gate serves
PINS = 8  # of flip-flops that a gate can drive by itself
BUFFERS = {16: "BUF_X4", 32: "BUF_X8"}  # and what a buffer can


def _readers(module):
    """Who reads each bit: [(cell, list of bits, index in it)]."""
    readers = {}
    for cell in module["cells"].values():
        for port, bits in cell["connections"].items():
            if cell["port_directions"][port] == "input":
                for index, bit in enumerate(bits):
                    readers.setdefault(bit, []).append((cell, bits, index))
    return readers


def _groups(loads, count):
    """Divides a list into ``count`` parts of about the same length. Neighbours, which the hierarchy has sorted, stay
    together."""
    return [loads[len(loads) * k // count : len(loads) * (k + 1) // count] for k in range(count)]


def _fresh(module):
    """The first number that no bit has."""
    return 1 + max((bit for net in module["netnames"].values() for bit in net["bits"] if type(bit) is int), default=1)


def duplicate(module):
    """Gives a flip-flop that many cells read copies, in a module of Yosys's JSON; returns how many were made."""
    cells, nets = module["cells"], module["netnames"]
    readers, fresh = _readers(module), _fresh(module)
    names = {bit: f"{name}[{index}]" if len(net["bits"]) > 1 else name
             for name, net in reversed(nets.items()) for index, bit in enumerate(net["bits"])}
    flops = [(name, cell) for name, cell in cells.items() if cell["type"].startswith("DFF")]
    most, count = LOADS if len(flops) < MANY else LOADS_OF_MANY, 0
    for name, cell in flops:
        if not cell["connections"].get("Q"):
            continue
        bit, = cell["connections"]["Q"]
        loads = readers.get(bit, [])
        groups = _groups(loads, max(min(-(-len(loads) // most), COPIES), 1))
        for copy, group in enumerate(groups[1:], 1):
            connections = {port: [fresh] if port == "Q" else list(bits)
                           for port, bits in cell["connections"].items() if port != "QN"}
            cells[f"{name}${copy}"] = {**cell, "connections": connections}
            nets[f"{names[bit]}${copy}"] = {"hide_name": 0, "bits": [fresh], "attributes": {}}
            for _, bits, index in group:
                bits[index] = fresh
            fresh, count = fresh + 1, count + 1
    return count


def gate(module):
    """Gives each clock gate at most :data:`CLOCKED` flip-flops, by copies; returns their number."""
    cells, nets = module["cells"], module["netnames"]
    readers, fresh, count = _readers(module), _fresh(module), 0
    for name, cell in [(name, cell) for name, cell in cells.items() if cell["type"].startswith("CLKGATE")]:
        loads = readers.get(cell["connections"]["GCK"][0], [])
        for copy, group in enumerate(_groups(loads, -(-len(loads) // CLOCKED))[1:], 1):
            cells[f"{name}${copy}"] = {**cell, "connections": {
                port: [fresh] if port == "GCK" else list(bits) for port, bits in cell["connections"].items()}}
            nets[f"{name}${copy}$clock"] = {"hide_name": 1, "bits": [fresh], "attributes": {}}
            for _, bits, index in group:
                bits[index] = fresh
            fresh, count = fresh + 1, count + 1
    return count


def buffer(module):
    """Puts buffers in front of flip-flops of which many keep the same bit, and of clock gates with the same enable;
    returns their number."""
    readers, fresh, count = _readers(module), _fresh(module), 0
    for bit, loads in readers.items():
        pins = [(cell, bits, index) for cell, bits, index in loads
                if cell["type"].startswith(("DFF", "CLKGATE")) and bits is not cell["connections"]["CK"]]
        if len(pins) <= PINS or bit in ("0", "1"):
            continue
        most = next((size for size in BUFFERS if len(pins) <= size), max(BUFFERS))
        for group in _groups(pins, -(-len(pins) // most)):
            module["cells"][f"$buffer${fresh}"] = {
                "hide_name": 1, "type": BUFFERS[most], "parameters": {}, "attributes": {},
                "port_directions": {"A": "input", "Z": "output"}, "connections": {"A": [bit], "Z": [fresh]}}
            for _, bits, index in group:
                bits[index] = fresh
            fresh, count = fresh + 1, count + 1
    return count
