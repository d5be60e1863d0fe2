"""A run: a network trained with one way to compress; a dictionary says what came of it."""

import json
from pathlib import Path
from typing import Any

from actcodec.train.configuration import DEFAULTS, checked, name

__all__ = ["CHECKPOINT", "keep", "known", "run", "trained"]

CHECKPOINT = 300.0  # seconds between two


def run(configuration: dict[str, Any], data: str | Path, results: str | Path) -> dict[str, Any]:
    """The result of a run: that in the folder ``results``, if it is there, or it is trained now and put there. ``data``
    is the folder of the pictures. Raises ValueError."""
    return known(configuration, results) or keep(trained(configuration, data, results), results)


def known(configuration: dict[str, Any], results: str | Path) -> dict[str, Any] | None:
    """The result of a run that is in a folder, or None."""
    path = Path(results) / name(checked(configuration))
    if not path.exists():
        return None
    result = json.loads(path.read_text())
    result["configuration"] = DEFAULTS | result["configuration"]
    return result


def keep(result: dict[str, Any], results: str | Path) -> dict[str, Any]:
    """Puts a result into a folder, and returns it."""
    path = Path(results) / name(result["configuration"])
    temporary = path.with_suffix(".new")
    temporary.write_text(json.dumps(result, indent=1) + "\n")
    temporary.replace(path)
    return result


def trained(configuration: dict[str, Any], data: str | Path, results: str | Path | None = None,
            seconds: float = CHECKPOINT) -> dict[str, Any]:
    """The result of a run that is trained now, or goes on from the checkpoint that one that was stopped has left in the
    folder ``results``, where another one is made every so many ``seconds``.

    It has accuracies in per cent, means of the losses along the way, ratios of the last step, seconds (of processor
    time on the CPU); what ``Adaptive`` has as its history; and the bytes that ``Awp`` sends of a weight of each layer,
    whenever one of them changes, with the step they begin with.
    """
    from actcodec.train.training import Training

    configuration = checked(configuration)
    path = None if results is None else Path(results, name(configuration)).with_suffix(".pt")
    return {"configuration": configuration, **Training(configuration, data).finish(path, seconds)}
