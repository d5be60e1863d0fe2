"""`actcodec evaluate`, `modes` and `awp`: what they read, print and draw."""

import csv
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import actcodec
from actcodec.golden.a2dtwp.awp import Awp, norms
from tb.cli.line import invoke, run


@pytest.fixture
def tensors(tmp_path, monkeypatch):
    """A folder with one tensor, with several, and with the same ones as PyTorch has them."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(3)
    arrays = {"conv": random.normal(size=(2, 3, 9, 10)).astype(np.float32),
              "relu": np.maximum(random.normal(size=(4, 40)), 0).astype(np.float16)}
    np.save("x.npy", arrays["conv"])
    np.savez("all.npz", **arrays, number=np.arange(3))
    torch.save({"layers": [torch.tensor(arrays["conv"]), {"bias": torch.tensor(arrays["relu"]).to(torch.bfloat16)}],
                "steps": 7}, "all.pt")
    return arrays


def test_every_mode_is_measured_as_the_api_does(tensors):
    rows = json.loads(run("evaluate x.npy all.npz:relu --all --json"))
    assert [(row["tensor"], row["label"].split()[0]) for row in rows] == [
        (name, mode) for name in ("x", "relu") for mode in actcodec.modes()]
    for row in rows:
        x = tensors["conv" if row["tensor"] == "x" else "relu"]
        expected = actcodec.evaluate(x, row["label"].split()[0])
        assert (row["shape"], row["dtype"], row["bytes"]) == (list(x.shape), x.dtype.name, x.nbytes)
        for field in ("mode", "ratio", "ratio_with_side", "relative_error", "channel_error", "largest_error", "nans",
                      "infinities", "saturated"):
            assert row[field] == getattr(expected, field)
        assert row["psnr"] == (expected.psnr if np.isfinite(expected.psnr) else None)
    assert [row["label"] for row in rows if row["mode"] != row["label"].split()[0]] == [
        "jpeg-act (sfpr-zvc)", "jpeg-base (sfpr)"]


def test_each_option_is_tried_with_each(tensors):
    line = "evaluate x.npy --mode jpeg-act --mode zvc --dqt optL --dqt jpeg60 --cdus 1 --cdus 3 --json"
    rows = json.loads(run(line))
    assert [row["label"] for row in rows] == [
        *(f"jpeg-act {dqt} {cdus}" for dqt in ("optL", "jpeg60") for cdus in (1, 3)), "zvc 1", "zvc 3"]
    assert rows[3]["options"] == {"dqt": "jpeg60", "coder": "zvc", "quantizer": "sh", "dead_zone": None,
                                  "scaling": "channel", "cap": None, "clip": 1.125, "cdus": 3}


def test_the_same_numbers_as_text_and_values(tensors):
    text = run("evaluate all.npz:conv all.npz:relu --mode jpeg-act --mode dpr-fp8")
    assert max(map(len, text.splitlines())) <= 80
    rows = list(csv.DictReader(run("evaluate all.npz:conv all.npz:relu --mode jpeg-act --mode dpr-fp8 --csv")
                               .splitlines()))
    assert [(row["tensor"], row["mode"]) for row in rows] == [
        ("conv", "jpeg-act"), ("conv", "dpr-fp8"), ("relu", "sfpr-zvc"), ("relu", "dpr-fp8")]
    assert all(f"{float(row['ratio']):.2f}" in text and row["shape"] in text for row in rows)
    size = sum(x.nbytes for x in tensors.values())
    packed = sum(x.nbytes / float(row["ratio"]) for x, row in zip(tensors.values(), rows[1::2], strict=True))
    assert f"dpr-fp8: {size / packed:.2f}\n" in text


def test_tables_of_one_name_are_not_mixed(tensors):
    for folder, table in (("a", "1 " * 64), ("b", "64 " * 64)):
        os.mkdir(folder)
        Path(folder, "t (1).txt").write_text(table)
    words = "evaluate", "all.npz:conv", "x.npy", "--mode", "jpeg-act", "--dqt", "a/t (1).txt", "--dqt", "b/t (1).txt"
    rows = json.loads(invoke(*words, "--json").stdout)
    assert [row["label"] for row in rows] == ["jpeg-act t (1).txt", "jpeg-act t (1).txt #2"] * 2
    text = invoke(*words).stdout
    for label, row in zip(("jpeg-act t (1).txt", "jpeg-act t (1).txt #2"), rows, strict=False):
        assert f"  {label}: {row['ratio']:.2f}\n" in text  # both tensors are the same


def test_bfloat16_is_called_so(tensors):
    np.save("n.npy", np.full((3, 2), 0x3F80, np.uint16).view("V2"))
    row, = json.loads(run("evaluate n.npy --mode raw --json"))
    assert row["dtype"] == "bfloat16"
    assert run("awp n.npy")


def test_two_tensors_of_one_name_are_refused(tensors):
    torch.save({"a.b": torch.ones(3), "a": {"b": torch.zeros(3)}}, "two.pt")
    assert "two.pt: two tensors have the name a.b" in invoke("evaluate two.pt --mode raw").stderr


def test_files_of_several_tensors(tensors):
    rows = json.loads(run("evaluate all.npz all.pt all.pt:layers.0 --mode raw --json"))
    assert [(row["tensor"], row["shape"], row["ratio_with_side"] > 0) for row in rows] == [
        ("conv", [2, 3, 9, 10], True), ("relu", [4, 40], True), ("layers.0", [2, 3, 9, 10], True),
        ("layers.1.bias", [4, 40], True), ("layers.0", [2, 3, 9, 10], True)]
    result = invoke("evaluate all.npz --mode raw")
    assert result.stderr == ("note: left out all.npz:number: dtype is int64; actcodec takes float32, float16, "
                             "bfloat16, float64, int8\n")
    np.savez("codes.npz", x=np.ones((1, 2, 8, 8), np.float32), codes=np.arange(9, dtype=np.int8))
    result = invoke("evaluate codes.npz --mode raw --mode sfpr --csv")
    assert result.stderr == "note: left out codes, which is int8, in raw\n"
    assert [line.split(",")[:4] for line in result.stdout.splitlines()[1:]] == [
        ["x", "1x2x8x8", "float32", "raw"], ["x", "1x2x8x8", "float32", "sfpr"], ["codes", "9", "int8", "sfpr"]]
    assert "mode raw takes no int8: these are codes of SFPR" in invoke("evaluate codes.npz:codes --mode raw").stderr
    piped = subprocess.run([sys.executable, "-m", "actcodec", "evaluate", "-", "--mode", "raw", "--csv"],
                           stdin=open("x.npy", "rb"), capture_output=True, text=True, check=True)  # noqa: SIM115
    assert piped.stdout.splitlines()[1].startswith("-,2x3x9x10,float32,raw,raw,")
    assert piped.stderr == ""


@pytest.mark.parametrize("name, form", [("p.png", "PNG"), ("p.svg", None), ("p.pdf", None)])
def test_plot_is_a_picture_of_the_form_that_its_name_says(tensors, tmp_path, name, form):
    run(f"evaluate all.npz --all --plot {name}")
    if form:
        with Image.open(name) as picture:
            assert picture.format == form and picture.width > 800
    else:
        assert (tmp_path / name).read_bytes().startswith({"p.svg": b"<?xml", "p.pdf": b"%PDF"}[name])


@pytest.mark.parametrize("line, what", [
    ("evaluate x.npy", "either --mode, once or more, or --all"), ("evaluate x.npy --all --mode raw", "either --mode"),
    ("evaluate x.npy --all --json --csv", "either --json or --csv"), ("evaluate --all", "Missing argument"),
    ("evaluate none.npz --all", "none.npz: No such file"), ("evaluate none.pt --all", "none.pt: No such file"),
    ("evaluate all.npz:none --all", "all.npz: has no 'none'; there are conv, relu, number"),
    ("evaluate all.npz:number --all", "all.npz:number: dtype is int64"), ("evaluate bad.npz --all", "not a .npz file"),
    ("evaluate bad.pt --all", "not a readable .pt file"), ("evaluate none.npz:x --all", "none.npz: No such file"),
    ("evaluate x.npy --all --plot x.txt", "not the name of a picture"), ("evaluate ints.npz --all", "has no tensor"),
    ("evaluate x.npy --all --plot no/x.png", "no such directory"), ("evaluate x.npy --mode gif", "'gif'"),
    ("evaluate x.npy --mode raw --cdus 9", "--cdus"), ("evaluate x.npy --mode jpeg-act --dqt no", "unknown DQT 'no'"),
])
def test_errors_are_one_line(tensors, tmp_path, line, what):
    for name in ("bad.npz", "bad.pt"):
        (tmp_path / name).write_bytes(b"PK\3\4 no zip")
    np.savez("ints.npz", np.arange(3))
    assert what in run(line, 2)


# Adaptive weight precision

HISTORY = np.cumprod(np.tile([0.9, 0.99, 1.1], (12, 1)), axis=0)


def awp(threshold, interval, **parameters):
    model = Awp(3, threshold, interval, **parameters)
    changes = [(0, model.bits.tolist())]
    for batch, row in enumerate(HISTORY, 1):
        model.update(row)
        if model.bits.tolist() != changes[-1][1]:
            changes.append((batch, model.bits.tolist()))
    return changes


@pytest.mark.parametrize("name", ["n.npy", "n.csv", "n.txt"])
def test_awp_of_norms_is_algorithm_1(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    np.save(name, HISTORY) if name == "n.npy" else np.savetxt(name, HISTORY, delimiter="," if name == "n.csv" else " ",
                                                              header="conv1 conv2 fc")
    facts = json.loads(run(f"awp {name} --threshold -0.005 --interval 3 --start 8 --step 4 --json"))
    assert [(change["batch"], change["bits"]) for change in facts["changes"]] == awp(-0.005, 3, step=4)
    assert facts["changes"][-1]["bytes"] == [-(-bits // 8) for bits in facts["changes"][-1]["bits"]]
    assert facts["batches"] == 12 and len(facts["changes"]) > 2
    text = run(f"awp {name} --threshold -0.05 --interval 3")
    assert [line.split() for line in text.splitlines()[2:]] == [
        [str(batch), *(str(-(-bit // 8)) for bit in bits)] for batch, bits in awp(-0.05, 3)]
    defaults = json.loads(run(f"awp {name} --network alexnet --json"))
    assert (defaults["threshold"], defaults["interval"], defaults["start"]) == (-5e-2, 4000, 8)


def test_awp_of_weights_is_awp_of_their_norms(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    random, model = np.random.default_rng(0), Awp(2, -0.01, 1)
    for batch in range(4):
        weights = {"a": random.normal(size=(3, 4)) * 0.9**batch, "b": np.ones(5, np.float32)}
        np.savez(f"{batch}.npz", **weights)
        model.update(norms(list(weights.values())))
    facts = json.loads(run("awp 0.npz 1.npz 2.npz 3.npz --threshold -0.01 --interval 1 --json"))
    assert facts["layers"] == ["a", "b"] and facts["changes"][-1]["bits"] == model.bits.tolist()
    np.savez("4.npz", a=np.ones(3))
    assert "4.npz: its layers differ from those of 0.npz" in run("awp 0.npz 4.npz", 2)


@pytest.mark.parametrize("text, what", [("1 2\n3", "not a table of norms"), ("one", "not a table"), ("", "not a table"),
                                        ("1 -2", "not a table"), ("nan", "not a table")])
def test_other_tables_are_refused(tmp_path, monkeypatch, text, what):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "n.txt").write_text(text)
    assert what in run("awp n.txt", 2)
    (tmp_path / "n.txt").write_text("1 2\n3 4\n")
    assert "threshold must be a finite number" in run("awp n.txt --threshold nan", 2)
    assert "--step" in run("awp n.txt --step 0", 2)


def test_a_file_s_other_members_do_no_harm(tensors):
    np.savez("odd.npz", conv=tensors["conv"], objects=np.array([{}], object))
    with zipfile.ZipFile("odd.npz", "a") as file:
        file.writestr("notes.txt", "not an array")
    torch.save({"conv": torch.tensor(tensors["conv"]), "eighth": torch.ones(8).to(torch.float8_e4m3fn),
                "sparse": torch.eye(3).to_sparse()}, "odd.pth")
    for name in "odd.npz", "odd.pth":
        rows = json.loads(run(f"evaluate {name} --mode zvc --json"))
        assert [row["tensor"] for row in rows] == ["conv"]
        rows = json.loads(run(f"evaluate {name}:conv --mode zvc --json"))
        assert [row["tensor"] for row in rows] == ["conv"]
    for name, what in (("odd.npz:objects", "pickle"), ("odd.npz:notes.txt", "is no array"),
                       ("odd.pth:eighth", "odd.pth:eighth"), ("odd.pth:sparse", "odd.pth:sparse")):
        assert what in run(f"evaluate {name} --mode zvc", 2)
    with open("empty.pt", "wb"):
        pass
    assert "empty.pt: not a readable .pt file: EOFError" in run("evaluate empty.pt --mode zvc", 2)


def test_an_alias_is_no_fallback(tensors):
    assert "fell back" not in run("compress x.npy x.act --mode binarize")
    assert "(brc)" not in run("evaluate x.npy --mode binarize")


def test_weights_may_be_bfloat16(tensors):
    torch.save({"w": torch.ones(4, 8).to(torch.bfloat16)}, "w.pt")
    assert "1 batches" in run("awp w.pt --interval 1")


def test_tensors_of_one_name_are_told_apart(tensors):
    os.makedirs("other")
    np.save("other/x.npy", tensors["conv"] * 2)
    rows = json.loads(run("evaluate x.npy other/x.npy --mode zvc --json"))
    assert [row["tensor"] for row in rows] == ["x.npy:x", "other/x.npy:x"]
    assert "ratio of all tensors together" in run("evaluate x.npy other/x.npy --mode zvc")
    rows = json.loads(run("evaluate all.npz all.npz:conv --mode zvc --json"))  # the same one, twice
    assert [row["tensor"] for row in rows] == ["conv", "relu", "conv"]
