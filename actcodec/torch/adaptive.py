"""COMET's control of the error bounds while a network is trained (COMET, sections 3.1 to 3.4, equations 1 to 3)."""

import math
from typing import Any

import torch
from torch import nn

from actcodec.golden.comet import adaptive
from actcodec.torch import rules as ruling

__all__ = ["Adaptive"]

KINDS = tuple(kind for kind in ruling.ACTIVATIONS if kind != "mask")


class Adaptive:
    """Bounds the error of each convolution's input so that the error of its weights' gradient has the wanted size.

    It gives a :class:`~actcodec.torch.Compress` a rule for each convolution, in front of those it has, which are for
    all other tensors, and until step ``window`` for all. Call :meth:`update` after each step of the optimizer.

    Parameters
    ----------
    compress : Compress
        Of the model; its own rules are those of now.
    optimizer : torch.optim.Optimizer
        Its momentum is equation 1's; without momentum, the gradients take its place.
    fraction, window, change
        Error of a gradient as a share of the mean magnitude of the momentum; W, steps from one look at the network to
        the next; and the factor of a bound that halves W: see ``golden/comet/adaptive.py``. The coefficient of equation
        3 is found for each layer at the first look that meets it (``calibrate`` there).
    measure : bool
        Whether the errors of gradients are measured, too, whenever bounds are set.

    Convolutions are those of ``torch.nn.Conv2d``. Tensors are told apart by the layer that saves them first;
    where convolutions share one, the smaller bound counts. Raises ValueError for a model without a convolution, and for
    a parameter out of range.

    Attributes
    ----------
    history : list of dictionaries
        One for each time that bounds were set: ``step``; ``window``, the W of then; and ``layers``: for each its new
        ``bound`` and the ``target`` of equation 1, and, if it had a bound before, the error that equation 3
        ``predicted`` for that one in this step, and the ``measured`` one.
    """

    def __init__(self, compress: Any, optimizer: Any, *, fraction: float = 0.01, window: int = 1000,
                 change: float = 2.0, measure: bool = False) -> None:
        self.compress, self.optimizer, self.measure = compress, optimizer, measure
        self._rest, self._step = compress.rules, 0
        self.history: list[dict[str, Any]] = []
        self._found: dict[str, dict[str, Any]] = {}
        self._layers: dict[str, str] = {}  # which one saves a convolution's input
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
        """What a run that is resumed needs, between two steps."""
        return {"step": self._step, "history": list(self.history), "layers": dict(self._layers),
                "calibrated": sorted(self._calibrated), "control": self._control.state()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Sets the bounds of a run that is resumed."""
        self._step, self.history = state["step"], list(state["history"])
        self._layers, self._calibrated = dict(state["layers"]), set(state["calibrated"])
        self._control.load(state["control"])
        if self.history:
            self._apply()

    def _pass(self, name, module, args, output):
        """Looks at a convolution in a step that bounds are set in."""
        if name not in self._modules or not output.requires_grad or not self._control.due(self._step + 1):
            return
        if len(args) != 1 or not module.weight.requires_grad:
            return
        x, = args
        with torch.no_grad():
            kept = self.compress.kept(x)
            if kept is None or not x.requires_grad:  # a picture
                return
            layer, values = kept
            found = self._found[name] = {"layer": layer, "batch": len(x), "positions": output[0, 0].numel(),
                                         "density": torch.count_nonzero(values).item() / values.numel()}
            error = values - x if self.measure and self._control.bounds[name] else None
        output.register_hook(lambda gradient: self._passed(name, found, error, gradient))

    def _passed(self, name, found, error, gradient):
        found["loss"] = float(gradient.abs().mean(dtype=torch.float64))
        if found["loss"] and name not in self._calibrated:
            self._control.a[name] = adaptive.calibrate(found["positions"], gradient.float().cpu().numpy())
            self._calibrated.add(name)
        if error is not None:
            module = self._modules[name]
            wrong = torch.nn.grad.conv2d_weight(error, module.weight.shape, gradient, module.stride, module.padding,
                                                module.dilation, module.groups)
            found["measured"] = float(wrong.double().std())

    def update(self) -> None:
        """Sets the bounds, if it is time to."""
        self._step += 1
        # A layer that has no gradient, or had none but zeros so far, waits for another look.
        self._found = {name: found for name, found in self._found.items()
                       if name in self._calibrated and self._modules[name].weight.grad is not None}
        if not self._control.due(self._step) or not self._found:
            return
        layers = {}
        for name, found in self._found.items():
            weight, before = self._modules[name].weight, self._control.bounds[name]
            momentum = self.optimizer.state.get(weight, {}).get("momentum_buffer")
            found["momentum"] = float((weight.grad if momentum is None else momentum).abs().mean(dtype=torch.float64))
            layers[name] = {"target": self._control.fraction * found["momentum"]}
            if before:
                layers[name]["predicted"] = (self._control.a[name] * found["loss"] * before
                                             * math.sqrt(found["batch"] * found["density"]))
                layers[name] |= {"measured": found["measured"]} if "measured" in found else {}
        self._set()
        for name, one in layers.items():
            one["bound"] = self._control.bounds[name]
        self.history.append({"step": self._step, "window": self._control.interval, "layers": layers})
        self._found.clear()

    def _set(self):
        values = {key: {name: self._found.get(name, {}).get(key, math.nan) for name in self._modules}
                  for key in ("momentum", "loss", "density")}  # NaN gives no bound
        batch = next(iter(self._found.values()))["batch"]
        self._control.update(self._step, batch=batch, **values)
        self._layers |= {name: found["layer"] for name, found in self._found.items()}
        self._apply()

    def _apply(self):
        bounds: dict[str, float] = {}
        for name, layer in self._layers.items():  # one that was not met this time keeps its bound
            if eb := self._control.bounds[name]:
                bounds[layer] = min(eb, bounds.get(layer, math.inf))
        self.compress.set(rules=[*(ruling.rule("comet", kind=KINDS, layer=layer, error_bound=eb)
                                   for layer, eb in bounds.items()), *self._rest])
