"""The command that measures speeds: its rows. How fast anything is, is no test."""

import json

import pytest
from click.testing import CliRunner

from actcodec.train import speed


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(speed, "BATCH", 2)
    monkeypatch.setattr(speed, "LEAST", 0)
    monkeypatch.setattr(speed, "ROUNDS", 1)


def test_rows_of_codecs_and_steps(quick, device):
    rows = list(speed.codecs(device, ("golden", "torch"), ("sfpr", "brc")))
    assert [(row["mode"], row["engine"], row["device"]) for row in rows] == [
        ("sfpr", "golden", "cpu"), ("sfpr", "torch", device), ("brc", "golden", "cpu"), ("brc", "torch", device)]
    rows += speed.steps(device, ("torch",), ("none", "sfpr"), ("resnet8",))
    assert [row["preset"] for row in rows[4:]] == ["without", "none", "sfpr"]
    assert all(row.get("values", 1) > 0 and row.get("seconds", 1) > 0 for row in rows)
    assert all(("played" in row) == (device == "cuda") for row in rows[5:])


@pytest.mark.parametrize("words", [[], ["--json"]])
def test_the_command(quick, monkeypatch, words):
    monkeypatch.setattr(speed, "codecs", lambda *arguments: iter([{"mode": "sfpr", "values": 2.5}]))
    monkeypatch.setattr(speed, "steps", lambda *arguments: iter([{"preset": "sfpr", "seconds": 0.25}]))
    done = CliRunner().invoke(speed.main, words)
    assert done.exit_code == 0, done.output
    if words:
        assert [json.loads(line) for line in done.output.splitlines()] == [
            {"mode": "sfpr", "values": 2.5}, {"preset": "sfpr", "seconds": 0.25}]
    else:
        assert "sfpr" in done.output and "2.5" in done.output and "250" in done.output
