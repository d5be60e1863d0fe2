"""The compression/decompression unit: sectors of float32 on one side, a byte stream on the other."""

from importlib import import_module
from itertools import pairwise

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.packer import chunk_layout
from actcodec.rtl.common.pipeline import Pipeline
from actcodec.rtl.common.stream_mux import StreamMux
from actcodec.rtl.common.vectors import words
from actcodec.rtl.jpegact.control import Control
from actcodec.rtl.jpegact.feed import pass_rows
from actcodec.rtl.jpegact.runlength import check_coders
from actcodec.rtl.offload.control.config import Chosen, Error, check_blocks, config_layout, limited, rows_layout
from actcodec.rtl.offload.control.stage import Hop, StageContext
from actcodec.rtl.offload.wire.block_format import MASK
from actcodec.rtl.offload.wire.packing import packed
from actcodec.rtl.offload.wire.row_cutter import beat_size

__all__ = ["Cdu"]


class Cdu(wiring.Component):
    """One CDU of JPEG-ACT: compresses or decompresses one tensor (or its share of one) at a time.

    A transfer at ``config`` starts a tensor; the unit takes the next one when ``busy`` has fallen. Compressing, it
    takes 8 sectors a block at ``sectors_i`` and gives the payload at ``bytes_o``; decompressing, it takes the payload
    at ``bytes_i`` and gives 8 sectors a block at ``sectors_o``. In the modes that scale, one word of ``scales`` goes
    with each sector, in the order of sectors::

        compress    sectors_i -> SFPR -> align -> DCT -> SH -> ZVC -> packer -> bytes_o
        decompress  sectors_o <- SFPR <- align <- iDCT <- SH <- ZVD <- unpacker <- bytes_i

    A mode is the list of the units that a tensor passes (:mod:`~actcodec.rtl.jpegact.path` has those of JPEG-ACT), and
    one loop links them, one way to compress and the other way back. Both directions, and modes that pass the same unit,
    share it. Hardware for a mode that was not asked for does not exist.

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

    Without packer and unpacker, jpeg-base compresses with 45 / 52 / 66 cycles and one for each code of the first block,
    and decompresses in layout 0 with 33 and these; in the others a group's longest block counts. Its rate is that of
    :class:`~actcodec.rtl.jpegact.runlength.RunLength`.

    Source: JPEG-ACT, section III-A, Figure 8; Table II for the modes.

    Parameters
    ----------
    modes : tuple
        What it can do (see :func:`~actcodec.rtl.offload.control.config.check_modes`). A mode has a ``path``, names of
        functions ("package.module:name") as in :mod:`~actcodec.rtl.jpegact.path`; says whether it is ``scaled``, and
        ``tiled``; has the ``settings`` that these ask the :class:`~actcodec.rtl.offload.control.stage.StageContext`
        for.
    packed : bool
        False: neither packer nor unpacker; a compressed block is always eight chunks, or eight rows, for a collector
        and a splitter, which know where it ends. Blocks that are counted or have halves or segments
        (:mod:`~actcodec.rtl.offload.wire.block_format`) need that.
    coders : int
        Coders of JPEG's codes in mode jpeg-base, 1 to 8, of one symbol per cycle each.
    codes : bool
        SFPR can be passed by, through a register of bytes, in modes that allow it; only if not ``packed``.

    Ports
    -----
    config : stream of :func:`~actcodec.rtl.offload.control.config.config_layout`
    scales : stream of float32 words, only with modes that scale
        k when compressing (a bfloat16 in the upper half; with blocks of segments another number in the low byte), r
        when decompressing.
    sectors_i, sectors_o : stream of 8 float32 words
    bytes_i, bytes_o : stream of :func:`chunk_layout` of ``width`` bytes
        Full beats; the one that carries ``last`` holds 1 to ``width`` bytes. If not ``packed``, there is no
        ``bytes_i``, and ``bytes_o`` has eight chunks a block, the mask in the first one, others as long as a row at
        most; those of a counted block have up to 16 bytes each, or a row's, the first of them a byte more.
    rows_i : stream of :func:`~actcodec.rtl.offload.control.config.rows_layout`, only if not ``packed``
        Eight a block. A row that carries ``last`` too early means nothing, and ends the stream.
    busy : output
        A tensor is under way.
    error : output, :class:`Error`
    nans, saturated : output, 32 bits, only with modes that scale, or whose blocks have halves
        Values of this tensor that were no number, or beyond what the mode can express, when it was compressed.
    clipped : output, only with modes whose blocks have segments
        When it was compressed, some codes could not reach their values.
    codes : input, only with the parameter ``codes``, and modes that have such tensors
        Sectors are SFPR's codes, in the low bytes of their words, and come back as these: no scale passes. It takes two
        or three cycles less. Stands from before the transfer at ``config`` until ``busy`` falls.
    refused : output, only if not ``packed``, with modes whose settings have limits
        While not ``busy``: what stood at ``config`` in the cycle before has a setting beyond its limits.

    Raises
    ------
    ValueError
        If ``modes`` are not such of a lane, with blocks, or blocks that are counted or have halves or segments are to
        be packed, or ``codes``; if ``coders`` is not 1 to 8.
    """

    def __init__(self, modes, packed=True, coders=4, codes=False):
        check_blocks(modes)
        check_coders(coders)
        for kind in ("counted", "halved", "segmented"):
            if packed and any(getattr(mode.format, kind) for mode in modes):
                raise ValueError(f"packed must be False for modes with {kind} blocks, not True")
        if packed and codes:
            raise ValueError("packed must be False with codes, not True")
        self.modes = tuple(modes)
        self.packed, self.coders = bool(packed), coders
        self.row = row = max(8, *(mode.format.row for mode in modes))
        # Bytes of a beat at the compressed side: the longest row, and what is in front of it.
        self.width = beat_size(modes) if packed else max(MASK + row, *(mode.format.head + 8 for mode in modes))
        halves = any(mode.format.halves for mode in modes)
        self.scaled, self.segmented = any(mode.scaled for mode in modes), any(mode.format.segmented for mode in modes)
        sector = data.ArrayLayout(32, 8)
        ports = {
            "config": In(stream.Signature(config_layout(modes))),
            "sectors_i": In(stream.Signature(sector)),
            "sectors_o": Out(stream.Signature(sector)),
            **({"bytes_i": In(stream.Signature(chunk_layout(self.width)))} if packed
               else {"rows_i": In(stream.Signature(rows_layout(row, halves)))}),
            "bytes_o": Out(stream.Signature(chunk_layout(self.width))),
            "busy": Out(1),
            "error": Out(Error),
        }
        if self.scaled:
            ports |= {"scales": In(stream.Signature(32))}
        if self.scaled or any(mode.format.halved for mode in modes):
            ports |= {"nans": Out(32), "saturated": Out(32)}
        if self.segmented:
            ports |= {"clipped": Out(1)}
        if codes and any(mode.codes for mode in modes):
            ports |= {"codes": In(1)}
        if limited(modes) and not packed:
            ports |= {"refused": Out(1)}
        super().__init__(ports)

    def elaborate(self, platform):
        """A mode is a list of stages, so a link between two ports is asked for once per mode and direction. The trick
        is to collect all of them first, in ``links``: equal links merge into one, with the set of directions and modes
        that use it, and ``chosen`` turns each distinct set into one register, which is set when a tensor starts. The
        multiplexers come last, with one select bit for each distinct link instead of a comparison of the mode for
        each."""

        if self.packed:
            return packed(self, Cdu(self.modes, packed=False, coders=self.coders), platform)
        m = Module()
        m.submodules.control = control = Control(self.modes)
        tensor, start = control.tensor, control.start
        wiring.connect(m, wiring.flipped(self.config), control.config)
        m.d.comb += [self.busy.eq(control.busy), self.error.eq(control.error)]
        if hasattr(self, "refused"):
            m.d.comb += self.refused.eq(control.refused)
        is_mode = Chosen(self.modes, tensor.mode)
        context = StageContext(m, self, tensor, start, is_mode(lambda mode: mode.tiled), platform)
        registers = {}

        def chosen(*tensors):
            """A register: one of ``tensors``, pairs of a direction and a mode, has started. What is chosen stands until
            the next tensor starts."""
            modes_by_direction = {way: [mode for back, mode in tensors if back == way] for way in (0, 1)}
            key = tuple(tuple(mode.code for mode in self.modes if mode in modes_by_direction[way]) for way in (0, 1))
            if not any(key):
                return Const(0, 1)
            if key not in registers:
                registers[key] = Signal(name=f"chosen_{len(registers)}", reset_less=True)  # before, nothing is linked
                with m.If(start):
                    m.d.sync += registers[key].eq(Cat(
                        (tensor.decompress == way) & is_mode(lambda mode, way=way: mode in modes_by_direction[way])
                        for way in (0, 1) if modes_by_direction[way]).any())
            return registers[key]

        # Inner streams: sectors that were counted; rows from the compressed side that no coder decodes, counted too;
        # all rows that become sectors, and a cycle later; what is to leave as sectors.
        names = ("sectors", "raw_rows", "restored", "rows", "results")
        sectors, raw_rows, restored, behind, results = (
            stream.Signature(words).create(path=[name]) for name in names)
        leaving = stream.Signature(chunk_layout(self.width)).create(path=["leaving"])
        content = Signal(data.ArrayLayout(8, self.row), name="content")
        wiring.connect(m, leaving, wiring.flipped(self.bytes_o))

        # ------------------------------------------------------------------------------------- a path for each mode
        links = {}  # (source, sink, fields) -> these, and whose way it is, as pairs of a direction and a mode
        coders = {}  # coder -> modes, and what their stages do to its rows' heads
        malformed = {}

        def link(way, mode, source, sink, fields=None, key=None):
            links.setdefault((id(source), id(sink), fields or key), (source, sink, fields, []))[3].append((way, mode))

        for mode_, path_ in zip(self.modes, self._paths(context, is_mode), strict=True):
            path = path_
            hops = [stage.compress for stage in path if stage.compress]
            for source, sink, fields in (inner for stage in path for inner in stage.inner):
                link(0, mode_, source, sink, fields)
                link(1, mode_, source, sink, fields)
            for before, after in pairwise([Hop(None, sectors), *hops]):
                link(0, mode_, before.source, after.sink, after.fields)
            last, source = path[-1] if path else None, hops[-1].source if hops else sectors
            link(0, mode_, source, leaving, self._chunk(last, mode_.format), key=(mode_.format.row, last is None))

            source = raw_rows
            if path and path[-1].coder:
                _, modes, heads = coders.setdefault(id(path[-1].coder), (path[-1].coder, [], []))
                modes.append(mode_)
                heads += [path[-1].head] if path[-1].head else []
                source = path[-1].decompress.source
                path = path[:-1]
            elif not any(stage.registered for stage in path):
                link(1, mode_, raw_rows, restored)
                source = behind
            for stage in reversed(path):
                if stage.registered:
                    link(1, mode_, source, restored)
                    source = behind
                if stage.decompress:
                    link(1, mode_, source, stage.decompress.sink, stage.decompress.fields)
                    source = stage.decompress.source
            link(1, mode_, source, results)
            malformed |= {id(stage.malformed): stage.malformed for stage in path_ if stage.malformed is not None}
        if hasattr(self, "nans"):
            m.d.comb += [port.eq(number)
                         for port, number in zip((self.nans, self.saturated), context.counts, strict=True)]
        m.d.comb += control.malformed.eq(Cat(malformed.values()).any())
        mux = StreamMux(m, platform, [restored, *context.uncut])  # a register follows the former
        for source, sink, fields, tensors in links.values():
            mux.link(chosen(*tensors), source, sink, **(fields(source.p) if fields else {}))
        mux.finish()

        def backwards(holds):
            return chosen(*((1, mode) for mode in self.modes if holds(mode)))

        coded = [mode for _, modes, _ in coders.values() for mode in modes]
        direct = backwards(lambda mode: mode not in coded)
        rows = sorted({mode.format.row for mode in self.modes if mode not in coded and mode.format.row > 8})
        wide = [(row, backwards(lambda mode, row=row: mode not in coded and mode.format.row == row)) for row in rows]

        # ---------------------------------------------------------------------------------------------- sectors
        # Compressing, the sectors are counted; decompressing in a mode that has no coder, the rows of the unpacker.
        fetched, compresses = Signal(), chosen(*((0, mode) for mode in self.modes))
        m.d.comb += [
            control.counted.eq((sectors.valid & sectors.ready) | fetched),
            sectors.valid.eq(self.sectors_i.valid & control.more & compresses),
            self.sectors_i.ready.eq(sectors.ready & control.more & compresses),
            sectors.p.data.eq(self.sectors_i.p),
            sectors.p.last.eq(control.last),
            raw_rows.p.last.eq(control.last),
            self.sectors_o.valid.eq(results.valid),
            results.ready.eq(self.sectors_o.ready),
            self.sectors_o.p.eq(results.p.data),
            control.done.eq(Mux(tensor.decompress, results.valid & results.ready & results.p.last,
                                self.bytes_o.valid & self.bytes_o.ready & self.bytes_o.p.last)),
        ]
        for k in range(8):
            word = content[k]  # a lane of a row of up to 8 bytes is a byte, of a longer one it is as wide as it can be
            for row, chosen_ in wide:
                word = Mux(chosen_, Value.cast(content)[row * k :][:row], word)
            m.d.comb += raw_rows.p.data[k].eq(word)
        # A register between what takes a row out of a shifter or a buffer and what SFPR does before its first one.
        pipe = Pipeline(m, restored, behind)
        *row_words, row_last = pipe.stage(*restored.p.data, restored.p.last)
        pipe.finish()
        m.d.comb += [target.eq(word) for target, word in zip(behind.p.data, row_words, strict=True)]
        m.d.comb += behind.p.last.eq(row_last)

        # ----------------------------------------------------------------------------------- the compressed side
        decoders = [(chosen(*((1, mode) for mode in modes)), coder, heads[0] if heads else None)
                    for coder, modes, heads in coders.values()]
        pass_rows(m, self.rows_i, content, control, decoders, raw_rows, direct, fetched, platform)
        return m

    def _paths(self, context, is_mode):
        """The stages of each mode."""
        instances = {}
        for name in dict.fromkeys(name for mode in self.modes for name in mode.path):
            module, _, function = name.partition(":")
            context.passing = tuple(mode for mode in self.modes if name in mode.path)
            stages = getattr(import_module(module), function)(context, is_mode(lambda mode: mode in context.passing))
            instances[name] = stages if isinstance(stages, tuple) else (stages,)
        return [[stage for name in mode.path for stage in instances[name]] for mode in self.modes]

    @staticmethod
    def _chunk(stage, format):
        """The function from the payload of a path's last stage to the fields of a chunk."""
        if stage and stage.coder:
            return _whole_chunk
        return stage.chunk if stage and stage.chunk else _row(format.row)


def _whole_chunk(chunk):
    return {"data": Value.cast(chunk.data), "count": chunk.count, "last": chunk.last}


def _row(bits):
    """The low bits of a row's lanes, one after the other: 8 lanes have as many bytes as bits of a lane."""
    return lambda row: {"data": Cat(Value.cast(word)[:bits] for word in row.data), "count": bits, "last": row.last}

