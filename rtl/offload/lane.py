"""A lane of the accelerator: one CDU, and what connects it with memory."""

from functools import partial

from amaranth.hdl import Cat, Module, Mux, ResetInserter, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common import axi
from actcodec.rtl.common.fifo import Fifo
from actcodec.rtl.common.pipeline import Register
from actcodec.rtl.common.skid import Skid, skidded
from actcodec.rtl.common.target import target
from actcodec.rtl.offload.control.codecs import BINS, COUNT, Codecs
from actcodec.rtl.offload.control.config import Chosen, config_layout, of_streams, with_halves
from actcodec.rtl.offload.memory.address import AddressGenerator
from actcodec.rtl.offload.memory.formats import Format, codes_of, halves_of
from actcodec.rtl.offload.memory.geometry import FAR, check_address_width, distance_layout, geometry_layout
from actcodec.rtl.offload.memory.narrow import Narrow
from actcodec.rtl.offload.memory.reader import Reader, check_outstanding
from actcodec.rtl.offload.memory.widen import Widen
from actcodec.rtl.offload.memory.writer import Writer
from actcodec.rtl.offload.scan.walk import route_layout, start_layout
from actcodec.rtl.offload.scans import LaneScan, statistics_layout

__all__ = ["Lane", "sides"]

sides = data.StructLayout({"read": 1, "write": 1})

TURNS = 16  # of a stream that wait in a lane, for its own turn or for its codec


class Lane(wiring.Component):
    """One CDU and its port to memory.

    The address generator is there three times, for one tensor's sectors at three times: when they are asked for, when
    they (or, decompressing, their scales) arrive, and when they are written. It is smaller than the FIFO that would
    remember where a read of 300 cycles ago belongs::

        compress    addresses -> Reader (ar)
                    addresses -> Reader (r) -> CDU -> chunks
        decompress  addresses -> Reader (ar: scales)
                    addresses -> Reader (r: scales) -> CDU -> Writer <- addresses
                    rows ---------------------------> CDU

    With modes that have streams, a FIFO of 128 bytes stands between stream and codec, for both directions, and the walk
    in the middle tells the codec of each sector's neighbours (docs/architecture.md, "A lane for byte streams").

    With formats of 16 bits, the CDU has float32 nevertheless: a :class:`~actcodec.rtl.offload.memory.widen.Widen`
    stands behind the reader and a :class:`~actcodec.rtl.offload.memory.narrow.Narrow` before the writer. In modes that
    are ``plain`` they leave words as they are. With ``int8``, modes that begin with SFPR have its codes: the CDU has
    them pass SFPR by, and no scales are read.

    All that a lane gives comes from registers, since it is mapped alone and there are several; but ``cut``, ``excess``
    and ``refused`` have a few gates behind theirs.

    Throughput: a sector a cycle. Latency: from ``start`` to the first ``ar`` 25 cycles; the CDU's follows memory's, and
    a cycle more to ``chunks``, 4 to ``stream_o``, with formats beside float32 one more each way. Buffering: that of its
    parts, two chunks and a row. Combinational paths: none.

    Source: JPEG-ACT, sections III-A and III-C, Figures 7 and 8.

    Parameters
    ----------
    modes : tuple
        Those of the CDU (see :func:`~actcodec.rtl.offload.control.config.check_modes`); with formats of 16 bits it has
        besides those of :func:`~actcodec.rtl.offload.control.config.with_halves`.
    codec : callable
        With ``modes`` and ``packed=False``, and ``codes=True`` for ``int8``, it returns a CDU: a component with the
        ports of :class:`~actcodec.rtl.jpegact.cdu.Cdu`, of which ``scaled`` says whether it has those for scales.
    address_width : int
        Bits of a byte address, 32 to 64.
    outstanding : int
        Outstanding beats of reads, and outstanding bursts of writes, at least 8: full rate needs 16 more than the
        cycles of memory's latency.
    memory : {"shared", "independent"}
        "shared": the ports of several lanes may lead to one slave; there is a FIFO for all that has been asked for, and
        a burst is stored before it is offered. "independent": no other lane's data ever holds up this lane's at a slave
        (docs/integration.md); neither FIFO nor store.
    formats : tuple of {"float32", "bfloat16", "float16", "int8"}
        What a value in memory can be; float32 always.
    scan : bool
        The lane can scan channels, and make r of k.
    **options
        Other parameters of ``codec``.

    Ports
    -----
    start : input
        Pulse that starts a tensor, while not ``busy``. All other inputs stand from then until ``busy`` falls.
    tensor : input, :func:`~actcodec.rtl.offload.control.config.config_layout`
        ``blocks`` does not count; nor does what else the lane knows, of a ``share`` all but its ``group``, ``step`` and
        ``void``.
    format : input, :class:`~actcodec.rtl.offload.memory.formats.Format`, only with formats beside float32
        That of ``tensor``; not float32 in a mode that is ``plain``. ``geometry`` says whether values have 2 bytes or 1.
    load, origin : input
        Where this lane's part of the tensor begins, before ``start``, as
        :class:`~actcodec.rtl.offload.memory.tensor_plan.TensorPlan` gives it.
    blocks, geometry : input
        The number of its blocks, at least one, and the tensor's geometry.
    scales : input
        Address of the table of scales, a multiple of 32.
    scan_start, scan_origin, scan_route, number : input, only with ``scan``
        Pulse that starts a scan, while not ``busy``, and what :class:`~actcodec.rtl.offload.scan.scan.Scan` has to know
        then. It ends when ``busy`` falls.
    reciprocal : input, only with ``scan``
        To decompress, the table has k.
    statistics : output, :data:`~actcodec.rtl.offload.scans.statistics_layout`, only with ``scan``
    reads, writes : :class:`~actcodec.rtl.common.axi.Read`, :class:`~actcodec.rtl.common.axi.Write`
    chunks, rows : streams of the CDU's ``bytes_o`` and ``rows_i``, only with modes that have blocks
        Compressed, and to decompress; eight of either a block.
    stream_o, stream_i : stream of :func:`~actcodec.rtl.common.packer.chunk_layout` of 8, only with modes that have none
        Compressed, and to decompress: full beats but the last one.
    halt : input
        Give the tensor up. Held until ``busy`` falls; ``clear`` has to follow.
    clear : input
        Pulse that resets all of it in the cycle after, while not ``busy``.
    busy : output
        In the cycle before, a tensor was under way or started, or memory still owed an answer. A cycle after ``halt``,
        only the latter.
    malformed : output, only with modes whose blocks are counted
        A block of this tensor was malformed; complete when ``busy`` falls.
    clipped : output, only with modes whose blocks have segments
        As the CDU has it.
    cut, excess : output, only with modes that have streams
        The stream of this tensor ended early, or went on; complete when ``busy`` falls.
    refused : output, only with modes that have streams, or whose settings have limits
        Before ``start``, and some cycles after it stood: ``tensor`` has a setting beyond its limits.
    bin, count : only with modes that have streams
        As :class:`~actcodec.rtl.offload.control.codecs.Codecs` has them.
    fault : output
        Memory answered a read, or a write, of this tensor with an error.
    waits : output
        In the cycle before, sectors or scales that the CDU needs were not there yet, or sectors could not be written.
    words : output
        Values of the tensor whose sector passed in the cycle before, 0 to 8.
    nans, saturated : output, 32 bits
        As the CDU counts them.

    Raises
    ------
    ValueError
        If a parameter is out of range.
    """

    def __init__(self, modes, codec, address_width=40, outstanding=384, memory="shared", formats=("float32",),
                 scan=False, **options):
        check_address_width(address_width)
        check_outstanding(outstanding)
        axi.check_memory(memory)
        self.halves, self.codes = halves_of(formats), codes_of(formats)
        self.modes = modes = with_halves(modes) if self.halves else tuple(modes)
        self.address_width, self.outstanding, self.memory = address_width, outstanding, memory
        self.scans = bool(scan)
        self._streamed = bool(of_streams(modes))
        options |= {"codes": True} if self.codes else {}
        self._cdu = Codecs(modes, codec, **options) if self._streamed else codec(modes, packed=False, **options)
        ports = {}
        if hasattr(self._cdu, "bytes_o"):
            ports |= {"chunks": Out(self._cdu.bytes_o.signature), "rows": In(self._cdu.rows_i.signature.flip())}
        if self._streamed:
            ports |= {"stream_o": Out(self._cdu.stream_o.signature),
                      "stream_i": In(self._cdu.stream_i.signature.flip()), "cut": Out(1), "excess": Out(1),
                      "bin": In(range(BINS)), "count": Out(COUNT)}
        if hasattr(self._cdu, "refused"):
            ports |= {"refused": Out(1)}
        if self.halves or self.codes:
            ports |= {"format": In(Format)}
        if scan:
            ports |= {"scan_start": In(1), "scan_origin": In(start_layout(address_width)),
                      "scan_route": In(route_layout(address_width, bool(self.halves))), "number": In(3),
                      "reciprocal": In(1), "statistics": Out(statistics_layout)}
        super().__init__({
            "start": In(1),
            "tensor": In(config_layout(modes)),
            "load": In(1),
            "origin": In(distance_layout(address_width)),
            "blocks": In(32),
            "geometry": In(geometry_layout(address_width, self.halves, self.codes)),
            "scales": In(address_width),
            "reads": Out(axi.Read(address_width)),
            "writes": Out(axi.Write(address_width)),
            **ports,
            "halt": In(1),
            "clear": In(1),
            "busy": Out(1),
            "fault": Out(sides),
            "waits": Out(sides),
            "words": Out(4),
            "nans": Out(32),
            "saturated": Out(32),
        } | ({"malformed": Out(1)} if any(mode.format.counted for mode in modes) else {})
          | ({"clipped": Out(1)} if any(mode.format.segmented for mode in modes) else {}))

    def elaborate(self, platform):
        m = Module()
        # The CDU and what is in front of it and behind it, one module for synthesis, as paths lead through all of them.
        m.submodules.codec = codec = Module()
        codec.submodules.cdu = cdu = self._cdu
        halves, codes = bool(self.halves), bool(self.codes)
        m.submodules.reader = reader = Reader(
            self.address_width, self.outstanding, self.memory, halves, self.scans, codes,
            # A scan's reciprocal takes a cycle over a scale; where values are converted, sectors take it, too.
            delayed=self.scans and not halves and not codes)
        m.submodules.writer = writer = Writer(self.address_width, self.outstanding, self.memory, halves, codes)
        mode, needs_scales, halted = Chosen(self.modes, self.tensor.mode), Signal(), Signal()
        start, decompress, scaled, reads = (Signal(name=name) for name in ("started", "decompress", "scaled", "reads"))
        geometry = Signal.like(self.geometry, reset_less=True)  # for each lane, as a walk has no time for a long wire
        scales = mode(lambda mode: mode.scaled)
        m.d.comb += needs_scales.eq(scales & ~self.geometry.byte if codes else scales)
        scan = LaneScan(m, self, reader, writer) if self.scans else None
        sinks = scan.sinks if scan else {"ahead": reader.ahead, "now": reader.now, "behind": writer.places}
        begins = self.start | self.scan_start if scan else self.start
        starts = start & ~scan.scanning if scan else start  # of what a scan does not need
        m.d.sync += [start.eq(begins), decompress.eq(self.tensor.decompress), scaled.eq(needs_scales),
                     reads.eq(~self.tensor.decompress | needs_scales), geometry.eq(self.geometry),
                     halted.eq(self.halt)]  # its wire is long, and leads far into the reader

        # Walks whose places nobody wants do not start.
        places = {"ahead": (sinks["ahead"], reads), "now": (sinks["now"], reads),
                  "behind": (sinks["behind"], decompress)}
        if self._streamed:
            streamed = Signal()
            m.d.sync += streamed.eq(mode(lambda mode: mode.format.endless))
            places["now"] = (sinks["now"], reads | streamed)
        for name, (sink, enable) in places.items():
            forks = self._streamed and name == "now"
            # The sink's ready is late, and would reach far into the address generator.
            m.submodules[f"{name}_skid"] = skid = Skid(sink.p.shape(), half=True)
            wiring.connect(m, skid.o, sink)
            sink = skid.i
            m.submodules[name] = walk = AddressGenerator(self.address_width, forks, halves, codes)
            if forks:
                self._fork(m, walk, ((reads, sink, walk.o.p), (streamed, cdu.edges, walk.edges)))
                m.d.comb += walk.tiled.eq(mode(lambda mode: mode.tiled))
            else:
                wiring.connect(m, walk.o, sink)
            m.d.comb += [walk.geometry.eq(geometry), walk.load.eq(self.load), walk.origin.eq(self.origin),
                         walk.blocks.eq(self.blocks), walk.start.eq(starts & enable)]

        m.d.comb += [
            reader.start.eq(start & reads),
            writer.start.eq(start & (decompress | scan.scanning if scan else decompress)),
            reader.gather.eq(~decompress),
            reader.scaled.eq(scaled & ~scan.scanning if scan else scaled),
            reader.scales.eq(self.scales),
            reader.abort.eq(halted),
            writer.abort.eq(halted),
            cdu.config.p.eq(self.tensor),
            cdu.config.p.blocks.eq(self.blocks),
            cdu.config.valid.eq(starts),
        ]
        wiring.connect(m, reader.axi, wiring.flipped(self.reads))
        wiring.connect(m, writer.axi, wiring.flipped(self.writes))
        read, write = (scan.read, scan.write) if scan else 2 * (partial(wiring.connect, m),)
        sectors = reader.sectors
        if halves or codes:
            sectors = self._convert(m, codec, mode, geometry, reader, writer, scan, write)
        read(sectors, cdu.sectors_i)
        if not halves and not codes:
            write(cdu.sectors_o, writer.sectors)
        # Lanes wait for each other in the collector and the splitter.
        for name, source, sink in (("chunks", cdu.bytes_o, wiring.flipped(self.chunks)),
                                   ("rows", wiring.flipped(self.rows), cdu.rows_i)) if hasattr(self, "rows") else ():
            half = name == "rows" and target(platform) != "lut"
            wiring.connect(codec, skidded(codec, name, source, half), sink)
        if self._streamed:
            self._add_fifo(m, cdu, decompress)
        scale = scan.scale(reader.scale) if scan else reader.scale
        if cdu.scaled:
            # The CDU takes a sector and its scale at once, and the reader may be only two ahead with either. So scales
            # are delayed as sectors are: by a cycle where these are widened, unless the scan's reciprocal has taken
            # it, and by a skid buffer where they pass one in a CDU that is made for LUTs.
            later = [Register] * (bool(halves or codes) and not scan) + [Skid] * (target(platform) == "lut")
            for number, kind in enumerate(later):
                m.submodules[f"scale_{number}"] = delay = kind(32)
                wiring.connect(m, scale, delay.i)
                scale = delay.o
            wiring.connect(m, scale, cdu.scales)
        if hasattr(cdu, "nans"):
            m.d.comb += [self.nans.eq(cdu.nans), self.saturated.eq(cdu.saturated)]

        if hasattr(self, "clipped"):
            phase, share = Signal(FAR, reset_less=True), cdu.config.p.share
            with m.If(self.load):
                m.d.sync += phase.eq(self.origin.tile)
            m.d.comb += [share.sectors.eq(geometry.tiles), share.tail.eq(geometry.tail), share.phase.eq(phase),
                         share.stride.eq(geometry.group.tile), self.clipped.eq(cdu.clipped)]
        if hasattr(self, "refused"):
            m.d.comb += self.refused.eq(cdu.refused)
        if hasattr(self, "malformed"):
            m.d.comb += self.malformed.eq(cdu.error.malformed)

        # The CDU takes sectors and scales only together, and is ready for the one when it has the other.
        starved = ((reader.gather & ~sectors.valid) | (reader.scaled & ~scale.valid))
        # Sectors count when they are compressed, not when they are scanned.
        passes = [(stream.valid & stream.ready, stream.p.words) for stream in (sinks["now"], sinks["behind"])]
        writes = decompress | scan.scanning if scan else decompress
        m.d.comb += Value.cast(self.fault).eq(Cat(reader.error & reads, writer.error & writes))
        m.d.sync += [
            self.busy.eq(begins | start | (cdu.busy & ~halted) | reader.busy | writer.busy),
            self.waits.read.eq(reader.busy & starved),
            self.waits.write.eq(cdu.sectors_o.valid & ~cdu.sectors_o.ready),
            self.words.eq(Mux(decompress, *(Mux(moves, words, 0) for moves, words in reversed(passes)))),
        ]
        # A register of its own for each lane, as what resets all of them comes late.
        outside, cleared = Module(), Signal()
        outside.d.sync += cleared.eq(self.clear)
        outside.submodules.inside = ResetInserter(cleared)(m)
        return outside

    def _convert(self, m, codec, mode, geometry, reader, writer, scan, write):
        """Values between memory's format and the CDU's; the stream of sectors for the CDU. A scan's values are always
        widened, and its scales words of 4 bytes."""
        codec.submodules.widen = widen = Widen(self.halves + self.codes, self.scans)
        codec.submodules.narrow = narrow = Narrow(self.halves + self.codes)
        form, plain = Signal(Format, reset_less=True), Signal()  # for each lane, as wires are long
        m.d.sync += [form.eq(self.format), plain.eq(mode(lambda mode: mode.plain))]
        for unit, words in ((widen, plain & ~scan.scanning if scan else plain), (narrow, plain)):
            m.d.comb += [unit.format.eq(form), unit.plain.eq(words)]
        if self.halves:
            half = geometry.half & ~scan.scanning if scan else geometry.half
            m.d.comb += [reader.half.eq(geometry.half), writer.half.eq(half)]
        if self.codes:  # which are not scanned
            m.d.comb += [reader.byte.eq(geometry.byte), writer.byte.eq(geometry.byte)]
        if hasattr(self._cdu, "codes"):
            m.d.comb += self._cdu.codes.eq(geometry.byte)
        wiring.connect(m, reader.sectors, widen.i)
        wiring.connect(m, self._cdu.sectors_o, narrow.i)
        write(narrow.o, writer.sectors)
        return widen.o

    @staticmethod
    def _fork(m, walk, ways):
        """What the walk says of each place to all who want it."""
        done = []
        for number, (enable, sink, payload) in enumerate(ways):
            delivered = Signal(name=f"delivered_{number}")  # but not by all
            done.append(~enable | delivered | sink.ready)
            m.d.comb += [sink.valid.eq(walk.o.valid & enable & ~delivered), sink.p.eq(payload)]
            m.d.sync += delivered.eq(walk.o.valid & ~walk.o.ready & (delivered | sink.ready))
        m.d.comb += walk.o.ready.eq(Cat(done).all())

    def _add_fifo(self, m, cdu, decompress):
        """The FIFO of streams, one for both directions."""
        m.submodules.stream = fifo = Fifo(cdu.stream_o.p.shape(), TURNS)
        i, o = fifo.i, fifo.o
        m.d.comb += [
            i.valid.eq(Mux(decompress, self.stream_i.valid, cdu.stream_o.valid)),
            i.p.eq(Mux(decompress, self.stream_i.p, cdu.stream_o.p)),
            self.stream_i.ready.eq(i.ready & decompress), cdu.stream_o.ready.eq(i.ready & ~decompress),
            cdu.stream_i.valid.eq(o.valid & decompress), self.stream_o.valid.eq(o.valid & ~decompress),
            cdu.stream_i.p.eq(o.p), self.stream_o.p.eq(o.p),
            o.ready.eq(Mux(decompress, cdu.stream_i.ready, self.stream_o.ready)),
            self.cut.eq(cdu.error.short), self.excess.eq(cdu.error.excess), cdu.bin.eq(self.bin),
        ]
        m.d.sync += self.count.eq(cdu.count)
