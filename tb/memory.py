"""A memory behind a flat AXI4 port, for what cocotbext-axi's AxiRam does not do: a latency with many bursts under way,
a beat in every cycle, slaves that want address or data first, error responses, and a log of all bursts.

It holds the master to the protocol: what is offered stays as it is until taken, bursts are INCR of 32-byte beats that
do not cross 4 KiB, WLAST is where the length says.
"""

from collections import deque
from itertools import repeat

import cocotb
import numpy as np
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In
from cocotb.triggers import ClockCycles, FallingEdge, RisingEdge

from actcodec.rtl.common import axi
from tb.harness import PATTERNS, Bench

BURST = ("addr", "len", "size", "burst", "id", "cache", "prot")
CHANNELS = {"ar": BURST, "aw": BURST, "w": ("data", "strb", "last"), "r": ("data", "resp", "last", "id"),
            "b": ("resp", "id")}
MASTERS = ("axi", "reads", "writes")  # what units call their ports to memory


class Flat(wiring.Component):
    """A unit whose port to memory, ``axi`` or ``reads`` and ``writes``, is flat, called ``m_axi_``."""

    def __init__(self, unit):
        self.unit = unit
        members = {name: member for name, member in unit.signature.members.items() if name not in MASTERS}
        super().__init__(members | axi.ports("m_axi_", unit.address_width))

    def elaborate(self, platform):
        m = Module()
        m.submodules.unit = unit = self.unit
        ports = [getattr(unit, name) for name in MASTERS if hasattr(unit, name)]
        axi.connect(m, self, "m_axi_", **{"reads" if hasattr(port, "ar") else "writes": port for port in ports})
        for name, member in unit.signature.members.items():
            if name in MASTERS:
                continue
            if member.is_signature:
                wiring.connect(m, wiring.flipped(getattr(self, name)), getattr(unit, name))
            elif member.is_port:
                inside, outside = getattr(unit, name), getattr(self, name)
                m.d.comb += inside.eq(outside) if member.flow == In else outside.eq(inside)
        return m


async def begin(dut):
    """A pulse of ``start``."""
    await FallingEdge(dut.clk)
    dut.start.value = 1
    await FallingEdge(dut.clk)
    dut.start.value = 0
    assert dut.busy.value == 1 and dut.error.value == 0


async def ends(dut, limit=2000):
    """Waits until ``busy`` has fallen."""
    for _ in range(limit):
        await FallingEdge(dut.clk)
        if dut.busy.value == 0:
            return
    raise AssertionError(f"busy for {limit} cycles")


class Memory:
    """Memory of ``size`` bytes behind the port ``prefix`` of ``dut``; :attr:`words` is its content as uint32. It begins
    at the address ``base``, a multiple of 4096, from which all else counts.

    Start :meth:`run` with ``cocotb.start_soon``. ``latency`` is the number of cycles from a burst's acceptance to its
    first beat, or from its last beat to its response. ``pause`` names one of the harness's PATTERNS for all channels,
    or maps channels to them. ``order`` says what has to come before the other: "any", "address" (no beat is taken
    before its address) or "data" (an address is taken only after all beats of its burst). Beats whose index is in
    ``errors`` answer SLVERR or DECERR. ``reads`` and ``writes`` log (address, beats, cycle), ``data`` the cycles in
    which beats were written.
    """

    def __init__(self, dut, prefix, size, random, latency=3, pause="never", order="any", errors=(), base=0):
        self.dut, self.latency, self.order, self.errors, self.base = dut, latency, order, set(errors), base
        self.words = np.zeros(size // 4, np.uint32)
        self.reads, self.writes, self.data = [], [], []
        self.cycle = 0
        self.outstanding = self.most = 0  # beats asked for and not taken: now, and at the most
        self._pins = {channel: {name: getattr(dut, f"{prefix}{channel}{name}") for name in (*names, "valid", "ready")
                                if hasattr(dut, f"{prefix}{channel}{name}")} for channel, names in CHANNELS.items()}
        generators = {channel: np.random.default_rng(random.integers(2**63)) for channel in CHANNELS}
        names = pause if isinstance(pause, dict) else dict(zip(CHANNELS, repeat(pause), strict=False))
        self._pause = {channel: PATTERNS[names.get(channel, "never")](generators[channel]) for channel in CHANNELS}
        self._r, self._b = deque(), deque()  # (cycle from which it may be offered, fields)
        self._aw, self._w = deque(), deque()  # accepted, and not yet brought together
        self._offered, self._taking = {}, {}

    @property
    def idle(self):
        """Nothing is under way."""
        return not (self._r or self._b or self._aw or self._w)

    def _sample(self, channel):
        """The fields of a transfer on a channel of the master's, or None; checks that an offer stands."""
        pins = self._pins[channel]
        if pins["valid"].value != 1:
            assert channel not in self._offered, f"{channel}valid withdrawn in cycle {self.cycle}"
            return None
        fields = {name: int(pins[name].value) for name in CHANNELS[channel]}
        before = self._offered.pop(channel, fields)
        assert before == fields, f"{channel} changed before it was taken, cycle {self.cycle}"
        if not self._taking[channel]:
            self._offered[channel] = fields
            return None
        return fields

    def _burst(self, fields):
        address, beats = fields["addr"] - self.base, fields["len"] + 1
        assert (fields["size"], fields["burst"]) == (5, 1), "not an INCR burst of 32 bytes a beat"
        size = beats * axi.BEAT
        assert address % axi.BEAT == 0 and address % 4096 + size <= 4096, f"burst of {beats} at {address:#x}"
        assert 0 <= address <= self.words.nbytes - size, f"burst of {beats} at {address:#x} is outside"
        return address, beats

    def _resp(self, index):
        return 2 + index % 2 if index in self.errors else 0

    def _write(self):
        """Brings addresses and data together."""
        while self._aw and len(self._w) >= self._aw[0][1]:
            address, beats = self._aw.popleft()
            resp = 0
            for index in range(address // axi.BEAT, address // axi.BEAT + beats):
                fields = self._w.popleft()
                assert fields["last"] == (index == address // axi.BEAT + beats - 1), f"WLAST in cycle {self.cycle}"
                strobe = np.unpackbits(np.uint32([fields["strb"]]).view(np.uint8), bitorder="little").astype(bool)
                content = np.frombuffer(fields["data"].to_bytes(axi.BEAT, "little"), np.uint8)
                self.words.view(np.uint8)[index * axi.BEAT : (index + 1) * axi.BEAT][strobe] = content[strobe]
                resp = resp or self._resp(index)
            self._b.append((self.cycle + self.latency, {"resp": resp, "id": 0}))

    def _step(self):
        """One rising edge."""
        burst = self._sample("ar")
        if burst:
            address, beats = self._burst(burst)
            self.reads.append((address, beats, self.cycle))
            self.outstanding += beats
            self.most = max(self.most, self.outstanding)
            for index in range(address // axi.BEAT, address // axi.BEAT + beats):
                self._r.append((self.cycle + self.latency, {"index": index, "id": 0, "resp": self._resp(index),
                                                            "last": index == address // axi.BEAT + beats - 1}))
        burst = self._sample("aw")
        if burst:
            address, beats = self._burst(burst)
            self.writes.append((address, beats, self.cycle))
            self._aw.append((address, beats))
        beat = self._sample("w")
        if beat:
            self._w.append(beat)
            self.data.append(self.cycle)
        self._write()
        for channel, queue in (("r", self._r), ("b", self._b)):
            if self._taking[channel] and self._pins[channel]["ready"].value == 1:
                queue.popleft()
                self._taking[channel] = False
                self.outstanding -= channel == "r"
        self.cycle += 1

    def _drive(self):
        """Between the edges: what this side offers."""
        rests = {channel: next(pause) for channel, pause in self._pause.items()}
        aw, w = self._pins["aw"], self._pins["w"]
        ready = {"ar": True, "aw": True, "w": True}
        if self.order == "address":
            ready["w"] = sum(beats for _, beats in self._aw) > len(self._w)
        elif self.order == "data":
            ready["aw"] = aw["valid"].value == 1 and len(self._w) > int(aw["len"].value)
            ready["w"] = w["valid"].value == 1
        for channel, able in ready.items():
            self._taking[channel] = able and not rests[channel]
            self._pins[channel]["ready"].value = int(self._taking[channel])
        for channel, queue in (("r", self._r), ("b", self._b)):
            offering = self._taking.get(channel) or bool(queue and queue[0][0] <= self.cycle and not rests[channel])
            self._taking[channel] = offering
            pins = self._pins[channel]
            pins["valid"].value = int(offering)
            if offering:
                fields = dict(queue[0][1])
                if channel == "r":
                    index = fields.pop("index")
                    fields["data"] = int.from_bytes(self.words[index * 8 : index * 8 + 8].tobytes(), "little")
                for name, value in fields.items():
                    pins[name].value = int(value)

    async def run(self):
        """Serves the port for ever."""
        await FallingEdge(self.dut.clk)
        while True:
            self._drive()
            await RisingEdge(self.dut.clk)
            self._step()
            await FallingEdge(self.dut.clk)


def filled(dut, size, random, **options):
    """A :class:`Memory` at ``m_axi_``, with random contents."""
    memory = Memory(dut, "m_axi_", size, random, **options)
    memory.words[:] = random.integers(0, 1 << 32, memory.words.size)
    return memory


async def started(dut, size, random, **options):
    """A bench, started, and such a memory, under way."""
    bench = Bench(dut)
    await bench.start()
    memory = filled(dut, size, random, **options)
    cocotb.start_soon(memory.run())
    return bench, memory


async def reset(bench, memory):
    """A reset of the unit and of its memory, of which :class:`Memory.run` is the task, at any moment."""
    memory.cancel()
    for name in ("arready", "awready", "wready", "bvalid", "rvalid"):
        if hasattr(bench.dut, f"m_axi_{name}"):
            getattr(bench.dut, f"m_axi_{name}").value = 0
    await bench.reset()
    assert bench.dut.busy.value == 0


async def axi_ram(dut, ram, bus, size, channels, pause, random):
    """A bench, started; cocotbext-axi's ``ram`` at ``m_axi_``, whose ``channels`` rest as ``pause``, one of PATTERNS,
    says; and its random words."""
    bench = Bench(dut)
    await bench.start()
    ram = ram(bus.from_prefix(dut, "m_axi"), dut.clk, dut.rst, size=size)
    ram.log.setLevel("WARNING")
    words = random.integers(0, 1 << 32, size // 4).astype(np.uint32)
    ram.write(0, words.tobytes())
    if pause != "never":
        for channel in channels:
            side = getattr(ram, "read_if" if channel in ("ar", "r") else "write_if", ram)  # one of two, or all there is
            getattr(side, f"{channel}_channel").set_pause_generator(
                PATTERNS[pause](np.random.default_rng(random.integers(2**63))))
    await ClockCycles(dut.clk, 2)
    return bench, ram, words
