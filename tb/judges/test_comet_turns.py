"""The order on the wire of several lanes with byte streams (docs/architecture.md, "A lane for byte
streams"): how deep a lane's FIFO has to be, by exhaustion, and what the waiting costs on the sample."""

import itertools
from functools import cache

import numpy as np
import pytest

from actcodec import demo
from actcodec.codecs.models import comet as model
from actcodec.golden.comet import huffman, interleave, lorenzo, prequantise

PACKET, MOST = 128, 8  # bytes of a beat, and of a step


# -------------------------------------------------------------------------------------------------- who waits for whom
def locks_up(unit, most, room, lanes, decompress):
    """Whether lanes and the wire can come to stand still. In each turn ``unit`` bytes of one lane pass, from or to its
    FIFO of ``room`` bytes; a lane takes, or gives, 0 to ``most`` bytes in a step, as its data want. Lanes and wire move
    in any order, which is as memory and the stream let them."""
    start = (0, (0,) * lanes, (0,) * lanes)  # whose turn it is; bytes in the FIFOs; bytes of each one's next step
    seen, new = {start}, [start]
    sign = 1 if decompress else -1  # what the wire does to a FIFO
    while new:
        turn, level, wants = new.pop()
        successors = set()
        passed = level[turn] + sign * unit
        if 0 <= passed <= room:
            successors.add(((turn + 1) % lanes, (*level[:turn], passed, *level[turn + 1 :]), wants))
        for lane, want in enumerate(wants):
            left = level[lane] - sign * want
            if 0 <= left <= room:
                after = (*level[:lane], left, *level[lane + 1 :])
                successors |= {(turn, after, (*wants[:lane], n, *wants[lane + 1 :])) for n in range(most + 1)}
        if not successors:
            return True
        new += successors - seen
        seen |= successors
    assert len(seen) > unit * most  # it has been anywhere
    return False


@pytest.mark.parametrize("decompress", [False, True])
@pytest.mark.parametrize(("unit", "most", "lanes"), [(2, 3, 2), (3, 2, 2), (4, 3, 2), (5, 3, 2), (1, 3, 2), (2, 2, 3)])
def test_a_fifo_needs_a_turn_and_a_step_less_a_byte(unit, most, lanes, decompress):
    """A lane stands still with less than a turn, or more room than a step wants: never both with that much."""
    enough = unit + most - 1
    for room in range(max(unit, most), enough + 3):
        assert locks_up(unit, most, room, lanes, decompress) == (room < enough), room


# ------------------------------------------------------------------------------------------------------- what it costs
def in_turn(group, cdus):
    """The CDU that a group belongs to."""
    return group % cdus


def turned(group, cdus):
    """What would be better: the round of groups turned by a CDU each time."""
    return (group + group // cdus) % cdus


def demands(x, l2, cdus, deal=in_turn):
    """Bytes of each step of each CDU's stream."""
    eb, config, book = model.parameters(x, None, None, l2, "auto")
    q, outliers = prequantise.quantize(x, prequantise.step(eb))
    order, owner = lorenzo.order(q.shape, config.tiled), deal(lorenzo.groups(q.shape, config.tiled), cdus)
    u, outliers, x = lorenzo.residuals(q, q.shape, config), outliers.reshape(-1)[order], np.reshape(x, -1)[order]
    lanes = []
    for cdu in range(cdus):
        own = owner == cdu
        _, lengths = huffman.steps(u[own], outliers[own], x[own], book)
        lanes.append([MOST, *interleave.demands(lengths).sum(axis=1).tolist()])
    return lanes


def cycles(lanes, unit, room, decompress):
    """Cycles for all lanes: a step a cycle in each, up to a packet a cycle on the wire, and none of it waits for
    anything else."""
    left, level, at = [sum(lane) for lane in lanes], [0] * len(lanes), [0] * len(lanes)
    turns = itertools.cycle(range(len(lanes)))
    turn = next(turns)
    for cycle in itertools.count():
        running = [k for k, lane in enumerate(lanes) if at[k] < len(lane)]
        if not running and not any(left):
            return cycle
        for _ in range(PACKET // unit):
            while any(left) and not left[turn]:  # one that has ended is left out
                turn = next(turns)
            size = min(unit, left[turn])
            passed = level[turn] + (size if decompress else -size)
            if not size or not 0 <= passed <= room:
                break
            level[turn], left[turn] = passed, left[turn] - size
            turn = next(turns)
        for k in running:
            after = level[k] - lanes[k][at[k]] * (1 if decompress else -1)
            if 0 <= after <= room:
                level[k], at[k] = after, at[k] + 1


@cache
def sample(cdus, deal):
    """What `demands` says of all tensors of the sample, and the cycles of each one's longest lane alone."""
    lanes = [demands(x, 0.0635, cdus, deal) for x in demo.sample().values()]
    return lanes, sum(max(map(len, one)) for one in lanes)


@pytest.mark.parametrize(("unit", "room", "costs"), [(128, 136, 0.085), (128, 256, 0.050), (128, 512, 0.027),
                                                     (8, 64, 0.074), (8, 128, 0.051), (8, 256, 0.035),
                                                     (8, 512, 0.020), (8, 1024, 0.001)])
@pytest.mark.parametrize("decompress", [False, True])
def test_what_waiting_costs_four_cdus_is_documented(unit, room, costs, decompress):
    lanes, alone = sample(4, in_turn)
    total = sum(cycles(one, unit, room, decompress) for one in lanes)
    assert total / alone - 1 == pytest.approx(costs, abs=0.004)


@pytest.mark.parametrize(("room", "costs"), [(64, 0.171), (128, 0.134), (256, 0.107), (512, 0.053), (1024, 0.009)])
def test_what_waiting_costs_eight_cdus_is_documented(room, costs):
    lanes, alone = sample(8, in_turn)
    total = sum(cycles(one, 8, room, False) for one in lanes)
    assert total / alone - 1 == pytest.approx(costs, abs=0.001)


@pytest.mark.parametrize(("cdus", "room", "costs"), [(4, 128, 0.013), (4, 256, 0.0045), (8, 128, 0.047),
                                                     (8, 256, 0.025)])
def test_what_another_dealing_of_groups_would_cost_is_documented(cdus, room, costs):
    """The waiting is not the FIFO's doing, but that a lane has the same part of every channel."""
    lanes, alone = sample(cdus, turned)
    total = sum(cycles(one, 8, room, False) for one in lanes)
    assert total / alone - 1 == pytest.approx(costs, abs=0.001)
