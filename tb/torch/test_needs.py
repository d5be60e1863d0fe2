"""Operations that need less than values: their gradients are exact in every lossy mode, and a bit or four are held."""

import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import actcodec.torch as at
from actcodec.golden.gist import maxpool
from actcodec.torch import operations, rules
from actcodec.torch.needs import Places
from tb.torch.models import lossless

pytestmark = pytest.mark.usefixtures("device")
LOSSY = [name for name in rules.names() if not lossless(name)]
BITS = [
    torch.relu, F.relu, torch.Tensor.relu, F.relu6, F.hardtanh, nn.Hardtanh(-0.25, 1.75), F.leaky_relu,
    nn.LeakyReLU(0.2), nn.Threshold(0.25, -3.0), nn.Threshold(-0.5, 7.0), lambda x: x.clamp(0, 1),
    lambda x: torch.clamp(x, min=-0.1), lambda x: torch.clamp(x, max=0.3), lambda x: x.clip(-1, 0.1),
    lambda x: x.clamp_min(0), lambda x: x.clamp_max(0.5),
    lambda x: torch.clamp(input=x, min=0.5, max=0.25),
]
INPLACE = [F.relu_, F.hardtanh_, F.leaky_relu_, nn.ReLU6(inplace=True), nn.ReLU(inplace=True),
           lambda x: x.clamp_(-0.5, 0.5), lambda x: F.threshold_(x, 0.125, 0.0), lambda x: torch.clamp_min_(x, 0)]


def values(dtype=torch.float32):
    """Bounds among them, and NaN and infinities."""
    x = torch.randn(2, 4, 32, 32, generator=torch.Generator().manual_seed(0), device="cpu")
    x[0, 0, 0, :12] = torch.tensor([0.0, -0.0, 6, -1, 1, 0.25, -0.5, math.nan, math.inf, -math.inf, -0.25, 1e-40])
    return x.to(torch.get_default_device(), dtype)


def gradient(function, x, context):
    """Of a function whose output nothing saves, and whose input nothing else does."""
    torch.manual_seed(1)
    weight = torch.randn_like(x)
    x = x.clone().requires_grad_()
    with context:
        loss = (function(x * 1) * weight).sum()
    loss.backward()
    return x.grad


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("function", BITS + INPLACE)
def test_one_bit_is_enough_and_exact(function, dtype):
    x = values(dtype)
    compress = at.Compress(nn.Identity(), "sfpr")
    result, exact = gradient(function, x, compress), gradient(function, x, torch.enable_grad())
    assert torch.equal(result, exact)
    row, = compress.report().rows
    assert (row.kind, row.mode, row.held) == ("mask", "brc", x.numel() // 8)


def test_a_bound_that_a_type_does_not_have_is_left_to_the_values():
    compress = at.Compress(nn.Identity(), "sfpr")
    gradient(nn.Hardtanh(-0.3, 1.7), values(torch.bfloat16), compress)
    assert [(row.kind, row.mode) for row in compress.report().rows] == [("dropout", "sfpr")]


@pytest.mark.parametrize("name", LOSSY)
@pytest.mark.parametrize("function", [F.relu, F.relu6, F.leaky_relu])
def test_masks_are_exact_in_every_lossy_mode(name, function):
    compress = at.Compress(nn.Identity(), name)
    x = values().nan_to_num(posinf=9, neginf=-9)
    assert torch.equal(gradient(function, x, compress), gradient(function, x, torch.enable_grad()))
    row, = compress.report().rows
    lossless_mask = "ssdc" if name.startswith("gist") else "brc"
    assert row.held <= x.numel() // 8 or row.mode.startswith(lossless_mask)


@pytest.mark.parametrize("name, options, beside", [
    ("sfpr", {}, True), ("sfpr", {"signs": True}, False), ("jpeg-act", {}, True), ("division", {"bits": 4}, True),
    ("comet", {}, True), ("zvc", {}, False), ("gist", {}, False), ("gist-fp8", {}, True), ("jpeg-act", {"signs": True},
                                                                                          False),
])
def test_a_bit_beside_values_that_lose_it(name, options, beside):
    """A ReLU before a convolution: the gradient of what comes before has the exact mask."""
    convolution = nn.Conv2d(4, 4, 3)

    def run(context):
        def function(x):
            return convolution(F.relu(x))[..., :1, :1].expand(2, 4, 32, 32)

        return gradient(function, values().nan_to_num(posinf=9, neginf=-9), context)

    compress = at.Compress(nn.Identity(), name, **options)
    assert torch.equal(run(compress), run(torch.enable_grad()))  # the weight's gradient alone needs values
    row, = compress.report().rows
    assert row.kind == "relu" and bool(row.mask) == beside


def test_a_mask_that_no_rule_is_for_becomes_a_bit_when_its_values_lose_it():
    compress = at.Compress(nn.Identity(), rules=[at.rule("sfpr", kind="relu")])
    x = values().nan_to_num(posinf=9, neginf=-9)

    def twice(x):
        y = F.relu(x)
        return y * y

    gradient(twice, x, compress)
    row, = compress.report().rows
    assert (row.mode, row.mask) == ("sfpr", "brc")
    kept = at.Compress(nn.Identity(), rules=[at.rule("sfpr", kind="dense")])
    with pytest.warns(UserWarning, match="no tensor was compressed"):
        assert torch.equal(gradient(twice, x, kept), gradient(twice, x, torch.enable_grad()))


POOLS = [nn.MaxPool2d(2), nn.MaxPool2d(3, 2, 1), nn.MaxPool2d(3, 1, 1), nn.MaxPool2d((2, 3), (3, 1), (1, 0)),
         nn.MaxPool2d(3, 2, ceil_mode=True), nn.MaxPool2d(2, 2, dilation=2), nn.MaxPool2d(5, 2, 2),
         nn.MaxPool2d(17, 3), lambda x: F.max_pool2d(x, [2]), lambda x: torch.max_pool2d(x, 3, padding=1, dilation=2),
         lambda x: F.max_pool2d(x[0], 2).expand(1, -1, -1, -1)]


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_poolings_keep_places_and_nothing_of_their_input(pool, layout):
    def run(context, last=None):
        x = values().nan_to_num().contiguous(memory_format=layout).requires_grad_()
        with context:
            y = pool(x.sin())
            loss = (y * torch.arange(y.numel(), dtype=torch.float32).view(y.shape)).sum()
        loss.backward()
        return x.grad, y

    compress = at.Compress(nn.Identity(), "sfpr", min_values=1)
    (result, y), (exact, _) = run(compress), run(torch.enable_grad())
    assert torch.equal(result, exact)
    row, = [row for row in compress.report().rows if row.kind == "index"] or [None]
    if pool is POOLS[7]:
        assert row is None  # 289 places
    else:
        bits = 8 if pool is POOLS[6] else 4
        assert row.mode == "places" and row.held == math.ceil(y.numel() * bits / 8)
    assert [row.mode for row in compress.report().rows if row.kind == "dense"] == ["nothing"]
    plain = at.Compress(nn.Identity(), "none", min_values=1)
    assert torch.equal(run(plain)[0], exact)
    assert {row.mode for row in plain.report().rows} == {"-"}


@pytest.mark.parametrize("k, stride, padding", [(2, 2, 0), (3, 2, 1), (3, 1, 1), (2, 1, 1), (3, 3, 0)])
def test_places_are_those_of_gist(k, stride, padding):
    x = values().nan_to_num()
    _, indices = F.max_pool2d(x, k, stride, padding, return_indices=True)
    need = Places((32, 32), (k, k), (stride, stride), (padding, padding), (1, 1))
    packed = need.encode(None, indices)
    assert torch.equal(need.decode(None, packed), indices)
    _, expected = maxpool.forward(x.cpu().numpy(), k, stride, padding)
    halves = packed.data.cpu().numpy()
    np.testing.assert_array_equal(np.stack([halves & 15, halves >> 4], 1).reshape(-1)[:expected.size],
                                  expected.reshape(-1))


@pytest.mark.parametrize("drop", [nn.Dropout(0.3), lambda x: F.dropout(x, 0.7), lambda x: torch.dropout(x, 0.2, True),
                                  nn.Dropout(0.0), nn.Dropout(1.0), nn.Dropout(0.5, inplace=True)])
def test_masks_of_dropout_are_one_bit(drop):
    compress = at.Compress(nn.Identity(), "sfpr")
    result, exact = gradient(drop, values(), compress), gradient(drop, values(), torch.enable_grad())
    assert torch.equal(result.nan_to_num(5), exact.nan_to_num(5))
    for row in compress.report().rows:
        assert (row.kind, row.mode, row.held) == ("mask", "brc", 2 * 4 * 32 * 32 // 8 + 4)


def test_nothing_is_mistaken_for_an_operation():
    """Others that save the same tensors, in a function of the user's that runs at once after a ReLU."""
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return 2 * ctx.saved_tensors[0] * g

    for function in (F.relu, F.relu6, lambda x: F.dropout(x, 0.5), lambda x: F.max_pool2d(x, 1)):
        def run(context, function=function):
            return gradient(lambda x: Square.apply(function(x)), values().nan_to_num(), context)

        assert torch.equal(run(at.Compress(nn.Identity(), "gist")), run(torch.enable_grad()))


@pytest.mark.parametrize("function", [
    nn.Hardtanh(0.0, math.inf), nn.Hardtanh(-math.inf, 1.0), nn.Hardtanh(-math.inf, math.inf),
    nn.Hardtanh(2.0, math.inf),
    lambda x: x.clamp(-math.inf, math.inf), lambda x: x.clamp(0.5, math.inf), lambda x: x.clamp(-math.inf)])
def test_bounds_may_be_infinite(function):
    x = values().nan_to_num(1)
    for preset in "gist", "sfpr":
        exact = gradient(function, x, torch.enable_grad())
        assert torch.equal(gradient(function, x, at.Compress(nn.Identity(), preset)), exact) and exact.any()


@pytest.mark.parametrize("bounds", [{"min": torch.zeros(4, 1, 1)}, {"max": torch.ones(1)},
                                    {"min": torch.tensor(-0.5), "max": torch.tensor(0.5)}])
def test_bounds_may_be_tensors(bounds):
    x = torch.randn(2, 4, 32, 32)
    bounds = {name: bound.to(x.device) for name, bound in bounds.items()}
    function = lambda x: torch.sin(torch.clamp(x, **bounds))  # noqa: E731
    exact = gradient(function, x, torch.enable_grad())
    result = gradient(function, x, at.Compress(nn.Identity(), "sfpr"))
    assert (result - exact).norm() < 0.05 * exact.norm()


def test_a_negative_view_has_its_own_bits():
    x = values().nan_to_num(1)
    function = lambda x: F.leaky_relu(torch._neg_view(x), 0.2)  # noqa: E731
    assert torch.equal(gradient(function, x, at.Compress(nn.Identity(), "sfpr")),
                       gradient(function, x, torch.enable_grad()))


def test_another_class_runs_its_own_functions():
    class Own:
        def __init__(self, values):
            self.values = values

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return args[0].values.sin()  # which saves values

    x = torch.randn(2, 4, 32, 32)
    function = lambda x: F.relu(Own(x))  # noqa: E731
    exact = gradient(function, x, torch.enable_grad())
    assert (gradient(function, x, at.Compress(nn.Identity(), "sfpr")) - exact).norm() < 0.05 * exact.norm()


def test_sizes_of_a_pooling_may_be_numbers_of_numpy():
    pool = nn.MaxPool2d(np.int64(2), np.int32(2))
    x = torch.randn(2, 4, 64, 64)
    results = []
    for context in at.Compress(pool, "gist"), torch.enable_grad():
        y = x.clone().requires_grad_()
        with context:
            loss = pool(y * 1).square().sum()
        loss.backward()
        results.append(y.grad)
    assert torch.equal(*results)


def test_where_a_pooling_saves_no_places_it_needs_its_values(monkeypatch):
    monkeypatch.setattr(operations, "INDEXED", ())
    compress = at.Compress(nn.Identity(), "cdma")
    x = torch.randn(2, 4, 64, 64, requires_grad=True)
    with compress:
        y = F.max_pool2d(torch.relu(x * 1), 2)
    y.sum().backward()
    assert "nothing" not in {row.mode for row in compress.report().rows}


def test_places_are_found_in_parts(monkeypatch):
    monkeypatch.setattr("actcodec.torch.needs.part_of", lambda x: 700)  # of planes of 240 places: two at a time
    x = torch.randn(3, 5, 24, 40)
    _, index = F.max_pool2d(x, 2, return_indices=True)
    need = Places((24, 40), (2, 2), (2, 2), (0, 0), (1, 1))
    assert torch.equal(need.decode(None, need.encode(None, index)), index)


def test_a_dropout_of_float64_loses_nothing_without_a_loss():
    x = torch.randn(64, 128, dtype=torch.float64, requires_grad=True)
    with at.Compress(nn.Identity(), "cdma"):
        y = F.dropout(x, 0.3)
    y.sum().backward()
    assert x.grad.max().item() == 1 / (1 - 0.3)
