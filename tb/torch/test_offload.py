"""Payloads at the host: the same gradients, and back in the reverse order, ahead of their use."""

import pytest
import torch
from torch import nn
from torch.autograd.graph import save_on_cpu
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import checkpoint

import actcodec.torch as at
from actcodec.torch.golden import codec
from actcodec.torch.offload import AHEAD, HostMemory, Moved
from actcodec.torch.packed import Packed
from actcodec.torch.signed import Signed
from tb.torch.models import gradients, pictures, small

pytestmark = pytest.mark.usefixtures("device")


@pytest.mark.parametrize("name", ["none", "zvc", "jpeg-act", "gist-fp10", "division", "comet", "sfpr"])
@pytest.mark.parametrize("inside", [False, True])
def test_gradients_are_the_same(name, inside):
    model = small()
    here, there = at.Compress(model, name, min_values=1), at.Compress(model, name, min_values=1, offload="cpu")
    expected, _ = gradients(model, here)
    for _ in range(2):
        assert torch.equal(gradients(model, there, inside=inside)[0], expected)
    one, two = here.report().total, there.report().total
    assert (one["packed"], one["nbytes"]) == (two["packed"], two["nbytes"])
    if torch.get_default_device().type == "cpu":
        assert one["peak"] == two["peak"]
    elif name != "none":
        assert two["peak"] < one["peak"]
    assert there._meter.now == [0, 0]


def test_it_composes_with_save_on_cpu_and_checkpoints():
    """The innermost hooks count: what one of them has, the other never sees."""
    model = small()
    x, y = pictures()

    def run(*contexts):
        model.zero_grad()
        for context in contexts:
            context.__enter__()
        hidden = model.relu(model.bn(model.conv(x)))
        hidden = checkpoint(model.layers[0], hidden, use_reentrant=False)
        loss = torch.nn.functional.cross_entropy(model.fc(model.layers[2](model.layers[1](hidden)).mean(dim=(2, 3))), y)
        for context in contexts[::-1]:
            context.__exit__(None, None, None)
        loss.backward()
        return torch.cat([one.grad.reshape(-1) for one in model.parameters()])

    expected = run(torch.enable_grad())
    compress = at.Compress(model, "zvc", min_values=1, offload="cpu")
    assert torch.equal(run(save_on_cpu(), compress), expected) and compress.report().rows
    assert torch.equal(run(compress, save_on_cpu()), expected)


def test_a_second_backward_pass_fetches_again():
    model = small()
    x, y = pictures()
    with at.Compress(model, "jpeg-act", offload="cpu"):
        loss = torch.nn.functional.cross_entropy(model(x), y)
    passes = []
    for retain in (True, False):
        model.zero_grad()
        loss.backward(retain_graph=retain)
        passes.append(torch.cat([one.grad.reshape(-1) for one in model.parameters()]))
    assert torch.equal(*passes)


def test_those_before_are_on_their_way(monkeypatch):
    begun = []
    begin = Moved.begin
    monkeypatch.setattr(Moved, "begin", lambda moved: begun.append(moved) or begin(moved))
    host = HostMemory()
    payloads = [torch.arange(5) + i for i in range(6)]
    moved = [host.take(Packed("raw", (5,), (one, None, 3), 40, 0, 40)) for one in payloads]
    for i in reversed(range(6)):
        begun.clear()
        packed = moved[i].fetch()
        assert torch.equal(packed.data[0], payloads[i]) and packed.data[1:] == (None, 3)
        assert packed.data[0].data_ptr() != payloads[i].data_ptr()
        assert begun == [moved[j] for j in range(i, max(i - AHEAD, 0) - 1, -1)]
    del moved[0], begun[:]
    moved[0].fetch()  # the one before it is gone
    assert begun == [moved[0]]


def test_where_payloads_go_is_checked():
    with pytest.raises(ValueError, match="offload is 'disk', must be None or 'cpu'"):
        at.Compress(small(), offload="disk")


@pytest.mark.parametrize("mode", ["raw", "zvc"])
def test_a_copy_of_what_is_kept_as_it_is_has_no_version(mode):
    layer, x = nn.Linear(64, 64), torch.randn(128, 64)
    with at.Compress(layer, mode, offload="cpu"):
        y = layer(x)
        y += 1
        loss = y.sin().sum()
    loss.backward()


def test_values_and_bits_of_a_compiled_graph_move_as_well():
    x = torch.randn(2, 5, 9, 19).relu_()
    one = Signed(codec("sfpr-zvc", {}), codec("brc", {}))
    packed = one.encode(x)
    back = HostMemory().take(packed).fetch()

    def places(packed):
        return {tensor.data_ptr() for tensor in tree_leaves(packed.data) if isinstance(tensor, torch.Tensor)}

    assert len(places(packed)) >= 3 and not places(packed) & places(back)
    assert torch.equal(one.decode(back), one.decode(packed))
