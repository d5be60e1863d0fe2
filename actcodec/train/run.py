"""A run: a network trained on CIFAR-10 with one way to compress. A dictionary says what it is, and what came of it."""

import hashlib
import json
import math
import time
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["DEFAULTS", "checked", "keep", "known", "name", "run", "span", "train", "trained"]

DEFAULTS = {"network": "resnet8", "preset": "none", "options": {}, "schedule": {}, "seed": 0, "steps": 300, "batch": 64,
            "rate": 0.1, "pictures": 10_000, "tests": 1, "device": "cpu", "engine": "torch", "adaptive": None,
            "awp": None}
"""A configuration. ``schedule`` has options by the step they begin with, ``pictures`` is how many the test has, which
is made ``tests`` times along the way; ``device`` is cpu or cuda, ``engine`` what ``actcodec.torch.Compress`` takes.
``adaptive`` has COMET's bounds for the inputs of convolutions, with these parameters of ``actcodec.torch.Adaptive``,
``awp`` weights of A2DTWP's precision, with those of ``actcodec.torch.Awp``; none, where it is None."""

MEAN, DEVIATION = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
POINTS = 50  # of the curve of losses
AHEAD = {"cpu": 1, "cuda": 32}  # steps whose pictures are moved at once; on a GPU they would be mere launches
TESTED = {"cpu": 500, "cuda": 5000}  # pictures at once


def checked(configuration: dict[str, Any]) -> dict[str, Any]:
    """A whole configuration. Raises ValueError for one that cannot be."""
    from actcodec.torch import Schedule, preset
    from actcodec.torch.golden import ENGINES

    if unknown := [key for key in configuration if key not in DEFAULTS]:
        raise ValueError(f"a run has no {unknown[0]}, legal are {', '.join(DEFAULTS)}")
    complete: dict[str, Any] = DEFAULTS | configuration
    if complete["network"] not in ("resnet8", "resnet20"):
        raise ValueError(f"network is {complete['network']!r}, must be resnet8 or resnet20")
    if complete["device"] not in ("cpu", "cuda"):
        raise ValueError(f"device is {complete['device']!r}, must be cpu or cuda")
    if complete["engine"] not in ENGINES:
        raise ValueError(f"engine is {complete['engine']!r}, must be one of {', '.join(ENGINES)}")
    for key in ("steps", "batch", "pictures", "tests"):
        if type(complete[key]) is not int or complete[key] < 1:
            raise ValueError(f"{key} is {complete[key]!r}, must be a whole number, 1 or more")
    if type(complete["seed"]) is not int or complete["seed"] < 0:
        raise ValueError(f"seed is {complete['seed']!r}, must be a whole number, 0 or more")
    if not 0 < complete["rate"] < math.inf:
        raise ValueError(f"rate is {complete['rate']!r}, must be above 0")
    complete["schedule"] = {str(step): options for step, options in complete["schedule"].items()}
    preset(complete["preset"], **complete["options"])
    for options in Schedule(steps(complete)).steps.values() if complete["schedule"] else ():
        preset(complete["preset"], **options)
    _check_control(complete)
    return complete


def _check_control(configuration):
    """Raises ValueError unless what changes from step to step can be made."""
    from actcodec.torch import Adaptive, Awp, Compress, resnet

    def adaptive(model, **options):
        return Adaptive(Compress(model, "none"), None, measure=True, **options)

    controls: dict[str, Callable[..., Any]] = {"adaptive": adaptive, "awp": Awp}
    for key, make in controls.items():
        if configuration[key] is None:
            continue
        if configuration["device"] == "cuda":
            raise ValueError(f"{key} changes from step to step, and on cuda a step is captured as a graph")
        if key == "adaptive" and configuration["schedule"]:
            raise ValueError("a run has a schedule or adaptive bounds, not both")
        try:
            make(resnet.resnet8(width=2), **configuration[key])
        except TypeError as error:
            raise ValueError(f"{key} is {configuration[key]!r}: {error}") from error


def steps(configuration: dict[str, Any]) -> dict[int, Any]:
    return {int(step): options for step, options in configuration["schedule"].items()}


def span(steps: int) -> int:
    """Steps of a point of the curve of losses."""
    return max(steps // POINTS, 1)


def name(configuration: dict[str, Any]) -> str:
    """The name of the file of a run."""
    key = hashlib.sha256(json.dumps(configuration, sort_keys=True).encode()).hexdigest()[:10]
    return f"{configuration['network']}-{configuration['preset']}-{configuration['seed']}-{key}.json"


def run(configuration: dict[str, Any], data: str | Path, results: str | Path) -> dict[str, Any]:
    """The result of a run: that in the folder ``results``, if it is there, or it is trained now and put there. ``data``
    is the folder of the pictures. Raises ValueError."""
    return known(configuration, results) or keep(trained(configuration, data), results)


def known(configuration: dict[str, Any], results: str | Path) -> dict[str, Any] | None:
    """The result of a run that is in a folder, or None."""
    path = Path(results) / name(checked(configuration))
    return json.loads(path.read_text()) if path.exists() else None


def keep(result: dict[str, Any], results: str | Path) -> dict[str, Any]:
    """Puts a result into a folder, and returns it."""
    path = Path(results) / name(result["configuration"])
    temporary = path.with_suffix(".new")
    temporary.write_text(json.dumps(result, indent=1) + "\n")
    temporary.replace(path)
    return result


def trained(configuration: dict[str, Any], data: str | Path) -> dict[str, Any]:
    """The result of a run that is trained now."""
    configuration = checked(configuration)
    return {"configuration": configuration, **train(configuration, _tensors(str(data), configuration["device"]))}


@cache
def _tensors(folder, device):
    import torch

    from actcodec.train import cifar10

    torch.set_num_threads(1)  # runs go side by side
    torch.backends.cudnn.benchmark = True
    return {key: torch.from_numpy(value).to(device) for key, value in cifar10.load(folder).items()}


@cache
def _moments(device):
    import torch

    return [torch.tensor(values, device=device)[:, None, None] for values in (MEAN, DEVIATION)]


def _floats(pictures):
    mean, deviation = _moments(pictures.device)
    return (pictures.float() / 255 - mean) / deviation


def _moved(pictures, random):
    """Padded by four, cut out anywhere, and every other one mirrored. ``random`` is a generator on their device."""
    import torch
    from torch.nn import functional as F

    padded, count, here = F.pad(pictures, (4, 4, 4, 4)), len(pictures), {"device": pictures.device}
    down, right = torch.randint(0, 9, (2, count, 1), generator=random, **here)
    mirrored = torch.rand(count, 1, generator=random, **here) < 0.5
    columns = torch.arange(32, **here).expand(count, 32)
    columns = torch.where(mirrored, 31 - columns, columns) + right
    rows = torch.arange(32, **here) + down
    which = torch.arange(count, **here)[:, None, None]
    return padded[which, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


def train(configuration: dict[str, Any], data: Any) -> dict[str, Any]:
    """Trains, and tests: accuracies in per cent, means of the losses along the way, ratios of the last step, seconds
    (of processor time on the CPU); what ``Adaptive`` has as its history; and the bytes that ``Awp`` sends of a weight
    of each layer, whenever one of them changes, with the step they begin with. ``data`` lies on the device."""
    import torch

    from actcodec.torch import Adaptive, Awp, Compress, resnet
    from actcodec.train.step import step

    c, clock = configuration, time.process_time if configuration["device"] == "cpu" else time.perf_counter
    start, device = clock(), data["train"].device
    torch.manual_seed(c["seed"])
    model = getattr(resnet, c["network"])().to(device)
    random = torch.Generator(device).manual_seed(c["seed"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a mode is slow was said for the sweep
        compress = Compress(model, c["preset"], engine=c["engine"], error_every=0, **c["options"])
    optimizer = torch.optim.SGD(model.parameters(), lr=c["rate"], momentum=0.9, nesterov=True, weight_decay=5e-4)
    control = None if c["adaptive"] is None else Adaptive(compress, optimizer, measure=True, **c["adaptive"])
    weights = None if c["awp"] is None else Awp(model, **c["awp"])
    precision: list[dict[str, Any]] = []
    rates = torch.optim.lr_scheduler.OneCycleLR(optimizer, c["rate"], total_steps=c["steps"] + 1)
    losses, accuracies, changes = torch.zeros(c["steps"], device=device), [], steps(c) | {0: steps(c).get(0, {})}
    ahead = AHEAD[device.type]
    part, rest = span(c["steps"]), max(c["steps"] // c["tests"], 1)
    for number in range(c["steps"]):
        if number in changes:
            compress.set(**changes[number])
            passes = step(model, compress, (c["batch"], *data["train"].shape[1:]))
        if number % ahead == 0:
            picked = torch.randint(0, len(data["train"]), (ahead * c["batch"],), generator=random, device=device)
            x, y = _moved(_floats(data["train"][picked]), random), data["train_classes"][picked]
        now = slice(number % ahead * c["batch"], (number % ahead + 1) * c["batch"])
        with weights or nullcontext():
            losses[number] = passes(x[now], y[now])
        optimizer.step()
        rates.step()
        if control:
            control.update()
        if weights:
            if not precision or precision[-1]["bytes"] != weights.roundto:
                precision.append({"step": number, "bytes": weights.roundto, "ratio": weights.ratio})
            weights.update()
        if (number + 1) % part == 0 and not bool(losses[:number + 1].isfinite().all()):
            break
        if (number + 1) % rest == 0 and c["steps"] - number > rest:
            accuracies.append(accuracy(model, data, c["pictures"], weights))
    curve = losses[:number + 1].tolist()
    curve = curve[:next((i + 1 for i, loss in enumerate(curve) if not math.isfinite(loss)), len(curve))]
    means = [sum(curve[i:i + part]) / len(curve[i:i + part]) for i in range(0, len(curve), part)]
    accuracies = [round(float(one), 4) for one in (*accuracies, accuracy(model, data, c["pictures"], weights))]
    return {"accuracy": accuracies[-1], "accuracies": accuracies, "converged": math.isfinite(curve[-1]),
            "losses": [round(loss, 4) if math.isfinite(loss) else None for loss in means],
            "ratio": compress.report().total["ratio"], "ratios": ratios(compress.report()),
            "seconds": round(clock() - start, 1), "torch": torch.__version__,
            "on": torch.cuda.get_device_name() if device.type == "cuda" else "CPU",
            **({"bounds": control.history} if control else {}), **({"precision": precision} if weights else {})}


def ratios(report: Any) -> dict[str, float]:
    """By the kinds of what was compressed."""
    kinds = dict.fromkeys(row.kind for row in report.rows)
    return {kind: sum(row.nbytes for row in report.rows if row.kind == kind)
            / sum(row.packed for row in report.rows if row.kind == kind) for kind in kinds}


def accuracy(model: Any, data: Any, count: int, weights: Any = None) -> Any:
    """Of the first pictures of the test, in per cent: a tensor, which on a GPU may still be on its way. ``weights`` are
    an :class:`~actcodec.torch.Awp`, if there is one."""
    import torch

    model.eval()
    size = TESTED[data["test"].device.type]
    with torch.no_grad(), weights or nullcontext():
        right = sum((model(_floats(data["test"][i:min(i + size, count)])).argmax(1)
                     == data["test_classes"][i:min(i + size, count)]).sum() for i in range(0, count, size))
    model.train()
    return 100 * right.double() / min(count, len(data["test"]))
