"""Bench of the format conversions: every boundary of rounding, ties among them, and every code back."""

import cocotb
import numpy as np
import pytest
from amaranth.hdl import Array, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.golden.gist import dpr
from actcodec.rtl.common.minifloat import MANTISSA, WIDTH, Format, check_formats, narrow, rounding, widen
from actcodec.rtl.common.pipeline import Pipeline
from actcodec.rtl.common.vectors import words
from tb.harness import Bench, beats, rng, simulate

FORMATS = tuple(Format)


class Convert(wiring.Component):
    """Eight words to codes, or eight codes to words."""

    i: In(stream.Signature(words))
    o: Out(stream.Signature(words))
    back: In(1)
    form: In(Format)

    def elaborate(self, platform):
        m = Module()
        pipe = Pipeline(m, self.i, self.o)
        parts = [rounding(word, self.form, FORMATS) for word in self.i.payload.data]
        size = len(parts[0])
        assert sum(len(value) for value in parts[0]) == 20, "as its docstring says"
        registers = pipe.stage(*(value for part in parts for value in part), *self.i.payload.data,
                               self.i.payload.last)
        pipe.finish()
        meant = Signal(16)  # the others of a code mean nothing
        m.d.comb += meant.eq(Array(-1 << 16 - WIDTH[form] & 0xFFFF for form in (*FORMATS, FORMATS[-1]))[self.form])
        for lane in range(8):
            code = narrow(m, self.form, FORMATS, *registers[size * lane : size * (lane + 1)]) & meant
            word = widen(m, registers[8 * size + lane][:16], self.form, FORMATS)
            m.d.comb += self.o.payload.data[lane].eq(Mux(self.back, word, code))
        m.d.comb += self.o.payload.last.eq(registers[-1])
        return m


def test_minifloat():
    simulate(Convert(), __file__)


def test_formats_are_those_of_golden():
    for form in FORMATS:
        golden = dpr.named(form.name.lower())
        assert (WIDTH[form], MANTISSA[form]) == (golden.width, golden.mantissa)


@pytest.mark.parametrize("formats", [(), "FP8", ("FP8",), [Format.FP8, 2], Format.FP8])
def test_what_is_no_format_is_refused(formats):
    with pytest.raises(ValueError, match="formats must be one or more of"):
        check_formats(formats)


async def convert(bench, random, form, back, values):
    """Sends numbers through all lanes, and returns what came out, in their order."""
    bench.dut.back.value = back
    bench.dut.form.value = form.value
    vectors = np.resize(values, (-(-len(values) // 8), 8))
    run = await bench.run({"i": beats(vectors, 32)}, {"o": len(vectors)}, random)
    size = 32
    mask = (1 << 8 * size) - 1
    content = b"".join((beat & mask).to_bytes(size, "little") for beat in run["o"])
    return np.frombuffer(content, "<u4")[: len(values)]


def boundaries(form, exponents):
    """Float32 words halfway between two neighbours of a format, and the neighbours of those words."""
    step = 1 << 22 - MANTISSA[form]
    points = (exponents[:, None] << 23) + np.arange(0, 1 << 23, step)
    points = (points.reshape(-1, 1) + [-1, 0, 1]).reshape(-1)
    points = points[(points >= 0) & (points < 1 << 31)]
    return np.concatenate([points, points | 1 << 31])


def telling(bits, exponents, width):
    """Numbers with ``bits`` bits of a mantissa, at the ends of each exponent's range and with each bit alone, in either
    sign; every one eight times, so that all lanes get it."""
    top = 1 << bits
    mantissas = np.array([0, top - 1, *(flip for k in range(bits) for flip in (1 << k, top - 1 ^ 1 << k))])
    magnitudes = (np.array(exponents)[:, None] * top + mantissas).reshape(-1)
    return np.repeat(np.concatenate([magnitudes, magnitudes | 1 << width - 1]), 8)


@cocotb.test
@cocotb.parametrize(form=[form.name for form in FORMATS])
async def rounds_in_every_lane(dut, form):
    random = rng()
    bench = await Bench.started(dut)
    form = Format[form]
    words, exponents = telling(23, [0, 1, *range(110, 146), 254, 255], 32), np.array([112, 127, 128, 141])
    tie = 1 << 22 - MANTISSA[form]
    alone = tie | np.array([0, *(1 << k for k in range(22 - MANTISSA[form]))])  # what decides on rounding up
    ties = ((exponents[:, None] << 23) + np.concatenate([alone, alone | 2 * tie])).reshape(-1)
    words = np.concatenate([words, np.repeat(ties, 8)])
    got = (await convert(bench, random, form, 0, words)) >> 16 - WIDTH[form]
    codes = dpr.quantize(words.astype(np.uint32).view(np.float32), form.name.lower())
    wrong = np.flatnonzero(got != codes)
    assert not wrong.size, (f"lane {wrong[0] % 8}: word {words[wrong[0]]:08x}: expected {codes[wrong[0]]:x}, "
                            f"got {got[wrong[0]]:x}")


@cocotb.test
@cocotb.parametrize(form=[form.name for form in FORMATS])
async def rounds_every_boundary_as_golden(dut, form):
    random = rng()
    bench = await Bench.started(dut)
    form = Format[form]
    golden = dpr.named(form.name.lower())
    # All mantissas of FP16 with every exponent are 3 million words: those at the ends of its range will do.
    ends = [0, 1, 254, 255, *range(110, 116), 127, *range(140, 146)]
    exponents = np.array(ends) if form is Format.FP16 else np.arange(256)
    points = np.concatenate([boundaries(form, exponents), random.integers(0, 2**32, 20_000)])
    seen = set()
    for some in np.array_split(points, 8):
        x = some.astype(np.uint32).view(np.float32)
        got = (await convert(bench, random, form, 0, some)) >> 16 - golden.width
        codes = dpr.quantize(x, form.name.lower())
        wrong = np.flatnonzero(got != codes)
        assert not wrong.size, (f"{form}: word {some[wrong[0]]:08x}: expected {codes[wrong[0]]:x}, "
                                f"got {got[wrong[0]]:x}")
        magnitude, result = np.abs(x), np.abs(dpr.dequantize(codes, form.name.lower()))
        with np.errstate(invalid="ignore"):
            tie = (some & (1 << 23 - golden.mantissa) - 1) == 1 << 22 - golden.mantissa
            inside = (magnitude >= golden.smallest) & (magnitude <= golden.largest)
            cases = {
                "tie up": tie & inside & (result > magnitude), "tie down": tie & inside & (result < magnitude),
                "carry": inside & (np.frexp(result)[1] > np.frexp(magnitude)[1]),
                "up to the smallest": (magnitude < golden.smallest) & (result == golden.smallest),
                "zero": (magnitude > golden.smallest * 0.99) & (result == 0) if golden.mantissa > 6 else
                        (magnitude > golden.smallest * 0.9) & (result == 0),
                "beyond the largest": (magnitude > golden.largest) & np.isfinite(x),
                "infinite": np.isinf(x), "NaN": np.isnan(x) & np.isnan(result), "negative": np.signbit(x),
            }
        seen |= {name for name, hits in cases.items() if hits.any()}
    assert seen == set(cases), f"never seen: {set(cases) - seen}"


@cocotb.test
async def decodes_every_code_as_golden(dut):
    random = rng()
    bench = await Bench.started(dut)
    for form in FORMATS:
        width, name = WIDTH[form], form.name.lower()
        bits = MANTISSA[form]
        codes = np.concatenate([random.permutation(1 << width), telling(bits, range(1 << width - bits - 1), width)])
        got = await convert(bench, random, form, 1, codes << 16 - width)
        expected = dpr.dequantize(codes, name).view(np.uint32)
        wrong = np.flatnonzero(got != expected)
        assert not wrong.size, f"{form}: {len(wrong)} codes, first {codes[wrong[0]]:x}: {got[wrong[0]]:08x}"
