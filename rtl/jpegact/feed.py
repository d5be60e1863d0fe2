"""The compressed side of a CDU that decompresses: what it gives to the decoders, and to those who need none.

Both functions connect the stream ``i`` with ``coders``, pairs of (a register that chooses it, the coder), and with
``taken``, the stream of rows that ``direct`` chooses. ``fetched`` becomes a pulse with each row that is to be counted.
They tell ``control`` of a stream that is too short, or not yet through.
"""

from amaranth.hdl import Cat, Mux, Signal, Value

__all__ = ["pass_rows", "unpack"]


def unpack(m, i, unpacker, control, coders, taken, direct, take, fetched):
    """From a stream of bytes, ``i``. Who has no decoder takes ``take`` bytes a row."""
    # The compressed side gives while `feeding`, is told of the tensor's end by `closing`, and drops what is `left`.
    admitted = control.feeding | control.left
    m.d.comb += [
        unpacker.i.p.eq(i.p),
        unpacker.i.valid.eq(i.valid & admitted),
        i.ready.eq(unpacker.i.ready & admitted),
        unpacker.next.eq(control.closing),
        control.excess.eq(unpacker.excess),
        control.left.eq(unpacker.discarding),
        taken.valid.eq(unpacker.o.valid & control.more & direct),
        fetched.eq(taken.valid & taken.ready),
        control.short.eq(Cat(fetched & unpacker.o.p.short,
                             *[chosen & coder.error for chosen, coder in coders]).any()),
    ]
    with m.If(direct):
        m.d.comb += [unpacker.o.ready.eq(taken.ready & control.more), unpacker.take.eq(take)]
    for chosen, coder in coders:
        m.d.comb += [coder.blocks.eq(control.tensor.blocks), coder.start.eq(control.start),
                     Value.cast(coder.bytes.p.data).eq(Value.cast(unpacker.o.p.data)),
                     coder.bytes.p.short.eq(unpacker.o.p.short)]
        with m.If(chosen):
            m.d.comb += [coder.bytes.valid.eq(unpacker.o.valid), unpacker.o.ready.eq(coder.bytes.ready),
                         unpacker.take.eq(coder.take)]


def pass_rows(m, i, shown, control, coders, taken, direct, fetched):
    """From rows, ``i``; ``shown`` becomes their data. Once the stream has ended, ``left`` falls, and zeros follow."""
    row, valid, ready, absent = i.p, Signal(), Signal(), Signal()
    m.d.comb += [
        absent.eq(~control.left | (row.last & ~control.final)),
        valid.eq(control.feeding & control.more & (i.valid | ~control.left)),
        fetched.eq(valid & ready),
        i.ready.eq(control.left & ((control.feeding & control.more & ready) | control.dropping)),
        shown.as_value().eq(Mux(absent, 0, row.data.as_value())),
        control.short.eq(fetched & absent),
        control.excess.eq(control.left),
    ]
    for chosen, sink in [(direct, taken), *((chosen, coder.rows) for chosen, coder in coders)]:
        with m.If(chosen):
            m.d.comb += [sink.valid.eq(valid), ready.eq(sink.ready)]
    for _, coder in coders:
        m.d.comb += [Value.cast(coder.rows.p.data).eq(Value.cast(row.data)),
                     coder.rows.p.mask.eq(row.mask), coder.empty.eq(absent),
                     coder.rows.p.last.eq(control.final)]
    with m.If(control.start):
        m.d.sync += control.left.eq(control.tensor.decompress)
    with m.Elif(i.valid & i.ready & row.last):
        m.d.sync += control.left.eq(0)
