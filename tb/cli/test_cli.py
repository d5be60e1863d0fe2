"""The command line: what it prints and writes."""

import contextlib
import json
import os
import subprocess
import sys
from importlib.metadata import version

import numpy as np
import pytest

import actcodec
from actcodec import cli, codecs, container
from actcodec.golden.jpegact import quantize
from tb import reference
from tb.cli.line import invoke, run, shell, succeeds


@pytest.mark.parametrize("mode", reference.MODES)
@pytest.mark.parametrize("cdus", [1, 2, 3, 4, 5, 6, 7, 8])
def test_round_trip_is_the_golden_model(folder, mode, cdus):
    x = np.load("x.npy")
    expected = reference.compress(x, mode, "jpeg80", cdus)
    succeeds("compress", "x.npy", "y.act", "--mode", mode, "--dqt", "jpeg80", "--cdus", cdus)
    succeeds("decompress", "y.act", "y.npy")
    assert container.read("y.act").payload == expected.payload
    np.testing.assert_array_equal(np.load("y.npy").view(np.uint32), reference.decompress(expected).view(np.uint32))
    assert sorted(os.listdir()) == ["x.act", "x.npy", "y.act", "y.npy"]


@pytest.mark.parametrize("mode", reference.MODES)
def test_info_counts_every_byte(folder, mode):
    succeeds("compress", "x.npy", "y.act", "--mode", mode, "--cdus", 2)
    facts = json.loads(succeeds("info", "y.act", "--json").stdout)
    stored = [option.name for option in codecs.find(mode).options if option.stored]  # no other mode's
    assert "signs" not in stored  # decompression need not know
    assert list(facts) == ["mode", *stored, "shape", "dtype", "payload_bytes", "side_bytes", "ratio",
                           "ratio_with_side"]
    assert facts["mode"] == mode
    assert facts.get("dqt") == ("optL" if mode == "jpeg-act" else None)
    assert (facts["shape"], facts["cdus"]) == ([2, 5, 9, 19], 2)
    size = (folder / "y.act").stat().st_size
    assert facts["payload_bytes"] + facts["side_bytes"] == size
    assert facts["ratio"] == 4 * 2 * 5 * 9 * 19 / facts["payload_bytes"]
    assert facts["ratio_with_side"] == 4 * 2 * 5 * 9 * 19 / size
    text = succeeds("info", "y.act").stdout
    assert all(key in text for key in facts)


def test_byte_order_of_the_input_does_not_matter(folder):
    x = np.load("x.npy")
    x.view(np.uint32)[0, 0, 0, :3] = 0x7F800001, 0xFFC01234, 0x80000000  # bits that a conversion of values might lose
    for name, dtype in [("little", "<f4"), ("big", ">f4")]:
        np.save(f"{name}.npy", x.astype("<f4").view(np.uint32).astype(f"{dtype[0]}u4").view(dtype))
        for mode in ("raw", "jpeg-act"):
            succeeds("compress", f"{name}.npy", f"{name}-{mode}.act", "--mode", mode)
    for mode in ("raw", "jpeg-act"):
        assert (folder / f"little-{mode}.act").read_bytes() == (folder / f"big-{mode}.act").read_bytes()
    succeeds("decompress", "big-raw.act", "back.npy")
    assert (folder / "back.npy").read_bytes() == (folder / "little.npy").read_bytes()


def test_a_2d_tensor_keeps_its_shape(folder):
    np.save("f.npy", np.ones((3, 100), np.float32))
    succeeds("compress", "f.npy", "f.act", "--mode", "raw")
    succeeds("decompress", "f.act", "g.npy")
    np.testing.assert_array_equal(np.load("g.npy"), np.load("f.npy"))


def test_memory_order_of_the_input_does_not_matter(folder):
    x = np.load("x.npy")
    np.save("fortran.npy", np.asfortranarray(x))
    succeeds("compress", "x.npy", "a.act", "--mode", "jpeg-act")
    succeeds("compress", "fortran.npy", "b.act", "--mode", "jpeg-act")
    assert (folder / "a.act").read_bytes() == (folder / "b.act").read_bytes()


@pytest.mark.parametrize("shape", [(4, 4, 7, 7), (1, 1, 7, 9), (16, 16)])
def test_fallback_of_jpeg_act_is_told(folder, shape):
    np.save("small.npy", np.ones(shape, np.float32))
    result = succeeds("compress", "small.npy", "y.act", "--mode", "jpeg-act")
    assert "fell back to sfpr-zvc" in result.stderr
    facts = json.loads(succeeds("info", "y.act", "--json").stdout)
    assert facts["mode"] == "sfpr-zvc" and "dqt" not in facts


def test_quiet_prints_nothing(folder):
    assert succeeds("compress", "x.npy", "y.act", "--mode", "sfpr", "-q").output == ""
    assert succeeds("decompress", "y.act", "y.npy", "-q").output == ""


# DQT files

VALUES = np.arange(1, 65).reshape(8, 8)


def text_dqt(values):
    return "# a table\n" + "\n".join(" ".join(map(str, row)) for row in values)


@pytest.mark.parametrize("values", [VALUES, VALUES.ravel().astype(np.float32), VALUES.astype(np.uint8)],
                         ids=["int64 [8, 8]", "float32 [64]", "uint8 [8, 8]"])
def test_dqt_from_npy(folder, values):
    np.save("t.npy", values)
    succeeds("compress", "x.npy", "y.act", "--mode", "jpeg-act", "--dqt", "t.npy")
    c = container.read("y.act")
    assert c.options["dqt"] == "t.npy"
    np.testing.assert_array_equal(c.options["dqt"].shifts, quantize.shifts(VALUES))


@pytest.mark.parametrize("text", [
    text_dqt(VALUES), ",".join(map(str, VALUES.ravel())), text_dqt(VALUES * 1.0).replace("\n", " # row\r\n"),
], ids=["table", "commas", "comments"])
def test_dqt_from_text(folder, text):
    (folder / "mine.txt").write_text(text)
    succeeds("compress", "x.npy", "y.act", "--mode", "jpeg-act", "--dqt", folder / "mine.txt")
    c = container.read("y.act")
    assert c.options["dqt"] == "mine.txt"
    np.testing.assert_array_equal(c.options["dqt"].shifts, quantize.shifts(VALUES))


def test_dqt_values_go_to_the_nearest_power_of_two(folder):
    values = [1, 1.4, 1.5, 2, 5, 6, 11, 12] + [181, 1e300, 256, 90, 91, 45, 46, 3] * 7
    (folder / "t").write_text(" ".join(map(str, values)))
    succeeds("compress", "x.npy", "y.act", "--mode", "jpeg-act", "--dqt", "t")
    shifts = container.read("y.act").options["dqt"].shifts
    assert shifts[:2].tolist() == [[0, 0, 1, 1, 2, 3, 3, 4], [7, 7, 7, 6, 7, 5, 6, 2]]


def test_name_of_a_dqt_file_is_made_printable_and_short(folder):
    name = "tab\x1b[31m[b]:x:\udcff" + "ä" * 100
    with open(name, "w") as file:
        file.write(text_dqt(VALUES))
    succeeds("compress", "x.npy", "y.act", "--mode", "jpeg-act", "--dqt", name)
    assert container.read("y.act").options["dqt"] == "tab?[31m[b]:x:?" + "ä" * 45
    assert "tab?[31m[b]:x:?ää" in succeeds("info", "y.act").stdout  # as it is, not as rich's markup


# Help, units, Verilog

@pytest.mark.parametrize("command", [[], *([name] for name in cli.COMMANDS), ["verilog", "dct"]], ids=" ".join)
def test_help_has_examples(command):
    text = succeeds(*command, "--help").stdout
    assert "Usage: actcodec" in text
    assert "Examples:\n    actcodec" in text


def test_help_says_in_a_line_what_a_command_does():
    lines = succeeds("--help").stdout.split("Commands:\n")[1].splitlines()
    assert len(lines) == len(cli.COMMANDS) and not any(line.endswith("...") for line in lines)


def test_version():
    assert succeeds("--version").stdout == f"actcodec, version {version('actcodec')}\n"


def test_the_module_is_the_command(tmp_path):
    result = subprocess.run([sys.executable, "-m", "actcodec", "info", tmp_path / "none.act"], capture_output=True,
                            text=True, check=False)
    assert result.returncode == 2
    assert result.stderr == f"actcodec: error: {tmp_path}/none.act: No such file or directory\n"


def test_units_lists_the_catalogue():
    from actcodec.units import UNITS

    listed = succeeds("units").stdout
    assert all(f" {name} " in listed for name in UNITS)
    commands = succeeds("verilog", "--help").stdout
    assert all(f"  {name} " in commands for name in UNITS)


def test_codes_of_modes_are_listed_with_those_that_are_free():
    """A mode that is registered takes one of them."""
    def listed():
        text = succeeds("modes --codes").stdout
        free = [[number for span in line.split("free: ")[1].split(", ") if span != "none"
                 for number in range(int(span.split()[0]), int(span.split()[-1]) + 1)]
                for line in text.splitlines() if line.startswith("Codes")]
        codes = dict(line.split() for line in text.splitlines() if line.startswith("  "))
        return {int(code): name for code, name in codes.items()}, free

    names, free = listed()
    assert sorted([*names, *free[0], *free[1]]) == list(range(256))
    assert max(free[0]) < 64 <= min(free[1]) and names[3] == "jpeg-act" and names[31] == "division-1-flat"
    codecs.register(codecs.Mode("halves", free[1][0]))
    try:
        assert listed()[0] == names | {free[1][0]: "halves"}
    finally:
        codecs.unregister("halves")
    assert "--json" in run("modes --codes --json", 2)


def test_parameters_of_a_unit_are_options(folder):
    text = succeeds("verilog", "transpose", "--width", 5, "--no-transposes").stdout
    assert "module transpose(" in text
    assert "[39:0]" in text
    assert text != succeeds("verilog", "transpose", "--width", 5).stdout
    succeeds("verilog", "transpose", "--width", 5, "--no-transposes", "-o", "t.v")
    assert (folder / "t.v").read_text().strip() == text.strip()


def test_options_have_the_types_of_the_defaults(monkeypatch):
    from actcodec import units

    seen = {}

    def component(**parameters):
        seen.update(parameters, modes=tuple(mode.name for mode in parameters["modes"]))
        raise ValueError("modes is (), legal are\nsome")

    defaults = {"modes": ("raw", "zvc"), "lane_count": 8, "shared": True, "kind": "both"}
    monkeypatch.setitem(units.UNITS, "part", units.Unit("part", component, "A part", defaults))
    invoke("verilog", "part")
    assert seen == defaults
    result = invoke("verilog", "part", "--modes", "sfpr, jpeg-act", "--lane-count", 4, "--no-shared", "--kind", "one")
    assert seen == {"modes": ("sfpr", "jpeg-act"), "lane_count": 4, "shared": False, "kind": "one"}
    assert (result.exit_code, result.stderr) == (2, "actcodec: error: modes is (), legal are some\n")
    invoke("verilog", "part", "--modes", "")
    assert seen["modes"] == ()
    text = succeeds("verilog", "part", "--help").stdout
    assert "[default: raw,zvc]" in text and "--lane-count INTEGER" in text and "--shared / --no-shared" in text


@pytest.mark.parametrize("unit, option, default, values, seen, wrong", [
    ("bitpack", "widths", "8,16,24,32", "16, 8", "widths=(16, 8)", "--widths': '8,many': must be numbers"),
    ("dpr_encode", "formats", "fp16,fp10,fp8", "FP8,fp16", "formats=(<Format.FP8: 2>, <Format.FP16: 0>)",
     "formats must be one or more of fp16, fp10, fp8, not '8'")])
def test_numbers_and_names_of_constants_are_words_too(monkeypatch, unit, option, default, values, seen, wrong):
    monkeypatch.setattr("actcodec.codecs.unit.verilog",
                        lambda component, name, target: f"{option}={getattr(component, option)}")
    *header, text = succeeds("verilog", unit, f"--{option}", values).stdout.strip().split("\n")
    assert text == seen and header and all(line.startswith("// ") for line in header)
    assert f"[default: {default}]" in succeeds("verilog", unit, "--help").stdout
    assert f" {option}={default}" in succeeds("units").stdout
    result = invoke("verilog", unit, f"--{option}", "8,many")
    assert result.exit_code == 2 and wrong in result.stderr


def test_units_are_listed_without_amaranth(folder):
    (folder / "none").mkdir()
    (folder / "none/amaranth.py").write_text("raise ModuleNotFoundError('none', name='amaranth')")
    done = shell(folder, "actcodec units", env={**os.environ, "PYTHONPATH": "none"})
    assert (done.returncode, done.stdout, done.stderr) == (0, shell(folder, "actcodec units").stdout, "")


def test_parameters_of_units_are_those_of_their_classes():
    """The catalogue repeats these so that it can be listed without them."""
    from actcodec.rtl.comet import histogram, interleave
    from actcodec.rtl.common.minifloat import Format
    from actcodec.units import UNITS

    assert UNITS["histogram"].parameters == {"width": histogram.WIDTH}
    assert UNITS["interleave"].parameters == {"bytes": interleave.BYTES + interleave.SPARE,
                                              "steps": interleave.STEPS + interleave.SPARE}
    for name in ("dpr_encode", "dpr_decode"):
        assert UNITS[name].parameters == {"formats": tuple(member.lower() for member in Format.__members__)}


# What compress tells

def test_error_and_values_that_are_lost_are_told(folder):
    x = np.ones((1, 1, 8, 8), np.float32)
    x[0, 0, 0, :3] = np.nan, np.inf, 1e30
    np.save("bad.npy", x)
    done = succeeds("compress", "bad.npy", "y.act", "--mode", "dpr-fp16")
    assert done.stderr == "warning: of 64 values, 1 NaN, 1 infinite, 2 saturated\n"
    assert "ratio 2.00" in done.stdout and "error 1" in done.stdout
    assert "no error" in succeeds("compress", "x.npy", "y.act", "--mode", "zvc").stdout
    assert succeeds("compress", "x.npy", "y.act", "--mode", "zvc", "--dqt", "optH").stderr == (
        "note: mode zvc has no option --dqt\n")
    np.save("f8.npy", np.full((8, 8), 0.1))
    assert "float64 is rounded to float32" in succeeds("compress", "f8.npy", "y.act", "--mode", "zvc").stderr
    assert succeeds("compress", "bad.npy", "y.act", "--mode", "sfpr", "-q").stderr == ""


# What is compressed

def test_an_array_of_a_file_with_several(folder):
    x = np.load("x.npy")
    np.savez("many.npz", first=x + 1, second=x)
    np.savez("one.npz", only=x)
    expected = actcodec.compress(x, "zvc").payload
    for source in ("many.npz:second", "one.npz", "one.npz:only"):
        assert "ratio" in run(f"compress {source} y.act --mode zvc")
        assert actcodec.load("y.act").payload == expected
    run("jpeg x.npy x.jpg")
    run("jpeg many.npz:second y.jpg")
    assert (folder / "x.jpg").read_bytes() == (folder / "y.jpg").read_bytes()


@pytest.mark.parametrize("source, target, what", [
    ("many.npz", "out", "many.npz: has 2 tensors; give one, as many.npz:first; there are first, second"),
    ("many.npz:third", "out", "many.npz: has no 'third'; there are first, second"),
    ("many.npz:first", "many.npz", "many.npz: input and output are the same file"),
    ("none.npz:first", "out", "none.npz: No such file"), ("x.npy:first", "out", "x.npy:first: No such file")])
def test_an_array_that_is_not_there(folder, source, target, what):
    np.savez("many.npz", first=np.load("x.npy"), second=np.load("x.npy"))
    before = (folder / "many.npz").read_bytes()
    for command in ("compress {} {} --mode zvc", "jpeg {} {}"):
        assert what in run(command.format(source, target), 2)
    assert (folder / "many.npz").read_bytes() == before and not (folder / "out").exists()


@pytest.mark.parametrize("words, what", [
    (["compress", "x.npy", "y.act", "--mode", "comet"], ["compressing x.npy", "measuring the error"]),
    (["decompress", "x.act", "y.npy"], ["decompressing x.act"]),
    (["compress", "x.npy", "y.act", "--mode=raw", "-q"], []),
    (["compress", "x.npy", "-", "--mode=raw"], ["compressing x.npy"])], ids=str)
def test_a_bar_moves_on_a_terminal(folder, words, what):
    """To standard error, and only if that is a terminal; it is gone at the end."""
    screen, terminal = os.openpty()
    done = subprocess.run([sys.executable, "-m", "actcodec", *words], stdout=subprocess.PIPE, stderr=terminal,
                          env={**os.environ, "TERM": "xterm", "COLUMNS": "100"}, check=True)
    os.close(terminal)
    shown = b""
    with contextlib.suppress(OSError):  # how a terminal ends
        while more := os.read(screen, 1 << 16):
            shown += more
    os.close(screen)
    text = shown.decode()
    assert all(part in text for part in what) and ("━" in text) == bool(what)
    assert not what or "\x1b[2K" in text.rpartition("━")[2]
    assert b"compressing" not in done.stdout
    plain = subprocess.run([sys.executable, "-m", "actcodec", *words], capture_output=True, check=True).stderr
    assert plain == b"" or ("-" in words and plain.startswith(b"standard output: ") and plain.count(b"\n") == 1)


# Standard input and output

@pytest.mark.parametrize("line", [
    "actcodec compress - - --mode zvc < x.npy | actcodec decompress - - > y.npy",
    "actcodec compress /dev/stdin /dev/stdout --mode zvc < x.npy | actcodec decompress - /dev/stdout -q > y.npy",
    "cat x.npy | actcodec compress <(cat x.npy) >(cat > z.act) --mode zvc -q; actcodec decompress z.act y.npy",
], ids=["-", "/dev", "<(...)"])
def test_standard_input_and_output_and_pipes(folder, line):
    done = shell(folder, line + " && sleep 0.2")
    assert (done.returncode, done.stdout.replace("y.npy: 2x5x9x19, from zvc\n", "")) == (0, ""), done.stderr
    assert "Traceback" not in done.stderr
    assert (folder / "y.npy").read_bytes() == (folder / "x.npy").read_bytes()


def test_info_and_units_of_pipes(folder):
    done = shell(folder, "actcodec info - --json < x.act; actcodec modes | head -1")
    assert json.loads(done.stdout.splitlines()[0])["mode"] == "sfpr-zvc"
    assert (done.returncode, done.stderr) == (0, "")
