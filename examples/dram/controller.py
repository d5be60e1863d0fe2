"""LiteDRAM's controller with DDR3 behind it, and the module that joins it with an accelerator."""

import re

from litedram.gen import LiteDRAMCore
from litedram.modules import MT41K64M16
from litedram.phy import A7DDRPHY
from litex.build.sim.platform import SimPlatform

from drivers.interfaces import interfaces, ports

__all__ = ["MEGAHERTZ", "SIZE", "board", "controller"]

MEGAHERTZ = 100
SIZE = 1 << 28  # bytes of memory
PORT = {"type": "axi", "id_width": 1, "data_width": 256, "block_until_ready": False}
MASTERS = {"m_axi_0": "lane", "m_axi_payload": "payload"}


def configuration(depth):
    """Two DDR3-800 chips of 16 bits, MT41K64M16, as on a board with an Artix-7: 32 bits at 800 MT/s are 32 bytes in a
    cycle of 100 MHz. ``depth``: commands that each of the eight banks' machines holds."""
    return {"speedgrade": -1, "cpu": None, "memtype": "DDR3", "uart": "fifo", "sdram_module": MT41K64M16,
            "sdram_module_nb": 4, "sdram_rank_nb": 1, "sdram_phy": A7DDRPHY, "rtt_nom": "60ohm", "rtt_wr": "60ohm",
            "ron": "34ohm", "input_clk_freq": MEGAHERTZ * 1e6, "sys_clk_freq": MEGAHERTZ * 1e6,
            "iodelay_clk_freq": 200e6, "cmd_latency": 0, "cmd_buffer_depth": depth,
            "user_ports": {name: PORT for name in (*MASTERS.values(), "host")}}


def controller(depth):
    """Verilog of the module ``dram``, by LiteDRAM's generator: controller, and a model of the PHY and the chips. It has
    ports for a lane, payloads and a host, and Wishbone for its own registers."""
    platform = SimPlatform("", io=[])
    output = platform.get_verilog(LiteDRAMCore(platform, configuration(depth)), name="dram", regular_comb=False)
    return re.sub(r"^//.*\n", "", output.main_source, flags=re.MULTILINE)  # the date, which would not let it be kept


def header(dram):
    """The ports of LiteDRAM's module: {name: (direction, width)}."""
    head = dram[dram.index("module dram"):]
    return {name: (way, int(high or 0) + 1) for way, high, name in re.findall(
        r"^ +(input|output) +wire +(?:\[ *(\d+):0\])? *(\w+)", head[:head.index(");")], re.MULTILINE)}


def board(accelerator, name, dram):
    """Verilog of the module ``board``: an accelerator ``name`` of one lane, with its payloads in memory, and ``dram``.

    Its ports are clock, reset and ``irq``, the accelerator's registers, the controller's third port as ``host_...``,
    and its Wishbone as ``control_...``. Addresses of the accelerator have more bits than this memory: it must not be
    given others.
    """
    buses, _ = interfaces(ports(accelerator, name))
    theirs = header(dram)
    outside, wires = {"clk": ("input", 1), "rst": ("input", 1), "irq": ("output", 1)}, {}
    inner = {"clk": "clk", "rst": "rst | user_rst", "interrupt": "irq"}
    memory = {"clk": "clk", "user_rst": "user_rst", "sim_trace": "1'b0"}
    for bus in buses:
        for wire, port in bus.wires.items():
            inner[port.name] = port.name
            if bus.name not in MASTERS:
                outside[port.name] = (port.direction, port.width)
                continue
            wires[port.name] = port.width
            other = f"user_port_{MASTERS[bus.name]}_{wire.lower()}"
            if other in theirs:
                _, width = theirs[other]
                memory[other] = f"{port.name}[{width - 1}:0]" if width < port.width else port.name
    for other, (way, width) in theirs.items():
        for prefix, short in (("user_port_host_", "host_"), ("wb_ctrl_", "control_")):
            if other.startswith(prefix):
                memory[other] = short + other.removeprefix(prefix)
                outside[memory[other]] = (way, width)
        memory.setdefault(other, "")

    def declared(way, items):
        return [f"{way} [{width - 1}:0] {name}" for name, width in items]

    def connected(pairs):
        return ", ".join(f".{port}({wire})" for port, wire in pairs.items())

    head = ",\n  ".join(text for name, (way, width) in outside.items() for text in declared(way, [(name, width)]))
    body = ";\n  ".join([*declared("wire", wires.items()), "wire user_rst", f"{name} codec({connected(inner)})",
                         f"dram memory({connected(memory)})"])
    return f"module board(\n  {head});\n  {body};\nendmodule\n"
