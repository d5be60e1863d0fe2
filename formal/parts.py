"""Output streams of large units that are those of a part, bit by bit: what is proved of the part is proved of them."""

import json

from amaranth.back import rtlil

from actcodec.synth.flow import yosys
from actcodec.units import UNITS
from formal.streams import SMALL, ports

__all__ = ["PARTS", "owners"]

# Of which part each output stream is the port; the parts' proofs are in formal/streams.py.
PARTS = {
    "dct": {"o": "second"},
    "comet": {"sectors_o": "dock", "bytes_o": "packer"},
    "lane": {"reads__ar": "inside.reader", "writes__aw": "inside.writer", "writes__w": "inside.writer",
             "chunks": "inside.codec"},
    "accelerator": {
        **{f"m_axi_{k}_{channel}": f"lane_{k}.inside.{part}" for k in range(2)
           for channel, part in (("ar", "reader"), ("aw", "writer"), ("w", "writer"))},
        "m_axis_t": "sender", "s_axil_b": "registers", "s_axil_r": "registers"},
}


def owners(name, folder, component=None):
    """Where the output streams of a unit come from: {port: path of instances}, as far inwards as ``valid``, ``ready``
    and every bit of the payload that is no constant are connected to a single instance, and to nothing else between.
    """
    component = component or UNITS[name].build(**SMALL.get(name, {}))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "unit.il").write_text(rtlil.convert(component, name="unit", emit_src=False))
    yosys(["read_rtlil unit.il", "hierarchy -check -top unit", "proc", "opt_clean", "write_json unit.json"],
          folder, name, "json")
    modules = json.loads((folder / "unit.json").read_text())["modules"]
    edge = {port: one["bits"] for port, one in modules["unit"]["ports"].items()}
    outputs = {port for port, one in modules["unit"]["ports"].items() if one["direction"] == "output"}
    parts = {}
    for port in ports(component.signature.create(), component.signature):
        if port.sends:
            prefix = next(port.name + end for end in ("__", "_", "") if f"{port.name}{end}valid" in outputs)
            payload = [bit for other in outputs if other.startswith(prefix) and other != f"{prefix}valid"
                       for bit in edge[other]]
            parts[port.name] = ".".join(_path(modules, *edge[f"{prefix}valid"], *edge[f"{prefix}ready"], payload))
    return parts


def _path(modules, valid, ready, payload):
    path, module = [], "unit"
    while True:
        payload = [bit for bit in payload if bit not in ("0", "1")]
        for name, cell in modules[module]["cells"].items():
            pins = {bit: (pin, index) for pin, bits in cell["connections"].items() for index, bit in enumerate(bits)
                    if cell["port_directions"][pin] == "output"}
            inputs = {bit: (pin, index) for pin, bits in cell["connections"].items() for index, bit in enumerate(bits)
                      if cell["port_directions"][pin] == "input"}
            if cell["type"] in modules and ready in inputs and {valid, *payload} <= pins.keys():
                path.append(name)
                break
        else:
            return path
        module = cell["type"]
        inner = {bit: modules[module]["ports"][pin]["bits"][index]
                 for bit, (pin, index) in (inputs | pins).items()}
        valid, ready, payload = inner[valid], inner[ready], [inner[bit] for bit in payload]
