"""RLE: a coder whose turn it is to leave goes on while its neighbours are willing, whatever the values are.

Which values are not zero, and when a word is complete, is anything in any cycle. A symbol counts when it is picked:
each is picked once. While no line comes, none is picked and no chunk leaves, symbols move on, and the last one that was
picked says for how long that can be: it may wait for the ZRLs of the one before, for its own, and takes a cycle for
each stage. Blocks inside are one that is complete, one for each stage that has a block's end, and those whose lines are
here. What is guaranteed of turns in return, and what follows for several coders, is in ``formal/runlength.py``.
"""

from amaranth.hdl import Cat, Mux

from actcodec.rtl.jpegact.runlength_coder import Coder
from formal.catalogue import Proof
from formal.inside import Inside
from formal.runlength import COMPRESS, GOES_ON, Turns

__all__ = ["PIPELINE", "goes_on", "proofs"]

PIPELINE = "blocks inside are those whose lines or ends are in the pipeline, and the newest may be the last one"
ZRLS = 3  # of a symbol

# What has no name of its own has the number that Amaranth gives it. Of another signal nothing here would hold.
WHOLE, EARLY, COLUMN, PICKED = "$signal", "$signal$14", "$signal$15", "$signal$59"
RUN, RUNS, LEVEL, FLUSH = "$signal$20", "$signal$19", "$signal$32", "$signal$33"
STAGES = (  # of a symbol that may be a block's last: that it is there, is the last, and that of the last block
    (PICKED, "flags", None), (RUNS, "flags$64", None), ("valid", "finishes$68", "last$69"),
    ("valid$70", "finishes$75", "last$76"), ("valid$77", "finishes$78", "last$79"), (None, FLUSH, "was_last"),
    (None, "ends", "closing"))


def goes_on(folder):
    """The harness for a coder."""
    names = {name for stage in STAGES for name in stage if name} | {
        WHOLE, EARLY, COLUMN, RUN, "row", "arrived", "last", "some", "hold", "store", "may"}
    h = Inside(Coder(), folder, *(f"encoder.{name}" for name in sorted(names)), absent=("store", "decoder"),
               cut=[f"encoder.{name}" for name in ("number", LEVEL, "line_of", "length", "word", "word_of")])
    h.near = "unit/o:room unit/o:ends unit/o:closing %u %u %ci8"
    inner = {name: h.inner[f"encoder.{name}"] for name in names}
    whole, early, arrived, column, row, hold = (
        inner[name] for name in (WHOLE, EARLY, "arrived", COLUMN, "row", "hold"))
    stands = (inner["store"] & ~inner["may"]) | (inner["ends"] & h.ports.done)
    step = ~stands & ~hold & (whole | inner["some"].any())
    turns = Turns(h, "turns", COMPRESS, h.ports, h.free(1, "offered"), h.free(1, "free"), step)
    for condition in turns.assumed:
        h.assume(condition)

    ends, lasts, behind = [], [], whole | arrived.any()
    for valid, finishes, last in STAGES:
        end, last = (inner[finishes], inner[last]) if last else (inner[finishes][2], inner[finishes][3])
        ends.append(end & inner[valid] if valid else end)
        lasts.append(~ends[-1] | (last == (turns.closed & ~behind)))
        behind = behind | ends[-1]
    h.jointly(PIPELINE, turns.inside == h.ports.done + sum(ends) + whole + Mux(whole, early, arrived[0]))
    h.jointly(PIPELINE, Mux(early, whole & (arrived == 0) & (turns.row == 1),
                            arrived == Mux(whole, 0xFF, (1 << turns.row) - 1)))
    h.jointly(PIPELINE, ~whole | early | (turns.row == 0))
    h.jointly(PIPELINE, Cat(lasts).all() & (~whole | (inner["last"] == (turns.closed & ~early))))
    h.jointly(PIPELINE, (turns.row == 0) | ~turns.closed)
    h.jointly(PIPELINE, ~(column[7] & row[7]) | inner[PICKED] | ~(turns.inside.any() | inner["store"] | hold))
    # Behind the newest symbol, so many willing cycles pass in which nothing moves.
    zrls, limit = Mux(hold, inner[RUN][4:], 0), COMPRESS.patience
    for late, (valid, finishes, _) in reversed(list(enumerate(STAGES[2:], 2 * (ZRLS + 1)))):
        limit = Mux(inner[valid or finishes], late, limit)
    limit = Mux(inner[PICKED], ZRLS - zrls, Mux(inner[RUNS], 2 * ZRLS + 1 - zrls, limit))
    h.jointly(GOES_ON, turns.stuck <= limit)
    turns.require(h.jointly)
    return h


def proofs():
    return [Proof("rle", "ends", goes_on, f"i to chunks, turns of a coder, {COMPRESS.patience} willing cycles")]
