"""The demo: what it measures and draws, and that a wrong bit does not pass unnoticed."""

import re
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from matplotlib.text import Annotation, Text
from matplotlib.transforms import Bbox

from actcodec import cli, codecs, demo, engines, files, metrics
from actcodec.demo import picture
from actcodec.demo.run import KINDS, Result, measure, runs, totals
from actcodec.plotting import pyplot
from tb import reference
from tb.harness import regress


def cycles(compressed):
    blocks = compressed.length // 64
    return SimpleNamespace(cycles=8 * blocks, blocks=blocks, cycles_per_block=8.0,
                           latency=98 + compressed.shape[1] % 3)


def hardware(wrong_tensor=None):
    """A stand-in for the simulated hardware that flips one bit of a tensor; test_engines.py has the real one."""
    golden = SimpleNamespace(compress=engines.compress, decompress=engines.decompress)

    def compress(engine, x, mode, **options):
        compressed, _ = golden.compress("golden", x, mode, **options)
        return compressed, cycles(compressed)

    def decompress(engine, compressed):
        after, _ = golden.decompress("golden", compressed)
        if engine == "rtl" and (compressed.shape, compressed.mode) == wrong_tensor:
            after.view(np.uint32).reshape(-1)[-1] ^= 1
        return after, cycles(compressed)

    return {"compress": compress, "decompress": decompress, "prepare": lambda modes: None}


def run(monkeypatch, tmp_path, *arguments, **kwargs):
    for name, stand_in in hardware(**kwargs).items():
        monkeypatch.setattr(engines, name, stand_in)
    return CliRunner().invoke(cli.main, ["demo", "--output", str(tmp_path / "new" / "folder"), *arguments])


def rows(output):
    """The table's rows: numbers by kind and label."""
    numbers, kind = {}, None
    for line in output.splitlines():
        if match := re.fullmatch(r" (dense|ReLU) tensors *", line):
            kind = match[1]
        elif kind and (match := re.fullmatch(r" (\S+(?: \S+)*) {2,}(\d+\.\d\d) +(\S.*)", line)):
            numbers[kind, match[1]] = match[2], *match[3].split()
    return numbers


@pytest.mark.regress
@pytest.mark.parametrize("everything", [False, *regress(True)])
def test_demo_has_every_mode_and_leaves_the_picture(monkeypatch, tmp_path, everything):
    result = run(monkeypatch, tmp_path, *["--all"] * everything)
    assert result.exit_code == 0, result.output
    assert "…" not in result.output  # everything fits into 80 columns
    shown = rows(result.output)
    wanted = [(kind, mode, options) for kind, ways in runs().items() for mode, options in ways]
    assert list(shown) and set(shown) == {(kind, " ".join([mode, *map(str, options.values())]))
                                          for kind, mode, options in wanted}
    counts = {kind: sum(name.startswith("ReLU") == (kind == "ReLU") for name in demo.sample()) for kind in KINDS}
    simulated = 0
    for kind, mode, options in wanted:
        cycles = shown[kind, " ".join([mode, *map(str, options.values())])][-2:]
        in_hardware = everything or (mode in codecs.JPEG_ACT and "coder" not in options)
        assert (cycles == ("8.00/8.00", "99-100/99-100")) == in_hardware, (mode, options)
        simulated += in_hardware * counts[kind]
    assert f"{simulated} streams and {simulated} tensors" in " ".join(result.output.split())
    image = tmp_path / "new" / "folder" / "demo.png"
    assert image.read_bytes().startswith(b"\x89PNG")


def test_totals_are_of_all_tensors_together():
    before, after = np.float32([3, 0, 0]), np.float32([3, 1, 0])
    four = np.float32([4])
    results = [Result("a", "dense", "sfpr", {}, before, after, 3.0, (8.5, 8.25), (100, 90)),
               Result("b", "dense", "sfpr", {}, four, four, 1.0, (9.0, 8.0), (110, 90))]
    total, = totals(results)
    assert total.ratio == pytest.approx(16 / (4 + 4))
    assert total.relative_error == pytest.approx(1 / 5)
    assert (total.cycles, total.latency) == ("9.00/8.25", "100-110/90")


def test_names_in_the_picture_hide_neither_marks_nor_each_other(tmp_path):
    figure = pyplot().figure(figsize=(8, 6), dpi=100)
    axes = figure.add_axes((0.1, 0.1, 0.8, 0.8))
    results = [measure(name, kind, x, mode, options, False) for name, x in list(demo.sample().items())[-2:]
               for kind in ["ReLU" if name.startswith("ReLU") else "dense"] for mode, options in runs()[kind]]
    picture.draw_ratios(axes, results)
    figure.canvas.draw()
    names = [text for text in axes.texts if isinstance(text, Annotation)]
    assert len({(name.get_text(), name.get_color()) for name in names}) == len(names)
    boxes = [Text.get_window_extent(name) for name in names]  # without their lines
    overlaps = [Bbox.intersection(one, other) for one, other in combinations(boxes, 2)]
    assert sum(box.width * box.height for box in overlaps if box) < 0.01 * sum(box.width * box.height for box in boxes)
    pyplot().close(figure)


@pytest.mark.parametrize("place, name, calls", [(engines, "prepare", 0), (engines, "decompress", 9),
                                                (picture, "draw_ratios", 0)])
def test_a_demo_that_fails_leaves_no_folder(monkeypatch, tmp_path, place, name, calls):
    """Before the first tensor, in the middle of them, and with all of them."""
    for function, stand_in in hardware().items():
        monkeypatch.setattr(engines, function, stand_in)
    works, left = getattr(place, name), iter(range(calls))

    def fails(*arguments):
        if next(left, None) is None:
            raise files.UserError("no memory")
        return works(*arguments)

    monkeypatch.setattr(place, name, fails)
    result = CliRunner().invoke(cli.main, ["demo", "--output", str(tmp_path / "new" / "folder")])
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (2, "actcodec: error: no memory")
    assert not list(tmp_path.iterdir())


def test_where_the_demo_cannot_write_is_told_before_it_runs(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setattr(engines, "prepare", lambda modes: pytest.fail("it ran"))
    result = CliRunner().invoke(cli.main, ["demo", "--output", str(tmp_path / "file" / "folder")])
    assert result.exit_code == 2 and result.stderr.endswith("file: is not a directory\n")


@pytest.mark.regress
def test_demo_fails_on_one_wrong_bit(monkeypatch, tmp_path):
    shape = demo.sample()["conv_layers_6_bn2"].shape
    result = run(monkeypatch, tmp_path, wrong_tensor=(shape, "sfpr"))
    assert result.exit_code == 1
    assert "conv_layers_6_bn2, sfpr: the hardware differs" in result.output
    assert "Equal to the golden model" not in result.output


def test_sample_has_the_ratios_expected_of_resnet_20():
    for kind, mode, dqt, expected in [("conv", "jpeg-act", "optL", 5.0), ("conv", "jpeg-act", "optH", 7.0),
                                      ("ReLU", "sfpr-zvc", "optL", 6.0)]:
        done = [reference.compress(x, mode, dqt) for name, x in demo.sample().items() if name.startswith(kind)]
        ratio = sum(4 * c.view.rows * c.view.width for c in done) / sum(c.payload_bytes for c in done)
        assert ratio == pytest.approx(expected, rel=0.05)


def test_metrics_are_the_textbook_ones():
    x = np.array([3, 4, 0, 0], np.float32)
    y = np.array([3, 4, 0, 1], np.float32)
    assert metrics.relative_error(x, y) == pytest.approx(1 / 5)
    assert metrics.psnr(x, y) == pytest.approx(10 * np.log10(4**2 / 0.25))
    assert metrics.relative_error(x, x) == 0
    assert metrics.psnr(x, x) == np.inf
