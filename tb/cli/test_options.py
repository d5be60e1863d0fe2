"""Options on the command line: what several modes take under one name, and how a wrong value is named."""

import numpy as np
import pytest

from actcodec import codecs
from actcodec.codecs.codec import Codec
from actcodec.codecs.compressed import Compressed
from tb.cli.line import run, succeeds


class Model(Codec):
    """Keeps a tensor as it is."""

    def compress(self, x, **options):
        return Compressed(self.mode.name, x.shape, x.tobytes(), options)

    def decompress(self, compressed):
        return np.frombuffer(compressed.payload, np.float32).reshape(compressed.shape)


def mode(name, code, *options):
    return codecs.Mode(name, code, golden=Model, summary="as it is", tensors="tests", options=options)


MODES = (
    mode("early", 200, codecs.Option("way", str, "a", "Early's.", choices=("a", "b")),
         codecs.Option("level", int, 1, "Early's.", range=(0, 3)),
         codecs.Option("count", int, 1, "Early's.", range=(1, 3))),
    mode("late", 201, codecs.Option("way", str, "c", "Late's.", choices=("b", "c")),
         codecs.Option("level", int, 7, "Late's.", range=(2, 9)),
         codecs.Option("count", int, 20, "Late's.", choices=(2, 20))))


@pytest.fixture
def modes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.ones((2, 3), np.float32))
    codecs.register(*MODES)
    yield
    codecs.unregister("early", "late")


@pytest.mark.parametrize("options", ["--mode early --way a", "--mode early --way b", "--mode late --way b",
                                     "--mode late --way c", "--mode early --level 0", "--mode late --level 9",
                                     "--mode early --count 3", "--mode late --count 20"])
def test_a_mode_takes_its_own_values_of_a_shared_name(modes, options):
    run(f"compress x.npy x.act {options}")
    _, name, option, value = options.split()
    assert f'"mode": "{name}"' in run("info x.act --json")
    assert str(value) in run("info x.act --json").split(f'"{option[2:]}": ')[1].split(",")[0]


@pytest.mark.parametrize("options, what", [
    ("--mode early --way c", "--way is 'c', must be a, b, for mode early"),
    ("--mode late --way a", "--way is 'a', must be b, c, for mode late"),
    ("--mode early --level 4", "--level is 4, must be 0 to 3, for mode early"),
    ("--mode late --level 1", "--level is 1, must be 2 to 9, for mode late"),
    ("--mode late --count 3", "--count is 3, must be 2, 20, for mode late"),
    ("--mode early --count 20", "--count is 20, must be 1 to 3, for mode early"),
    ("--mode early --way d", "Invalid value for '--way'"), ("--mode late --level 10", "Invalid value for '--level'")])
def test_the_modes_own_check_decides(modes, options, what):
    assert what in run(f"compress x.npy x.act {options}", 2)


def test_help_has_the_values_of_each(modes):
    text = " ".join(run("compress --help").split())
    assert "--way [a|b|c] Early's. Modes: early (a, b). Late's. Modes: late (b, c). [default: a or c]" in text
    assert "--level INTEGER RANGE Early's. Modes: early (0 to 3). Late's. Modes: late (2 to 9)." in text


@pytest.mark.parametrize("options, what", [
    ("--error-bound nan", "--error-bound is nan, must be 1.2e-38 to 1e+38, for mode comet"),
    ("--relative-bound nan", "--relative-bound is nan"),
    ("--error-bound 1 --relative-bound 0.1", "takes one of error-bound, relative-bound, l2, not ")])
def test_a_wrong_value_is_named_as_it_is_typed(modes, options, what):
    error = run(f"compress x.npy x.act --mode comet {options}", 2)
    assert what in error and "_" not in error


def test_an_option_that_a_mode_lacks_is_named_as_it_is_typed(modes):
    assert succeeds("compress x.npy x.act --mode raw --error-bound 1").stderr == (
        "note: mode raw has no option --error-bound\n")


def test_an_option_that_no_mode_has_gets_a_note(modes):
    note = "note: --error-bound has no effect: no mode asked for has it\n"
    line = "evaluate x.npy --mode raw --error-bound 1 --csv"
    assert succeeds(line).stderr == succeeds("offload alexnet --mode raw --error-bound 1").stderr == note
    assert succeeds("offload alexnet --error-bound 1").stderr == note
    assert succeeds(f"{line} --mode comet").stderr == ""
