"""The SoC on LambdaConcept's ECPIX-5 with an ECP5-85F, with its DDR3 as main memory."""

from litedram.frontend.axi import LiteDRAMAXI2Native
from litedram.modules import MT41K256M16
from litedram.phy import ECP5DDRPHY
from litex.soc.interconnect.axi import AXIInterface
from litex_boards.platforms import lambdaconcept_ecpix5 as ecpix5
from litex_boards.targets.lambdaconcept_ecpix5 import _CRG as Clocks

from examples.litex.soc import MEMORY, System

CLOCK, BAUD = 70e6, 115200
SIZE = 1 << 29  # bytes of DDR3


class Board(System):
    """``source``: the accelerator's Verilog. Software has to train the DDR3 before it is used."""

    def __init__(self, source):
        platform = ecpix5.Platform("85F")
        self.crg = Clocks(platform, CLOCK)
        System.__init__(self, platform, CLOCK, BAUD)
        self.ddrphy = ECP5DDRPHY(platform.request("ddram"), sys_clk_freq=CLOCK)
        self.comb += self.crg.stop.eq(self.ddrphy.init.stop), self.crg.reset.eq(self.ddrphy.init.reset)
        self.add_sdram("sdram", phy=self.ddrphy, module=MT41K256M16(CLOCK, "1:2"), with_soc_interconnect=False)
        memory = AXIInterface(data_width=256, address_width=32)
        self.submodules += LiteDRAMAXI2Native(memory, self.sdram.crossbar.get_port(data_width=256),
                                              base_address=MEMORY)
        self.add_accelerator(source, memory, SIZE)
