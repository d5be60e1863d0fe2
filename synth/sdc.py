"""The constraints of a design as SDC, for other flows: those that :mod:`actcodec.synth.timing` sets here."""

from actcodec.synth.library import PERIOD, UNCERTAINTY
from actcodec.synth.timing import AHEAD, ARRIVAL, DRIVER, LOAD, SETUP

__all__ = ["document", "gating", "sdc"]


def sdc(period=PERIOD, driver=DRIVER):
    """Clock and ports of a unit or an accelerator: the whole of what a flow has to be told. Of a unit without a clock
    the paths between ports have to fit into a period of one.

    Parameters
    ----------
    period : int
        Of the clock, in ps. 5 % of it are uncertainty.
    driver : str
        A cell of the library, in front of every input; the one here is Nangate45's.

    Returns
    -------
    str
        Commands of SDC, with units of ns and fF.
    """
    return f"""\
set_units -time ns -capacitance fF
create_clock -name clk -period {period / 1000:g} {{*}}[get_ports -quiet clk]
set_clock_uncertainty {round(period * UNCERTAINTY / PERIOD) / 1000:g} clk
set inputs [list]
foreach port [all_inputs] {{ if {{[get_property $port full_name] != "clk"}} {{ lappend inputs $port }} }}
set_input_delay {ARRIVAL["*"] / 1000:g} -clock clk $inputs
set_driving_cell -lib_cell {driver} $inputs
set_output_delay {SETUP / 1000:g} -clock clk [all_outputs]
set_load {LOAD} [all_outputs]
"""


def gating():
    """What a netlist with clock gates of Nangate45 needs besides, before it has a clock tree."""
    return f"""\
foreach pin [get_pins -quiet -hierarchical */GCK] {{
  set_clock_latency -{AHEAD / 1000:g} [get_pins [get_full_name [$pin instance]]/CK]
  set_clock_latency 0 $pin
}}
"""


def document():
    """Both, as the file beside the Verilog."""
    return (f"# Clock and ports of a unit or an accelerator: {1000 / PERIOD:.3f} GHz in Nangate45. Period, driving "
            f"cell and load are yours to change.\n{sdc()}\n"
            f"# Clock gates of Nangate45, before there is a clock tree: other libraries have other pins.\n{gating()}")
