"""A short FIFO of flip-flops whose words move on when one is pushed."""

from itertools import pairwise

from amaranth.hdl import Array, Mux, Signal

__all__ = ["shift_fifo"]


def shift_fifo(m, depth, word, push, pop, name):
    """A FIFO with a register at its end; returns the oldest word, whether there is one, whether there are some behind
    the register, and whether in the next cycle they will take all places there. There must be no push then.

    The newest word is the first one, so that no word has a multiplexer in front, and all have one clock gate. A word
    is there a cycle after its push. A pop without a word is none.

    ``depth`` is at least 3, and counts the register; ``word`` is a value.
    """
    words = [Signal(len(word), reset_less=True, name=f"{name}_{k}") for k in range(depth - 1)]
    level, some = Signal(range(depth), name=f"{name}_level"), Signal(name=f"{name}_some")
    head = Signal(len(word), reset_less=True, name=f"{name}_head")
    free, stays, leaves, any_ = Signal(), Signal(), Signal(), Signal(name=f"{name}_any")
    m.d.comb += [free.eq(pop | ~some), leaves.eq(free & any_),
                 stays.eq(push & (any_ | ~free))]  # a word may go to the register at once
    with m.If(push):
        m.d.sync += [words[0].eq(word), *(after.eq(before) for before, after in pairwise(words))]
    with m.If(free):
        m.d.sync += [head.eq(Mux(any_, Array([words[0], *words])[level], word)), some.eq(any_ | push)]
    with m.If(stays & ~leaves):
        m.d.sync += [level.eq(level + 1), any_.eq(1)]
    with m.Elif(leaves & ~stays):
        m.d.sync += [level.eq(level - 1), any_.eq(level != 1)]
    return head, some, any_, ~leaves & ((level == depth - 1) | (stays & (level == depth - 2)))
