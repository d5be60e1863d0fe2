"""An accelerator as a component of IP-XACT, IEEE 1685-2014: its buses, ports, registers and files.

PeakRDL writes the registers; the rest is added here.
"""

from xml.etree import ElementTree

__all__ = ["complete"]

SPACE = "http://www.accellera.org/XMLSchema/IPXACT/1685-2014"
AMBA = {"AXI4": "r0p0_0", "AXI4Lite": "r0p0_0", "AXI4Stream": "r1p0_1"}  # versions of ARM's definitions of buses


def complete(text, name, buses, ports, files):
    """The component that PeakRDL wrote, as ``text``, with the rest of the design.

    Parameters
    ----------
    text : str
        A component with a memory map.
    name : str
        The top module.
    buses : list of Interface
    ports : list of Port
        All of them.
    files : dict
        {path of a file, from the component's folder: its type in IP-XACT}.

    Returns
    -------
    str
        The component. Clock, reset and interrupt are ports without a bus: the standard defines none for them.
    """
    ElementTree.register_namespace("ipxact", SPACE)
    root = ElementTree.fromstring(text)
    _first(root, "name").text = name
    maps = _first(root, "memoryMaps")
    at = list(root).index(maps)
    spaces = _element("addressSpaces")
    for bus in buses:
        if bus.bus == "AXI4":
            spaces.append(_element("addressSpace", _element("name", bus.name),
                                   _element("range", _range(bus.wires["ARADDR"].width)),
                                   _element("width", str(bus.wires["RDATA"].width))))
    root.insert(at + 1, _model(name, ports))
    if len(spaces):
        root.insert(at, spaces)
    root.insert(at, _element("busInterfaces", *(_bus(bus, _first(_first(maps, "memoryMap"), "name").text)
                                                for bus in buses)))
    root.append(_element("fileSets", _element("fileSet", _element("name", "files"), *(
        _element("file", _element("name", path), _element("fileType", kind)) for path, kind in files.items()))))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _tag(name):
    return f"{{{SPACE}}}{name}"


def _element(name, /, *inside, **attributes):
    element = ElementTree.Element(_tag(name), attributes)
    for one in inside:
        if isinstance(one, str):
            element.text = one
        else:
            element.append(one)
    return element


def _first(element, name):
    return next(element.iter(_tag(name)))


def _range(bits):
    """How many bytes so many bits address; of 2**64 the last one is left out, as numbers of IP-XACT have 64 bits."""
    return f"2**{bits}" if bits < 64 else str(2**64 - 1)


def _bus(bus, registers):
    """A bus with its wires; a slave with addresses leads to the map of registers."""
    library = {"vendor": "amba.com", "library": "AMBA4", "version": AMBA[bus.bus]}
    wires = [_element("portMap", _element("logicalPort", _element("name", wire)),
                      _element("physicalPort", _element("name", port.name))) for wire, port in bus.wires.items()]
    reference = {("AXI4Lite", "slave"): _element("memoryMapRef", memoryMapRef=registers),
                 ("AXI4", "master"): _element("addressSpaceRef", addressSpaceRef=bus.name)}.get((bus.bus, bus.side))
    return _element(
        "busInterface", _element("name", bus.name), _element("busType", name=bus.bus, **library),
        _element("abstractionTypes", _element(
            "abstractionType", _element("abstractionRef", name=f"{bus.bus}_rtl", **library),
            _element("portMaps", *wires))),
        _element(bus.side, *([] if reference is None else [reference])))


def _model(name, ports):
    """The module and its ports."""
    wires = []
    for port in ports:
        vector = [_element("vectors", _element("vector", _element("left", str(port.width - 1)),
                                               _element("right", "0")))] if port.width > 1 else []
        wires.append(_element("port", _element("name", port.name),
                              _element("wire", _element("direction", port.direction.removesuffix("put")), *vector)))
    return _element(
        "model",
        _element("views", _element("view", _element("name", "rtl"),
                                   _element("componentInstantiationRef", "verilog"))),
        _element("instantiations", _element(
            "componentInstantiation", _element("name", "verilog"), _element("language", "Verilog"),
            _element("moduleName", name), _element("fileSetRef", _element("localName", "files")))),
        _element("ports", *wires))
