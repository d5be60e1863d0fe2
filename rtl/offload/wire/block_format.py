"""What the offload layer knows of a codec: how long its blocks are. Imports nothing but the standard library."""

from dataclasses import dataclass

__all__ = ["HALVES", "MASK", "VALUES", "BlockFormat"]

VALUES = 64  # of a block
ROWS = 8  # in which a block passes between a lane and the collector or splitter
MASK = 8  # bytes
HALVES = 2  # bytes
LEGAL = {"fixed": range(1, 33), "mask": (8, 16, 32), "counted": (8, 18), "halves": range(1, 9), "segment": range(1, 8),
         "segments": range(1, 8), "stream": (8,)}  # rows of each kind


def _text(rows):
    return f"{rows[0]} to {rows[-1]}" if isinstance(rows, range) else ", ".join(map(str, rows))


@dataclass(frozen=True)
class BlockFormat:
    """How the length of a block of 64 values is known.

    ======== =============================================================================================
    kind     a block is
    ======== =============================================================================================
    fixed    eight rows of ``row`` bytes
    mask     eight bytes of mask, and an item for each bit that is set; an item has ``row / 8`` bytes
    counted  a first byte that says how many bytes follow, at most ``8 * row``: all of it, or the lower 6 of
             its ``bits``, of which all ones stand for 64; they pass in rows of ``row`` bytes
    halves   a byte for each half of the block, and eight rows of ``row`` bytes
    segment  a byte, and eight rows of ``row`` bytes
    segments the same, where blocks are eight sectors in memory's order: each sector that begins a row of the
             tensor has a byte of its own in front of its ``row`` bytes, as has the block's first one
    stream   none: each CDU makes one stream of bytes, of which ``row`` move when it is its turn
    ======== =============================================================================================

    With ``halves``, blocks with a mask and counted ones have a byte for each half of the block, too: in front of the
    mask, or after the first byte, which counts them, so that at most ``8 * row + 2`` bytes follow. Of 6 bits it does
    so modulo 64: 0 stands for 64, and 1 for 66.

    Raises
    ------
    ValueError
        If ``kind`` is none of these, or ``row`` is not what that kind can have: 1 to 32 if fixed, 8, 16 or 32 with
        a mask, 8 or 18 if counted, 1 to 8 with halves, 1 to 7 with segments, 8 of a stream; if ``bits`` is not 8, or 6
        if counted in rows of 8; or if blocks with ``halves`` have no mask and are not counted, or rows of more than 8.
    """

    kind: str
    row: int
    bits: int = 8
    halves: bool = False

    def __post_init__(self):
        if self.kind not in LEGAL:
            raise ValueError(f"kind must be one of {', '.join(LEGAL)}, not {self.kind!r}")
        if self.row not in LEGAL[self.kind]:
            raise ValueError(f"row must be one of {_text(LEGAL[self.kind])} for kind {self.kind}, "
                             f"not {self.row!r}")
        if self.bits not in ((8, 6) if (self.kind, self.row) == ("counted", 8) else (8,)):
            raise ValueError(f"bits must be 8, or 6 for kind counted in rows of 8, not {self.bits!r}")
        if self.halves and (self.kind not in ("mask", "counted") or self.row != 8):
            raise ValueError(f"halves must be False, or True for kinds mask and counted in rows of 8, not "
                             f"{self.halves!r}")

    @property
    def counted(self):
        """Whether its first byte is a length. Only such a block can contradict itself, and is malformed then."""
        return self.kind == "counted"

    @property
    def endless(self):
        """Whether there are no blocks. What is said of blocks below does not apply then."""
        return self.kind == "stream"

    @property
    def segmented(self):
        """Whether a block has a byte for each of its segments, in front of a row."""
        return self.kind in ("segment", "segments")

    @property
    def whole(self):
        """Whether a block is a tile that must have all of its eight rows, in one channel: it has one byte for all."""
        return self.kind == "segment"

    @property
    def head(self):
        """Bytes in front of the first row, which do not count as that row's."""
        return {"mask": MASK, "counted": 1, "halves": HALVES}.get(self.kind, 0) + (HALVES if self.halves else 0)

    @property
    def halved(self):
        """Whether a block has a byte for each of its halves."""
        return self.kind == "halves" or self.halves

    @property
    def shortest(self):
        """Bytes of the shortest block."""
        return self.head if self.kind in ("mask", "counted") else self.head + ROWS * self.row + self.segmented

    @property
    def fixed(self):
        """Bytes of a block that neither mask, first byte nor segments count."""
        return 1 if self.counted else self.shortest

    @property
    def longest(self):
        """Bytes of the longest block."""
        return self.head + ROWS * self.row + {"segment": 1, "segments": ROWS}.get(self.kind, 0)

    @property
    def item(self):
        """Bytes of an item after a mask."""
        return self.row // 8
