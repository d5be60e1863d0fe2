"""What is installed: the wheel, made from the sdist, as from an index."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest

from tb.harness import ROOT

TREES = "actcodec", "golden", "rtl", "synth"
FILES = "pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"
BUILD = "import sys; from setuptools import build_meta; getattr(build_meta, sys.argv[1])(sys.argv[2])"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Names of the wheel's files."""
    folder = tmp_path_factory.mktemp("package")
    source, output = folder / "source", folder / "output"
    source.mkdir(), output.mkdir()
    for name in TREES:
        shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name in FILES:
        shutil.copy(ROOT / name, source)

    def build(kind, place):
        subprocess.run([sys.executable, "-c", BUILD, f"build_{kind}", output], cwd=place, check=True,
                       capture_output=True, env=os.environ | {"PYTHONWARNINGS": "ignore"})

    build("sdist", source)
    with tarfile.open(next(output.glob("*.tar.gz"))) as archive:
        # All of it, links to folders at the top too, which are its own. Python 3.11.2 knows no argument for that.
        archive.extraction_filter = lambda member, _: member
        archive.extractall(folder)
    build("wheel", next(folder.glob("actcodec-*")))
    with zipfile.ZipFile(next(output.glob("*.whl"))) as archive:
        return set(archive.namelist())


def test_the_wheel_has_every_module(wheel):
    for tree in TREES:
        for path in (ROOT / tree).rglob("*.py"):
            name = path.relative_to(ROOT).as_posix()
            assert (name if tree == "actcodec" else f"actcodec/{name}") in wheel


def test_the_wheel_says_that_it_has_types(wheel):
    assert "actcodec/py.typed" in wheel
