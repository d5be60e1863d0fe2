"""The lanes of an accelerator, and what is said to all of them and of all of them."""

from amaranth.hdl import Cat, Mux, Signal
from amaranth.lib import wiring

from actcodec.rtl.common import axi
from actcodec.rtl.common.shared_module import shared
from actcodec.rtl.offload.control.config import of_streams
from actcodec.rtl.offload.lane import Lane
from actcodec.rtl.offload.wire.streams.stream_collector import LENGTH

__all__ = ["Lanes"]


class Lanes:
    """Adds to the module ``m`` of an ``accelerator`` its lanes, between their ports to memory, ``collector`` and
    ``splitter``, for tensors as ``plan`` and the ``registers`` have them. ``mode`` is the place of the tensor's; with
    ``launch`` the lanes start that have a block of it; ``scan``, if there is one, gets them, too.

    It is no component, as it is most of the accelerator's own module.

    Attributes
    ----------
    lanes : list of Lane
    used : Signal
        Which have a block of this tensor.
    """

    def __init__(self, m, platform, accelerator, registers, plan, collector, splitter, mode, launch, abort, clear,
                 scan):
        control, status, cdus = registers.control, registers.status, accelerator.cdus
        segmented = any(one.format.segmented for one in accelerator.modes)
        self.lanes, self.used = [], Signal(cdus, name="used")
        for k in range(cdus):
            m.submodules[f"lane_{k}"] = lane = shared(platform, "lane", lambda: Lane(
                accelerator.host_modes, accelerator.codec, accelerator.address_width, accelerator.outstanding,
                accelerator.memory, accelerator.formats, accelerator.scan, **accelerator.options))
            self.lanes.append(lane)
            if scan:
                scan.add(lane)
            axi.connect(m, accelerator, f"m_axi_{k}_", lane.reads, lane.writes)
            if hasattr(lane, "rows"):
                wiring.connect(m, lane.chunks, collector.i[k])
                wiring.connect(m, splitter.o[k], lane.rows)
            if of_streams(accelerator.modes):
                wiring.connect(m, lane.stream_o, collector.streams[k])
                wiring.connect(m, splitter.streams[k], lane.stream_i)
                m.d.comb += [splitter.lengths[k].eq(control.lengths_in.word_select(k, LENGTH)),
                             status.lengths_out.word_select(k, LENGTH).eq(collector.lengths[k])]
            m.d.comb += [
                lane.start.eq(launch & self.used[k]),
                lane.load.eq(plan.load[k]),
                lane.origin.eq(plan.origin),
                lane.blocks.eq(plan.shares[k]),
                lane.geometry.eq(plan.geometry),
                lane.scales.eq(control.scales),
                lane.halt.eq(abort),
                lane.clear.eq(clear),
                lane.tensor.decompress.eq(control.decompress),
                lane.tensor.mode.eq(mode),
                lane.tensor.layout.eq(plan.layout),
                *(lane.tensor[name].eq(control[name]) for name in ("signs", "table", "settings")
                  if name in lane.tensor.shape().members),
                *([lane.format.eq(control.format)] if accelerator.halves or accelerator.codes else []),
            ]
            if segmented:
                share = lane.tensor.share
                m.d.comb += [share.group.eq(k), share.step.eq(cdus), share.void.eq(Mux(plan.ending[k], plan.void, 0))]
        m.d.sync += self.used.eq(Cat(share != 0 for share in plan.shares))  # when the lanes start, a cycle later

    def each(self, value):
        """Values of the lanes that have a block of this tensor, one for each."""
        return [self.used[k] & value(lane) for k, lane in enumerate(self.lanes)]
