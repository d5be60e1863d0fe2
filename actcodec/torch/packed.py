"""The result of a codec."""

from dataclasses import dataclass
from typing import Any

import torch

__all__ = ["Packed"]


@dataclass(frozen=True, eq=False)
class Packed:
    """A compressed tensor."""

    mode: str  # the mode used
    shape: tuple[int, ...]
    data: Any  # of the codec, which decodes it
    payload: int | torch.Tensor  # bytes of the payload that the hardware would send
    side: int  # of scales and the like
    held: int  # bytes actually in memory
    dtype: torch.dtype = torch.float32  # of the tensor that comes back
    version: int | None = None  # of a tensor that is kept as it is, and must not change

    @property
    def nbytes(self) -> int:
        """Bytes of payload and side information."""
        return int(self.payload) + self.side
