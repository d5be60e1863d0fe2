"""Bench of the registers: every bit of the map, equal to a model made from the same declaration."""

from dataclasses import replace

import cocotb
import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from cocotb.triggers import ClockCycles, FallingEdge, RisingEdge
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiResp

from actcodec import driver
from actcodec.codecs import JPEG_ACT, lane_modes
from actcodec.rtl.offload import register_map, setting
from actcodec.rtl.offload.register_map import ADDRESS_BITS, BITS, VALUES
from actcodec.rtl.offload.registers import Registers
from tb.harness import PATTERNS, ROOT, SEED, STALLS, Bench, after, rng, simulate, synthesised
from tb.offload import payloads
from tb.offload.register_model import OKAY, SLVERR, RegisterModel
from tb.offload.trim import TRIM

# The other one, behind AXI, has all there is.
BUILD = {name: synthesised("registers", name, value)
         for name, value in (("cdus", 3), ("modes", ("sfpr", "zvc", "comet", "trim")), ("address_width", 40))}
CAPABILITIES = {**BUILD, **{("sfpr", "zvc", "comet", "trim"): {"modes": 0b100010 | 1 << 21 | 1 << 60, "settings": 75,
                                                                  "lanes": BUILD["cdus"]},
                            JPEG_ACT: {"modes": 0b011110}}[BUILD["modes"]]}
LANES = lane_modes()
ALL = {"cdus": 8, "modes": sum(1 << mode.code for mode in LANES), "settings": setting.width(LANES),
       "clipped": 1, "lanes": 8}
BUILD["modes"] = payloads.modes(BUILD["modes"])
END = 1 << ADDRESS_BITS
STATUS = [name for name, info in VALUES.items() if info.access == "ro" and name != "done"]


class Flat(wiring.Component):
    """The registers with the ports that cocotbext-axi looks for."""

    def __init__(self):
        self.inner = Registers(8, LANES)
        super().__init__({
            **{f"s_axil_{name}": In(width) for name, width in {
                "awaddr": ADDRESS_BITS, "awprot": 3, "awvalid": 1, "wdata": 32, "wstrb": 4, "wvalid": 1, "bready": 1,
                "araddr": ADDRESS_BITS, "arprot": 3, "arvalid": 1, "rready": 1}.items()},
            **{f"s_axil_{name}": Out(width) for name, width in {
                "awready": 1, "wready": 1, "bresp": 2, "bvalid": 1, "arready": 1, "rdata": 32, "rresp": 2,
                "rvalid": 1}.items()},
            **{name: self.inner.signature.members[name]
               for name in ("control", "start", "reset", "status", "done", "interrupt")},
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
        m.d.comb += [inner.status.eq(self.status), inner.done.eq(self.done), self.control.eq(inner.control)]
        m.d.comb += [getattr(self, name).eq(getattr(inner, name)) for name in ("start", "reset", "interrupt")]
        return m


# ------------------------------------------------------------------------------------------------ outside the simulator
def test_registers():
    simulate(Registers(**BUILD), __file__, tests="^(?!.*axi)")


def test_registers_behind_axi():
    simulate(Flat(), __file__, tests="axi")


@pytest.mark.parametrize("wrong", [{"cdus": 0}, {"cdus": 9}, {"cdus": "2"}, {"modes": ()}, {"modes": ("png",)},
                                   {"modes": "raw"}, {"address_width": 31}, {"address_width": 65}], ids=str)
def test_parameters_are_checked(wrong):
    (name, value), = wrong.items()
    with pytest.raises(ValueError, match=rf"{name} must be .*{value!r}".replace("(", r"\(").replace(")", r"\)")):
        Registers(**{**BUILD, **wrong})


def test_no_bits_overlap():
    taken = [(bits.address, bit) for bits in BITS for bit in range(bits.low, bits.low + bits.width)]
    assert len(set(taken)) == len(taken) and all(bit < 32 for _, bit in taken)
    assert all(bits.address < 1 << register_map.ADDRESS_BITS and bits.address % 4 == 0 for bits in BITS)
    for name, info in VALUES.items():
        parts = sorted((bits.part, bits.width) for bits in BITS if bits.name == name)
        assert [part for part, _ in parts] == [sum(w for _, w in parts[:k]) for k in range(len(parts))]
        assert sum(width for _, width in parts) == info.width


def test_the_codes_of_modes_stay():
    """Hardware and drivers that are out there know them."""
    assert {mode.name: mode.code for mode in LANES}.items() >= {
        "raw": 0, "sfpr": 1, "sfpr-zvc": 2, "jpeg-act": 3, "brc": 4, "zvc": 5}.items()


def test_every_error_has_a_text():
    assert set(register_map.ERRORS) == set(register_map.ErrorCode)


def test_a_setting_has_one_place():
    """In the map, and among the modes of a device."""
    with pytest.raises(ValueError, match="setting key has the bits 1020 to 1029, must be one or more of 0 to 1023"):
        setting.Setting("key", 10, 1020)
    other = replace(TRIM, name="other", code=61, told=(setting.Setting("key", 40),))
    with pytest.raises(ValueError, match="modes must agree on the place of setting key"):
        Registers(2, (TRIM, other))
    assert setting.width((TRIM,)) == 45


def test_document_is_up_to_date():
    text = register_map.markdown(LANES)
    assert (ROOT / "docs" / "registers.md").read_text() == text, "write it anew: python -m docs.registers"


def test_limits_stand_where_an_integrator_looks():
    """In words that say what the benches hold the hardware to."""
    document = (ROOT / "docs" / "integration.md").read_text().splitlines()
    for name, text in register_map.LIMITS.items():
        assert f"| {name} | {text} |" in document
    for name, (least, most) in register_map.RANGES.items():
        power = most.bit_length()
        assert register_map.LIMITS[f"`{name.upper()}`"].startswith(f"{least} to 2^{power} - {2**power - most}")


# ------------------------------------------------------------------------------------------------- inside the simulator
def word(data, strobe=0xF):
    """A payload of channel w."""
    return data | strobe << 32


def pack(names, model, **values):
    """Values of the model, but for those that are given, as a struct of those names."""
    result, at = 0, 0
    for name in names:
        result |= values.get(name, model.values[name]) << at
        at += model.limits[name].bit_length()
    return result


class Host:
    """The unit, and the model that it has to equal."""

    def __init__(self, dut, random):
        self.dut, self.random, self.bench = dut, random, Bench(dut)
        self.model = RegisterModel(**CAPABILITIES)
        self.pulses = []

    async def start(self):
        await self.bench.start()
        cocotb.start_soon(self._watch())

    async def _watch(self):
        """Notes every cycle of every pulse."""
        while True:
            await RisingEdge(self.dut.clk)
            for name in ("start", "reset"):
                if getattr(self.dut, name).value == 1:
                    self.pulses.append(name)

    def status(self, **values):
        """Sets what comes from the accelerator."""
        self.model.values |= values
        there = [name for name in STATUS if self.model.limits[name]]
        self.dut.status.value = pack(there, self.model)

    async def done(self, error=0):
        """A tensor ends: the code stands, a pulse comes, busy falls."""
        await FallingEdge(self.dut.clk)
        self.model.values["error"] = error
        self.status()
        self.dut.done.value = 1
        await FallingEdge(self.dut.clk)
        self.dut.done.value = 0
        self.model.finish(error)
        self.status()

    async def write(self, accesses, idle="never", stall="never"):
        """Writes ``(address, data, strobe)``; compares responses, pulses, ``control`` and the interrupt."""
        sources = {"aw": [address for address, _, _ in accesses], "w": [word(data, s) for _, data, s in accesses]}
        run = await self.bench.run(sources, {"b": len(accesses)}, self.random, idle, stall)
        self.bench.equal(run["b"], [self.model.write(*access) for access in accesses], "responses")
        await self.check()
        return run

    async def read(self, addresses, idle="never", stall="never"):
        """Reads; compares data and responses."""
        run = await self.bench.run({"ar": addresses}, {"r": len(addresses)}, self.random, idle, stall)
        expected = [self.model.read(address) for address in addresses]
        got = [(beat & 0xFFFFFFFF, beat >> 32) for beat in run["r"]]
        self.bench.equal(got, expected, f"reads of {[hex(address) for address in addresses]}")
        return run

    async def check(self):
        """Compares the outputs once they had time to settle."""
        for _ in range(2):
            await FallingEdge(self.dut.clk)
        assert self.pulses == self.model.pulses, f"SEED={SEED}: pulses {self.pulses}, expected {self.model.pulses}"
        held, at = int(self.dut.control.value), 0
        for name in (name for name, info in VALUES.items() if info.locked and self.model.limits[name]):
            width = self.model.limits[name].bit_length()
            got, at = held >> at & (1 << width) - 1, at + width
            assert got == self.model.values[name], f"SEED={SEED}: control.{name} is {got:#x}"
        assert self.dut.interrupt.value == self.model.interrupt

    def accesses(self, count):
        """Random writes: mostly where there is a register, often all ones or zeros, any strobes; each pulse once."""
        random, result = self.random, []
        for _ in range(count):
            address = int(random.choice(self.model.words)) if random.random() < 0.9 else int(random.integers(END))
            data = int(random.choice([0, 0xFFFFFFFF, random.integers(1 << 32)]))
            result.append((address, data, int(random.choice([15, random.integers(16)]))))
        result += [(0x0C, 1, 15), (0x0C, 2, 15)]
        return [result[k] for k in random.permutation(len(result))]

    def shake(self, busy):
        """Random values from the accelerator."""
        self.status(**{name: int.from_bytes(self.random.bytes(8), "little") & self.model.limits[name]
                       for name in STATUS if name != "busy"}, busy=int(busy))


async def host(dut, random):
    result = Host(dut, random)
    await result.start()
    return result


@cocotb.test
async def reads_reset_values_everywhere(dut):
    it = await host(dut, rng())
    await it.read(range(0, END, 4))
    await it.check()
    await it.write([(address, 0xFFFFFFFF, 15) for address in it.model.words if address != 0x0C])
    await it.bench.reset()
    it.model = RegisterModel(**CAPABILITIES)
    await it.read(range(0, END, 4))
    await it.check()


@cocotb.test
async def writes_each_bit_and_no_other(dut):
    random = rng()
    it = await host(dut, random)
    for address in range(0, END, 4):
        for data, strobe in ((0xFFFFFFFF, 15), (0, 15), (0xAAAAAAAA, 15), (0x55555555, 5), (0, 8), (0xFFFFFFFF, 2)):
            await it.write([(address, data, strobe)])
            await it.read([address])
        await it.write([(address, int(random.integers(1 << 32)) & (0xFFFFFFFC if address == 0x0C else 0xFFFFFFFF), 15)])
    await it.read(range(END))
    for address in (address for address in it.model.locked):
        for bit in range(32):
            await it.write([(address, 1 << bit, 15)])
            await it.read([address])
    await it.read(it.model.words)


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def random_accesses_equal_the_model(dut, idle, stall):
    random = rng()
    it = await host(dut, random)
    seen = set()
    for turn in range(6):
        it.shake(busy=turn % 3 == 1)
        writes = it.accesses(25)
        seen |= {(it.model.values["busy"], address in it.model.locked, strobe) for address, _, strobe in writes}
        await it.write(writes, idle, stall)
        if turn % 2:
            await it.done(int(random.choice([0, random.integers(1, 8)])))
            await it.check()
        await it.read([int(a) for a in random.permutation(END)[:60]], idle, stall)
    await it.read(range(0, END, 4), idle, stall)
    assert {key[:2] for key in seen} == {(b, h) for b in (0, 1) for h in (False, True)}
    assert {"start", "reset"} == set(it.pulses)


@cocotb.test
@cocotb.parametrize(late=["aw", "w"])
async def takes_address_and_data_in_any_order(dut, late):
    random = rng()
    it = await host(dut, random)
    writes = [(address, int(random.integers(1 << 32)), 15) for address in sorted(it.model.locked)]
    await it.write(writes, {late: "mostly"})
    await it.read(it.model.words)
    dut.b__ready.value = 1
    early = "w" if late == "aw" else "aw"
    run = await it.bench.run({early: [0]}, {"b": None}, random, until=after(20))
    assert not run.cycles[early], "half a write is not taken"


@cocotb.test
async def answers_at_its_rate(dut):
    it = await host(dut, rng())
    run = await it.write([(address, 0, 15) for address in sorted(it.model.locked)])
    count = len(it.model.locked)
    assert run.cycles["aw"] == run.cycles["w"] == list(range(1, 3 * count, 3))
    assert run.cycles["b"] == list(range(2, 3 * count, 3))
    run = await it.read(it.model.words)
    assert run.cycles["ar"] == list(range(0, 2 * len(it.model.words), 2))
    assert run.cycles["r"] == list(range(1, 2 * len(it.model.words), 2))


@cocotb.test
@cocotb.parametrize(stall=STALLS)
async def reads_and_writes_do_not_disturb_each_other(dut, stall):
    random = rng()
    it = await host(dut, random)
    it.shake(busy=False)
    reads = [address for address in it.model.words if address >= 0x80 and address not in it.model.locked] * 2
    writes = [(address, int(random.integers(1 << 32)), 15) for address in sorted(it.model.locked)]
    run = await it.bench.run(
        {"aw": [a for a, _, _ in writes], "w": [word(d) for _, d, _ in writes], "ar": reads},
        {"b": len(writes), "r": len(reads)}, random, {"aw": "half", "w": "seldom", "ar": "seldom"}, stall)
    it.bench.equal(run["b"], [it.model.write(*access) for access in writes], "responses")
    it.bench.equal(run["r"], [it.model.read(address)[0] for address in reads], "reads")
    await it.read(it.model.words)


@cocotb.test
async def start_and_reset_are_single_pulses(dut):
    it = await host(dut, rng())
    control = 0x0C
    for busy in (0, 1):
        it.status(busy=busy)
        for data in range(4):
            for strobe in (15, 1, 14, 0):
                await it.write([(control, data, strobe), (control, 0, 15)])
                await it.read([control])
    await it.write([(control, 1, 15)] * 3)  # busy: ignored
    assert it.pulses == ["start"] * 2 + ["reset"] * 4 + ["reset"] * 4


@cocotb.test
async def holds_the_descriptor_while_busy(dut):
    random = rng()
    it = await host(dut, random)
    await it.write([(address, int(random.integers(1 << 32)), 15) for address in sorted(it.model.locked)])
    before = int(dut.control.value)
    it.status(busy=1)
    run = await it.write([(address, int(random.integers(1 << 32)), 15) for address in sorted(it.model.locked)])
    assert set(run["b"]) == {SLVERR} and int(dut.control.value) == before
    await it.done()
    run = await it.write([(address, 0, 15) for address in sorted(it.model.locked)])
    assert set(run["b"]) == {OKAY} and int(dut.control.value) == 0


@cocotb.test
async def tells_of_the_end_until_cleared(dut):
    it = await host(dut, rng())
    for error in range(8):
        for enable in range(4):
            await it.write([(0x18, enable, 15), (0x0C, 1, 1)])
            it.status(busy=1)
            await it.read([0x10, 0x14])
            await it.done(error)
            await it.check()
            await it.read([0x10, 0x14])
            for clear in (0, 2, 1):  # nothing, then one, then the other
                await it.write([(0x14, clear, 15)])
                await it.read([0x14])
    await it.done(5)
    await it.write([(0x0C, 2, 1)])  # a soft reset forgets that a tensor was done, not what is pending
    await it.read([0x10, 0x14])
    assert it.model.values["error_pending"] == 1 and it.model.values["done"] == 0


@cocotb.test
@cocotb.parametrize(error=[0, 1])
async def an_end_in_the_cycle_of_its_clearing_is_not_lost(dut, error):
    """And what was pending before is cleared: a good tensor's end brings no error back."""
    random = rng()
    it = await host(dut, random)
    hit = 0
    for delay in range(8):
        await it.write([(0x14, 3, 15)])
        assert (await it.read([0x14]))["r"] == [0]
        await it.done(1)
        it.status(error=error)

        async def end(delay=delay):
            nonlocal hit
            for _ in range(delay + 1):  # the run starts with the next one
                await FallingEdge(dut.clk)
            dut.done.value = 1
            await RisingEdge(dut.clk)
            hit += dut.aw__ready.value == 1  # the cycle in which the write is done
            await FallingEdge(dut.clk)
            dut.done.value = 0

        task = cocotb.start_soon(end())
        run = await it.bench.run({"aw": [0x14], "w": [word(3)]}, {"b": 1}, random)
        await task
        it.model.write(0x14, 3)
        taken = run.cycles["aw"][0]
        if delay >= taken:
            it.model.finish(error)
        await it.read([0x14])
    assert hit


@cocotb.test
@cocotb.parametrize(error=[0, 2])
async def a_reset_in_the_cycle_of_an_end_forgets_it(dut, error):
    it = await host(dut, rng())
    it.status(error=error)
    hit = 0
    for delay in range(6):
        await it.write([(0x14, 3, 15), (0x0C, 1, 15)])
        before = len(it.pulses)

        async def end(delay=delay, before=before):
            """Until the cycle of the reset: the accelerator gives none behind it."""
            nonlocal hit
            for _ in range(delay + 1):
                await FallingEdge(dut.clk)
            if len(it.pulses) > before:
                return
            dut.done.value = 1
            await RisingEdge(dut.clk)
            if dut.reset.value == 0:
                it.model.finish(error)
            else:
                hit += 1
            await FallingEdge(dut.clk)
            dut.done.value = 0

        task = cocotb.start_soon(end())
        await it.bench.run({"aw": [0x0C], "w": [word(2)]}, {"b": 1}, it.random)
        await task
        it.model.write(0x0C, 2)
        await it.check()
        await it.read([0x10, 0x14])
    assert hit


@cocotb.test
async def refuses_address_bits_that_do_not_exist(dut):
    """With all that comes in the word; unless the byte is not written."""
    it = await host(dut, rng())
    width = it.model.values["address_width"]
    for address in (0x3C, 0x44):
        await it.write([(address, 0x12345678 & (1 << width - 32) - 1, 15)])
        for bit in range(32):
            run = await it.write([(address, 1 << bit | 1, 15)])
            assert run["b"] == [OKAY if bit < width - 32 else SLVERR]
            await it.read([address])
        for strobe in range(16):
            for byte in range(4):
                await it.write([(address, 0xFF << 8 * byte, strobe)])
                await it.read([address])


@cocotb.test
async def reset_in_the_middle_of_an_access_leaves_nothing(dut):
    random = rng()
    it = await host(dut, random)
    for cycles in range(1, 5):
        dut.b__ready.value = dut.r__ready.value = 0
        await it.bench.run({"aw": [0x24], "w": [word(5)], "ar": [0x00]}, {}, random,
                           until=after(cycles - 1))
        await it.bench.reset()
        it.model = RegisterModel(**CAPABILITIES)
        assert dut.b__valid.value == 0 and dut.r__valid.value == 0
        await it.read(it.model.words)
        await it.write([(address, 7, 15) for address in sorted(it.model.locked)])
        await it.read(it.model.words)


# ------------------------------------------------------------------------------------------------------------ the world
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
        dut.done.value = 1
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
            await host.compress(0x1000, x.shape, "jpeg-act", "optH", scale_table=0x40)
    else:
        result = await host.compress(0x1000, x.shape, "jpeg-act", "optH", scale_table=0x40)
        assert result.counters == {name: (1 << 40) + k for k, name in enumerate(register_map.COUNTERS)}
        assert memory.content[0x40] == result.scales.tobytes() and len(memory.content[0x40]) == 12
    await ClockCycles(dut.clk, 2)
    assert dut.interrupt.value == 0
