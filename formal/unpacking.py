"""An unpacker goes on while its neighbours are willing, however many bytes are taken at a time.

It refuses a word only where a whole piece is there. Why is a sum, which no tool finds by itself: words that are stored
have the bytes that are known, and those in front of the place.
"""

from amaranth.hdl import Cat, Signal

from actcodec.rtl.common.unpacker import Unpacker
from formal.catalogue import Proof
from formal.inside import Inside
from formal.marks import full

__all__ = ["PIECES", "adds_up", "pieces", "proofs"]

PIECES = "a piece leaves, or a word of a stream that was given up comes"

# Granule, bytes of a word and of a piece: of its bench, of COMET and of SSDC.
SIZES = ((1, 16, 16), (4, 32, 40), (1, 32, 64), (1, 8, 8), (4, 32, 32))


def adds_up(stored, known, closed, digits, word):
    """Whether the sum is right: of each digit, two bits of the place, one value is set."""
    place = sum(sum(k * bit for k, bit in enumerate(digit)) << 2 * by for by, digit in enumerate(digits))
    return (closed | (stored * word == known + place)) & Cat(
        digit.any() & ((digit & (digit - 1)) == 0) for digit in digits).all()


def pieces(component, folder):
    """The harness."""
    word, piece = (size // component.granule for size in (component.i_size, component.o_size))
    patience = -(-piece // word)  # words of a piece
    names = ["stored", "known", "closed", *(f"place_{place}" for place in range(0, word.bit_length(), 2))]
    h = Inside(component, folder, *names)
    unit, inner, m = h.ports, h.inner, h.m
    i, o, (stored, known, closed, *digits) = unit.i, unit.o, inner.values()
    h.assume((~i.valid | full(i.p)) & (i.p.count <= component.i_size) & (unit.take <= component.o_size))
    # Whether the tensor's last word is in, for those who have to give it.
    comes, ended = i.valid & i.ready, Signal(name="ended")
    m.d.sync += ended.eq(~unit.next & (ended | (comes & i.p.last & ~unit.discarding)))
    moved = unit.next | (o.valid & o.ready) | (unit.discarding & comes)
    stuck = h.stuck(moved, (i.valid | (ended & ~unit.discarding)) & o.ready, patience)
    h.check(PIECES, stuck <= patience)
    h.check(PIECES, (closed == ended) & (closed | (known >= stuck * word)))
    h.check(PIECES, adds_up(stored, known, closed, digits, word))
    return h


def proofs():
    return [Proof("unpacker", "ends", lambda folder, sizes=sizes: pieces(Unpacker(*sizes), folder),
                  "granule {}, {} bytes to {}".format(*sizes)) for sizes in SIZES]
