"""A run: one network trained with one way to compress. Its result is a dictionary."""

import json
from pathlib import Path
from typing import Any

from actcodec.train.configuration import DEFAULTS, checked, name

__all__ = ["CHECKPOINT", "keep", "recall", "run", "trained"]

CHECKPOINT = 300.0  # seconds between two


def run(configuration: dict[str, Any], data: str | Path, results: str | Path) -> dict[str, Any]:
    """The result of a run, from the folder ``results`` if it is there; if not, it is trained now and saved there.
    ``data`` is the folder of the pictures. Raises ValueError for an invalid configuration."""
    return recall(configuration, results) or trained(configuration, data, results)


def recall(configuration: dict[str, Any], results: str | Path) -> dict[str, Any] | None:
    """The result of a run, if the folder has it, or None."""
    path = Path(results) / name(checked(configuration))
    if not path.exists():
        return None
    result = json.loads(path.read_text())
    result["configuration"] = DEFAULTS | result["configuration"]
    return result


def keep(result: dict[str, Any], results: str | Path) -> dict[str, Any]:
    """Saves a result in a folder, and returns it."""
    path = Path(results) / name(result["configuration"])
    temporary = path.with_suffix(".new")
    temporary.write_text(json.dumps(result, indent=1) + "\n")
    temporary.replace(path)
    return result


def trained(configuration: dict[str, Any], data: str | Path, results: str | Path | None = None,
            seconds: float = CHECKPOINT) -> dict[str, Any]:
    """Trains, and returns the result, which is also saved in the folder ``results``, if any. If that has a checkpoint
    of an interrupted run, training resumes from it; a new one is written there every so many ``seconds``.

    The result has accuracies in per cent, means of the losses along the way, the ratios of the last step, seconds (of
    processor time on the CPU), the history of ``Adaptive``, and the bytes that ``Awp`` sends for a weight of each
    layer, whenever one of them changes, with the first step that uses them.
    """
    from actcodec.train.training import Training

    configuration = checked(configuration)
    path = None if results is None else Path(results, name(configuration)).with_suffix(".pt")
    result = {"configuration": configuration, **Training(configuration, data).finish(path, seconds)}
    if path is not None:  # the result is there before its checkpoint goes
        keep(result, path.parent)
        path.unlink(missing_ok=True)
    return result
