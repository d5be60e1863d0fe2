"""The compression/decompression unit: sectors of float32 on one side, a byte stream on the other."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.common.links import Links
from rtl.common.packer import Packer, chunk
from rtl.common.pipeline import Pipeline
from rtl.common.skid import Skid
from rtl.common.unpacker import Unpacker
from rtl.common.vectors import vectors, words
from rtl.gist.binarize import Binarize, Unbinarize
from rtl.jpegact import feed
from rtl.jpegact.align import Align
from rtl.jpegact.config import MODES, Config, Error
from rtl.jpegact.control import Control
from rtl.jpegact.dct import Dct
from rtl.jpegact.quantize import Round, Shift, mirror
from rtl.jpegact.sfpr import Sfpr
from rtl.jpegact.zvc import MASK, Zvc, rows

__all__ = ["CDMA", "JPEG_ACT", "Cdu"]

JPEG_ACT = ("sfpr", "sfpr-zvc", "jpeg-act", "brc")  # the paper's CDU
CDMA = ("zvc",)  # cDMA+
SCALED = ("sfpr", "sfpr-zvc", "jpeg-act")  # modes that pass through SFPR


class Cdu(wiring.Component):
    """One CDU of JPEG-ACT: compresses or decompresses one tensor (or its share of one) at a time.

    A transfer at ``config`` starts a tensor; the unit takes the next one when ``busy`` has fallen. Compressing, it
    takes 8 sectors a block at ``sectors_i`` and gives the payload at ``bytes_o``; decompressing, it takes the payload
    at ``bytes_i`` and gives 8 sectors a block at ``sectors_o``. In the modes that scale, one word of ``scales`` goes
    with each sector, in the order of sectors::

        compress    sectors_i -> SFPR -> align -> DCT -> SH -> ZVC -> packer -> bytes_o
        decompress  sectors_o <- SFPR <- align <- iDCT <- SH <- ZVD <- unpacker <- bytes_i

    Modes leave out what they do not need (sfpr-zvc goes from SFPR to ZVC, raw from end to end), and both directions
    use the same SFPR, alignment buffer, DCT, shifter and block buffer. Hardware for a mode that was not asked for does
    not exist.

    Throughput: a sector a cycle in both directions as long as nothing else stalls, that is 8 cycles a block; a zvc
    block that grew past 256 bytes takes one more. Latency: below. Buffering: a group of four blocks in the alignment
    buffer, a block in the DCT's transpose and one in front of ZVC, a beat in each pipeline stage; in the modes that
    pass a transpose the last block of a tensor leaves because it is the last.
    Combinational paths: ``bytes_o.ready`` to ``sectors_i.ready`` and ``scales.ready`` in modes raw, sfpr, brc and zvc;
    ``sectors_o.ready`` to ``scales.ready``; from ``valid`` of ``sectors_i`` and of ``scales`` to ``ready`` of the
    other one, since they go together.

    Latency, cycles from the first beat in to the first beat out (a beat of the byte stream has to be full first; here
    it has 16 bytes, 32 in raw and zvc; zvc's decoder waits for two of them, so that a unit that has zvc decompresses a
    cycle later in the other modes, too):

    ==========  ===  ====  ========  ===  ==========================  ===
    mode        raw  sfpr  sfpr-zvc  brc  jpeg-act, layout 0 / 1 / 2  zvc
    compress      2     7        17   18                46 / 53 / 67   11
    decompress    2     6        16    2                39 / 47 / 63    4
    ==========  ===  ====  ========  ===  ==========================  ===

    Source: JPEG-ACT, section III-A, Figure 8; Table II for the modes.

    Parameters
    ----------
    modes : tuple of str
        Which of raw, sfpr, sfpr-zvc, jpeg-act, brc and zvc it can do, at least one. ``JPEG_ACT`` is the unit of the
        paper, ``CDMA`` is cDMA+.
    packed : bool
        False: neither packer nor unpacker; a compressed block is always eight chunks, or eight rows, for a collector
        and a splitter, which know where it ends.

    Ports
    -----
    config : stream of :class:`Config`
    scales : stream of float32 words, only with modes that scale
        k when compressing (a bfloat16 in the upper half), r when decompressing.
    sectors_i, sectors_o : stream of 8 float32 words
    bytes_i, bytes_o : stream of :func:`chunk` of ``width`` bytes
        Full beats; the one that carries ``last`` holds 1 to ``width`` bytes. If not ``packed``, there is no
        ``bytes_i``, and ``bytes_o`` has chunks of any size, eight a block, the mask in the first one.
    rows_i : stream of :func:`~rtl.jpegact.zvc.rows`, only if not ``packed``
        Eight a block. A row that carries ``last`` too early means nothing, and ends the stream.
    busy : output
        A tensor is under way.
    error : output, :class:`Error`
    nans, saturated : output, 32 bits, only with modes that scale
        Values of this tensor that were no number, or beyond the ends of int8, when it was compressed.

    Raises
    ------
    ValueError
        If ``modes`` is empty or names one that does not exist.
    """

    def __init__(self, modes=JPEG_ACT, packed=True):
        if not isinstance(modes, tuple | list) or not modes or any(mode not in tuple(MODES) for mode in modes):
            raise ValueError(f"modes must be one or more of {', '.join(MODES)}, in a tuple, not {modes!r}")
        self.modes = tuple(dict.fromkeys(modes))
        self.packed = bool(packed)
        wide = {"raw", "zvc"} & set(modes)
        row = 32 if wide else 8
        # Bytes of a beat at the compressed side.
        self.width = MASK + row if not packed else 32 if wide else 16
        self.scaled = bool(set(SCALED) & set(modes))
        sector = data.ArrayLayout(32, 8)
        ports = {
            "config": In(stream.Signature(Config)),
            "sectors_i": In(stream.Signature(sector)),
            "sectors_o": Out(stream.Signature(sector)),
            **({"bytes_i": In(stream.Signature(chunk(self.width)))} if packed
               else {"rows_i": In(stream.Signature(rows(row)))}),
            "bytes_o": Out(stream.Signature(chunk(self.width))),
            "busy": Out(1),
            "error": Out(Error),
        }
        if self.scaled:
            ports |= {"scales": In(stream.Signature(32)), "nans": Out(32), "saturated": Out(32)}
        super().__init__(ports)

    def elaborate(self, platform):
        m = Module()
        modes = set(self.modes)
        m.submodules.control = control = Control(self.modes, self.packed)
        config, start = control.tensor, control.start
        wiring.connect(m, wiring.flipped(self.config), control.config)
        m.d.comb += [self.busy.eq(control.busy), self.error.eq(control.error)]
        links = Links(m)
        link = links.link

        def chosen(decompress, *names):
            """A register: a tensor that goes this way, in one of the modes ``names``, has started. Modes that this unit
            does not have never are. What is chosen stands until the next tensor starts."""
            tensors = [config.mode == MODES[name] for name in names if name in modes]
            if not tensors:
                return Const(0, 1)
            name = "_".join(["decompresses" if decompress else "compresses", *names]).replace("-", "_")
            register = Signal(name=name, reset_less=True)  # before the first start there is nothing to connect
            with m.If(start):
                m.d.sync += register.eq((config.decompress == decompress) & Cat(tensors).any())
            return register

        # Inner streams: sectors that were counted; rows taken from the compressed side, counted too; all rows that
        # become sectors, and a cycle later; what is to leave as sectors.
        sectors, taken, restored, rows, results = (
            stream.Signature(words).create(path=[name]) for name in ("sectors", "taken", "restored", "rows", "results"))

        # ------------------------------------------------------------------------------------------- the units
        granule = 1 if modes - {"raw", "zvc"} else 4
        if self.packed:
            m.submodules.packer = packer = Packer(granule, 40 if "zvc" in modes else self.width, self.width)
            m.submodules.unpacker = unpacker = Unpacker(granule, self.width, 40 if "zvc" in modes else self.width)
            wiring.connect(m, packer.o, wiring.flipped(self.bytes_o))
            given, shown = packer.i, unpacker.o.payload.data
        else:
            given, shown = stream.Signature(chunk(self.width)).create(path=["given"]), Signal(data.ArrayLayout(
                8, self.width - MASK), name="shown")
            wiring.connect(m, given, wiring.flipped(self.bytes_o))
        coders = []  # (compresses by it, decompresses by it, it)
        if modes & {"sfpr-zvc", "jpeg-act"}:
            m.submodules.zvc8 = zvc8 = Zvc(1, self.packed)
            coders.append((*(chosen(way, "sfpr-zvc", "jpeg-act") for way in (0, 1)), zvc8))
        if "zvc" in modes:
            m.submodules.zvc32 = zvc32 = Zvc(4, self.packed)
            coders.append((*(chosen(way, "zvc") for way in (0, 1)), zvc32))

        if self.scaled:
            m.submodules.sfpr = sfpr = Sfpr()
            operands = stream.Signature(words).create(path=["operands"])
            m.d.comb += [
                sfpr.decompress.eq(config.decompress),
                sfpr.clear.eq(start),
                self.nans.eq(sfpr.nans),
                self.saturated.eq(sfpr.saturated),
                # A scale goes with each sector.
                sfpr.i.valid.eq(operands.valid & self.scales.valid),
                operands.ready.eq(sfpr.i.ready & self.scales.valid),
                self.scales.ready.eq(sfpr.i.ready & operands.valid),
                sfpr.i.payload.scale.eq(self.scales.payload),
                sfpr.i.payload.last.eq(operands.payload.last),
            ]
            for k in range(8):
                # Decompressing, SFPR looks at the low byte alone: the others need no multiplexer.
                m.d.comb += sfpr.i.payload.data[k].eq(Cat(operands.payload.data[k][:8], self.sectors_i.payload[k][8:]))
            link(chosen(0, *SCALED), sectors, operands)
            link(chosen(1, *SCALED), rows, operands)
            link(chosen(1, *SCALED), sfpr.o, results)
        if "sfpr" in modes:
            link(chosen(0, "sfpr"), sfpr.o, given, **self._bytes(sfpr.o, 8))
        if modes & {"sfpr-zvc", "jpeg-act"}:
            # SFPR and ZVC, and likewise SH and the DCT, follow each other one way in one direction and the other way in
            # the other: without a register on the way, their chains of `ready` would close to rings. It also parts the
            # two halves of quantization. SFPR's int8 pass the second one as numbers without a fraction.
            m.submodules.skid = skid = Skid(vectors(signed(12)))
            m.submodules.round = rounding = Round()
            link(chosen(0, "sfpr-zvc", "jpeg-act"), skid.o, rounding.i)
            wiring.connect(m, rounding.o, zvc8.i)
        if "sfpr-zvc" in modes:
            whole = Cat(Cat(Const(0, 1), word[:8], word[7].replicate(3)) for word in sfpr.o.payload.data)
            link(chosen(0, "sfpr-zvc"), sfpr.o, skid.i, data=whole, last=sfpr.o.payload.last)
            link(chosen(1, "sfpr-zvc"), zvc8.o, restored)
        if "jpeg-act" in modes:
            m.submodules.align = align = Align()
            m.submodules.dct = dct = Dct()
            m.submodules.shift = shift = Shift()
            forwards, backwards = chosen(0, "jpeg-act"), chosen(1, "jpeg-act")
            m.d.comb += [align.decompress.eq(config.decompress), align.layout.eq(config.layout),
                         align.blocks.eq(config.blocks), align.start.eq(start & (config.mode == MODES["jpeg-act"])),
                         dct.inverse.eq(config.decompress), shift.decompress.eq(config.decompress),
                         shift.start.eq(start), shift.table.eq(config.table)]
            link(forwards | backwards, shift.o, skid.i)
            for source, sink in ((sfpr.o, align.i), (align.o, dct.i)):
                link(forwards, source, sink)
            for source, sink in ((dct.o, align.i), (align.o, restored)):
                link(backwards, source, sink)
            # SH wants a fraction of one bit, or numbers as in a mirror.
            link(forwards, dct.o, shift.i, data=Cat(word[5:] for word in dct.o.payload.data), last=dct.o.payload.last)
            for source, sink in ((zvc8.o, shift.i), (skid.o, dct.i)):
                link(backwards, source, sink, data=Cat(mirror(word) for word in source.payload.data),
                     last=source.payload.last)
        if "brc" in modes:
            m.submodules.binarize = binarize = Binarize()
            m.submodules.unbinarize = unbinarize = Unbinarize()
            link(chosen(0, "brc"), sectors, binarize.i)
            link(chosen(0, "brc"), binarize.o, given, data=binarize.o.payload.bits, count=1,
                 last=binarize.o.payload.last)
            link(chosen(1, "brc"), rows, unbinarize.i, bits=rows.payload.data[0][:8], last=rows.payload.last)
            link(chosen(1, "brc"), unbinarize.o, results)
        raw = chosen(1, "raw")
        if "raw" in modes:
            link(chosen(0, "raw"), sectors, given, **self._bytes(sectors, 32))
            link(raw, rows, results)
        if "zvc" in modes:
            link(chosen(0, "zvc"), sectors, zvc32.i)
            link(chosen(1, "zvc"), zvc32.o, results)

        # ---------------------------------------------------------------------------------------------- sectors
        # Compressing, the sectors are counted; decompressing in a mode that has no coder, the rows of the unpacker.
        fetched, direct, compresses = Signal(), chosen(1, "raw", "sfpr", "brc"), chosen(0, *MODES)
        m.d.comb += [
            control.counted.eq((sectors.valid & sectors.ready) | fetched),
            sectors.valid.eq(self.sectors_i.valid & control.more & compresses),
            self.sectors_i.ready.eq(sectors.ready & control.more & compresses),
            sectors.payload.data.eq(self.sectors_i.payload),
            sectors.payload.last.eq(control.final),
            taken.payload.last.eq(control.final),
            self.sectors_o.valid.eq(results.valid),
            results.ready.eq(self.sectors_o.ready),
            self.sectors_o.payload.eq(results.payload.data),
            control.done.eq(Mux(config.decompress, results.valid & results.ready & results.payload.last,
                                self.bytes_o.valid & self.bytes_o.ready & self.bytes_o.payload.last)),
        ]
        for k in range(8):
            word = Cat(shown[4 * k + j] for j in range(4)) if "raw" in modes else Const(0, 32)
            m.d.comb += taken.payload.data[k].eq(Mux(raw, word, shown[k]))
        link(direct, taken, restored)
        # A register between what takes a row out of a shifter or a buffer and what SFPR does before its first one.
        pipe = Pipeline(m, restored, rows)
        *row_words, row_last = pipe.stage(*restored.payload.data, restored.payload.last)
        pipe.finish()
        m.d.comb += [target.eq(word) for target, word in zip(rows.payload.data, row_words, strict=True)]
        m.d.comb += rows.payload.last.eq(row_last)

        # ----------------------------------------------------------------------------------- the compressed side
        for compresses_so, _, coder in coders:
            chunks = coder.chunks.payload
            link(compresses_so, coder.chunks, given, data=Value.cast(chunks.data), count=chunks.count, last=chunks.last)
            m.d.comb += [coder.decompress.eq(config.decompress), coder.straight.eq(config.mode != MODES["jpeg-act"])]
        coders = [(decompresses_so, coder) for _, decompresses_so, coder in coders]
        if self.packed:
            take = Mux(raw, 32, Mux(chosen(1, "brc"), 1, 8))
            feed.unpack(m, self.bytes_i, unpacker, control, coders, taken, direct, take, fetched)
        else:
            feed.pass_rows(m, self.rows_i, shown, control, coders, taken, direct, fetched)
        links.finish()
        return m

    @staticmethod
    def _bytes(source, count):
        """The fields of a chunk of ``count`` bytes: the low bits of a row's lanes, one after the other."""
        row = Cat(Value.cast(source.payload.data[k])[: count] for k in range(8))
        return {"data": row, "count": count, "last": source.payload.last}
