"""COMET's control of error bounds during training (COMET, sections 3.1 to 3.4, equations 1 to 3)."""

import math
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from actcodec.golden.comet import adaptive
from actcodec.torch import rules as ruling

__all__ = ["Adaptive"]

KINDS = tuple(kind for kind in ruling.ACTIVATIONS if kind != "mask")


class Adaptive:
    """Bounds the error of each convolution's input so that the error of its weights' gradient has a desired size.

    It adds a rule for each convolution to a :class:`~actcodec.torch.Compress`, before the rules that this has already,
    which still apply to all other tensors, and to all tensors until step ``window``. Call :meth:`update` after each
    step of the optimizer.

    Parameters
    ----------
    compress : Compress
        Of the model, with the rules that it has when this is created.
    optimizer : torch.optim.Optimizer
        Its momentum is that of equation 1; without momentum, gradients are used instead.
    fraction, window, change
        Error of a gradient as a share of the mean magnitude of the momentum; W, the steps from one update of the bounds
        to the next; and the change of a bound, as a factor, that halves W: see ``golden/comet/adaptive.py``. The
        coefficient of equation 3 is determined for each layer at its first update (``calibrate`` there).
    measure : bool
        Whether to measure the errors of gradients, too, whenever bounds are set.

    Convolutions are those of ``torch.nn.Conv2d``. A tensor is identified by the layer that saves it first; if
    convolutions share one, the smaller bound counts. Raises ValueError for a model without a convolution, and for
    a parameter out of range.

    Attributes
    ----------
    history : list of dictionaries
        One for each time that bounds were set: ``step``; ``window``, W at that time; and ``layers``: for each its new
        ``bound`` and the ``target`` of equation 1, and, if it had a bound before, the error that equation 3
        ``predicted`` for that bound in this step, and the ``measured`` one.
    """

    def __init__(self, compress: Any, optimizer: Any, *, fraction: float = 0.01, window: int = 1000,
                 change: float = 2.0, measure: bool = False) -> None:
        self.compress, self.optimizer, self.measure = compress, optimizer, measure
        self._rest, self._step = compress.rules, 0
        self.history: list[dict[str, Any]] = []
        self._statistics: dict[str, dict[str, Any]] = {}
        self._layers: dict[str, str] = {}  # {convolution: the layer that saves its input}
        self._calibrated: set[str] = set()  # convolutions with a coefficient
        self._modules = {name: module for name, module in compress.model.named_modules()
                         if isinstance(module, nn.Conv2d)}
        if not self._modules:
            raise ValueError("the model has no convolution")
        self._control = adaptive.Adaptive(self._modules, 1.0, fraction, window, change)
        compress.layers.watch = self._pass

    @property
    def bounds(self) -> dict[str, Any]:
        """The error bound of each convolution's input, by its name; None as long as it has none."""
        return dict(self._control.bounds)

    def state_dict(self) -> dict[str, Any]:
        """What is needed to resume training, between two steps."""
        return {"step": self._step, "history": list(self.history), "layers": dict(self._layers),
                "calibrated": sorted(self._calibrated), "control": self._control.state()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resumes from :meth:`state_dict`, and sets its bounds."""
        self._step, self.history = state["step"], list(state["history"])
        self._layers, self._calibrated = dict(state["layers"]), set(state["calibrated"])
        self._control.load(state["control"])
        if self.history:
            self._apply()

    def _pass(self, name, module, args, output):
        """Measures a convolution in a step in which bounds are set."""
        if name not in self._modules or not output.requires_grad or not self._control.due(self._step + 1):
            return
        if len(args) != 1 or not module.weight.requires_grad:
            return
        x, = args
        with torch.no_grad():
            entry = self.compress.kept(x)
            if entry is None or not x.requires_grad:  # a picture
                return
            layer, values = entry
            statistics = {"layer": layer, "batch": len(x), "positions": output[0, 0].numel(),
                          "density": torch.count_nonzero(values).item() / values.numel()}
            self._statistics[name] = statistics
            error = values - x if self.measure and self._control.bounds[name] else None
        output.register_hook(lambda gradient: self._passed(name, statistics, error, gradient))

    def _passed(self, name, statistics, error, gradient):
        statistics["loss"] = float(gradient.abs().mean(dtype=torch.float64))
        if statistics["loss"] and name not in self._calibrated:
            self._control.a[name] = adaptive.calibrate(statistics["positions"], gradient.float().cpu().numpy())
            self._calibrated.add(name)
        if error is not None:
            module = self._modules[name]
            error = F.pad(error, module._reversed_padding_repeated_twice)  # ``padding`` may be a word
            wrong = torch.nn.grad.conv2d_weight(error, module.weight.shape, gradient, module.stride, 0,
                                                module.dilation, module.groups)
            statistics["measured"] = float(wrong.double().std())

    def update(self) -> None:
        """Sets the bounds, if this step is due."""
        self._step += 1
        # A layer that has no gradient, or had none but zeros so far, waits for another look.
        self._statistics = {name: statistics for name, statistics in self._statistics.items()
                       if name in self._calibrated and self._modules[name].weight.grad is not None}
        if not self._control.due(self._step) or not self._statistics:
            return
        layers = {}
        for name, statistics in self._statistics.items():
            weight, before = self._modules[name].weight, self._control.bounds[name]
            momentum = self.optimizer.state.get(weight, {}).get("momentum_buffer")
            momentum = weight.grad if momentum is None else momentum
            statistics["momentum"] = float(momentum.abs().mean(dtype=torch.float64))
            layers[name] = {"target": self._control.fraction * statistics["momentum"]}
            if before:
                layers[name]["predicted"] = (self._control.a[name] * statistics["loss"] * before
                                             * math.sqrt(statistics["batch"] * statistics["density"]))
                layers[name] |= {"measured": statistics["measured"]} if "measured" in statistics else {}
        self._set()
        for name, one in layers.items():
            one["bound"] = self._control.bounds[name]
        self.history.append({"step": self._step, "window": self._control.interval, "layers": layers})
        self._statistics.clear()

    def _set(self):
        values = {key: {name: self._statistics.get(name, {}).get(key, math.nan) for name in self._modules}
                  for key in ("momentum", "loss", "density")}  # NaN gives no bound
        batch = next(iter(self._statistics.values()))["batch"]
        self._control.update(self._step, batch=batch, **values)
        self._layers |= {name: statistics["layer"] for name, statistics in self._statistics.items()}
        self._apply()

    def _apply(self):
        bounds: dict[str, float] = {}
        for name, layer in self._layers.items():  # one that did not run this time keeps its bound
            if eb := self._control.bounds[name]:
                bounds[layer] = min(eb, bounds.get(layer, math.inf))
        self.compress.set(rules=[*(ruling.rule("comet", kind=KINDS, layer=layer, error_bound=eb)
                                   for layer, eb in bounds.items()), *self._rest])
