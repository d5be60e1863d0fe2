"""What belongs to what in a flat netlist: the RTL's names of cells, and the area of each sub-unit."""

from collections import defaultdict, deque

__all__ = ["breakdown", "constants", "registers", "signals"]


def registers(module):
    """The names of the flip-flops of a module in Yosys's JSON."""
    return {name for name, cell in module["cells"].items() if "DFF" in cell["type"]}


def _names(module):
    """The RTL's name of each bit that has one: the shortest."""
    names = {}
    for name, net in module["netnames"].items():
        if name.startswith("$") or net.get("hide_name"):
            continue
        for index, bit in enumerate(net["bits"]):
            label = f"{name}[{index}]" if len(net["bits"]) > 1 else name
            if bit not in names or len(label) < len(names[bit]):
                names[bit] = label
    return names


def _output(cell):
    """The bits that a cell drives."""
    return [bit for port, bits in cell["connections"].items() if cell["port_directions"][port] == "output"
            for bit in bits]


def signals(module):
    """The RTL's name of what each flip-flop keeps, and of what each other cell drives if that has a name."""
    names = _names(module)
    return {name: names[bit] for name, cell in module["cells"].items() for bit in _output(cell)[::-1] if bit in names}


def constants(module, parts=None, tied=()):
    """The ports, and the pins of cells as CELL/PIN, that a constant drives, as it does the bits ``tied``; also one
    that comes out of, goes into, or lies inside of, a module of ``parts``, {type: module}."""
    bits, inner = {"0", "1", *tied}, set()
    for cell in module["cells"].values():
        if cell["type"].startswith("LOGIC"):
            bits |= set(_output(cell))
    for name, cell in module["cells"].items():
        if cell["type"] in (parts or {}):
            part, pins = parts[cell["type"]], cell["connections"].items()
            inside = constants(part, tied={bit for port, driven in pins if part["ports"][port]["direction"] == "input"
                                           for bit, outer in zip(part["ports"][port]["bits"], driven, strict=True)
                                           if outer in bits})
            inner |= {f"{name}/{pin}" for pin in inside if "/" in pin}
            bits |= {bit for port, driven in pins for index, bit in enumerate(driven)
                     if (f"{port}[{index}]" if len(driven) > 1 else port) in inside}
    ports = {f"{name}[{index}]" if len(port["bits"]) > 1 else name for name, port in module["ports"].items()
             for index, bit in enumerate(port["bits"]) if bit in bits}
    return inner | ports | {f"{name}/{pin}" for name, cell in module["cells"].items()
                            for pin, bound in cell["connections"].items() if bound and bound[0] in bits}


def breakdown(module, area):
    """The area of each sub-unit of a flat module: {its path in dots, "" for the top: (registers with clock gates,
    logic)}.

    A flip-flop belongs where its name says. Logic has lost its names: it belongs to the sub-unit of the register or
    port that it reaches in the fewest gates.
    """
    names, cells = _names(module), module["cells"]
    driver = {bit: name for name, cell in cells.items() for bit in _output(cell)}
    keepers = registers(module)
    owner, queue = {}, deque()

    def unit(bit):
        return names.get(bit, "").rpartition(".")[0]

    for name in keepers:
        owner[name] = max(map(unit, _output(cells[name])), default="")
    queue.extend(sorted(keepers))
    for port in module["ports"].values():
        if port["direction"] == "output":
            for name in {driver[bit]: bit for bit in port["bits"] if bit in driver}:
                if name not in owner:
                    owner[name] = unit(_output(cells[name])[0])
                    queue.append(name)
    while queue:
        name = queue.popleft()
        cell = cells[name]
        for port, bits in cell["connections"].items():
            if cell["port_directions"][port] == "input":
                for bit in bits:
                    source = driver.get(bit)
                    if source is not None and source not in owner:
                        owner[source] = owner[name]
                        queue.append(source)

    result = defaultdict(lambda: [0.0, 0.0])
    for name, cell in cells.items():
        if cell["type"] not in area:  # a module of its own
            continue
        logic = name not in keepers and not cell["type"].startswith("CLKGATE")
        result[owner.get(name, "")][logic] += area[cell["type"]]
    return {unit: (round(keep, 1), round(logic, 1)) for unit, (keep, logic) in sorted(result.items())}
