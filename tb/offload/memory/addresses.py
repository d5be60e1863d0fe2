"""The address generator as its benches see it: the plan, and a walk for each CDU."""

from amaranth.hdl import Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.vectors import edges as layout
from actcodec.rtl.common.vectors import place_layout
from actcodec.rtl.offload.memory.address import AddressGenerator
from actcodec.rtl.offload.memory.geometry import distance_layout, geometry_layout
from actcodec.rtl.offload.memory.tensor_plan import TensorPlan, descriptor_layout
from tb.harness import pack


class Addresses(wiring.Component):
    """A plan and ``cdus`` walks, which start when it is done, unless it finds an error or they have no block. With
    ``edges``, a walk's payload are these."""

    def __init__(self, cdus, address_width, edges=False, halves=False, codes=False):
        self.cdus, self.address_width, self.edges, self.halves, self.codes = cdus, address_width, edges, halves, codes
        payload = layout if edges else place_layout(address_width)
        super().__init__({
            "start": In(1), "done": Out(1),
            "descriptor": In(descriptor_layout(address_width, halves=halves, codes=codes)),
            "error": Out(1),
            "blocks": Out(32), "layout": Out(2), "geometry": Out(geometry_layout(address_width, halves, codes)),
            "shares": Out(32).array(cdus), "origin": Out(distance_layout(address_width)), "load": Out(cdus),
            "o": Out(stream.Signature(payload)).array(cdus)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.plan = plan = TensorPlan(
            self.cdus, self.address_width, halves=self.halves, codes=self.codes)
        m.d.comb += [plan.start.eq(self.start), plan.descriptor.eq(self.descriptor)]
        m.d.comb += [getattr(self, name).eq(getattr(plan, name))
                     for name in ("done", "error", "blocks", "layout", "geometry", "origin", "load")]
        for c in range(self.cdus):
            m.submodules[f"walk_{c}"] = walk = AddressGenerator(
                self.address_width, self.edges, self.halves, self.codes)
            m.d.comb += [
                self.shares[c].eq(plan.shares[c]), walk.blocks.eq(plan.shares[c]), walk.geometry.eq(plan.geometry),
                walk.load.eq(plan.load[c]), walk.origin.eq(plan.origin),
                walk.start.eq(plan.done & ~plan.error & (plan.shares[c] != 0)),
            ]
            if not self.edges:
                wiring.connect(m, walk.o, wiring.flipped(self.o[c]))
                continue
            m.d.comb += [self.o[c].valid.eq(walk.o.valid), walk.o.ready.eq(self.o[c].ready),
                         self.o[c].p.eq(walk.edges), walk.tiled.eq(self.descriptor.tiled)]
        return m


def fields(layout, number):
    """The fields of a layout, nested ones by their own names in front: a number's bits as integers."""
    constant = data.Const(layout, number)
    return {name: fields(field.shape, constant[name].as_bits()) if isinstance(field.shape, data.Layout)
            else int(constant[name]) for name, field in layout}


def describe(view, tiled, base, stride, address_width, scales=0, scaled=0, flags=0):
    """A descriptor as a number; ``flags`` are what stands behind ``scaled``."""
    fields = pack([view.rows, view.width, stride, view.height, view.channels], 32)
    return base | (fields | (scales | (tiled | scaled << 1 | flags << 2) << address_width) << 160) << address_width
