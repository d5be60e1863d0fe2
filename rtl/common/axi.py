"""AXI4 towards memory: 256 bits, INCR bursts of whole beats, one ID, so that responses come in order.

Inside, a port is a signature of streams (:class:`Read`, :class:`Write`); at the edge of a design it is flat ports with
the names of the standard, among them the fields that never change here.

Source: AMBA AXI and ACE protocol specification, IHI 0022, chapters A2 and A3.
"""

from amaranth.hdl import Cat
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["BEAT", "CONDITION", "MEMORIES", "Read", "Write", "address_layout", "check_memory", "connect", "ports",
           "read", "response", "write"]

BEAT = 32  # bytes

read = data.StructLayout({"data": 8 * BEAT, "resp": 2, "last": 1})
write = data.StructLayout({"data": 8 * BEAT, "strobe": BEAT, "last": 1})
response = data.StructLayout({"resp": 2})

MEMORIES = ("shared", "independent")
"""What masters may rely on. "shared": nothing; several may have one slave, which takes write data in the order of the
addresses of all of them, and answers in the order in which it was asked. So whatever was begun has to end without help:
a burst of writes is offered when all of it is there, and no beat is asked for that cannot be taken at once.
"independent": :data:`CONDITION`."""
CONDITION = ("no slave, crossbar or bridge may let one master's reads or writes wait for another master's data; where "
             "one does, the design locks up")

# Non-secure data; memory that may be buffered and whose bursts may be merged and split.
CONSTANT = {"id": (1, 0), "size": (3, 5), "burst": (2, 1), "cache": (4, 0b0011), "prot": (3, 0b010)}


def check_memory(memory):
    """Raises ValueError unless ``memory`` is one of :data:`MEMORIES`."""
    if memory not in MEMORIES:
        raise ValueError(f"memory must be one of {', '.join(MEMORIES)}, not {memory!r}")


def address_layout(address_width):
    """A burst: the byte address of its first beat, a multiple of 32, and its beats less one."""
    return data.StructLayout({"address": address_width, "length": 8})


class Read(wiring.Signature):
    """The channels of a master that reads, as streams."""

    def __init__(self, address_width):
        super().__init__({"ar": Out(stream.Signature(address_layout(address_width))), "r": In(stream.Signature(read))})


class Write(wiring.Signature):
    """The channels of a master that writes, as streams."""

    def __init__(self, address_width):
        super().__init__({
            "aw": Out(stream.Signature(address_layout(address_width))),
            "w": Out(stream.Signature(write)),
            "b": In(stream.Signature(response)),
        })


def ports(prefix, address_width):
    """Members of a component that make a flat AXI4 master port; their names are ``prefix`` and the standard's."""
    members = {}
    for channel in ("aw", "ar"):
        members |= {f"{channel}{name}": Out(width) for name, (width, _) in CONSTANT.items()}
        members |= {f"{channel}addr": Out(address_width), f"{channel}len": Out(8)}
    members |= {"wdata": Out(8 * BEAT), "wstrb": Out(BEAT), "wlast": Out(1), "bid": In(1), "bresp": In(2)}
    members |= {"rid": In(1), "rdata": In(8 * BEAT), "rresp": In(2), "rlast": In(1)}
    for channel, sends in {"aw": True, "w": True, "b": False, "ar": True, "r": False}.items():
        forth, back = (Out, In) if sends else (In, Out)
        members |= {f"{channel}valid": forth(1), f"{channel}ready": back(1)}
    return {f"{prefix}{name}": member for name, member in members.items()}


def connect(m, component, prefix, reads=None, writes=None):
    """Drives the flat port ``prefix`` of ``component`` from a :class:`Read` and a :class:`Write` port of units inside;
    a side that is not there stays silent."""
    def flat(name):
        return getattr(component, prefix + name)

    for side, channel in ((reads, "ar"), (writes, "aw")):
        m.d.comb += [flat(channel + name).eq(value) for name, (_, value) in CONSTANT.items()]
        if side is not None:
            burst = getattr(side, channel)
            m.d.comb += [
                flat(f"{channel}addr").eq(burst.p.address), flat(f"{channel}len").eq(burst.p.length),
                flat(f"{channel}valid").eq(burst.valid), burst.ready.eq(flat(f"{channel}ready")),
            ]
    if reads is not None:
        m.d.comb += [
            reads.r.p.eq(Cat(flat("rdata"), flat("rresp"), flat("rlast"))),
            reads.r.valid.eq(flat("rvalid")), flat("rready").eq(reads.r.ready),
        ]
    if writes is not None:
        m.d.comb += [
            Cat(flat("wdata"), flat("wstrb"), flat("wlast")).eq(writes.w.p),
            flat("wvalid").eq(writes.w.valid), writes.w.ready.eq(flat("wready")),
            writes.b.p.resp.eq(flat("bresp")), writes.b.valid.eq(flat("bvalid")),
            flat("bready").eq(writes.b.ready),
        ]
