"""Bench of the DCT: RTL against the golden model, bit for bit, in both directions."""

import pytest

from rtl.jpegact.dct import Dct
from tb.harness import simulate


@pytest.mark.parametrize("direction", ["both", "forward", "inverse"])
def test_dct(direction):
    simulate(Dct(direction), __file__, direction=direction)


@pytest.mark.parametrize("value", ["backward", None, 0])
def test_unknown_direction_is_refused(value):
    with pytest.raises(ValueError, match="direction"):
        Dct(value)
