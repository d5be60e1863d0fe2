"""Max pooling against PyTorch's, forward and backward, and the order of additions against a plain sum in float32."""

from pathlib import Path

import numpy as np
import pytest

import actcodec
from actcodec.golden.gist import maxpool

torch = pytest.importorskip("torch")
pool = torch.nn.functional.max_pool2d

LEGAL = [(k, s, p) for k in (2, 3) for s in (1, 2, 3) for p in (0, 1)]
SHAPES = [(2, 3, 7, 13), (1, 1, 3, 3), (1, 2, 2, 5), (3, 1, 12, 2), (1, 4, 28, 28), (1, 1, 9, 1), (1, 1, 1, 9),
          (1, 1, 1, 1)]  # fmt: skip
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e-45, -1e-45, 3e38], np.float32)
ACTIVATIONS = Path(actcodec.__file__).parent / "data" / "resnet20.npz"


def fits(shape, k, p):
    return min(shape[-2:]) + 2 * p >= k


CASES = [(shape, *pooling) for shape in SHAPES for pooling in LEGAL if fits(shape, pooling[0], pooling[2])]


def flat_index(place, height, width, k, s, p):
    """PyTorch's index in the plane."""
    oy, ox = np.indices(place.shape[-2:])
    return (oy * s - p + place // k) * width + ox * s - p + place % k


def stimuli(random, shape):
    yield random.normal(size=shape).astype(np.float32)
    yield random.integers(-2, 3, shape).astype(np.float32)  # ties
    yield np.maximum(random.normal(size=shape), 0).astype(np.float32)
    yield random.choice(SPECIAL, shape)
    yield random.choice(SPECIAL[:4], shape)
    yield np.full(shape, -np.inf, np.float32)


def bits(x):
    return np.asarray(x, np.float32).view(np.uint32)


def agree_forward(x, k, s, p):
    y, place = maxpool.forward(x, k, s, p)
    expected, index = pool(torch.from_numpy(x), k, s, p, return_indices=True)
    assert np.array_equal(bits(y), bits(expected.numpy()))
    assert np.array_equal(flat_index(place.astype(int), *x.shape[-2:], k, s, p), index.numpy())
    assert maxpool.legal(place, *x.shape[-2:], k, s, p).all()
    return y, place


@pytest.mark.parametrize(("shape", "k", "s", "p"), CASES)
def test_outputs_and_places_are_pytorchs(shape, k, s, p):
    random = np.random.default_rng(0)
    for x in stimuli(random, shape):
        agree_forward(x, k, s, p)


@pytest.mark.parametrize(("shape", "k", "s", "p"), CASES)
def test_gradients_are_pytorchs_where_every_sum_is_exact(shape, k, s, p):
    random = np.random.default_rng(1)
    for x in list(stimuli(random, shape))[:3]:
        y, place = agree_forward(x, k, s, p)
        dy = random.integers(-1000, 1001, y.shape).astype(np.float32)
        t = torch.from_numpy(x).requires_grad_()
        pool(t, k, s, p).backward(torch.from_numpy(dy))
        assert np.array_equal(bits(maxpool.backward(dy, place, *shape[-2:], k, s, p)), bits(t.grad.numpy()))


def in_raster_order(dy, index, plane):
    """NumPy's unbuffered addition: one after the other, in the order in which they stand."""
    dx = np.zeros((*dy.shape[:-2], plane), np.float32).reshape(-1, plane)
    rows = np.arange(len(dx))[:, None].repeat(dy.shape[-2] * dy.shape[-1], 1)
    np.add.at(dx, (rows, index.reshape(rows.shape)), dy.reshape(rows.shape))
    return dx


@pytest.mark.parametrize(("shape", "k", "s", "p"), CASES)
def test_gradients_are_added_in_raster_order_of_the_outputs(shape, k, s, p):
    random = np.random.default_rng(2)
    for x in list(stimuli(random, shape))[:3]:
        y, place = maxpool.forward(x, k, s, p)
        dy = (random.normal(size=y.shape) * 2.0 ** random.integers(-20, 20, y.shape)).astype(np.float32)
        index = flat_index(place.astype(int), *shape[-2:], k, s, p)
        expected = in_raster_order(dy, index, shape[-2] * shape[-1])
        got = maxpool.backward(dy, place, *shape[-2:], k, s, p)
        assert np.array_equal(bits(got).reshape(expected.shape), bits(expected))
        t = torch.from_numpy(x).requires_grad_()
        pool(t, k, s, p).backward(torch.from_numpy(dy))  # one thread a plane, and the same order within
        assert np.array_equal(bits(got), bits(t.grad.numpy()))


@pytest.mark.parametrize(("gradients", "total"), [((1e8, -1e8, 1), 1), ((1, 1e8, -1e8), 0)])
def test_the_order_of_additions_can_be_seen(gradients, total):
    x = np.zeros((3, 5), np.float32)
    x[1, 2] = 1  # in all of three windows
    _, place = maxpool.forward(x, 3, 1, 0)
    assert maxpool.backward(np.array([gradients]), place, 3, 5, 3, 1, 0)[1, 2] == total


def test_real_activations():
    with np.load(ACTIVATIONS) as file:
        for name in file.files:
            x = file[name].astype(np.float32)
            if x.ndim == 4:
                for k, s, p in LEGAL:
                    if fits(x.shape, k, p):
                        agree_forward(x, k, s, p)


def test_subnormal_gradients_count_as_zero_and_bad_places_are_dropped():
    dy = np.array([[1e-45, -1e-45, 2.0**-126, -(2.0**-126)]], np.float32)
    place = np.array([[0, 0, 0, 1]])
    dx = maxpool.backward(dy, place, 2, 8, 2, 2, 0)
    assert bits(dx[0]).tolist() == [0, 0, 0, 0, 1 << 23, 0, 0, 0x8080_0000] and not dx[1].any()
    assert maxpool.legal(place, 2, 8, 2, 2, 0).all()
    for bad in (4, 9, 15):
        assert not maxpool.backward(dy, place * 0 + bad, 2, 8, 2, 2, 0).any()
        assert not maxpool.legal(place * 0 + bad, 2, 8, 2, 2, 0).any()
    # The window at the corner of a padded plane has only its last place in the plane.
    assert [int(maxpool.legal(np.array([[n]]), 1, 1, 2, 2, 1)[0, 0]) for n in range(5)] == [0, 0, 0, 1, 0]


@pytest.mark.parametrize("count", [0, 1, 2, 7, 8])
def test_map_is_two_places_a_byte_low_half_first(count):
    place = np.random.default_rng(count).integers(0, 9, count)
    packed = maxpool.pack(place)
    assert packed.tolist() == [int(a) + 16 * int(b) for a, b in zip(place[0::2], [*place[1::2], 0], strict=False)]
    assert maxpool.unpack(packed, count).tolist() == place.tolist()
    with pytest.raises(ValueError, match="bytes"):
        maxpool.unpack(packed, count + 2)


@pytest.mark.parametrize(("arguments", "what"), [((9, 4, 1, 0), "k is 4"), ((9, 3, 0, 0), "stride is 0"),
                                                 ((9, 3, 1, 2), "padding is 2"), ((1, 2, 1, 0), "no window"),
                                                 ((0, 2, 1, 1), "no window")])
def test_illegal_poolings_are_refused(arguments, what):
    with pytest.raises(ValueError, match=what):
        maxpool.size(*arguments)


def test_a_map_of_anything_else_is_refused():
    for place in ([16], [3, 300], [-1, 2]):
        with pytest.raises(ValueError, match="legal are 0 to 15"):
            maxpool.pack(np.array(place))
    for packed, count, what in (np.array([257]), 2, "content is int64"), (np.zeros(0, np.uint8), -1, "count is -1"):
        with pytest.raises(ValueError, match=what):
            maxpool.unpack(packed, count)


@pytest.mark.parametrize("gradients, places", [((1, 1), (2, 4)), ((2, 4), (1, 4)), ((2, 4), (4,)), ((4, 2), (4, 2)),
                                               ((8,), (8,)), ((3, 2, 4), (2, 4))])
def test_gradients_and_places_of_another_shape_are_refused(gradients, places):
    with pytest.raises(ValueError, match=r"the outputs of a map \(2, 4\)"):
        maxpool.backward(np.ones(gradients), np.zeros(places, np.uint8), 4, 8, 2, 2, 0)
