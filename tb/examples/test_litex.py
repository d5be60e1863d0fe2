"""The parts of the SoC in examples/litex; `make soc` builds all of it and runs it."""

import logging
import re

import pytest

from actcodec.rtl.offload.control.register_map import ADDRESS_BITS
from drivers.interfaces import ports
from examples.litex import golden
from tb.harness import ROOT

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::SyntaxWarning")  # of LiteX

PAGE = ROOT / "docs/soc.md"
FILES = [path for path in sorted((ROOT / "examples/litex").rglob("*")) if path.suffix in (".py", ".c")]


def printed():
    return re.search(r"```text\n(1 lane.*?)```", PAGE.read_text(), re.DOTALL)[1]


def test_the_page_shows_what_golden_has():
    assert not golden.differences(printed())


@pytest.mark.regress
@pytest.mark.parametrize("change", [("jpeg-act", "jpeg-axt"), ("in memory", "in streams"), ("no error", "an error"),
                                    ("half the room", "room")])
def test_a_difference_shows(change):
    assert golden.differences(printed().replace(*change))
    lines = printed().splitlines()
    for number in range(2, len(lines)):
        assert golden.differences("\n".join(lines[:number] + lines[number + 1 :])), lines[number]
    for number, text in enumerate(lines[2 : 2 + len(golden.CASES)], 2):
        for column in (1, 2, 5, 6, 7):
            words = text.split()
            words[column] = words[column][:-1] + str((int(words[column][-1], 16) + 1) % 10)
            assert golden.differences("\n".join([*lines[:number], " ".join(words), *lines[number + 1 :]]))


def test_code_on_the_page_is_that_of_the_example():
    blocks = re.findall(r"```(?:python|c)\n(.*?)```", PAGE.read_text(), re.DOTALL)
    texts = [path.read_text() for path in FILES]
    assert blocks
    for block in blocks:
        assert any(block in text for text in texts), block


def test_firmware_and_golden_have_the_same_cases():
    source = (ROOT / "examples/litex/firmware/main.c").read_text()
    assert [(mode, int(number)) for mode, number in re.findall(r'\{"([\w-]+)", (\d)\}', source)] == golden.CASES


@pytest.fixture(scope="module")
def soc(tmp_path_factory):
    """A SoC with a small accelerator: its ports are those of any. (folder, the accelerator's Verilog, SoC)."""
    from actcodec.units import UNITS
    from examples.litex import build
    from examples.litex.soc import SoC

    logging.disable(logging.INFO)
    folder = tmp_path_factory.mktemp("soc")
    path = folder / "actcodec.v"
    path.write_text(UNITS["accelerator"].verilog("actcodec", **build.PARAMETERS | {"modes": ("brc",)}))
    one = SoC(path)
    build.headers(one, folder)
    logging.disable(logging.NOTSET)
    return folder, path.read_text(), one


@pytest.mark.regress
def test_every_port_of_the_accelerator_is_connected(soc):
    _, verilog, one = soc
    declared = {f"{port.direction[0]}_{port.name}": port.width for port in ports(verilog, "actcodec")}
    connected = one.actcodec.ports
    assert connected.keys() == declared.keys()
    for name, width in declared.items():
        if not isinstance(connected[name], int) and hasattr(connected[name], "nbits"):
            assert len(connected[name]) == width, name


@pytest.mark.regress
def test_the_map_is_that_of_the_registers(soc):
    _, _, one = soc
    region = one.bus.regions["actcodec"]
    assert region.size >= 1 << ADDRESS_BITS and region.origin % region.size == 0 and not region.cached
    memory = one.bus.regions["main_ram"]
    assert memory.origin % memory.size == 0 and memory.origin + memory.size <= 1 << 32
    page = PAGE.read_text()
    for name in ("rom", "sram", "main_ram", "actcodec", "csr"):
        assert f"| 0x{one.bus.regions[name].origin:08x} |" in page, name


@pytest.mark.regress
def test_firmware_compiles_and_fits(soc):
    from examples.litex import build

    folder, _, one = soc
    words = build.firmware(folder)
    assert 4 * len(words) <= one.bus.regions["rom"].size
    one.init_rom("rom", words, auto_size=False)
    assert "actcodec actcodec" in build.hardware(one, folder)


@pytest.fixture(scope="module")
def board(soc, tmp_path_factory):
    """The SoC for the ECPIX-5 with that accelerator. (folder, SoC)."""
    from examples.litex import build
    from examples.litex.board import Board

    logging.disable(logging.INFO)
    source, _, _ = soc
    folder = tmp_path_factory.mktemp("board")
    one = Board(source / "actcodec.v")
    build.headers(one, folder)
    logging.disable(logging.NOTSET)
    return folder, one


@pytest.mark.regress
def test_the_board_s_memory_is_ddr3_and_its_firmware_trains_it(board):
    from examples.litex import build

    folder, one = board
    region = one.bus.regions["main_ram"]
    assert (region.origin, region.size) == (0x4000_0000, 512 << 20)
    words = build.firmware(folder)
    assert 4 * len(words) <= one.bus.regions["rom"].size
    assert b"sdram_init" in (folder / "firmware.elf").read_bytes()
    one.init_rom("rom", words, auto_size=False)
    verilog = build.hardware(one, folder)
    assert "actcodec actcodec" in verilog and "ECLKSYNCB" in verilog and "DQSBUFM" in verilog
    sizes = [int(last) + 1 for last in re.findall(r"^reg .*\[0:(\d+)\];", verilog, re.MULTILINE)]
    assert 4 * max(sizes) == one.bus.regions["rom"].size, "no memory inside is larger than the ROM"


@pytest.mark.regress
def test_what_the_bitstream_s_build_prints():
    from examples.litex.bitstream import USED, summary

    report = {"utilization": {kind: {"used": 1234, "available": 83640} for kind in USED},
              "fmax": {"sys": {"achieved": 80.25, "constraint": 75.0}}}
    lines, met = summary(report)
    assert met and lines[0] == "LUTs: 1,234 of 83,640" and lines[-1] == "sys: 80.2 MHz, needs 75.0"
    report["fmax"]["sys"]["achieved"] = 74.9
    assert summary(report) == ([*lines[:-1], "sys: 74.9 MHz, needs 75.0"], False)


@pytest.mark.regress
def test_memory_behind_its_arbiter(random):
    """Bursts of three masters at once, which rest at random: each reads what it wrote; elsewhere is DECERR."""
    from litex.gen import LiteXModule
    from litex.gen.sim import run_simulation
    from litex.soc.interconnect.axi import RESP_DECERR, AXIArbiter, AXIInterface

    from examples.litex.memory import Ram

    class Dut(LiteXModule):
        def __init__(self):
            self.masters = [AXIInterface(data_width=256, address_width=32) for _ in range(3)]
            self.ram = Ram(0x4000, 0x4000)
            self.arbiter = AXIArbiter(self.masters, self.ram.axi)

    dut, ended = Dut(), []

    def transfer(stream, rests, **fields):
        """Offers, until it is taken."""
        while random.random() < rests:
            yield
        for name, value in fields.items():
            yield getattr(stream, name).eq(value)
        yield stream.valid.eq(1)
        yield
        while not (yield stream.ready):
            yield
        yield stream.valid.eq(0)

    def receive(stream, rests):
        """What comes: (response, data, last)."""
        while True:
            yield stream.ready.eq(int(random.random() >= rests))
            yield
            if (yield stream.ready) and (yield stream.valid):
                answer = []
                for name in ("resp", "data", "last"):
                    if hasattr(stream, name):
                        answer.append((yield getattr(stream, name)))
                yield stream.ready.eq(0)
                return answer

    def master(number):
        """Writes, then reads, as many as are let in at once; a generator for each channel."""
        axi, content, rests, ends = dut.masters[number], {}, random.random() * 0.7, []
        bursts = [(0x8000 if random.random() < 0.2 else 0x4000 + 0x1000 * number) + 32 * int(random.integers(100))
                  for _ in range(20)]
        lengths = random.integers(1, 9, len(bursts)).tolist()
        bad = [place >= 0x8000 for place in bursts]

        def requests(stream, answers):
            while len(ends) < answers:
                yield
            for place, length in zip(bursts, lengths, strict=True):
                yield from transfer(stream, rests, addr=place, len=length - 1)
            yield

        def data():
            for place, length, wrong in zip(bursts, lengths, bad, strict=True):
                for k in range(length):
                    word, strobes = int.from_bytes(random.bytes(32)), int(random.integers(1 << 32))
                    yield from transfer(axi.w, rests, data=word, strb=strobes, last=int(k == length - 1))
                    content.update({place + 32 * k + byte: word >> 8 * byte & 255
                                    for byte in range(32) if strobes >> byte & 1 and not wrong})
            yield

        def written():
            for wrong in bad:
                assert (yield from receive(axi.b, rests))[0] == wrong * RESP_DECERR
                ends.append(number)
            yield

        def read():
            for place, length, wrong in zip(bursts, lengths, bad, strict=True):
                for k in range(length):
                    response, word, last = yield from receive(axi.r, rests)
                    assert (response, last) == (wrong * RESP_DECERR, k == length - 1)
                    if not wrong:
                        assert word == sum(content.get(place + 32 * k + byte, 0) << 8 * byte for byte in range(32))
            ended.append(number)

        return [requests(axi.aw, 0), data(), written(), requests(axi.ar, len(bursts)), read()]

    run_simulation(dut, [channel for number in range(3) for channel in master(number)])
    assert sorted(ended) == [0, 1, 2]
