"""Results that take long to obtain: ``docs/records/NAME.json``, which ``make docs`` renders.

A record has an entry for each subject, with a ``key`` of the content that was examined, None where that is not known.
An entry is stale once its subject has another key.
"""

import fcntl
import json
import os
import subprocess
import threading
from contextlib import contextmanager
from datetime import date
from pathlib import Path

__all__ = ["FOLDER", "alone", "read", "renew", "stamp", "text", "write"]

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "records"
LOCK = ROOT / "build" / "records.lock"


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


@contextmanager
def alone():
    """While this is open, other threads and processes that want to change a record wait."""
    LOCK.parent.mkdir(exist_ok=True)
    with open(LOCK, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def write(path, content):
    """Writes a text file in one step: until the new one is whole, there is the old one. Other processes may do the
    same."""
    part = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}.part")
    part.write_text(content)
    part.replace(path)


def renew(name, entries, among=None):
    """Records entries beside those of other subjects; of these, those that are not ``among`` the subjects of today
    go."""
    with alone():
        record = {key: entry for key, entry in read(name).items() if among is None or key in among}
        write(Path(FOLDER, f"{name}.json"), text(record | entries))
