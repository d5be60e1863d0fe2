"""The stages of MX's modes, a model for each function of ``rtl/mx/path.py`` (see `jpegact/path.py`)."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from actcodec.golden.jpegact.path import Fixed
from actcodec.golden.mx import element
from actcodec.golden.mx.scale import GROUP, RULES, scales
from actcodec.golden.offload.blocks import BLOCK

__all__ = ["E2M1", "E2M3", "E3M2", "E4M3", "E5M2", "HEAD", "CodedInt8", "Element", "Int8", "counts", "pack", "unpack"]

HEAD = BLOCK // GROUP  # scales in front of a block


def pack(codes: NDArray[np.uint8], width: int) -> NDArray[np.uint8]:
    """Codes [..., n] of `width` bits, the first one in the lowest bits: uint8 [..., n * width / 8]."""
    if width == 8:
        return codes
    bits = np.unpackbits(codes[..., None], axis=-1, count=width, bitorder="little")
    return np.packbits(bits.reshape(*codes.shape[:-1], -1), axis=-1, bitorder="little")


def unpack(data: NDArray[np.uint8], width: int) -> NDArray[np.uint8]:
    """The reverse of `pack`."""
    if width == 8:
        return data
    bits = np.unpackbits(data, axis=-1, bitorder="little").reshape(*data.shape[:-1], -1, width)
    return np.packbits(bits, axis=-1, bitorder="little")[..., 0]


def counts(x: NDArray[np.float32], form: element.Format, rule: str) -> tuple[int, int]:
    """NaNs of `x`, float32 [..., 32], and values that saturate."""
    _, beyond = element.encode(x, scales(x, form, rule)[..., None], form)
    return int(np.count_nonzero(np.isnan(x))), int(np.count_nonzero(beyond))


class Element(Fixed):
    """Blocks of two scales and 64 elements of one format: packed, or a byte each for a coder that follows (see
    `coded`)."""

    form: element.Format
    rule = "rule"  # the setting's name

    def __init__(self) -> None:
        self.shortest = HEAD + BLOCK * self.form.width // 8

    def settings(self, rule: str = RULES[0], **options: Any) -> dict[str, int]:
        return {self.rule: RULES.index(rule)}

    def forward(self, x: np.ndarray, settings: Mapping[str, int]) -> NDArray[np.uint8]:
        """Scales and codes of blocks, uint8 [n, 2 + 64]."""
        x = x.reshape(-1, HEAD, GROUP)
        scale = scales(x, self.form, RULES[settings[self.rule]])
        codes, _ = element.encode(x, scale[..., None], self.form)
        return np.concatenate([scale, codes.reshape(-1, BLOCK)], axis=1)

    def backward(self, x: np.ndarray, settings: Mapping[str, int]) -> NDArray[np.float32]:
        """The reverse. Of a byte with more bits than a code has, these do not count."""
        codes = (x[:, HEAD:] & np.uint8((1 << self.form.width) - 1)).reshape(-1, HEAD, GROUP)
        return element.decode(codes, x[:, :HEAD, None], self.form).reshape(-1, BLOCK)

    def encode(self, x: np.ndarray, settings: Mapping[str, int]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        x = self.forward(x, settings)
        payload = np.concatenate([x[:, :HEAD], pack(x[:, HEAD:], self.form.width)], axis=1).reshape(-1)
        return payload, self.sizes(payload, len(x))

    def decode(self, payload: NDArray[np.uint8], sizes: NDArray[np.int64], shape: tuple[int, ...],
               settings: Mapping[str, int]) -> np.ndarray:
        payload = payload.reshape(-1, self.shortest)
        codes = unpack(payload[:, HEAD:], self.form.width)
        return self.backward(np.concatenate([payload[:, :HEAD], codes], axis=1), settings).reshape(shape)


class Int8(Element):
    form = element.FORMATS["int8"]


class CodedInt8(Int8):
    """In front of a coder whose table has the bits that the rule has elsewhere."""

    rule = "coded_rule"


class E4M3(Element):
    form = element.FORMATS["e4m3"]


class E5M2(Element):
    form = element.FORMATS["e5m2"]


class E3M2(Element):
    form = element.FORMATS["e3m2"]


class E2M3(Element):
    form = element.FORMATS["e2m3"]


class E2M1(Element):
    form = element.FORMATS["e2m1"]
