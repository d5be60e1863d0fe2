"""Bench of the Huffman codes: every symbol to its code, and every string of 16 bits to its symbol, as golden's."""

import cocotb
from amaranth.hdl import Const, Module, Mux
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from cocotb.triggers import Timer

from actcodec.golden.jpegact import huffman as golden
from actcodec.rtl.jpegact import huffman
from tb.harness import simulate


class Codes(wiring.Component):
    """All four functions: of ``symbol``, and of ``bits``, whose first one is bit 0."""

    symbol: In(8)
    bits: In(16)
    dc_code: Out(16)
    dc_length: Out(5)
    ac_code: Out(16)
    ac_length: Out(5)
    dc: Out(10)
    ac: Out(15)

    def elaborate(self, platform):
        m = Module()
        code, length = huffman.encode_dc(m, self.symbol[:4])
        m.d.comb += [self.dc_code.eq(code), self.dc_length.eq(length)]
        code, length = huffman.encode_ac(m, self.symbol[4:], self.symbol[:4])
        m.d.comb += [self.ac_code.eq(code), self.ac_length.eq(length)]
        category, size, bad = huffman.decode_dc(m, self.bits)
        m.d.comb += [self.dc[:4].eq(category), self.dc[4:9].eq(_number(size)), self.dc[9].eq(bad)]
        run, category, size, end, bad = huffman.decode_ac(m, self.bits)
        m.d.comb += [self.ac[:4].eq(category), self.ac[4:8].eq(run), self.ac[8:13].eq(_number(size)),
                     self.ac[13].eq(end), self.ac[14].eq(bad)]
        return m


def _number(digits):
    """Of two digits, one-hot; 31 of any that are not."""
    number = Const(31, 5)
    for size in range(25):
        number = Mux(digits == (1 << size % 8 | 1 << 8 + size // 8), size, number)
    return number


def test_huffman():
    simulate(Codes(), __file__)


def mirrored(number):
    return int(f"{number:016b}"[::-1], 2)


@cocotb.test
async def every_symbol_has_its_code(dut):
    dut.bits.value = 0
    for table, kind in ((golden.K3, "dc"), (golden.K5, "ac")):
        symbols = [s for s in range(256) if table.length[s] and s % 16 <= golden.LARGEST]
        assert len(symbols) == (9 if kind == "dc" else 16 * 8 + 2)
        for symbol in symbols:
            dut.symbol.value = symbol
            await Timer(1, "ns")
            length = int(table.length[symbol])
            got = int(getattr(dut, f"{kind}_code").value), int(getattr(dut, f"{kind}_length").value)
            assert got == (mirrored(int(table.code[symbol]) << 16 - length), length), f"{kind} {symbol:02x}: {got}"


@cocotb.test
async def every_string_has_its_symbol(dut):
    dut.symbol.value = 0
    for string in range(1 << 16):
        dut.bits.value = mirrored(string)
        await Timer(1, "ns")
        for table, port in ((golden.K3, dut.dc), (golden.K5, dut.ac)):
            entry = int(table.lookup[string])
            length, symbol, got = entry >> 8, entry & 0xFF, int(port.value)
            if table is golden.K3:
                expected = symbol | length + symbol % 16 << 4 if entry else 16 << 4 | 1 << 9
                got = got if entry else got & ~15
            else:
                expected = symbol | length + symbol % 16 << 8 | (symbol == golden.EOB) << 13 if entry else (
                    16 << 8 | 1 << 14)
                got = got if entry else got & ~255
            assert got == expected, f"{string:016b}: {got:#x}, expected {expected:#x}"
