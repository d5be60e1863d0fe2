"""Tables that take long to measure, in ``docs/records/NAME.json``: rows, and the key of what they were measured on."""

import json

from actcodec.synth.records import alone, stamp, write
from docs import content, figures

__all__ = ["load", "renew"]


def path(name):
    return content.ROOT / f"docs/records/{name}.json"


def load(name):
    """{table: its rows, of words and numbers; ``keys``: those of tables}."""
    return json.loads(path(name).read_text())


def renew(name, table, rows):
    """Records a table beside the others."""
    with alone():
        tables = load(name) | {table: rows}
        keys = tables.pop("keys", {}) | {table: {"key": figures.sections(name)[table], **stamp()}}
        parts = [f' "{title}": [\n' + ",\n".join(f"  {json.dumps(row)}" for row in body) + "\n ]"
                 for title, body in sorted(tables.items())]
        parts.append(f' "keys": {json.dumps(keys)}')
        write(path(name), "{\n" + ",\n".join(parts) + "\n}\n")
