"""Bench of the AXI4-Stream edges: frames against cocotbext-axi's source and sink, given up at any moment, malformed."""

import cocotb
import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from cocotb.triggers import ClockCycles, FallingEdge, RisingEdge

from actcodec.rtl.common import axis
from actcodec.rtl.common.packer import chunk_layout as chunk_layout
from tb.common.frames import beat, begin, contents, frame_of, received, sink, source, split, strange, with_last
from tb.harness import PATTERNS, STALLS, after, chunk, chunks, parameters, rng, simulate

MANY = 10**6  # beats: a run that something else ends


class Edges(wiring.Component):
    """Sender and receiver, side by side, with flat ports."""

    def __init__(self, size):
        self.size = size
        super().__init__({
            **axis.ports("m_axis_", size, Out), **axis.ports("s_axis_", size, In),
            "i": In(stream.Signature(chunk_layout(size))), "o": Out(stream.Signature(chunk_layout(size))),
            "stop": In(1), "quiet": Out(1), "run": In(1), "drop": In(1), "malformed": Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.sender = sender = axis.Sender(self.size)
        m.submodules.receiver = receiver = axis.Receiver(self.size)
        axis.connect(m, self, "m_axis_", sender.o)
        axis.connect(m, self, "s_axis_", receiver.i)
        wiring.connect(m, wiring.flipped(self.i), sender.i)
        wiring.connect(m, receiver.o, wiring.flipped(self.o))
        m.d.comb += [sender.abort.eq(self.stop), self.quiet.eq(sender.quiet), receiver.run.eq(self.run),
                     receiver.abort.eq(self.drop), self.malformed.eq(receiver.malformed)]
        return m


def test_axis():
    simulate(Edges(16), __file__, size=16)


def test_size_of_a_packet():
    simulate(Edges(128), __file__, [carries_frames_of_any_length_both_ways], size=128)


@pytest.mark.parametrize("unit", [axis.Sender, axis.Receiver])
@pytest.mark.parametrize("size", [0, 1, 12, -16, 16.0])
def test_other_sizes_are_refused(unit, size):
    with pytest.raises(ValueError, match=f"size must be a power of two of bytes, at least 2, not {size!r}"):
        unit(size)


# ----------------------------------------------------------------------------------------------------------- both sides
async def send(dut, idle, pause):
    """Frames of any length."""
    random, size = rng(), parameters()["size"]
    bench, watch = await begin(dut)
    receiver = sink(dut, random, pause)
    frames = contents(random, size, 30)
    run = await bench.run({"i": [one for frame in frames for one in chunks(frame, size)]}, {}, random, idle)
    for frame in frames:
        assert bytes((await receiver.recv()).tdata) == frame
    assert receiver.empty()
    bench.equal(watch.sent, [beat(*one, size) for frame in frames for one in split(frame, size)], f"{idle} {pause}")
    if idle == pause == "never":
        assert np.diff(run.cycles["i"]).tolist() == [1] * (len(watch.sent) - 1)


async def receive(dut, pause, stall):
    """Frames of any length."""
    random, size = rng(), parameters()["size"]
    bench, watch = await begin(dut)
    dut.run.value = 1
    frames = contents(random, size, 30)
    sender = source(dut, random, pause)
    for frame in frames:
        sender.send_nowait(frame)
    expected = [one for frame in frames for one in chunks(frame, size)]
    run = await bench.run({}, {"o": len(expected)}, random, stall=stall)
    bench.equal(run["o"], expected, f"{pause} {stall}")
    assert not watch.flags
    if pause == stall == "never":
        last = [end for frame in frames for _, end in split(frame, size)]
        assert np.diff(run.cycles["o"]).tolist() == [1 + end for end in last[1:]], "the last beat waits for a cycle"


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), pause=list(PATTERNS))
async def sends_frames_of_any_length(dut, idle, pause):
    await send(dut, idle, pause)


@cocotb.test
@cocotb.parametrize(pause=list(PATTERNS), stall=STALLS)
async def receives_frames_of_any_length(dut, pause, stall):
    await receive(dut, pause, stall)


@cocotb.test
@cocotb.parametrize(way=[send, receive], pauses=["never", "half"])
async def carries_frames_of_any_length_both_ways(dut, way, pauses):
    await way(dut, pauses, pauses)


@cocotb.test
async def passes_without_a_cycle(dut):
    """But for the last beat of a frame that is received."""
    bench, _ = await begin(dut)
    size = parameters()["size"]
    dut.i__payload.value, dut.i__valid.value, dut.m_axis_tready.value = chunk(b"\x05", 1, size), 1, 1
    full = bytes(range(1, size + 1))
    dut.s_axis_tdata.value, dut.s_axis_tkeep.value, dut.s_axis_tlast.value = beat(full, 0, size)
    dut.s_axis_tvalid.value, dut.run.value, dut.o__ready.value = 1, 1, 1
    await RisingEdge(bench.clk)
    assert (dut.m_axis_tvalid.value, dut.m_axis_tdata.value, dut.m_axis_tkeep.value) == (1, 5, 1)
    assert dut.i__ready.value == 1
    assert dut.o__valid.value == 1 and int(dut.o__payload.value) == chunk(full, 0, size)
    assert dut.s_axis_tready.value == 1
    await FallingEdge(bench.clk)
    dut.s_axis_tdata.value, dut.s_axis_tkeep.value, dut.s_axis_tlast.value = 0xFF07, 1, 1
    for pause in (False, True):
        await RisingEdge(bench.clk)
        assert dut.o__valid.value == 0 and dut.s_axis_tready.value == 0, "it is being counted"
        await RisingEdge(bench.clk)
        assert dut.o__valid.value == 1 and int(dut.o__payload.value) == chunk(b"\x07", 1, size)
        assert dut.s_axis_tready.value == 1
        await FallingEdge(bench.clk)
        if not pause:  # whatever the other wires say meanwhile
            dut.s_axis_tvalid.value, dut.s_axis_tkeep.value = 0, 7
            await FallingEdge(bench.clk)
            dut.s_axis_tvalid.value, dut.s_axis_tkeep.value = 1, 1


# --------------------------------------------------------------------------------------------------------------- sender
@cocotb.test
async def sends_an_empty_frame_as_a_beat_without_bytes(dut):
    random, size = rng(), parameters()["size"]
    bench, watch = await begin(dut)
    sink(dut, random, "half")
    await bench.run({"i": [*chunks(b"", size), *chunks(b"x", size)]}, {}, random)
    assert watch.sent == [(0, 0, 1), (ord("x"), 1, 1)]


@cocotb.test
@cocotb.parametrize(idle=["never", "half", "mostly"], pause=["never", "half", "bursts"])
async def gives_a_frame_up_at_any_moment(dut, idle, pause):
    random, size = rng(), parameters()["size"]
    bench, watch = await begin(dut)
    receiver = sink(dut, random, pause)
    seen = set()
    for moment in range(60):
        lengths = [3 * size, 5, 2 * size + 1, 1, size, *[2 * size] * 40][moment % 5 :]
        beats = [one for length in lengths for one in split(random.bytes(length), size)]
        watch.sent, watch.times, watch.stop, watch.quiet = [], [], None, None

        async def stop(moment):
            for _ in range(moment + 1):
                await FallingEdge(bench.clk)
            dut.stop.value = 1

        cocotb.start_soon(stop(moment))
        run = await bench.run({"i": [chunk(*one, size) for one in beats]}, {}, random, idle,
                              until=lambda: watch.quiet is not None)
        before = sum(time < watch.stop for time in watch.times)
        gone = beats[: before + watch.offer_at_stop]
        open_ = bool(gone) and not gone[-1][1]
        expected = [beat(*one, size) for one in gone] + [(0, 0, 1)] * open_
        what = f"idle={idle} pause={pause} moment={moment}"
        bench.equal(watch.sent, expected, what)
        assert len(run.cycles["i"]) == len(gone), what
        assert watch.quiet == max([watch.stop, *watch.times]) + 1, what
        seen.add((watch.offer_at_stop, open_))
        for _ in range(int(random.integers(4))):
            await FallingEdge(bench.clk)
            assert dut.quiet.value == 1 and dut.m_axis_tvalid.value == 0 and dut.i__ready.value == 0
        dut.stop.value = 0
        await FallingEdge(bench.clk)
        assert dut.quiet.value == 0
        while not receiver.empty():
            receiver.recv_nowait()
        frame = random.bytes(int(random.integers(1, 4 * size)))
        await bench.run({"i": chunks(frame, size)}, {}, random, idle)
        assert bytes((await receiver.recv()).tdata) == frame, f"{what}: the frame behind"
    if idle != "mostly" and pause in ("half", "bursts"):
        assert len(seen) == 4, f"idle={idle} pause={pause}: {seen}"


@cocotb.test
async def ends_no_frame_that_a_reset_has_ended(dut):
    random, size = rng(), parameters()["size"]
    bench, watch = await begin(dut)
    for resting in (False, True):
        dut.m_axis_tready.value = 1
        await bench.run({"i": [chunk(bytes(size), 0, size)] * 2}, {}, random)
        if resting:
            dut.stop.value, dut.m_axis_tready.value = 1, 0
            await FallingEdge(bench.clk)
            await FallingEdge(bench.clk)
            assert dut.m_axis_tvalid.value == 1 and dut.m_axis_tkeep.value == 0
        await bench.reset()
        watch.sent = []
        dut.stop.value, dut.m_axis_tready.value = 1, 1
        for _ in range(3):
            await FallingEdge(bench.clk)
        assert dut.quiet.value == 1 and not watch.sent
        dut.stop.value = 0
        await FallingEdge(bench.clk)


# ------------------------------------------------------------------------------------------------------------- receiver
@cocotb.test
@cocotb.parametrize(pause=["never", "half"], stall=["never", "half", "bursts", "shy"])
async def flags_malformed_beats_when_it_takes_them(dut, pause, stall):
    random, size = rng(), parameters()["size"]
    bench, watch = await begin(dut)
    dut.run.value = 1
    full = (1 << size) - 1
    # Every single hole, every length, each in front of the last beat and as the last one.
    single = [full & ~(1 << k) for k in range(size)] + [(1 << k) - 1 for k in range(size + 1)] + [2, 1 << size - 1]
    frames = [strange(random, size) for _ in range(60)]
    frames += [[(full, keep)] for keep in single] + [[(full, keep), (full, full)] for keep in single]
    random.shuffle(frames)
    sender = source(dut, random, pause)
    for frame in frames:
        sender.send_nowait(frame_of(frame, size))
    expected = [received(*one, size) for frame in frames for one in with_last(frame)]
    run = await bench.run({}, {"o": len(expected)}, random, stall=stall)
    bench.equal(run["o"], [one for one, _ in expected], f"{pause} {stall}")
    await ClockCycles(bench.clk, 2)  # the last one's flag
    bench.equal(watch.flags, [k for k, (_, wrong) in enumerate(expected) if wrong], f"{pause} {stall}: flags")


@cocotb.test
@cocotb.parametrize(pause=["never", "half", "mostly"], stall=["never", "half", "shy"])
async def drops_the_rest_of_a_frame(dut, pause, stall):
    random, size = rng(), parameters()["size"]
    bench, watch = await begin(dut)
    sender = source(dut, random, pause)
    frames = [strange(random, size) for _ in range(160)]
    for frame in frames:
        sender.send_nowait(frame_of(frame, size))
    beats = [one for frame in frames for one in with_last(frame)]
    got, drops, seen = [], [], set()

    async def rest(most):
        for _ in range(int(random.integers(most + 1))):
            come = len(watch.received)
            await FallingEdge(bench.clk)
            seen.add(("comes", len(watch.received) > come))

    while len(watch.received) < 400 and len(drops) < 200:
        dut.run.value = 1
        ending = after(int(random.integers(12)))
        got += (await bench.run({}, {"o": MANY}, random, stall=stall, until=ending))["o"]
        dut.run.value = 0
        await rest(2)
        if random.random() < 0.8:
            drops.append(len(watch.received))
            dut.drop.value = 1
            await FallingEdge(bench.clk)
            dut.drop.value = 0
            seen.add(("rests", len(watch.received) > drops[-1]))
        await rest(6 if random.random() < 0.5 else 0)
    # To the end, so that what is still to be dropped comes while it runs.
    dut.run.value = 1
    dropped = set()
    for place in drops:
        while place and not beats[place - 1][2]:
            dropped.add(place)
            place += 1
    passed = [k for k in range(len(beats)) if k not in dropped]
    got += (await bench.run({}, {"o": len(passed) - len(got)}, random, stall=stall))["o"]
    await ClockCycles(bench.clk, 2)  # the last one's flag
    expected = [received(*beats[k], size) for k in passed]
    bench.equal(got, [one for one, _ in expected], f"{pause} {stall}")
    bench.equal(watch.flags, [k for k, (_, wrong) in enumerate(expected) if wrong], f"{pause} {stall}: flags")
    bench.equal(watch.received, beats[: len(watch.received)], "beats that came")
    seen |= {("open", place > 0 and not beats[place - 1][2]) for place in drops}
    assert {("open", False), ("open", True), ("comes", False), ("comes", True)} <= seen
    assert len(dropped) > 40 and len(passed) > 60


@cocotb.test
async def drops_what_comes_while_it_runs_and_nobody_is_ready(dut):
    random, size = rng(), parameters()["size"]
    bench, watch = await begin(dut)
    sender = source(dut, random, "never")
    full = (1 << size) - 1
    frames = [[(one, full)] * 5 for one in (1, 2)]
    dut.run.value = 1
    for frame in frames:
        sender.send_nowait(frame_of(frame, size))
    await bench.run({}, {"o": 2}, random)
    dut.run.value = 0
    dut.drop.value = 1
    await FallingEdge(bench.clk)
    dut.drop.value = 0
    dut.run.value = 1
    for _ in range(6):
        await FallingEdge(bench.clk)
    assert len(watch.received) == 5 and dut.o__valid.value == 1, "the first frame has gone, and no more"
    run = await bench.run({}, {"o": 5}, random)
    bench.equal(run["o"], [one for one, _ in [received(*one, size) for one in with_last(frames[1])]], "the second")


@cocotb.test
async def forgets_a_frame_in_reset(dut):
    random, size = rng(), parameters()["size"]
    bench, _ = await begin(dut)
    sender = source(dut, random, "never")
    for dropping in (False, True):
        dut.run.value = 1
        sender.send_nowait(frame_of([(7, (1 << size) - 1)] * 3, size))
        await bench.run({}, {"o": 1}, random)
        dut.run.value, sender.pause = 0, True
        if dropping:
            dut.drop.value = 1
            await FallingEdge(bench.clk)
            dut.drop.value = 0
        await bench.reset()
        dut.drop.value = 1
        await FallingEdge(bench.clk)
        dut.drop.value = 0
        await FallingEdge(bench.clk)
        assert dut.s_axis_tready.value == 0, "nothing to drop"
