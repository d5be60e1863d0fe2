"""Sums of many terms in carry-save form: constant-coefficient dot products without a carry chain per term."""

from functools import cache

from amaranth.hdl import Cat, Const, Signal

__all__ = ["add", "columns", "compress", "count", "digits", "levels", "pair", "reduce", "reduced", "rows",
           "weigh"]


def add(m, a, b, c):
    """A full adder: sum and carry of three bits."""
    total, carry = Signal(name="total"), Signal(name="carry")
    m.d.comb += [total.eq(a ^ b ^ c), carry.eq((a & b) | (c & (a | b)))]
    return total, carry


def columns(m, terms, width):
    """The sum of unsigned terms, pairs (value, shift), modulo ``2**width``: full adders where there are bits, and one
    carry chain at the end."""
    one, other = compress(m, terms, width)
    return (one + other)[:width]


def count(bits):
    """How many of ``bits`` are set, as a balanced tree."""
    half = len(bits) // 2
    return count(bits[:half]) + count(bits[half:]) if half else bits[0]


def weigh(terms, width):
    """The bits of unsigned terms, pairs (value, shift), as a list of them for each of ``width`` weights."""
    return [[term[place - shift] for term, shift in terms if 0 <= place - shift < len(term)] for place in range(width)]


def pair(bits):
    """Two numbers whose sum is that of at most two bits of each weight."""
    return [Cat(column[row] if row < len(column) else Const(0, 1) for column in bits) for row in range(2)]


def compress(m, terms, width):
    """Two numbers whose sum is that of unsigned terms, pairs (value, shift), modulo ``2**width``."""
    bits = weigh(terms, width)
    while max(map(len, bits)) > 2:
        merged = [[] for _ in range(width + 1)]
        for place, column in enumerate(bits):
            whole = len(column) - len(column) % 3
            for index in range(0, whole, 3):
                total, carry = add(m, *column[index : index + 3])
                merged[place].append(total)
                merged[place + 1].append(carry)
            merged[place] += column[whole:]
        bits = merged[:width]
    return pair(bits)


@cache
def digits(coefficient, odd=(1,)):
    """Writes an integer as the shortest sum of ``sign * m * 2**shift`` with ``m`` among ``odd``.

    With ``odd=(1,)`` it is as short as the canonical signed-digit form; with ``(1, 3)`` a multiple of three that has
    been added up once stands for two digits. Returns a tuple of ``(sign, m, shift)``.
    """
    if coefficient == 0:
        return ()
    low = (coefficient & -coefficient).bit_length() - 1
    number = coefficient >> low
    if abs(number) in odd:
        return ((1 if number > 0 else -1, abs(number), low),)
    # Some term must cancel the lowest bit; what is left is even and smaller.
    return min(
        (((sign, m, low), *((s, n, shift + low) for s, n, shift in digits(number - sign * m, odd)))
         for m in odd for sign in (1, -1)),
        key=len,
    )


def rows(terms, constant, width):
    """Turns signed terms into unsigned rows of ``width`` bits whose sum, modulo ``2**width``, is theirs.

    A two's-complement term is worth its bits with the top one inverted, less that bit's weight; the weights, the
    ones that negation adds and ``constant`` are folded into one constant row. No sign is ever extended.

    Parameters
    ----------
    terms : list of (sign, signed value, shift)
    constant : int
        Added to the sum, for instance the half of a rounding.
    width : int
        Bits of each row.
    """
    result = []
    for sign, value, shift in terms:
        top = len(value) - 1
        body, msb = value[:top], value[top]
        if sign > 0:
            bits = Cat(body, ~msb)
            constant -= 1 << (top + shift)
        else:
            # -v = ~v + 1, and the inverted top bit of ~v is the top bit of v.
            bits = Cat(~body, msb)
            constant -= (1 << (top + shift)) - (1 << shift)
        result.append(Cat(Const(0, shift), bits)[:width])
    constant %= 1 << width
    if constant:
        result.append(Const(constant, width))
    return result


def levels(count, target=2):
    """How many levels of full adders bring ``count`` rows down to ``target``."""
    result = 0
    while count > target:
        count -= count // 3
        result += 1
    return result


def reduce(m, rows, width, depth):
    """Passes rows of ``width`` bits through ``depth`` levels of full adders (Wallace's tree) and returns the rows that
    are left: of three rows that meet, a row of sums and a row of carries."""
    for _ in range(depth):
        if len(rows) < 3:
            break
        whole = len(rows) - len(rows) % 3
        merged = []
        for index in range(0, whole, 3):
            a, b, c = (Cat(row, Const(0, width - len(row))) for row in rows[index : index + 3])
            # Signals, not expressions: what comes next reads each of them several times.
            total, carry = Signal(width, name="sum"), Signal(width, name="carry")
            m.d.comb += [total.eq(a ^ b ^ c), carry.eq(Cat(Const(0, 1), (a & b) | (c & (a | b))))]
            merged += [total, carry]
        rows = merged + rows[whole:]
    return rows


def reduced(m, bits, single=0, depth=None):
    """Adds bits up, given as a list of them for each weight, until there are at most two of any weight, and one of the
    ``single`` lowest, or until any further sum would take more than ``depth`` XORs; returns them in the same form. What
    would be carried beyond the highest weight is dropped.

    Column by column, and of a column the bits that are there first (V. Oklobdzija, D. Villeger, S. Liu, "A method for
    speed optimized partial product reduction", IEEE Transactions on Computers 45(3), 1996).
    """
    result, carries = [], []
    for weight, column in enumerate(bits):
        column, carries = [*((0, bit) for bit in column), *carries], []  # with the XORs that they took
        goal = 1 if weight < single else 2
        while len(column) > goal:
            column.sort(key=lambda pair: pair[0])
            # Three bits, of which two may stay, leave the last of them alone.
            count = 2 if len(column) == 2 or (len(column) == 3 and goal == 2) else 3
            (_, x), (second, y), *third = column[:count]
            if depth is not None and (max(second + 2, third[0][0] + 1) if third else second + 1) > depth:
                break
            column = column[count:]
            half, carry = Signal(name="half"), Signal(name="carry")
            m.d.comb += half.eq(x ^ y)
            if third:
                (last, z), = third
                total = Signal(name="total")
                m.d.comb += [total.eq(half ^ z), carry.eq((x & y) | (half & z))]
                column.append((max(second + 2, last + 1), total))
                carries.append((max(second + 1, last + 1), carry))
            else:
                m.d.comb += carry.eq(x & y)
                column.append((second + 1, half))
                carries.append((second, carry))
        result.append([bit for _, bit in column])
    return result
