"""The result of a tensor that an accelerator has processed."""

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
    """The accelerator reported an error for a tensor. ``code`` is an ``ErrorCode``, or a number that this driver does
    not know; ``length`` is that of the payload, in bytes, if it did not fit its buffer."""

    def __init__(self, code: int, length: int | None = None) -> None:
        self.code, self.length = code, length
        name = getattr(code, "name", "unknown to this driver")
        super().__init__(f"the accelerator reports error {int(code)}, {name}")


@dataclass(frozen=True, eq=False)
class Result:
    """The result of a tensor: with the payload, it has everything that decompression needs."""

    mode: str  # the mode used, such as sfpr-zvc for a tensor too small for jpeg-act
    scales: np.ndarray | None  # k, float32 [channels]; None in a mode without scales
    settings: dict[str, int]  # a number for each setting of the mode; ``table`` is a DQT of shifts
    counters: dict[str, int]  # by their names in the register map; bytes_out of a compression is the payload's length
    clipped: bool  # some values exceed the range of codes, as the scales are of another tensor (modes of DIVISION)
    lengths: tuple[int, ...] = ()  # bytes of each lane's stream, in modes with streams
    statistics: Statistics | None = None  # of the tensor, as float32, if it was scanned


@dataclass(frozen=True, eq=False)
class Task:
    """A tensor ready to run: its mode, all registers, and the part of its result that is known in advance."""

    mode: Any
    job: dict[str, int]
    scales: np.ndarray | None
    settings: dict[str, int]
    in_table: bool  # whether the table in memory has the scales, or will have them

    @property
    def streamed(self) -> bool:
        """Whether the result has the lengths of streams."""
        return bool(self.mode.format.endless and not self.job["decompress"] and "scan_only" not in self.job)


def sources(task: Task) -> tuple[str, ...]:
    """Names of the registers that the result of ``task`` needs, besides its error and the counters."""
    return (*(("lengths_out",) if task.streamed else ()),
            *(("minimum", "maximum", "zeros") if scanned(task.job) else ()))


async def conclude(task: Task, values: Mapping[str, int], memory: Any, cdus: int) -> Result:
    """The result, from the values of registers or of a report. Raises :class:`AcceleratorError` on an error."""
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
