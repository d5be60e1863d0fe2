"""``make docs``: tables that take long, or packages of others, to measure, from ``docs/records/measured.json``.

``python -m docs.measured`` writes them into ``docs/ratios.md``; what measures one,
:mod:`docs.beside`, :mod:`docs.quantizers` or :mod:`docs.gradients`, records it first.
"""

from functools import partial

from actcodec.golden.jpegact import steps
from docs import figures, marks, recorded
from docs.ratios import DOCUMENT

__all__ = ["DOCUMENT", "HEADS", "load", "record", "render", "round_cells"]

HEADS = {
    "beside": ("tensors", "equal", "as", "ZVC", "nibble", "rice", "`comet`", "SZ3, default", "SZ3, best",
               "cuSZ, codes alone", "zfp"),
    "quantizers": ("errors of", "coder", "`sh`", *(f"`div`, dead zone {zone}" for zone in steps.DEAD_ZONES),
                   "dead zone 0, scales searched", "`comet`", "SZ3, best", "zfp", "MX"),
    "channels": ("errors of", "`sh`", "`div`, dead zone 0", "`div`, dead zone 1", "dead zone 0, scales searched",
                 "`comet`", "SZ3, best", "zfp", "MX"),
    "gradients": ("error of the gradient", "`rice`, `sh`", "`rice`, `div`, dead zone 0", "dead zone 1", "dead zone 2",
                  "dead zone 0, one scale", "`comet`", "SZ3", "MX"),
}


def load():
    """{table: its rows}, of words and numbers."""
    return recorded.load("measured")


def record(table, rows):
    """Records a table, and writes it into the document."""
    recorded.renew("measured", table, round_cells(rows))
    main()


def round_cells(rows):
    """As they are kept."""
    return [[round(cell, 2) if isinstance(cell, float) else cell for cell in row] for row in rows]


def lines(table, rows):
    """Those of the document."""
    numbers = [isinstance(cell, float) for cell in rows[0]]
    yield f"| {' | '.join(HEADS[table])} |"
    yield f"|{''.join('---:|' if number else '---|' for number in numbers)}"
    for row in rows:
        yield f"| {' | '.join(f'{cell:.2f}' if isinstance(cell, float) else cell for cell in row)} |"


def render(text, tables, stale=()):
    """The document with the tables of a record."""
    return marks.render(text, {table: partial(marks.legend, lines(table, tables[table]), table in stale)
                                for table in HEADS})


def main():
    DOCUMENT.write_text(render(DOCUMENT.read_text(), load(), figures.stale_labels()["measured"]))


if __name__ == "__main__":
    main()
