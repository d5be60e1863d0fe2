"""The accelerator as a module of LiteX: one lane, payloads in memory. To copy into a design of your own."""

from types import SimpleNamespace

from litex.gen import ClockSignal, Instance, LiteXModule, ResetSignal, Signal
from litex.soc.interconnect.axi import AXIInterface, AXILiteInterface

ADDRESS = ("addr", "len", "size", "burst", "id", "cache", "prot")
FULL = {"aw": ADDRESS, "w": ("data", "strb", "last"), "b": ("resp", "id"), "ar": ADDRESS,
        "r": ("data", "resp", "last", "id")}
LITE = {"aw": (), "w": ("data", "strb"), "b": ("resp",), "ar": (), "r": ("data", "resp")}
ANSWERS = ("r", "b")


class Accelerator(LiteXModule):
    """Ports to memory ``lane`` and ``payload``, AXI4 of 256 bits; ``registers``, AXI4-Lite; ``ev.irq``, the interrupt.

    ``source`` is the Verilog that ``actcodec verilog accelerator --preset standalone --cdus 1 --address-width 32
    --queue 0 --target lut`` has written, ``name`` its top module.
    """

    def __init__(self, platform, source, name="actcodec"):
        platform.add_source(str(source))
        self.lane, self.payload = (AXIInterface(data_width=256, address_width=32) for _ in range(2))
        self.registers = AXILiteInterface(data_width=32, address_width=32)
        self.ev = SimpleNamespace(irq=Signal())  # enabled and pending bits are among the accelerator's own registers
        ports = {"i_clk": ClockSignal(), "i_rst": ResetSignal(), "o_interrupt": self.ev.irq,
                 "i_s_axil_awprot": 0, "i_s_axil_arprot": 0}
        for prefix, bus, channels, drives in (("m_axi_0", self.lane, FULL, True),
                                              ("m_axi_payload", self.payload, FULL, True),
                                              ("s_axil", self.registers, LITE, False)):
            for channel, fields in channels.items():
                stream = getattr(bus, channel)
                there, back = ("o", "i") if drives == (channel not in ANSWERS) else ("i", "o")
                ports[f"{back}_{prefix}_{channel}ready"] = stream.ready
                for field in ("valid", *fields):
                    ports[f"{there}_{prefix}_{channel}{field}"] = getattr(stream, field)
        ports["i_s_axil_awaddr"], ports["i_s_axil_araddr"] = self.registers.aw.addr[:9], self.registers.ar.addr[:9]
        self.ports = ports
        self.specials += Instance(name, **ports)
