"""A compressed tensor, of any mode."""

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from actcodec.codecs.registry import find, refused
from actcodec.golden.offload.memory.formats import CODES, HALVES

__all__ = ["CRC", "DTYPES", "HEADER", "KINDS", "MAGIC", "MOST_DIMENSIONS", "VERSION", "WORDS", "Compressed",
           "side_options", "view"]

DTYPES = {"float32": 4, "float16": 2, "bfloat16": 2, "float64": 8, CODES: 1}
"""Types that a tensor may have, and the bytes of a value. int8 are SFPR's codes, for modes that begin with SFPR."""

KINDS = {"float32": 0, "float16": 1, "bfloat16": 2, "float64": 3, CODES: 6}
"""Their codes in a file."""

WORDS = 3
"""What is added to a type's code in a file where the payload has words of the tensor's own 16 bits."""

MOST_DIMENSIONS = 5

MAGIC = b"\x89ACT"
VERSION = 1

HEADER = struct.Struct("<4sBBBBQ")  # magic, version, mode, CDUs, type and dimensions, bytes of payload
CRC = struct.Struct("<I")


def view(shape: Sequence[int]) -> tuple[int, ...]:
    """The shape in which a model sees a tensor of ``shape``: [N, C, H, W], or [N, F]. No data moves.

    Raises ValueError for a shape that no file can have.
    """
    shape = tuple(map(int, shape))
    if not 1 <= len(shape) <= MOST_DIMENSIONS:
        raise ValueError(f"shape {shape} has {len(shape)} dimensions, legal are 1 to {MOST_DIMENSIONS}")
    if min(shape) < 1:
        raise ValueError(f"shape {shape} is empty, every dimension must be at least 1")
    if max(shape) >= 1 << 32:
        raise ValueError(f"shape {shape} has a dimension of 2^32 or more")
    if len(shape) == 1:
        return 1, *shape
    if len(shape) == 3:
        n, c, length = shape
        return n, c, 1, length
    if len(shape) == 5:
        n, c, d, h, w = shape
        return n, c, d * h, w
    return shape


def side_options(dtype: str, options: dict) -> dict:
    """The options for ``side_bytes`` of a model, for a tensor of ``dtype``: codes have no scales."""
    return options | ({"dtype": dtype} if dtype == CODES else {})


@dataclass(frozen=True, eq=False)
class Compressed:
    """A compressed tensor: everything that decompression needs.

    Raises ValueError for an illegal mode, shape, type or option; :meth:`check` checks the rest.
    """

    mode: str  # the one that was used: a tensor without tiles has another than jpeg-act
    shape: tuple[int, ...]
    payload: bytes = field(repr=False)
    options: dict = field(default_factory=dict)  # a value for each option of the mode that files keep
    side: bytes = field(default=b"", repr=False)  # scales and the like, which the mode's model understands
    dtype: str = "float32"
    wide: bool = False  # words of float32 although the tensor has 16 bits: a file of earlier versions

    def __post_init__(self) -> None:
        view(self.shape)
        if self.dtype not in DTYPES:
            raise ValueError(f"dtype is {self.dtype!r}, legal are {', '.join(DTYPES)}")
        if self.dtype == CODES and not find(self.mode).codes:
            raise ValueError(refused(find(self.mode)))
        object.__setattr__(self, "shape", tuple(map(int, self.shape)))
        mode = find(self.mode)
        settings = mode.option_values(self.options)
        object.__setattr__(self, "options", {option.name: settings[option.name] for option in mode.options
                                             if option.stored})

    def check(self) -> None:
        """Raises ValueError where payload, side information and shape contradict each other, as far as can be checked
        without decompression."""
        model, tensor = find(self.mode).model, self.seen
        expected = model.side_bytes(tensor.shape, **side_options(self.dtype, self.options))
        if len(self.side) != expected:
            raise ValueError(f"mode {self.mode} has {expected} bytes of side information for shape {self.shape}, not "
                             f"{len(self.side)}")
        model.check(tensor)

    @property
    def seen(self) -> Self:
        """Itself as a model sees it: a tensor with the shape of :func:`view`, float32 unless :attr:`halves` or
        codes."""
        own = self.halves or self.dtype == CODES
        return replace(self, shape=view(self.shape), dtype=self.dtype if own else "float32")

    @property
    def halves(self) -> bool:
        """Whether the payload has words of the tensor's own 16 bits."""
        return self.dtype in HALVES and not self.wide and bool(find(self.mode).halves)

    @property
    def cdus(self) -> int:
        return self.options.get("cdus", 1)

    @property
    def length(self) -> int:
        """Values of the tensor."""
        return math.prod(self.shape)

    @property
    def tensor_bytes(self) -> int:
        """Bytes of the tensor."""
        return DTYPES[self.dtype] * self.length

    @property
    def payload_bytes(self) -> int:
        return len(self.payload)

    def head(self) -> bytes:
        """Everything before the payload in the .act file (:mod:`actcodec.container`)."""
        mode = find(self.mode)
        code = mode.variant(self.options).code
        kind = KINDS[self.dtype] + (WORDS if self.halves else 0) << 4 | len(self.shape)
        parts = [HEADER.pack(MAGIC, VERSION, code, self.cdus, kind, len(self.payload)),
                 struct.pack(f"<{len(self.shape)}I", *self.shape)]
        parts += [option.pack(self.options[option.name]) for option in mode.written(self.options)]
        return b"".join([*parts, self.side])

    @property
    def nbytes(self) -> int:
        """Bytes of the whole file: header, options and side information count too."""
        return len(self.head()) + len(self.payload) + CRC.size

    @property
    def ratio(self) -> float:
        """Bytes of the tensor over bytes of the payload."""
        return self.tensor_bytes / self.payload_bytes if self.payload else math.inf

    @property
    def ratio_with_side(self) -> float:
        """Bytes of the tensor over bytes of the whole file."""
        return self.tensor_bytes / self.nbytes
