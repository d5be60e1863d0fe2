"""``actcodec dqt``: the table reaches what was asked for, is better than those with names, and is taken by --dqt."""

import json
from pathlib import Path

import numpy as np
import pytest

import actcodec
from actcodec.commands import dqt as commands
from actcodec.files import read_dqt
from actcodec.golden.jpegact import dqt
from tb.cli.line import run, succeeds
from tb.harness import regress

SAMPLE = Path(actcodec.__file__).parent / "data" / "resnet20.npz"


@pytest.fixture
def dense(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with np.load(SAMPLE) as sample:
        tensors = {name: x[:2] for name, x in sample.items() if name.startswith("conv")}
    np.savez("dense.npz", **tensors)
    return list(tensors.values())


def reached(tensors, table, coder):
    """Ratio and error, by the API."""
    each = [(x.nbytes, actcodec.evaluate(x, "jpeg-act", dqt=table, coder=coder)) for x in tensors]
    ratio = sum(size for size, _ in each) / sum(size / e.ratio for size, e in each)
    return ratio, np.mean([e.relative_error**2 for _, e in each]) ** 0.5


@pytest.mark.parametrize("coder, gain", [("zvc", 1.05), *regress(("nibble", 1.01), ("rice", 1.01))])
def test_a_table_for_an_error_is_better_than_the_papers(dense, coder, gain):
    ratio, error = reached(dense, "optH", coder)
    message = succeeds(f"dqt dense.npz --error {error} --coder {coder} -o table.txt --plot tables.png").stderr
    name, table, options = read_dqt("table.txt")
    result = reached(dense, table, coder)
    assert result[0] > gain * ratio and result[1] <= error
    assert options == {"quantizer": "sh"}
    assert message == f"table.txt: ratio {result[0]:.2f}, relative error {result[1]:.4f}\n"
    assert Path("tables.png").read_bytes().startswith(b"\x89PNG")
    np.save("x.npy", dense[0])
    assert name in run(f"compress x.npy x.act --mode jpeg-act --coder {coder} --dqt table.txt")


@pytest.mark.parametrize("coder", regress("nibble", "rice"))
def test_no_table_with_a_name_is_better(dense, coder):
    ratio, error = reached(dense, "optL", coder)
    Path("table.txt").write_text(run(f"dqt dense.npz --error {error} --coder {coder}"))
    result = reached(dense, read_dqt("table.txt")[1], coder)
    assert result[0] >= ratio and result[1] <= error


def test_a_table_for_a_ratio(dense):
    wanted, most = reached(dense, "optH", "rice")
    text = run(f"dqt dense.npz --ratio {wanted} --coder rice")
    Path("table.txt").write_text(text)
    ratio, error = reached(dense, read_dqt("table.txt")[1], "rice")
    assert ratio >= wanted and error < most
    assert text.startswith(f"# --coder rice: ratio {ratio:.2f}, relative error {error:.4f}\n")


@pytest.mark.parametrize("coder", ["zvc", *regress("rice")])
def test_a_step_of_division_is_taken_and_better_than_shifts(dense, coder):
    error = reached(dense, "optH", coder)[1]
    message = succeeds(f"dqt dense.npz --error {error} --coder {coder} --quantizer div -o step.txt").stderr
    shifts = float(run(f"dqt dense.npz --error {error} --coder {coder}").split("ratio ")[1].split(",")[0])
    first, quantizer, zone, *rest = Path("step.txt").read_text().splitlines()
    assert first.startswith(f"# --coder {coder}: ") and len(set(" ".join(rest[-8:]).split())) == 1
    assert rest[0].startswith("scaling ") and rest[-9].startswith("clip ")
    assert quantizer == "quantizer div" and zone.startswith("dead_zone ")
    sizes, errors = [], []
    for x in dense:
        np.save("x.npy", x)
        run(f"compress x.npy x.act --mode jpeg-act --coder {coder} --dqt step.txt")
        run("decompress x.act y.npy")
        sizes.append(actcodec.load("x.act").payload_bytes)
        errors.append(np.linalg.norm(np.load("y.npy") - x) / np.linalg.norm(x))
    ratio, error_ = sum(x.nbytes for x in dense) / sum(sizes), np.mean(np.square(errors)) ** 0.5
    assert message == f"step.txt: ratio {ratio:.2f}, relative error {error_:.4f}\n"
    assert error_ <= error and ratio > (1.02 if coder == "zvc" else 1.05) * shifts


def test_a_search_may_be_limited(dense):
    for line, options in {"--dead-zone 0 --scaling channel": {"dead_zone": 0, "scaling": "channel"},
                          "--scaling tensor --channels": {"scaling": "tensor"}}.items():
        run(f"dqt dense.npz --error 0.12 --quantizer div {line} -o table.txt")
        assert options.items() <= read_dqt("table.txt")[2].items()
    _, table, options = read_dqt("table.txt")

    def error(step):
        each = [actcodec.evaluate(x, "jpeg-act", dqt=np.maximum(table, step), **options) for x in dense]
        return np.mean([one.channel_error**2 for one in each]) ** 0.5

    assert error(0) <= 0.12 < error(table.min() + 0.25)


@pytest.mark.parametrize("limit, options", [("--error 0.06", ""), ("--error 0.1", "--quantizer div"),
                                            ("--ratio 8", "--quantizer div")])
def test_what_is_asked_for_is_reached_by_the_tensors(dense, limit, options):
    """Whatever the search thought of its samples."""
    run(f"dqt dense.npz {limit} {options} -o table.txt")
    rows = json.loads(run("evaluate dense.npz --mode jpeg-act --dqt table.txt --json"))
    if limit.startswith("--error"):
        assert np.mean([row["relative_error"] ** 2 for row in rows]) ** 0.5 <= float(limit.split()[1])
    else:
        total = sum(row["bytes"] for row in rows) / sum(row["bytes"] / row["ratio"] for row in rows)
        assert total >= float(limit.split()[1]) - 1e-9


def test_the_search_may_be_wrong(dense, monkeypatch):
    """Its next table is asked for until one is right, and none is taken otherwise."""
    golden, asked = dqt.best, []

    def best(counts, error=None, ratio=None):
        asked.append(error)
        return golden(counts, 2 * error)

    monkeypatch.setattr(dqt, "best", best)
    run("dqt dense.npz --error 0.1 -o table.txt")
    assert len(asked) > 1 and sorted(asked, reverse=True) == asked and reached(
        dense, read_dqt("table.txt")[1], "zvc")[1] <= 0.1
    monkeypatch.setattr(commands, "measured", lambda tensors, table, options: (1.5, 0.2))
    Path("table.txt").unlink()
    assert "no table has an error of 0.1: the nearest has 0.2" in run("dqt dense.npz --error 0.1 -o table.txt", 2)
    assert not Path("table.txt").exists()


def test_the_papers_search(dense):
    first, second = (run(f"dqt dense.npz --alpha {alpha}") for alpha in (0.005, 0.05))
    for text in (first, second):
        Path("table.txt").write_text(text)
        assert set(np.log2(read_dqt("table.txt")[1]).ravel()) <= set(range(8))
    assert float(first.split("error ")[1].split()[0]) > float(second.split("error ")[1].split()[0])


@pytest.mark.parametrize("line, what", [
    ("dqt dense.npz", "give one of --error, --ratio and --alpha"),
    ("dqt dense.npz --error 0.1 --ratio 8", "give one of"),
    ("dqt dense.npz --alpha 0.005 --quantizer div", "--alpha, the paper's own search, requires --quantizer sh"),
    ("dqt dense.npz --error 0.1 --channels", "require --quantizer div"),
    ("dqt dense.npz --error 0.1 --scaling tensor", "require --quantizer div"),
    ("dqt dense.npz --error 0.0001 --quantizer div", "no table has an error of 0.0001"),
    ("dqt dense.npz --error 0.0001", "no table has an error of 0.0001"),
    ("dqt dense.npz --ratio 200 --coder nibble", "no table has a ratio of 200"),
    ("dqt flat.npy --error 0.1", "flat: shape (1, 70, 1, 1) is too small for the DCT"),
    ("dqt zeros.npy --error 0.1", "zeros: tensor is all zeros"),
    ("dqt dense.npz --error 0.1 -o nowhere/table.txt", "nowhere: no such directory"),
    ("dqt dense.npz --error 0.1 -o table.npy", "table.npy: the table is written as text"),
    ("dqt dense.npz --error 0.1 --plot table.doc", "not the name of a picture")])
def test_what_cannot_be_is_one_line(dense, line, what):
    np.save("flat.npy", np.ones((1, 70, 1, 1), np.float32))
    np.save("zeros.npy", np.zeros((1, 1, 8, 8), np.float32))
    assert what in run(line, 2)


def test_limits_are_those_of_the_tensor_s_own_type(tmp_path):
    """A float16 has half of the bytes."""
    x = np.random.default_rng(1).normal(size=(1, 4, 32, 32)).cumsum(2).cumsum(3).astype(np.float16)
    np.save(tmp_path / "half.npy", x)
    run(f"dqt {tmp_path}/half.npy --ratio 4 -o {tmp_path}/table.txt")
    row, = json.loads(run(f"evaluate {tmp_path}/half.npy --mode jpeg-act --dqt {tmp_path}/table.txt --json"))
    assert row["ratio"] >= 4


def test_what_has_no_scales_or_no_float32_is_refused(tmp_path):
    np.save(tmp_path / "codes.npy", np.ones((1, 1, 16, 16), np.int8))
    np.save(tmp_path / "big.npy", np.full((1, 1, 16, 16), 1e39))
    assert "codes of SFPR" in run(f"dqt {tmp_path}/codes.npy --ratio 4 -o {tmp_path}/t.txt", 2)
    assert "beyond float32's range" in run(f"dqt {tmp_path}/big.npy --ratio 4 -o {tmp_path}/t.txt", 2)
    assert "beyond float32's range" in run(f"jpeg {tmp_path}/big.npy {tmp_path}/b.jpg", 2)


def test_an_input_is_not_overwritten(tmp_path):
    np.savez(tmp_path / "acts.npz", x=np.ones((1, 1, 16, 16), np.float32))
    assert "same file" in run(f"dqt {tmp_path}/acts.npz:x --ratio 4 -o {tmp_path}/acts.npz", 2)
