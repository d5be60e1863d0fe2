"""AXI4-Lite from a host: 32 bits of data.

Inside, a port is five streams, of which those of addresses have no ``prot``; at the edge of a design it is flat ports
with the names of the standard.

Source: AMBA AXI and ACE protocol specification, IHI 0022, chapter B1. Its bench is that of the registers, and those of
the accelerator, whose host is cocotbext-axi's.
"""

from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

__all__ = ["OKAY", "SLVERR", "connect", "members", "ports", "read_layout", "write_layout"]

DATA = 32  # bits
OKAY, SLVERR = 0, 2


def write_layout():
    """Data of a write, and which of its bytes count."""
    return data.StructLayout({"data": DATA, "strb": DATA // 8})


def read_layout():
    """The answer to a read."""
    return data.StructLayout({"data": DATA, "resp": 2})


def members(address_bits):
    """Members of a slave: a stream for each channel."""
    return {
        "aw": In(stream.Signature(address_bits)), "w": In(stream.Signature(write_layout())),
        "b": Out(stream.Signature(2)),
        "ar": In(stream.Signature(address_bits)), "r": Out(stream.Signature(read_layout())),
    }


def ports(prefix, address_bits):
    """Members of a component that make a flat slave port; their names are ``prefix`` and the standard's."""
    flat = {
        "awaddr": In(address_bits), "awprot": In(3), "awvalid": In(1), "awready": Out(1),
        "wdata": In(DATA), "wstrb": In(DATA // 8), "wvalid": In(1), "wready": Out(1),
        "bresp": Out(2), "bvalid": Out(1), "bready": In(1),
        "araddr": In(address_bits), "arprot": In(3), "arvalid": In(1), "arready": Out(1),
        "rdata": Out(DATA), "rresp": Out(2), "rvalid": Out(1), "rready": In(1),
    }
    return {f"{prefix}{name}": member for name, member in flat.items()}


def connect(m, component, prefix, slave):
    """Connects the flat port ``prefix`` of ``component`` with a slave inside, which has :func:`members`."""
    def flat(name):
        return getattr(component, prefix + name)

    for channel in ("aw", "ar"):
        m.d.comb += getattr(slave, channel).p.eq(flat(f"{channel}addr"))
    for channel in ("aw", "w", "ar"):
        inner = getattr(slave, channel)
        m.d.comb += [inner.valid.eq(flat(f"{channel}valid")), flat(f"{channel}ready").eq(inner.ready)]
    for channel in ("b", "r"):
        inner = getattr(slave, channel)
        m.d.comb += [flat(f"{channel}valid").eq(inner.valid), inner.ready.eq(flat(f"{channel}ready"))]
    m.d.comb += [
        slave.w.p.data.eq(flat("wdata")), slave.w.p.strb.eq(flat("wstrb")),
        flat("bresp").eq(slave.b.p),
        flat("rdata").eq(slave.r.p.data), flat("rresp").eq(slave.r.p.resp),
    ]
