"""COMET's codec once more, a value, a bit and a step at a time: slow, and easy to check by eye."""

from fractions import Fraction

import numpy as np

from tb.judges.oracles import rows_of, sector_order


def quantized(x, s):
    """q of a float32 by its definition, or None for an outlier."""
    if not np.isfinite(x):
        return None
    exact = Fraction(float(x))
    if abs(exact) < Fraction(2) ** -126:
        exact = Fraction(0)
    q = abs(exact) / Fraction(s) + Fraction(1, 2)
    q = q.numerator // q.denominator
    return None if q > 2047 else q if exact > 0 else -q


def places(rows, width):
    """(row, column, number of the tile) of the values of a tiled tensor in coding order, without padding."""
    tiles = -(-width // 8)
    for sector in sector_order(rows + -rows % 8, tiles):
        row, tile = divmod(sector, tiles)
        for column in range(8 * tile, min(8 * tile + 8, width)):
            if row < rows:
                yield row, column, row // 8 * tiles + tile


def symbols(q, config, height=None):
    """Symbols of the integers of a tensor in coding order, and the number of the group of each.

    With a `height`, of a channel, `q` are the rows of a descriptor.
    """
    if not config.tiled:
        rows = [q.ravel().tolist()] if height is None else q.tolist()
        d, group, sectors, before = [], [], 0, []
        for row in rows:
            for k in range(0, len(row), 8):
                sector = row[k : k + 8]
                lefts = [before[7] if sectors % 32 and len(before) == 8 else 0, *sector]
                d += [v - left if config.horizontal else v for v, left in zip(sector, lefts, strict=False)]
                group += [sectors // 32] * len(sector)
                sectors, before = sectors + 1, sector
    else:
        if height is None:
            rows, height = [list(map(int, row)) for row, _ in rows_of(q)], q.shape[2]
        else:
            rows = q.tolist()

        def from_above(row, column):
            return rows[row][column] - (rows[row - 1][column] if config.vertical and row % 8 and row % height else 0)

        d, group = [], []
        for row, column, tile in places(len(rows), len(rows[0])):
            left = config.horizontal and column and not (column % 8 == 0 and tile % 4 == 0)
            d.append(from_above(row, column) - (from_above(row, column - 1) if left else 0))
            group.append(tile // 4)
    d = [v % 4096 for v in d]
    if config.signed:
        d = [2 * v if v < 2048 else 2 * (4096 - v) - 1 for v in d]
    return d, group


def codes(counts):
    """Canonical codes as strings, in the order of the symbols."""
    result, code = [], 0
    for length, n in enumerate(counts, 1):
        code <<= 1
        for _ in range(n):
            result.append(f"{code:0{length}b}")
            code += 1
    return result


def escape(u, bits, U):
    """Bytes of an escape, as strings of bits; `bits` of the float if it is an outlier, else None."""
    if bits is None:
        numbers = [u - U] if u < U + 224 else [224 + u // 256, u % 256]
    else:
        numbers = [240 + u // 256, u % 256, *int(bits).to_bytes(4, "little")]
    return [f"{number:08b}" for number in numbers]


def encode(u, bits, counts):
    """A stream, and the steps that made it; `bits` has the float of an outlier, and None for what is none."""
    code = codes(counts)
    U = len(code) - 1
    content = [[code[U], *escape(v, b, U)] if b is not None or v >= U else [code[v]]
               for v, b in zip(u, bits, strict=True)]
    content += [[code[0]]] * (-len(content) % 8)
    steps = []
    for i in range(0, len(content), 8):
        lanes = content[i : i + 8]
        steps += [[lane[k] if k < len(lane) else "0" for lane in lanes] for k in range(max(map(len, lanes)))]
    if not steps:
        return b"", steps
    strings = ["".join(lane) for lane in zip(*steps, strict=True)]
    held, given, stream = [0] * 8, [0] * 8, bytearray()

    def give(lane):
        byte = strings[lane][given[lane] : given[lane] + 8].ljust(8, "0")
        given[lane] += 8
        held[lane] += 8
        stream.append(int(byte, 2))

    for lane in range(8):
        give(lane)
    for step in steps:
        for lane in range(8):
            assert 8 <= held[lane] <= 22
            if held[lane] < 16:
                give(lane)
            held[lane] -= len(step[lane])
    return bytes(stream), steps


def decode(stream, count, counts):
    """`count` symbols, the floats of outliers (None for others), and "", "short" or "excess"."""
    table = {code: symbol for symbol, code in enumerate(codes(counts))}
    U, position = len(table) - 1, 0
    held = [""] * 8

    def refill(lane):
        nonlocal position
        held[lane] += f"{stream[position] if position < len(stream) else 0:08b}"
        position += 1

    def step(takes):
        got = []
        for lane, take in enumerate(takes):
            length = take(held[lane])
            bits, rest = held[lane][:length], held[lane][length:]
            asks = len(held[lane]) < 16
            held[lane] = rest
            if asks:
                refill(lane)
            got.append(bits)
        return got

    def code(bits):
        return next(n for n in range(1, 9) if bits[:n] in table)

    for lane in range(8) if count else ():
        refill(lane)
    u, floats = [], []
    for _ in range(-(-count // 8)):
        read = [table[bits] for bits in step([code] * 8)]
        owed = [1 if symbol == U else 0 for symbol in read]
        content = [[] for _ in range(8)]
        while any(owed):
            got = step([(lambda bits: 8) if n else (lambda bits: 1) for n in owed])
            for lane, bits in enumerate(got):
                if owed[lane]:
                    content[lane].append(int(bits, 2))
                    p = content[lane][0]
                    owed[lane] = (1 if p < 224 else 2 if p < 240 else 6) - len(content[lane])
        for symbol, numbers in zip(read, content, strict=True):
            if numbers:
                symbol = U + numbers[0] if len(numbers) == 1 else numbers[0] % 16 * 256 + numbers[1]
            u.append(symbol)
            floats.append(int.from_bytes(numbers[2:], "little") if len(numbers) == 6 else None)
    error = "short" if position > len(stream) else "excess" if position < len(stream) else ""
    return u[:count], floats[:count], error


def some_book(random):
    """Counts of a random complete book."""
    counts, free = [], 1
    for length in range(1, 9):
        free *= 2
        n = free if length == 8 else int(random.integers(0, free + 1) * random.random() ** 2)
        counts.append(n)
        free -= n
    return counts
