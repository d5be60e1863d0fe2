"""Where a run's batches come from: CIFAR-10, moved and mirrored on the device, or a user's two loaders."""

from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from actcodec.files import UserError
from actcodec.train import cifar10

__all__ = ["Cifar10", "Loaders"]

MEAN, DEVIATION = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
AHEAD = {"cpu": 1, "cuda": 32}  # batches whose pictures are moved at once; on a GPU they would be mere launches
TESTED = {"cpu": 500, "cuda": 5000}  # pictures at once


class Cifar10:
    """Batches of CIFAR-10: any pictures, padded by four, cut out anywhere, and every other one mirrored.

    ``group`` batches are made at once, so :meth:`state` is complete only after a multiple of ``group``.
    """

    def __init__(self, folder: str | Path, device: str, batch: int, seed: int) -> None:
        self.data, self.batch, self.group = _tensors(str(folder), device), batch, AHEAD[device]
        self.random = torch.Generator(device).manual_seed(seed)
        self.shape: tuple[int, ...] | None = (batch, *self.data["train"].shape[1:])
        self._left: list[tuple[Tensor, Tensor]] = []

    def __next__(self) -> tuple[Tensor, Tensor]:
        if not self._left:
            pictures, classes = self.data["train"], self.data["train_classes"]
            picked = torch.randint(0, len(pictures), (self.group * self.batch,), generator=self.random,
                                   device=pictures.device)
            x, y = moved(_floats(pictures[picked]), self.random), classes[picked]
            self._left = list(zip(x.split(self.batch), y.split(self.batch), strict=True))[::-1]
        return self._left.pop()

    def tests(self, count: int) -> Iterator[tuple[Tensor, Tensor]]:
        """The first pictures of the test and their classes, in parts."""
        pictures, classes = self.data["test"][:count], self.data["test_classes"][:count]
        size = TESTED[pictures.device.type]
        for x, y in zip(pictures.split(size), classes.split(size), strict=True):
            yield _floats(x), y

    def state(self) -> dict[str, Any]:
        return {"random": self.random.get_state()}

    def load(self, state: dict[str, Any]) -> None:
        self.random.set_state(state["random"].cpu())


class Loaders:
    """Batches of a user's two iterables of pairs (inputs, classes), such as ``torch.utils.data.DataLoader``: one to
    train with, again and again, and one for the test.

    The former has a state of torch's generator to itself, seeded for each pass over it, so a run that is resumed gets
    the batches that it would have got. Raises :class:`~actcodec.files.UserError` for what is no pair of iterables, and
    for an empty one.
    """

    shape = None  # of a batch: any
    group = 1

    def __init__(self, loaders: Any, name: str, device: str, seed: int) -> None:
        try:
            self.train, self.test = loaders
            iter(self.test)
        except (TypeError, ValueError) as error:
            raise UserError(f"{name} has to return two loaders, of the training and the test: {error}") from error
        self.name, self.device, self.seed, self.passes, self.batches = name, device, seed, 0, 0
        self._begin()

    def _begin(self):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed + self.passes)
            self._random = torch.random.get_rng_state()  # of the loader alone, however a model draws
            self._batches = iter(self.train)

    def _batch(self):
        """The next one of this pass, or None."""
        with torch.random.fork_rng(devices=[]):
            torch.random.set_rng_state(self._random)
            batch = next(self._batches, None)
            self._random = torch.random.get_rng_state()
        self.batches += 1
        return batch

    def __next__(self) -> tuple[Tensor, Tensor]:
        batch = self._batch()
        if batch is None:
            self.passes, self.batches = self.passes + 1, 0
            self._begin()
            batch = self._batch()
        if batch is None:
            raise UserError(f"the first loader of {self.name} has no batch")
        x, y = batch
        return x.to(self.device), y.to(self.device)

    def tests(self, count: int) -> Iterable[tuple[Tensor, Tensor]]:
        """The first values of the test and their classes, in its batches."""
        for x, y in self.test:
            yield x[:count].to(self.device), y[:count].to(self.device)
            count -= len(x)
            if count <= 0:
                return

    def state(self) -> dict[str, Any]:
        return {"passes": self.passes, "batches": self.batches}

    def load(self, state: dict[str, Any]) -> None:
        self.passes, self.batches = state["passes"], 0
        self._begin()
        while self.batches < state["batches"]:
            self._batch()


@cache
def _tensors(folder, device):
    return {key: torch.from_numpy(value).to(device) for key, value in cifar10.load(folder).items()}


@cache
def _moments(device):
    return [torch.tensor(values, device=device)[:, None, None] for values in (MEAN, DEVIATION)]


def _floats(pictures):
    mean, deviation = _moments(pictures.device)
    return (pictures.float() / 255 - mean) / deviation


def moved(pictures: Tensor, random: torch.Generator) -> Tensor:
    """Padded by four, cut out anywhere, and every other one mirrored. ``random`` is a generator on their device."""
    padded, count = F.pad(pictures, (4, 4, 4, 4)), len(pictures)
    here: dict[str, Any] = {"device": pictures.device}
    down, right = torch.randint(0, 9, (2, count, 1), generator=random, **here)
    mirrored = torch.rand(count, 1, generator=random, **here) < 0.5
    columns = torch.arange(32, **here).expand(count, 32)
    columns = torch.where(mirrored, 31 - columns, columns) + right
    rows = torch.arange(32, **here) + down
    which = torch.arange(count, **here)[:, None, None]
    return padded[which, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)
