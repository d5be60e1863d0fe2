"""Bench of the gap shifter: every pattern of zeros among eight words, there and back."""

import cocotb
import numpy as np
import pytest
from amaranth.hdl import Cat, Module
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from cocotb.triggers import Timer

from actcodec.rtl.common import compaction
from tb.harness import SEED, pack, rng, simulate, unpack

WIDTH = 9
WORDS = data.ArrayLayout(WIDTH, 8)


class Both(wiring.Component):
    """Closes the gaps of ``spread`` and opens ``together`` by the same control, for which ``zeros`` counts."""

    spread: In(WORDS)
    together: In(WORDS)
    closed: Out(WORDS)
    opened: Out(WORDS)

    def __init__(self, zeros):
        self.zeros = zeros
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        spread, together = ([words[k] for k in range(8)] for words in (self.spread, self.together))
        steps = compaction.moves(m, self.zeros(m, Cat(word.any() for word in spread)))
        m.d.comb += [
            self.closed.as_value().eq(Cat(compaction.close(m, spread, steps))),
            self.opened.as_value().eq(Cat(compaction.reopen(m, together, steps))),
        ]
        return m


@pytest.mark.parametrize("zeros", [compaction.zeros, compaction.zeros_by_gates], ids=lambda it: it.__name__)
def test_gaps(zeros):
    simulate(Both(zeros), __file__)


@cocotb.test
async def every_pattern_closes_and_opens(dut):
    random = rng()
    for pattern in range(256):
        nonzero = np.unpackbits(np.uint8(pattern), bitorder="little").astype(bool)
        count = nonzero.sum()
        for values in (np.arange(1, 9), 1 << random.integers(0, WIDTH, 8), random.integers(1, 1 << WIDTH, 8)):
            spread = np.where(nonzero, values, 0)
            closed = np.append(values[nonzero], np.zeros(8 - count, int))
            # Opening takes no notice of what lies behind its words.
            together = np.append(values[nonzero], random.integers(0, 1 << WIDTH, 8 - count))
            dut.spread.value, dut.together.value = pack(spread, WIDTH), pack(together, WIDTH)
            await Timer(1, "ns")
            what = f"SEED={SEED} pattern {pattern:08b}, {values}"
            assert unpack(int(dut.closed.value), WIDTH, 8) == closed.tolist(), what
            opened = np.array(unpack(int(dut.opened.value), WIDTH, 8))
            assert (opened[nonzero] == values[nonzero]).all(), what
