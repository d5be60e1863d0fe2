"""What a codec makes of a tensor."""

from dataclasses import dataclass
from typing import Any

import torch

__all__ = ["Packed"]


@dataclass(frozen=True, eq=False)
class Packed:
    """A compressed tensor."""

    mode: str  # the one that was used
    shape: tuple[int, ...]
    data: Any  # what its codec decodes
    payload: int | torch.Tensor  # bytes of the payload that the hardware would send
    side: int  # of scales and the like
    held: int  # bytes that are in fact in memory

    @property
    def nbytes(self) -> int:
        """Bytes of payload and side information."""
        return int(self.payload) + self.side
