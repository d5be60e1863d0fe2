"""`actcodec mfr`: what it prints and draws, how it fails, and that the documentation says what it prints."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from statistics import fmean

import pytest
from click.testing import CliRunner
from PIL import Image

from actcodec import cli
from actcodec.golden.gist import memory, networks, schedule

DOCUMENT = Path(__file__).parents[2] / "docs/gist-memory.md"
PAPERS_FIVE = ["alexnet", "nin", "overfeat", "vgg16", "inception-v1"]


def run(*args):
    return CliRunner().invoke(cli.main, ["mfr", *args], prog_name="actcodec")


def succeeds(*args):
    result = run(*args)
    assert result.exit_code == 0, result.output
    return result.stdout


def evaluated(name, minibatch=None, dpr=None, sparsity=None):
    return memory.evaluate(networks.NETWORKS[name](), minibatch or memory.MINIBATCH[name],
                           dpr or memory.SMALLEST_DPR[name], sparsity)


@pytest.mark.parametrize("name", networks.NETWORKS)
def test_table_has_every_bar(name):
    text = succeeds(name)
    assert f"{name}, minibatch {memory.MINIBATCH[name]}" in text
    assert max(map(len, text.splitlines())) <= 80
    rows = [re.findall(r"^ +(.*?) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+)$", line)
            for line in text.splitlines()]
    expected = [(bar.name, *(f"{size / 1e9:.3f}" for size in (*bar.bytes.values(), bar.total)), f"{bar.mfr:.2f}")
                for bar in evaluated(name)]
    assert [row[0] for row in rows if row] == expected
    for figure in (8, 10, 13, 17):
        assert f"Figure {figure}: " in text


def test_json_is_the_model():
    facts = json.loads(succeeds("all", "--json"))
    assert [network["network"] for network in facts] == list(networks.NETWORKS)
    for network in facts:
        name = network["network"]
        assert (network["minibatch"], network["dpr"]) == (memory.MINIBATCH[name], memory.SMALLEST_DPR[name])
        assert network["weight_bytes"] == 4 * networks.NETWORKS[name]().weights
        for found, bar in zip(network["bars"], evaluated(name), strict=True):
            assert found == {"figure": bar.figure, "name": bar.name, "bytes": bar.bytes, "mfr": bar.mfr,
                             "total": bar.total}


def test_options_reach_the_model():
    g = networks.vgg16()
    facts, = json.loads(succeeds("vgg16", "--minibatch", "3", "--dpr", "fp10", "--sparsity", "relu1_1=0.9",
                                 "--sparsity", "0.4", "--json"))
    expected = evaluated("vgg16", 3, "fp10", schedule.sparsities(g, 0.4, {"relu1_1": 0.9}))
    assert [bar["bytes"] for bar in facts["bars"]] == [bar.bytes for bar in expected]
    assert (facts["minibatch"], facts["dpr"]) == (3, "fp10")
    assert "lossless + fp10" in [bar["name"] for bar in facts["bars"]]


def test_several_networks_get_a_summary():
    lines = [line.split() for line in succeeds("vgg16", "alexnet", "vgg16").splitlines()]
    rows = {line[0]: line[1:] for line in lines if line and line[0] in ("vgg16", "alexnet", "mean")}
    ratios = {name: [bar.mfr for bar in evaluated(name) if bar.figure in (8, 17)][1:] for name in ("vgg16", "alexnet")}
    ratios["mean"] = [fmean(pair) for pair in zip(*ratios.values(), strict=True)]
    assert rows == {name: [f"{ratio:.2f}" for ratio in row] for name, row in ratios.items()}
    assert "mean" not in succeeds("vgg16")


@pytest.mark.parametrize("names", [["overfeat"], ["alexnet", "nin", "vgg16"]])
def test_plot_is_a_picture_of_its_own(tmp_path, names):
    target = tmp_path / "mfr.png"
    text = succeeds(*names, "--plot", str(target))
    assert text == succeeds(*names)
    with Image.open(target) as picture:
        assert picture.format == "PNG"
        colours = {colour[:3] for count, colour in picture.convert("RGB").getcolors(1 << 24) if count > 200}
    assert {(0xED, 0xAE, 0x49), (0xD1, 0x49, 0x5B), (0x1B, 0x6C, 0xA8), (0xB9, 0xC4, 0xCC)} <= colours
    assert os.listdir(tmp_path) == ["mfr.png"]


@pytest.mark.parametrize(("args", "text"), [
    ([], "Missing argument"), (["vgg19"], "'vgg19' is not one of 'alexnet'"),
    (["vgg16", "--minibatch", "0"], "0 is not in the range"),
    (["vgg16", "--dpr", "fp32"], "'fp32' is not one of"),
    (["vgg16", "--sparsity", "much"], "--sparsity much: must be a number or LAYER=NUMBER"),
    (["vgg16", "--sparsity", "relu1_1="], "must be a number"),
    (["vgg16", "--sparsity", "1.5"], "sparsity is 1.5, must be 0 to 1"),
    (["vgg16", "--sparsity", "nan"], "sparsity is nan"),
    (["vgg16", "alexnet", "--sparsity", "relu1_1=0.5"], "no layer 'relu1_1' in alexnet"),
    (["vgg16", "--plot", "nowhere/x.png"], "nowhere: no such directory"), (["vgg16", "--plot", "."], "is a directory")])
def test_errors_are_one_line(tmp_path, monkeypatch, args, text):
    monkeypatch.chdir(tmp_path)
    result = run(*args)
    assert result.exit_code == 2
    assert not result.stdout
    assert result.stderr.startswith("actcodec: error: ") and result.stderr.count("\n") == 1
    assert text in result.stderr
    assert not os.listdir()


def test_examples_of_the_help_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"^ +actcodec mfr (.*)$", succeeds("--help"), re.M)
    assert len(examples) == 4
    for example in examples:
        assert succeeds(*example.split())


def test_matplotlib_is_loaded_for_a_plot_only():
    script = "import sys; from actcodec import cli, mfr; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def rows(heading):
    """The first table under a heading of the document: a dict of first cell to the others."""
    section = DOCUMENT.read_text().split(f"## {heading}\n")[1].split("\n## ")[0]
    cells = [[cell.strip() for cell in line.strip("| ").split("|")] for line in section.splitlines() if "|" in line]
    return {row[0]: row[1:] for row in cells[2:]}


def test_the_documented_table_is_what_comes_out():
    ratios = {name: [bar.mfr for bar in evaluated(name) if bar.figure in (8, 17)][1:] for name in networks.NETWORKS}
    ratios["mean of five"] = [fmean(column) for column in zip(*(ratios[name] for name in PAPERS_FIVE), strict=True)]
    documented = rows("Results")
    for name, expected in ratios.items():
        assert [cell.split(" ")[0] for cell in documented[name]] == [f"{ratio:.2f}" for ratio in expected], name


def test_the_documented_ablation_is_what_comes_out():
    bars = {bar.name: bar.mfr for bar in evaluated("alexnet") if bar.figure in (10, 13)}
    documented = rows("AlexNet, one technique at a time")
    assert {name: cells[0] for name, cells in documented.items()} == {
        name: f"{mfr:.2f}" for name, mfr in bars.items() if name != "investigation baseline"}


def test_the_documented_sensitivity_is_what_comes_out():
    for sparsity, cells in rows("Sparsity").items():
        bars = [evaluated(name, sparsity=schedule.sparsities(networks.NETWORKS[name](), float(sparsity)))
                for name in PAPERS_FIVE]
        assert cells == [f"{fmean(network[bar].mfr for network in bars):.2f}" for bar in (1, 2)]
