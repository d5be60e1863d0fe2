"""Names are called after things: a participle is none."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("rtl", "golden", "actcodec", "synth", "docs", "scripts", "drivers", "examples", "tb/harness")
PARTICIPLES = {"asked", "found", "given", "gone", "got", "held", "kept", "lost", "made", "missed", "seen", "taken",
               "told", "tried", "wanted"}
# What is public, and what proofs and benches look at by name.
ALLOWED = {
    "actcodec/codecs/compressed.py": {"seen"},
    "actcodec/torch/compress.py": {"kept"},
    "actcodec/torch/needs.py": {"held"},
    "actcodec/torch/packed.py": {"held"},
    "actcodec/torch/report.py": {"held"},
    "actcodec/torch/entry.py": {"held"},
    "rtl/mx/decode.py": {"found", "held"},
    "rtl/mx/encode.py": {"held", "lost"},
    "rtl/mx/path.py": {"found"},
    "rtl/mx/scales.py": {"given"},
    "rtl/offload/queue/queue.py": {"gone"},
    "rtl/offload/scan/statistics.py": {"kept"},
    "rtl/offload/scans.py": {"wanted"},
    "rtl/offload/wire/collector.py": {"taken"},
    "tb/harness/bench.py": {"got"},
}


def assigned(tree):
    """The names that a module gives: to variables, parameters, attributes, functions and classes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.arg | ast.keyword) and node.arg:
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name


def participles(text):
    return {name for name in assigned(ast.parse(text)) if PARTICIPLES & set(name.lower().split("_"))}


@pytest.mark.parametrize("text, names", [
    ("found, accepted = 1, 2", {"found"}), ("def f(x, kept=()): return lambda told: x", {"kept", "told"}),
    ("self.y_taken = found.kept", {"y_taken"}), ("class Kept:\n    size: int", {"Kept"}), ("f(wanted=1)", {"wanted"}),
    ("for gone in x: pass", {"gone"}), ("with x as given: pass", {"given"}), ("mistaken = unlost = 'kept'", set()),
])
def test_participles_are_recognised(text, names):
    assert participles(text) == names


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_name_is_no_participle(folder):
    for path in sorted((ROOT / folder).rglob("*.py")):
        if not path.name.startswith("test_"):
            name = path.relative_to(ROOT).as_posix()
            assert not participles(path.read_text()) - ALLOWED.get(name, set()), f"{name}: call it after the thing"
