"""What is saved for the backward pass: memory that tensors share, that changes, and that is given back."""

import gc

import pytest
import torch
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn import functional as F

import actcodec.torch as at
from actcodec.torch import rules
from actcodec.torch.entry import Form
from tb.torch.models import gradients, kinds, lossless, pictures, small

pytestmark = pytest.mark.usefixtures("device")
LOSSLESS = [name for name in rules.names() if lossless(name)]


def inplace():
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.Conv2d(8, 8, 3),
                         nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(8 * 12 * 12, 10))


@pytest.mark.parametrize("name", LOSSLESS)
def test_relu_in_place(name):
    torch.manual_seed(0)
    model = inplace()
    exact, _ = gradients(model)
    compress = at.Compress(model, name, min_values=1)
    assert torch.equal(gradients(model, compress)[0], exact)
    if name == "gist":
        assert kinds(compress)[1:3] == [("2", "relu", "ssdc"), ("4", "relu", "ssdc")]


def test_a_memory_that_changes_in_place_is_kept_as_it_was_each_time():
    weight = torch.randn(4, 4, 1, 1, requires_grad=True)
    x = torch.randn(2, 4, 32, 32)

    def run(context, more):
        weight.grad = None
        with context:
            y = F.conv2d(x, weight)
            a = torch.sigmoid(y)  # saves its result
            b = more(a, 1)
            loss = (b * y).sum() + F.relu(more(b, -1.5)).square().sum()
        loss.backward()
        return weight.grad.clone()

    compress = at.Compress(nn.Identity(), rules=[at.rule("ssdc")], min_values=1)
    assert torch.equal(run(compress, torch.Tensor.add_), run(torch.enable_grad(), torch.add))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        run(torch.enable_grad(), torch.Tensor.add_)


def test_weights_that_change_before_the_backward_pass_are_an_error():
    model = small()
    x, y = pictures()
    with at.Compress(model, "zvc"):
        loss = F.cross_entropy(model(x), y)
    with torch.no_grad():
        model.fc.weight.add_(1)
    with pytest.raises(RuntimeError, match="changed in place"):
        loss.backward()


def test_views_of_one_memory_are_kept_once():
    model = nn.Linear(64, 64)
    compress = at.Compress(model, "sfpr", min_values=1)
    with compress:
        y = model(torch.ones(4, 16, 64))
        total = (y * y.view(64, 64).view(4, 16, 64)).sum() + (y.transpose(1, 2) @ y).sum()
    assert total.requires_grad
    assert [row.nbytes for row in compress.report().rows] == [4 * 64 * 64]


def test_a_square_and_its_transpose():
    def run(context):
        torch.manual_seed(0)
        x = torch.randn(64, 64, requires_grad=True)
        with context:
            y = torch.sin(x)
            z = (y * y.t() * y.flip(0)).sum()
        z.backward()
        return x.grad

    assert torch.equal(run(at.Compress(nn.Identity(), rules=[at.rule("ssdc")], min_values=1)), run(torch.enable_grad()))


@pytest.mark.parametrize("name", ["none", "zvc"])
def test_conjugate_and_negative_views_are_values_of_their_own(name):
    layer = nn.Linear(64, 64)
    x = torch.randn(8, 64)

    def spectrum():
        f = torch.fft.rfft(layer(x), dim=1)
        return (f * f.conj()).real.sum()

    def parts():
        f = torch.fft.rfft(layer(x), dim=1)
        return (f.imag * f.conj().imag).sum() + (f.imag.sin() * f.conj().imag.contiguous()).sum()

    def turned():
        f = torch.fft.rfft(layer(x), dim=1)
        return (f.mT @ f.conj()).abs().sum()

    for function in (spectrum, parts, turned):
        results = []
        for context in (torch.enable_grad(), at.Compress(layer, name, min_values=1)):
            layer.zero_grad()
            with context:
                loss = function()
            loss.backward()
            results.append(layer.weight.grad.clone())
        assert torch.equal(*results), function.__name__


def test_a_negative_view_is_packed_as_it_is_seen():
    x = torch.randn(64, 64, requires_grad=True)
    results = []
    for context in (torch.enable_grad(), at.Compress(nn.Identity(), rules=[at.rule("ssdc")], min_values=1)):
        x.grad = None
        with context:
            loss = torch._neg_view(x.sin()).exp().mul(torch._neg_view(x.cos())).sum()
        loss.backward()
        results.append(x.grad.clone())
    assert torch.equal(*results)


def test_a_view_counts_all_the_memory_that_it_keeps_alive():
    weight = torch.randn(1000, 100, requires_grad=True)
    compress = at.Compress(nn.Identity(), "none")
    with compress:
        y = torch.sin(weight)
        loss = (y[:10] * y[10:20]).sum()
    del y
    assert compress.report().total["peak"] == compress.report().total["peak_without"] == 2 * weight.nbytes
    assert compress._meter.now == [2 * weight.nbytes] * 2
    del loss
    assert compress._meter.now == [0, 0]


def test_a_picture_out_of_a_large_data_set_counts_as_itself():
    data, layer = torch.randn(1000, 64), nn.Linear(64, 64)
    compress = at.Compress(layer, "sfpr")
    with compress:
        loss = layer(data[:8]).sum()
    assert compress.report().total["peak"] == 8 * 64 * 4
    del loss


def test_slices_and_copies_along_a_dimension():
    def run(context):
        torch.manual_seed(0)
        x = torch.randn(8, 8, 16, requires_grad=True)
        with context:
            y = torch.sin(x)
            z = (y[:, ::2, 3:11] * y[:, :4, :8]).sum() + (y[:, :1].expand(8, 8, 16) * y).sum()
        z.backward()
        return x.grad

    exact = run(torch.enable_grad())
    assert torch.equal(run(at.Compress(nn.Identity(), rules=[at.rule("ssdc")], min_values=1)), exact)


def test_what_was_expanded_is_not_made_larger():
    x = torch.randn(64, requires_grad=True)
    compress = at.Compress(nn.Identity(), "sfpr", min_values=1)
    with compress:
        total = (torch.sin(x)[:, None].expand(64, 1000) * torch.randn(64, 1000, requires_grad=True)).sum()
    assert total.requires_grad and not compress.report().rows
    assert compress.report().total["peak_without"] < 64 * 1000 * 5


@pytest.mark.parametrize("name, freed", [("jpeg-act", True), ("none", False)])
def test_activations_are_given_back(name, freed):
    model = small()
    seen = []
    for layer in (model.relu, model.conv, model.layers[1].conv2):
        layer.register_forward_hook(lambda module, args, output: seen.append(StorageWeakRef(output.untyped_storage())))
    compress = at.Compress(model, name, min_values=1)
    x, y = pictures()
    with compress:
        loss = F.cross_entropy(model(x), y)
    assert [one.expired() for one in seen] == [freed] * 3
    assert compress.report().total["peak"] > 0
    loss.backward()
    del loss
    gc.collect()
    assert compress._meter.now == [0, 0] and not compress._entries


@pytest.mark.parametrize("name", ["none", "jpeg-act"])
def test_a_graph_without_a_backward_pass_is_given_back(name):
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.Sigmoid())
    compress = at.Compress(model, name, min_values=1)
    with compress:
        loss = model(pictures()[0]).sum()
    assert compress._entries
    del loss
    assert not compress._entries and compress._meter.now == [0, 0]


def test_a_tensor_is_decoded_once_and_not_kept(monkeypatch):
    decoded = []
    values = Form.values
    monkeypatch.setattr(Form, "values", lambda form, entry: (
        None if form.uncompressed else decoded.append(entry.row.layer)) or values(form, entry))
    model = small()
    compress = at.Compress(model, "jpeg-act", min_values=1, error_every=0)
    x, y = pictures()
    with compress:
        loss = F.cross_entropy(model(x), y)
    packed = sum((row.mode != "-") + bool(row.mask) for row in compress.report().rows)
    for passes in (1, 2):
        loss.backward(retain_graph=True)
        assert len(decoded) == passes * packed
        assert {form.cache for entry in compress._entries.values() for form in entry.forms.values()} == {None}
