"""The configuration of a run: a dictionary that says which network is trained, on which data, and how."""

import hashlib
import json
import math
from collections.abc import Callable
from typing import Any

__all__ = ["DEFAULTS", "checked", "name", "span", "steps"]

DEFAULTS = {"network": "resnet8", "data": "cifar10", "preset": "none", "options": {}, "schedule": {}, "seed": 0,
            "steps": 300, "batch": 64, "rate": 0.1, "pictures": 10_000, "tests": 1, "device": "cpu", "engine": "torch",
            "adaptive": None, "awp": None}
"""A configuration. ``network`` is one of ``networks.NETWORKS``, or MODULE:FUNCTION, which returns a
``torch.nn.Module``; ``data`` is cifar10, or MODULE:FUNCTION, which returns two loaders of (inputs, classes), of the
training and of the test, which set their own batch sizes. ``schedule`` has options, by the first step that uses them;
``pictures`` is the number of pictures in a test, and ``tests`` the number of tests during training; ``device`` is cpu
or cuda, ``engine`` an engine of ``actcodec.torch.Compress``. ``adaptive`` has the parameters of
``actcodec.torch.Adaptive``, which sets COMET's bounds for the inputs of convolutions, and ``awp`` those of
``actcodec.torch.Awp``, which sends weights with A2DTWP's precision; None is without."""
POINTS = 50  # on the curve of losses
ADDED = ("data",)  # later than the first files, whose names are without


def checked(configuration: dict[str, Any]) -> dict[str, Any]:
    """The configuration with all defaults filled in. Raises ValueError if it is invalid."""
    from actcodec.torch import Schedule, preset
    from actcodec.torch.golden import ENGINES
    from actcodec.train.networks import NETWORKS, named

    if unknown := [key for key in configuration if key not in DEFAULTS]:
        raise ValueError(f"a run has no {unknown[0]}, legal are {', '.join(DEFAULTS)}")
    complete: dict[str, Any] = DEFAULTS | configuration
    named("network", complete["network"], NETWORKS)
    if complete["data"] != "cifar10":
        named("data", complete["data"], {"cifar10": None})
        if complete["batch"] != DEFAULTS["batch"]:
            raise ValueError("batch is for cifar10: the loaders of data have their own")
    if complete["device"] not in ("cpu", "cuda"):
        raise ValueError(f"device is {complete['device']!r}, must be cpu or cuda")
    if complete["engine"] not in ENGINES:
        raise ValueError(f"engine is {complete['engine']!r}, must be one of {', '.join(ENGINES)}")
    for key in ("steps", "batch", "pictures", "tests"):
        if type(complete[key]) is not int or complete[key] < 1:
            raise ValueError(f"{key} is {complete[key]!r}, must be a whole number, 1 or more")
    if type(complete["seed"]) is not int or complete["seed"] < 0:
        raise ValueError(f"seed is {complete['seed']!r}, must be a whole number, 0 or more")
    for key, kind in (("options", dict), ("schedule", dict), ("preset", str), ("network", str), ("data", str)):
        if not isinstance(complete[key], kind):
            raise ValueError(f"{key} is {complete[key]!r}, must be a {'table' if kind is dict else 'word'}")
    if type(complete["rate"]) not in (int, float) or not 0 < complete["rate"] < math.inf:
        raise ValueError(f"rate is {complete['rate']!r}, must be above 0")
    complete["schedule"] = {str(step): options for step, options in complete["schedule"].items()}
    preset(complete["preset"], **complete["options"])
    for options in Schedule(steps(complete)).steps.values() if complete["schedule"] else ():
        preset(complete["preset"], **options)
    _check_control(complete)
    return complete


def _check_control(configuration):
    """Raises ValueError unless ``adaptive`` and ``awp``, which change from step to step, are valid."""
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
    """The schedule: options by the number of the first step that uses them."""
    return {int(step): options for step, options in configuration["schedule"].items()}


def span(steps: int) -> int:
    """Steps that a point on the curve of losses is the mean of."""
    return max(steps // POINTS, 1)


def name(configuration: dict[str, Any]) -> str:
    """The name of a run's file."""
    identity = {key: value for key, value in configuration.items() if key not in ADDED or value != DEFAULTS[key]}
    key = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:10]
    network = configuration["network"].replace(":", ".")
    return f"{network}-{configuration['preset']}-{configuration['seed']}-{key}.json"
