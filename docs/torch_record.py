"""``make docs``: the tables of ``docs/pytorch.md`` that take long to measure, from ``docs/records/torch.json``.

``python -m docs.torch_record`` writes them; what measures one, a module ``docs.torch_...`` of its name, records it
first. Rendering needs no PyTorch.
"""

from functools import partial
from pathlib import Path

from docs import figures, marks, recorded

__all__ = ["DOCUMENT", "HEADS", "load", "record", "render"]

DOCUMENT = Path(__file__).parent / "pytorch.md"
HEADS = {
    "memory": ("", "", "held, MiB", "peak, MiB", "step, times plain", "examples/s", "batch in 1 GiB"),
    "speed": ("preset", "ResNet-18", "ResNet-20", "transformer"),
    "networks": ("network", *(f"`{preset}`: ratio | error, %" for preset in ("sfpr", "jpeg-act", "gist-fp8",
                                                                             "division-paper"))),
    "temporaries": ("", "encoding", "decoding"),
    "halves": ("", "bfloat16: encoding | decoding", "float16: encoding | decoding"),
}
FORMATS = {"memory": (".1f", ".1f", ".2f", ".1f", ",d"), "speed": (".2f",) * 3, "networks": (".2f", ".3g") * 4,
           "temporaries": (".2f",) * 2, "halves": (".1f",) * 4}
"""Of the numbers in a row, which come after its words."""


def load():
    """{table: its rows}, of words and numbers."""
    return recorded.load("torch")


def record(table, rows):
    """Records a table, and writes it into the document."""
    recorded.renew("torch", table, [[float(f"{cell:.4g}") if isinstance(cell, float) else cell for cell in row]
                                    for row in rows])
    main()


def lines(table, rows):
    """Those of the document."""
    words = sum(isinstance(cell, str) for cell in rows[0])
    head = " | ".join(HEADS[table])
    yield f"| {head} |"
    yield f"|{'---|' * words}{'---:|' * (head.count(' | ') + 1 - words)}"
    for row in rows:
        cells = ["-" if cell is None else format(cell, form)
                 for cell, form in zip(row[words:], FORMATS[table], strict=True)]
        yield f"| {' | '.join([*row[:words], *cells])} |"


def render(text, tables, stale=()):
    """The document with the tables of a record. Raises ValueError unless it has one place for each."""
    return marks.render(text, {table: partial(marks.legend, lines(table, tables[table]), table in stale)
                               for table in HEADS if table in tables})


def main():
    DOCUMENT.write_text(render(DOCUMENT.read_text(), load(), figures.stale_labels()["torch"]))


if __name__ == "__main__":
    main()
