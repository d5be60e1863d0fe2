"""Lanes on memory that serves all of them in order: every class of row, mode and direction ends, every byte right.

Four lanes take a third of the sweep, three a fifth, or with COMET all of it. ``make soak SWEEP=1`` runs the whole, with
other numbers of lanes, too.
"""

import pytest

from actcodec.sim.accelerator import Accelerator
from tb.soak import sweep
from tb.soak.chance import JPEG_ACT, STREAMS


@pytest.mark.parametrize("kind", sweep.KINDS)
@pytest.mark.parametrize(("cdus", "modes", "every"), [
    (4, JPEG_ACT, 3), (3, JPEG_ACT, 5), (3, STREAMS, 1)])
def test_everything_ends_on_memory_that_keeps_the_order_of_all_lanes(cdus, modes, every, kind):
    broken = sweep.sweep(Accelerator(cdus, modes), kind, every, first=kind == "crossbar")
    assert not broken, "\n".join(broken)
