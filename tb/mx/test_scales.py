"""Bench of what takes scales past a coder: the bench is the coder, and gives what golden's gives."""

import cocotb
import numpy as np
import pytest
from cocotb.triggers import ClockCycles, FallingEdge

from actcodec.golden.mx import coded, element, path
from actcodec.golden.mx.path import HEAD
from actcodec.rtl.mx.element import FORMATS, HALF
from actcodec.rtl.mx.scales import BLOCKS, CHUNK, CODERS, MOST, Scales
from tb.harness import PATTERNS, SEED, STALLS, Bench, Sink, Source, chunk, parameters, regress, rng, simulate
from tb.offload.wire.payloads import cut

MODELS = {name: getattr(coded, name.title())() for name in CODERS}
OUT = HEAD + CHUNK


@pytest.mark.parametrize("elements, coders", [
    (tuple(FORMATS), CODERS),
    *regress((("e2m1",), ("zvc",)), (("int8",), ("rice", "nibble")), (("e3m2", "e2m1"), ("zvc",)),
             (("int8",), ("nibble",)))],
    ids="+".join)
def test_scales(elements, coders):
    simulate(Scales(elements, coders), __file__, elements=elements, coders=coders)


@pytest.mark.parametrize("coders", [(), ("rle",), "zvc", None])
def test_wrong_coders(coders):
    with pytest.raises(ValueError, match=r"coders must be one or more of zvc, nibble, rice, in a tuple, not"):
        Scales(coders=coders)
    with pytest.raises(ValueError, match=r"elements must be one or more of int8, e4m3, .*, in a tuple, not"):
        Scales(("e8m0",))


class Rows:
    """The rows that go to the coder, which are no stream: an end as :class:`~tb.harness.Source` is one, that compares
    what the coder gets of each. ``rows`` are (mask, empty, halves, what the first two become)."""

    def __init__(self, dut, random, rows):
        self.dut, self.random, self.rows, self.gone, self.cycles = dut, random, rows, 0, []

    def set_pause_generator(self, generator):
        self._pause = generator

    def idle(self):
        return self.gone == len(self.rows)

    def drive(self):
        self.now = not self.idle() and not next(self._pause)
        mask, empty, halves, _, _ = self.rows[self.gone] if self.now else self.random.integers(0, 2, 5).tolist()
        self.dut.moves.value = self.now
        self.dut.mask.value, self.dut.empty.value, self.dut.halves.value = mask, empty, halves

    def sample(self, cycle):
        if self.now:
            got = int(self.dut.mask_o.value), int(self.dut.empty_o.value)
            *_, mask, empty = self.rows[self.gone]
            good = got[1] == empty and (empty or got[0] == mask)
            assert good, f"SEED={SEED} row {self.gone}: {got}, not {mask, empty}"
            self.gone += 1
            self.cycles.append(cycle)

    def clear(self):
        self.dut.moves.value = 0


class Driver(Bench):
    def __init__(self, dut):
        super().__init__(dut)
        self.elements, self.coders = parameters()["elements"], parameters()["coders"]
        self.random = rng()

    async def begin(self, form, coder, decompress):
        self.dut.format.value = self.elements.index(form)
        self.dut.coder.value = self.coders.index(coder) if coder in self.coders else len(self.coders)
        self.dut.decompress.value = decompress
        await self.pulse("start")
        await ClockCycles(self.clk, 2)

    async def through(self, enter, leave, sink, inner, idle, stall, until=None):
        """Rows enter the coder by the end ``enter``, and others leave it by ``leave``, behind them: at most as many are
        in it as it holds. ``inner`` and ``sink`` are the ports that give what enters, and what comes of what leaves."""
        random, ends = self.random, [enter, leave, sink, *inner]
        limit = MOST if int(self.dut.decompress.value) else 8 * BLOCKS
        most = int(random.integers(9, limit, endpoint=True))
        least = int(random.integers(1, min(most - 7, 9)))  # rows behind which one leaves
        total = len(leave._queue)

        def gate(pattern, holds):
            return (rests or not holds() for rests in PATTERNS[pattern](np.random.default_rng(random.integers(2**63))))

        def entered():
            return len((inner[0] if inner else enter).cycles)

        enter.set_pause_generator(gate(idle, lambda: entered() - len(leave.cycles) < most))
        for one in inner:
            one.set_pause_generator(gate(stall if stall != "shy" else "never",
                                         lambda: entered() - len(leave.cycles) < most))
        leave.set_pause_generator(gate(idle, lambda: entered() == total or entered() - len(leave.cycles) > least))
        sink.set_pause_generator(gate(stall, lambda: True) if stall != "shy" else None)
        cycle = 0
        await FallingEdge(self.clk)
        while sink.count() < total and cycle != until:
            for one in ends:
                one.drive()
            await self.clk.rising_edge
            for one in ends:
                one.sample(cycle)
            cycle += 1
            assert cycle < 4000 + 100 * total, "no end"
            await FallingEdge(self.clk)
        for one in ends:
            one.clear()
        return ends

    async def compress(self, form, coder, count, idle="never", stall="never", until=None):
        """Any codes and scales: the coder's blocks, cut into chunks of any sizes."""
        random, model = self.random, MODELS[coder]
        x = random.integers(0, 256, (count, HEAD + 64), np.uint8)
        x[random.random(x.shape) < random.random()] = 0
        settings = model.fit(x, {}) if hasattr(model, "fit") else {}
        plain = [block.tobytes() for block in cut(*model.coder.encode(coded.values(x), settings))]
        whole = [block.tobytes() for block in cut(*model.encode(x, settings))]
        given, expected = [], []
        for k, (block, more) in enumerate(zip(plain, whole, strict=True)):
            sizes = split(random, len(block), 8 if coder == "zvc" else 1, CHUNK if coder == "zvc" else CHUNK - HEAD)
            last, at = k == count - 1, 0
            for n, size in enumerate(sizes):
                given.append(chunk(block[at : at + size], last and n == 7, CHUNK))
                expected.append(chunk(more[at + HEAD * (n > 0) : at + size + HEAD], last and n == 7, OUT))
                at += size
        rows = [int.from_bytes(x[k, HEAD + 8 * n :][:8].tobytes(), "little")
                | (int.from_bytes(x[k, :HEAD].tobytes(), "little") if n == 0 else int(random.integers(65536))) << 64
                | (k == count - 1 and n == 7) << 80 for k in range(count) for n in range(8)]
        await self.begin(form, coder, 0)
        enter, leave, sink, inner = (Source(self.dut, "i"), Source(self.dut, "coded"), Sink(self.dut, "chunks"),
                                     Sink(self.dut, "codes"))
        enter.send_nowait(rows)
        leave.send_nowait(given)
        await self.through(enter, leave, sink, [inner], idle, stall, until)
        self.equal(sink.beats, expected[: sink.count()], f"chunks of {count} blocks, {form}, {coder}")
        codes = [row & (1 << 64) - 1 | (row >> 80) << 64 for row in rows]
        self.equal(inner.beats, codes[: inner.count()], f"codes of {count} blocks")
        return enter, leave, sink, inner

    async def decompress(self, form, coder, count, idle="never", stall="never", until=None, garbled=False):
        """Any first bytes, masks and values; rows that are missing from one on."""
        random, one = self.random, element.FORMATS[form]
        firsts = random.integers(0, 256, (count, 8))
        if not garbled and coder == "nibble":
            firsts[:, 0] = np.maximum(firsts[:, 0], HEAD)
        elif garbled:  # often too few for the scales, or just enough
            firsts[:, 0] = np.where(random.random(count) < 0.4, random.integers(0, 2 * HEAD, count), firsts[:, 0])
        scale = random.integers(0, 256, (count, HEAD), np.uint8)
        missing = int(random.integers(8 * count)) if garbled and random.integers(2) else 8 * count
        rows, malformed = [], False
        for k in range(8 * count):
            block, place = divmod(k, 8)
            mask, empty = int(firsts[block, place]), k >= missing
            void = coder == "nibble" and place == 0 and mask < HEAD
            malformed |= void and not empty
            changed = {"zvc": mask, "nibble": mask - HEAD & 255, "rice": mask & 192 | mask - HEAD & 63}[coder]
            two = int.from_bytes(scale[block].tobytes(), "little")
            rows.append((mask, empty, two if place == 0 else int(random.integers(65536)),
                         changed if place == 0 or coder == "zvc" else None, empty or void))
            if place == 0 and (empty or void):
                scale[block] = 0
        rows = [(*row[:3], row[3] if row[3] is not None else self._any(coder, row[0]), row[4]) for row in rows]
        values = random.integers(0, 256, (count, 64), np.uint8)
        codes = path.pack((values & (1 << one.width) - 1).reshape(-1, 8), one.width).reshape(8 * count, -1)
        most = max(element.FORMATS[name].width for name in self.elements)
        expected = [int.from_bytes(row.tobytes(), "little") | int(scale[k // 8, k % 8 // HALF]) << 8 * most
                    | (k == 8 * count - 1) << 8 * most + 8 for k, row in enumerate(codes)]
        given = [int.from_bytes(row.tobytes(), "little") | (k == 8 * count - 1) << 64
                 for k, row in enumerate(values.reshape(-1, 8))]
        await self.begin(form, coder, 1)
        enter, leave, sink = Rows(self.dut, random, rows), Source(self.dut, "values"), Sink(self.dut, "rows")
        leave.send_nowait(given)
        await self.through(enter, leave, sink, [], idle, stall, until)
        # A scale is in the first row of a half.
        got, expected = ([beat & ~(255 * (k % HALF > 0) << 8 * most) for k, beat in enumerate(beats)]
                         for beats in (sink.beats, expected[: sink.count()]))
        self.equal(got, expected, f"rows of {count} blocks, {form}, {coder}")
        if until is None:
            assert int(self.dut.malformed.value) == malformed, f"SEED={SEED} {coder}: malformed {not malformed}"
        return enter, leave, sink

    @staticmethod
    def _any(coder, mask):
        """What a first byte would become, of rows of which the coder does not look at it."""
        return mask - HEAD & 255 if coder == "nibble" else mask & 192 | mask - HEAD & 63


def split(random, size, least, most):
    """Sizes of eight chunks: the first of ``least`` bytes to ``most``, others up to 16."""
    sizes = []
    for k in range(8):
        rest = CHUNK * (7 - k)
        low, high = max(0 if k else least, size - rest), min(size, CHUNK if k else most)
        sizes.append(int(random.integers(low, high, endpoint=True)))
        size -= sizes[-1]
    return sizes


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def goes_both_ways_whatever_the_ports_do(dut, idle, stall):
    driver = await Driver.started(dut)
    for coder in driver.coders:
        form = str(driver.random.choice(driver.elements))
        await driver.compress(form, coder, int(driver.random.integers(1, 7)), idle, stall)
        await driver.decompress(form, coder, int(driver.random.integers(1, 7)), idle, stall)


@cocotb.test
async def every_format_and_coder_after_every_other(dut):
    driver = await Driver.started(dut)
    for _ in range(2):
        for form in driver.elements:
            for coder in driver.coders:
                for way in driver.random.permutation(2):
                    await (driver.compress, driver.decompress)[way](form, coder, 5, "seldom", "seldom")


@cocotb.test
async def tells_a_first_byte_that_counts_no_scales_and_rows_that_are_missing(dut):
    driver = await Driver.started(dut)
    for coder in driver.coders:
        for _ in range(12):
            await driver.decompress(driver.elements[0], coder, 4, "seldom", garbled=True)
        await driver.decompress(driver.elements[0], coder, 3)


@cocotb.test
async def rows_of_other_modes_stay_as_they_are(dut):
    driver = await Driver.started(dut)
    await driver.begin(driver.elements[0], None, 1)
    for mask in range(256):
        dut.mask.value, dut.empty.value = mask, mask % 3 == 0
        await FallingEdge(driver.clk)
        assert (int(dut.mask_o.value), int(dut.empty_o.value)) == (mask, mask % 3 == 0)
    for coder in driver.coders:
        await driver.decompress(driver.elements[0], coder, 3)


@cocotb.test
async def a_row_moves_in_every_cycle(dut):
    """8.00 cycles a block, and the docstring's latencies."""
    driver = await Driver.started(dut)
    for coder in driver.coders:
        enter, leave, sink, inner = await driver.compress(driver.elements[0], coder, 20)
        assert enter.cycles == inner.cycles == list(range(160)) and np.ptp(leave.cycles) == 159
        assert sink.cycles == [cycle + 1 for cycle in leave.cycles]
        enter, leave, sink = await driver.decompress(driver.elements[0], coder, 20)
        assert enter.cycles == list(range(160)) and np.ptp(leave.cycles) == 159
        assert sink.cycles == [cycle + 1 for cycle in leave.cycles]


@cocotb.test
async def a_reset_forgets_what_is_inside(dut):
    driver = await Driver.started(dut)
    for moment in (1, 2, 9, 15, 20, 30):
        for coder in driver.coders:
            await driver.compress(driver.elements[0], coder, 6, until=moment)
            await driver.reset()
            await driver.decompress(driver.elements[-1], coder, 6, until=moment + 1)
            await driver.reset()
            await driver.compress(driver.elements[0], coder, 3)
            await driver.decompress(driver.elements[-1], coder, 3)
