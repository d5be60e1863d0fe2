"""Bench of the payload's port: a frame to memory and back; memory and frame equal plain slices of bytes."""

import re

import cocotb
import numpy as np
import pytest
from cocotb.triggers import FallingEdge
from cocotbext.axi import AxiBus, AxiRam

from actcodec.rtl.offload.memory.payload import DIGIT, Payload
from tb.harness import PATTERNS, SEED, STALLS, Bench, chunks, regress, rng, simulate
from tb.memory import Flat, axi_ram, begin, ends, filled, reset, started
from tb.offload.memory import bases

SIZE = 4096  # of the memory, and all that an address of 12 bits reaches
PACKET, BURST = 128, 256
CARRY = DIGIT + 5  # bits of an address below its upper digit
LENGTHS = sorted({near + more for near in (0, 32, 128, 256, 384, 512) for more in (-1, 0, 1, 31)} - {-1, 0})


@pytest.mark.parametrize("outstanding, target", [(384, "cells"), *regress((32, "cells"), (384, "lut"))])
def test_payload(outstanding, target):
    few = outstanding < 300  # which does not hide as many cycles
    simulate(Flat(Payload(outstanding=outstanding)), __file__, target=target,
             without=[*SMALL, *[a_beat_a_cycle_at_300_cycles_of_latency] * few])


def test_payload_with_few_beats_outstanding_at_the_end_of_memory():
    simulate(Flat(Payload(12, 8)), __file__, SMALL)


@pytest.mark.parametrize("arguments", [{"outstanding": 7}, {"outstanding": 8.0}, {"address_width": 11},
                                       {"address_width": 65}])
def test_parameters_out_of_range_are_refused(arguments):
    (name, value), = arguments.items()
    with pytest.raises(ValueError, match=rf"{name} must be .*not {re.escape(repr(value))}"):
        Payload(**arguments)


def packets(content):
    return chunks(content, PACKET)


def burst_count(base, size):
    """Bursts that touch ``size`` bytes from ``base`` on."""
    return len(range(base // BURST, -(-(base + size) // BURST))) if size else 0


def check_bursts(bursts, base, size):
    """They are the beats of ``size`` bytes from ``base`` on, each once, in order, and as few as possible."""
    order = [beat for start, count, *_ in bursts for beat in range(start, start + 32 * count, 32)]
    assert order == list(range(base, base + size, 32)), f"SEED={SEED} base {base:#x} size {size}: {bursts}"
    assert len(bursts) == burst_count(base, size), f"SEED={SEED} base {base:#x} size {size}: {bursts}"


async def ready(dut, random, size=SIZE, **options):
    """A bench and its memory: anywhere, or where an address carries into its upper digit; at 0 if there is no other."""
    width = len(dut.base)
    where = "zero" if 1 << width == size else random.choice(["any", "carry"])
    return await started(dut, size, random, base=bases.drawn(random, where, width, size, CARRY), **options)


async def write(bench, memory, random, base, content, size, idle="never"):
    """Writes a frame into a space; memory afterwards, byte by byte, and what the unit says."""
    dut = bench.dut
    dut.decompress.value, dut.base.value, dut.size.value = 0, memory.base + base, size
    expected = memory.words.view(np.uint8).copy()
    fits = min(len(content), size, memory.words.nbytes - base)
    expected[base : base + fits] = np.frombuffer(content[:fits], np.uint8)
    before = len(memory.writes)
    await begin(dut)
    run = await bench.run({"i": packets(content)}, {}, random, idle)
    await ends(dut, 20000)
    assert memory.idle and dut.error.value == 0
    assert dut.overflow.value == (len(content) > fits), f"SEED={SEED}: {len(content)} bytes in {size}"
    got = memory.words.view(np.uint8)
    wrong = np.flatnonzero(got != expected)
    assert not wrong.size, (f"SEED={SEED} base {base:#x} size {size} length {len(content)}: {wrong.size} bytes, first "
                            f"{wrong[0]:#x}: expected {expected[wrong[0]]}, got {got[wrong[0]]}")
    check_bursts(memory.writes[before:], base, fits)
    return run


async def read(bench, memory, random, base, size, stall="never"):
    """Reads a frame; its packets are memory's bytes, and zeros behind the last one."""
    dut = bench.dut
    dut.decompress.value, dut.base.value, dut.size.value = 1, memory.base + base, size
    expected = packets(memory.words.view(np.uint8)[base : base + size].tobytes())
    before = len(memory.reads)
    await begin(dut)
    run = await bench.run({}, {"o": len(expected)}, random, stall=stall, limit=20000)
    await ends(dut)
    assert memory.idle and dut.error.value == 0 and dut.overflow.value == 0
    bench.equal(run["o"], expected, f"{size} bytes from {base:#x}")
    check_bursts(memory.reads[before:], base, size)
    return run


def place(random, most=1200):
    """A base and a length that fit memory."""
    base = 32 * int(random.integers(0, (SIZE - most) // 32))
    return base, int(random.choice([int(random.choice(LENGTHS)), int(random.integers(1, most))]))


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), pause=list(PATTERNS), order=["any", "address", "data"])
async def writes_frames(dut, idle, pause, order):
    random = rng()
    slow = {channel: str(random.choice([pause, "never"])) for channel in ("aw", "w", "b")}
    bench, memory = await ready(dut, random, latency=int(random.integers(0, 40)), pause=slow, order=order)
    for _ in range(4):
        base, length = place(random)
        size = length + int(random.choice([0, 1, 100, -1, -33, -int(random.integers(0, length))]))
        await write(bench, memory, random, base, random.bytes(length), max(size, 0), idle)


@cocotb.test
@cocotb.parametrize(stall=list(STALLS), pause=list(PATTERNS))
async def reads_frames(dut, stall, pause):
    random = rng()
    slow = {channel: str(random.choice([pause, "never"])) for channel in ("ar", "r")}
    bench, memory = await ready(dut, random, latency=int(random.integers(0, 40)), pause=slow)
    for _ in range(6):
        await read(bench, memory, random, *place(random), stall)


@cocotb.test
async def every_length_from_every_place_in_a_burst(dut):
    random = rng()
    bench, memory = await ready(dut, random)
    for length in [*range(PACKET + 2), *LENGTHS]:
        base = 1024 + 32 * int(random.integers(0, 8))
        await read(bench, memory, random, base, length)
        if length:
            await write(bench, memory, random, base, random.bytes(length), length)
    for base in range(0, BURST, 32):
        for length in LENGTHS[::3]:
            await write(bench, memory, random, base, random.bytes(length), length)
            await read(bench, memory, random, base, length)


@cocotb.test
async def frames_whose_beats_have_any_bit(dut):
    random = rng()
    bench, memory = await ready(dut, random, 1 << 16)
    for bit in range(11):
        for more in (0, 1, 32, 33):
            length = (32 << bit) + more
            await write(bench, memory, random, 0, random.bytes(length), length)
            await read(bench, memory, random, 0, length)


@cocotb.test
async def a_space_larger_than_the_frame_by_any_power_of_two(dut):
    random = rng()
    bench, memory = await ready(dut, random)
    for bit in range(SIZE.bit_length() - 1, len(dut.size)):
        base, length = place(random)
        below = int(random.integers(0, length + 1))  # which the frame reaches
        await write(bench, memory, random, base, random.bytes(length), (1 << bit) + below)


@cocotb.test
async def a_space_that_ends_at_any_byte(dut):
    """For each of two packets: none is written behind the end, and all of the frame is taken."""
    random = rng()
    bench, memory = await ready(dut, random)
    content = random.bytes(2 * PACKET + 40)
    for size in range(len(content) + 2):
        await write(bench, memory, random, 96, content, size)
    await write(bench, memory, random, 0, random.bytes(20 * PACKET), 0)


@cocotb.test
async def a_beat_a_cycle_at_300_cycles_of_latency(dut):
    random = rng()
    bench, memory = await ready(dut, random, latency=300)
    run = await write(bench, memory, random, 0, random.bytes(SIZE), SIZE)
    assert (np.diff(run.cycles["i"]) == 4).all(), "a packet in four cycles"
    assert (np.diff(memory.data) == 1).all(), "a beat in each cycle"
    run = await read(bench, memory, random, 0, SIZE)
    assert (np.diff(run.cycles["o"]) == 4).all()


@cocotb.test
async def begins_at_once(dut):
    random = rng()
    bench, memory = await ready(dut, random, latency=1)
    start = memory.cycle + 1  # of the pulse
    await write(bench, memory, random, 0, random.bytes(BURST), SIZE)
    assert [burst[2] - start for burst in memory.writes] == [10]  # two cycles after its eighth beat was stored
    assert [cycle - start for cycle in memory.data] == list(range(12, 20))
    start = memory.cycle + 1
    run = await read(bench, memory, random, 0, BURST)
    assert [burst[2] - start for burst in memory.reads] == [11]  # two cycles after the pulse, and eight beats and one
    assert np.diff(run.cycles["o"]).tolist() == [4]


@cocotb.test
async def flags_each_error_response(dut):
    random = rng()
    bench, memory = await ready(dut, random, pause="seldom")
    content = random.bytes(600)
    for index in [*range(3, 3 + 19), None]:
        memory.errors = {index}
        for decompress in (0, 1):
            dut.decompress.value, dut.base.value, dut.size.value = decompress, memory.base + 96, len(content)
            await begin(dut)
            if decompress:
                await bench.run({}, {"o": 5}, random)
            else:
                await bench.run({"i": packets(content)}, {}, random)
            await ends(dut)
            assert dut.error.value == (index is not None), f"beat {index}"


@cocotb.test
@cocotb.parametrize(order=["any", "address", "data"])
async def gives_up_at_any_moment(dut, order):
    random = rng()
    bench, memory = await ready(dut, random, pause={"aw": "half", "w": "half", "ar": "half"}, order=order)
    seen = set()
    for turn in range(80):
        memory.latency = int(random.integers(0, 60))
        base, length = place(random)
        size, decompress = length + int(random.integers(-20, 20)), turn % 2
        size = max(size, 0)
        dut.decompress.value, dut.base.value, dut.size.value = decompress, memory.base + base, size
        before, content = memory.words.view(np.uint8).copy(), random.bytes(length)
        moment = memory.cycle + int(random.integers(0, 100))
        await begin(dut)
        await bench.run({} if decompress else {"i": packets(content)}, {"o": None} if decompress else {}, random,
                        "seldom", "seldom", limit=10**6, until=lambda end=moment: memory.cycle >= end)
        dut.abort.value = 1
        asked = len(memory.writes) + len(memory.reads)
        await FallingEdge(dut.clk)
        await ends(dut)
        assert memory.idle and len(memory.writes) + len(memory.reads) <= asked + 2, "what is on offer, and one stored"
        dut.abort.value = 0
        assert not any(getattr(dut, f"m_axi_{name}valid").value == 1 for name in ("aw", "w", "ar"))
        after = memory.words.view(np.uint8)
        wanted = before.copy()
        fits = min(length, size)
        wanted[base : base + fits] = np.frombuffer(content[:fits], np.uint8)
        assert ((after == before) | ((after == wanted) & (not decompress))).all(), "a byte that is not the frame's"
        seen.add((decompress, bool((after != before).any() and (after != wanted).any())))
        await write(bench, memory, random, *place(random)[:1], random.bytes(300), 290)
        await read(bench, memory, random, *place(random))
    assert (0, True) in seen


@cocotb.test
async def starts_afresh_after_reset(dut):
    random = rng()
    bench = Bench(dut)
    await bench.start()
    for cycles in range(1, 60, 3):
        memory = filled(dut, SIZE, random)
        task = cocotb.start_soon(memory.run())
        await write(bench, memory, random, 64, random.bytes(500), 500)
        await read(bench, memory, random, 64, 500)
        dut.decompress.value, dut.base.value, dut.size.value = cycles & 1, memory.base + 32, 900
        await begin(dut)
        await bench.run({} if cycles & 1 else {"i": packets(random.bytes(900))}, {"o": None} if cycles & 1 else {},
                        random, until=lambda end=memory.cycle + cycles, memory=memory: memory.cycle >= end)
        await reset(bench, task)


@cocotb.test
@cocotb.parametrize(pause=["never", "half", "bursts"])
async def works_with_cocotbext_axis_ram(dut, pause):
    random = rng()
    bench, ram, words = await axi_ram(dut, Ram, AxiBus, SIZE, ("aw", "w", "b", "ar", "r"), pause, random)
    content = bytearray(words.tobytes())
    for _ in range(8):
        base, length = place(random)
        frame = random.bytes(length)
        content[base : base + length] = frame
        dut.decompress.value, dut.base.value, dut.size.value = 0, base, length
        await begin(dut)
        await bench.run({"i": packets(frame)}, {}, random)
        await ends(dut)
        assert ram.read(0, SIZE) == bytes(content)
        dut.decompress.value = 1
        await begin(dut)
        run = await bench.run({}, {"o": len(packets(frame))}, random)
        bench.equal(run["o"], packets(frame), "read back")
        await ends(dut)


class Ram(AxiRam):
    """One whose log is that of both its sides."""

    @property
    def log(self):
        return self.write_if.log


@cocotb.test
async def the_space_ends_with_memory(dut):
    random = rng()
    bench, memory = await ready(dut, random, latency=5)
    for base in range(SIZE - 512, SIZE, 32):
        for more in (0, 1, 300):
            length = SIZE - base + more
            await write(bench, memory, random, base, random.bytes(length), min(length, SIZE - 1))
            before = len(memory.reads)
            dut.decompress.value, dut.base.value, dut.size.value = 1, memory.base + base, min(length, SIZE - 1)
            await begin(dut)
            run = await bench.run({}, {"o": -(-(SIZE - base) // PACKET)}, random)
            await ends(dut)
            assert all(beat >> 8 * PACKET + 8 == (k == len(run["o"]) - 1) for k, beat in enumerate(run["o"]))
            check_bursts(memory.reads[before:], base, SIZE - base)


@cocotb.test
async def reads_no_more_than_may_be_outstanding(dut):
    random = rng()
    bench, memory = await ready(dut, random, latency=60)
    for base in (0, 32, 224):
        await read(bench, memory, random, base, 2000)
    assert memory.most == 8


SMALL = [the_space_ends_with_memory, reads_no_more_than_may_be_outstanding]
