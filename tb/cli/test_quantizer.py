"""Option quantizer of mode jpeg-act: files and tensors are golden's, tables are taken, wrong ones are refused."""

import json
import struct

import numpy as np
import pytest

import actcodec
from actcodec import container
from actcodec.codecs import by_code, lane_modes
from actcodec.golden.jpegact import steps
from tb import reference
from tb.cli.line import run, shell
from tb.cli.test_container import sealed
from tb.cli.test_jpeg_base import tensor, words

CODES = {"zvc": 33, "nibble": 34, "rice": 35}
SIDE = 16 + 4 * 4  # where the table begins in a file of four dimensions


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", tensor((2, 3, 16, 13)))
    (tmp_path / "mine.txt").write_text("# steps\n" + " ".join(str(k / 4) for k in range(2, 66)))
    return tmp_path


def fields(quarters):
    """The steps as a file has them: all 64, or a 0 and the only one."""
    return bytes(quarters if len(set(quarters)) > 1 else [0, quarters[0]])


def lane(coder):
    return "jpeg-act-div" if coder == "zvc" else f"jpeg-act-div-{coder}"


@pytest.mark.parametrize("coder", CODES)
@pytest.mark.parametrize("name", steps.TABLES)
def test_files_and_tensors_are_goldens(coder, name):
    x, quarters = tensor((2, 3, 16, 13)), steps.steps(steps.table(name))
    for zone in range(4):
        encoded = reference.compress(x, lane(coder), steps.table(name), 3, dead_zone=zone)
        c = actcodec.compress(x, "jpeg-act", quantizer="div", coder=coder, dqt=name, dead_zone=zone, cdus=3)
        assert c.options == {"dqt": name, "coder": coder, "quantizer": "div", "cdus": 3}
        table = encoded.code.word.to_bytes({"nibble": 11, "rice": 8}[coder], "little") if encoded.code else b""
        assert container.pack(c) == sealed(
            b"\x89ACT" + bytes([1, CODES[coder], 3, 4]) + len(encoded.payload).to_bytes(8, "little")
            + struct.pack("<4I", *x.shape) + bytes([len(name)]) + name.encode() + fields(quarters.ravel().tolist())
            + words(encoded.scales) + table + encoded.payload)
        back = actcodec.decompress(container.unpack(container.pack(c)))
        np.testing.assert_array_equal(back, reference.decompress(encoded))


def test_codes_tell_the_quantizer():
    for coder, code in CODES.items():
        mode, values = by_code(code)
        assert (mode.name, values) == ("jpeg-act", {"coder": coder, "quantizer": "div"})
        assert lane_modes(lane(coder))[0].code == code


def test_a_dead_zone_makes_payloads_smaller_and_errors_larger():
    x = tensor((2, 3, 32, 40))
    for coder in CODES:
        results = [actcodec.evaluate(x, "jpeg-act", quantizer="div", coder=coder, dqt=20, dead_zone=z)
                   for z in range(4)]
        assert np.all(np.diff([one.ratio for one in results]) > 0)
        assert np.all(np.diff([one.relative_error for one in results]) > 0)
        default = actcodec.compress(x, "jpeg-act", quantizer="div", coder=coder, dqt=20)
        one = actcodec.compress(x, "jpeg-act", quantizer="div", coder=coder, dqt=20, dead_zone=1)
        assert container.pack(default) == container.pack(one)


def test_powers_of_two_without_a_dead_zone_are_shifts():
    x = tensor((2, 3, 16, 13))
    for coder in CODES:
        for name in ("optL", "optH"):
            div = actcodec.compress(x, "jpeg-act", quantizer="div", coder=coder, dqt=name, dead_zone=0)
            sh = actcodec.compress(x, "jpeg-act", coder=coder, dqt=name)
            assert div.payload == sh.payload
            np.testing.assert_array_equal(actcodec.decompress(div), actcodec.decompress(sh))


@pytest.mark.parametrize("coder", CODES)
def test_a_tensor_without_tiles_falls_back_as_with_shifts(coder):
    for shape in ((3, 50), (700,), (2, 3, 7, 7)):
        x = tensor(shape)
        actual = actcodec.compress(x, "jpeg-act", quantizer="div", coder=coder, dqt=0.5, cdus=2)
        assert container.pack(actual) == container.pack(actcodec.compress(x, "sfpr-zvc", coder=coder, cdus=2))


def test_command_line_is_the_api(folder):
    x = np.load("x.npy")
    lines = {"": {}, "--dqt 7.8": {"dqt": 7.8}, "--dqt optH-div --dead-zone 3": {"dqt": "optH-div", "dead_zone": 3},
             "--dqt mine.txt --coder rice": {"dqt": np.arange(2, 66) / 4, "coder": "rice"}}
    for line, options in lines.items():
        run(f"compress x.npy x.act --mode jpeg-act --quantizer div {line}")
        expected = actcodec.compress(x, "jpeg-act", quantizer="div", **options)
        c = container.read("x.act")
        assert (c.payload, c.side) == (expected.payload, expected.side)
        assert c.options["dqt"].numbers.tolist() == expected.options["dqt"].numbers.tolist()
        run("decompress x.act y.npy")
        np.testing.assert_array_equal(np.load("y.npy"), actcodec.decompress(expected))
    assert c.options["dqt"] == "mine.txt" and c.options["dqt"].table.ravel().tolist() == [k / 4 for k in range(2, 66)]
    assert "--dqt 7.8" in lines and actcodec.compress(x, "jpeg-act", quantizer="div", dqt=7.8).options["dqt"] == "7.8"


def test_info_modes_and_evaluate(folder):
    run("compress x.npy x.act --mode jpeg-act --quantizer div --coder nibble --dqt 8")
    facts = json.loads(run("info x.act --json"))
    assert (facts["mode"], facts["dqt"], facts["coder"], facts["quantizer"]) == ("jpeg-act", "8", "nibble", "div")
    assert facts["side_bytes"] == SIDE + 1 + 1 + 2 + 2 * 3 + 11 + 4
    rows = json.loads(run("evaluate x.npy --mode jpeg-act --quantizer div --dqt optH --coder rice "
                          "--dead-zone 0 --dead-zone 2 --json"))
    assert [row["label"] for row in rows] == [f"jpeg-act optH rice div {zone}" for zone in (0, 2)]
    ratios = [row["ratio"] for row in rows]
    rows = json.loads(run("evaluate x.npy --mode jpeg-act --quantizer sh --dqt optH --coder rice --json"))
    assert rows[0]["ratio"] == ratios[0] < ratios[1] and rows[0]["options"]["dead_zone"] is None
    known = next(mode for mode in json.loads(run("modes --json")) if mode["mode"] == "jpeg-act")
    assert [(one["options"], one["code"]) for one in known["variants"][2:]] == [
        ({"quantizer": "div"} | ({"coder": coder} if coder != "zvc" else {}), code) for coder, code in CODES.items()]


def test_help_says_what_tables_there_are():
    text = " ".join(run("compress --help").split())
    assert "each taken to the nearest quarter up to 63.75. Modes: jpeg-act." in text
    assert "--quantizer [sh|div]" in text and "--dead-zone" in text


@pytest.mark.parametrize("options, what", [
    ({"dqt": "optM"}, "unknown DQT 'optM', legal are optL"), ({"dqt": np.zeros(64)}, "below 0.5"),
    ({"dqt": 0.4}, "below 0.5"), ({"dqt": np.ones(63)}, "63 values"), ({"dqt": np.nan}, "finite"),
    ({"dqt": b"2"}, "legal are 64 numbers, or one"), ({"dead_zone": 4}, "dead_zone is 4"),
    ({"dead_zone": 0.5}, "dead_zone is 0.5, must be 0 to 3"), ({"quantizer": "mul"}, "must be sh, div")], ids=str)
def test_wrong_options_are_refused(options, what):
    with pytest.raises(ValueError, match=what):
        actcodec.compress(tensor((1, 1, 8, 8)), "jpeg-act", **{"quantizer": "div", **options})


@pytest.mark.parametrize("given, what", [
    ("0.25", "--dqt 0.25: DQT has a value that is below 0.5"), ("inf", "not finite"), ("-3", "below 0.5"),
    ("optM", "unknown DQT 'optM': not one of optL"),
    ("t.txt", "t.txt: 0.4 is not a DQT value: they are finite, and 0.5")])
def test_wrong_tables_are_one_line(folder, given, what):
    (folder / "t.txt").write_text("0.4 " * 64)
    assert what in run(f"compress x.npy out --mode jpeg-act --quantizer div --dqt {given}", 2)
    assert not (folder / "out").exists()


def test_steps_are_not_tables_of_shifts(folder):
    assert "unknown DQT '7.75'" in run("compress x.npy out --mode jpeg-act --dqt 7.75", 2)
    assert "0.5 is not a DQT value" in run("compress x.npy out --mode jpeg-act --dqt mine.txt", 2)


LABELS = {"quantizer div": {"quantizer": "div"}, "quantizer div\ndead_zone 3": {"quantizer": "div", "dead_zone": 3},
          "quantizer sh": {}, "# quantizer div": {}}


@pytest.mark.parametrize("label", LABELS)
def test_a_table_says_what_it_is_for(folder, label):
    (folder / "table.txt").write_text(f"{label}\n" + "16 " * 64)
    run("compress x.npy x.act --mode jpeg-act --coder rice --dqt table.txt")
    c, expected = container.read("x.act"), actcodec.compress(np.load("x.npy"), "jpeg-act", coder="rice",
                                                             dqt=np.full(64, 16), **LABELS[label])
    assert (c.payload, c.options["quantizer"]) == (expected.payload, expected.options["quantizer"])
    row, = json.loads(run("evaluate x.npy --mode jpeg-act --coder rice --dqt table.txt --json"))
    assert row["options"]["quantizer"] == c.options["quantizer"]
    assert row["options"]["dead_zone"] == (None if LABELS[label] == {} else LABELS[label].get("dead_zone", 1))


def test_a_table_is_read_once(folder):
    (folder / "table.txt").write_text("quantizer div\n" + "16 " * 64)
    done = shell(folder, "actcodec compress x.npy x.act --mode jpeg-act --dqt <(cat table.txt)")
    assert done.returncode == 0, done.stderr
    assert container.read("x.act").options["quantizer"] == "div"


def test_a_dead_zone_of_the_command_line_goes_before_that_of_the_file(folder):
    (folder / "table.txt").write_text("quantizer div\ndead_zone 3\n" + "16 " * 64)
    run("compress x.npy x.act --mode jpeg-act --dead-zone 0 --dqt table.txt")
    expected = actcodec.compress(np.load("x.npy"), "jpeg-act", quantizer="div", dqt=16, dead_zone=0)
    assert container.read("x.act").payload == expected.payload


@pytest.mark.parametrize("label, options, what", [
    ("quantizer div", "--mode jpeg-act --quantizer sh", "table.txt: a table for quantizer div of jpeg-act, not for "
     "quantizer sh"),
    ("quantizer sh", "--mode jpeg-act --quantizer div", "table.txt: a table for quantizer sh of jpeg-act, not for "
     "quantizer div"),
    ("quantizer div", "--mode jpeg-base", "table.txt: a table for quantizer div of jpeg-act, not for jpeg-base"),
    ("quantizer mul", "--mode jpeg-act", "table.txt: quantizer is 'mul', must be sh, div"),
    ("quantizer div\ndead_zone 4", "--mode jpeg-act", "table.txt: dead-zone is 4, must be 0 to 3"),
    ("quantizer sh\ndead_zone 2", "--mode jpeg-act", "dead-zone is 2, which needs quantizer div"),
    ("dead_zone much", "--mode jpeg-act", "table.txt: not a DQT: invalid literal"),
    ("", "--mode jpeg-act --dead-zone 2", "dead-zone is 2, which needs quantizer div"),
    ("quantizer sh", "--mode jpeg-act --dead-zone 1", "dead-zone is 1, which needs quantizer div")])
def test_a_table_for_something_else_is_refused(folder, label, options, what):
    (folder / "table.txt").write_text(f"{label}\n" + "16 " * 64)
    assert what in run(f"compress x.npy out {options} --dqt table.txt", 2)
    assert not (folder / "out").exists()


def test_pictures_take_no_table_of_steps(folder):
    (folder / "table.txt").write_text("quantizer div\n" + "16 " * 64)
    assert "a table for quantizer div of jpeg-act, not for jpeg-base" in run("jpeg x.npy x.jpg --dqt table.txt", 2)


def test_the_api_refuses_what_has_no_effect():
    x = tensor((1, 1, 8, 8))
    with pytest.raises(ValueError, match="dead_zone is 2, which needs quantizer div"):
        actcodec.compress(x, "jpeg-act", dead_zone=2)
    with pytest.raises(ValueError, match=r"DQT is the number 23.5: a step for all frequencies needs quantizer div"):
        actcodec.compress(x, "jpeg-act", dqt=23.5)
    step = actcodec.compress(x, "jpeg-act", quantizer="div", dqt=23.5).options["dqt"]
    with pytest.raises(ValueError, match=r"DQT 23.5 is a table for quantizer div, not for quantizer sh"):
        actcodec.compress(x, "jpeg-act", dqt=step)
    asked = actcodec.evaluate(x, "jpeg-act").options
    assert asked["dead_zone"] is None and actcodec.evaluate(x, "jpeg-act", **asked).options == asked


@pytest.mark.parametrize("mode, what", [("jpeg-act", "a step for all frequencies needs quantizer div"),
                                        ("jpeg-base", "jpeg-base needs 64 of them")])
def test_a_number_is_not_taken_for_a_file(folder, mode, what):
    assert f"unknown DQT '23.5': {what}" in run(f"compress x.npy out --mode {mode} --dqt 23.5", 2)


@pytest.mark.parametrize("dqt, at, value, what", [
    ("optH", SIDE + 5 + 63, 1, "needs quarters, 2 to 255"), ("optL", SIDE + 5 + 1, 1, "needs quarters, 2 to 255"),
    ("optH", SIDE + 5, 0, "bytes more than its header says"), ("optL", SIDE + 5, 2, "needs quarters, 2 to 255"),
    ("optL", SIDE + 1, 0xFF, "invalid"), ("optL", 5, 63, "mode 63"), ("optL", 5, 34, "ends within"),
    ("optL", 6, 9, "9 CDUs")])
def test_a_wrong_field_in_a_file_is_refused(folder, dqt, at, value, what):
    run(f"compress x.npy x.act --mode jpeg-act --quantizer div --dqt {dqt}")
    data = bytearray((folder / "x.act").read_bytes()[:-4])
    data[at] = value
    (folder / "bad.act").write_bytes(sealed(bytes(data)))
    assert what in run("decompress bad.act y.npy", 2)
    assert not (folder / "y.npy").exists()


