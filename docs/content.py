"""Keys of sources: what a figure was measured on, where that is Python, C++ and data."""

import ast
import hashlib
import json
from functools import cache
from pathlib import Path

__all__ = ["ROOT", "key"]

ROOT = Path(__file__).resolve().parents[1]
CODE = {".py", ".cpp", ".h"}  # of the files in a folder
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@cache
def code(text):
    """A Python file without comments, docstrings and the types of arguments."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        if isinstance(node, ast.arg):
            node.annotation = None
    return ast.dump(tree)


def key(*places, modes=()):
    """Sixteen characters that change with the code, or the data, in these files and folders of the repository, and with
    the streams of these modes, by the digests in tb/vectors."""
    digest = hashlib.sha256()
    digests = json.loads((ROOT / "tb/vectors/digests.json").read_text()) if modes else {}
    digest.update(repr([item for item in digests.items() if item[0].split()[0] in modes]).encode())
    for place in places:
        path = ROOT / place
        for file in sorted(one for one in path.rglob("*") if one.suffix in CODE) if path.is_dir() else [path]:
            content = file.read_bytes()
            digest.update(str(file.relative_to(ROOT)).encode())
            digest.update(code(content).encode() if file.suffix == ".py" else content)
    return digest.hexdigest()[:16]
