"""The compressed side of a CDU that decompresses: what it gives to the decoders, and to those who need none."""

from types import SimpleNamespace

from amaranth.hdl import Mux, Signal, Value
from amaranth.lib import data

from actcodec.rtl.common.skid import Skid
from actcodec.rtl.common.target import target

__all__ = ["pass_rows"]


def pass_rows(m, i, content, control, coders, raw_rows, direct, fetched, platform):
    """Connects the stream of rows ``i`` with ``coders``, triples of (a register that chooses it, the coder, what is
    done to the head of its rows, if anything is), and with ``raw_rows``, the stream of rows that ``direct`` chooses;
    ``content`` becomes their data. ``fetched`` becomes a pulse with each row that is to be counted. ``control`` is told
    of a stream that is too short, or not yet through: once it has ended, ``left`` falls, and zeros follow. Made for
    LUTs, a skid buffer stands in front of each coder."""
    row, valid, ready, absent = i.p, Signal(), Signal(), Signal()
    m.d.comb += [
        absent.eq(~control.left | (row.last & ~control.last)),
        valid.eq(control.feeding & control.more & (i.valid | ~control.left)),
        fetched.eq(valid & ready),
        i.ready.eq(control.left & ((control.feeding & control.more & ready) | control.dropping)),
        content.as_value().eq(Mux(absent, 0, row.data.as_value())),
        control.short.eq(fetched & absent),
        control.excess.eq(control.left),
    ]
    if target(platform) == "lut":
        coders = [(chosen, _cut(m, f"rows_{k}", coder), head) for k, (chosen, coder, head) in enumerate(coders)]
    for chosen, sink in [(direct, raw_rows), *((chosen, coder.rows) for chosen, coder, _ in coders)]:
        with m.If(chosen):
            m.d.comb += [sink.valid.eq(valid), ready.eq(sink.ready)]
    for _, coder, head in coders:
        mask, empty = head(row.mask, absent, fetched) if head else (row.mask, absent)
        m.d.comb += [Value.cast(coder.rows.p.data).eq(Value.cast(row.data)),
                     coder.rows.p.mask.eq(mask), coder.empty.eq(empty),
                     coder.rows.p.last.eq(control.last)]
    with m.If(control.start):
        m.d.sync += control.left.eq(control.tensor.decompress)
    with m.Elif(i.valid & i.ready & row.last):
        m.d.sync += control.left.eq(0)


def _cut(m, name, coder):
    """What takes the place of a coder that has a skid buffer in front of its rows."""
    m.submodules[name] = skid = Skid(data.StructLayout({"row": coder.rows.p.shape(), "empty": 1}))
    m.d.comb += [coder.rows.valid.eq(skid.o.valid), Value.cast(coder.rows.p).eq(Value.cast(skid.o.p.row)),
                 coder.empty.eq(skid.o.p.empty), skid.o.ready.eq(coder.rows.ready)]
    return SimpleNamespace(rows=SimpleNamespace(valid=skid.i.valid, ready=skid.i.ready, p=skid.i.p.row),
                           empty=skid.i.p.empty)
