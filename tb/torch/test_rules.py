"""Rules, presets and schedules."""

import pytest

import actcodec.torch as at
from actcodec import codecs
from actcodec.torch import rules


def chosen(name, kind, shape=(8, 16, 32, 32), **options):
    one = next((one for one in at.preset(name, **options) if one.matches(kind, "", shape)), None)
    return one and one.mode


@pytest.mark.parametrize("name, dense, mask, sparse", [
    ("none", None, None, None), ("cdma", None, "zvc", "zvc"), ("gist", None, "brc", "ssdc"),
    ("gist-fp8", "dpr-fp8", "brc", "ssdc-fp8"), ("sfpr", "sfpr", "sfpr", "sfpr"),
    ("jpeg-act", "jpeg-act", "brc", "sfpr-zvc"), ("zvc", "zvc", "zvc", "zvc"), ("brc", None, "brc", None),
])
def test_presets_are_the_columns_of_table_ii(name, dense, mask, sparse):
    assert (chosen(name, "dense"), chosen(name, "mask")) == (dense, mask)
    assert {chosen(name, kind) for kind in ("relu", "pool", "dropout")} == {sparse}
    assert chosen(name, "softmax") is None


@pytest.mark.parametrize("shape", [(8, 64, 4, 4), (8, 64, 7, 7), (128, 512)])
def test_small_maps_get_sfpr(shape):
    assert chosen("jpeg-act", "dense", shape) == ("sfpr" if shape[-1] < 8 else "jpeg-act")


def test_every_mode_of_the_registry_is_a_preset():
    assert set(codecs.MODES) <= set(rules.names())
    for name in rules.names():
        assert all(one.mode is None or one.mode in codecs.MODES for one in at.preset(name))


def test_options_go_to_the_modes_that_have_them():
    preset = at.preset("jpeg-act", dqt="optH", signs=True)
    assert {one.mode: one.options for one in preset} == {
        "brc": {}, "sfpr-zvc": {"signs": True}, "jpeg-act": {"dqt": "optH"}, "sfpr": {"signs": True}}
    assert {one.mode: one.options for one in rules.with_options(preset, {"signs": False})}["sfpr"] == {"signs": False}
    with pytest.raises(ValueError, match="no mode of these rules has an option quality"):
        at.preset("jpeg-act", quality=3)
    with pytest.raises(ValueError, match="unknown DQT 'optM'"):
        at.preset("jpeg-act", dqt="optM")


@pytest.mark.parametrize("options, matches", [
    ({}, {"dense", "mask", "relu", "pool", "dropout"}), ({"kind": "relu"}, {"relu"}),
    ({"kind": ["relu", "softmax"]}, {"relu", "softmax"}), ({"layer": "layer4.*"}, set()),
    ({"layer": "layer1.[01]*", "kind": "pool"}, {"pool"}), ({"min_width": 33}, set()), ({"dims": 2}, set()),
    ({"dims": (3, 4), "min_width": 32, "kind": "dense"}, {"dense"}),
])
def test_a_rule_matches_by_kind_layer_and_shape(options, matches):
    one = at.rule("sfpr", **options)
    assert {kind for kind in at.KINDS if one.matches(kind, "layer1.0.conv1", (8, 16, 32, 32))} == matches


@pytest.mark.parametrize("mode, options, what", [
    ("gif", {}, "unknown mode 'gif'"), ("sfpr", {"kind": "conv"}, "kind is 'conv', must be one or more of dense"),
    ("brc", {}, "mode brc keeps no values: it is for kind 'mask' alone"), ("sfpr", {"dqt": "optL"}, "no option dqt"),
    ("binarize", {"kind": ("mask", "relu")}, "for kind 'mask' alone"),
    (None, {"dqt": 1}, "without a mode of the registry has no option dqt"),
])
def test_rules_are_checked(mode, options, what):
    with pytest.raises(ValueError, match=what):
        at.rule(mode, **options)


def test_optl5h_is_optl_for_five_epochs():
    schedule = at.optl5h(10)
    assert [schedule.at(step)["dqt"] for step in (0, 49, 50, 10_000)] == ["optL", "optL", "optH", "optH"]
    for wrong in (0, 2.5, True):
        with pytest.raises(ValueError, match="steps_per_epoch is"):
            at.optl5h(wrong)
    for wrong in ({}, {1: {}}, {0: {}, 2.0: {}}):
        with pytest.raises(ValueError, match="steps of a schedule"):
            at.Schedule(wrong)
