"""``make vivado``: an accelerator as IP for Vivado's catalogue, and as a component of IP-XACT for other tools."""

import tempfile
from importlib.metadata import version
from pathlib import Path
from string import Template

import click

from actcodec.commands.verilog import options, unit_parameters
from actcodec.units import UNITS
from drivers import ipxact, registers
from drivers.interfaces import interfaces, ports

__all__ = ["command", "script", "write"]

BUSES = {"AXI4": "xilinx.com:interface:aximm", "AXI4Lite": "xilinx.com:interface:aximm",
         "AXI4Stream": "xilinx.com:interface:axis"}
SIGNALS = {"clk": ("clock", "slave", "CLK"), "rst": ("reset", "slave", "RST"),
           "interrupt": ("interrupt", "master", "INTERRUPT")}
PERIOD = 10.0  # ns
VERSION = ".".join(version("actcodec").split(".")[:2])
XDC = Template("""\
# Only for synthesis of $name by itself: in a design, its clock is what drives clk.
create_clock -name clk -period $period [get_ports clk]
""")
PACKAGE = Template("""\
# Packages $name as IP in the folder ip beside this script, for Vivado's catalogue:
#     vivado -mode batch -source package.tcl            # -tclargs PART: for another than the default part
# Then add the folder to a project: set_property ip_repo_paths .../ip [current_project]; update_ip_catalog
set here [file dirname [file normalize [info script]]]
set part [expr {[info exists argv] && [llength $$argv] ? [list -part [lindex $$argv 0]] : {}}]
create_project package $$here/project -force {*}$$part
add_files -norecurse $$here/$name.v
add_files -fileset constrs_1 -norecurse $$here/${name}_ooc.xdc
set_property USED_IN {synthesis implementation out_of_context} [get_files ${name}_ooc.xdc]
set_property top $name [current_fileset]
update_compile_order -fileset sources_1
ipx::package_project -root_dir $$here/ip -vendor actcodec -library actcodec -taxonomy /UserIP -import_files -force
set core [ipx::current_core]
set_property -dict [list name $name display_name $name version $version \\
    description {Compresses activations of neural networks between memory and a DMA engine}] $$core

# Every interface is stated: what the tool infers from names of ports goes first.
ipx::remove_all_bus_interface $$core

# Adds an interface: type, side, and pairs of its wires and their ports.
proc interface {name type side wires} {
  global core
  set bus [ipx::add_bus_interface $$name $$core]
  set_property bus_type_vlnv $$type:1.0 $$bus
  set_property abstraction_type_vlnv ${rtl}:1.0 $$bus
  set_property interface_mode $$side $$bus
  foreach {wire port} $$wires {
    set_property physical_name $$port [ipx::add_port_map $$wire $$bus]
  }
  return $$bus
}
proc parameter {bus name value} { set_property value $$value [ipx::add_bus_parameter $$name $$bus] }

$buses
$signals
ipx::create_xgui_files $$core
ipx::update_checksums $$core
ipx::check_integrity $$core
ipx::save_core $$core
close_project
""")


def script(name, version, verilog, size):
    """The Tcl that packages a module: ``verilog`` is its text, ``size`` that of its registers in bytes."""
    buses, others = interfaces(ports(verilog, name))
    return PACKAGE.substitute(name=name, version=version, rtl="${type}_rtl",
                              buses="".join(_bus(bus, size) for bus in buses),
                              signals="".join(_signal(port.name, buses) for port in others))


def _wires(wires):
    return " ".join(f"{wire} {port}" for wire, port in wires.items())


def _bus(bus, size):
    wires = {wire: port.name for wire, port in bus.wires.items()}
    text = f"set bus [interface {bus.name} {BUSES[bus.bus]} {bus.side} {{\n  {_wires(wires)}}}]\n"
    if bus.bus == "AXI4Lite":
        return text + f"""parameter $bus PROTOCOL AXI4LITE
set_property slave_memory_map_ref {bus.name} $bus
set block [ipx::add_address_block registers [ipx::add_memory_map {bus.name} $core]]
set_property -dict {{base_address 0 range {size} width 32 usage register}} $block
"""
    if bus.bus == "AXI4":
        bits = bus.wires["ARADDR"].width
        reach = 2**bits if bits < 64 else "16E"  # which is beyond numbers, and has this name
        return text + f"""parameter $bus PROTOCOL AXI4
set_property master_address_space_ref {bus.name} $bus
set space [ipx::add_address_space {bus.name} $core]
set_property -dict {{range {reach} width {bus.wires["RDATA"].width}}} $space
"""
    return text


def _signal(port, buses):
    kind, side, wire = SIGNALS[port]
    text = f"set bus [interface {port} xilinx.com:signal:{kind} {side} {{{wire} {port}}}]\n"
    parameters = {"clk": {"ASSOCIATED_BUSIF": ":".join(bus.name for bus in buses), "ASSOCIATED_RESET": "rst"},
                  "rst": {"POLARITY": "ACTIVE_HIGH"}, "interrupt": {"SENSITIVITY": "LEVEL_HIGH"}}[port]
    return text + "".join(f"parameter $bus {key} {value}\n" for key, value in parameters.items())


def write(folder, name, period=PERIOD, target="lut", **parameters):
    """Writes into a folder: Verilog, constraints, the script for Vivado, and the component of IP-XACT.

    Parameters
    ----------
    folder : Path
    name : str
        The top module.
    period : float
        Of the clock when the IP is synthesised by itself, in ns.
    target : {"cells", "lut"}
        What the Verilog is made for.
    **parameters
        The accelerator's, as the catalogue has them.

    Raises
    ------
    ValueError
        As the accelerator does.
    """
    unit = UNITS["accelerator"]
    text = unit.verilog(name, target, **parameters)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.v").write_text(text)
    (folder / f"{name}_ooc.xdc").write_text(XDC.substitute(name=name, period=f"{period:.3f}"))
    values = unit.resolved(**parameters)
    with tempfile.TemporaryDirectory() as registers_folder:
        registers.write(Path(registers_folder), **registers.instance(**{
            name: values[name] for name in ("cdus", "modes", "address_width", "formats", "payload", "scan", "queue")}))
        registers_text = (Path(registers_folder) / "actcodec.xml").read_text()
    them = ports(text, name)
    buses, _ = interfaces(them)
    (folder / "component.xml").write_text(ipxact.complete(
        registers_text, name, buses, them, {f"{name}.v": "verilogSource", f"{name}_ooc.xdc": "user"}))
    size = 2 ** next(bus.wires["ARADDR"].width for bus in buses if bus.bus == "AXI4Lite")
    (folder / "package.tcl").write_text(script(name, VERSION, text, size))


def command():
    """The command line: a folder, and what ``actcodec verilog accelerator`` takes."""
    unit = UNITS["accelerator"]

    def run(folder, period, module, **parameters):
        try:
            write(folder, module, period, **unit_parameters(unit, **parameters))
        except ValueError as error:
            raise click.ClickException(str(error)) from error
        print(f"{module}.v, {module}_ooc.xdc, package.tcl and component.xml are in {folder}")

    params = [click.Argument(["folder"], type=click.Path(file_okay=False, path_type=Path)), *options(unit, "lut"),
              click.Option(["--period"], type=click.FloatRange(0, min_open=True), default=PERIOD, show_default=True,
                           help="Of the clock when the IP is synthesised by itself, in ns.")]
    return click.Command("vivado", callback=run, params=params, help=(
        "Writes an accelerator into FOLDER, as Verilog, with a script that packages it as IP for Vivado, and as a "
        "component of IP-XACT.\n\n\b\nExamples:\n  python -m drivers.vivado build/vivado --cdus 1\n"
        "  python -m drivers.vivado build/vivado --preset standalone --period 5"))


if __name__ == "__main__":
    command()()
