"""Places of documents that are written by programs: between the lines ``<!-- NAME -->`` and ``<!-- /NAME -->``."""

import re

__all__ = ["legend", "render"]


def legend(lines, stale):
    """The lines of a table, and, if it is stale, one below that says so."""
    yield from lines
    if stale:
        yield ""
        yield "† All of it was measured on an earlier version ([figures](records.md#figures))."


def render(text, tables):
    """A document with new ``tables``: {name: function that yields a table's lines}. Raises ValueError unless it has one
    place for each."""
    for name, lines in tables.items():
        place = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        body = "".join(f"{line}\n" for line in lines())
        text, count = place.subn(lambda match, body=body: match[1] + body + match[2], text)
        if count != 1:
            raise ValueError(f"the document has {count} places for the table {name}")
    return text
