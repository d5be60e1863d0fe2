"""A network in training: a step at a time, from the start or from a checkpoint."""

import math
import time
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch

from actcodec.files import UserError
from actcodec.torch import Adaptive, Awp, Compress
from actcodec.train.configuration import span, steps
from actcodec.train.data import Cifar10, Loaders
from actcodec.train.networks import NETWORKS, named
from actcodec.train.step import step

__all__ = ["Training"]


class Training:
    """The run of a ``configuration``; ``folder`` has CIFAR-10, for runs that train on it.

    :meth:`advance` trains one step, :meth:`result` tests. Between steps, :meth:`save` writes the whole state to a file,
    and :meth:`load` of another object resumes from it, with the same batches and the same results.
    """

    def __init__(self, configuration: dict[str, Any], folder: str | Path) -> None:
        torch.set_num_threads(1)  # runs go side by side
        torch.backends.cudnn.benchmark = True
        self.configuration = c = configuration
        self.clock = time.process_time if c["device"] == "cpu" else time.perf_counter
        self.start = self.clock()
        torch.manual_seed(c["seed"])
        self.model = named("network", c["network"], NETWORKS)().to(c["device"])
        self.data = (Cifar10(folder, c["device"], c["batch"], c["seed"]) if c["data"] == "cifar10" else
                     Loaders(named("data", c["data"], {})(), c["data"], c["device"], c["seed"]))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a mode is slow was said for the sweep
            self.compress = Compress(self.model, c["preset"], engine=c["engine"], error_every=0, **c["options"])
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=c["rate"], momentum=0.9, nesterov=True,
                                         weight_decay=5e-4)
        self.rates = torch.optim.lr_scheduler.OneCycleLR(self.optimizer, c["rate"], total_steps=c["steps"] + 1)
        self.control = None if c["adaptive"] is None else Adaptive(self.compress, self.optimizer, measure=True,
                                                                   **c["adaptive"])
        self.weights = None if c["awp"] is None else Awp(self.model, **c["awp"])
        self.changes = steps(c) or {0: {}}
        self.losses = torch.zeros(c["steps"], device=c["device"])
        self.accuracies: list[Any] = []
        self.precision: list[dict[str, Any]] = []
        self.number, self.ended = 0, False
        self._passes: Callable[..., Any] | None = None

    def advance(self) -> None:
        """Trains one step, and tests if a test is due. Sets ``ended`` after the last step, or if the loss diverges."""
        c, number = self.configuration, self.number
        if number in self.changes or self._passes is None:
            self.compress.set(**self.changes[max(start for start in self.changes if start <= number)])
            self._passes = step(self.model, self.compress, self.data.shape)
        x, y = next(self.data)
        with self.weights or nullcontext():
            self.losses[number] = self._passes(x, y)
        self.optimizer.step()
        self.rates.step()
        if self.control:
            self.control.update()
        if self.weights:
            if not self.precision or self.precision[-1]["bytes"] != self.weights.roundto:
                self.precision.append({"step": number, "bytes": self.weights.roundto, "ratio": self.weights.ratio})
            self.weights.update()
        self.number += 1
        rest = max(c["steps"] // c["tests"], 1)
        self.ended = self.number == c["steps"] or (
            self.number % span(c["steps"]) == 0 and not bool(self.losses[:self.number].isfinite().all()))
        if not self.ended and self.number % rest == 0 and c["steps"] - number > rest:
            self.accuracies.append(self._accuracy())

    def finish(self, path: Path | None = None, seconds: float = math.inf) -> dict[str, Any]:
        """Trains all remaining steps, and returns the result. If the file ``path`` exists, training resumes from it. A
        checkpoint replaces it every so many ``seconds``."""
        if path and path.exists():
            self.load(path)
        last = time.monotonic()
        while not self.ended:
            self.advance()
            if path and time.monotonic() - last >= seconds and not self.ended and not self.number % self.data.group:
                self.save(path)
                last = time.monotonic()
        return self.result()

    def result(self) -> dict[str, Any]:
        """The result, see :func:`~actcodec.train.run.trained`."""
        c, device = self.configuration, self.losses.device
        curve, part = self.losses[:self.number].tolist(), span(c["steps"])
        curve = curve[:next((i + 1 for i, loss in enumerate(curve) if not math.isfinite(loss)), len(curve))]
        means = [sum(curve[i:i + part]) / len(curve[i:i + part]) for i in range(0, len(curve), part)]
        accuracies = [round(float(one), 4) for one in (*self.accuracies, self._accuracy())]
        report = self.compress.report()
        return {"accuracy": accuracies[-1], "accuracies": accuracies, "converged": math.isfinite(curve[-1]),
                "losses": [round(loss, 4) if math.isfinite(loss) else None for loss in means],
                "ratio": report.total["ratio"], "ratios": _ratios(report),
                "seconds": round(self.clock() - self.start, 1), "torch": torch.__version__,
                "on": torch.cuda.get_device_name() if device.type == "cuda" else "CPU",
                **({"bounds": self.control.history} if self.control else {}),
                **({"precision": self.precision} if self.weights else {})}

    def _accuracy(self):
        """The accuracy on the first test pictures, in per cent: a tensor, which a GPU may still be computing."""
        self.model.eval()
        right, count = torch.zeros((), dtype=torch.int64, device=self.losses.device), 0
        with torch.no_grad(), self.weights or nullcontext():
            for x, y in self.data.tests(self.configuration["pictures"]):
                right += (self.model(x).argmax(1) == y).sum()
                count += len(y)
        self.model.train()
        if not count:
            raise UserError(f"the second loader of {self.configuration['data']} has no batch")
        return 100 * right.double() / count

    def save(self, path: Path) -> None:
        """Writes a checkpoint, which replaces the one before only once it is complete."""
        state = {"configuration": self.configuration, "number": self.number, "seconds": self.clock() - self.start,
                 "losses": self.losses, "accuracies": [float(one) for one in self.accuracies],
                 "precision": self.precision, "data": self.data.state(), "random": torch.random.get_rng_state(),
                 "cuda": torch.cuda.get_rng_state() if self.losses.is_cuda else None,
                 **{name: one.state_dict() for name, one in self._parts()}}
        temporary = path.with_suffix(".new")
        torch.save(state, temporary)
        temporary.replace(path)

    def load(self, path: Path) -> None:
        """Resumes from a checkpoint. Raises :class:`~actcodec.files.UserError` for a file that is not a checkpoint of
        this configuration."""
        try:
            state = torch.load(path, map_location=self.losses.device, weights_only=True)
        except OSError:
            raise
        except Exception as error:  # whatever reading other bytes ends with
            raise UserError(f"{path} is no checkpoint; without it the run begins anew") from error
        if state["configuration"] != self.configuration:
            raise UserError(f"{path} is a checkpoint of another run")
        for name, one in self._parts():
            one.load_state_dict(state[name])
        self.losses, self.accuracies, self.precision = state["losses"], state["accuracies"], state["precision"]
        self.number, self.compress.step = state["number"], state["number"]
        self.start = self.clock() - state["seconds"]
        self.data.load(state["data"])
        torch.random.set_rng_state(state["random"].cpu())
        if state["cuda"] is not None:
            torch.cuda.set_rng_state(state["cuda"].cpu())

    def _parts(self):
        parts = {"model": self.model, "optimizer": self.optimizer, "rates": self.rates, "control": self.control,
                 "weights": self.weights}
        return [(name, one) for name, one in parts.items() if one is not None]


def _ratios(report: Any) -> dict[str, float]:
    """The ratios by kind of tensor."""
    kinds = dict.fromkeys(row.kind for row in report.rows)
    return {kind: sum(row.nbytes for row in report.rows if row.kind == kind)
            / sum(row.packed for row in report.rows if row.kind == kind) for kind in kinds}
