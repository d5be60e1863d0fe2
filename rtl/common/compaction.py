"""The shifter that moves the non-zero ones of eight words together, and apart again.

A word moves down by the number of zero words below it: first those that have to by one, then by two, then by four; in
this order no two words meet. When decompressing, a word moves up in the reverse order of steps.

All is combinational, and comes in parts between which a unit can put its registers: :func:`zeros`, then :func:`moves`,
or the first of them by :func:`move`, then :func:`close` or :func:`reopen`, each of these three steps of a two-way
multiplexer.

Source: JPEG-ACT, section III-F, for what it does; the order of the steps is that of compress and expand networks.
"""

from amaranth.hdl import Cat, Const, Mux

from actcodec.rtl.common.wires import wire

__all__ = ["close", "move", "moves", "ones", "reopen", "zeros", "zeros_by_gates"]

WORDS = 8


def zeros(m, nonzero):
    """How many zero words lie below each word that is not; 0 for words that are.

    ``nonzero`` has a bit for each of the eight words. Returns eight values, each as wide as it can become.
    """
    return _wires(m, [Mux(nonzero[k], sum((~nonzero[j] for j in range(k)), start=Const(0, 3))[:k.bit_length()], 0)
                      for k in range(WORDS)])


def zeros_by_gates(m, nonzero):
    """The same numbers by gates, for late signals: adders of so few bits would become chains."""
    counts = []
    for k, one in enumerate(nonzero):
        others = [*(~other for other in nonzero[:k]), *(WORDS - k) * [Const(0, 1)]]
        low, high = ones(others[:4]), ones(others[4:])
        half, carry = low[1] ^ high[1], low[0] & high[0]
        count = Cat(low[0] ^ high[0], half ^ carry, low[2] | (low[1] & high[1]) | (half & carry))
        counts.append(wire(m, Mux(one, count[: k.bit_length()], 0)))
    return counts


def ones(bits):
    """How many of four bits are 1, by gates."""
    a, b, c, d = bits
    one, two, other_one, other_two = a ^ b, a & b, c ^ d, c & d
    return Cat(one ^ other_one, (two ^ other_two) | (one & other_one), two & other_two)


def moves(m, counts, first=0):
    """The shifter's control, from what :func:`zeros` gives: for each of the three steps eight bits, one for each
    position: the word that is there before the step moves. Steps before ``first`` have been done by :func:`move`."""
    steps = []
    for number in range(first, 3):
        step, counts = move(m, counts, number)
        steps.append(step)
    return steps


def move(m, counts, number):
    """The control of one step, which is the lowest bit of each count, and the other bits, moved by this step."""
    # The count travels with its word, so that each step finds its bit where the word then is.
    step = Cat(count[0] for count in counts)
    return step, _down(m, [count[1:] for count in counts], 1 << number, step)


def close(m, words, steps):
    """The non-zero ones of eight words moved together, zeros after them."""
    for bit, step in enumerate(steps):
        words = _down(m, words, 1 << bit, step)
    return words


def reopen(m, words, steps):
    """The reverse of :func:`close`, whatever lies after the words that count; where it had zeros, anything may come
    out."""
    for bit, step in reversed(list(enumerate(steps))):
        by = 1 << bit
        words = _wires(m, words[:by] + [Mux(step[k], words[k - by], words[k]) for k in range(by, WORDS)])
    return words


def _wires(m, values):
    return [wire(m, value) for value in values]


def _down(m, words, by, step):
    """One step of closing gaps: words that do not mean anything are zero, so that merging is an OR."""
    stay = [Mux(step[k], 0, words[k]) for k in range(WORDS)]
    arrivals = [Mux(step[k], words[k], 0) for k in range(by, WORDS)] + [0] * by
    return _wires(m, [one | other for one, other in zip(stay, arrivals, strict=True)])
