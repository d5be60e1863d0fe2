"""The command line: what it prints and writes, and how it fails."""

import json
import os
import re
import struct
import subprocess
import sys
import zlib
from importlib.metadata import version

import numpy as np
import pytest
from click.testing import CliRunner

import actcodec
from actcodec import cli, codecs, container, files
from actcodec.golden.jpegact import cdu, quantize


def run(*args):
    return CliRunner().invoke(cli.main, [str(arg) for arg in args], prog_name="actcodec")


def succeeds(*args):
    result = run(*args)
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working directory with the tensor x.npy and its compressed x.act."""
    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(1).normal(size=(2, 5, 9, 19)).astype(np.float32)
    x[:, 1] = 0
    np.save("x.npy", x)
    actcodec.save("x.act", actcodec.compress(x, "sfpr-zvc"))
    return tmp_path


@pytest.mark.parametrize("mode", cdu.MODES)
@pytest.mark.parametrize("cdus", [1, 2, 3, 4, 5, 6, 7, 8])
def test_round_trip_is_the_golden_model(folder, mode, cdus):
    x = np.load("x.npy")
    expected = cdu.compress(x, mode, "jpeg80", cdus)
    succeeds("compress", "x.npy", "y.act", "--mode", mode, "--dqt", "jpeg80", "--cdus", cdus)
    succeeds("decompress", "y.act", "y.npy")
    assert container.read("y.act").payload == expected.payload
    np.testing.assert_array_equal(np.load("y.npy").view(np.uint32), cdu.decompress(expected).view(np.uint32))
    assert sorted(os.listdir()) == ["x.act", "x.npy", "y.act", "y.npy"]


@pytest.mark.parametrize("mode", cdu.MODES)
def test_info_counts_every_byte(folder, mode):
    succeeds("compress", "x.npy", "y.act", "--mode", mode, "--cdus", 2)
    facts = json.loads(succeeds("info", "y.act", "--json").stdout)
    stored = [name for name, option in codecs.options().items() if option.stored]
    assert "signs" not in stored  # decompression need not know
    assert list(facts) == ["mode", *stored, "shape", "dtype", "payload_bytes", "side_bytes", "ratio",
                           "ratio_with_side"]
    assert facts["mode"] == mode
    assert facts["dqt"] == ("optL" if mode == "jpeg-act" else None)
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
    assert (facts["mode"], facts["dqt"]) == ("sfpr-zvc", None)


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


# Errors

def npy(path, array, **kwargs):
    np.save(path, array, **kwargs)


def crafted():
    """A file with a right CRC-32 and a mask that needs more bytes than there are."""
    data = struct.pack("<4sBBBBQ4IH", b"\x89ACT", 1, 2, 1, 4, 8, 1, 1, 8, 8, 0) + b"\xff" + bytes(7)
    return data + struct.pack("<I", zlib.crc32(data))


FILES = {
    "int.npy": lambda p: npy(p, np.ones((1, 1, 8, 8), np.int32)), "c8.npy": lambda p: npy(p, np.ones((8, 8), ">c8")),
    "6d.npy": lambda p: npy(p, np.ones((1,) * 6, np.float32)), "0d.npy": lambda p: npy(p, np.float32(1)),
    "empty.npy": lambda p: npy(p, np.ones((2, 0), np.float32)),
    "object.npy": lambda p: npy(p, np.array([[{}]], object), allow_pickle=True),
    "zero.npy": lambda p: p.write_bytes(b""), "text.npy": lambda p: p.write_text("hello"),
    "cut.npy": lambda p: npy(p, np.ones((8, 8), np.float32)) or p.write_bytes(p.read_bytes()[:-1]),
    "head.npy": lambda p: npy(p, np.ones((8, 8), np.float32)) or p.write_bytes(p.read_bytes()[:20]),
    "huge.npy": lambda p: npy(p, np.ones((9, 9), np.float32)) or p.write_bytes(
        p.read_bytes().replace(b"(9, 9), }" + b" " * 20, b"(999999999999, 999999999999),}")),
    "zip.npy": lambda p: np.savez(p.open("wb"), x=np.ones(3)),
    "few.txt": lambda p: p.write_text("8 " * 63), "many.txt": lambda p: p.write_text("8 " * 65),
    "word.txt": lambda p: p.write_text("eight " * 64), "nothing.txt": lambda p: p.write_text("# nothing\n"),
    "null.txt": lambda p: p.write_text("0 " * 64), "minus.txt": lambda p: p.write_text("-8 " * 64),
    "nan.txt": lambda p: p.write_text("nan " * 64), "inf.txt": lambda p: p.write_text("inf " * 64),
    "low.txt": lambda p: p.write_text("0.999 " * 64), "binary.txt": lambda p: p.write_bytes(bytes(range(256))),
    "few.dqt.npy": lambda p: npy(p, np.full(63, 8)), "complex.dqt.npy": lambda p: npy(p, np.full(64, 8j)),
    "cut.act": lambda p: p.write_bytes(p.with_name("x.act").read_bytes()[:-5]),
    "longer.act": lambda p: p.write_bytes(p.with_name("x.act").read_bytes() + b"x"),
    "altered.act": lambda p: p.write_bytes(p.with_name("x.act").read_bytes().replace(b"ACT\1\2\1", b"ACT\1\2\2")),
    "later.act": lambda p: p.write_bytes(p.with_name("x.act").read_bytes().replace(b"ACT\1", b"ACT\2")),
    "crafted.act": lambda p: p.write_bytes(crafted()), "zero.act": lambda p: p.write_bytes(b""),
}

COMPRESS = [(f"compress {name} out --mode raw", what) for name, what in [
    ("int.npy", "dtype is int32"), ("c8.npy", "dtype is >c8"), ("6d.npy", "6 dimensions"), ("0d.npy", "0 dimensions"),
    ("empty.npy", "is empty"), ("object.npy", "not a readable"), ("zero.npy", "not a .npy"),
    ("text.npy", "not a .npy"), ("cut.npy", "not a readable"), ("head.npy", "not a readable"),
    ("huge.npy", "not a readable"), ("zip.npy", "not a .npy"), ("x.act", "not a .npy"),
    ("missing.npy", "No such file"), (".", "Is a directory"),
]]
DQTS = [(f"compress x.npy out --mode jpeg-act --dqt {name}", what) for name, what in [
    ("optM", "unknown DQT 'optM'"), ("few.txt", "63 numbers"), ("many.txt", "65 numbers"), ("word.txt", "eight"),
    ("nothing.txt", "0 numbers"), ("null.txt", "0 is not"), ("minus.txt", "-8 is not"), ("nan.txt", "nan is not"),
    ("inf.txt", "inf is not"), ("low.txt", "0.999 is not"), ("binary.txt", "not a DQT"), ("few.dqt.npy", "63 numbers"),
    ("complex.dqt.npy", "complex128"), ("text.npy", "not a .npy"), (".", "Is a directory"), ("''", "unknown DQT ''"),
]]
READS = [(f"{command} {name} {out}", what) for command, out in [("decompress", "out"), ("info", "--json")]
         for name, what in [
             ("cut.act", "CRC-32"), ("longer.act", "CRC-32"), ("altered.act", "CRC-32"), ("later.act", "version 2"),
             ("zero.act", "not an .act"), ("x.npy", "not an .act"), ("missing.act", "No such file"),
             (".", "Is a directory")]]
USAGE = [
    ("compress x.npy out", "--mode"), ("compress x.npy out --mode jpeg", "jpeg"), ("compress x.npy", "OUT.act"),
    ("compress x.npy out --mode raw --cdus 0", "--cdus"), ("compress x.npy out --mode raw --cdus 9", "--cdus"),
    ("compress x.npy out --mode raw --cdus two", "--cdus"), ("compress x.npy out --mode raw --engine fpga", "fpga"),
    ("compress x.npy nowhere/out --mode raw", "nowhere: no such directory"),
    ("compress x.npy . --mode raw", "is a directory"), ("compress x.npy x.npy --mode raw", "same file"),
    ("decompress x.act nowhere/out", "no such directory"), ("decompress x.act ./x.act", "same file"),
    ("decompress crafted.act out", "invalid payload"), ("expand x.act", "expand"), ("info x.act --yaml", "--yaml"),
    ("verilog alu", "unknown unit 'alu'"), ("verilog dct --speed 3", "--speed"),
    ("verilog dct --direction sideways", "direction"), ("verilog transpose --width x", "--width"),
    ("verilog dct -o nowhere/dct.v", "nowhere/dct.v: No such file"),
]


@pytest.mark.parametrize(("command", "what"), COMPRESS + DQTS + READS + USAGE)
def test_an_error_is_one_line_exit_code_2_and_no_output(folder, command, what):
    words = command.replace("''", "\0").split()
    for word in words:
        if word in FILES:
            FILES[word](folder / word)
    before = {name: (folder / name).read_bytes() for name in os.listdir()}
    result = run(*(word.replace("\0", "") for word in words))
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("actcodec: error: ")
    assert result.stderr.count("\n") == 1
    assert re.search(what, result.stderr), result.stderr
    assert {name: (folder / name).read_bytes() for name in os.listdir()} == before


@pytest.mark.parametrize("command", ["compress x.npy x.act --mode jpeg-act", "decompress x.act y.npy"])
@pytest.mark.parametrize(("exception", "code"), [(KeyboardInterrupt(), 130), (OSError(28, "No space left"), 2),
                                                 (MemoryError(), 2)], ids=repr)
def test_an_interrupted_write_leaves_the_old_file_and_nothing_else(folder, monkeypatch, command, exception, code):
    def interrupted(*_):
        raise exception

    before = {name: (folder / name).read_bytes() for name in os.listdir()}
    monkeypatch.setattr(os, "replace", interrupted)
    result = run(*command.split())
    assert result.exit_code == code
    assert "Traceback" not in result.output
    assert {name: (folder / name).read_bytes() for name in os.listdir()} == before


def test_two_writers_in_one_process_do_not_meet(tmp_path):
    with files.replacing(tmp_path / "x") as first, files.replacing(tmp_path / "x") as second:
        first.write(b"first")
        second.write(b"second")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("x", b"first")]


def test_a_foreign_file_of_the_temporary_name_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(files.secrets, "token_hex", lambda size: "0" * (2 * size))
    foreign = tmp_path / f".actcodec-{os.getpid()}-00000000"
    foreign.write_text("foreign")
    with pytest.raises(files.UserError, match="File exists"), files.replacing(tmp_path / "x"):
        pass
    assert [(path, path.read_text()) for path in tmp_path.iterdir()] == [(foreign, "foreign")]


def test_permissions_of_an_overwritten_file_stay(folder):
    os.chmod("x.act", 0o600)
    succeeds("compress", "x.npy", "x.act", "--mode", "raw")
    assert os.stat("x.act").st_mode & 0o777 == 0o600


def test_a_link_and_a_device_stay_what_they_are(folder):
    os.mkdir("store")
    os.symlink("store/real.act", "link.act")
    succeeds("compress", "x.npy", "link.act", "--mode", "raw")
    assert os.path.islink("link.act")
    assert os.listdir("store") == ["real.act"]
    os.mkfifo("pipe")
    with subprocess.Popen(["cat", "pipe"], stdout=subprocess.PIPE) as reader:
        succeeds("compress", "x.npy", "pipe", "--mode", "raw")
        assert reader.stdout.read() == (folder / "store/real.act").read_bytes()


# Help, units, Verilog

@pytest.mark.parametrize("command", [[], *([name] for name in cli.COMMANDS), ["verilog", "dct"]], ids=" ".join)
def test_help_has_examples(command):
    text = succeeds(*command, "--help").stdout
    assert "Usage: actcodec" in text
    assert "Examples:\n    actcodec" in text


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
    run("verilog", "part")
    assert seen == defaults
    result = run("verilog", "part", "--modes", "sfpr, jpeg-act", "--lane-count", 4, "--no-shared", "--kind", "one")
    assert seen == {"modes": ("sfpr", "jpeg-act"), "lane_count": 4, "shared": False, "kind": "one"}
    assert (result.exit_code, result.stderr) == (2, "actcodec: error: modes is (), legal are some\n")
    run("verilog", "part", "--modes", "")
    assert seen["modes"] == ()
    text = succeeds("verilog", "part", "--help").stdout
    assert "[default: raw,zvc]" in text and "--lane-count INTEGER" in text and "--shared / --no-shared" in text


@pytest.mark.parametrize("unit, option, default, values, seen", [
    ("bitpack", "widths", "8,16,24,32", "16, 8", "widths=(16, 8)"),
    ("dpr_encode", "formats", "fp16,fp10,fp8", "FP8,fp16", "formats=(<Format.FP8: 2>, <Format.FP16: 0>)")])
def test_numbers_and_names_of_constants_are_words_too(monkeypatch, unit, option, default, values, seen):
    from actcodec import units

    monkeypatch.setattr(units, "verilog", lambda component, name: f"{option}={getattr(component, option)}")
    *header, text = succeeds("verilog", unit, f"--{option}", values).stdout.strip().split("\n")
    assert text == seen and header and all(line.startswith("// ") for line in header)
    assert f"[default: {default}]" in succeeds("verilog", unit, "--help").stdout
    assert f" {option}={default}" in succeeds("units").stdout
    result = run("verilog", unit, f"--{option}", "8,many")
    assert result.exit_code == 2 and f"--{option}" in result.stderr and "'8,many': must be" in result.stderr


# Streams, full disks, missing packages, interrupts

def shell(folder, line, **options):
    """Of a command line of bash in which ``actcodec`` is the program."""
    return subprocess.run(["bash", "-c", f"actcodec() {{ {sys.executable} -m actcodec \"$@\"; }}; {line}"], cwd=folder,
                          capture_output=True, text=True, check=False, **options)


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


@pytest.mark.parametrize("line", ["actcodec compress x.npy /dev/full --mode raw", "actcodec decompress x.act /dev/full",
                                  "actcodec decompress x.act - > /dev/full", "actcodec modes > /dev/full"])
def test_a_full_disk_is_told(folder, line):
    done = shell(folder, line)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("actcodec: error: ") and "No space left on device" in done.stderr


def test_a_full_disk_leaves_nothing_behind(folder):
    done = shell(folder, "trap '' XFSZ; ulimit -f 1; actcodec decompress x.act y.npy")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "actcodec: error: y.npy: File too large\n"
    assert sorted(os.listdir(folder)) == ["x.act", "x.npy"]


@pytest.mark.parametrize(("package", "command"), [
    ("matplotlib", "mfr vgg16 --plot x.png"), ("amaranth", "verilog dct"), ("amaranth", "units"),
    ("scipy", "bench --quick"), ("matplotlib", "evaluate x.npy --all --plot x.png"), ("torch", "evaluate x.pt --all")])
def test_a_missing_package_is_one_line(folder, package, command):
    (folder / "x.pt").write_bytes(b"")
    (folder / "none").mkdir()
    (folder / f"none/{package}.py").write_text(f"raise ModuleNotFoundError('none', name={package!r})")
    done = shell(folder, f"actcodec {command}", env={**os.environ, "PYTHONPATH": "none"})
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"actcodec: error: this needs the Python package {package}\n"


@pytest.mark.parametrize("module", ["numpy", "click", "actcodec.cli", "actcodec.golden.jpegact.cdu"])
def test_an_interrupt_while_modules_are_imported_is_one_line(folder, module):
    """At the moment when a module is looked for."""
    (folder / "sitecustomize.py").write_text(f"""
import os, signal, sys
class Finder:
    def find_spec(name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder)
""")
    done = shell(folder, "actcodec compress x.npy y.act --mode raw", env={**os.environ, "PYTHONPATH": str(folder)})
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "actcodec: error: interrupted\n")
    assert not (folder / "y.act").exists()


@pytest.mark.parametrize("moment", ["cdu.compress", "files.open", "os.replace"])
def test_an_interrupt_while_a_command_runs_leaves_nothing(folder, moment):
    (folder / "interrupted.py").write_text(f"""
import os, signal, sys
from actcodec import __main__, files
from actcodec.golden.jpegact import cdu
files.open = open
inner = {moment}
def kill(*arguments, **more):
    if arguments[-1:] != ("rb",):
        os.kill(os.getpid(), signal.SIGINT)
    return inner(*arguments, **more)
{moment} = kill
sys.argv = "actcodec compress x.npy y.act --mode raw".split()
__main__.main()
""")
    done = shell(folder, f"{sys.executable} interrupted.py")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "actcodec: error: interrupted\n")
    assert sorted(os.listdir(folder)) == ["interrupted.py", "x.act", "x.npy"]


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
