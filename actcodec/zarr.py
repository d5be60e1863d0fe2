"""A codec for Zarr arrays of format 3: ``zarr.create_array(..., serializer=actcodec.zarr.Actcodec("sfpr-zvc"))``.

Zarr finds it by its entry point when it reads such an array. Each chunk is stored as an .act file (docs/container.md).
For format 2 use :mod:`actcodec.numcodecs`.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Any, Self

from zarr.abc.codec import ArrayBytesCodec

from actcodec import api, codecs, container
from actcodec.numcodecs import check_dtype, plain

__all__ = ["Actcodec"]


@dataclass(frozen=True)
class Actcodec(ArrayBytesCodec):
    """A mode with its options, as ``actcodec.compress`` takes them. Chunks are float16, float32 or float64
    arrays of 1 to 5 dimensions. Raises ValueError or TypeError for anything else."""

    mode: str
    options: dict = field(default_factory=dict)

    is_fixed_size = False

    def __init__(self, mode: str, **options: Any) -> None:
        codecs.find(mode).option_values(options)  # raises for illegal ones
        object.__setattr__(self, "mode", mode)
        object.__setattr__(self, "options", plain(options))

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        return cls(**data["configuration"])

    def to_dict(self) -> dict[str, Any]:
        return {"name": "actcodec", "configuration": {"mode": self.mode, **self.options}}

    async def _encode_single(self, chunk_array, chunk_spec):
        x = chunk_array.as_numpy_array()
        check_dtype(x)
        compressed = await asyncio.to_thread(api.compress, x, self.mode, **self.options)
        return chunk_spec.prototype.buffer.from_bytes(container.pack(compressed))

    async def _decode_single(self, chunk_bytes, chunk_spec):
        compressed = container.unpack(chunk_bytes.to_bytes())
        x = await asyncio.to_thread(api.decompress, compressed)
        return chunk_spec.prototype.nd_buffer.from_numpy_array(x.reshape(chunk_spec.shape))

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: Any) -> int:
        # Zarr expects this of a codec whose size is not fixed.
        raise NotImplementedError("the size of a chunk depends on its values")
