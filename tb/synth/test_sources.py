"""Keys of results change with code, and not with what only its readers see."""

import pytest

from actcodec.synth.sources import fingerprint

CODE = '"""A module."""\n\nimport re  # for f\n\n\ndef f(x):\n    """A function."""\n    return re.escape(x)\n'


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "code.py"
    path.write_text(CODE)
    return path


@pytest.mark.parametrize(("old", "new", "same"), [
    ("A module", "The module", True), ("A function", "The function", True), ("  # for f", "", True),
    ("f(x)", "f(x: str) -> str", True), ("\n\n\ndef", "\ndef", True), ("escape(x)", "escape(x + x)", False),
    ('    """A function."""\n', "", True), ("f(x)", "f(x, y=0)", False)])
def test_code_counts_and_its_documents_do_not(file, old, new, same):
    before = fingerprint([file], 1)
    assert file.read_text().count(old) == 1
    file.write_text(CODE.replace(old, new))
    assert (fingerprint([file], 1) == before) is same


def test_of_other_files_everything_counts_and_so_does_what_else_is_said(file, tmp_path):
    other = tmp_path / "size.tcl"
    other.write_text("# sizes\n")
    keys = {fingerprint([file, other], 1), fingerprint([file, other], 2), fingerprint([file], 1)}
    other.write_text("# drives\n")
    assert len(keys | {fingerprint([file, other], 1)}) == 4
