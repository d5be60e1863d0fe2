"""`actcodec mfr`: what it prints and draws, how it fails, and that the documentation says what it prints."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

import actcodec
from actcodec import cli, codecs
from actcodec.golden.common import networks
from actcodec.golden.division import memory as division
from actcodec.golden.division import paper
from actcodec.golden.gist import memory, schedule

DOCUMENT = Path(__file__).parents[2] / "docs/memory.md"
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
        for entry, bar in zip(network["bars"], evaluated(name), strict=True):
            assert entry == {"figure": bar.figure, "name": bar.name, "bytes": bar.bytes, "mfr": bar.mfr,
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
    (["wrn-50-2"], "wrn-50-2 requires --codec"), (["vgg16", "--ratio", "2"], "--option and --ratio require --codec"),
    (["vgg16", "--option", "bits=2"], "require --codec"), (["vgg16", "--codec", "gif"], "'gif' is not one of"),
    (["vgg16", "--codec", "division", "--dpr", "fp8"], "not for --codec"),
    (["vgg16", "--codec", "division", "--option", "bits=3"], "--option bits=3: bits is 3, must be 1, 2, 4"),
    (["vgg16", "--codec", "division", "--option", "bits=x"], "--option bits=x: "),
    (["vgg16", "--codec", "division", "--option", "bits"], "must be NAME=VALUE"),
    (["vgg16", "--codec", "division", "--option", "dqt=optL"], "one of division's options: bits, seed"),
    (["vgg16", "--codec", "comet"], "the size of comet's payload depends on the values: give a --ratio"),
    (["vgg16", "--codec", "jpeg-act"], "give a --ratio"), (["vgg16", "--codec", "comet", "--ratio", "0.5"], "--ratio"),
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
    assert len(examples) == 6
    for example in examples:
        assert succeeds(*example.split())


def test_matplotlib_is_loaded_for_a_plot_only():
    script = "import sys; import actcodec.cli, actcodec.commands.mfr; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def rows(heading):
    """The first table under a heading of the document: a dict of first cell to the others."""
    section = DOCUMENT.read_text().split(f"## {heading}\n")[1].split("\n## ")[0]
    cells = [[cell.strip() for cell in line.strip("| ").split("|")] for line in section.splitlines() if "|" in line]
    return {row[0]: row[1:] for row in cells[2:]}


def test_the_documented_table_is_what_comes_out():
    ratios = {name: [bar.mfr for bar in evaluated(name) if bar.figure in (8, 17)][1:] for name in networks.NETWORKS}
    ratios["mean of five"] = [fmean(column) for column in zip(*(ratios[name] for name in PAPERS_FIVE), strict=True)]
    documented = rows("Gist: footprint ratios")
    for name, expected in ratios.items():
        assert [cell.split(" ")[0] for cell in documented[name]] == [f"{ratio:.2f}" for ratio in expected], name


def test_the_documented_ablation_is_what_comes_out():
    bars = {bar.name: bar.mfr for bar in evaluated("alexnet") if bar.figure in (10, 13)}
    documented = rows("Gist: AlexNet, one technique at a time")
    assert {name: cells[0] for name, cells in documented.items()} == {
        name: f"{mfr:.2f}" for name, mfr in bars.items() if name != "investigation baseline"}


def test_the_documented_sensitivity_is_what_comes_out():
    for sparsity, cells in rows("Gist: sparsity").items():
        bars = [evaluated(name, sparsity=schedule.sparsities(networks.NETWORKS[name](), float(sparsity)))
                for name in PAPERS_FIVE]
        assert cells == [f"{fmean(network[bar].mfr for network in bars):.2f}" for bar in (1, 2)]


# With a codec

GIB = 2**30


def ways(*args):
    """{network: {name: way}} of a command line."""
    return {one["network"]: {way["name"]: way for way in one["ways"]} for one in json.loads(succeeds(*args, "--json"))}


@pytest.mark.parametrize("bits", [1, 2, 4])
@pytest.mark.parametrize("minibatch", [64, 512])
def test_division_is_its_model(bits, minibatch):
    result = ways("resnet-50", "wrn-50-2", "--codec", "division", "--option", f"bits={bits}", "--minibatch",
                  str(minibatch))
    for name, graph in division.NETWORKS.items():
        normal, theirs, ours = division.evaluate(graph(), minibatch, bits)
        for way, expected in (("normal", normal), ("DIVISION, appendix P", theirs), ("division", ours)):
            assert result[name][way] == {"name": way, "bytes": expected.bytes, "total": expected.total,
                                         "ratio": expected.ratio}
        table = {f"{way}, Table 1a": totals[(64, 128, 256, 512).index(minibatch)] for way, totals in
                 division.TABLE_1A[name].items()} if bits == 2 else {}
        assert {way: one["total"] / GIB for way, one in result[name].items() if "Table" in way} == {
            way: total for way, total in table.items() if total}


def test_a_codec_counts_the_files_that_it_makes():
    """Payload and side information of each input, masks, maxima."""
    for mode in codecs.MODES.values():
        for shape in [(2, 3, 32, 40), (2, 5, 9, 7), (3, 50), (7, 3)]:
            c = actcodec.compress(np.ones(shape, np.float32), mode.name)
            size = mode.model.size(c.seen.shape, **c.options)
            assert size in (None, len(c.payload) + len(c.side))
            assert size or mode.name in ("sfpr-zvc", "jpeg-act", "zvc", "jpeg-base", "comet") or "ssdc" in mode.name
    alexnet = networks.alexnet()
    inputs = sum(alexnet.nodes[node.inputs[0]].size for node in alexnet if node.op == "conv")
    result = ways("alexnet", "--codec", "bitpack-1", "--minibatch", "4")["alexnet"]
    assert result["normal"]["bytes"]["conv and bn"] == 16 * inputs
    assert result["bitpack-1"]["bytes"]["conv and bn"] == 4 * inputs
    masks = sum(-(-4 * node.size // 8) for node in alexnet if node.op in ("relu", "dropout"))
    assert result["bitpack-1"]["bytes"]["masks"] == masks
    assert result["bitpack-1"]["bytes"]["maxima"] == sum(2 * node.size for node in alexnet if node.op == "maxpool")


def test_a_ratio_stands_for_what_depends_on_the_values():
    result = ways("vgg16", "--codec", "comet", "--ratio", "8")["vgg16"]
    for category in ("conv and bn", "linear"):
        assert result["comet"]["bytes"][category] == result["normal"]["bytes"][category] / 8


def test_all_networks_have_a_table_of_their_own():
    text = succeeds("all", "--codec", "division")
    assert all(f"{name}, minibatch 64" in text for name in [*networks.NETWORKS, "wrn-50-2"])
    assert max(map(len, text.splitlines())) <= 80
    row = ways("resnet-50", "--codec", "division")["resnet-50"]["division"]
    assert f"{row['total'] / GIB:.3f}  {row['ratio']:.2f}" in text


def test_the_documented_memory_is_what_comes_out():
    text = DOCUMENT.read_text()
    cells = [[cell.strip() for cell in line.strip("| ").split("|")] for line in text.splitlines() if line[:1] == "|"]
    documented = {(row[0], row[1]): row[2:] for row in cells if row[1].isdigit()}
    assert len(documented) == 8
    for (name, minibatch), row in documented.items():
        result = ways(name, "--codec", "division", "--minibatch", minibatch)[name]
        columns = [result.get(way) for way in ("normal", "normal, Table 1a", "division", "DIVISION, appendix P",
                                               "DIVISION, Table 1a")]
        assert row == ["-" if way is None else f"{way['total'] / GIB:.2f}" for way in columns] + [
            f"{result[way]['ratio']:.1f}" for way in ("division", "DIVISION, appendix P")] + [
            f"{result['normal, Table 1a']['total'] / result['DIVISION, Table 1a']['total']:.1f}"
            if "normal, Table 1a" in result else "-"]


def test_the_documented_theorem_is_what_comes_out():
    text = DOCUMENT.read_text().split("## Theorem 3A")[1].split("\n## ")[0]
    cells = [[cell.strip() for cell in line.strip("| ").split("|")] for line in text.splitlines() if line[:1] == "|"]
    assert len(cells) == 2 + 8
    for n, theorem, here in cells[2:]:
        assert (theorem, here) == (f"{paper.theorem_cnn(int(n)):.2f}", f"{division.block_ratio(int(n)):.2f}")


def test_options_are_taken_in_any_order_and_may_be_true():
    for words in (["--codec", "jpeg-act", "--ratio", "6", "--option", "dead_zone=2", "--option", "quantizer=div"],
                  ["--codec", "sfpr", "--option", "signs=true"]):
        assert ways("resnet-50", *words)
    assert "signs is 'maybe'" in run("resnet-50", "--codec", "sfpr", "--option", "signs=maybe").output
