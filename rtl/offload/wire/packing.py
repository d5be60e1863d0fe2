"""A codec of rows with a byte stream: what stands around it where there is neither collector nor splitter."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring

from actcodec.rtl.common.packer import Packer
from actcodec.rtl.common.skid import skidded
from actcodec.rtl.common.target import target
from actcodec.rtl.common.unpacker import Unpacker
from actcodec.rtl.offload.wire.row_cutter import RowCutter, beat_size, window_size

__all__ = ["packed"]


def packed(ports, cdu, platform):
    """The module of ``ports``, a component whose compressed side is ``bytes_i`` and ``bytes_o``, streams of full beats,
    around ``cdu``, which has ``rows_i`` and chunks in their places and is like it otherwise.

    Compressing, a packer fills the beats. Decompressing, an unpacker and a
    :class:`~actcodec.rtl.offload.wire.row_cutter.RowCutter` give exactly the rows that the tensor has, and throw away
    what follows: whether the stream fits the tensor is found here. A tensor may start when all of the one before has
    left.
    """
    m = Module()
    m.submodules.cdu = cdu
    modes, most, beat = cdu.modes, window_size(cdu.modes), beat_size(cdu.modes)
    granule = 4 if all(mode.format.row == 32 for mode in modes) else 1
    m.submodules.packer = packer = Packer(granule, cdu.width, beat)
    m.submodules.unpacker = unpacker = Unpacker(granule, beat, most)
    m.submodules.cutter = cutter = RowCutter(modes)
    wiring.connect(m, packer.o, wiring.flipped(ports.bytes_o))
    wiring.connect(m, unpacker.o, cutter.bytes)
    rows = cutter.o
    lut = target(platform) == "lut"
    if granule == 1 or lut:  # the CDU's ready is late, except where rows of 32 bytes pass ZVD alone
        rows = skidded(m, "rows", rows, half=not lut)
    wiring.connect(m, rows, cdu.rows_i)
    wiring.connect(m, wiring.flipped(ports.sectors_i), cdu.sectors_i)
    wiring.connect(m, cdu.sectors_o, wiring.flipped(ports.sectors_o))
    if cdu.scaled:
        wiring.connect(m, wiring.flipped(ports.scales), cdu.scales)
        m.d.comb += [ports.nans.eq(cdu.nans), ports.saturated.eq(cdu.saturated)]

    config = ports.config
    # Nothing is left of the tensor before; a tensor has come, and the CDU has yet to accept it.
    idle, started = Signal(), Signal()
    leaves = Signal()  # chunks have come, and the last beat has not left
    short, excess, closes = Signal(), Signal(), Signal()  # closes: the last row has been taken in the last cycle
    m.d.comb += [
        idle.eq(~leaves & ~unpacker.discarding),
        cdu.config.p.eq(config.p),
        cdu.config.valid.eq(config.valid & idle),
        config.ready.eq(cdu.config.ready & idle),
        ports.busy.eq(cdu.busy | ~idle),
        ports.error.eq(cdu.error),
        ports.error.short.eq(short),
        ports.error.excess.eq(excess),
        cutter.mode.eq(config.p.mode),
        cutter.blocks.eq(config.p.blocks),
        cutter.stop.eq(~cdu.busy),  # as when it refuses one
        cutter.start.eq(config.valid & config.ready & config.p.decompress),
        packer.i.p.eq(cdu.bytes_o.p),
        packer.i.valid.eq(cdu.bytes_o.valid),
        cdu.bytes_o.ready.eq(packer.i.ready),
        unpacker.take.eq(cutter.take),
        unpacker.i.p.eq(ports.bytes_i.p),
        unpacker.next.eq(closes),
    ]
    # Beats are taken when the CDU has accepted the tensor, and those that are left of a stream to its end.
    admitted = (cutter.active & cdu.busy & ~started) | unpacker.discarding
    m.d.comb += [unpacker.i.valid.eq(ports.bytes_i.valid & admitted),
                 ports.bytes_i.ready.eq(unpacker.i.ready & admitted)]
    if lut:
        checked = Signal()
        m.d.sync += [checked.eq(cutter.start), started.eq(cutter.start | checked)]
    else:
        m.d.sync += started.eq(cutter.start)
    m.d.sync += [closes.eq(cutter.o.valid & cutter.o.ready & cutter.o.p.last)]
    with m.If(cutter.short):
        m.d.sync += short.eq(1)
    with m.If(closes):
        m.d.sync += excess.eq(unpacker.excess & ~short)
    with m.If(config.valid & config.ready):
        m.d.sync += [short.eq(0), excess.eq(0)]
    with m.If(cdu.bytes_o.valid):
        m.d.sync += leaves.eq(1)
    with m.If(ports.bytes_o.valid & ports.bytes_o.ready & ports.bytes_o.p.last):
        m.d.sync += leaves.eq(0)
    return m
