"""The hooks: gradients, and what is taken for what."""

import copy
import gc
import pickle

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import actcodec.torch as at
from actcodec.torch import rules
from tb.torch.models import Attention, gradients, kinds, lossless, pictures, relative, small

pytestmark = pytest.mark.usefixtures("device")
LOSSLESS = [name for name in rules.names() if lossless(name)]


def test_some_presets_are_lossless():
    assert {"none", "cdma", "gist", "raw", "zvc", "ssdc", "brc"} <= set(LOSSLESS) < set(rules.names())


@pytest.mark.parametrize("name", LOSSLESS)
@pytest.mark.parametrize("inside", [False, True])
def test_gradients_without_loss_are_identical(name, inside):
    model = small()
    exact, loss = gradients(model)
    compress = at.Compress(model, name, min_values=1)
    for _ in range(2):
        gradient, same = gradients(model, compress, inside=inside)
        assert torch.equal(gradient, exact) and loss == same


@pytest.mark.parametrize("name", [name for name in rules.names() if not lossless(name)])
def test_lossy_gradients_are_near_and_the_loss_is_the_same(name):
    model = small()
    exact, loss = gradients(model)
    compress = at.Compress(model, name, min_values=1, error_every=1)
    gradient, same = gradients(model, compress)
    assert same == loss
    assert 0 < relative(gradient, exact) < 1  # bitpack-1 keeps no bit of the mantissa
    assert compress.report().total["ratio"] > 1.2
    most = 0.8 if name.startswith("division") else 0.6  # two bits a value
    assert all(row.error is not None and 0 <= row.error < most for row in compress.report().rows if row.kind != "mask")


def test_another_coder_is_another_size_and_the_same_gradient():
    model, results, totals = small(), [], []
    for coder in "zvc", "nibble":
        compress = at.Compress(model, "jpeg-act", min_values=1, coder=coder)
        results.append(gradients(model, compress)[0])
        totals.append(compress.report().total["packed"])
    assert torch.equal(*results) and totals[0] != totals[1]
    assert {row.mode for row in compress.report().rows} >= {"jpeg-act-nibble", "sfpr-nibble", "brc"}


@pytest.mark.parametrize("name, options", [
    ("jpeg-act", {"dqt": "optH"}), ("sfpr", {"signs": True}), ("cdma", {}), ("jpeg-base", {"dqt": "optH-div"}),
    ("division", {"bits": 4}), ("comet", {}),
])
def test_what_is_counted_is_what_real_payloads_have(name, options):
    model = small()
    one = at.Compress(model, name, min_values=1, error_every=1, **options)
    real = at.Compress(model, name, min_values=1, error_every=1, engine="golden", **options)
    assert torch.equal(gradients(model, one)[0], gradients(model, real)[0])
    sizes = [[(row.mode, row.nbytes, int(row.payload), row.side, row.error) for row in each.report().rows]
             for each in (one, real)]
    assert sizes[0] == sizes[1] and len(sizes[0]) > 10
    assert one.report().total["packed"] == real.report().total["packed"]
    if name not in ("cdma", "comet"):  # which keep more than half
        assert real.report().total["peak"] < one.report().total["peak"] < one.report().total["peak_without"] / 2


def test_a_tensor_is_taken_for_what_made_it():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8),
                          nn.ReLU(), nn.Conv2d(8, 8, 3), nn.Sigmoid(), nn.Dropout(0.5), nn.Conv2d(8, 8, 3), nn.ReLU(),
                          nn.Flatten(), nn.Linear(8, 10), nn.LogSoftmax(1))
    compress = at.Compress(model, "jpeg-act", min_values=1)
    with compress:
        model(pictures()[0])
    assert kinds(compress) == [
        ("1", "mask", "brc"),  # of which the pooling needs nothing
        ("2", "index", "places"), ("3", "pool", "sfpr-zvc"), ("4", "dense", "sfpr"),  # too narrow for tiles
        ("5", "relu", "sfpr-zvc"), ("7", "dense", "sfpr"), ("8", "mask", "brc"), ("9", "dropout", "sfpr-zvc"),
        ("10", "relu", "sfpr-zvc"),  # flat, the linear layer saves it
        ("13", "softmax", "-")]
    wide = at.Compress(model, "jpeg-act", min_values=1)
    with wide:
        model[:5](pictures(size=32)[0])
    assert kinds(wide)[3] == ("4", "dense", "jpeg-act")


def test_a_relu_that_nothing_else_saves_keeps_one_bit():
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10))
    compress = at.Compress(model, "jpeg-act")
    exact, _ = gradients(model)
    assert torch.equal(gradients(model, compress)[0], exact)
    assert kinds(compress) == [("1", "mask", "brc")]
    row, = compress.report().rows
    assert row.error is None and row.ratio == pytest.approx(32, rel=0.15)  # rows of 14 are padded to 16


@pytest.mark.parametrize("function", [torch.sigmoid, torch.tanh, torch.exp, F.elu, F.relu6, F.leaky_relu, F.silu])
def test_no_other_operation_is_taken_for_a_relu(function):
    model = nn.Conv2d(3, 8, 3)
    x = pictures()[0]

    def run(context):
        model.zero_grad()
        with context:
            loss = function(model(x)).square().mean()
        loss.backward()
        return model.weight.grad.clone()

    compress = at.Compress(model, "brc", min_values=1)
    assert torch.equal(run(compress), run(torch.enable_grad()))
    kinds = {row.kind for row in compress.report().rows}
    assert kinds == ({"dense"} if function not in (F.relu6, F.leaky_relu) else {"mask", "relu", "dense"} & kinds)


def test_a_relu_outside_of_the_context_is_no_mask():
    model = small()
    x, _ = pictures()
    hidden = torch.relu(model.conv(x))
    compress = at.Compress(model.layers, "gist", min_values=1)
    with compress:
        model.layers(hidden)
    assert kinds(compress)[0] == ("0.conv1", "relu", "ssdc")


@pytest.mark.parametrize("outer", [None, "zvc"])
def test_contexts_nest_and_the_inner_one_counts(outer):
    model = small()
    exact, _ = gradients(model)
    one, two = at.Compress(model, outer or "none"), at.Compress(model.layers[1], "sfpr")
    x, y = pictures()
    model.zero_grad()
    with one:
        hidden = model.layers[0](model.relu(model.bn(model.conv(x))))
        with two, two:
            hidden = model.layers[1](hidden)
        loss = F.cross_entropy(model.fc(model.layers[2](hidden).mean(dim=(2, 3))), y)
    loss.backward()
    gradient = torch.cat([each.grad.reshape(-1) for each in model.parameters()])
    assert 0 < relative(gradient, exact) < 0.2
    assert two.report().rows and all(row.mode in ("sfpr", "brc") for row in two.report().rows)
    assert not any(row.mode == "sfpr" for row in one.report().rows)


def test_it_decorates():
    model = small()
    compress = at.Compress(model, "zvc")
    x, y = pictures()

    @compress
    def step():
        return F.cross_entropy(model(x), y)

    exact, _ = gradients(model)
    for _ in range(2):
        model.zero_grad()
        step().backward()
        assert torch.equal(torch.cat([one.grad.reshape(-1) for one in model.parameters()]), exact)
    assert compress.step == 2


@pytest.mark.parametrize("name", ["jpeg-act", "gist-fp8", "zvc"])
def test_a_second_backward_pass_gives_the_same(name):
    model = small()
    x, y = pictures()
    with at.Compress(model, name):
        loss = F.cross_entropy(model(x), y)
    passes = []
    for retain in (True, True, False):
        model.zero_grad()
        loss.backward(retain_graph=retain)
        passes.append(torch.cat([one.grad.reshape(-1) for one in model.parameters()]))
    assert torch.equal(passes[0], passes[1]) and torch.equal(passes[0], passes[2])


def test_gradients_of_gradients():
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Tanh(), nn.Conv2d(4, 4, 3), nn.Tanh())
    x = pictures()[0]

    def second(context):
        with context:
            loss = model(x).square().sum()
            first = torch.autograd.grad(loss, list(model.parameters()), create_graph=True)
            return torch.autograd.grad(sum(one.square().sum() for one in first), list(model.parameters()))

    for gradient, exact in zip(second(at.Compress(model, "zvc", min_values=1)), second(torch.enable_grad()),
                               strict=True):
        assert torch.equal(gradient, exact)


@pytest.mark.parametrize("name", ["zvc", "jpeg-act"])
def test_checkpointing_beside_it(name):
    model = small()
    exact, _ = gradients(model)

    class Checkpointed(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = model

        def forward(self, x):
            x = self.inner.relu(self.inner.bn(self.inner.conv(x)))
            for layer in self.inner.layers:
                x = checkpoint(layer, x, use_reentrant=False)
            return self.inner.fc(x.mean(dim=(2, 3)))

    wrapped = Checkpointed()
    for inside in (False, True):
        compress = at.Compress(wrapped, name, min_values=1)
        gradients(wrapped, compress, inside=inside)
        gradient = torch.cat([one.grad.reshape(-1) for one in model.parameters()])
        if name == "zvc":
            assert relative(gradient, exact) < 1e-5  # statistics of batch norm are collected twice
        assert 0 <= relative(gradient, exact) < 0.3
        assert {row.layer for row in compress.report().rows} <= {"inner.bn", "inner.relu", "", "inner.fc"}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", ["zvc", "gist", "jpeg-act"])
def test_autocast(name, dtype, device):
    model = small()

    def run(compress=None):
        with torch.autocast(device, dtype):
            return gradients(model, compress)

    exact, loss = run()
    compress = at.Compress(model, name, min_values=1)
    gradient, same = run(compress)
    assert loss == same
    assert torch.equal(gradient, exact) if lossless(name) else 0 < relative(gradient, exact) < 0.3
    rows = compress.report().rows
    assert {row.dtype for row in rows} >= {str(dtype).split(".")[1]}
    half = next(row for row in rows if row.kind == "dense" and "16" in row.dtype)
    assert half.nbytes == 2 * torch.Size(half.shape).numel()
    assert not any(row.shape == (8, 3, 3, 3) for row in rows)  # a weight that was cast


@pytest.mark.parametrize("name", [*LOSSLESS, "jpeg-act", "sfpr"])
def test_channels_last(name):
    x, y = pictures()
    model = small()
    plain = at.Compress(model, name, min_values=1)
    gradients(model, plain)
    model = model.to(memory_format=torch.channels_last)
    x = x.contiguous(memory_format=torch.channels_last)
    exact, _ = gradients(model, data=(x, y))
    compress = at.Compress(model, name, min_values=1)
    gradient, _ = gradients(model, compress, data=(x, y))
    if lossless(name):
        assert torch.equal(gradient, exact)
    assert relative(gradient, exact) < 0.2
    for one, two in zip(plain.report().rows, compress.report().rows, strict=True):
        assert (one.layer, one.kind, one.mode, one.shape) == (two.layer, two.kind, two.mode, two.shape)
        assert one.packed == pytest.approx(two.packed, rel=0.02)  # convolutions of this order round differently


@pytest.mark.parametrize("name", ["zvc", "gist", "sfpr"])
def test_a_transformer(name):
    torch.manual_seed(0)
    model = Attention().eval()
    exact, _ = gradients(model)
    compress = at.Compress(model, name, min_values=1)
    gradient, _ = gradients(model, compress)
    if lossless(name):
        assert torch.equal(gradient, exact)
    assert relative(gradient, exact) < 0.1
    rows = compress.report().rows
    assert any(row.kind == "softmax" and row.mode == "-" for row in rows)
    assert any(len(row.shape) == 3 and row.mode != "-" for row in rows) or name == "gist"


def test_six_dimensions():
    def run(context):
        torch.manual_seed(0)
        x = torch.randn(2, 3, 2, 2, 4, 8, requires_grad=True)
        with context:
            y = torch.sin(x)
            z = (y * y).sum()
        z.backward()
        return x.grad

    exact = run(torch.enable_grad())
    assert torch.equal(run(at.Compress(nn.Identity(), "zvc", min_values=1)), exact)
    assert 0 < relative(run(at.Compress(nn.Identity(), "sfpr", min_values=1)), exact) < 0.05


def test_other_types_and_sparse_tensors_are_left_as_they_are():
    weight = torch.randn(64, 64, dtype=torch.float64, requires_grad=True)
    sparse = torch.eye(64, dtype=torch.float64).to_sparse()
    compress = at.Compress(nn.Identity(), "sfpr", min_values=1)
    with compress:
        y = torch.sparse.mm(sparse, torch.sin(weight))
        (y * y).sum().backward()
    assert torch.allclose(weight.grad, (2 * weight.sin() * weight.cos()).detach())
    assert not compress.report().rows


@pytest.mark.parametrize("layout", [torch.jagged, torch.strided])
def test_nested_tensors_are_left_as_they_are(layout):
    layer = nn.Linear(8, 8)

    def run(context):
        layer.zero_grad()
        generator = torch.Generator().manual_seed(0)
        parts = [torch.randn(n, 8, generator=generator, device="cpu").to(layer.weight.device) for n in (300, 500)]
        with context:
            x = torch.nested.nested_tensor(parts, layout=layout)
            loss = torch.relu(layer(x)).to_padded_tensor(0.0).square().sum()
        loss.backward()
        return layer.weight.grad.clone()

    assert torch.equal(run(at.Compress(layer, "none", min_values=1)), run(torch.enable_grad()))
    assert 0 <= relative(run(at.Compress(layer, "sfpr", min_values=1)), run(torch.enable_grad())) < 0.2


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (3, 0), (2, 0, 4, 4)])
@pytest.mark.parametrize("name", ["zvc", "sfpr", "jpeg-act", "gist-fp8"])
@pytest.mark.parametrize("least", [0, 1])
@pytest.mark.filterwarnings("ignore:no tensor was compressed")
def test_numbers_and_tensors_without_any(shape, name, least):
    x = torch.full(shape, 2.0, requires_grad=True)
    compress = at.Compress(nn.Identity(), name, min_values=least)
    with compress:
        loss = torch.relu(torch.sin(torch.sin(x))).square().sum()
    loss.backward()
    assert x.grad.shape == x.shape and str(compress.report())
    exact = torch.full(shape, 2.0, requires_grad=True)
    torch.relu(torch.sin(torch.sin(exact))).square().sum().backward()
    assert torch.allclose(x.grad, exact.grad, rtol=0.1)


def test_tensors_without_data_are_left_as_they_are():
    with torch.device("meta"):
        model, x = small(), torch.randn(8, 3, 32, 32)
        with pytest.warns(UserWarning, match="no tensor was compressed"), at.Compress(model, "jpeg-act"):
            loss = model(x).sum()
        loss.backward()
    assert model.fc.weight.grad.is_meta


def test_lazy_modules():
    def built():
        torch.manual_seed(0)
        return nn.Sequential(nn.LazyConv2d(8, 3), nn.LazyBatchNorm2d(), nn.ReLU(), nn.Flatten(), nn.LazyLinear(64),
                             nn.Tanh(), nn.LazyLinear(10))

    model = built()
    compress = at.Compress(model, "zvc", min_values=1)
    totals = []
    for _ in range(2):
        gradient, _ = gradients(model, compress)
        totals.append(compress.report().total["other"])
        compress.reset()
    assert totals[0] == totals[1]  # a weight is none of what is counted, once it is there
    exact = built()
    gradients(exact)
    assert torch.equal(gradient, gradients(exact)[0])


@pytest.mark.parametrize("copied", [lambda model: pickle.loads(pickle.dumps(model)), copy.deepcopy])
def test_a_model_is_copied_inside_the_context(copied):
    model = small()
    compress = at.Compress(model, "sfpr")
    with compress:
        other = copied(model)
        loss = model(pictures()[0]).sum()
        rows = len(compress.report().rows)
        other(pictures()[0])
    loss.backward()
    assert rows == len(compress.report().rows) - len(compress.report().rows) // 2
    assert torch.equal(gradients(other)[0], gradients(model)[0])


def test_workspaces_are_called_so():
    model = nn.LSTM(32, 64)
    compress = at.Compress(model, "sfpr", min_values=1)
    with compress:
        loss = model(torch.randn(40, 4, 32))[0].sum()
    loss.backward()
    if not model.weight_hh_l0.is_cuda:  # whose fused kernel may not be there
        row, = compress.report().workspaces
        assert row.dtype == "uint8" and row.nbytes > 1e5
        assert "workspaces" in str(compress.report())
    assert "workspaces" not in str(at.Compress(small()).report())


@pytest.mark.parametrize("preset, made, why", [
    ("jpeg-act", lambda: small().double(), "of type float64"),
    ("cdma", lambda: nn.Sequential(nn.Conv2d(3, 16, 3), nn.GELU(), nn.Conv2d(16, 16, 3), nn.GELU()), "of kind dense "
     "without a rule"),
    ("sfpr", lambda: nn.Sequential(nn.Conv2d(3, 2, 3), nn.Tanh()), "of fewer than 4096 values"),
])
def test_that_nothing_is_compressed_is_said_once(preset, made, why, recwarn):
    model = made()
    x = pictures()[0].to(next(model.parameters()).dtype)
    compress = at.Compress(model, preset)
    for _ in range(2):
        with compress:
            model(x).sum()
    said = [str(one.message) for one in recwarn if "no tensor was compressed" in str(one.message)]
    assert len(said) == 1 and why in said[0]
    with at.Compress(model, "none"), torch.no_grad():
        model(x)
    assert len(recwarn) == 1


def test_a_rule_for_no_layer_is_said_once():
    with pytest.warns(UserWarning, match="a rule is for layer 'layer9.*', and the model has none") as said:
        compress = at.Compress(small(), rules=[at.rule("sfpr", layer="layer9.*"), at.rule("sfpr", layer="layers.1.*")])
        compress.set(signs=True)
    assert len(said) == 1


def test_a_pass_that_fails_leaves_nothing_behind():
    model = small()
    compress = at.Compress(model, "zvc")
    hooks = [len(module._forward_pre_hooks) + len(module._forward_hooks) for module in model.modules()]
    with pytest.raises(RuntimeError), compress:
        model(torch.zeros(2, 4, 16, 16))
    assert hooks == [len(module._forward_pre_hooks) + len(module._forward_hooks) for module in model.modules()]
    exact, _ = gradients(model)
    assert torch.equal(gradients(model, compress)[0], exact)


def test_rows_are_those_of_a_pass_however_many_there_are():
    model = small()
    compress = at.Compress(model, "sfpr")
    x, y = pictures()
    for _ in range(2):
        with compress:
            for _ in range(3):
                F.cross_entropy(model(x), y).backward()
    one = at.Compress(model, "sfpr")
    gradients(model, one)
    assert kinds(compress) == kinds(one)
    assert {row.passes for row in compress.report().rows} == {6} and compress.report().passes == 6
    assert compress.step == 2


def test_errors_are_measured_every_so_often():
    model = small()
    never, twice = at.Compress(model, "sfpr", error_every=0), at.Compress(model, "sfpr", error_every=2)
    gradients(model, never)
    assert {row.error for row in never.report().rows} == {None}
    errors = []
    for seed in range(3):
        gradients(model, twice, pictures(seed=seed))
        errors.append(twice.report().rows[0].error)
    assert errors[0] == errors[1] != errors[2]
    twice.reset()
    assert not twice.report().rows


def test_tensors_of_zeros_have_no_error():
    model = nn.Sequential(nn.Conv2d(3, 8, 3, bias=False), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.Sigmoid())
    compress = at.Compress(model, "sfpr", min_values=1, error_every=1)
    with compress:
        model(torch.zeros(8, 3, 16, 16))
    assert compress.report().rows[0].error == 0


class Parallel(nn.DataParallel):
    """Without a GPU."""


@pytest.mark.parametrize("wrap, what", [
    (lambda model: nn.Sequential(Parallel(model)), "module 0 .Parallel.: its replicas run in threads"),
])
def test_what_hooks_cannot_reach_is_refused(wrap, what):
    with pytest.raises(ValueError, match=what):
        at.Compress(wrap(small()))


@pytest.mark.parametrize("options, what", [
    ({"preset": "gif"}, "unknown preset 'gif', legal are none, cdma"), ({"engine": "rtl"}, "engine is 'rtl'"),
    ({"preset": "sfpr", "dqt": "optL"}, "no mode of these rules has an option dqt"), ({"dqt": "optM"}, "unknown DQT"),
])
def test_options_are_checked(options, what):
    with pytest.raises(ValueError, match=what):
        at.Compress(small(), **options)


def test_rules_change_between_passes_and_by_schedule():
    model = small()
    compress = at.Compress(model, "jpeg-act", schedule=at.Schedule({0: {"dqt": "optL"}, 2: {"dqt": "optH"}}))
    tables = []
    for _ in range(4):
        gradients(model, compress)
        tables.append(next(row.table for row in compress.report().rows if row.mode == "jpeg-act"))
    assert tables == ["optL", "optL", "optH", "optH"]
    compress.schedule = None
    compress.set("sfpr")
    gradients(model, compress)
    assert {row.mode for row in compress.report().rows} == {"sfpr", "brc"}
    compress.set(rules=[at.rule("sfpr-zvc", layer="layers.1.*", signs=True), at.rule(None)])
    gradients(model, compress)
    assert {row.layer for row in compress.report().rows if row.mode == "sfpr-zvc"} == {
        "layers.1.bn1", "layers.1.relu1", "layers.1.bn2", "layers.1.relu2"}


def test_a_copy_is_of_the_copied_model():
    """References to memory must not be copied with it: each is given back once."""
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3))
    model.compress = at.Compress(model, "sfpr")
    x, results = torch.randn(2, 3, 32, 32), []
    with model.compress:
        model(x).sum().backward()
        inside = copy.deepcopy(model.compress)
    copied = copy.deepcopy(model)
    assert copied.compress.model is copied and not copied.compress.report().rows
    del inside
    gc.collect()
    for one in model, copied:
        one.zero_grad()
        with one.compress:
            loss = one(x).square().sum()
        loss.backward()
        assert len(one.compress.report().rows) == len(model.compress.report().rows) > 0
        results.append(one[0].weight.grad)
    assert torch.equal(*results)


def test_scripted_modules_take_no_hooks_and_do_no_harm():
    model = nn.Sequential(nn.Conv2d(3, 8, 3), torch.jit.script(nn.Tanh()), nn.Conv2d(8, 8, 3))
    compress = at.Compress(model, "sfpr")
    with compress:
        loss = model(torch.randn(2, 3, 32, 32)).sum()
    loss.backward()
    assert compress.report().rows and not any(one._forward_pre_hooks for one in model.modules())


def test_where_hooks_are_disabled_nothing_is_left_behind():
    model = nn.Conv2d(3, 8, 3)
    compress = at.Compress(model, "sfpr")
    with (torch.autograd.graph.disable_saved_tensors_hooks("none here"),
          pytest.raises(RuntimeError, match="none here"), compress):
        pass
    assert not model._forward_pre_hooks
    with compress:
        loss = model(torch.randn(2, 3, 32, 32)).sin().sum()
    loss.backward()
    assert [row.mode for row in compress.report().rows][-1] == "sfpr"


def test_other_classes_are_watched_for_changes_in_place():
    class Own(torch.Tensor):
        pass

    x = torch.randn(64).as_subclass(Own).requires_grad_()
    with at.Compress(nn.Identity(), "none"):
        y = x.sin()
        z = (y * y).sum()
        y.add_(1)
    with pytest.raises(RuntimeError, match="changed in place"):
        z.backward()
