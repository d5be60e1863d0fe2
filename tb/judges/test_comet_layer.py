"""A layer's tensors one after the other: books of the tensor before cost hardly more than each one's own."""

import numpy as np
import pytest

from actcodec import demo
from actcodec.golden.comet import comet
from actcodec.golden.comet.book import build, spread
from actcodec.golden.comet.layer import Layer
from actcodec.golden.comet.lorenzo import CONFIGS
from tb.judges.test_comet import checked

TENSORS = demo.sample()


def bound(x, error=0.0635):
    """Gives about that relative L2 error."""
    return error * float(np.sqrt(3 * np.mean(np.square(x, dtype=np.float64))))


@pytest.mark.parametrize("cdus", [1, 4])
def test_the_last_tensors_book_costs_hardly_more(cdus):
    """Two images at a time: 0.7 % in the mean, 2.2 % at most."""
    more = []
    for whole in TENSORS.values():
        halves, layer, eb = np.split(whole, 2), Layer(), bound(whole)
        for k, x in enumerate([*halves, halves[0]]):
            result = layer.compress(x, eb, cdus)
            assert layer.fresh == (k == 0)
            checked(x, result, eb)
            own = comet.compress(x, eb, result.config, cdus=cdus).payload_bytes
            more.append(result.payload_bytes / own)
            assert k or result.payload_bytes == own
    assert max(more) <= 1.025
    assert np.mean([ratio for ratio in more if ratio != 1]) <= 1.01


def test_the_book_is_made_of_one_value_in_eight():
    x = np.zeros((1, 64), np.float32)
    x[0, ::9] = 3  # the values of lane (round mod 8) of each round, of which the other book sees nothing else
    bins = np.zeros(32)
    bins[3] = 8
    layer = Layer()
    first = layer.compress(x, 0.5)
    assert layer.config == first.config == CONFIGS["none+"]
    assert layer.book == build(spread(bins)) != first.book


def test_a_new_step_or_other_shapes_are_looked_at_again():
    x, layer = TENSORS["conv0"], Layer(again=3)
    fresh = []
    narrow, other = (np.ascontiguousarray(x[:, :channels, :, :5]) for channels in (16, 2))
    for tensor, eb in [(x, 0.1)] * 7 + [(x, 0.11), (x, 0.11), (narrow, 0.11), (other, 0.11), (x, 0.11)]:
        checked(tensor, layer.compress(tensor, eb), eb)
        fresh.append(layer.fresh)
    assert fresh == [True, False, False] * 2 + [True] + [True, False] + [True, False, True]


@pytest.mark.parametrize("again", [0, -1])
def test_again_has_to_be_positive(again):
    with pytest.raises(ValueError, match="again must be at least 1"):
        Layer(again)
