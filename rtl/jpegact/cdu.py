"""The compression/decompression unit: sectors of float32 on one side, a byte stream on the other."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.common.packer import Packer, chunk
from rtl.common.pipeline import Pipeline
from rtl.common.skid import Skid
from rtl.common.unpacker import Unpacker
from rtl.common.vectors import vectors, words
from rtl.gist.binarize import Binarize, Unbinarize
from rtl.jpegact.align import Align
from rtl.jpegact.config import MODES, Config, Error
from rtl.jpegact.dct import Dct
from rtl.jpegact.quantize import Shift
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
    it has 16 bytes, 32 in raw and zvc):

    ==========  ===  ====  ========  ===  ==========================  ===
    mode        raw  sfpr  sfpr-zvc  brc  jpeg-act, layout 0 / 1 / 2  zvc
    compress      2     7        17   18                48 / 55 / 69   11
    decompress    2     6        15    2                40 / 48 / 64    3
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
        config = Signal(Config, reset_less=True)
        start = Signal()  # a pulse, while the configuration already stands
        done = Signal()  # a pulse with the last transfer of the tensor
        running = Signal()
        compress, decompress = Signal(), Signal()
        m.d.comb += [compress.eq(running & ~config.decompress), decompress.eq(running & config.decompress)]

        def mode(*names):
            """Whether the tensor's mode is one of ``names`` (those that this unit does not have never are)."""
            chosen = [config.mode == MODES[name] for name in names if name in modes]
            return Cat(chosen).any() if chosen else Const(0, 1)

        def link(when, source, sink, *pairs):
            """Connects two streams while ``when`` holds. ``pairs`` are (target, value) of the payload; without any,
            the data go lane by lane (low bits to low bits) and ``last`` with them."""
            if not pairs:
                pairs = [(sink.payload.data[k], source.payload.data[k]) for k in range(8)]
                pairs += [(sink.payload.last, source.payload.last)]
            with m.If(when):
                m.d.comb += [sink.valid.eq(source.valid), source.ready.eq(sink.ready)]
                m.d.comb += [target.eq(value) for target, value in pairs]

        # Inner streams: sectors that were counted; rows taken from the unpacker, counted too, and a cycle later; what
        # is to leave as sectors.
        sectors, taken, rows, results = (stream.Signature(words).create(path=[name])
                                         for name in ("sectors", "taken", "rows", "results"))

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
        coders = []
        if modes & {"sfpr-zvc", "jpeg-act"}:
            m.submodules.zvc8 = zvc8 = Zvc(1, self.packed)
            coders.append((mode("sfpr-zvc", "jpeg-act"), zvc8))
        if "zvc" in modes:
            m.submodules.zvc32 = zvc32 = Zvc(4, self.packed)
            coders.append((mode("zvc"), zvc32))

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
            link(compress & mode(*SCALED), sectors, operands)
            link(decompress, sfpr.o, results)
            link(decompress & mode("sfpr"), rows, operands)
            link(compress & mode("sfpr"), sfpr.o, given, *self._bytes(given, sfpr.o, 8))
        if modes & {"sfpr-zvc", "jpeg-act"}:
            # SFPR and ZVC, and likewise SH and the DCT, follow each other one way in one direction and the other way in
            # the other: without a register on the way, their chains of `ready` would close to rings.
            m.submodules.skid = skid = Skid(vectors(signed(12 if "jpeg-act" in modes else 8)))
            link(compress, skid.o, zvc8.i)
        if "sfpr-zvc" in modes:
            link(compress & mode("sfpr-zvc"), sfpr.o, skid.i)
            link(decompress & mode("sfpr-zvc"), zvc8.o, operands)
        if "jpeg-act" in modes:
            m.submodules.align = align = Align()
            m.submodules.dct = dct = Dct()
            m.submodules.shift = shift = Shift()
            m.d.comb += [align.decompress.eq(config.decompress), align.layout.eq(config.layout),
                         align.blocks.eq(config.blocks), align.start.eq(start & mode("jpeg-act")),
                         dct.inverse.eq(config.decompress), shift.decompress.eq(config.decompress),
                         shift.table.eq(config.table)]
            link(mode("jpeg-act"), shift.o, skid.i)
            for source, sink in ((sfpr.o, align.i), (align.o, dct.i), (dct.o, shift.i)):
                link(compress & mode("jpeg-act"), source, sink)
            for source, sink in ((zvc8.o, shift.i), (skid.o, dct.i), (dct.o, align.i), (align.o, operands)):
                link(decompress & mode("jpeg-act"), source, sink)
        if "brc" in modes:
            m.submodules.binarize = binarize = Binarize()
            m.submodules.unbinarize = unbinarize = Unbinarize()
            bits = [(unbinarize.i.payload.bits, rows.payload.data[0][:8]),
                    (unbinarize.i.payload.last, rows.payload.last)]
            link(compress & mode("brc"), sectors, binarize.i)
            link(compress & mode("brc"), binarize.o, given, (given.payload.data[0], binarize.o.payload.bits),
                 (given.payload.count, 1), (given.payload.last, binarize.o.payload.last))
            link(decompress & mode("brc"), rows, unbinarize.i, *bits)
            link(decompress & mode("brc"), unbinarize.o, results)
        if "raw" in modes:
            link(compress & mode("raw"), sectors, given, *self._bytes(given, sectors, 32))
            link(decompress & mode("raw"), rows, results)
        if "zvc" in modes:
            link(compress & mode("zvc"), sectors, zvc32.i)
            link(decompress & mode("zvc"), zvc32.o, results)

        # ----------------------------------------------------------------------------------- the compressed side
        for chosen, coder in coders:
            chunks = coder.chunks.payload
            link(compress & chosen, coder.chunks, given, (given.payload.data, Value.cast(chunks.data)),
                 (given.payload.count, chunks.count), (given.payload.last, chunks.last))
            m.d.comb += [coder.decompress.eq(config.decompress), coder.straight.eq(~mode("jpeg-act"))]
            if self.packed:
                m.d.comb += [coder.blocks.eq(config.blocks), coder.start.eq(start & config.decompress & chosen),
                             Value.cast(coder.bytes.payload.data).eq(Value.cast(unpacker.o.payload.data)),
                             coder.bytes.payload.short.eq(unpacker.o.payload.short)]
                with m.If(decompress & chosen):
                    m.d.comb += [coder.bytes.valid.eq(unpacker.o.valid), unpacker.o.ready.eq(coder.bytes.ready),
                                 unpacker.take.eq(coder.take)]

        # --------------------------------------------------------------------------------------------- control
        # Compressing, the sectors are counted; decompressing in a mode that has no coder, the rows of the unpacker.
        more, final, counted, fetched = Signal(), Signal(), Signal(), Signal()
        row, blocks, last_block = Signal(3), Signal(32, reset_less=True), Signal(reset_less=True)
        direct = decompress & mode("raw", "sfpr", "brc")
        m.d.comb += [
            final.eq(last_block & (row == 7)),
            counted.eq((sectors.valid & sectors.ready) | fetched),
            sectors.valid.eq(self.sectors_i.valid & more & compress),
            self.sectors_i.ready.eq(sectors.ready & more & compress),
            sectors.payload.data.eq(self.sectors_i.payload),
            sectors.payload.last.eq(final),
            taken.payload.last.eq(final),
            self.sectors_o.valid.eq(results.valid),
            results.ready.eq(self.sectors_o.ready),
            self.sectors_o.payload.eq(results.payload.data),
        ]
        for k in range(8):
            word = Cat(shown[4 * k + j] for j in range(4)) if "raw" in modes else Const(0, 32)
            m.d.comb += taken.payload.data[k].eq(Mux(mode("raw"), word, shown[k]))
        # A register between the unpacker's shifter and what SFPR does with a row before its first one.
        pipe = Pipeline(m, taken, rows)
        *row_words, row_last = pipe.stage(*taken.payload.data, taken.payload.last)
        pipe.finish()
        m.d.comb += [target.eq(word) for target, word in zip(rows.payload.data, row_words, strict=True)]
        m.d.comb += rows.payload.last.eq(row_last)
        with m.If(start):
            m.d.sync += [row.eq(0), blocks.eq(config.blocks), last_block.eq(config.blocks == 1), more.eq(1)]
        with m.Elif(counted):
            m.d.sync += row.eq(row + 1)
            with m.If(row == 7):
                m.d.sync += [blocks.eq(blocks - 1), last_block.eq(blocks == 2), more.eq(~last_block)]

        m.d.comb += done.eq(Mux(config.decompress, results.valid & results.ready & results.payload.last,
                                self.bytes_o.valid & self.bytes_o.ready & self.bytes_o.payload.last))
        # The compressed side gives while `feeding`, is told of the tensor's end by `closing`, and drops what is `left`.
        feeding, closing, dropping, short, excess, left = (
            Signal(name=name) for name in ("feeding", "closing", "dropping", "short", "excess", "left"))
        if self.packed:
            m.d.comb += [
                unpacker.i.payload.eq(self.bytes_i.payload),
                unpacker.i.valid.eq(self.bytes_i.valid & (feeding | left)),
                self.bytes_i.ready.eq(unpacker.i.ready & (feeding | left)),
                unpacker.next.eq(closing),
                excess.eq(unpacker.excess),
                left.eq(unpacker.discarding),
                taken.valid.eq(unpacker.o.valid & more & direct),
                fetched.eq(taken.valid & taken.ready),
                short.eq(Cat(fetched & unpacker.o.payload.short, *[chosen & coder.error for chosen, coder in coders]
                             ).any()),
            ]
            with m.If(direct):
                m.d.comb += [unpacker.o.ready.eq(taken.ready & more),
                             unpacker.take.eq(Mux(mode("raw"), 32, Mux(mode("brc"), 1, 8)))]
        else:
            # Once the stream has ended, `left` falls, and rows of zeros follow.
            row_i, valid, ready, absent = self.rows_i.payload, Signal(), Signal(), Signal()
            m.d.comb += [
                absent.eq(~left | (row_i.last & ~final)),
                valid.eq(feeding & more & (self.rows_i.valid | ~left)),
                fetched.eq(valid & ready),
                self.rows_i.ready.eq(left & ((feeding & more & ready) | dropping)),
                shown.as_value().eq(Mux(absent, 0, row_i.data.as_value())),
                short.eq(fetched & absent),
                excess.eq(left),
            ]
            for chosen, sink in [(direct, taken)] + [(decompress & chosen, coder.rows) for chosen, coder in coders]:
                with m.If(chosen):
                    m.d.comb += [sink.valid.eq(valid), ready.eq(sink.ready)]
            for _, coder in coders:
                m.d.comb += [Value.cast(coder.rows.payload.data).eq(Value.cast(row_i.data)),
                             coder.rows.payload.mask.eq(Mux(absent, 0, row_i.mask)),
                             coder.rows.payload.last.eq(final)]
            with m.If(start):
                m.d.sync += left.eq(config.decompress)
            with m.Elif(self.rows_i.valid & self.rows_i.ready & row_i.last):
                m.d.sync += left.eq(0)
        with m.If(decompress & short):
            m.d.sync += self.error.short.eq(1)
        with m.FSM():
            with m.State("idle"):
                m.d.comb += self.config.ready.eq(1)
                m.d.sync += config.eq(self.config.payload)
                with m.If(self.config.valid):
                    m.d.sync += self.error.eq(0)
                    m.next = "start"
            with m.State("start"):
                m.d.comb += self.busy.eq(1)
                layout = (config.layout == 3) | ((config.layout == 1) & config.blocks[0])
                with m.If((config.blocks == 0) | ~mode(*self.modes) | (mode("jpeg-act") & layout)):
                    m.d.sync += self.error.config.eq(1)
                    m.next = "idle"
                with m.Else():
                    m.d.comb += start.eq(1)
                    m.next = "run"
            with m.State("run"):
                m.d.comb += [self.busy.eq(1), running.eq(1), feeding.eq(config.decompress)]
                # Without a packer, SFPR has yet to count the values of the row that has just left.
                with m.If(done):
                    m.next = "close"
                    if self.packed:
                        with m.If(~config.decompress):
                            m.next = "idle"
            with m.State("close"):
                # A stream that is too long goes on being taken, and thrown away, until its `last`.
                m.d.comb += [self.busy.eq(1), closing.eq(1)]
                m.d.sync += self.error.excess.eq(excess & ~self.error.short)
                m.next = "drain"
            with m.State("drain"):
                m.d.comb += [self.busy.eq(1), dropping.eq(1)]
                with m.If(~left):
                    m.next = "idle"
        return m

    @staticmethod
    def _bytes(sink, source, count):
        """The payload of a chunk of ``count`` bytes: the low bits of a row's lanes, one after the other."""
        row = Cat(Value.cast(source.payload.data[k])[: count] for k in range(8))
        return [(sink.payload.data, row), (sink.payload.count, count),
                (sink.payload.last, source.payload.last)]
