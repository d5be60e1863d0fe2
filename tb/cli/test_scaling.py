"""Options scaling, cap and clip: the table of scales alone is another one, in files, in the hardware's plan, and by a
table that says so."""

import json

import numpy as np
import pytest

import actcodec
from actcodec import codecs, container
from actcodec.driver import Driver, Plain
from actcodec.driver import run as finish
from actcodec.golden.jpegact import sfpr
from tb.cli.line import run
from tb.cli.test_jpeg_base import tensor

WAYS = ({"scaling": "tensor"}, {"scaling": "cap"}, {"scaling": "cap", "cap": 1.7, "clip": 1.0}, {"clip": 2.0})
MODES = (("sfpr", {}), ("sfpr-zvc", {"coder": "rice"}), ("jpeg-act", {}), ("jpeg-base", {}),
         ("jpeg-act", {"quantizer": "div", "coder": "nibble", "dqt": 12}))


@pytest.fixture
def x():
    """Channels of very different size."""
    return tensor((2, 3, 16, 13)) * np.float32([1, 0.1, 7])[:, None, None]


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("mode, options", MODES, ids=str)
def test_only_scales_change(x, mode, options, way):
    before = actcodec.compress(x, mode, **options)
    c = actcodec.compress(x, mode, **options, **way)
    scales = sfpr.scales(x, **way)
    model = codecs.find(mode).model
    assert model.unpack(c).scales.tolist() == scales.k.tolist() != model.unpack(before).scales.tolist()
    assert c.options == before.options and len(c.side) == len(before.side)
    lane, words, settings = model.plan(x, **codecs.find(mode).option_values(options | way))
    view = lane.model.view(x.shape)
    expected, _ = lane.model.encode(x.reshape(view.rows, view.width), view, scales.k.view(np.uint32), settings, 1)
    assert c.payload == expected and words.tolist() == scales.k.view(np.uint32).tolist()
    back = actcodec.decompress(container.unpack(container.pack(c)))
    np.testing.assert_array_equal(back, actcodec.decompress(c))


@pytest.mark.parametrize("mode, options", MODES, ids=str)
def test_the_defaults_are_the_papers(x, mode, options):
    named = actcodec.compress(x, mode, **options, scaling="channel", clip=1.125)
    assert container.pack(named) == container.pack(actcodec.compress(x, mode, **options))
    wide = actcodec.compress(x, mode, **options, scaling="cap", cap=65536)  # wider than these channels are apart
    assert wide.payload == named.payload
    one = actcodec.compress(x, mode, **options, scaling="cap", cap=1)
    assert one.payload == actcodec.compress(x, mode, **options, scaling="tensor").payload


def test_one_scale_favours_the_tensor_and_a_scale_for_each_its_small_channels(x):
    results = {scaling: actcodec.evaluate(x, "sfpr", scaling=scaling) for scaling in ("channel", "cap", "tensor")}
    errors = [results[scaling].channel_error for scaling in ("channel", "cap", "tensor")]
    assert errors[0] < errors[1] < errors[2]
    assert results["tensor"].options["scaling"] == "tensor" and results["tensor"].options["cap"] is None
    assert results["cap"].options["cap"] == sfpr.CAP


def test_a_tensor_without_tiles_has_them_in_what_it_falls_back_to():
    x = tensor((3, 5, 7, 7)) * np.float32([1, 2, 3, 40, 5])[:, None, None]
    c = actcodec.compress(x, "jpeg-act", scaling="tensor", clip=1)
    assert container.pack(c) == container.pack(actcodec.compress(x, "sfpr-zvc", scaling="tensor", clip=1))


class Stop(Exception):
    pass


def test_the_driver_takes_them_as_options(x):
    """Up to where the table of scales would be written."""
    class Bus:
        def read(self, address):
            return 0

        def write(self, address, value):
            pass

    class Memory:
        def read(self, address, size):
            return x.tobytes()[address:address + size]

        def write(self, address, data):
            raise Stop(data)

    driver = Driver(Plain(Bus()), Plain(Memory()))
    driver.cdus, driver.modes, driver.formats, driver.address_width = 1, ("sfpr",), ("float32",), 32
    for way in WAYS:
        with pytest.raises(Stop) as stop:
            finish(driver.compress(0, x.shape, "sfpr", options=way, scale_table=0x10000))
        assert stop.value.args[0] == sfpr.scales(x, **way).k.tobytes()


def test_the_command_line_and_a_table_say_them(x, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", x)
    expected = actcodec.compress(x, "jpeg-act", quantizer="div", dqt=16, dead_zone=2, scaling="cap", cap=3, clip=1)
    (tmp_path / "table.txt").write_text("quantizer div\ndead_zone 2\nscaling cap\ncap 3\nclip 1\n" + "16 " * 64)
    for options in ("--dqt table.txt", "--quantizer div --dqt 16 --dead-zone 2 --scaling cap --cap 3 --clip 1"):
        run(f"compress x.npy x.act --mode jpeg-act {options}")
        c = container.read("x.act")
        assert (c.payload, c.side) == (expected.payload, expected.side)
    run("compress x.npy x.act --mode jpeg-act --dqt table.txt --scaling tensor --clip 2")  # goes before the file
    expected = actcodec.compress(x, "jpeg-act", quantizer="div", dqt=16, dead_zone=2, scaling="tensor", clip=2)
    assert container.read("x.act").side == expected.side
    rows = json.loads(run("evaluate x.npy --mode sfpr --scaling tensor --scaling channel --json"))
    assert [one["options"]["scaling"] for one in rows] == ["tensor", "channel"]


@pytest.mark.parametrize("options, what", [
    ({"scaling": "row"}, "scaling is 'row', must be channel, tensor, cap"), ({"clip": 0.4}, "clip is 0.4, must be 0.5"),
    ({"clip": 9}, "clip is 9, must be"), ({"clip": np.nan}, "clip is nan"),
    ({"cap": 2}, "cap is 2.0, which needs scaling cap"), ({"scaling": "tensor", "cap": 2}, "which needs scaling cap"),
    ({"scaling": "cap", "cap": 0.5}, "cap is 0.5, must be 1.0 to 65536.0")], ids=str)
def test_wrong_options_are_refused(x, options, what):
    with pytest.raises(ValueError, match=what):
        actcodec.compress(x, "jpeg-act", **options)


@pytest.mark.parametrize("line, what", [
    ("scaling row", "table.txt: scaling is 'row'"), ("clip 9", "table.txt: clip is"),
    ("scaling cap\ncap 0", "table.txt: cap is"), ("cap 2", "cap is 2.0, which needs scaling cap"),
    ("cap much", "table.txt: not a DQT")])
def test_wrong_lines_of_a_table_are_one_line(x, tmp_path, monkeypatch, line, what):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", x)
    (tmp_path / "table.txt").write_text(f"{line}\n" + "16 " * 64)
    assert what in run("compress x.npy out --mode jpeg-act --dqt table.txt", 2)
    assert not (tmp_path / "out").exists()
