"""Bench of the registers behind cocotbext-axi's host: equal to the model, and what the driver expects."""

import cocotb
import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from cocotb.triggers import ClockCycles, FallingEdge, RisingEdge
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiResp

from actcodec import driver
from actcodec.codecs import lane_modes
from actcodec.rtl.offload.control import register_map, setting
from actcodec.rtl.offload.control.register_map import ADDRESS_BITS
from actcodec.rtl.offload.control.registers import Registers
from tb.harness import PATTERNS, SEED, Bench, rng, simulate
from tb.offload.control.register_model import STATUS, RegisterModel, pack

LANES = lane_modes()
ALL = {"cdus": 8, "modes": sum(1 << mode.code for mode in LANES), "settings": setting.width(LANES),
       "clipped": 1, "lanes": 8, "payloads": 2, "scans": 1, "queue": 256}
END = 1 << ADDRESS_BITS


class Flat(wiring.Component):
    """The registers with the ports that cocotbext-axi looks for."""

    def __init__(self):
        self.inner = Registers(8, LANES, payload="both", scan=True, queue=256)
        super().__init__({
            **{f"s_axil_{name}": In(width) for name, width in {
                "awaddr": ADDRESS_BITS, "awprot": 3, "awvalid": 1, "wdata": 32, "wstrb": 4, "wvalid": 1, "bready": 1,
                "araddr": ADDRESS_BITS, "arprot": 3, "arvalid": 1, "rready": 1}.items()},
            **{f"s_axil_{name}": Out(width) for name, width in {
                "awready": 1, "wready": 1, "bresp": 2, "bvalid": 1, "arready": 1, "rdata": 32, "rresp": 2,
                "rvalid": 1}.items()},
            **{name: self.inner.signature.members[name]
               for name in ("control", "start", "reset", "status", "done", "interrupt", "fault")},
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.inner = inner = self.inner
        payloads = {
            "aw": {"addr": inner.aw.payload}, "ar": {"addr": inner.ar.payload}, "b": {"resp": inner.b.payload},
            "w": {"data": inner.w.payload.data, "strb": inner.w.payload.strb},
            "r": {"data": inner.r.payload.data, "resp": inner.r.payload.resp},
        }
        for channel, payload in payloads.items():
            port, inwards = getattr(inner, channel), channel in ("aw", "w", "ar")
            for name, value in {**payload, "valid": port.valid, "ready": port.ready}.items():
                flat = getattr(self, f"s_axil_{channel}{name}")
                m.d.comb += value.eq(flat) if inwards ^ (name == "ready") else flat.eq(value)
        m.d.comb += [inner.status.eq(self.status), inner.done.eq(self.done), self.control.eq(inner.control),
                     inner.fault.eq(self.fault)]
        m.d.comb += [getattr(self, name).eq(getattr(inner, name)) for name in ("start", "reset", "interrupt")]
        return m


def test_registers_behind_axi():
    simulate(Flat(), __file__)


def pauses(name, random):
    return PATTERNS[name](np.random.default_rng(random.integers(2**63)))


def master(dut, random, pattern):
    """cocotbext-axi's host, resting on every channel as told."""
    result = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), dut.clk, dut.rst)
    channels = (result.write_if.aw_channel, result.write_if.w_channel, result.write_if.b_channel,
                result.read_if.ar_channel, result.read_if.r_channel)
    for channel in channels:
        channel.set_pause_generator(pauses(pattern, random))
    return result


@cocotb.test
@cocotb.parametrize(pattern=list(PATTERNS))
async def equals_the_model_behind_axi(dut, pattern):
    random = rng()
    bench, model = Bench(dut), RegisterModel(**ALL)
    await bench.start()
    dut.status.value = pack(STATUS, model)
    axi = master(dut, random, pattern)
    for _ in range(150):
        address = int(random.integers(END)) & ~3
        if random.random() < 0.6:
            first = int(random.integers(4))
            content = random.bytes(int(random.integers(1, 5 - first)))  # some bytes: the master sets strobes
            response = (await axi.write(address + first, content)).resp
            data = int.from_bytes(bytes(first) + content, "little")
            expected = model.write(address, data, (1 << len(content)) - 1 << first)
        else:
            result = await axi.read(address, 4)
            response = result.resp
            data, expected = model.read(address)
            assert int.from_bytes(result.data, "little") == data, f"SEED={SEED}: {address:#x}"
        assert response == AxiResp(expected), f"SEED={SEED}: {address:#x}"
    for address in model.words:
        assert int.from_bytes((await axi.read(address, 4)).data, "little") == model.read(address)[0], hex(address)


class Bus:
    """The driver's bus, over cocotbext-axi."""

    def __init__(self, axi):
        self.axi = axi

    async def read(self, address):
        return await self.axi.read_dword(address)

    async def write(self, address, value):
        assert (await self.axi.write(address, value.to_bytes(4, "little"))).resp == AxiResp.OKAY


class Memory:
    """Of which the driver takes as much as it writes."""

    def __init__(self):
        self.content = {}

    async def read(self, address, size):
        return self.content[address][:size]

    async def write(self, address, data):
        self.content[address] = bytes(data)


@cocotb.test
@cocotb.parametrize(error=[0, 3])
async def the_driver_runs_a_tensor_behind_axi(dut, error):
    random = rng()
    bench = Bench(dut)
    await bench.start()
    x = random.normal(size=(2, 3, 8, 16)).astype(np.float32)
    memory = Memory()
    memory.content[0x1000] = x.tobytes()

    async def accelerator():
        await RisingEdge(dut.start)
        await FallingEdge(dut.clk)
        dut.status.value = pack(STATUS, RegisterModel(**ALL), busy=1)
        for _ in range(100):
            await FallingEdge(dut.clk)
        counters = {name: (1 << 40) + k for k, name in enumerate(register_map.COUNTERS)}
        dut.status.value = pack(STATUS, RegisterModel(**ALL), **counters, error=error)
        dut.done.value, dut.fault.value = 1, int(error != 0)
        await FallingEdge(dut.clk)
        dut.done.value = 0

    async def interrupt():
        if dut.interrupt.value == 0:
            await RisingEdge(dut.interrupt)

    cocotb.start_soon(accelerator())
    host = await driver.Driver.open(Bus(master(dut, random, "seldom")), memory, interrupt)
    assert host.cdus == 8 and host.modes == tuple(mode.name for mode in LANES) and host.address_width == 64
    if error:
        with pytest.raises(driver.AcceleratorError, match="SHORT"):
            await host.compress(0x1000, x.shape, "jpeg-act", options={"dqt": "optH"}, scale_table=0x40)
    else:
        result = await host.compress(0x1000, x.shape, "jpeg-act", options={"dqt": "optH"}, scale_table=0x40)
        assert result.counters == {name: (1 << 40) + k for k, name in enumerate(register_map.COUNTERS)}
        assert memory.content[0x40] == result.scales.tobytes() and len(memory.content[0x40]) == 12
    await ClockCycles(dut.clk, 2)
    assert dut.interrupt.value == 0
