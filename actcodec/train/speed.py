"""What the codecs cost: values there and back, and a step of training. ``python -m actcodec.train.speed --device cuda``

On the CPU one thread is measured, in processor time; on a GPU wall time, in the launches that a user has, and for
steps also played back as a CUDA graph, as ``actcodec train`` does. The tensors are the sample's, repeated to a batch of
128: its widest dense map and its widest ReLU, of 2.1 million values each.
"""

import json
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import click
import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from actcodec import codecs as registry
from actcodec import demo
from actcodec.torch import Compress, resnet, rules
from actcodec.torch.golden import codec
from actcodec.train.step import step

__all__ = ["codecs", "steps"]

BATCH, VALUES = 128, 128 * 16 * 32 * 32
ROUNDS, LEAST = 3, 0.5  # the best of so many times, of so many seconds


def best(function: Callable[[], Any], device: str) -> float:
    """Seconds of a call."""
    cuda = device == "cuda"
    clock = time.perf_counter if cuda else time.process_time
    function()  # what is compiled or allocated at first
    times = []
    for _ in range(ROUNDS):
        calls, start = 0, clock()
        while not calls or clock() - start < LEAST:
            function()
            calls += 1
            if cuda:
                torch.cuda.synchronize()
        times.append((clock() - start) / calls)
    return min(times)


def sample() -> dict[str, np.ndarray]:
    """{kind: float32 [128, 16, 32, 32]}."""
    tensors: dict[str, np.ndarray] = {}
    for x in demo.sample().values():
        if x.shape[-1] == 32:
            tensors.setdefault("relu" if x.min() >= 0 else "dense", x)
    return {kind: np.tile(x, (-(-BATCH // len(x)), 1, 1, 1))[:BATCH] for kind, x in tensors.items()}


def kind(mode: str) -> str:
    """Of the tensor that a mode is measured with: "relu" if it is for no others."""
    return "relu" if registry.find(mode).relu else "dense"


def codecs(device: str, engines: Iterable[str], modes: Iterable[str] = ()) -> Iterator[dict[str, Any]]:
    """Rows (mode, engine, device, million values a second there and back) of the ``modes``, or all that torch has."""
    tensors = {kind: torch.from_numpy(x) for kind, x in sample().items()}
    for mode in modes or [name for name, mode in registry.MODES.items() if mode.torch]:
        for engine in engines:
            one, where = codec(mode, {}, engine), "cpu" if engine == "golden" else device
            x = tensors[kind(mode)].to(where)

            def there_and_back(one=one, x=x):
                one.decode(one.encode(x))

            with torch.no_grad():
                yield {"mode": mode, "engine": engine, "device": where,
                       "values": VALUES / best(there_and_back, where) / 1e6}


def steps(device: str, engines: Sequence[str], presets: Iterable[str] = (),
          networks: Iterable[str] = ("resnet8", "resnet20")) -> Iterator[dict[str, Any]]:
    """Rows (network, preset, engine, seconds of a step, and on a GPU of one that is played back) of the ``presets``, or
    of all."""
    x, y = torch.randn(BATCH, 3, 32, 32, device=device), torch.randint(0, 10, (BATCH,), device=device)
    for network in networks:
        model = getattr(resnet, network)().to(device)

        def plain(model=model):
            torch.nn.functional.cross_entropy(model(x), y).backward()

        yield {"network": network, "preset": "without", "engine": "", "seconds": best(plain, device)}
        for preset in presets or rules.names():
            for engine in engines if preset != "none" else engines[:1]:
                compress = Compress(model, preset, engine=engine, error_every=0)

                def compressed(model=model, compress=compress):
                    with compress:
                        loss = torch.nn.functional.cross_entropy(model(x), y)
                    loss.backward()

                row = {"network": network, "preset": preset, "engine": engine, "seconds": best(compressed, device)}
                if device == "cuda":
                    row["played"] = best(partial(step(model, compress, x.shape), x, y), device)
                yield row


@click.command()
@click.option("--device", type=click.Choice(["cpu", "cuda"]), default="cpu")
@click.option("--engine", "engines", multiple=True, type=click.Choice(["golden", "torch", "compiled"]),
              default=("golden", "torch"), help="May be given again. Compiling takes minutes on a CPU.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines as they come in place of tables.")
def main(device: str, engines: Sequence[str], as_json: bool) -> None:
    """Measure codecs and steps of training."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    for title, rows in (("million values a second, there and back", codecs(device, engines)),
                        ("milliseconds of a step", steps(device, [one for one in engines if one != "golden"]))):
        lines = []
        for row in rows:
            lines.append(row)
            if as_json:
                click.echo(json.dumps(row))
        if as_json:
            continue
        table = Table(*lines[-1], title=title, box=None, title_justify="left")
        for row in lines:
            table.add_row(*(f"{1000 * value if key in ('seconds', 'played') else value:.4g}"
                            if isinstance(value, float) else str(value) for key, value in row.items()))
        Console(width=120, highlight=False).print(table)


if __name__ == "__main__":
    main()
