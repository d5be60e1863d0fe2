"""JPEG's Huffman codes for luminance, as logic: from symbols to codes and back, with no table to load.

Bits of codes and of streams are numbered in the order in which they are sent: bit 0 of a signal is the first one, the
most significant one of its code.

Source: ITU-T T.81, tables K.3 and K.5, annex C for codes.
"""

from itertools import chain

from amaranth.hdl import Cat, Const, Mux, Signal

from actcodec.rtl.common.onehot_shift import choose

__all__ = ["AC", "DC", "EOB", "LARGEST", "LONGEST", "ZRL", "decode_ac", "decode_dc", "encode_ac", "encode_dc"]

LARGEST = 8  # category of an int8
LONGEST = 16  # bits of a code
EOB, ZRL = 0x00, 0xF0
ESCAPE = 9  # ones in front of long codes
NONE = LONGEST  # bits that are passed over where there is no code


def _codes(counts, symbols):
    """{symbol: its code, a string of 0 and 1}; there are ``counts[k]`` codes of k + 1 bits, in ascending order."""
    codes, code, left = {}, 0, iter(symbols)
    for length, count in enumerate(counts, 1):
        for _ in range(count):
            codes[next(left)] = f"{code:0{length}b}"
            code += 1
        code <<= 1
    return codes


_RUNS = [  # symbols of K.5, run and category as one hexadecimal number, as far as they are in no simple order
    0x01, 0x02, 0x03, 0x00, 0x04, 0x11, 0x05, 0x12, 0x21, 0x31, 0x41, 0x06, 0x13, 0x51, 0x61, 0x07, 0x22, 0x71,
    0x14, 0x32, 0x81, 0x91, 0xA1, 0x08, 0x23, 0x42, 0xB1, 0xC1, 0x15, 0x52, 0xD1, 0xF0, 0x24, 0x33, 0x62, 0x72, 0x82,
]
_LONG = [run << 4 | category for run in range(16) for category in range(1, 11) if run << 4 | category not in _RUNS]
DC = {category: code for category, code in _codes([0, 1, 5, 1, 1, 1, 1, 1, 1], range(12)).items()
      if category <= LARGEST}
AC = {symbol: code for symbol, code in _codes([0, 2, 1, 3, 3, 2, 4, 3, 5, 5, 4, 4, 0, 0, 1, 125],
                                              chain(_RUNS, _LONG)).items() if symbol % 16 <= LARGEST}
"""Codes of the symbols that int8 values need, by symbol."""


def _bits(code, width):
    """A code as a constant of ``width`` bits, zeros after it."""
    return Const(int(code[::-1] or "0", 2), width)


def _function(key, values, width):
    """Logic that looks ``key`` up in ``values``, {key: value}; 0 for what is not there."""
    columns = [sum((values.get(k, 0) >> bit & 1) << k for k in range(1 << len(key))) for bit in range(width)]
    return Cat(Const(column, 1 << len(key)).bit_select(key, 1) for column in columns)


def encode_dc(m, category):
    """Code of a DC value's category: its bits (left aligned, zeros after) and how many they are."""
    values = {c: int(code[::-1], 2) | len(code) << LONGEST for c, code in DC.items()}
    dc_code = Signal(LONGEST + 5)
    m.d.comb += dc_code.eq(_function(category, values, LONGEST + 5))
    return dc_code[:LONGEST], dc_code[LONGEST:]


def encode_ac(m, run, category):
    """Code of a run, 0 to 15, and a category, 1 to 8, or of category 0 as run 15 (ZRL) or 0 (EOB).

    Codes of 16 bits are 9 ones and a number, which for one run is what ascends with the category.
    """
    short = {symbol: code for symbol, code in AC.items() if len(code) < LONGEST}
    values = {symbol: int(code[::-1], 2) | len(code) << LONGEST for symbol, code in short.items()}
    rows = {run: {symbol % 16: int(code[ESCAPE:], 2) for symbol, code in AC.items() if symbol >> 4 == run
                  and symbol not in short} for run in range(16)}
    base = {run: next(iter({number - category for category, number in row.items()}), 0) % 128
            for run, row in rows.items()}
    assert all(number == (base[run] + category) % 128 for run, row in rows.items() for category, number in row.items())
    short_code = Signal(LONGEST + 5)
    first, number = Signal(7, name="base"), Signal(7, name="number")
    long, key = Signal(name="long_code"), Cat(category, run)
    m.d.comb += [
        short_code.eq(_function(key, values, LONGEST + 5)),
        long.eq(_function(key, {symbol: 1 for symbol in AC if symbol not in short}, 1)),
        first.eq(_function(run, base, 7)),
        number.eq(first + category),
    ]
    # Of a long code the short one is 0.
    escaped = Cat(Const((1 << ESCAPE) - 1, ESCAPE), number[::-1], Const(LONGEST, 5))
    code = short_code | Mux(long, escaped, 0)
    return code[:LONGEST], code[LONGEST:]


def _matches(m, bits, code, name):
    match = Signal(name=name)
    m.d.comb += match.eq(bits[: len(code)] == _bits(code, len(code)))
    return match


def _digits(size):
    """A number of bits as two digits, one-hot: its remainder by 8 in eight bits, and how many eights in four."""
    return 1 << size % 8 | 1 << 8 + size // 8


def decode_dc(m, bits):
    """The symbol at the head of ``bits``, a code of K.3 and its value: category, :func:`_digits` of how many bits both
    have, and whether there is no code."""
    entries = [(_matches(m, bits, code, f"dc_{category}"), Const(category | _digits(len(code) + category) << 4, 16))
               for category, code in DC.items()]
    bad = bits[:6].all()
    entry = choose([*entries, (bad, Const(_digits(NONE) << 4, 16))])
    return entry[:4], entry[4:], bad


def decode_ac(m, bits):
    """The symbol at the head of ``bits``, a code of K.5 and its value: run, category, :func:`_digits` of how many bits
    both have, whether it is EOB, and whether there is no code."""
    short = {symbol: code for symbol, code in AC.items() if len(code) < ESCAPE + 4}
    entries = [(_matches(m, bits, code, f"ac_{symbol:02x}"),
                Const(symbol | _digits(len(code) + symbol % 16) << 8, 20)) for symbol, code in short.items()]
    values = {}
    for symbol, code in AC.items():
        if symbol not in short:
            for rest in range(1 << LONGEST - len(code)):
                text = code[ESCAPE:] + f"{rest:0{LONGEST - len(code)}b}"[: LONGEST - len(code)]
                values[int(text[::-1], 2)] = symbol | _digits(len(code) + symbol % 16) << 8 | 1 << 20
    long, lookup = Signal(name="long"), Signal(21, name="lookup")
    none = {key: _digits(NONE) << 8 for key in range(128) if key not in values}
    m.d.comb += [long.eq(bits[:ESCAPE].all()), lookup.eq(_function(bits[ESCAPE:LONGEST], values | none, 21))]
    entry = choose([*entries, (long, lookup)])
    return entry[4:8], entry[:4], entry[8:20], _match_of(short, entries, EOB), long & ~lookup[20]


def _match_of(codes, entries, symbol):
    return entries[list(codes).index(symbol)][0]
