"""The shifter that moves the non-zero ones of eight words together, and apart again.

A word moves down by the number of zero words below it: first those that have to by one, then by two, then by four; in
this order no two words meet. On the way back a word moves up in the reverse order of steps.

All is combinational, and comes in parts between which a unit can put its registers: :func:`zeros`, then :func:`moves`,
then :func:`close` or :func:`reopen`, each of these three steps of a two-way multiplexer.

Source: JPEG-ACT, section III-F, for what it does; the order of the steps is that of compress and expand networks.
"""

from amaranth.hdl import Cat, Const, Mux

from actcodec.rtl.common.wires import wire

__all__ = ["close", "moves", "reopen", "zeros"]

WORDS = 8


def zeros(m, nonzero):
    """How many zero words lie below each word that is not; 0 for words that are.

    ``nonzero`` has a bit for each of the eight words. Returns eight values, each as wide as it can become.
    """
    return _wires(m, [Mux(nonzero[k], sum((~nonzero[j] for j in range(k)), start=Const(0, 3))[:k.bit_length()], 0)
                      for k in range(WORDS)])


def moves(m, counts):
    """The shifter's control, from what :func:`zeros` gives: for each of the three steps eight bits, one for each
    position: the word that is there before the step moves."""
    # The count travels with its word, so that each step finds its bit where the word then is.
    steps = []
    for bit in range(3):
        steps.append(Cat(count[bit] if bit < len(count) else Const(0, 1) for count in counts))
        counts = _down(m, counts, 1 << bit, steps[-1])
    return steps


def close(m, words, steps):
    """The non-zero ones of eight words moved together, zeros behind them."""
    for bit, step in enumerate(steps):
        words = _down(m, words, 1 << bit, step)
    return words


def reopen(m, words, steps):
    """The reverse of :func:`close`, whatever lies behind the words that count; where it had zeros, anything may come
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
    come = [Mux(step[k], words[k], 0) for k in range(by, WORDS)] + [0] * by
    return _wires(m, [one | other for one, other in zip(stay, come, strict=True)])
