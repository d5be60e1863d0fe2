"""Who may import whom: hardware and its models never meet but in the benches and the registry."""

import ast
import sys

import pytest

from tb.harness import ROOT

ALLOWED = {
    "rtl": {"amaranth", "actcodec.rtl"},
    "golden": {"numpy", "scipy", "ml_dtypes", "actcodec.golden"},
}


def imported(path):
    """The modules that a file names, by the lines that name them."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, f"{'.' * node.level}{node.module or ''}"


@pytest.mark.parametrize("tree", ALLOWED)
def test_a_tree_imports_only_what_it_may(tree):
    files = sorted((ROOT / tree).rglob("*.py"))
    assert len(files) > 20
    for path in files:
        for line, name in imported(path):
            own = any(name == allowed or name.startswith(f"{allowed}.") for allowed in ALLOWED[tree])
            assert own or name.split(".")[0] in sys.stdlib_module_names, f"{path}:{line} imports {name}"


def test_offload_names_no_codec():
    codecs = {path.name for path in (ROOT / "rtl").iterdir() if path.is_dir()} - {"offload", "common", "__pycache__"}
    assert {"jpegact", "gist"} <= codecs
    for path in sorted((ROOT / "rtl" / "offload").glob("*.py")):
        for line, name in imported(path):
            assert not set(name.split(".")) & codecs, f"{path}:{line} imports {name}"


def test_yosys_stays_out_of_this_process():
    """From its import on, libraries share their names: what ``torch.compile`` made would be mixed up."""
    for tree in ("synth", "formal", "actcodec", "tb"):
        for path in sorted((ROOT / tree).rglob("*.py")):
            for line, name in imported(path):
                assert name.split(".")[0] != "pyosys", f"{path}:{line} imports {name}"
