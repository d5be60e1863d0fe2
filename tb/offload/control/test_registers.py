"""Bench of the registers: every bit of the map, equal to a model made from the same declaration."""

from dataclasses import replace

import cocotb
import pytest
from cocotb.triggers import FallingEdge, RisingEdge

from actcodec.codecs import JPEG_ACT, lane_modes
from actcodec.rtl.offload.control import register_map, setting
from actcodec.rtl.offload.control.register_map import ADDRESS_BITS, BITS, VALUES
from actcodec.rtl.offload.control.registers import Registers
from docs.registers import markdown
from tb.harness import (
    PATTERNS,
    ROOT,
    SEED,
    STALLS,
    Bench,
    after,
    parameters,
    regress,
    rng,
    simulate,
    synthesised,
)
from tb.offload.control.register_model import OKAY, SLVERR, STATUS, RegisterModel, pack
from tb.offload.trim import TRIM
from tb.offload.wire import payloads

# That of test_registers_axi.py has all there is.
BUILD = {name: synthesised("registers", name, value)
         for name, value in (("cdus", 3), ("modes", ("sfpr", "zvc", "comet", "trim")), ("address_width", 40),
                             ("formats", ("float32", "float16")), ("queue", 16))}
CAPABILITIES = {**BUILD, **{("sfpr", "zvc", "comet", "trim"): {"modes": 0b100010 | 1 << 21 | 1 << 60, "settings": 75,
                                                                  "lanes": BUILD["cdus"]},
                            JPEG_ACT: {"modes": 0b011110}}[BUILD["modes"]]}
CAPABILITIES["formats"] = {("float32", "float16"): 0b10, ("float32",): 0}[BUILD["formats"]]
BUILD["modes"] = payloads.modes(BUILD["modes"])
END = 1 << ADDRESS_BITS


# ------------------------------------------------------------------------------------------------ outside the simulator
@pytest.mark.parametrize("width", [BUILD["address_width"], *regress(32)])
def test_registers(width):
    simulate(Registers(**BUILD | {"address_width": width}), __file__, address_width=width)


@pytest.mark.parametrize("wrong", [{"cdus": 0}, {"cdus": 9}, {"cdus": "2"}, {"modes": ()}, {"modes": ("png",)},
                                   {"modes": "raw"}, {"address_width": 31}, {"address_width": 65},
                                   {"formats": ("float64", "float32")}, {"formats": ("float16",)}, {"queue": 3},
                                   {"queue": True}, {"queue": 65536}], ids=str)
def test_parameters_are_checked(wrong):
    (name, value), = wrong.items()
    with pytest.raises(ValueError, match=rf"{name} must be .*{value!r}".replace("(", r"\(").replace(")", r"\)")):
        Registers(**{**BUILD, **wrong})


def test_no_bits_overlap():
    places = [(bits.address, bit) for bits in BITS for bit in range(bits.low, bits.low + bits.width)]
    assert len(set(places)) == len(places) and all(bit < 32 for _, bit in places)
    assert all(bits.address < 1 << register_map.ADDRESS_BITS and bits.address % 4 == 0 for bits in BITS)
    for name, info in VALUES.items():
        parts = sorted((bits.part, bits.width) for bits in BITS if bits.name == name)
        assert [part for part, _ in parts] == [sum(w for _, w in parts[:k]) for k in range(len(parts))]
        assert sum(width for _, width in parts) == info.width


def test_the_codes_of_modes_stay():
    """Hardware and drivers that are out there know them."""
    assert {mode.name: mode.code for mode in lane_modes()}.items() >= {
        "raw": 0, "sfpr": 1, "sfpr-zvc": 2, "jpeg-act": 3, "brc": 4, "zvc": 5}.items()


def test_every_error_has_a_text():
    assert set(register_map.ERRORS) == set(register_map.ErrorCode)


def test_a_setting_has_one_place():
    """In the map, and among the modes of a device."""
    with pytest.raises(ValueError, match="setting key has the bits 1020 to 1029, must be one or more of 0 to 1023"):
        setting.Setting("key", 10, 1020)
    stages = (*TRIM.stages[:-1], replace(TRIM.stages[-1], settings=(setting.Setting("key", 40),)))
    other = replace(TRIM, name="other", code=61, stages=stages)
    with pytest.raises(ValueError, match="modes must agree on the place of setting key"):
        Registers(2, (TRIM, other))
    assert setting.width((TRIM,)) == 45


def test_the_default_of_a_setting_is_legal():
    with pytest.raises(ValueError, match="setting key has the default 0x0, must be legal"):
        setting.Setting("key", 40, limits=setting.entries(8, 5, least=1))


def test_document_is_up_to_date():
    text = markdown(lane_modes())
    assert (ROOT / "docs" / "registers.md").read_text() == text, "write it anew: python -m docs.registers"


# ------------------------------------------------------------------------------------------------- inside the simulator
def word(data, strobe=0xF):
    """A payload of channel w."""
    return data | strobe << 32


class SimulatedHost:
    """The unit, and the model that it has to equal."""

    def __init__(self, dut, random):
        self.dut, self.random, self.bench = dut, random, Bench(dut)
        self.model = RegisterModel(**CAPABILITIES | parameters())
        self.pulses = []

    async def start(self):
        await self.bench.start()
        self.status()
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
        if BUILD["queue"]:
            self.dut.fault.value = int(self.model.values["error"] != 0)

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
        for name in self.model.held:
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
    result = SimulatedHost(dut, random)
    await result.start()
    return result


@cocotb.test
async def reads_reset_values_everywhere(dut):
    it = await host(dut, rng())
    await it.read(range(0, END, 4))
    await it.check()
    await it.write([(address, 0xFFFFFFFF, 15) for address in it.model.words if address != 0x0C])
    await it.bench.reset()
    it.model = RegisterModel(**CAPABILITIES | parameters())
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
        cycle = run.cycles["aw"][0]
        if delay >= cycle:
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
    for address in (0x3C, 0x44, *([0x1A4] if BUILD["queue"] else [])):
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
async def lines_of_descriptors_replace_what_registers_have(dut):
    """While the host writes something else, and what is locked."""
    random = rng()
    it = await host(dut, random)
    if not BUILD["queue"]:
        return
    it.status(busy=1)
    for place in [*range(16)] * 2:
        line = random.bytes(32)
        for delay in (3, 0, 1, 2):  # before a write, in its cycle, behind it
            write = int(random.choice([0x18, 0x20, 0x48, 0x1AC])), int(random.integers(1 << 32)), 15
            task = cocotb.start_soon(_load(dut, delay, place, line))
            await it.bench.run({"aw": [write[0]], "w": [word(*write[1:])]}, {"b": 1}, random)
            await task
            it.model.write(*write)
            it.model.load(place, line)
            await it.check()
        await it.read(it.model.words)


async def _load(dut, delay, place, line):
    for _ in range(delay + 1):
        await FallingEdge(dut.clk)
    dut.line.value = 1 | place << 1 | int.from_bytes(line, "little") << 5
    await FallingEdge(dut.clk)
    dut.line.value = 0


@cocotb.test
async def the_doorbell_rings_when_head_is_written(dut):
    it = await host(dut, rng())
    if not BUILD["queue"]:
        return
    rung = []

    async def watch():
        while True:
            await RisingEdge(dut.clk)
            if dut.doorbell.value == 1:
                rung.append(int(dut.control.value) >> _below_head(it.model) & it.model.limits["head"])
            await FallingEdge(dut.clk)

    cocotb.start_soon(watch())
    for busy in (0, 1):
        it.status(busy=busy)
        for head in (1, 5, 31, 0):
            await it.write([(0x1AC, head, 15), (0x1A8, head, 15), (0x1B0, head, 15), (0x18, 0, 15)])
    assert rung == [1, 5, 31, 0] * 2


def _below_head(model):
    """Bits of ``control`` below those of the head."""
    return sum(model.limits[name].bit_length() for name in model.held[: model.held.index("head")])


@cocotb.test
async def reset_in_the_middle_of_an_access_leaves_nothing(dut):
    random = rng()
    it = await host(dut, random)
    for cycles in range(1, 5):
        dut.b__ready.value = dut.r__ready.value = 0
        await it.bench.run({"aw": [0x24], "w": [word(5)], "ar": [0x00]}, {}, random,
                           until=after(cycles - 1))
        await it.bench.reset()
        it.model = RegisterModel(**CAPABILITIES | parameters())
        assert dut.b__valid.value == 0 and dut.r__valid.value == 0
        await it.read(it.model.words)
        await it.write([(address, 7, 15) for address in sorted(it.model.locked)])
        await it.read(it.model.words)
