"""Streams and files are those of before; ``python -m tb.vectors`` records new ones."""

import pytest

import actcodec
from actcodec import codecs
from tb import vectors

RECORDED = vectors.recorded()
FILES = [*vectors.files(), *vectors.old_files()]


def test_every_case_is_recorded_and_no_other():
    names = {name for name, *_ in vectors.cases()} | {path.name for path, *_ in FILES}
    assert names == set(RECORDED)


@pytest.mark.parametrize("mode", codecs.MODES)
def test_streams_are_those_of_before(mode):
    cases = {name: case for name, *case in vectors.cases() if case[1] == mode}
    assert {name: vectors.digests(*case) for name, case in cases.items()} == {name: RECORDED[name] for name in cases}


@pytest.mark.parametrize("path, mode, options", FILES, ids=lambda value: getattr(value, "stem", ""))
def test_files_of_before_can_be_read(path, mode, options):
    compressed = actcodec.load(path)
    assert compressed.mode == mode
    assert vectors.digest(actcodec.decompress(compressed)) == RECORDED[path.name]
