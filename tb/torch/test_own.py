"""A codec of one's own, given to a rule."""

import doctest

import pytest
import torch
from torch import nn

import actcodec.torch as at
from actcodec.torch import own
from tb.torch.memory import measured
from tb.torch.models import gradients, relative, small


class Half(at.Codec):
    """Values as bfloat16."""

    def encode(self, x):
        return x.bfloat16()

    def decode(self, data):
        return data.float()

    def nbytes(self, data):
        return data.nbytes


class Shuffled(at.Codec):
    """Lossless, and called by a name."""

    name, lossless = "shuffled", True

    def encode(self, x):
        self.shape = x.shape
        return x.clone().view(torch.uint8).view(-1, 4).t().contiguous()

    def decode(self, data):
        return data.t().contiguous().view(-1).view(torch.float32)

    def nbytes(self, data):
        return data.nbytes


class Short(Half):
    def decode(self, data):
        return data.float().view(-1)[1:]


@pytest.mark.parametrize("engine", ["torch", "golden"])
@pytest.mark.parametrize("one", [Half(), Shuffled()])
def test_a_codec_of_ones_own(one, engine):
    model = small()
    exact, _ = gradients(model)
    compress = at.Compress(model, rules=[at.rule(one, kind=("dense", "relu")), at.rule("brc", kind="mask")],
                           min_values=1, engine=engine, error_every=1)
    gradient, _ = gradients(model, compress)
    assert torch.equal(gradient, exact) if one.lossless else 0 < relative(gradient, exact) < 0.02
    rows = [row for row in compress.report().rows if row.kind in ("dense", "relu")]
    name = one.name or "Half"
    assert {row.mode for row in rows} == {name} and name in str(compress.report())
    assert {bool(row.mask) for row in rows if row.kind == "relu"} == {not one.lossless}
    for row in rows:
        assert row.held - row.nbytes // 32 * bool(row.mask) == (row.nbytes if one.lossless else row.nbytes // 2)
        assert (row.error == 0) == one.lossless


def test_what_it_says_is_what_is_held():
    model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.Sigmoid(), nn.Conv2d(16, 16, 3), nn.Sigmoid())
    compress = at.Compress(model, rules=[at.rule(Half())])
    x = torch.randn(8, 3, 32, 32)

    def forward():
        with compress:
            return model(x).sum()

    forward().backward()
    assert measured(forward).left == pytest.approx(sum(row.held for row in compress.report().rows), rel=0.02)


def test_rules_keep_it_and_other_options_pass_by():
    model, half = small(), Half()
    compress = at.Compress(model, rules=[at.rule(half, kind="dense"), at.rule("sfpr", kind="relu")])
    compress.set(signs=True)
    assert [one.mode for one in compress.rules] == [half, "sfpr"] and compress.rules[1].options == {"signs": True}
    with pytest.raises(ValueError, match="no mode of these rules has an option dqt"):
        compress.set(dqt="optL")
    with pytest.raises(ValueError, match="without a mode of the registry has no option bits"):
        at.rule(half, bits=3)


def test_names_and_sizes_are_checked():
    class Sfpr(Half):
        name = "sfpr"

    with pytest.raises(ValueError, match="'sfpr', which is a mode of the registry"):
        at.rule(Sfpr())
    model = small()
    with pytest.raises(ValueError, match="codec Short decodes 4095 values of a tensor of shape"):
        gradients(model, at.Compress(model, rules=[at.rule(Short(), kind="dense")]))


def test_its_example_runs():
    done = doctest.testmod(own)
    assert done.attempted and not done.failed
