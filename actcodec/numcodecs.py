"""A codec for numcodecs, and so for Zarr arrays of format 2: ``compressor={"id": "actcodec", "mode": "sfpr-zvc"}``.

numcodecs finds it by its entry point. Each chunk is stored as an .act file (docs/container.md). For Zarr's format 3 use
:mod:`actcodec.zarr`.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numcodecs.abc import Codec
from numcodecs.compat import ensure_bytes, ndarray_copy

from actcodec import api, codecs, container

__all__ = ["Actcodec", "check_dtype", "plain"]


def plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options for JSON: arrays, such as a quantization table, become lists, and NumPy's numbers become Python's."""
    return {name: value.ravel().tolist() if isinstance(value, np.ndarray) else
            value.item() if isinstance(value, np.generic) else value for name, value in options.items()}


def check_dtype(x: np.ndarray) -> None:
    """Raises TypeError for chunks of types that Zarr has for something else: int8 would be codes of SFPR."""
    if x.dtype.name not in ("float16", "float32", "float64"):
        raise TypeError(f"chunk is {x.dtype}, must be float16, float32 or float64")


class Actcodec(Codec):
    """A mode with its options, as ``actcodec.compress`` takes them.

    Chunks are float16, float32 or float64 arrays of 1 to 5 dimensions, in C order and native byte order. Raises
    ValueError or TypeError for anything else.

    >>> import numcodecs, numpy as np
    >>> codec = numcodecs.get_codec({"id": "actcodec", "mode": "jpeg-act", "dqt": "optH"})
    >>> codec.decode(codec.encode(np.ones((1, 8, 16, 16), np.float32))).shape
    (1, 8, 16, 16)
    """

    codec_id = "actcodec"

    def __init__(self, mode: str, **options: Any) -> None:
        codecs.find(mode).option_values(options)  # raises for illegal ones
        self.mode, self.options = mode, plain(options)

    def encode(self, buf: Any) -> bytes:
        x = np.asarray(buf)
        check_dtype(x)
        if not x.dtype.isnative or not x.flags.c_contiguous:
            raise ValueError(f"chunk has dtype {x.dtype.str} and strides {x.strides}, must be in C order and native "
                             "byte order")
        return container.pack(api.compress(x, self.mode, **self.options))

    def decode(self, buf: Any, out: Any = None) -> Any:
        return ndarray_copy(api.decompress(container.unpack(ensure_bytes(buf))), out)

    def get_config(self) -> dict[str, Any]:
        return {"id": self.codec_id, "mode": self.mode, **self.options}

    def __repr__(self) -> str:
        options = "".join(f", {name}={value!r}" for name, value in self.options.items())
        return f"Actcodec({self.mode!r}{options})"
