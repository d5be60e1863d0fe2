"""Results that take long to obtain: ``docs/records/NAME.json``, which ``make docs`` renders.

A record has an entry for each subject, with a ``key`` of the content that was examined, None where that is not known.
An entry is stale once its subject has another key.
"""

import json
import subprocess
from datetime import date
from pathlib import Path

__all__ = ["FOLDER", "read", "renew", "stamp", "text"]

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "records"


def read(name):
    """{subject: its entry}; nothing without a file."""
    path = Path(FOLDER, f"{name}.json")
    return json.loads(path.read_text()) if path.exists() else {}


def stamp():
    """When and on which commit a figure is measured; without git, on none."""
    try:
        commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=FOLDER.parent, text=True,
                                capture_output=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        commit = ""
    return {"date": date.today().isoformat(), "commit": commit}


def text(record):
    """A record as JSON: each subject on a line of its own, in alphabetical order."""
    return "{\n" + ",\n".join(f" {json.dumps(key)}: {json.dumps(record[key])}" for key in sorted(record)) + "\n}\n"


def renew(name, entries, among=None):
    """Records entries beside those of other subjects; of these, those that are not ``among`` the subjects of today
    go."""
    record = {key: entry for key, entry in read(name).items() if among is None or key in among}
    Path(FOLDER, f"{name}.json").write_text(text(record | entries))
