"""The command line, as tests write it."""

import subprocess
import sys

from click.testing import CliRunner

from actcodec import cli, engines

__all__ = ["invoke", "run", "same_by_both_engines", "shell", "succeeds"]


def invoke(*words):
    """Click's result of ``actcodec`` with these words; a single one is a line of words."""
    return CliRunner().invoke(cli.main, words[0].split() if len(words) == 1 else [*map(str, words)],
                              prog_name="actcodec")


def succeeds(*words):
    """As :func:`invoke`, of what has to succeed."""
    result = invoke(*words)
    assert result.exit_code == 0, result.output
    return result


def run(line, code=0):
    """What ``actcodec`` says to ``line``: on standard output, or, if it has to exit with a ``code``, the one line on
    standard error."""
    result = invoke(line)
    assert result.exit_code == code, result.output
    if not code:
        return result.stdout
    assert (result.stdout, result.stderr.count("\n")) == ("", 1), result.output
    assert result.stderr.startswith("actcodec: error: ")
    return result.stderr


def same_by_both_engines(folder, mode, options=""):
    """Checks that both engines make the same file of x.npy in this ``folder``, and the same tensor of that; and that
    they name the ``mode``, and ``rtl``, and no other, says how many cycles that takes."""
    for engine in engines.ENGINES:
        text = run(f"compress x.npy {engine}.act --mode {mode} {options} --engine {engine}")
        assert mode in text and ("cycles per block" in text) == (engine == "rtl")
    assert (folder / "rtl.act").read_bytes() == (folder / "golden.act").read_bytes()
    for engine in engines.ENGINES:
        text = run(f"decompress rtl.act {engine}.npy --engine {engine}")
        assert mode in text and ("cycles per block" in text) == (engine == "rtl")
    assert (folder / "rtl.npy").read_bytes() == (folder / "golden.npy").read_bytes()


def shell(folder, line, **options):
    """Of a command line of bash in which ``actcodec`` is the program."""
    return subprocess.run(["bash", "-c", f"actcodec() {{ {sys.executable} -m actcodec \"$@\"; }}; {line}"], cwd=folder,
                          capture_output=True, text=True, check=False, **options)
