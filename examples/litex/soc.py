"""The SoC: a VexRiscv with ROM, SRAM, UART and timer on an AXI bus of 32 bits; main memory behind an AXI arbiter of 256
bits, where the processor meets the accelerator's two ports."""

from litex.build.generic_platform import Pins, Subsignal
from litex.build.sim import SimPlatform
from litex.gen import ClockDomain
from litex.soc.integration.soc import SoCRegion
from litex.soc.integration.soc_core import SoCCore
from litex.soc.interconnect import axi, wishbone

from examples.litex.accelerator import Accelerator
from examples.litex.memory import Ram

CLOCK, BAUD = 100e6, 12.5e6  # eight cycles a bit, so that the simulation does not wait for the UART
PINS = [("clk", 0, Pins(1)), ("rst", 0, Pins(1)), ("serial", 0, Subsignal("tx", Pins(1)), Subsignal("rx", Pins(1)))]
MEMORY, SIZE = 0x4000_0000, 1 << 18
REGISTERS = 0x9000_0000  # the processor does not cache what lies above 0x8000_0000


class System(SoCCore):
    """What the SoC has in simulation and on a board. ``rom``: words of the program, for which there are ``rom_size``
    bytes."""

    def __init__(self, platform, clock, baud, rom_size=1 << 17, rom=()):
        SoCCore.__init__(self, platform, clock, bus_standard="axi", cpu_type="vexriscv", uart_baudrate=baud,
                         integrated_rom_size=rom_size, integrated_rom_init=list(rom), integrated_sram_size=0x4000,
                         ident="actcodec")

    def add_accelerator(self, source, memory, size):
        """Adds the accelerator, whose Verilog is ``source``; ``memory`` is an AXI slave of 256 bits with ``size`` bytes
        from :data:`MEMORY` on."""
        self.actcodec = Accelerator(self.platform, source)
        self.bus.add_slave("actcodec", self.actcodec.registers, SoCRegion(origin=REGISTERS, size=0x1000, cached=False))
        self.irq.add("actcodec", use_loc_if_exists=True)

        # The processor's words become beats of 256 bits with strobes.
        narrow = wishbone.Interface(data_width=32, address_width=32, addressing="word")
        wide = wishbone.Interface(data_width=256, address_width=32, addressing="word")
        processor = axi.AXIInterface(data_width=256, address_width=32)
        self.submodules += wishbone.Converter(narrow, wide), axi.Wishbone2AXI(wide, processor)
        self.bus.add_slave("main_ram", narrow, SoCRegion(origin=MEMORY, size=size, mode="rw"))
        self.arbiter = axi.AXIArbiter([self.actcodec.lane, self.actcodec.payload, processor], memory)


class SoC(System):
    """The one that is simulated."""

    def __init__(self, source):
        platform = SimPlatform("sim", list(PINS))
        self.cd_sys = ClockDomain()
        self.comb += self.cd_sys.clk.eq(platform.request("clk")), self.cd_sys.rst.eq(platform.request("rst"))
        System.__init__(self, platform, CLOCK, BAUD)
        self.ram = Ram(MEMORY, SIZE)
        self.add_accelerator(source, self.ram.axi, SIZE)
