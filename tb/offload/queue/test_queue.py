"""Bench of the queue: descriptors of a ring in memory, and an accelerator that is nothing but patience; what it reads,
loads and writes equals a ring of plain slices of bytes."""

import re

import cocotb
import numpy as np
import pytest
from cocotb.triggers import FallingEdge, RisingEdge

from actcodec.rtl.offload.queue.queue import REST, Queue
from tb.harness import PATTERNS, SEED, Bench, parameters, regress, rng, simulate
from tb.memory import Flat, filled, reset, started
from tb.offload.memory import bases

SIZE = 1 << 14  # of the memory
BYTES, LINE, AT = 512, 32, 448  # of a descriptor, and where its report is
ORDERS = ["any", "address", "data"]  # of what comes first in a write
DIGIT = 25  # bits of an address that are added first: 9 that do not count, and 16
ANY = {"size": 8, "lines": (0, 1, 3, 4, 7, 8, 10), "wait": 10}
FEW = {"size": 2, "lines": (0, 2), "wait": 5}
MANY = {"size": 256, "lines": (0, 1, 2), "wait": 5}  # the catalogue's, of which there are netlists


def test_queue():
    simulate(Flat(Queue(40, **ANY)), __file__, **ANY)


@pytest.mark.parametrize(("address_width", "arguments"), [(32, FEW), *regress((40, MANY))], ids=["few", "many"])
def test_queue_of_few_lines(address_width, arguments):
    simulate(Flat(Queue(address_width, **arguments)), __file__, [runs_rings, cycles, gives_up_at_any_moment],
             **arguments)


@pytest.mark.parametrize("arguments", [{"size": 0}, {"size": 3}, {"size": 65536}, {"lines": ()}, {"lines": (0, 16)},
                                       {"lines": (1, 0)}, {"lines": (1, 1)}, {"lines": 3}, {"wait": 7}, {"wait": 64},
                                       {"address_width": 31}], ids=str)
def test_parameters_out_of_range_are_refused(arguments):
    (name, value), = arguments.items()
    with pytest.raises(ValueError, match=rf"{name} must be .*not {re.escape(repr(value))}"):
        Queue(**ANY | arguments)


class Accelerator:
    """What stands around the queue, and what it has seen. Each tensor takes ``work`` cycles; ``wrong`` are numbers of
    tensors that end with an error, ``asks`` of those that want an event."""

    def __init__(self, dut, memory, random, ring, size):
        self.dut, self.memory, self.random, self.ring, self.size = dut, memory, random, ring, size
        self.lines = tuple(parameters()["lines"])
        self.number = int(dut.tail.value)  # of the next tensor
        self.modulus = 2 * parameters()["size"]
        self.work, self.wrong, self.asks = 20, set(), set()
        self.loaded, self.reports, self.events, self.begun = [], {}, [], []
        self.late = 0  # tensors without an error that were reported after the ring had stopped
        dut.ring.value, dut.ring_size.value = memory.base + ring, size
        memory.words.view(np.uint8)[:] = np.frombuffer(random.bytes(memory.words.nbytes), np.uint8)
        self.before = memory.words.view(np.uint8).copy()
        self.tasks = [cocotb.start_soon(one) for one in (self._plan(), self._watch(), self._run())]

    def forget(self):
        """Everything but the ring is as after reset."""
        for task in self.tasks[::2]:
            task.cancel()
        for name in ("checked", "begin", "end"):
            getattr(self.dut, name).value = 0
        self.dut.free.value = 1
        self.tasks[::2] = [cocotb.start_soon(one) for one in (self._plan(), self._run())]

    def place(self, number):
        return self.ring + number % self.size * BYTES

    async def _plan(self):
        """Answers ``check`` after a while."""
        dut = self.dut
        while True:
            if dut.check.value == 1:
                for _ in range(int(self.random.integers(1, 1 + min(max(self.work, 2), 200)))):
                    await FallingEdge(dut.clk)
                dut.checked.value = 1
                await FallingEdge(dut.clk)
                dut.checked.value = 0
                continue
            await FallingEdge(dut.clk)

    async def _watch(self):
        """Lines that go into the registers, and events."""
        dut, lines = self.dut, []
        names = ("stopped", "event", "wrong", "given_up", "abort")
        tail, before = int(dut.tail.value), dict.fromkeys(names, 0)
        while True:
            await RisingEdge(dut.clk)
            if dut.tail.value != tail and before["stopped"] and not before["given_up"] and not before["abort"]:
                assert before["event"], f"SEED={SEED}: nobody hears of the tensor at work when the ring stopped"
            tail, before = int(dut.tail.value), {name: int(getattr(dut, name).value) for name in names}
            self.late += before["stopped"] & before["event"] & ~before["wrong"]
            word = int(dut.load.value)
            if word & 1:
                lines = lines if word >> 1 & 15 != self.lines[0] else []  # the one before may have been given up
                assert word >> 1 & 15 == self.lines[len(lines)]
                lines.append((word >> 5).to_bytes(LINE, "little"))
                if len(lines) == len(self.lines):
                    self.loaded.append(b"".join(lines))
                    lines = []
            if dut.event.value == 1:
                self.events.append(int(dut.wrong.value))
            else:
                assert dut.wrong.value == 0
            assert not (dut.end.value == dut.quiet.value == 1), f"SEED={SEED}: what is reported may be cleared"
            await FallingEdge(dut.clk)

    async def _run(self):
        dut, random = self.dut, self.random
        dut.free.value = 1
        await FallingEdge(dut.clk)
        while True:
            while dut.ready.value == 0:
                await FallingEdge(dut.clk)
            number = self.number % self.modulus
            self.number += 1
            dut.notify.value = int(number in self.asks)
            dut.begin.value = 1
            self.begun.append((number, self.memory.cycle, self.loaded[-1]))
            await FallingEdge(dut.clk)
            dut.begin.value = dut.free.value = 0
            for _ in range(self.work):
                await FallingEdge(dut.clk)
            dut.free.value = 1
            for _ in range(int(random.integers(3))):
                await FallingEdge(dut.clk)
            while dut.reporting.value == 1:
                await FallingEdge(dut.clk)
            words = random.bytes(64)
            self.reports[number] = words
            dut.end.value, dut.fault.value = 1, int(number in self.wrong)
            await FallingEdge(dut.clk)
            dut.end.value, dut.words.value = 0, int.from_bytes(words, "little")
            left = False
            while not left:
                await RisingEdge(dut.clk)
                left = dut.leaves.value == 1
                await FallingEdge(dut.clk)
            dut.words.value = 0

    async def doorbell(self, head):
        self.dut.head.value = head % self.modulus
        self.dut.doorbell.value = 1
        await FallingEdge(self.dut.clk)
        self.dut.doorbell.value = 0

    async def rests(self, limit=30000):
        """Waits until there is nothing more to do."""
        for _ in range(limit):
            await FallingEdge(self.dut.clk)
            if self.dut.busy.value == 0:
                return
        raise AssertionError(f"SEED={SEED}: busy for {limit} cycles")

    def check(self, first, last, events):
        """Whether those from number ``first`` to ``last`` were run, and what memory has is theirs."""
        now, expected = self.memory.words.view(np.uint8), self.before.copy()
        numbers = [number % self.modulus for number in range(first, last)]
        assert [number for number, *_ in self.begun] == numbers, f"SEED={SEED}: {self.begun}"
        for number, _, content in self.begun:
            at = self.place(number)
            rows = self.before[at : at + BYTES].reshape(-1, LINE)[list(self.lines)]
            assert content == rows.tobytes(), f"SEED={SEED}: descriptor {number}"
        for number in numbers:
            at = self.place(number) + AT
            expected[at : at + 64] = np.frombuffer(self.reports[number], np.uint8)
        wrong = np.flatnonzero(now != expected)
        assert not wrong.size, f"SEED={SEED}: {wrong.size} bytes, first {wrong[0]:#x}"
        assert self.events == events, f"SEED={SEED}: events {self.events}, expected {events}"
        assert self.dut.tail.value == last % self.modulus
        self.begun, self.events, self.before = [], [], now.copy()

    def expected_events(self, first, last):
        numbers = [number % self.modulus for number in range(first, last)]
        return [int(number in self.wrong) for number in numbers if number in self.asks | self.wrong]

    def choose(self):
        """Which tensors want an event, and which end with an error."""
        some = range(self.modulus)
        self.asks = {number for number in some if self.random.random() < 0.4}
        self.wrong = {number for number in some if self.random.random() < 0.2}
        self.work = int(self.random.choice([0, 1, 30, 200]))


async def ready(dut, random, where=None, **options):
    """A queue, its memory, and what is around it. ``where`` is one of :data:`~tb.offload.memory.bases.WHERE`, by
    default anywhere, or where an address carries into its upper digit."""
    base = bases.drawn(random, where or random.choice(["any", "carry"]), len(dut.ring), SIZE, DIGIT)
    bench, memory = await started(dut, SIZE, random, base=base, **options)
    return bench, around(dut, memory, random)


def around(dut, memory, random):
    """What is around a queue and its memory."""
    most = min(parameters()["size"], 16)
    size = int(random.choice([most, max(most // 2, 1)]))
    return Accelerator(dut, memory, random, BYTES * int(random.integers((SIZE // BYTES) - size)), size)


@cocotb.test
@cocotb.parametrize(pause=list(PATTERNS), order=ORDERS)
async def runs_rings(dut, pause, order):
    # Other rings and errors for each.
    random = rng().spawn(len(PATTERNS) * len(ORDERS))[list(PATTERNS).index(pause) * len(ORDERS) + ORDERS.index(order)]
    slow = {channel: str(random.choice([pause, "never"])) for channel in ("ar", "r", "aw", "w", "b")}
    where = bases.WHERE[ORDERS.index(order)]
    _, it = await ready(dut, random, where, latency=int(random.integers(0, 40)), pause=slow, order=order)
    number = 0
    for _ in range(4):
        it.choose()
        last = number + int(random.integers(1, it.size + 1))
        head, before = number, len(it.memory.reads)
        while head < last:
            head += int(random.integers(1, last - head + 1))
            await it.doorbell(head)
            for _ in range(int(random.choice([0, 3, 100]))):
                await FallingEdge(dut.clk)
        await it.rests()
        it.check(number, last, it.expected_events(number, last))
        beats = [(at, count) for at, count, _ in it.memory.reads[before:]]
        lines = it.lines[-1] + 1
        assert beats == [(it.place(one) + at, count) for one in range(number, last)
                         for at, count in ((0, min(lines, 8)), (256, lines - 8)) if count > 0]
        number = last
    assert dut.stopped.value == dut.ring_failed.value == 0


@cocotb.test
async def stops_on_an_error_and_goes_on(dut):
    random = rng()
    _, it = await ready(dut, random, pause="seldom", latency=3)
    dut.stop_on_error.value, number, stops = 1, 0, 0
    for _ in range(12):
        it.choose()
        last = number + it.size
        await it.doorbell(last)
        while number != last:
            await it.rests()
            ends = next((one + 1 for one in range(number, last) if one % it.modulus in it.wrong), last)
            it.check(number, ends, it.expected_events(number, ends))
            number = ends
            assert dut.stopped.value == int((number - 1) % it.modulus in it.wrong)
            stops += dut.stopped.value == 1
            await it.doorbell(last)
            if number == last:
                await it.rests()
    assert stops


@cocotb.test
async def memory_that_fails_is_flagged(dut):
    """With each line of a descriptor, and each half of a report: no tensor begins whose descriptor is not whole."""
    random = rng()
    _, it = await ready(dut, random, latency=5)
    number, late = 0, 0
    count = it.lines[-1] + 1
    for line in (*range(count), 14, 15):
        for which in range(2):
            bad, it.late, it.work = number + which, 0, int(random.choice([10, 200]))
            it.memory.errors = {it.place(bad) // LINE + line}
            await it.doorbell(number + 2)
            await it.rests()
            assert (dut.ring_failed.value, dut.stopped.value) == (1, 1)
            ended = int(dut.tail.value) - number % it.modulus
            reads = line < count
            ended %= it.modulus
            assert ended == which if reads else ended in (which + 1, 2), f"SEED={SEED}: line {line}, {ended}"
            for one in range(number, number + ended) if not reads else ():
                if one == bad:  # not all of the report need be there
                    at = it.place(one) + AT
                    it.memory.words.view(np.uint8)[at : at + 64] = np.frombuffer(it.reports[one % it.modulus], np.uint8)
            it.check(number, number + ended, [1] + [0] * it.late)
            late += it.late
            it.memory.errors, number = set(), number + ended
            await it.doorbell(number + 1)
            assert dut.ring_failed.value == 0
            await it.rests()
            it.check(number, number + 1, [])
            number += 1
    assert late


@cocotb.test
async def does_not_begin_while_there_is_another_tensor(dut):
    random = rng()
    _, it = await ready(dut, random)
    dut.hosted.value = 1
    await it.doorbell(1)
    for _ in range(100):
        await FallingEdge(dut.clk)
    assert not it.memory.reads and dut.busy.value == 1
    dut.hosted.value = 0
    await it.rests()
    it.check(0, 1, [])
    dut.ring_size.value = 0
    await it.doorbell(2)
    await it.rests()
    assert dut.stopped.value == 1


@cocotb.test
async def cycles(dut):
    """From the doorbell to a descriptor, and to its tensor; from the end of one to the next."""
    random = rng()
    _, it = await ready(dut, random, latency=0)
    it.work, seen = 400, {}

    async def watch():
        while True:
            await RisingEdge(dut.clk)
            for name in ("check", "take", "ready", "leaves"):
                if getattr(dut, name).value == 1:
                    seen.setdefault(name, []).append(it.memory.cycle - 1)
            await FallingEdge(dut.clk)

    cocotb.start_soon(watch())
    start, lines, wait = it.memory.cycle, it.lines[-1] + 1, parameters()["wait"]
    await it.doorbell(2)
    await it.rests()
    address, (first, *_), (take, second) = it.memory.reads[0][2], seen["check"], seen["take"]
    assert address - start == 3
    assert first - address == lines + 1
    assert seen["ready"][0] - take == wait and min(cycle for cycle in seen["ready"] if cycle > second) - second == wait
    assert np.diff(it.memory.data)[0] == 1


@cocotb.test
async def gives_up_at_any_moment(dut):
    """Whatever is under way at a soft reset: a tensor that has begun has a report that says so, and no other."""
    random = rng()
    _, it = await ready(dut, random, pause="half")
    number, seen = 0, set()
    for turn in range(60):
        it.memory.latency = int(random.integers(0, 40))
        it.asks, it.wrong, it.work = set(), set(), int(random.choice([0, 20, 100]))
        wait = int(random.integers(1, 60 if turn % 3 else 400))
        if turn % 10 == 9:  # amid the first one
            it.work, wait = 2000, 600  # when it has certainly begun
        last = number + it.size
        await it.doorbell(last)
        for _ in range(wait):
            await FallingEdge(dut.clk)
        dut.abort.value = 1
        for _ in range(3):
            await FallingEdge(dut.clk)
        while dut.quiet.value == 0:
            await FallingEdge(dut.clk)
        tail, begun = int(dut.tail.value), len(it.begun)
        it.forget()  # nothing ends with the clear
        dut.clear.value = 1
        await FallingEdge(dut.clk)
        dut.clear.value = dut.abort.value = 0
        gone = begun - (tail - number) % it.modulus
        assert gone in (0, 1), f"SEED={SEED}: {begun} begun, {tail - number} reported"
        words = random.bytes(64)
        dut.words.value = int.from_bytes(words, "little")
        if gone:
            assert dut.busy.value == 1
            it.reports[tail] = words
            for cycle in range(REST + 1):  # and not one sooner or later
                assert (dut.given_up.value, dut.m_axi_awvalid.value) == (1, int(cycle == REST)), f"SEED={SEED}: {cycle}"
                await FallingEdge(dut.clk)
        await it.rests()
        seen.add((gone, begun > 1))
        number += begun
        it.check(number - begun, number, [])
        it.number = number
        assert dut.stopped.value == 1
    assert seen >= {(0, False), (1, False)}


@cocotb.test
async def starts_afresh_after_reset(dut):
    """A reset of all there is, at any moment: the next ring begins with its first descriptor."""
    random = rng()
    bench = Bench(dut)
    await bench.start()
    for cycles in range(1, 120, 5):
        memory = filled(dut, SIZE, random, base=bases.drawn(random, "any", len(dut.ring), SIZE, DIGIT), pause="seldom")
        task = cocotb.start_soon(memory.run())
        it = around(dut, memory, random)
        it.choose()
        await it.doorbell(it.size)
        await it.rests()
        it.check(0, it.size, it.expected_events(0, it.size))
        await it.doorbell(2 * it.size)
        for _ in range(cycles):
            await FallingEdge(dut.clk)
        it.forget()
        for one in it.tasks:
            one.cancel()
        await reset(bench, task)
        assert dut.tail.value == 0
