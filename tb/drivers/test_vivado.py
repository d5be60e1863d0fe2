"""The package for Vivado and the component of IP-XACT: every port of the Verilog is in them once, as what it is.

No Vivado is at hand: a model of its commands, in Tcl, runs the script. It knows what the script may name, and
what has to be there before."""

import pytest
from click.testing import CliRunner
from lxml import etree

from actcodec.synth import timing
from drivers import ipxact, vivado
from drivers.interfaces import interfaces, ports
from drivers.ipxact import SPACE
from tb.drivers.test_registers import SCHEMA
from tb.harness import regress

INSTANCES = {
    "standalone": ["--preset", "standalone", "--cdus", "2", "--modes", "sfpr-zvc,brc", "--address-width", "36",
                   "--queue", "4"],
    "offload": ["--cdus", "1", "--modes", "sfpr", "--name", "mine", "--period", "4", "--formats", "float32,bfloat16"],
}
# Objects are named kind/name; what has not been made has no properties. What is set is printed.
MODEL = """
array set there {project/package 1}
proc made {kind name} { global there; set there($kind/$name) 1; return $kind/$name }
proc create_project {name folder args} { made project $name }
proc add_files {args} { if {![file exists [lindex $args end]]} { error "no file [lindex $args end]" } }
proc get_files {name} { made file $name }
proc current_fileset {} { made fileset sources_1 }
proc update_compile_order {args} {}
proc close_project {} {}
proc set_property {args} {
  global there
  set object [lindex $args end]
  if {![info exists there($object)]} { error "no object $object" }
  set pairs [expr {[lindex $args 0] eq "-dict" ? [lindex $args 1] : [lrange $args 0 end-1]}]
  foreach {name value} $pairs { puts "SET|$object|$name|$value" }
}
namespace eval ipx {
  proc package_project {args} {}
  proc current_core {} { made core core }
  proc remove_all_bus_interface {core} {}
  proc add_bus_interface {name core} { made bus $name }
  proc add_port_map {wire bus} { made $bus/wire $wire }
  proc add_bus_parameter {name bus} { made $bus/parameter $name }
  proc add_memory_map {name core} { made map $name }
  proc add_address_block {name map} { made $map/block $name }
  proc add_address_space {name core} { made space $name }
  foreach name {create_xgui_files update_checksums check_integrity save_core} { proc $name {core} {} }
}
"""


@pytest.fixture(scope="module", params=["standalone", *regress("offload")])
def package(request, tmp_path_factory):
    """A folder with a package, and the name of its top module."""
    folder = tmp_path_factory.mktemp(request.param)
    words = INSTANCES[request.param]
    done = CliRunner().invoke(vivado.command(), [str(folder), *words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return folder, words[words.index("--name") + 1] if "--name" in words else "accelerator"


def properties(folder):
    """What the script sets, of a model of Vivado: {object: {property: value}}."""
    text = (folder / "package.tcl").read_text()
    said = timing.run(f"{MODEL}\n{text.replace('[info script]', f'{{{folder}/package.tcl}}')}", folder)
    them = {}
    for line in said.splitlines():
        if line.startswith("SET|"):
            _, thing, name, value = line.split("|")
            them.setdefault(thing, {})[name] = value
    return them


@pytest.mark.regress
def test_every_port_is_in_one_interface(package):
    folder, name = package
    them, script = ports((folder / f"{name}.v").read_text(), name), properties(folder)
    mapped = [(thing, values["physical_name"]) for thing, values in script.items() if "physical_name" in values]
    assert sorted(port for _, port in mapped) == sorted(port.name for port in them)
    for thing, port in mapped:
        _, bus, _, wire = thing.split("/")
        if port not in vivado.SIGNALS:
            assert port == f"{bus}_{wire.lower()}"


@pytest.mark.regress
def test_clock_and_reset_belong_to_every_bus(package):
    folder, name = package
    buses, others = interfaces(ports((folder / f"{name}.v").read_text(), name))
    script = properties(folder)
    assert [port.name for port in others] == ["clk", "interrupt", "rst"]
    assert script["bus/clk/parameter/ASSOCIATED_BUSIF"]["value"].split(":") == [bus.name for bus in buses]
    assert script["bus/clk/parameter/ASSOCIATED_RESET"]["value"] == "rst"
    assert script["bus/rst/parameter/POLARITY"]["value"] == "ACTIVE_HIGH"
    for bus in buses:
        assert script[f"bus/{bus.name}"]["interface_mode"] == bus.side == (
            "master" if bus.name.startswith("m_") else "slave")
        if bus.bus == "AXI4":
            assert script[f"space/{bus.name}"] == {"range": str(2 ** bus.wires["ARADDR"].width), "width": "256"}
    assert script["map/s_axil/block/registers"]["range"] == "512"


@pytest.mark.regress
def test_the_script_fails_where_a_name_is_wrong(package):
    folder, name = package
    path = folder / "package.tcl"
    text = path.read_text()
    path.write_text(text.replace(f"$here/{name}.v", "$here/none.v"))
    try:
        with pytest.raises(Exception, match=r"none\.v"):
            properties(folder)
    finally:
        path.write_text(text)


def test_ipxact(package):
    """By the standard's schema; ports, wires, files and registers are those of the Verilog."""
    folder, name = package
    document = etree.parse(str(folder / "component.xml"))
    schema = etree.XMLSchema(etree.parse(str(SCHEMA)))
    schema.assertValid(document)
    names = {"i": SPACE}
    assert document.findtext("i:name", namespaces=names) == name
    declared = {port.name: (port.direction, port.width) for port in ports((folder / f"{name}.v").read_text(), name)}
    read = {}
    for port in document.iterfind(".//i:model/i:ports/i:port", names):
        left = port.findtext(".//i:left", "0", namespaces=names)
        read[port.findtext("i:name", namespaces=names)] = (
            port.findtext("i:wire/i:direction", namespaces=names) + "put", int(left) + 1)
    assert read == declared
    wires = [wire.text for wire in document.iterfind(".//i:portMap/i:physicalPort/i:name", names)]
    assert sorted(wires) == sorted(port for port in declared if port not in vivado.SIGNALS)
    for path in document.iterfind(".//i:file/i:name", names):
        assert (folder / path.text).is_file()
    registers = {register.findtext("i:name", namespaces=names) for register in document.iterfind(".//i:register", names)
                 if register.findtext("i:isPresent", namespaces=names) != "0"}
    assert {"CONTROL", "MODE", "BASE"} <= registers
    assert ("PAYLOAD" in registers) == ("m_axi_payload_araddr" in declared)
    assert ("RING" in registers) == ("m_axi_queue_araddr" in declared)


@pytest.mark.parametrize("bits, standard, tool", [
    (63, "2**63", "9223372036854775808"), (64, "18446744073709551615", "16E")])
def test_no_number_of_bytes_has_more_than_64_bits(bits, standard, tool):
    verilog = f"module top();\n  output [{bits - 1}:0] m_axi_0_araddr;\n  input [255:0] m_axi_0_rdata;\nendmodule\n"
    them = ports(verilog, "top")
    text = (f'<i:component xmlns:i="{SPACE}"><i:name>any</i:name><i:memoryMaps><i:memoryMap><i:name>s_axil</i:name>'
            "</i:memoryMap></i:memoryMaps></i:component>")
    document = etree.fromstring(ipxact.complete(text, "top", interfaces(them)[0], them, {}).encode())
    assert document.findtext(".//i:addressSpace/i:range", namespaces={"i": SPACE}) == standard
    assert f"-dict {{range {tool} width 256}} $space" in vivado.script("top", "1.0", verilog, 512)


def test_wrong_parameters(tmp_path):
    done = CliRunner().invoke(vivado.command(), [str(tmp_path / "x"), "--cdus", "9"])
    assert done.exit_code == 1 and "cdus" in done.output and not (tmp_path / "x").exists()
    with pytest.raises(ValueError, match="name 'other'"):
        ports("module top(clk);\nendmodule\n", "other")
