"""What the accelerator takes for a tensor, by the cycles that ``make bench`` has recorded."""

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from actcodec.golden.offload.blocks import View

__all__ = ["BLOCK", "Accelerator", "per_block", "per_tensor"]

BLOCK = 8.0  # cycles of a block in a CDU: eight sectors, one per cycle
GROUP = 4  # blocks that go to the same CDU
WIRE = 128  # bytes of the stream per cycle
WAYS = ("compress", "decompress")


@cache
def _record() -> dict[str, Any]:
    record: dict[str, Any] = json.loads(resources.files("actcodec").joinpath("data/bench.json").read_text())
    return record


def per_block(mode: str, width: int, cdus: int, decompress: bool) -> float:
    """Cycles of a block of ``mode`` in each CDU, at the widest recorded width up to that; :data:`BLOCK`, the limit,
    where no rate is recorded."""
    record = _record()
    if mode in record["rates"]:
        by_width = {int(one): cycles for one, cycles in record["rates"][mode][WAYS[decompress]].items()}
        return float(by_width[max((one for one in by_width if one <= width), default=min(by_width))])
    if mode in record["streams"]:
        rates = next(iter(record["streams"][mode].values()))
        return float(BLOCK / rates["1" if cdus == 1 else max(rates, key=int)][1 + 2 * decompress])
    return BLOCK


def per_tensor(mode: str, decompress: bool) -> int:
    """Cycles of a tensor before its first and after its last block; of modes without a record, the most of others."""
    record = _record()["tensors"]
    return int(record[mode][decompress] if mode in record else max(one[decompress] for one in record.values()))


@dataclass(frozen=True)
class Accelerator:
    """An accelerator of ``cdus`` CDUs at ``clock`` Hz, with a DMA engine of ``link`` bytes per second."""

    cdus: int
    clock: float
    link: float

    def seconds(self, mode: str, view: View, stored: float, decompress: bool) -> float:
        """Of a tensor that takes ``stored`` bytes on the link. The slowest of CDUs, stream and link limits its blocks;
        before and after these nothing overlaps."""
        blocks = view.blocks(False)
        most = min(GROUP * -(-blocks // (GROUP * self.cdus)), blocks)
        passing = most * per_block(mode, view.width, self.cdus, decompress)
        return max(max(passing, stored / WIRE) / self.clock, stored / self.link) + per_tensor(
            mode, decompress) / self.clock
