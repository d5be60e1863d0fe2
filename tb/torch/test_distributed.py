"""Sweeps on Dask: a scheduler and two workers, one of which is killed in the middle."""

import json
import subprocess
import sys
import time
from contextlib import ExitStack

import distributed
import pytest
from click.testing import CliRunner

from actcodec.cli import main
from actcodec.train import run, sweep
from actcodec.train.configuration import checked, name
from tb.torch.test_train import data  # noqa: F401, a fixture

SWEEP = """
seeds = 4
steps = 60
batch = 8
pictures = 20
[presets]
none = {preset = "none"}
sfpr = {preset = "sfpr"}
"""


def started(stack, part, *words):
    """A process of Dask that ends with the stack."""
    process = subprocess.Popen([sys.executable, "-m", f"distributed.cli.dask_{part}", "--no-dashboard", *words],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    stack.callback(lambda: (process.kill(), process.wait()))
    return process


@pytest.fixture
def cluster(tmp_path):
    """The address of a scheduler, and its two workers' processes by their names."""
    file = tmp_path / "scheduler.json"
    with ExitStack() as stack:
        started(stack, "scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file))
        workers = {name: started(stack, "worker", "--scheduler-file", str(file), "--nthreads", "1", "--no-nanny",
                                 "--name", name, "--local-directory", str(tmp_path)) for name in ("one", "two")}
        while not file.exists() or not file.read_text().endswith("}"):
            time.sleep(0.1)
        address = json.loads(file.read_text())["address"]
        with distributed.Client(address) as client:
            client.wait_for_workers(2, timeout=120)
            yield client, address, workers


def test_every_run_is_there_though_a_worker_is_killed(cluster, data, tmp_path):  # noqa: F811
    client, address, workers = cluster
    (tmp_path / "sweep.toml").write_text(SWEEP)
    todo, results = sweep.read(tmp_path / "sweep.toml"), tmp_path / "results"
    runs = []
    for label, result in sweep.work(todo, data, results, scheduler=address):
        runs.append((label, result["configuration"]["seed"]))
        if len(runs) == 1:
            names = {worker: facts["name"] for worker, facts in client.scheduler_info()["workers"].items()}
            busy, = (worker for worker in client.processing() if names[worker] == "two")
            assert client.processing()[busy]
            workers["two"].kill()
    assert sorted(runs) == sorted((label, configuration["seed"]) for label, configuration in todo)
    assert {path.name for path in results.iterdir()} == {name(configuration) for _, configuration in todo}
    assert workers["two"].wait() and workers["one"].poll() is None
    before = {path: path.stat().st_mtime_ns for path in results.iterdir()}
    done = CliRunner().invoke(main, ["train", str(tmp_path / "sweep.toml"), "--data", str(data), "--results",
                                     str(results), "--scheduler", address, "--json"])
    assert done.exit_code == 0, done.output
    assert [row["runs"] for row in json.loads(done.stdout)] == [4, 4]
    assert before == {path: path.stat().st_mtime_ns for path in results.iterdir()}


def test_a_run_on_a_worker_is_that_of_here(cluster, data, tmp_path):  # noqa: F811
    _, address, _ = cluster
    configuration = checked({"steps": 4, "batch": 8, "pictures": 20, "preset": "sfpr"})
    (_, there), = sweep.work([("sfpr", configuration)], data, tmp_path / "results", scheduler=address)
    here = run.run(configuration, data, tmp_path)
    assert {**here, "seconds": 0} == {**there, "seconds": 0}
