"""Who may import whom, and name what: hardware and its models never meet but in the benches and the registry, and only
the registry lists modes."""

import ast
import sys

import pytest

from actcodec import codecs
from tb.harness import ROOT

ALLOWED = {
    "rtl": {"amaranth", "actcodec.rtl"},
    "golden": {"numpy", "scipy", "ml_dtypes", "actcodec.golden"},
}
# What is about certain modes, and not about all that there are.
ABOUT = {
    "bench/speed.py": {"jpeg-act"},  # the others get its error
    "commands/dqt.py": {"jpeg-act", "zvc"},  # finds its tables; zvc is a coder there
    "commands/jpeg.py": {"jpeg-base"},  # writes its files
    "torch/adaptive.py": {"comet"},  # COMET's control
    "torch/compress.py": {"jpeg-act"},  # the preset that is the default
    "torch/rules.py": {"brc", "binarize", "sfpr", "sfpr-zvc", "jpeg-act", "jpeg-base", "ssdc", "zvc"},  # the presets
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
    for path in sorted((ROOT / "rtl" / "offload").rglob("*.py")):
        for line, name in imported(path):
            assert not set(name.split(".")) & codecs, f"{path}:{line} imports {name}"


def test_modes_are_listed_in_the_registry_alone():
    names = {one.name for mode in codecs.MODES.values() for one in (mode, *(variant for _, variant in mode.variants))}
    found = {}
    for path in sorted((ROOT / "actcodec").rglob("*.py")):
        place = path.relative_to(ROOT / "actcodec").as_posix()
        if not place.startswith("codecs/"):
            words = {node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)}
            found |= {place: words & names} if words & names else {}
    assert found == ABOUT


def test_yosys_stays_out_of_this_process():
    """From its import on, libraries share their names: what ``torch.compile`` made would be mixed up."""
    for tree in ("synth", "formal", "actcodec", "tb"):
        for path in sorted((ROOT / tree).rglob("*.py")):
            for line, name in imported(path):
                assert name.split(".")[0] != "pyosys", f"{path}:{line} imports {name}"
