"""The plan of the next tensor, while that of the present one stands."""

from functools import reduce
from operator import or_

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In

from actcodec.rtl.offload.memory.tensor_plan import TensorPlan

__all__ = ["PlanAhead"]

SINGLE = ("error", "blocks", "layout", "void", "ending")  # outputs that are one value
REGISTERS = ("base", "rows", "stride", "height")  # of a geometry, which the registers have of the present tensor


class PlanAhead(wiring.Component):
    """A :class:`~actcodec.rtl.offload.memory.tensor_plan.TensorPlan`, and registers for what it has found, so that it
    may be at work again. Where lanes begin is told once more, when they can take it.

    Throughput: one tensor at a time. Latency: that of the plan; from ``take`` to the outputs 1 cycle, to the last
    ``load`` one for each lane. Buffering: a plan. Combinational paths: from ``present`` to ``geometry``.

    Parameters
    ----------
    cdus, address_width, ends, halves, codes
        As those of the plan.

    Ports
    -----
    descriptor, start, done
        As those of the plan: of the tensor that is planned.
    take : input
        Pulse, from ``done`` on, before the next ``start`` and not before lanes are at rest: the other outputs are from
        now on those of this tensor.
    present : input
        Of the descriptor of the tensor whose plan stands: ``base``, ``rows``, ``stride`` and ``height``.
    error, blocks, layout, geometry, shares, void, ending, origin, load : output
        As those of the plan. ``load`` comes in the cycles after ``take``.
    """

    def __init__(self, cdus, address_width, ends=False, halves=False, codes=False):
        self.cdus, self.address_width = cdus, address_width
        self._plan = plan = TensorPlan(cdus, address_width, ends, halves, codes)
        fields = plan.descriptor.shape().members
        super().__init__({**plan.signature.members, "take": In(1),
                          "present": In(data.StructLayout({name: fields[name] for name in REGISTERS}))})

    def elaborate(self, platform):
        m = Module()
        m.submodules.plan = plan = self._plan
        m.d.comb += [plan.descriptor.eq(self.descriptor), plan.start.eq(self.start), self.done.eq(plan.done)]
        geometry, stride = self.geometry, self.present.stride
        unit, planned = geometry.unit, plan.geometry.unit
        height, channel = (Signal(4, name=f"unit_{name}", reset_less=True) for name in ("height", "channel"))
        own = [name for name in geometry.shape().members if name not in (*REGISTERS, "unit")]
        with m.If(self.take):
            m.d.sync += [getattr(self, name).eq(getattr(plan, name)) for name in SINGLE if hasattr(self, name)]
            m.d.sync += [mine.eq(share) for mine, share in zip(self.shares, plan.shares, strict=True)]
            m.d.sync += [geometry[name].eq(plan.geometry[name]) for name in own]
            m.d.sync += [height.eq(planned.height), channel.eq(planned.channel)]
        m.d.comb += [geometry[name].eq(self.present[name]) for name in REGISTERS]
        m.d.comb += [unit.left.eq(Mux(geometry.raster, -1, -8)), unit.height.eq(height), unit.channel.eq(channel),
                     unit.line.eq(Mux(geometry.raster, stride, stride << 3))]

        # The first lane begins where the tensor does.
        origins = [Signal(plan.origin.shape(), name=f"origin_{k}", reset_less=True) for k in range(1, self.cdus)]
        for load, origin in zip(plan.load[1:], origins, strict=True):
            with m.If(load):
                m.d.sync += origin.eq(plan.origin)
        m.d.sync += self.load.eq(self.take | (self.load << 1))
        m.d.comb += self.origin.as_value().eq(reduce(
            or_, (Mux(load, origin.as_value(), 0) for load, origin in zip(self.load[1:], origins, strict=True)), 0))
        return m
