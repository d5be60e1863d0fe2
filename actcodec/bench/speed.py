"""The golden model beside what one would use instead: speed, memory, ratio and error, measured in one run.

``python -m actcodec.bench.speed [FOLDER]``, and a part of ``actcodec bench``. Speed and memory are those of a tensor of
200 MB, made of the sample's dense maps; ratio and error those of all tensors of the sample. Each method works in a
process of its own, on CPU time, the best of three, so that the machine's other work hardly matters. zfp and SZ3 are
asked for the error of mode jpeg-act, so that ratios can be compared; both have wheels for Python 3.11 to 3.13 on Linux.
"""

import json
import multiprocessing
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pysz
import scipy.fft
import zfpy
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from actcodec import codecs
from actcodec.codecs.mode import Mode
from actcodec.demo import sample
from actcodec.golden.jpegact import quantize
from actcodec.metrics import relative_error
from actcodec.plotting import pyplot, write

__all__ = ["METHODS", "Method", "Speed", "better", "compare", "quality", "report", "run", "tensor"]

SIZE, QUICK = 200 << 20, 8 << 20  # bytes of the tensor
DQTS = ("optL", "optH")
ROUNDS = 3
STEPS = 14  # of the search for a tolerance
MARGIN = 1.01  # by which something has to be better to be called so


@dataclass(frozen=True)
class Method:
    """A way to compress. ``knob`` is the tolerance, as a share of the largest magnitude, of a method that has one."""

    name: str
    compress: Callable  # (tensor, knob) to what decompress takes
    decompress: Callable
    size: Callable  # bytes of what compress gives
    same: str | None = None  # the method whose error it is asked for
    rival: bool = False  # whether it is none of ours


@dataclass(frozen=True)
class Speed:
    """What a method reaches: MB/s of CPU time, and the most memory over the tensor's, itself included (0: unknown)."""

    name: str
    ratio: float
    error: float  # relative L2; root of the mean square over the tensors
    compress: float
    decompress: float
    memory_compress: float
    memory_decompress: float
    knob: float | None = None


def golden(mode: Mode, **options: Any) -> Method:
    """A mode of the registry; of several tables, its name has the table's as well."""
    values = mode.option_values(options)
    return Method(" ".join([mode.name, *options.values()]), lambda x, knob: mode.model.compress(x, **values),
                  mode.model.decompress, lambda c: c.payload_bytes + len(c.side))


def float_compress(x: NDArray[np.float32], knob: float | None, dqt: str = "optL") -> tuple[Any, ...]:
    """Scale, DCT, quantization and zero removal of JPEG-ACT as one writes them down in floating point."""
    scale = 127 / np.maximum(np.abs(x).max(axis=(0, 2, 3), keepdims=True), np.float32(1e-30))
    tiles = np.rint(x * scale).reshape(-1, 8, x.shape[3] // 8, 8).transpose(0, 2, 1, 3)
    table = quantize.table(dqt).astype(np.float32)
    values = np.clip(np.rint(scipy.fft.dctn(tiles, axes=(2, 3), norm="ortho") / table), -128, 127).astype(np.int8)
    return x.shape, scale, np.packbits(values != 0), values[values != 0], table


def float_decompress(compressed: Any) -> NDArray[np.float32]:
    shape, scale, mask, nonzero, table = compressed
    values = np.zeros(int(np.prod(shape)), np.float32)
    values[np.unpackbits(mask).view(bool)] = nonzero
    tiles = values.reshape(-1, shape[3] // 8, 8, 8) * table
    rows = scipy.fft.idctn(tiles, axes=(2, 3), norm="ortho").transpose(0, 2, 1, 3)
    return np.clip(np.rint(rows), -128, 127).reshape(shape) / scale


def float_size(compressed: Any) -> int:
    return compressed[1].nbytes + compressed[2].nbytes + compressed[3].nbytes


def largest(x: NDArray[np.float32]) -> float:
    return max(float(np.abs(x).max()), float(np.finfo(np.float32).tiny))


def sz_compress(x: NDArray[np.float32], knob: float) -> tuple[Any, ...]:
    config = pysz.szConfig(x.shape)
    config.errorBoundMode, config.absErrorBound = pysz.szErrorBoundMode.ABS, knob * largest(x)
    return pysz.sz.compress(x, config)[0], x.shape


def lossy(name: str, dqt: str) -> Method:
    """zfp or SZ3 with the error that jpeg-act has under that table."""
    same = f"jpeg-act {dqt}"
    if name == "zfp":
        return Method(f"zfp, as {dqt}", lambda x, knob: zfpy.compress_numpy(x, tolerance=knob * largest(x)),
                      zfpy.decompress_numpy, len, same, True)
    return Method(f"SZ3, as {dqt}", sz_compress, lambda c: pysz.sz.decompress(c[0], np.float32, c[1])[0],
                  lambda c: c[0].nbytes, same, True)


def float_pipeline(dqt: str) -> Method:
    return Method(f"scipy.fft, {dqt}", partial(float_compress, dqt=dqt), float_decompress, float_size,
                  f"jpeg-act {dqt}", True)


METHODS = {method.name: method for method in (
    *(golden(mode, **options) for name, mode in codecs.MODES.items()
      for options in ([{"dqt": dqt} for dqt in DQTS] if name == "jpeg-act" else [{}])),
    *(float_pipeline(dqt) for dqt in DQTS), *(lossy(name, dqt) for name in ("zfp", "SZ3") for dqt in DQTS))}


def quality(method: Method, tensors: Sequence[NDArray[np.float32]], knob: float | None = None) -> tuple[float, float]:
    """Ratio and error on tensors."""
    before = after = 0
    errors = []
    for x in tensors:
        compressed = method.compress(x, knob)
        before, after = before + x.nbytes, after + method.size(compressed)
        errors.append(relative_error(x, method.decompress(compressed)))
    return before / after, float(np.sqrt(np.mean(np.square(errors))))


def search(method: Method, tensors: Sequence[NDArray[np.float32]], error: float) -> float:
    """The largest tolerance found that keeps the error."""
    low, high = 1e-6, 1.0
    for _ in range(STEPS):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if quality(method, tensors, middle)[1] <= error else (low, middle)
    return low


def tensor(size: int) -> NDArray[np.float32]:
    """A dense tensor of about that many bytes, [N, C, H, W], from the sample; made in place."""
    x = np.concatenate([x for name, x in sample().items() if name.startswith("conv") and x.shape[2] == 32])
    big = np.empty((max(size // (4 * 64 * 56 * 56), 1), 64, 56, 56), np.float32)
    flat, tile = big.reshape(-1), x.reshape(-1)
    for i in range(0, flat.size, tile.size):
        flat[i : i + tile.size] = tile[: flat.size - i]
    return big


class Memory:
    """The most memory of this process since the last call of ``forget``; Linux tells, others 0."""

    @staticmethod
    def forget() -> None:
        try:
            Path("/proc/self/clear_refs").write_text("5")
        except OSError:
            return

    @staticmethod
    def now(field: str = "VmHWM") -> int:
        try:
            status = Path("/proc/self/status").read_text()
        except OSError:
            return 0
        return 1024 * next((int(line.split()[1]) for line in status.splitlines() if line.startswith(f"{field}:")), 0)


def speed(name: str, size: int, knob: float | None = None) -> tuple[tuple[float, float], tuple[float, float]]:
    """MB/s there and back, and memory over the tensor's, of the method of that name."""
    method = METHODS[name]
    method.decompress(method.compress(np.zeros((1, 64, 56, 56), np.float32), knob))  # what is loaded when first used
    before = Memory.now("VmRSS")
    x = tensor(size)
    size_in = x.nbytes

    def measured(function, *arguments):
        seconds, most = float("inf"), 0
        for _ in range(ROUNDS):
            result = None  # the last one does not count as memory of this one
            Memory.forget()
            start = process_time()
            result = function(*arguments)
            seconds = min(seconds, max(process_time() - start, 1e-9))
            most = max(most, Memory.now() - before)
        return result, (size_in / 1e6 / seconds, most / size_in)

    compressed, there = measured(method.compress, x, knob)
    del x  # decompression does not have it
    return there, measured(method.decompress, compressed)[1]


def compare(size: int, progress: Callable[[str], Any] = lambda name: None,
            names: Iterable[str] = tuple(METHODS)) -> list[Speed]:
    """:class:`Speed` of the methods of these names, which hold those that others are compared with."""
    tensors, results = list(sample().values()), dict[str, Any]()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context, max_tasks_per_child=1) as pool:
        for name in names:
            method, knob = METHODS[name], None
            if method.same and name.startswith(("zfp", "SZ3")):
                knob = search(method, tensors, results[method.same].error)
            ratio, error = quality(method, tensors, knob)
            (there, most), (back, most_back) = pool.submit(speed, name, size, knob).result()
            results[name] = Speed(name, ratio, error, there, back, most, most_back, knob)
            progress(name)
    return list(results.values())


def better(result: Speed, results: Sequence[Speed]) -> list[str]:
    """In what a rival is better than our mode that it is compared with: words."""
    method = METHODS[result.name]
    own = next((r for r in results if r.name == method.same), None)
    if not method.rival or own is None:
        return []
    words = [("ratio", result.ratio / own.ratio), ("compression", result.compress / own.compress),
             ("decompression", result.decompress / own.decompress)]
    if result.knob is None:  # else the error is the same because it was asked for
        words.append(("error", own.error / max(result.error, 1e-30)))
    return [word for word, gain in words if gain > MARGIN]


def speed_table(results: Sequence[Speed]) -> Any:
    table = Table("method", *(f"{word}" for word in ("ratio", "error", "comp.", "decomp.", "memory", "better in")),
                  title="The golden model beside others: ratio and relative L2 error on the sample,\n"
                        "MB/s of CPU time, and memory over the tensor's on a large tensor")
    for r in results:
        memory = max(r.memory_compress, r.memory_decompress)
        table.add_row(r.name, f"{r.ratio:.2f}", f"{r.error:.4f}", f"{r.compress:.0f}", f"{r.decompress:.0f}",
                      f"{memory:.1f}" if memory else "", ", ".join(better(r, results)))
    return table


def draw(results: Sequence[Speed], path: str | Path) -> None:
    """Ratio against error, and speed both ways, into a PNG."""
    figure, (left, right) = pyplot().subplots(1, 2, figsize=(14, 5.5), dpi=100, layout="constrained")
    for r in results:
        colour = "#8a8a8a" if METHODS[r.name].rival else "#1b6ca8"
        if r.error:
            left.plot(r.error, r.ratio, "o", color=colour)
            left.annotate(r.name, (r.error, r.ratio), xytext=(5, 4), textcoords="offset points", fontsize=8)
    left.set(xscale="log", xlabel="relative L2 error", ylabel="compression ratio",
             title="Ratio and error on the sample")
    rows = np.arange(len(results))
    colours = ["#8a8a8a" if METHODS[r.name].rival else "#1b6ca8" for r in results]
    right.barh(rows - 0.2, [r.compress for r in results], 0.38, color=colours, label="compression")
    right.barh(rows + 0.2, [r.decompress for r in results], 0.38, color=colours, alpha=0.5,
               label="decompression (pale)")
    right.set_yticks(rows, [r.name for r in results])
    right.invert_yaxis()
    right.set(xscale="log", xlabel="MB/s of CPU time", title="Speed")
    right.legend(frameon=False)
    for axis in (left, right):
        axis.spines[["top", "right"]].set_visible(False)
    write(figure, path)


def report(results: Sequence[Speed], output: str | Path) -> None:
    """Prints the table and leaves ``speed.json`` and ``speed.png`` in the folder ``output``."""
    output = Path(output)
    output.mkdir(parents=True, exist_ok=True)
    console = Console()
    console.print(speed_table(results))
    content = [asdict(r) | {"better": better(r, results)} for r in results]
    (output / "speed.json").write_text(json.dumps(content, indent=1) + "\n")
    draw(results, output / "speed.png")
    console.print(f"Report: {output / 'speed.json'}, picture: {output / 'speed.png'}", soft_wrap=True, markup=False)


def run(output: str | Path, quick: bool = False) -> None:
    """Measures, prints, and writes."""
    with Console(stderr=True).status("measuring the golden model and others") as status:
        results = compare(QUICK if quick else SIZE, lambda name: status.update(f"measured {name}"))
    report(results, output)


if __name__ == "__main__":
    run(Path(*sys.argv[1:] or ["build/bench"]))
