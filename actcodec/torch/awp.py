"""A2DTWP: weights are sent in as many bytes as Algorithm 1 demands (Zhuang, Malossi, Casas, section II)."""

from contextlib import ContextDecorator
from typing import Any, Self

import torch

from actcodec.golden.a2dtwp import awp

__all__ = ["Awp", "truncated"]


class Truncate(torch.autograd.Function):
    """The upper bytes of float32 values. The gradient passes unchanged, since updates are of weights with all bits."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, roundto: Any) -> torch.Tensor:
        return truncated(x, roundto)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        return gradient, None


def truncated(x: torch.Tensor, roundto: int) -> torch.Tensor:
    """The result of Bitpack and Bitunpack: the upper ``roundto`` bytes of each float32 value, 1 to 4, the others zero.
    Raises ValueError."""
    if roundto not in (1, 2, 3, 4):
        raise ValueError(f"roundto is {roundto!r}, must be 1 to 4")
    return (x.detach().contiguous().view(torch.int32) & -1 << 8 * (4 - roundto)).view(torch.float32)


class Awp(ContextDecorator):
    """Runs a model with truncated copies of its weights, at a precision that grows while it is trained.

    A context around the forward pass, or a decorator of the function that does it. Call :meth:`update` after each step
    of the optimizer. Biases, and layers without a ``weight`` of two or more dimensions, keep all bits.

    Parameters
    ----------
    model : torch.nn.Module
        Its weights are float32; they are not changed.
    network : str
        ``alexnet``, ``vgg`` or ``resnet``: the network whose threshold and interval of the paper are used.
    threshold, interval, start, step
        Threshold and interval instead of these; bits in the beginning, and bits gained at a time: see
        ``golden/a2dtwp/awp.py``.

    Raises ValueError for a parameter out of range, a weight of another type, and a model without weights.
    """

    def __init__(self, model: torch.nn.Module, network: str = "resnet", *, threshold: float | None = None,
                 interval: int | None = None, start: int = awp.STEP, step: int = awp.STEP) -> None:
        if network not in awp.THRESHOLDS:
            raise ValueError(f"network is {network!r}, must be one of {', '.join(awp.THRESHOLDS)}")
        self.layers = {name: module for name, module in model.named_modules()
                       if getattr(module, "_parameters", {}).get("weight") is not None and module.weight.dim() > 1}
        for name, module in self.layers.items():
            if module.weight.dtype != torch.float32:
                raise ValueError(f"the weight of {name} is {module.weight.dtype}, must be float32")
        if not self.layers:
            raise ValueError("the model has no layer with weights of two or more dimensions")
        self._awp = awp.Awp(len(self.layers), awp.THRESHOLDS[network] if threshold is None else threshold,
                            awp.INTERVALS[network] if interval is None else interval, start, step)
        self._depth = 0

    @property
    def roundto(self) -> dict[str, int]:
        """Bytes kept of a weight in each layer, by its name."""
        return dict(zip(self.layers, self._awp.roundto.tolist(), strict=True))

    @property
    def ratio(self) -> float:
        """Bytes of all layers' weights over those that are sent."""
        sizes = [module._parameters["weight"].numel() for module in self.layers.values()]
        return 4 * sum(sizes) / sum(size * count for size, count in zip(sizes, self.roundto.values(), strict=True))

    def state_dict(self) -> dict[str, Any]:
        """What is needed to resume training, between two batches."""
        return self._awp.state()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resumes from :meth:`state_dict`."""
        self._awp.load(state)

    @torch.no_grad()
    def update(self) -> Any:
        """Chooses bytes by the norms of the weights after a batch, and returns :attr:`roundto` for the next one."""
        self._awp.update([float(module._parameters["weight"].double().norm()) for module in self.layers.values()])
        return self.roundto

    def __enter__(self) -> Self:
        if not self._depth:
            for module, count in zip(self.layers.values(), self.roundto.values(), strict=True):
                # shadows the parameter, which stays in its place for optimizers and state_dict
                module.__dict__["weight"] = Truncate.apply(module._parameters["weight"], count)
        self._depth += 1
        return self

    def __exit__(self, *error: Any) -> None:
        self._depth -= 1
        if not self._depth:
            for module in self.layers.values():
                del module.__dict__["weight"]

    def _recreate_cm(self):
        return self
