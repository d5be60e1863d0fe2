"""The paper's arithmetic against PyTorch's pooling and interpolation, SciPy's DCT, and what the paper prints."""

from itertools import product

import numpy as np
import pytest
import scipy.fft

from actcodec.golden.division import memory, paper
from tb.judges.division import oracle

torch = pytest.importorskip("torch")
functional = torch.nn.functional

POOLS = {3: functional.avg_pool1d, 4: functional.avg_pool2d, 5: functional.avg_pool3d}
EDGES = (7, 8, 14, 28, 32, 56, 112, 224)


def reference(x, block, bits, uniform):
    """Algorithm 1, lines 3 to 5, and equation 10."""
    x = torch.from_numpy(np.asarray(x, np.float64))
    planes = x[:, None] if x.ndim == 2 else x
    lfc = POOLS[planes.ndim](planes, tuple(min(block, edge) for edge in planes.shape[2:])).bfloat16().double()
    smooth = functional.interpolate(lfc, planes.shape[2:], mode="nearest")
    hfc, axes = planes - smooth, tuple(range(2, planes.ndim))
    low, high = hfc.amin(axes, keepdim=True), hfc.amax(axes, keepdim=True)
    step = (high - low) / (2**bits - 1)
    code = torch.where(step > 0, (hfc - low) / step, 0)
    code = torch.floor(code + torch.from_numpy(uniform).reshape(planes.shape)).clamp(max=2**bits - 1)
    return lfc.numpy(), code.numpy().reshape(x.shape), (smooth + low + step * code).numpy().reshape(x.shape)


@pytest.mark.parametrize("shape", [(2, 3, 16, 24), (2, 3, 32, 8), (1, 2, 28, 28), (2, 2, 7, 7), (1, 3, 12, 20), (3, 50),
                                   (4, 6), (2, 3, 40), (1, 2, 8, 16, 8), (1, 1, 6, 9, 10)], ids=str)  # fmt: skip
def test_arithmetic_is_pytorchs(shape):
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    x[:1, :1] = 1.5  # a plane of one value
    for block, bits in ((4, 2), (8, 1), (8, 2), (8, 8), (12, 4), (18, 2), (64, 2)):
        cached = paper.compress(x, block, bits, np.random.default_rng(bits))
        lfc, codes, back = reference(x, block, bits, np.random.default_rng(bits).random(x.size))
        assert np.array_equal(cached.lfc, lfc), (block, bits)
        assert np.array_equal(cached.codes, codes)
        assert np.allclose(paper.decompress(cached), back, rtol=0, atol=1e-12)


@pytest.mark.parametrize("bits", [1, 2, 8])
def test_rounding_is_unbiased(bits):
    x = np.random.default_rng(1).standard_normal((2, 2, 8, 8))
    random = np.random.default_rng(2)
    results = np.array([paper.decompress(paper.compress(x, 4, bits, random)) for _ in range(400)])
    step = paper.compress(x, 4, bits).step
    assert np.all(np.abs(results.mean(0) - x) <= 5 * step / 2 / np.sqrt(400))
    assert np.abs((results.mean(0) - x) / step).mean() < 0.5 / np.sqrt(400)
    assert np.all(np.abs(results - x) < step)


def test_error_is_that_of_the_released_arithmetic(bits=2):
    """fdmp.py and its kernel: float32, scale and minimum cached in bfloat16, rounding with noise in (-0.5, 0.5]."""
    random = np.random.default_rng(0)
    for name, x in oracle.sample().items():
        t = torch.from_numpy(x)
        smooth = functional.interpolate(functional.avg_pool2d(t, 8).bfloat16().float(), t.shape[2:], mode="nearest")
        hfc = t - smooth
        low, high = hfc.amin((2, 3), keepdim=True), hfc.amax((2, 3), keepdim=True)
        scale = (2**bits - 1) / (high - low + 2e-6)
        noise = torch.from_numpy(0.5 - random.random(x.shape, np.float32))
        code = torch.round(torch.clamp((hfc - low) * scale + noise, min=0))
        back = smooth + code / scale.bfloat16().float() + low.bfloat16().float()
        theirs = (back - t).norm() / t.norm()
        ours = np.linalg.norm(paper.decompress(paper.compress(x, 8, bits, random)) - x) / np.linalg.norm(x)
        assert abs(ours / float(theirs) - 1) < 0.02, name


def test_theorem_3a_gives_the_ratios_of_the_contract():
    assert [round(paper.theorem_cnn(n), 2) for n in EDGES] == [10.35, 11.08, 12.36, 12.90, 12.94, 13.04, 13.08, 13.09]
    tensor = [round(4 * n * n / paper.cached_bytes((1, 1, n, n)), 2) for n in EDGES]
    assert tensor == [10.74, 11.64, 13.26, 13.97, 14.03, 14.16, 14.21, 14.22]


def test_theorems_are_the_bytes_of_a_block_of_layers():
    """Appendix P: (two tensors of 4 bytes and a byte of ReLU) over what is cached of them and a bit."""
    for n, block, bits in product((1, 3, 7, 8, 28, 100), (1, 4, 8, 18), (1, 2, 4, 8)):
        expected = 9 * n * n / (2 * paper.cached_bytes((1, 1, n, n), block, bits) + n * n / 8)
        assert paper.theorem_cnn(n, block, bits) == pytest.approx(expected, rel=1e-14)
        expected = 5 * n / (paper.cached_bytes((1, n), block, bits) + n / 8)
        assert paper.theorem_mlp(n, block, bits) == pytest.approx(expected, rel=1e-14)


def test_shares_of_section_4():
    """LFC is 0.8 % of the map; HFC with its 4 bytes is 8.3 % at N = 7."""
    lfc = paper.cached_bytes((1, 1, 64, 64)) - 4 - 64 * 64 / 4
    assert round(100 * lfc / (4 * 64 * 64), 1) == 0.8
    assert round(100 * (paper.cached_bytes((1, 1, 7, 7)) - 2) / (4 * 49), 1) == 8.3


def test_ratios_of_the_sample_are_those_of_the_contract():
    """Section 9.2, by the paper's accounting."""
    shapes = [x.shape for x in oracle.sample().values()]
    ratios = {block: [round(sum(4 * np.prod(shape) for shape in shapes) /
                            sum(paper.cached_bytes(shape, block, bits) for shape in shapes), 2)
                      for bits in (1, 2, 3, 4, 8)] for block in (4, 8, 16)}
    assert ratios == {4: [15.18, 10.29, 7.79, 6.26, 3.51], 8: [23.55, 13.57, 9.53, 7.34, 3.83],
                      16: [26.76, 14.57, 10.01, 7.63, 3.90]}


@pytest.mark.parametrize("shape", [(2, 3, 32, 32), (2, 3, 8, 12), (3, 50), (1, 4, 9), (1, 2, 6, 7, 8)], ids=str)
@pytest.mark.parametrize("share", [0.1, 0.2, 0.5, 1])
def test_spectra_are_those_of_scipys_dct(shape, share):
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    planes = x[:, None] if x.ndim == 2 else x
    axes = tuple(range(2, planes.ndim))
    power = scipy.fft.dctn(planes.astype(float), axes=axes, norm="ortho") ** 2
    low = power[(..., *(slice(max(1, round(share * n))) for n in planes.shape[2:]))].sum(axes)
    below, above = paper.spectrum(x, share)
    assert below.shape == above.shape == planes.shape[:2]
    assert np.allclose(below, np.sqrt(low)) and np.allclose(above, np.sqrt(np.abs(power.sum(axes) - low)), atol=1e-6)
    assert np.allclose(below**2 + above**2, (planes.astype(float) ** 2).sum(axes))  # Parseval


def test_the_premise_holds_on_the_sample_for_half_of_the_edge_only():
    """Figure 4 takes W / N = 0.5, table 5 0.1 and 0.2: lambda^L over lambda^H, means over the planes of each tensor."""
    ratio = {share: [np.divide(*(part.mean() for part in paper.spectrum(x, share))) for x in oracle.sample().values()]
             for share in (0.1, 0.2, 0.5)}
    assert min(ratio[0.5]) > 1 and min(ratio[0.1]) < 0.7
    assert all(a < b < c for a, b, c in zip(*ratio.values(), strict=True))


def test_counterpart_of_theorem_3a_gives_the_ratios_of_the_contract():
    assert [round(memory.block_ratio(n), 2) for n in EDGES] == [10.59, 12.52, 12.92, 13.57, 13.63, 13.69, 13.71, 13.71]
    tensor = [round(8 * 4 * n * n / memory.stored((1, 8, n, n)), 2) for n in EDGES]
    assert tensor == [11.04, 13.47, 14.00, 14.86, 14.95, 15.02, 15.05, 15.06]
    whole = [round(4 * 64 * 64 / memory.codec.size((1, 1, 64, 64), bits), 2) for bits in (1, 2, 3, 4)]
    assert whole == [28.44, 15.06, 10.24, 7.76]


@pytest.mark.parametrize(("call", "text"), [
    (lambda x: paper.compress(x, 0), "block is 0, legal are the integers 1 to"),
    (lambda x: paper.compress(x, 2.0), "block is 2.0"), (lambda x: paper.compress(x, True), "block is True"),
    (lambda x: paper.compress(x, 8, 0), "bits is 0, legal are the integers 1 to 8"),
    (lambda x: paper.compress(x, 8, 9), "bits is 9"), (lambda x: paper.theorem_cnn(7, 8, 0), "bits is 0"),
    (lambda x: paper.theorem_mlp(7, -1), "block is -1"), (lambda x: paper.compress(x[0, 0, 0]), "shape"),
    (lambda x: paper.compress(x[None, None]), "shape"), (lambda x: paper.compress(x[:0]), "shape"),
    (lambda x: paper.spectrum(x, 0), "share is 0"), (lambda x: paper.spectrum(x, 1.1), "share is 1.1"),
    (lambda x: paper.cached_bytes((8,)), "shape")])
def test_wrong_parameters_are_refused(call, text):
    with pytest.raises(ValueError, match=text):
        call(np.ones((1, 2, 8, 8)))
