"""What becomes of a tensor that an accelerator has done."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from actcodec.golden.offload.scan import Statistics
from actcodec.rtl.offload.control.limits import scanned
from actcodec.rtl.offload.control.register_map import COUNTERS, ErrorCode

__all__ = ["LENGTH", "AcceleratorError", "Result", "Task", "conclude", "sources"]

LENGTH = 32  # bits of the length of a lane's stream


class AcceleratorError(RuntimeError):
    """The accelerator ended a tensor with an error; ``code`` is an ``ErrorCode``. ``length`` is the payload's, if that
    did not fit its space."""

    def __init__(self, code: int, length: int | None = None) -> None:
        self.code, self.length = code, length
        name = getattr(code, "name", "which this driver does not know")
        super().__init__(f"the accelerator reports error {int(code)}, {name}")


@dataclass(frozen=True, eq=False)
class Result:
    """What became of a tensor; with the payload, it is what decompression needs."""

    mode: str  # the one that was used: a tensor too small for jpeg-act has sfpr-zvc
    scales: np.ndarray | None  # k, float32 [channels]; None in a mode without scales
    settings: dict[str, int]  # a number for each of the mode's; ``table`` is a DQT of shifts
    counters: dict[str, int]  # by the names of the map; compressing, bytes_out is the length of the payload
    clipped: bool  # codes could not reach all values, as the scales were made for others (only modes of DIVISION tell)
    lengths: tuple[int, ...] = ()  # bytes of each lane's stream, in a mode whose payload is streams
    statistics: Statistics | None = None  # of the tensor, as float32, if it was scanned


@dataclass(frozen=True, eq=False)
class Task:
    """A tensor that can be done: its mode, all registers, and what of a result is known before."""

    mode: Any
    job: dict[str, int]
    scales: np.ndarray | None
    settings: dict[str, int]
    in_table: bool  # the table in memory has the scales, or will have

    @property
    def streamed(self) -> bool:
        """Whether there will be lengths of streams."""
        return bool(self.mode.format.endless and not self.job["decompress"] and "scan_only" not in self.job)


def sources(task: Task) -> tuple[str, ...]:
    """The values of the map that a result of ``task`` is made of, beside its error and the counters."""
    return (*(("lengths_out",) if task.streamed else ()),
            *(("minimum", "maximum", "zeros") if scanned(task.job) else ()))


async def conclude(task: Task, values: Mapping[str, int], memory: Any, cdus: int) -> Result:
    """The result, from what registers or a report say. Raises :class:`AcceleratorError` if there was an error."""
    if error := values["error"]:
        length = values["bytes_out"] if error == ErrorCode.OVERFLOW else None
        raise AcceleratorError(ErrorCode(error) if error in list(map(int, ErrorCode)) else error, length)
    lengths: tuple[int, ...] = ()
    statistics, scales = None, task.scales
    if task.streamed:
        lengths = tuple(values["lengths_out"] >> LENGTH * k & (1 << LENGTH) - 1 for k in range(cdus))
    if task.in_table:
        table = np.frombuffer(await memory.read(task.job["scales"], 4 * task.job["channels"]), "<u4")
        scales = (table & np.uint32(0xFFFF0000)).view(np.float32)
    if scanned(task.job):
        low, high = np.array([values["minimum"], values["maximum"]], np.uint32).view(np.float32)
        statistics = Statistics(low, high, values["zeros"], values["nans"])
    counters = {name: values[name] for name in COUNTERS if name in values}
    return Result(task.mode.name, scales, task.settings, counters, bool(values["clipped"]), lengths, statistics)
