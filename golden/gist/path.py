"""The stage of DPR's modes (see `golden.jpegact.path`): values to codes, each at the top of a word."""


from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from actcodec.golden.gist import dpr
from actcodec.golden.jpegact.path import Stage


class Dpr(Stage):
    """The format ``form`` of DPR."""

    form: ClassVar[str]

    def forward(self, x: NDArray[np.float32], settings: Mapping[str, int]) -> NDArray[np.float32]:
        return dpr.words(dpr.quantize(x, self.form), self.form)

    def backward(self, x: NDArray[np.float32], settings: Mapping[str, int]) -> NDArray[np.float32]:
        return dpr.dequantize(dpr.codes(x, self.form), self.form)


class Fp16(Dpr):
    form = "fp16"


class Fp10(Dpr):
    form = "fp10"


class Fp8(Dpr):
    form = "fp8"
