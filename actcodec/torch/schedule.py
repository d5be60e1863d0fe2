"""Options that change during training."""

from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

__all__ = ["Schedule", "optl5h"]


class Schedule:
    """Options by the number of the training step they begin with: ``Schedule({0: {"dqt": "optL"}, 500: {"dqt":
    "optH"}})``. A step is a pass through a :class:`~actcodec.torch.Compress`. Raises ValueError unless the first step
    is 0 and all steps are integers."""

    def __init__(self, steps: Mapping[int, Any]) -> None:
        self.steps = dict(sorted(steps.items()))
        if any(type(step) is not int for step in self.steps) or next(iter(self.steps), None) != 0:
            raise ValueError(f"steps of a schedule are {list(self.steps)}, must be whole numbers from 0 on")
        self._starts = list(self.steps)

    def at(self, step: int) -> Any:
        """The options of a step."""
        return self.steps[self._starts[bisect_right(self._starts, step) - 1]]


def optl5h(steps_per_epoch: int) -> Schedule:
    """JPEG-ACT's optL5H (section IV): optL for five epochs, then optH. Raises ValueError for less than one step per
    epoch."""
    if type(steps_per_epoch) is not int or steps_per_epoch < 1:
        raise ValueError(f"steps_per_epoch is {steps_per_epoch!r}, must be a whole number, 1 or more")
    return Schedule({0: {"dqt": "optL"}, 5 * steps_per_epoch: {"dqt": "optH"}})
