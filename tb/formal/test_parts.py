"""Streams of large units are those of their parts."""

import pytest
from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.skid import Skid
from formal.parts import PARTS, owners


@pytest.mark.parametrize("name", PARTS)
def test_output_streams_are_those_of_parts(name, tmp_path):
    result = owners(name, tmp_path)
    assert result.keys() == PARTS[name].keys()
    for port, part in PARTS[name].items():
        assert f"{result[port]}.".startswith(f"{part}."), port


class Outer(wiring.Component):
    """A buffer, with something between it and the output."""

    i: In(stream.Signature(4))
    o: Out(stream.Signature(4))

    def __init__(self, between):
        self.between = between
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        m.submodules.part = part = Skid(4)
        wiring.connect(m, wiring.flipped(self.i), part.i)
        pins = {"valid": part.o.valid, "payload": part.o.p, "ready": self.o.ready}
        pins |= {name: value ^ part.o.p[0] for name, value in pins.items() if name == self.between}
        m.d.comb += [self.o.valid.eq(pins["valid"]), self.o.p.eq(pins["payload"]), part.o.ready.eq(pins["ready"])]
        return m


def test_what_is_between_is_seen(tmp_path):
    assert owners("outer", tmp_path, Outer(None))["o"].split(".")[0] == "part"
    for between in ("valid", "payload", "ready"):
        assert owners("outer", tmp_path, Outer(between)) == {"o": ""}, between
