"""The Schedule Builder: graphs worked out by hand, rules that every schedule keeps, sizes against the encoders."""

from functools import cache
from itertools import product

import numpy as np
import pytest

from actcodec.golden.common import networks
from actcodec.golden.gist import binarize, dpr, memory, schedule, ssdc
from actcodec.golden.gist.schedule import BASELINE, CATEGORIES, LOSSLESS, Options

NETWORKS = list(networks.NETWORKS)


@cache
def network(name):
    return networks.NETWORKS[name]()


@cache
def plan(name, options):
    return schedule.build(network(name), 2, options)


def every(options):
    """Each network with each of `options`."""
    return pytest.mark.parametrize(("name", "options"), list(product(NETWORKS, options)))


SOME = every([BASELINE, LOSSLESS, Options(binarize=True), Options(ssdc=True, dpr="fp8"),
              Options(True, True, True, "fp10"), Options(True, True, True, "fp16", decode=False)])


def tiny():
    """conv, ReLU, pool, conv, ReLU, fc, softmax on two samples of 4x4: small enough to work out by hand."""
    g = networks.Graph("tiny", (1, 4, 4))
    x = g.maxpool(g.conv_relu("input", 1, 2, 3, pad=1), "pool1", 2, 2)
    g.softmax(g.fc(g.conv_relu(x, 2, 4, 1), "fc", 3))
    return g


def test_vgg16_stashes_what_figure_3_says():
    """40 % of it ReLU outputs before a pool, 49 % ReLU outputs before a convolution (section III-A)."""
    g, built = network("vgg16"), plan("vgg16", BASELINE)
    stashed = {name: size for name, size in built.sizes.items() if built.categories[name] != CATEGORIES[3]}
    of = dict.fromkeys(CATEGORIES, 0)
    for name, size in stashed.items():
        if name.startswith("relu"):
            of[schedule.category(g, g.consumers(), g.nodes[name])] += size
    shares = [round(100 * of[kind] / sum(stashed.values())) for kind in CATEGORIES[:2]]
    assert np.abs(np.subtract(shares, (40, 49))).max() <= 1, shares


def test_baseline_of_the_tiny_graph():
    assert [(s.name, set(s.reads), set(s.writes)) for s in schedule.build(tiny(), 2).steps] == [
        ("conv1", set(), {"conv1"}),
        ("relu1", {"conv1"}, {"relu1"}),
        ("pool1", {"relu1"}, {"pool1"}),
        ("conv2", {"pool1"}, {"conv2"}),
        ("relu2", {"conv2"}, {"relu2"}),
        ("fc", {"relu2"}, {"fc"}),
        ("loss", {"fc"}, {"loss"}),
        ("loss backward", {"loss"}, {"fc gradient"}),
        ("fc backward", {"relu2", "fc gradient"}, {"relu2 gradient"}),
        ("relu2 backward", {"relu2", "relu2 gradient"}, {"relu2 gradient"}),
        ("conv2 backward", {"pool1", "relu2 gradient"}, {"pool1 gradient"}),
        ("pool1 backward", {"relu1", "pool1", "pool1 gradient"}, {"relu1 gradient"}),
        ("relu1 backward", {"relu1", "relu1 gradient"}, {"relu1 gradient"}),
        ("conv1 backward", {"relu1 gradient"}, set())]


def test_lossless_of_the_tiny_graph():
    built = schedule.build(tiny(), 2, LOSSLESS, schedule.sparsities(tiny(), layers={"pool1": 0.75}))
    assert [(s.name, set(s.reads), set(s.writes)) for s in built.steps] == [
        ("conv1", set(), {"relu1"}),
        ("relu1", {"relu1"}, {"relu1", "relu1 mask"}),
        ("pool1", {"relu1"}, {"pool1", "pool1 map"}),
        ("conv2", {"pool1"}, {"relu2"}),
        ("encode pool1", {"pool1"}, {"pool1 encoded"}),
        ("relu2", {"relu2"}, {"relu2"}),
        ("fc", {"relu2"}, {"fc"}),
        ("loss", {"fc"}, {"loss"}),
        ("loss backward", {"loss"}, {"fc gradient"}),
        ("fc backward", {"relu2", "fc gradient"}, {"relu2 gradient"}),
        ("relu2 backward", {"relu2", "relu2 gradient"}, {"relu2 gradient"}),
        ("decode pool1", {"pool1 encoded"}, {"pool1 decoded"}),
        ("conv2 backward", {"pool1 decoded", "relu2 gradient"}, {"pool1 gradient"}),
        ("pool1 backward", {"pool1 map", "pool1 gradient"}, {"relu1 gradient"}),
        ("relu1 backward", {"relu1 mask", "relu1 gradient"}, {"relu1 gradient"}),
        ("conv1 backward", {"relu1 gradient"}, set())]
    assert {name: built.sizes[name] for name in ("relu1 mask", "pool1 map", "pool1 encoded", "pool1 decoded")} == {
        "relu1 mask": 8, "pool1 map": 8, "pool1 encoded": 4 * 4 + 4 + 2, "pool1 decoded": 64}
    assert sum(memory.dynamic(built).values()) == 256 + 8 + 64 + 8  # in pool1: relu1, mask, pool1, map


def test_gradients_of_a_shared_map_accumulate():
    """A residual block: the gradient of relu1 lives from sum's backward pass, over conv2's, to its own."""
    g = networks.Graph("residual", (2, 4, 4))
    x = g.conv_relu("input", 1, 2, 3, pad=1)
    x = g.relu(g.sum([g.conv(x, "conv2", 2, 3, pad=1), x], "sum"), "relu2")
    g.softmax(g.fc(x, "fc", 3))
    built = schedule.build(g, 1, Options(ssdc=True, inplace=True))
    names = [step.name for step in built.steps]
    first, last = memory.lives(built)["relu1 gradient"]
    assert (names[first], names[last]) == ("sum backward", "conv1 backward")
    assert names[memory.lives(built)["relu1"][1]] == "encode relu1"
    assert names.index("encode relu1") == names.index("sum") + 1
    assert not {"conv1", "sum", "conv1 gradient", "sum gradient"} & set(built.sizes)
    assert "conv2 gradient" in built.sizes  # sum does not work in place


@pytest.mark.parametrize(("op", "reads"), [
    ("conv", {"relu1"}), ("fc", {"relu1"}), ("bn", {"relu1"}), ("relu", {"x"}), ("maxpool", {"relu1", "x"}),
    ("lrn", {"relu1", "x"}), ("dropout", {"x mask"}), ("avgpool", set()), ("concat", set()), ("sum", set())])
def test_what_the_backward_pass_reads(op, reads):
    g = networks.Graph("one", (2, 8, 8))
    x = g.conv_relu("input", 1, 2, 3, pad=1)
    more = {"conv": (2, 1), "fc": (5,), "maxpool": (2, 2)}.get(op, ())
    g.softmax(getattr(g, op)([x] if op in ("concat", "sum") else x, "x", *more))
    built = schedule.build(g, 3)
    step = next(step for step in built.steps if step.name == "x backward")
    assert set(step.reads) - {"x gradient"} == reads
    assert "x gradient" in step.reads
    assert step.writes == ["x gradient" if op == "relu" else "relu1 gradient"]
    if op == "dropout":
        assert built.sizes["x mask"] == built.sizes["x"] == 4 * 3 * 2 * 8 * 8


def test_a_relu_leaves_alone_what_others_need():
    """In place neither over a map with another reader, nor over one that is stashed."""
    g = networks.Graph("needed", (2, 8, 8))
    x = g.conv("input", "shared", 2, 3, pad=1)
    y = g.maxpool(g.conv(x, "conv", 2, 1), "stashed", 2, 2)
    g.softmax(g.fc(g.relu(x, "relu_shared"), "fc1", 3), "loss1")
    g.softmax(g.fc(g.relu(y, "relu_stashed"), "fc2", 3), "loss2")
    built = schedule.build(g, 1, Options(inplace=True))
    steps = {step.name: step for step in built.steps}
    assert steps["relu_shared"].reads == ["shared"] and steps["relu_shared"].writes == ["relu_shared"]
    assert steps["relu_shared backward"].writes == ["shared gradient"]
    assert steps["relu_stashed"].reads == ["stashed"] and steps["relu_stashed"].writes == ["relu_stashed"]
    assert steps["relu_stashed backward"].writes == ["relu_stashed gradient"]  # no one else adds to that gradient
    assert "stashed" in steps["stashed backward"].reads


def branch(*readers):
    """A ReLU with the given readers, each of which goes to a softmax."""
    g = networks.Graph("branch", (2, 8, 8))
    x = g.conv_relu("input", 1, 2, 3, pad=1)
    add = {"conv": lambda name: g.conv(x, name, 2, 1), "maxpool": lambda name: g.maxpool(x, name, 2, 2),
           "avgpool": lambda name: g.avgpool(x, name), "fc": lambda name: g.fc(x, name, 5)}
    for i, reader in enumerate(readers):
        g.softmax(add[reader](f"reader{i}"), f"loss{i}")
    return g


@pytest.mark.parametrize(("readers", "expected"), [
    (["maxpool"], 0), (["avgpool"], 0), (["maxpool", "maxpool"], 0), (["conv"], 1), (["conv", "maxpool"], 1),
    (["conv", "fc"], 1), (["fc"], 2), (["maxpool", "fc"], 2)])
def test_readers_decide_the_encoding_of_a_relu(readers, expected):
    g = branch(*readers)
    assert schedule.category(g, g.consumers(), g.nodes["relu1"]) == CATEGORIES[expected]
    sizes = schedule.build(g, 1, Options(True, True, True, "fp8")).sizes
    assert ("relu1 mask" in sizes) == (expected == 0)
    assert ("relu1 encoded" in sizes) == (expected != 0)
    assert [name for name in sizes if name.endswith("map")] == [
        f"reader{i} map" for i, reader in enumerate(readers) if expected == 0 and reader == "maxpool"]


@SOME
def test_everything_read_was_written_before(name, options):
    written = set()
    for step in plan(name, options).steps:
        assert written >= set(step.reads), step
        written |= set(step.writes)
    assert written == set(plan(name, options).sizes) == set(plan(name, options).categories)


@SOME
def test_a_life_is_split_in_three(name, options):
    built = plan(name, options)
    names, spans = [step.name for step in built.steps], memory.lives(built)
    turn = next(i for i, step in enumerate(names) if step.endswith("backward"))
    encoded = [data.removesuffix(" encoded") for data in spans if data.endswith(" encoded")]
    assert encoded or options in (BASELINE, Options(binarize=True))
    for data in encoded:
        encode = names.index(f"encode {data}")
        assert spans[data][1] == encode == spans[f"{data} encoded"][0] < turn
        if options.decode:
            decode = names.index(f"decode {data}")
            assert spans[f"{data} encoded"][1] == decode == spans[f"{data} decoded"][0] > turn
            used = next(step for step in built.steps[decode:] if not step.name.startswith("decode"))
            assert f"{data} decoded" in used.reads
        assert not any(data in step.reads for step in built.steps[encode + 1:])
        assert not any(f"{data} encoded" in step.reads for step in built.steps[:turn])


@SOME
def test_the_backward_pass_gets_all_it_got_before(name, options):
    """Each map that a layer's backward pass reads in the baseline is there, decoded or encoded, or a mask or map is."""
    built = {step.name: step for step in plan(name, options).steps}
    for step in plan(name, BASELINE).steps:
        if not step.name.endswith("backward"):
            continue
        got = {data.removesuffix(" encoded").removesuffix(" decoded") for data in built[step.name].reads}
        missing = set(step.reads) - got
        node = network(name).nodes[step.name.split()[0]]
        if missing:
            assert options.binarize
            replaced = {"relu": f"{node.name} mask", "maxpool": f"{node.name} map"}[node.op]
            assert replaced in got
            assert missing <= {node.name, *node.inputs}


@every([Options(inplace=True), LOSSLESS])
def test_in_place_relus_leave_no_input_behind(name, options):
    g, built, baseline = network(name), plan(name, options), plan(name, BASELINE)
    readers = g.consumers()
    for node in g:
        if node.op == "relu":
            source, = node.inputs
            assert readers[source] == [node.name]
            assert source in baseline.sizes and source not in built.sizes
            assert baseline.categories[source] == CATEGORIES[3]


@pytest.mark.parametrize("values", [1, 2, 255, 256, 257, 10_000])
@pytest.mark.parametrize("sparsity", [0, 0.3, 0.8, 1])
def test_sizes_are_the_encoders(values, sparsity):
    random = np.random.default_rng(values)
    x = random.uniform(1, 2, values).astype(np.float32)
    x[random.permutation(values)[:round(sparsity * values)]] = 0
    assert schedule.mask_bytes(values) == binarize.forward(x).nbytes
    for form in (None, *dpr.FORMATS):
        assert schedule.ssdc_bytes(values, sparsity, form) == sum(array.nbytes for array in ssdc.encode(x, form))
        assert schedule.dense_bytes(values, form) == (dpr.encode(x, form) if form else x).nbytes
    assert schedule.map_bytes(values) == np.packbits(np.zeros(4 * values, np.uint8)).size


@pytest.mark.parametrize(("sparsity", "expected"), [(0.19, False), (0.2, False), (0.21, True), (0.9, True)])
def test_ssdc_is_taken_above_twenty_percent_of_zeros(sparsity, expected):
    g = network("vgg16")
    built = schedule.build(g, 1, Options(ssdc=True), schedule.sparsities(g, sparsity))
    assert ("relu1_1 encoded" in built.sizes) == expected
    if expected:
        size = built.sizes["relu1_1 encoded"]
        assert size == schedule.ssdc_bytes(64 * 224 * 224, sparsity) < built.sizes["relu1_1 decoded"]


def test_the_smaller_of_ssdc_and_dpr_is_taken():
    g = network("vgg16")
    values = 64 * 224 * 224
    for sparsity, expected in (0.4, values), (0.6, schedule.ssdc_bytes(values, 0.6, "fp8")):
        built = schedule.build(g, 1, Options(ssdc=True, dpr="fp8"), schedule.sparsities(g, sparsity))
        assert built.sizes["relu1_1 encoded"] == expected


def test_sparsity_of_layers():
    sparsities = schedule.sparsities(network("inception-v1"), 0.5, {"relu1": 0.9, "relu3a_1x1": 0.7})
    assert sparsities["relu1"] == 0.9 and sparsities["relu2"] == 0.5 and sparsities["conv1"] == sparsities["fc"] == 0
    assert sparsities["pool1"] == sparsities["norm1"] == pytest.approx(0.9**3)
    assert sparsities["concat3a"] == pytest.approx((0.7 * 64 + 0.5 * 192) / 256)


@pytest.mark.parametrize(("default", "layers", "text"), [
    (1.1, {}, "sparsity is 1.1"), (-0.1, {}, "sparsity is -0.1"), (float("nan"), {}, "sparsity is nan"),
    (0.5, {"relu1": 2}, "sparsity is 2"), (0.5, {"relu99": 0.5}, "no layer 'relu99' in alexnet")])
def test_wrong_sparsities_are_refused(default, layers, text):
    with pytest.raises(ValueError, match=text):
        schedule.sparsities(network("alexnet"), default, layers)


def test_wrong_options_are_refused():
    with pytest.raises(ValueError, match="'fp9'"):
        Options(dpr="fp9")
    with pytest.raises(ValueError, match="minibatch is 0"):
        schedule.build(tiny(), 0)
