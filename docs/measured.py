"""``make docs``: tables that take long, or packages of others, to measure, from ``docs/records/measured.json``.

``python -m docs.measured`` writes them into ``docs/ratios.md``, and an excerpt into the README; what measures one,
:mod:`docs.beside` or :mod:`docs.quantizers`, records it first.
"""

import json
from functools import partial
from pathlib import Path

from actcodec.golden.jpegact import steps
from docs import marks
from docs.ratios import DOCUMENT

__all__ = ["DOCUMENT", "HEADS", "README", "RECORD", "excerpt", "record", "recorded", "renewed", "rounded"]

RECORD = Path(__file__).parent / "records/measured.json"
README = Path(__file__).parents[1] / "README.md"
HEADS = {
    "beside": ("tensors", "equal", "as", "ZVC", "nibble", "rice", "`comet`", "SZ3, default", "SZ3, best",
               "cuSZ, codes alone", "zfp"),
    "quantizers": ("errors of", "coder", "`sh`", *(f"`div`, dead zone {zone}" for zone in steps.DEAD_ZONES),
                   "SZ3, best"),
}


def recorded():
    """{table: its rows}, of words and numbers."""
    return json.loads(RECORD.read_text())


def record(table, rows):
    """Records a table, and writes it into the document."""
    found = recorded() | {table: rounded(rows)}
    parts = [f' "{name}": [\n' + ",\n".join(f"  {json.dumps(row)}" for row in rows) + "\n ]"
             for name, rows in sorted(found.items())]
    RECORD.write_text("{\n" + ",\n".join(parts) + "\n}\n")
    main()


def rounded(rows):
    """As they are kept."""
    return [[round(cell, 2) if isinstance(cell, float) else cell for cell in row] for row in rows]


def lines(table, rows):
    """Those of the document."""
    numbers = [isinstance(cell, float) for cell in rows[0]]
    yield f"| {' | '.join(HEADS[table])} |"
    yield f"|{''.join('---:|' if number else '---|' for number in numbers)}"
    for row in rows:
        yield f"| {' | '.join(f'{cell:.2f}' if isinstance(cell, float) else cell for cell in row)} |"


def yardstick(record):
    """The README's table: the paper's code, ours, and others, at the same errors."""
    div = 3 + steps.DEAD_ZONES.index(1)
    yield "| L2 error of | ZVC, the paper's | `nibble` | `rice` | `rice`, `--quantizer div` | SZ3 | zfp |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for table in ("optL", "optH"):
        zvc, nibble, rice = (next(row for row in record["quantizers"] if row[:2] == [table, coder])
                             for coder in ("zvc", "nibble", "rice"))
        zfp = next(row[-1] for row in record["beside"] if row[:3] == ["dense", "L2 error", table])
        numbers = (zvc[2], nibble[2], rice[2], rice[div], rice[-1], zfp)
        yield f"| {table} | {' | '.join(f'{number:.2f}' for number in numbers)} |"


def renewed(text, found):
    """The document with the tables of a record."""
    return marks.renewed(text, {table: partial(lines, table, found[table]) for table in HEADS})


def excerpt(text, record):
    """The README with its table."""
    return marks.renewed(text, {"yardstick": partial(yardstick, record)})


def main():
    DOCUMENT.write_text(renewed(DOCUMENT.read_text(), recorded()))
    README.write_text(excerpt(README.read_text(), recorded()))


if __name__ == "__main__":
    main()
