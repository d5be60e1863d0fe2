"""The accelerator among models that nobody here wrote: cocotbext-axi's memory, DMA engine and host. A smoke test of
what ``test_accelerator`` does in full; and which ports answer others before the next edge."""

import json
import mmap
import os

import cocotb
import numpy as np
import pytest
from cocotb.triggers import ClockCycles, FallingEdge, First, RisingEdge, Timer
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

from actcodec.codecs import lane_modes
from actcodec.driver import AcceleratorError, Driver
from actcodec.rtl.jpegact.cdu import Cdu
from actcodec.rtl.offload.accelerator import Accelerator
from actcodec.rtl.offload.control.register_map import ErrorCode
from tb.harness import PATTERNS, SEED, Bench, rng, simulate
from tb.offload.lanes import drawn, model, stored

CDUS, MODES = 2, ("sfpr-zvc", "brc")  # a small lane, with scales, whose blocks vary in length or do not
SIZE = 1 << 18  # bytes of memory
TABLE = SIZE // 2  # of scales
PATIENCE = 200_000  # cycles that a tensor may take


def accelerator():
    return Accelerator(CDUS, lane_modes(*MODES), Cdu)


@pytest.mark.regress
def test_accelerator():
    simulate(accelerator(), __file__)


class Registers:
    """The driver's bus."""

    def __init__(self, lite):
        self.lite = lite

    async def read(self, address):
        return int.from_bytes((await self.lite.read(address, 4)).data, "little")

    async def write(self, address, value):
        await self.lite.write(address, int(value).to_bytes(4, "little"))


class System(Bench):
    """The accelerator with a host, a DMA engine, and one memory behind all of its lanes' ports."""

    def __init__(self, dut, random):
        super().__init__(dut)
        self.random, self.latency, self.failing = random, 0, None
        self._map = mmap.mmap(-1, SIZE)
        self.bytes = np.frombuffer(self._map, np.uint8)

    async def start(self):
        await super().start()
        dut = self.dut
        self.rams = [AxiRam(AxiBus.from_prefix(dut, f"m_axi_{k}"), dut.clk, dut.rst, size=SIZE, mem=self._map)
                     for k in range(CDUS)]
        for k, ram in enumerate(self.rams):
            ram.read_if._read = self._slowed("read", k, ram.read_if._read)
            ram.write_if._write = self._slowed("write", k, ram.write_if._write)
        self.source = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis"), dut.clk, dut.rst)
        self.sink = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis"), dut.clk, dut.rst)
        self.lite = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), dut.clk, dut.rst)
        await ClockCycles(dut.clk, 2)
        self.driver = await Driver.open(Registers(self.lite), self, self.interrupt)
        assert (self.driver.cdus, self.driver.modes) == (CDUS, MODES)

    def _slowed(self, side, lane, access):
        """An access of a memory that takes its time, and may fail."""
        async def slow(*arguments):
            if self.latency:
                await ClockCycles(self.clk, 1 + int(self.random.integers(self.latency)))
            if self.failing == (side, lane):
                raise RuntimeError("a fault of memory")
            return await access(*arguments)
        return slow

    async def read(self, address, size):
        """As the driver's memory."""
        return self.bytes[address : address + size].tobytes()

    async def write(self, address, data):
        self.bytes[address : address + len(data)] = np.frombuffer(data, np.uint8)

    def pause(self, name):
        """All channels rest as one of the harness's PATTERNS says."""
        channels = [self.source, self.sink]
        for side in (*self.rams, self.lite):
            channels += [side.write_if.aw_channel, side.write_if.w_channel, side.write_if.b_channel,
                         side.read_if.ar_channel, side.read_if.r_channel]
        for channel in channels:
            generator = np.random.default_rng(self.random.integers(2**63))
            channel.set_pause_generator(None if name == "never" else PATTERNS[name](generator))
            channel.pause = False

    async def interrupt(self):
        if self.dut.interrupt.value == 0:
            late = ClockCycles(self.clk, PATIENCE)
            assert await First(RisingEdge(self.dut.interrupt), late) is not late, f"SEED={SEED}: no interrupt"

    def place(self, mode, shape):
        """Memory full of random bytes, and where a tensor goes: its address, and the indices of its bytes."""
        self.bytes[:] = np.frombuffer(self.random.bytes(SIZE), np.uint8)
        view, address = lane_modes(mode)[0].model.view(shape), 4 * int(self.random.integers(64))
        return address, address + np.arange(4 * view.rows * view.width)

    async def compress(self, x, name):
        """Has ``x`` compressed, and compares everything with golden, whose ``Compressed`` it is."""
        mode, options = drawn(self.random, name, CDUS)
        expected = mode.model.compress(x, **options)
        lane, words, settings = mode.model.plan(x, **options)
        address, index = self.place(lane.name, x.shape)
        self.bytes[index] = np.ascontiguousarray(x).view(np.uint8).reshape(-1)
        before = self.bytes.copy()
        result = await self.driver.compress(address, x.shape, lane.name, scale_table=TABLE, scales=words,
                                            settings=settings, signs=options.get("signs", False))
        c, frame = stored(expected), await self.sink.recv(compact=False)
        data, keep, what = bytes(frame.tdata), list(frame.tkeep), f"{name} {x.shape}, {options}, SEED={SEED}"
        size = sum(keep)
        assert all(keep[:size]) and len(data) % 128 == 0 and not any(data[size:]), f"{what}: the last packet is wrong"
        self.equal(list(data[:size]), list(c.payload), what)
        assert result.mode == c.mode.name, what
        assert result.counters["bytes_in"] == x.nbytes and result.counters["bytes_out"] == size, what
        if c.scales is not None:
            before[TABLE : TABLE + c.scales.nbytes] = self.bytes[TABLE : TABLE + c.scales.nbytes]
            assert np.array_equal(result.scales, c.scales), what
        assert np.array_equal(self.bytes, before), f"{what}: memory has changed"
        return expected

    async def decompress(self, compressed, send=True):
        """Has it decompressed, and compares all of memory. Without ``send`` its frame waits at the stream already."""
        c = stored(compressed)
        address, index = self.place(c.mode.name, c.shape)
        before = self.bytes.copy()
        before[index] = model(compressed).decompress(compressed).view(np.uint8).reshape(-1)
        if send:
            self.source.send_nowait(AxiStreamFrame(c.payload))
        await self.driver.decompress(address, c.shape, c.mode.name, scales=c.scales, settings=c.settings,
                                     scale_table=TABLE)
        if c.scales is not None:
            before[TABLE : TABLE + c.scales.nbytes] = self.bytes[TABLE : TABLE + c.scales.nbytes]
        wrong = np.flatnonzero(self.bytes != before)[:1]
        assert not wrong.size, f"{c.mode.name} {c.shape}, SEED={SEED}: memory at {wrong[0]:#x}"

    async def both(self, x, name):
        await self.decompress(await self.compress(x, name))

    async def fails(self, coroutine, code):
        """``coroutine`` ends with the error ``code``."""
        try:
            await coroutine
        except AcceleratorError as error:
            assert error.code == code, f"SEED={SEED}: expected {code}, got {error.code}"
        else:
            raise AssertionError(f"SEED={SEED}: no error")


@cocotb.test
async def there_and_back(dut):
    random = rng()
    system = await System.started(dut, random)
    for k, shape in enumerate([(1, 3, 11, 40), (3, 2, 9, 24), (2, 40, 1, 1), (1, 5, 8, 8)]):
        for name in MODES:
            system.pause(("never", "seldom", "half", "bursts")[k])
            system.latency = (0, 0, 30)[k % 3]
            await system.both(random.normal(0, 1, shape).astype(np.float32), name)


@cocotb.test
async def recovers_from_errors_of_memory_and_soft_resets(dut):
    random = rng()
    system = await System.started(dut, random)
    x = random.normal(0, 1, (1, 3, 24, 40)).astype(np.float32)
    for lane in range(CDUS):
        compressed = await system.compress(x, "sfpr-zvc")
        system.failing = ("read", lane)
        await system.fails(system.compress(x, "sfpr-zvc"), ErrorCode.READ)
        await system.sink.recv()
        system.failing = ("write", lane)
        await system.fails(system.decompress(compressed), ErrorCode.WRITE)
        system.failing = None
        for back in (False, True):
            system.pause("half")
            task = cocotb.start_soon(system.decompress(compressed) if back else system.compress(x, "sfpr-zvc"))
            while dut.m_axi_0_arvalid.value == 0 and not task.done():
                await RisingEdge(dut.clk)
            await ClockCycles(dut.clk, int(random.integers(1, 100)))
            task.cancel()
            await system.driver.reset()
            system.pause("never")
            await ClockCycles(dut.clk, 40)
            if back and not system.source.idle():
                await system.decompress(compressed, send=False)
            while not system.sink.empty():
                system.sink.recv_nowait()
            await system.both(x, MODES[random.integers(2)])


@cocotb.test
async def cuts_all_paths_but_one(dut):
    """No port answers another before the next edge, but ``tready`` the rest of its stream."""
    random = rng()
    system = await System.started(dut, random)
    system.pause("half")
    inputs = {name: getattr(dut, name) for name in json.loads(os.environ["TB_INPUTS"])}
    outputs = {name: getattr(dut, name) for name, member in accelerator().signature.members.items()
               if name not in inputs}
    stream = [name for name in inputs if name.startswith("s_axis")]
    shaken = [[name for name in inputs if name not in stream], *([name] for name in stream)]
    task = cocotb.start_soon(system.both(random.normal(0, 1, (1, 2, 16, 40)).astype(np.float32), "sfpr-zvc"))
    answers = set()
    while not task.done():
        await FallingEdge(dut.clk)
        before = {name: int(port.value) for name, port in (inputs | outputs).items()}
        for names in shaken:
            for name in names:
                inputs[name].value = int.from_bytes(random.bytes(128), "little") & (1 << len(inputs[name])) - 1
            await Timer(50, "ps")
            answers |= {(names[0] if names[0] in stream else "others", name) for name, port in outputs.items()
                        if int(port.value) != before[name]}
            for name in names:
                inputs[name].value = before[name]
            await Timer(50, "ps")
        await ClockCycles(dut.clk, 1 if before["s_axis_tvalid"] else int(random.integers(5, 20)))
    await task
    assert {(f"s_axis_{name}", "s_axis_tready") for name in ("tvalid", "tlast")} <= answers, answers
    assert {output for _, output in answers} == {"s_axis_tready"} and "others" not in dict(answers), answers
