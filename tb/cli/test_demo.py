"""The demo: what it measures and draws, and that a wrong bit does not pass unnoticed."""

from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

from actcodec import cli, codecs, demo, engines, metrics
from actcodec.golden.jpegact import cdu


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

    return {"compress": compress, "decompress": decompress, "prepare": lambda: None}


def run(monkeypatch, tmp_path, **kwargs):
    for name, stand_in in hardware(**kwargs).items():
        monkeypatch.setattr(engines, name, stand_in)
    return CliRunner().invoke(cli.main, ["demo", "--output", str(tmp_path / "new" / "folder")])


def test_demo_shows_every_tensor_and_leaves_the_picture(monkeypatch, tmp_path):
    result = run(monkeypatch, tmp_path)
    assert result.exit_code == 0, result.output
    assert "Equal to the golden model" in result.output
    assert all(name in result.output for name in demo.sample())
    words = " ".join(result.output.split())
    assert all(f"{mode} 99-100/99-100" in words for mode in cdu.MODES)
    assert "…" not in result.output  # everything fits into 80 columns
    alone = [line.split() for line in result.output.splitlines() if line.split()[-2:] == ["-", "-"]]
    shown = [mode for mode in codecs.MODES.values() if mode.shown and "rtl" not in mode.engines]
    assert not shown  # a lane, or a unit by itself, has every mode of the demo
    kinds = {"dense": 4, "ReLU": 5}
    assert len(alone) == sum(kinds[kind] for mode in shown for kind, _ in mode.shown)
    assert all({mode.name for mode in shown} & set(line) for line in alone)
    simulated = sum(kinds[kind] for mode in codecs.MODES.values() if "rtl" in mode.engines for kind, _ in mode.shown)
    assert f"bit for bit: {simulated} streams and {simulated} tensors" in words
    picture = tmp_path / "new" / "folder" / "demo.png"
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_demo_fails_on_one_wrong_bit(monkeypatch, tmp_path):
    shape = demo.sample()["conv_layers_6_bn2"].shape
    result = run(monkeypatch, tmp_path, wrong_tensor=(shape, "sfpr"))
    assert result.exit_code == 1
    assert "conv_layers_6_bn2, sfpr: the hardware differs" in result.output
    assert "Equal to the golden model" not in result.output


def test_sample_has_the_ratios_expected_of_resnet_20():
    for kind, mode, dqt, expected in [("conv", "jpeg-act", "optL", 5.0), ("conv", "jpeg-act", "optH", 7.0),
                                      ("ReLU", "sfpr-zvc", "optL", 6.0)]:
        done = [cdu.compress(x, mode, dqt) for name, x in demo.sample().items() if name.startswith(kind)]
        ratio = sum(4 * c.view.rows * c.view.width for c in done) / sum(c.payload_bytes for c in done)
        assert ratio == pytest.approx(expected, rel=0.05)


def test_metrics_are_the_textbook_ones():
    x = np.array([3, 4, 0, 0], np.float32)
    y = np.array([3, 4, 0, 1], np.float32)
    assert metrics.relative_error(x, y) == pytest.approx(1 / 5)
    assert metrics.psnr(x, y) == pytest.approx(10 * np.log10(4**2 / 0.25))
    assert metrics.relative_error(x, x) == 0
    assert metrics.psnr(x, x) == np.inf
