"""Who may import whom, and name what: imports go one way, hardware and its models never meet but in the benches and the
registry, and only the registry lists modes."""

import ast
import sys
from graphlib import TopologicalSorter

import pytest

from actcodec import codecs
from tb.harness import ROOT

ALLOWED = {
    "rtl": {"amaranth", "actcodec.rtl"},
    "golden": {"numpy", "scipy", "ml_dtypes", "actcodec.golden"},
}
# What is about certain modes, and not about all that there are.
ABOUT = {
    "mx.py": {"mx"},  # to torchao and back
    "bench/speed.py": {"jpeg-act"},  # the others get its error
    "commands/dqt.py": {"jpeg-act", "zvc"},  # finds its tables; zvc is a coder there
    "commands/jpeg.py": {"jpeg-base"},  # writes its files
    "torch/adaptive.py": {"comet"},  # COMET's control
    "torch/compress.py": {"jpeg-act"},  # the preset that is the default
    "torch/rules.py": {"brc", "comet", "division", "sfpr", "sfpr-zvc", "jpeg-act", "jpeg-base", "ssdc",
                       "zvc"},  # the presets
}


def imported(path):
    """What a file imports, inside of functions too: lines, and names with those of the modules that they are from."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.lineno, f"{'.' * node.level}{node.module or ''}.{alias.name}") for alias in node.names)


@pytest.fixture(scope="module")
def modules():
    """The package's modules by their names: files where an editor or a type checker looks for them."""
    return {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
            for tree in ("", "rtl", "golden", "synth") for path in (ROOT / "actcodec" / tree).rglob("*.py")}


def test_every_module_lies_where_its_name_says(modules):
    for tree in ("actcodec", "rtl", "golden", "synth", "formal", "docs", "tb"):
        for path in sorted((ROOT / tree).rglob("*.py")):
            for line, name in imported(path):
                assert name.split(".")[0] != "actcodec" or {name, name.rpartition(".")[0]} & modules.keys(), (
                    f"{path}:{line} imports {name}")


def test_imports_go_one_way(modules):
    """CycleError names the modules of a circle."""
    needs = {name: {other if other in modules else other.rpartition(".")[0] for _, other in imported(path)}
             for name, path in modules.items()}
    TopologicalSorter({name: others & modules.keys() for name, others in needs.items()}).prepare()


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
    mentions = {}
    for path in sorted((ROOT / "actcodec").rglob("*.py")):
        place = path.relative_to(ROOT / "actcodec").as_posix()
        if not place.startswith("codecs/"):
            words = {node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)}
            mentions |= {place: words & names} if words & names else {}
    assert mentions == ABOUT


def test_yosys_stays_out_of_this_process():
    """From its import on, libraries share their names: what ``torch.compile`` made would be mixed up."""
    for tree in ("synth", "formal", "actcodec", "tb"):
        for path in sorted((ROOT / tree).rglob("*.py")):
            for line, name in imported(path):
                assert name.split(".")[0] != "pyosys", f"{path}:{line} imports {name}"
