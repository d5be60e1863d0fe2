"""What a TOML file asks for: every network with every preset and every seed.

    networks = ["resnet8"]      # default: resnet8; MODULE:FUNCTION is one's own
    seeds = 3                   # 0, 1, 2; default: 1
    steps = 300                 # and batch, rate, pictures: as a run has them

    [presets]
    none = {preset = "none"}
    "jpeg-act optH" = {preset = "jpeg-act", options = {dqt = "optH"}}
    "jpeg-act optL5H" = {preset = "jpeg-act", schedule = {0 = {dqt = "optL"}, 100 = {dqt = "optH"}}}
"""

import multiprocessing
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import as_completed
from pathlib import Path
from typing import Any

from actcodec.files import UserError
from actcodec.processes import workers
from actcodec.train.configuration import DEFAULTS, checked
from actcodec.train.run import CHECKPOINT, keep, recall, trained

__all__ = ["jobs", "read", "work"]

OWN = ("networks", "seeds", "presets")


def read(path: str | Path) -> list[tuple[str, dict[str, Any]]]:
    """[(label, configuration)] of a file. Raises :class:`~actcodec.files.UserError`."""
    try:
        return jobs(tomllib.loads(Path(path).read_text()))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, ValueError) as error:
        raise UserError(f"{path}: {error}") from error


def jobs(sweep: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """[(label, configuration)] of what such a file says, all presets of a seed before the next one. Raises
    ValueError."""
    common = {key: value for key, value in sweep.items() if key not in OWN}
    if wrong := [key for key in common if key not in DEFAULTS or key in ("network", "seed", "preset", "options")]:
        raise ValueError(f"a sweep has no {wrong[0]}")
    seeds, presets = sweep.get("seeds", 1), sweep.get("presets")
    if type(seeds) is not int or seeds < 1:
        raise ValueError(f"seeds is {seeds!r}, must be a whole number, 1 or more")
    if not presets:
        raise ValueError("a sweep needs a table of presets")
    if not isinstance(presets, Mapping):
        raise ValueError(f"presets is {presets!r}, must be a table")
    for label, way in presets.items():
        if not isinstance(way, Mapping):
            raise ValueError(f"preset {label!r} is {way!r}, must be a table")
        if wrong := [key for key in ("network", "seed") if key in way]:
            raise ValueError(f"preset {label!r} has no {wrong[0]}, which the sweep sets")
    if not isinstance(sweep.get("networks", []), list):
        raise ValueError(f"networks is {sweep['networks']!r}, must be a list")
    return [(label, checked(common | way | {"network": network, "seed": seed}))
            for network in sweep.get("networks", [DEFAULTS["network"]])
            for seed in range(seeds) for label, way in presets.items()]


def work(todo: Iterable[tuple[str, dict[str, Any]]], data: str | Path, results: str | Path, processes: int = 1,
         scheduler: str | None = None, seconds: float = CHECKPOINT) -> Iterator[tuple[str, dict[str, Any]]]:
    """The results of jobs as (label, result), as they come. What is in the folder ``results`` is not trained again, and
    what has a checkpoint there goes on from it; one is made every so many ``seconds``.

    With the address of a ``scheduler`` of Dask its workers train, one run a thread of each, and need ``data`` where
    they are; results come back to the folder here. A run whose worker is lost is given to another one, from its start.
    """
    Path(results).mkdir(parents=True, exist_ok=True)
    rest = []
    for label, configuration in todo:
        if result := recall(configuration, results):
            yield label, result
        else:
            rest.append((label, configuration))
    if rest and scheduler:
        yield from _distributed(rest, data, results, scheduler)
    elif rest:
        yield from _here(rest, data, results, processes, seconds)


def _here(todo, data, results, processes, seconds):
    from actcodec.train import cifar10

    if any(configuration["data"] == "cifar10" for _, configuration in todo):
        cifar10.load(data)  # once, before there are several processes
    with workers(processes, multiprocessing.get_context("spawn")) as pool:
        futures = {pool.submit(trained, configuration, data, results, seconds): label for label, configuration in todo}
        for future in as_completed(futures):
            yield futures[future], future.result()


def _distributed(todo, data, results, scheduler):
    try:
        import distributed
    except ImportError as error:
        raise UserError("Dask is missing: pip install 'actcodec[distributed]'") from error
    with distributed.Client(scheduler) as client:
        futures = {client.submit(trained, configuration, str(data), pure=False): label
                   for label, configuration in todo}
        for future in distributed.as_completed(futures):
            yield futures[future], keep(future.result(), results)
