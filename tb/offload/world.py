"""What stands around the accelerator in its benches: memory, DMA engine and host, all cocotbext-axi's models."""

import mmap
from dataclasses import replace

import numpy as np
from cocotb.triggers import ClockCycles, First, RisingEdge
from cocotbext.axi import (
    AxiBus,
    AxiLiteBus,
    AxiLiteMaster,
    AxiRam,
    AxiStreamBus,
    AxiStreamFrame,
    AxiStreamSink,
    AxiStreamSource,
)

from actcodec import codecs
from actcodec.driver import LENGTH, AcceleratorError, Driver
from actcodec.rtl.offload.control.register_map import COUNTERS, ErrorCode
from actcodec.rtl.offload.control.setting import width
from tb.harness import PATTERNS, SEED, Bench, parameters
from tb.offload.jobs import Job
from tb.offload.lanes import asked, drawn, model, stored

SIZE = 1 << 18  # bytes of memory
PATIENCE = 200_000  # cycles that a tensor may take


class World:
    """The accelerator ``dut`` among its neighbours, reset and opened by :meth:`start`.

    All lanes' ports lead to one memory, ``content``. :meth:`pause` has every channel rest now and then.
    """

    def __init__(self, dut, random):
        self.dut, self.random = dut, random
        self.bench = Bench(dut)
        self.cdus = parameters()["cdus"]
        self._mmap = mmap.mmap(-1, SIZE)
        self.content = np.frombuffer(self._mmap, np.uint8)

    async def start(self):
        await self.bench.start()
        dut = self.dut
        self.rams = [AxiRam(AxiBus.from_prefix(dut, f"m_axi_{k}"), dut.clk, dut.rst, size=SIZE, mem=self._mmap)
                     for k in range(self.cdus)]
        for k, ram in enumerate(self.rams):
            ram.read_if._read = self._reading(k, ram.read_if._read)
            ram.write_if._write = self._writing(k, ram.write_if._write)
        self.latency, self.failing = 0, None
        self.source = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis"), dut.clk, dut.rst)
        self.sink = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis"), dut.clk, dut.rst)
        self.lite = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), dut.clk, dut.rst)
        await ClockCycles(dut.clk, 2)
        self.driver = await Driver.open(Registers(self.lite), Contents(self.content), self.interrupt)
        assert self.driver.cdus == self.cdus and self.driver.modes == tuple(parameters()["modes"])

    def _reading(self, lane, read):
        """A read that takes its time, and may fail."""
        async def slow(address, length):
            if self.latency:
                await ClockCycles(self.dut.clk, 1 + int(self.random.integers(self.latency)))
            if self.failing == ("read", lane):
                raise RuntimeError("so it shall be")
            return await read(address, length)
        return slow

    def _writing(self, lane, write):
        async def failing(address, data):
            if self.failing == ("write", lane):
                raise RuntimeError("so it shall be")
            await write(address, data)
        return failing

    def pause(self, name, only=("memory", "stream", "host")):
        """``name`` is one of the harness's PATTERNS, for all channels of these sides; the others never rest."""
        sides = {"stream": [self.source, self.sink]}
        for side, slaves in (("memory", self.rams), ("host", [self.lite])):
            sides[side] = [channel for slave in slaves for channel in (
                slave.write_if.aw_channel, slave.write_if.w_channel, slave.write_if.b_channel,
                slave.read_if.ar_channel, slave.read_if.r_channel)]
        for side, channels in sides.items():
            for channel in channels:
                generator = np.random.default_rng(self.random.integers(2**63))
                rests = name != "never" and side in only
                channel.set_pause_generator(PATTERNS[name](generator) if rests else None)
                channel.pause = False

    async def interrupt(self):
        """Waits for it."""
        if self.dut.interrupt.value == 0:
            late = ClockCycles(self.dut.clk, PATIENCE)
            assert await First(RisingEdge(self.dut.interrupt), late) is not late, f"SEED={SEED}: no interrupt"

    # ---------------------------------------------------------------------------------------------------- tensors
    def place(self, mode, shape, stride=None, word=None):
        """Where a tensor goes, its scales behind it: (address, table, indices of its bytes)."""
        seen = codecs.lane_modes(mode)[0].model.view(shape)
        stride = stride or 4 * seen.width
        address = 4 * int(self.random.integers(64) if word is None else word)
        index = (address + stride * np.arange(seen.rows)[:, None] + np.arange(4 * seen.width)).reshape(-1)
        table = -(-(int(index[-1]) + 1) // 32) * 32 + 32 * int(self.random.integers(4))
        assert table + 4 * seen.channels + 64 <= SIZE, "the tensor is too large for the memory"
        return address, table, index

    @property
    def modes(self):
        """Those of the device that a user can ask for."""
        return asked(self.driver.modes)

    def golden(self, x, name):
        """The ``Compressed`` of a tensor."""
        mode, options = drawn(self.random, name, self.cdus)
        return mode.model.compress(x, **options)

    def fill(self):
        """Random bytes everywhere."""
        self.content[:] = np.frombuffer(self.random.bytes(SIZE), np.uint8)

    async def compress(self, x, name, dqt="optL", stride=None, word=None):
        """Has ``x`` compressed and compares everything with golden; (golden's ``Compressed``, the counters)."""
        mode, options = drawn(self.random, name, self.cdus, dqt=dqt)
        expected = mode.model.compress(x, **options)
        _, words, settings = mode.model.plan(x, **options)
        address, table, index = self.place(name, x.shape, stride, word)
        self.fill()
        self.content[index] = np.ascontiguousarray(x).view(np.uint8).reshape(-1)
        before = self.content.copy()
        result = await self.driver.compress(address, x.shape, name, scale_table=table, stride=stride, scales=words,
                                            signs=options.get("signs", False), settings=settings)
        passed = stored(expected)  # as it passes the stream
        frame = await self.sink.recv(compact=False)
        data, keep = bytes(frame.tdata), list(frame.tkeep)
        size = result.counters["bytes_out"]
        what = f"{name} {x.shape} on {self.cdus} CDUs, {options}, stride {stride}, address {address}, SEED={SEED}"
        assert size == sum(keep) == passed.payload_bytes, f"{what}: {size} bytes, expected {passed.payload_bytes}"
        assert all(keep[:size]) and len(data) % 128 == 0 and not any(data[size:]), f"{what}: the last packet is wrong"
        self.bench.equal(list(data[:size]), list(passed.payload), what)
        lane = passed.mode
        assert result.mode == lane.name and result.counters["bytes_in"] == x.nbytes
        made = mode.model.pack(replace(passed, payload=data[:size], scales=result.scales, settings=result.settings,
                                       lengths=result.lengths), **options)
        assert (made.mode, made.side) == (expected.mode, expected.side), f"{what}: {made.mode}, {made.side}"
        if lane.scaled:
            words = slice(table, table + 4 * result.scales.size)
            before[words] = self.content[words]
            scales = self.content[words].view(np.uint32) & np.uint32(0xFFFF0000)  # the rest is the mode's
            assert np.array_equal(scales.view(np.float32), passed.scales), f"{what}: scales"
        assert np.array_equal(self.content, before), f"{what}: memory has changed"
        return expected, result.counters

    async def decompress(self, compressed, stride=None, word=None, send=True, null=False):
        """Has it decompressed and compares memory with golden; the counters. Without ``send``, its payload waits at the
        stream already; with ``null``, a beat without bytes ends it."""
        c = stored(compressed)
        expected = model(compressed).decompress(compressed)
        address, table, index = self.place(c.mode.name, c.shape, stride, word)
        self.fill()
        before = self.content.copy()
        before[index] = expected.view(np.uint8).reshape(-1)
        if send:
            beat = 128 * null
            self.send(c.payload + bytes(beat), [1] * c.payload_bytes + [0] * beat if null else None)
        result = await self.driver.decompress(address, c.shape, c.mode.name, scales=c.scales, settings=c.settings,
                                              scale_table=table, stride=stride)
        if c.scales is not None:
            words = slice(table, table + 4 * c.scales.size)
            before[words] = self.content[words]
        what = f"{c.mode.name} {c.shape} from {self.cdus} CDUs, stride {stride}, address {address:#x}"
        wrong = np.flatnonzero(self.content != before)[:1]
        assert not wrong.size, (
            f"{what}, SEED={SEED}: memory at {wrong[0]:#x}, {np.searchsorted(index, wrong[0])} bytes into the tensor: "
            f"expected {before[wrong[0]]}, got {self.content[wrong[0]]}")
        assert result.counters["bytes_in"] == c.payload_bytes
        assert result.counters["bytes_out"] == expected.nbytes
        return result.counters

    def send(self, payload, keep=None):
        """Gives a frame to the DMA engine."""
        self.source.send_nowait(AxiStreamFrame(bytes(payload), tkeep=keep))

    async def round_trip(self, x, mode, dqt="optL", stride=None):
        """There and back."""
        compressed, _ = await self.compress(x, mode, dqt, stride)
        await self.decompress(compressed, stride)

    async def exchange(self, descriptor):
        """There and back as any host has it, from a descriptor that need not be that of a shape."""
        job = Job.draw(self.random, descriptor).at(4 * int(self.random.integers(64)))
        index, table = job.index(0), slice(job.table, job.end)
        assert job.end + 64 <= SIZE, "the tensor is too large for the memory"
        for back, words in ((False, job.words), (True, job.back)):
            self.fill()
            self.content[table] = words.view(np.uint8)
            if back:
                self.send(job.payload)
            else:
                self.content[index] = job.x.view(np.uint8).reshape(-1)
            expected = self.content.copy()
            error = await self.begin(job.mode, job.registers(back, job.lengths))
            what = f"{'de' * back}compress {job}, SEED={SEED}"
            assert error == ErrorCode.NONE, f"{what}: {error!r}"
            if back:
                rows = descriptor.restore(job.payload, job.lengths)[0] if job.lengths else descriptor.decompress(
                    job.payload, job.back)
                expected[index] = rows.view(np.uint8).reshape(-1)
            else:
                frame = await self.sink.recv(compact=False)
                size = sum(frame.tkeep)
                self.bench.equal(list(frame.tdata[:size]), list(job.payload), what)
                counters = dict(zip(COUNTERS, await self.driver.get(*COUNTERS), strict=True))
                assert [counters[name] for name in ("nans", "saturated")] == list(job.encoded[1:3]), what
            assert np.array_equal(self.content, expected), f"{what}: memory"
        return job

    async def begin(self, mode, values):
        """Writes registers, starts a tensor, and waits for its end: the error code."""
        driver = self.driver
        await driver.put({"settings": width([mode]), "lengths_in": LENGTH * self.cdus}, **values)
        await driver.put(done_pending=1, error_pending=1)
        await driver.put(start=1)
        await self.interrupt()
        error, = await driver.get("error")
        await driver.put(done_pending=1, error_pending=1)
        return ErrorCode(error)

    async def fails(self, coroutine, *codes):
        """``coroutine`` ends with one of the errors ``codes``, and an interrupt."""
        got = ErrorCode.NONE
        try:
            await coroutine
        except AcceleratorError as error:
            got = error.code
        assert got in codes, f"SEED={SEED}: expected {codes}, got {got!r}"

    async def quiet(self):
        """Nothing moves at the stream that leaves."""
        for _ in range(5):
            await RisingEdge(self.dut.clk)
            assert self.dut.m_axis_tvalid.value == 0, f"SEED={SEED}: a beat after the end"


class Registers:
    """The driver's bus."""

    def __init__(self, lite):
        self.lite = lite

    async def read(self, address):
        return int.from_bytes((await self.lite.read(address, 4)).data, "little")

    async def write(self, address, value):
        await self.lite.write(address, int(value).to_bytes(4, "little"))


class Contents:
    """The driver's memory."""

    def __init__(self, content):
        self.content = content

    async def read(self, address, size):
        return self.content[address : address + size].tobytes()

    async def write(self, address, data):
        self.content[address : address + len(data)] = np.frombuffer(data, np.uint8)


def tensor(random, shape, kind="normal"):
    """A tensor with what a network has, and what it should not have."""
    x = random.normal(0, 1, shape).astype(np.float32)
    if kind == "relu":
        x = np.maximum(x - np.float32(0.5), 0)
    if kind == "wild":
        flat = x.reshape(-1)
        special = np.array([np.nan, np.inf, -np.inf, 1e-40, -0.0, 3e38, 0], np.float32)
        at = random.random(flat.size) < 0.05
        flat[at] = random.choice(special, at.sum())
        x[:, : x.shape[1] // 2] *= np.float32(1e-20)
    return x


