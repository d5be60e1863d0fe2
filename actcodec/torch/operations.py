"""Which PyTorch function is running, and what it needs of the tensors that it saves."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Integral
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from actcodec.torch import saved
from actcodec.torch.needs import EXACT, SHAPE, Bit, Need, Noise, Places

__all__ = ["Operations"]

RELU = Bit(0, None, 1, 0, nan=True)
RECURRENT = frozenset({torch.lstm, torch.gru, torch.rnn_tanh, torch.rnn_relu})
PLAIN = (Tensor, torch.nn.Parameter)
INDEXED = ("cpu", "cuda")  # where a max pooling saves places of its maxima, and needs no values


def _between(low, high):
    """A finite number between two bounds, of which any may be infinite or None."""
    low, high = -math.inf if low is None else low, math.inf if high is None else high
    if math.isfinite(low) and math.isfinite(high):
        return low / 2 + high / 2
    if low < 0 < high:
        return 0.0
    return 2 * low + 1 if math.isfinite(low) else 2 * high - 1


def _values(*arguments):
    return None


def _exact(*arguments, **options):
    return EXACT


def _divisor(input, other, rounding_mode=None):
    return other  # which alone has to be exact


def _pow(input, exponent):
    whole = isinstance(exponent, int | float) and exponent >= 1 and float(exponent).is_integer()
    return None if whole or not isinstance(input, Tensor) else EXACT


def _norm(input, p="fro", *arguments, **options):
    return EXACT if p in (math.inf, -math.inf) else None


def _linalg_norm(*arguments, ord=None, **options):  # whose first one has several names
    return _norm(None, arguments[1] if len(arguments) > 1 else ord)


def _relu(input, inplace=False):
    return RELU


def _relu6(input, inplace=False):
    return _hardtanh(input, 0.0, 6.0)


def _hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    return Bit(min_val, max_val, _between(min_val, max_val), math.inf)


def _leaky_relu(input, negative_slope=0.01, inplace=False):
    return Bit(0, None, 1, -1)


def _threshold(input, threshold, value, inplace=False):
    return Bit(threshold, None, math.inf, -math.inf, nan=True)


def _clamp(input, min=None, max=None):
    if isinstance(min, Tensor) or isinstance(max, Tensor) or (min is None and max is None):
        return EXACT
    return Bit(min, max, _between(min, max), math.nan, closed=True)


def _clamp_min(input, min):
    return _clamp(input, min)


def _clamp_max(input, max):
    return _clamp(input, None, max)


def _dropout(input, p=0.5, training=True, inplace=False):
    return Noise()


def _dropout_of_torch(input, p, train):
    return Noise()


def _pair(value):
    return (value, value) if isinstance(value, Integral) else (*value, *value)[:2]


def _max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    kernel = _pair(kernel_size)
    return Places(tuple(input.shape[-2:]), kernel, _pair(stride) if stride else kernel, _pair(padding), _pair(dilation))


def _methods(names: str, function: Callable[..., Need | None]) -> dict[Callable[..., Any], Callable[..., Need | None]]:
    """``{function of torch or method of tensors: function}`` for those of these names that exist."""
    return {getattr(where, name): function for where in (torch, Tensor) for name in names.split()
            if hasattr(where, name)}


NEEDS: dict[Any, Callable[..., Any]] = {
    F.relu: _relu, **_methods("relu relu_", _relu), F.relu6: _relu6,
    F.hardtanh: _hardtanh, F.hardtanh_: _hardtanh,
    F.leaky_relu: _leaky_relu, F.leaky_relu_: _leaky_relu,
    F.threshold: _threshold, vars(F)["threshold_"]: _threshold, **_methods("threshold threshold_", _threshold),
    **_methods("clamp clamp_ clip clip_", _clamp), **_methods("clamp_min clamp_min_", _clamp_min),
    **_methods("clamp_max clamp_max_", _clamp_max),
    F.dropout: _dropout, torch.dropout: _dropout_of_torch, torch.dropout_: _dropout_of_torch,
    F.max_pool2d: _max_pool2d, torch.max_pool2d: _max_pool2d, **dict.fromkeys(RECURRENT, _values),
    **_methods("amax amin aminmax max min maximum minimum fmax fmin prod cumprod sqrt sqrt_ rsqrt rsqrt_ reciprocal "
               "reciprocal_ log log_ log2 log2_ log10 log10_ log1p log1p_ asin asin_ acos acos_ acosh acosh_ atanh "
               "atanh_ logit logit_ erfinv erfinv_ xlogy xlogy_ atan2 atan2_ __rdiv__ __rtruediv__", _exact),
    **_methods("div div_ divide divide_ true_divide true_divide_ __div__ __truediv__ __idiv__ __itruediv__", _divisor),
    **_methods("pow pow_ float_power float_power_ __pow__ __ipow__", _pow), **_methods("norm", _norm),
    torch.linalg.norm: _linalg_norm, torch.linalg.vector_norm: _linalg_norm,
}
"""What these functions need, by a function of their arguments."""


class Operations(TorchFunctionMode):
    """A context that knows which function of :data:`NEEDS` is running: what autograd saves meanwhile, it saves.

    The graph is no alternative: nodes have what they saved, but reading that of a checkpoint recomputes it. Compilers
    trace through the context.
    """

    def __init__(self) -> None:
        super().__init__()
        self._running: tuple[Callable[..., Any], Any, Any] | None = None

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        foreign = any(one not in PLAIN for one in types)  # which may run other functions
        if torch.compiler.is_compiling() or func not in NEEDS or foreign:
            return func(*args, **kwargs)
        outer, self._running = self._running, (func, args, kwargs)
        try:
            return func(*args, **kwargs)
        finally:
            self._running = outer

    @property
    def recurrent(self) -> bool:
        """Whether a function is running that is a whole recurrent network."""
        return self._running is not None and self._running[0] in RECURRENT

    def need(self, tensor: Tensor) -> Need | None:
        """What the running function needs of a tensor that is being saved; None for its values."""
        if self._running is None:
            return None
        function, args, kwargs = self._running
        need = NEEDS[function](*args, **kwargs)
        if isinstance(need, Tensor):
            return EXACT if saved.memory(tensor) == saved.memory(need) else None
        if isinstance(need, Bit):
            known = need.closed or tensor.dtype in (torch.float32, torch.float64) or all(
                bound is None or torch.tensor(bound, dtype=tensor.dtype).item() == bound
                for bound in (need.low, need.high))  # otherwise the rounding of a bound depends on the device
            return need if known and tensor.is_floating_point() else None
        if isinstance(need, Places):
            if tensor.dtype is torch.int64:
                return need if need.fits else None
            return SHAPE if tensor.is_floating_point() and tensor.device.type in INDEXED else None
        if isinstance(need, Noise):
            source = args[0] if args else kwargs["input"]
            return need if not tensor.requires_grad and tensor.shape == source.shape else None
        return need if need is EXACT else None
