"""Keys of sources: what a figure was measured on, where that is Python, C++ and data."""

import hashlib
import json
from pathlib import Path

from actcodec.synth.sources import source

__all__ = ["ROOT", "files", "key"]

ROOT = Path(__file__).resolve().parents[1]
CODE = {".py", ".cpp", ".h"}  # of the files in a folder


def files(place):
    """A file of the repository, or those in a folder that have code."""
    path = ROOT / place
    return sorted(one for one in path.rglob("*") if one.suffix in CODE) if path.is_dir() else [path]


def key(*places, modes=()):
    """Sixteen characters that change with the code, or the data, in these files and folders of the repository, and with
    the streams of these modes, by the digests in tb/vectors."""
    digest = hashlib.sha256()
    digests = json.loads((ROOT / "tb/vectors/digests.json").read_text()) if modes else {}
    digest.update(repr([item for item in digests.items() if item[0].split()[0] in modes]).encode())
    for place in places:
        for file in files(place):
            digest.update(str(file.relative_to(ROOT)).encode())
            digest.update(source(file))
    return digest.hexdigest()[:16]
