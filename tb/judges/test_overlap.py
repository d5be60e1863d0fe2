"""The schedule of a training step against closed forms, and against a simulation of events."""

import heapq
import math
from itertools import pairwise

import numpy as np
import pytest

from actcodec.golden.common import footprint, networks, overlap

GRAPHS = networks.NETWORKS | networks.PYTORCH
SEEDS = range(40)


def drawn(seed):
    """Seconds of some layers' passes and moves, many of them 0, and how far moves are ahead."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 12))
    passes = rng.exponential(1, (2, n)) * (rng.random((2, n)) < 0.9)
    moves = rng.exponential(rng.choice([0.1, 1, 5]), (2, n)) * (rng.random(n) < rng.choice([0.3, 0.7, 1]))
    return *map(list, (*passes, *moves)), int(rng.integers(1, 5))


def simulated(forward, backward, out, back, ahead):
    """Seconds of a step, by events: a device and an engine, each of which runs what is first in its own list as soon
    as all that it depends on has ended."""
    n = len(forward)
    out_layers, back_layers = [i for i in range(n) if out[i]], [i for i in reversed(range(n)) if back[i]]
    device = [("F", i) for i in range(n)] + [("B", i) for i in reversed(range(n))]
    engine = [("O", i) for i in out_layers] + [("R", i) for i in back_layers]
    length = {("F", i): forward[i] for i in range(n)} | {("B", i): backward[i] for i in range(n)}
    length |= {("O", i): out[i] for i in range(n)} | {("R", i): back[i] for i in range(n)}
    ends, begins = {job: set() for job in length}, {job: set() for job in length}
    for k, i in enumerate(out_layers):
        begins["O", i].add(("F", i))
        if k >= ahead:
            ends["F", i].add(("O", out_layers[k - ahead]))
    for k, i in enumerate(back_layers):
        ends["B", i].add(("R", i))
        (begins if k >= ahead else ends)["R", i].add(("B", back_layers[k - ahead]) if k >= ahead else ("F", n - 1))
    begun, done, events, now, busy = set(), set(), [], 0.0, {id(device): False, id(engine): False}
    while device or engine or events:
        moved = True
        while moved:
            moved = False
            for jobs in (device, engine):
                if jobs and not busy[id(jobs)] and ends[jobs[0]] <= done and begins[jobs[0]] <= begun:
                    job = jobs.pop(0)
                    begun.add(job)
                    busy[id(jobs)] = moved = True
                    heapq.heappush(events, (now + length[job], job, id(jobs)))
        now, job, where = heapq.heappop(events)
        done.add(job)
        busy[where] = False
    return now


@pytest.mark.parametrize("seed", SEEDS)
def test_step_is_that_of_a_simulation_of_events(seed):
    *parts, ahead = drawn(seed)
    assert overlap.schedule(*parts, ahead).seconds == pytest.approx(simulated(*parts, ahead), abs=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_resources_do_one_thing_at_a_time_and_all_of_it(seed):
    forward, backward, out, back, ahead = drawn(seed)
    step = overlap.schedule(forward, backward, out, back, ahead)
    for spans in ((*step.forward, *step.backward), (*step.out, *step.back)):
        assert all(a.end <= b.start + 1e-12 for a, b in pairwise(spans))
    for spans, seconds in ((step.forward, forward), (step.backward, backward), (step.out, out), (step.back, back)):
        length = dict.fromkeys(range(len(forward)), 0) | {i: end - start for i, start, end in spans}
        assert list(length.values()) == pytest.approx(seconds, abs=1e-12)
    assert step.computing + sum(step.waits) == pytest.approx(step.seconds)
    assert step.moving == pytest.approx(sum(out) + sum(back), abs=1e-12)
    assert step.seconds >= max(step.computing, step.moving) - 1e-12
    arrived = {span.layer: span.end for span in step.back}
    assert all(arrived.get(i, 0) <= start + 1e-12 for i, start, _ in step.backward)


@pytest.mark.parametrize("seed", SEEDS)
def test_slower_moves_never_shorten_a_step_and_more_memory_never_lengthens_it(seed):
    forward, backward, out, back, ahead = drawn(seed)
    steps = [overlap.schedule(forward, backward, [f * x for x in out], [f * x for x in back], ahead).seconds
             for f in (0, 0.1, 0.5, 1, 2, 10)]
    assert steps == sorted(steps)
    assert steps[0] == pytest.approx(sum(forward) + sum(backward))
    steps = [overlap.schedule(forward, backward, out, back, one).seconds for one in range(1, 12)]
    assert all(a >= b - 1e-12 for a, b in pairwise(steps))


@pytest.mark.parametrize("seed", SEEDS)
def test_vdnns_schedule_is_a_sum_of_maxima(seed):
    """One layer ahead, every layer with moves: what runs beside a move waits for it, the first return for itself."""
    forward, backward, *_ = drawn(seed)
    rng = np.random.default_rng(seed)
    out, back = rng.exponential(1, (2, len(forward))).tolist()
    step = overlap.schedule(forward, backward, out, back)
    outside = sum(map(max, forward[:-1], out)) + max(forward[-1], out[-1])
    inside = back[-1] + sum(map(max, backward[1:], back)) + backward[0]
    assert step.forward_seconds == pytest.approx(sum(map(max, forward[:-1], out)) + forward[-1])
    assert step.seconds == pytest.approx(outside + inside)


def test_one_layer():
    """Out beside the forward pass, back after it."""
    assert overlap.schedule([3], [5], [2], [7]).seconds == 3 + 7 + 5
    assert overlap.schedule([3], [5], [4], [7]).seconds == 4 + 7 + 5
    assert overlap.schedule([3], [5], [0], [0]).seconds == 3 + 5


@pytest.mark.parametrize("layers", [2, 9])
def test_equal_layers(layers):
    """Bound by computation, all but the first return is hidden; bound by the link, all but the last backward pass."""
    quick = overlap.schedule([2] * layers, [4] * layers, [1] * layers, [1] * layers)
    assert quick.seconds == 6 * layers + 1
    slow = overlap.schedule([2] * layers, [4] * layers, [5] * layers, [5] * layers)
    assert slow.seconds == 10 * layers + 4


def test_memory_without_bound_leaves_the_forward_pass_alone():
    step = overlap.schedule([1, 1, 1], [1, 1, 1], [5, 5, 5], [5, 5, 5], ahead=9)
    assert step.forward_seconds == 3
    assert step.seconds == 30 + 1


@pytest.mark.parametrize(("parts", "text"), [
    (([], [], [], []), "layers are 0"), (([1], [1], [1, 1], [1]), "layers are 1, 1, 2, 1"),
    (([1], [1], [-1], [1]), "seconds are -1"), (([1], [1], [1], [1], 0), "ahead is 0")])
def test_wrong_steps_are_refused(parts, text):
    with pytest.raises(ValueError, match=text):
        overlap.schedule(*parts)


@pytest.mark.parametrize("function", [overlap.layers, overlap.tensors])
def test_wrong_minibatch_is_refused(function):
    with pytest.raises(ValueError, match="minibatch is 0"):
        function(networks.alexnet(), 0)


@pytest.mark.parametrize(("name", "macs"), [  # published numbers for an image of 224 x 224, in units of 10^9
    ("vgg16", 15.47), ("resnet-50", 4.09), ("wrn-50-2", 11.40), ("inception-v1", 1.58)])
def test_operations_are_the_published_number(name, macs):
    layers = overlap.layers(GRAPHS[name](), 3)
    assert sum(layer.forward.flops for layer in layers) / 2 / 3e9 == pytest.approx(macs, rel=0.005)
    convolutions = [layer for layer in layers if layer.forward.flops]
    first, *others = (layer.backward.flops / layer.forward.flops for layer in convolutions)
    assert (first, set(others)) == (1, {2})


@pytest.mark.parametrize("name", GRAPHS)
def test_all_that_is_kept_moves_once(name):
    graph = GRAPHS[name]()
    moved = overlap.tensors(graph, 2)
    pairs = {(source.name, form) for _, source, form in footprint.saved(graph)}
    values = {name for name, form in pairs if form == footprint.VALUES}
    pairs -= {(name, footprint.MASK) for name in values}
    assert sorted((one.name, one.form) for one in moved) == sorted(pairs)
    names = [layer.name for layer in overlap.layers(graph, 2)]
    readers = graph.consumers()
    for one in moved:
        assert one.bytes == 4 * 2 * graph.nodes[one.name].size == 4 * math.prod(one.shape)
        if one.form == footprint.VALUES:
            assert one.leaves == max(map(names.index, readers[one.name]))
            assert names[one.returns] in readers[one.name]
            assert graph.nodes[names[one.returns]].op in footprint.KEEP_INPUTS
        else:
            assert names[one.returns] == one.name


def test_shortcuts_and_kinds():
    g = networks.Graph("g", (3, 16, 16))
    x = g.relu(g.bn(g.conv("input", "conv1", 8, 3, pad=1), "bn1"), "relu1")
    y = g.conv(g.maxpool(x, "pool", 3, 1, 1), "conv2", 8, 1)
    g.softmax(g.fc(g.dropout(g.concat([g.sum([y, x], "sum"), y], "concat"), "drop"), "fc", 10))
    names = [layer.name for layer in overlap.layers(g, 4)]
    tensors = {(one.name, one.form): (one.kind, one.shape, names[one.leaves], names[one.returns])
               for one in overlap.tensors(g, 4)}
    assert tensors == {
        ("input", "values"): ("dense", (4, 3, 16, 16), "conv1", "conv1"),
        ("conv1", "values"): ("dense", (4, 8, 16, 16), "bn1", "bn1"),
        ("relu1", "mask"): ("relu", (4, 8, 16, 16), "pool", "relu1"),
        ("pool", "maxima"): ("pool", (4, 8, 16, 16), "conv2", "pool"),
        ("pool", "values"): ("pool", (4, 8, 16, 16), "conv2", "conv2"),
        ("drop", "values"): ("dropout", (4, 16, 16, 16), "fc", "fc")}


def test_traffic_of_small_layers():
    g = networks.Graph("g", (2, 4, 4))
    g.sum([g.relu(g.bn(g.conv("input", "conv", 3, 1, bias=False), "bn"), "relu"), "conv"], "sum")
    conv, bn, relu, total = overlap.layers(g, 5)
    out, into, weights = 5 * 48, 5 * 32, 6
    assert conv.forward == (2 * out * 2, 4 * (into + out + weights))
    assert conv.backward == (2 * out * 2, 4 * (out + weights + into))
    assert (bn.forward, bn.backward) == ((0, 4 * 3 * out), (0, 4 * 5 * out))
    assert (relu.forward, relu.backward) == ((0, 4 * 2 * out), (0, 4 * 3 * out))
    assert (total.forward, total.backward) == ((0, 4 * 3 * out), (0, 4 * 3 * out))
    assert conv.forward.seconds(1, 1e9) == 4 * out
    assert conv.forward.seconds(1e9, 1) == 4 * (into + out + weights)
