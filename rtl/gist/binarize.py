"""Binarize: one bit for each value of a ReLU's output, all that its backward pass needs."""

from amaranth.hdl import Cat, Module, Mux
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.pipeline import Pipeline
from actcodec.rtl.common.vectors import words

__all__ = ["Binarize", "Unbinarize", "masks", "words"]

ONE = 0x3F80_0000  # 1.0 as float32

masks = data.StructLayout({"bits": 8, "last": 1})


class Binarize(wiring.Component):
    """Tells of each of eight float32 words whether it is greater than zero.

    Subnormal numbers and infinity are if they are positive; zeros and NaNs are not.

    Throughput: one sector a cycle. Latency: 1 cycle. Buffering: one mask. Combinational path: ``o.ready`` to
    ``i.ready``.

    Source: Gist, section III, "Binarize"; JPEG-ACT, section II-B1, BRC, and Table II.

    Ports
    -----
    i : stream of ``words``, eight float32 words a beat
    o : stream of ``masks``, bit j for word j
    """

    i: In(stream.Signature(words))
    o: Out(stream.Signature(masks))

    def elaborate(self, platform):
        m = Module()
        pipe = Pipeline(m, self.i, self.o)
        # Beyond 255 << 23, infinity, there are only NaNs; all smaller words but 0 are positive numbers.
        positive = [~word[31] & word[:31].any() & ~(word[23:31].all() & word[:23].any())
                    for word in self.i.p.data]
        bits, last = pipe.stage(Cat(positive), self.i.p.last)
        pipe.finish()
        m.d.comb += [self.o.p.bits.eq(bits), self.o.p.last.eq(last)]
        return m


class Unbinarize(wiring.Component):
    """Gives 1.0 for each bit that is set and +0.0 for each that is not.

    Throughput: one sector a cycle. Latency: none, it has no register: all of ``o`` is combinational from ``i``, and
    ``i.ready`` from ``o.ready``. Buffering: none.

    Source: JPEG-ACT, section II-B1, BRC, and Table II.

    Ports
    -----
    i : stream of ``masks``, bit j for word j
    o : stream of ``words``, eight float32 words a beat
    """

    i: In(stream.Signature(masks))
    o: Out(stream.Signature(words))

    def elaborate(self, platform):
        m = Module()
        m.d.comb += [self.o.valid.eq(self.i.valid), self.i.ready.eq(self.o.ready),
                     self.o.p.last.eq(self.i.p.last)]
        m.d.comb += [word.eq(Mux(bit, ONE, 0)) for word, bit in zip(self.o.p.data, self.i.p.bits,
                                                                  strict=True)]
        return m
