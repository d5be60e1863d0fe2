"""A run: a network trained on CIFAR-10 with one way to compress. A dictionary says what it is, and what came of it."""

import hashlib
import json
import math
import time
import warnings
from functools import cache
from pathlib import Path

__all__ = ["DEFAULTS", "checked", "name", "run", "train"]

DEFAULTS = {"network": "resnet8", "preset": "none", "options": {}, "schedule": {}, "seed": 0, "steps": 300, "batch": 64,
            "rate": 0.1, "pictures": 10_000}
"""A configuration. ``schedule`` has options by the step they begin with, ``pictures`` is how many the test has."""

MEAN, DEVIATION = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
POINTS = 50  # of the curve of losses


def checked(configuration):
    """A whole configuration. Raises ValueError for one that cannot be."""
    from actcodec.torch import Schedule, preset, resnet

    if unknown := [key for key in configuration if key not in DEFAULTS]:
        raise ValueError(f"a run has no {unknown[0]}, legal are {', '.join(DEFAULTS)}")
    found = DEFAULTS | configuration
    if found["network"] not in ("resnet8", "resnet20") or not hasattr(resnet, found["network"]):
        raise ValueError(f"network is {found['network']!r}, must be resnet8 or resnet20")
    for key in ("steps", "batch", "pictures"):
        if type(found[key]) is not int or found[key] < 1:
            raise ValueError(f"{key} is {found[key]!r}, must be a whole number, 1 or more")
    if type(found["seed"]) is not int or found["seed"] < 0:
        raise ValueError(f"seed is {found['seed']!r}, must be a whole number, 0 or more")
    if not 0 < found["rate"] < math.inf:
        raise ValueError(f"rate is {found['rate']!r}, must be above 0")
    found["schedule"] = {str(step): options for step, options in found["schedule"].items()}
    preset(found["preset"], **found["options"])
    for options in Schedule(steps(found)).steps.values() if found["schedule"] else ():
        preset(found["preset"], **options)
    return found


def steps(configuration):
    return {int(step): options for step, options in configuration["schedule"].items()}


def name(configuration):
    """The name of the file of a run."""
    key = hashlib.sha256(json.dumps(configuration, sort_keys=True).encode()).hexdigest()[:10]
    return f"{configuration['network']}-{configuration['preset']}-{configuration['seed']}-{key}.json"


def run(configuration, data, results):
    """The result of a run: that in the folder ``results``, if it is there, or it is trained now and put there. ``data``
    is the folder of the pictures. Raises ValueError."""
    configuration = checked(configuration)
    path = Path(results) / name(configuration)
    if not path.exists():
        found = {"configuration": configuration, **train(configuration, _tensors(str(data)))}
        temporary = path.with_suffix(".new")
        temporary.write_text(json.dumps(found, indent=1) + "\n")
        temporary.replace(path)
    return json.loads(path.read_text())


@cache
def _tensors(folder):
    import torch

    from actcodec.train import cifar10

    torch.set_num_threads(1)  # runs go side by side
    return {key: torch.from_numpy(value) for key, value in cifar10.load(folder).items()}


def _floats(pictures):
    import torch

    mean, deviation = (torch.tensor(values)[:, None, None] for values in (MEAN, DEVIATION))
    return (pictures.float() / 255 - mean) / deviation


def _moved(pictures, random):
    """Padded by four, cut out anywhere, and every other one mirrored."""
    import torch
    from torch.nn import functional as F

    padded, count = F.pad(pictures, (4, 4, 4, 4)), len(pictures)
    down, right = torch.randint(0, 9, (2, count, 1), generator=random)
    mirrored = torch.rand(count, 1, generator=random) < 0.5
    columns = torch.arange(32).expand(count, 32)
    columns = torch.where(mirrored, 31 - columns, columns) + right
    rows = torch.arange(32) + down
    return padded[torch.arange(count)[:, None, None], :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


def train(configuration, data):
    """Trains, and tests: accuracy in per cent, means of the losses along the way, ratio of the last step, seconds of
    processor time."""
    import torch
    from torch.nn import functional as F

    from actcodec.torch import Compress, Schedule, resnet

    c, start = configuration, time.process_time()
    torch.manual_seed(c["seed"])
    model = getattr(resnet, c["network"])()
    random = torch.Generator().manual_seed(c["seed"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a mode is slow was said for the sweep
        compress = Compress(model, c["preset"], error_every=0, **c["options"],
                            schedule=Schedule(steps(c)) if c["schedule"] else None)
    optimizer = torch.optim.SGD(model.parameters(), lr=c["rate"], momentum=0.9, nesterov=True, weight_decay=5e-4)
    rates = torch.optim.lr_scheduler.OneCycleLR(optimizer, c["rate"], total_steps=c["steps"] + 1)
    losses = []
    for _ in range(c["steps"]):
        picked = torch.randint(0, len(data["train"]), (c["batch"],), generator=random)
        x = _moved(_floats(data["train"][picked]), random)
        with compress:
            loss = F.cross_entropy(model(x), data["train_classes"][picked])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        rates.step()
        losses.append(float(loss.detach()))
        if not math.isfinite(losses[-1]):
            break
    part = max(len(losses) // POINTS, 1)
    means = [sum(losses[i:i + part]) / len(losses[i:i + part]) for i in range(0, len(losses), part)]
    return {"accuracy": accuracy(model, data, c["pictures"]), "converged": math.isfinite(losses[-1]),
            "losses": [round(loss, 4) if math.isfinite(loss) else None for loss in means],
            "ratio": compress.report().total["ratio"], "seconds": round(time.process_time() - start, 1),
            "torch": torch.__version__}


def accuracy(model, data, count):
    """Of the first pictures of the test, in per cent."""
    import torch

    model.eval()
    with torch.no_grad():
        right = sum(int((model(_floats(data["test"][i:min(i + 500, count)])).argmax(1)
                         == data["test_classes"][i:min(i + 500, count)]).sum()) for i in range(0, count, 500))
    return 100 * right / min(count, len(data["test"]))
