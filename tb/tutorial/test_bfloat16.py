"""The bench of the tutorial's unit, and the tutorial itself: one file more, and the codec is everywhere."""

import os
import re
import subprocess

import cocotb
import ml_dtypes
import numpy as np
import pytest

import actcodec
from actcodec import codecs, container, elaboration, units
from actcodec.sim.accelerator import Accelerator
from actcodec.synth.catalogue import jobs
from actcodec.synth.flow import synthesise
from tb.cli.line import run
from tb.harness import PATTERNS, ROOT, SEED, STALLS, Bench, pack, rng, simulate
from tb.offload.jobs import Job
from tb.soak import chance
from tb.soak.session import Session
from tb.tutorial import bfloat16

SPECIAL = np.array([np.nan, np.inf, -np.inf, 1e-45, -0.0, 3.4e38, 1 + 2**-8, 1 + 3 * 2**-8], np.float32)


def test_unit():
    simulate(bfloat16.Bfloat16(), __file__)


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def equals_golden(dut, idle, stall):
    random = rng()
    bench = await Bench.started(dut)
    for truncate in (0, 1):
        x = random.integers(0, 1 << 32, (40, 8), np.uint32).view(np.float32)
        x[:4] = random.choice(SPECIAL, (4, 8))
        codes = bfloat16.Model().forward(x, {"truncate": truncate})
        back = bfloat16.Model().backward(codes, {})
        for decompress, beats, expected in ((0, x.view(np.uint32), codes), (1, codes, back.view(np.uint32))):
            dut.decompress.value, dut.truncate.value = decompress, truncate
            ran = await bench.run({"i": [pack(row, 32) for row in beats]}, {"o": 40}, random, idle, stall)
            bench.equal(ran["o"], [pack(row, 32) for row in expected], f"decompress {decompress}, truncate {truncate}")


@pytest.fixture(autouse=True)
def registered(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bfloat16.register()
    yield
    codecs.unregister("bfloat16")
    del units.UNITS["bfloat16"]


@pytest.fixture
def x():
    x = np.random.default_rng(SEED).normal(size=(2, 3, 5, 11)).astype(np.float32)
    x.reshape(-1)[: SPECIAL.size] = SPECIAL
    return x


def test_golden_rounds_as_ml_dtypes_does(x):
    """All 65,536 upper halves, each with lower halves on either side of a tie."""
    upper, lower = np.meshgrid(np.arange(1 << 16, dtype=np.uint32), [0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF])
    values = (upper << 16 | lower.astype(np.uint32)).reshape(-1, 8).view(np.float32)
    back = actcodec.decompress(actcodec.compress(values, "bfloat16"))
    with np.errstate(invalid="ignore"):  # signalling NaN
        expected = values.astype(ml_dtypes.bfloat16).astype(np.float32)
    np.testing.assert_array_equal(back, expected)
    cut = actcodec.decompress(actcodec.compress(x, "bfloat16", rounding="truncate"))
    assert np.all((np.abs(cut) <= np.abs(x)) | np.isnan(x))


@pytest.mark.parametrize("rounding", ["nearest", "truncate"])
def test_both_engines_have_it(x, rounding, tmp_path):
    np.save("x.npy", x)
    for engine in ("golden", "rtl"):
        run(f"compress x.npy {engine}.act --mode bfloat16 --rounding {rounding} --cdus 3 --engine {engine}")
        run(f"decompress golden.act {engine}.npy --engine {engine}")
    assert (tmp_path / "rtl.act").read_bytes() == (tmp_path / "golden.act").read_bytes()
    assert container.read("golden.act").payload_bytes == 128 * 8  # blocks of 8 sectors; a row has two
    np.testing.assert_array_equal(np.load("rtl.npy").view(np.uint32), np.load("golden.npy").view(np.uint32))


def test_help_tables_and_units_have_it():
    assert "--rounding" in run("compress --help")
    assert "bfloat16" in run("modes") and re.search(r"^ bfloat16 +float32 to bfloat16", run("units"), re.MULTILINE)


def test_it_is_linted_and_mapped(tmp_path):
    (tmp_path / "lane.v").write_text(elaboration.verilog(units.UNITS["lane"].build(modes=("raw", "bfloat16")), "lane"))
    subprocess.run([ROOT / "tb/bin/verilator", "--lint-only", "--quiet", "-Wall", ROOT / "rtl/lint.vlt", "lane.v"],
                   check=True, env={**os.environ, "PATH": f"{ROOT}/.venv/bin:{os.environ['PATH']}"})
    job, = jobs(["bfloat16"])
    figures, _, _ = synthesise(job.name, job.text, tmp_path, "fast")
    assert figures.slack >= 0 and figures.area < 8000


def test_it_is_soaked():
    """Descriptors of any rows and widths, on a lane of its own and among others."""
    accelerator = Accelerator(2, ("raw", "bfloat16"))
    random = np.random.default_rng(SEED)
    session = Session(accelerator, random, 0, chance.SIZE)
    session.environment.begin(chance.memory(random, accelerator, (0, 0)), 1)
    for _ in range(20):
        job = chance.job(random, accelerator, 0)
        assert isinstance(job, Job)
        session.compress(job)
        session.decompress(job)


def test_pytorch_has_it(x):
    torch = pytest.importorskip("torch")
    from actcodec.torch.golden import codec

    one = codec("bfloat16", {}, "golden")
    values = torch.from_numpy(x)
    np.testing.assert_array_equal(one.decode(one.encode(values)), values.bfloat16().float())


def test_the_tutorial_shows_these_files():
    text = (ROOT / "docs/add-a-codec.md").read_text()
    shown = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(shown) >= 4
    sources = "".join((ROOT / "tb/tutorial" / name).read_text() for name in ("bfloat16.py", "test_bfloat16.py"))
    assert [part for part in shown if part not in sources] == []
    assert len(text.splitlines()) <= 200
