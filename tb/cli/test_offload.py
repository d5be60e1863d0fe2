"""`actcodec offload`: what it prints and draws, how it fails, and what of the JPEG-ACT paper it comes near."""

import json
import re
from itertools import product

import pytest
from click.testing import CliRunner
from PIL import Image

from actcodec import cli, codecs, rates
from actcodec.bench import cycles as bench
from actcodec.commands import offload_step
from actcodec.commands.offload import NETWORKS
from actcodec.commands.offload_step import Machine, Way, evaluate, methods
from actcodec.golden.common import overlap
from actcodec.golden.offload import blocks
from docs import offload
from docs import rates as recorded

SIMULATED = Machine(40 * 64 * 2 * 1.455e9, 653e9, 12.8e9, 1.455e9)  # the paper's, section V
TABLE_1 = {"cDMA+": 1.2, "SFPR": 4, "JPEG-BASE": 5.3, "JPEG-ACT": 5.9}  # ResNet-50 on ImageNet


def run(*args):
    return CliRunner().invoke(cli.main, ["offload", *args], prog_name="actcodec")


def succeeds(*args):
    result = run(*args)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(scope="module")
def resnet():
    return NETWORKS["resnet-50"]()


def test_all_modes_or_some():
    result = run("alexnet", "--all", "--mode", "jpeg-act")
    assert result.exit_code == 2 and "give either --mode, once or more, or --all" in result.output


def test_table_has_every_way_and_fits():
    text = succeeds("resnet-50", "--cdus", "1", "--cdus", "4", "--layers")
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    names = [line.split()[0] for line in lines[3:13]]
    assert names == ["none", "vDNN", *2 * ["cDMA+", "SFPR", "JPEG-BASE", "JPEG-ACT"]]
    layers = [line.split()[0] for line in lines[16:]]
    assert layers == [layer.name for layer in overlap.layers(NETWORKS["resnet-50"](), 16)]


def test_json_is_the_schedule():
    facts = json.loads(succeeds("alexnet", "--minibatch", "3", "--mode", "jpeg-act", "--dqt", "optL", "--dqt", "optH",
                                "--coder", "rice", "--mode", "brc", "--link", "3", "--json"))
    assert [way["way"] for way in facts["ways"]] == ["none", "vDNN", "jpeg-act optL rice", "jpeg-act optH rice", "brc"]
    graph = NETWORKS["alexnet"]()
    for way in facts["ways"]:
        layers = way["layers"]
        assert [one["layer"] for one in layers] == [one.name for one in overlap.layers(graph, 3)]
        assert sum(one["bytes"] for one in layers) == pytest.approx(way["moved"])
        moves = [one[part][1] - one[part][0] for one in layers for part in ("out", "back") if one[part]]
        assert sum(moves) == pytest.approx(way["moving"])
        waits = sum(one["forward_wait"] + one["backward_wait"] for one in layers)
        assert way["computing"] + waits == pytest.approx(way["seconds"]) == layers[0]["backward"][1]
        assert way["forward_seconds"] == layers[-1]["forward"][1]
        assert {one["bound"] for one in layers} == {"compute", "memory"}
    none, vdnn, *others = facts["ways"]
    assert none["moved"] == none["moving"] == 0 and none["seconds"] == pytest.approx(none["computing"])
    assert vdnn["bytes"] == vdnn["moved"] == sum(one.bytes for one in overlap.tensors(graph, 3) if one.form != "maxima")
    assert vdnn["moving"] == pytest.approx(2 * vdnn["moved"] / 3e9)
    assert all(way["bytes"] == vdnn["bytes"] > way["moved"] for way in others)
    assert others[1]["options"] == {"dqt": "optH", "coder": "rice"}


def test_every_mode_with_hardware_moves():
    facts = json.loads(succeeds("nin", "--minibatch", "1", "--all", "--json"))
    names = {way["modes"].get("dense") for way in facts["ways"]} - {None}
    assert names == {name for name, mode in codecs.MODES.items() if mode.format}
    assert all(way["seconds"] >= facts["ways"][0]["seconds"] for way in facts["ways"])


def test_without_limits_of_the_link_a_step_is_that_without_moves(resnet):
    machine = Machine(12e12, 650e9, 1e30, 1e30)
    none, *others = evaluate(resnet, 2, machine, [*methods(), Way("3x", ratio=3, cdus=1)])
    assert all(one.step.seconds == pytest.approx(none.step.seconds) for one in others)


def test_faster_links_and_more_compression_never_cost_time(resnet):
    for name in ("vDNN", "JPEG-ACT"):
        way, = (one for one in methods() if one.name == name)
        times = [evaluate(resnet, 2, Machine(12e12, 650e9, link * 1e9, 1.455e9), [way])[0].step.seconds
                 for link in (3, 12.8, 32, 64)]
        assert times == sorted(times, reverse=True)
    ways = [Way("", ratio=ratio, cdus=cdus) for ratio, cdus in product((1, 2, 4, 8), (1, 2, 4))]
    times = {(one.way.ratio, one.way.cdus): one.step.seconds for one in evaluate(resnet, 2, SIMULATED, ways)}
    for ratio, cdus in times:
        assert times[ratio, cdus] >= max(times.get((2 * ratio, cdus), 0), times.get((ratio, 2 * cdus), 0)) * 0.999


def test_masks_and_maxima_follow_what_the_mode_loses():
    """A ReLU in front of a pool has one bit a value and a maximum four; what comes back as it was needs no maxima."""
    graph = NETWORKS["vgg16"]((3, 256, 256))  # all rows are whole sectors
    values = sum(one.bytes for one in overlap.tensors(graph, 1) if one.form == "values")
    masks, maxima = (sum(one.values for one in overlap.tensors(graph, 1) if one.form == form)
                     for form in ("mask", "maxima"))
    assert masks and maxima
    raw, sfpr = evaluate(graph, 1, SIMULATED, [offload_step.way(name, name, {}, 4) for name in ("raw", "sfpr")])
    assert raw.after == raw.before == values + 4 * masks
    assert sfpr.after == pytest.approx(values / 4 + masks / 8 + maxima / 2, rel=0.002)


@pytest.mark.parametrize("name", ["2x", "4x", "8x", "12x"])
def test_rates_of_tensors_are_those_that_the_bench_measured(name):
    """Within 1.5 % of what was simulated, whatever limits."""
    one = recorded.load()["offload"][name]
    mode, _ = bench.masked(int(name[:-1]))
    view = blocks.view(bench.SYNTHETIC)
    size = 4 * view.rows * view.width
    for cdus, rate in one["rates"].items():
        engine = rates.Accelerator(int(cdus), 1e9 * bench.CLOCK, 1e9 * bench.PCIE)
        seconds = engine.seconds(mode, view, size / one["ratio"], False)
        assert size / seconds / 1e9 == pytest.approx(rate, rel=0.015)


def test_rates_that_are_recorded_and_those_that_are_not():
    record, unknown = recorded.load(), "jpeg-base"
    cycles = record["rates"]["jpeg-act"]
    assert rates.per_block("jpeg-act", 30, 4, False) == rates.per_block("jpeg-act", 28, 4, False) == cycles[
        "compress"]["28"] == pytest.approx(8.04, abs=0.005)
    assert rates.per_block("jpeg-act", 1, 4, True) == rates.per_block("jpeg-act", 8, 4, True) == cycles[
        "decompress"]["8"] == pytest.approx(8.25, abs=0.005)
    assert unknown not in record["rates"].keys() | record["streams"].keys() | record["tensors"].keys()
    assert rates.per_block(unknown, 32, 4, False) == rates.BLOCK
    assert rates.per_block("comet", 32, 1, False) < rates.per_block("comet", 32, 4, False)
    assert rates.per_tensor(unknown, True) == max(back for _, back in record["tensors"].values())


def test_figure_20_with_the_papers_machine_and_ratios(resnet):
    """Speed beside vDNN's, the paper's mean of seven networks: within 17 %, each with Table I's ratio; the order of the
    ways is the paper's, and the step without offload is within 4 %."""
    ways = [*methods()[:2], *(Way(name, ratio=ratio, cdus=4) for name, ratio in TABLE_1.items())]
    seconds = {one.way.name: one.step.seconds for one in evaluate(resnet, 16, SIMULATED, ways)}
    speeds = {name: seconds["vDNN"] / one for name, one in seconds.items()}
    assert sorted(speeds, key=speeds.get) == ["vDNN", "cDMA+", "SFPR", "JPEG-BASE", "JPEG-ACT", "none"]
    assert set(speeds) == set(offload_step.PAPER)
    assert speeds == {name: pytest.approx(speed, rel=0.17) for name, speed in offload_step.PAPER.items()}
    assert speeds["none"] / speeds["JPEG-ACT"] == pytest.approx(1.13, rel=0.04)


def test_figure_21s_numbers_of_cdus(resnet):
    """Nothing changes from one CDU on at ratio 2; at 12, 2 to 4 CDUs gain 1.08 times, 4 to 8 less than 0.5 %."""
    ways = [Way("", ratio=ratio, cdus=cdus) for ratio, cdus in product((2, 12), (1, 2, 4, 8))]
    times = {(one.way.ratio, one.way.cdus): one.step.seconds for one in evaluate(resnet, 16, SIMULATED, ways)}
    assert times[2, 1] / times[2, 8] < 1.005
    assert times[12, 2] / times[12, 4] == pytest.approx(1.08, abs=0.02)
    assert times[12, 4] / times[12, 8] < 1.005


@pytest.mark.parametrize(("args", "text"), [
    ((), "give either a NETWORK or --model"), (("nin", "--model", "a:b"), "give either a NETWORK or --model"),
    (("lenet",), "'lenet' is not one of"), (("nin", "--mode", "ssdc"), "mode ssdc has no hardware"),
    (("nin", "--image", "8"), "--image 8: too small for nin"), (("nin", "--ratio", "0.5"), "--ratio"),
    (("nin", "--link", "0"), "--link"), (("nin", "--minibatch", "0"), "--minibatch"),
    (("nin", "--ahead", "0"), "--ahead"), (("nin", "--mode", "jpeg-act", "--dqt", "none.txt"), "none.txt"),
    (("nin", "--plot", "x.gif"), "x.gif"), (("nin", "--cdus", "9"), "--cdus")])
def test_errors_are_one_line(args, text):
    result = run(*args)
    assert result.exit_code == 2
    assert text in result.stderr and result.stderr.count("\n") == 1


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_plot(tmp_path, ending):
    target = tmp_path / f"step.{ending}"
    succeeds("nin", "--minibatch", "2", "--ratio", "8", "--cdus", "1", "--cdus", "2", "--plot", str(target))
    if ending == "png":
        assert Image.open(target).size[0] > 600
    else:
        text = target.read_text()
        assert "tensors leave" in text and "2 CDUs" in text


def test_models_of_pytorch():
    pytest.importorskip("torch")
    text = succeeds("--model", "actcodec.torch.resnet:resnet20", "--image", "32", "--ratio", "4")
    assert text.startswith("resnet20, minibatch 16") and re.search(r"^4x +4\.00", text, re.M)
    result = run("--model", "actcodec.torch.resnet:none")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)


def test_document_has_what_the_command_prints():
    """Each command of the page, with its output."""
    text = offload.DOCUMENT.read_text()
    assert re.search(r"^actcodec offload ", text, re.MULTILINE)
    assert offload.render(text) == text, "run make docs"
    assert offload.render(re.sub(r"^JPEG-ACT .*", "", text, flags=re.MULTILINE)) == text
