"""``actcodec dqt``."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from actcodec import api, sources, tensors
from actcodec.codecs.compressed import view
from actcodec.commands.common import check_picture, check_target, quiet_option, say
from actcodec.files import UserError, is_standard, replacing
from actcodec.golden.jpegact import sfpr
from actcodec.golden.jpegact.dqt import Sample
from actcodec.golden.offload.memory import formats

MOST = 4096  # tiles of a tensor in a search, at most
MARGIN = 1e-6  # by which a repeated search has to exceed the last result


@click.command("dqt")
@click.argument("files", metavar="FILES...", nargs=-1, required=True)
@click.option("--error", type=click.FloatRange(0, min_open=True), help="Maximum relative L2 error.")
@click.option("--ratio", type=click.FloatRange(1, min_open=True), help="Minimum ratio.")
@click.option("--alpha", type=click.FloatRange(0, 1),
              help="Use the paper's own search instead, with this weight of the error.")
@click.option("--coder", type=click.Choice(["zvc", "nibble", "rice"]), default="zvc", show_default=True,
              help="Coder that the table is for.")
@click.option("--quantizer", type=click.Choice(["sh", "div"]), default="sh", show_default=True,
              help="Quantizer that the table is for; div has steps and a dead zone.")
@click.option("--scaling", type=click.Choice(sfpr.SCALINGS),
              help="Use only scales of this kind. [default: any with quantizer div, channel with sh]")
@click.option("--dead-zone", type=click.IntRange(0, 3), help="With --quantizer div: use only this one. [default: any]")
@click.option("--channels", is_flag=True, help="With --quantizer div: the error is the channels', as in evaluate.")
@click.option("-o", "--output", "target", default="-", metavar="FILE",
              help="File to write the table to; - is the standard output.")
@click.option("--plot", metavar="FILE", help="Draw this table and the best ones for ZVC; .png, .svg or .pdf.")
@quiet_option
def command(files: Sequence[str], error: float | None, ratio: float | None, alpha: float | None, coder: str,
            quantizer: str, scaling: str | None, dead_zone: int | None, channels: bool, target: str, plot: str | None,
            quiet: bool) -> None:
    """Find the best quantization table for tensors.

    It is for mode jpeg-act: the smallest payload within an error, or the smallest error at a ratio.

    FILES are as for `evaluate`. The error is the root mean square of the tensors' errors, the ratio that of all their
    bytes. The table is written as text, for `--dqt`. For zvc it is the best one; for nibble and rice it is the result
    of a local search, which takes a few seconds. Of large tensors the search uses 4,096 tiles. With --quantizer div all
    entries are equal unless some would clip; the search also chooses the scales, a cap on them, the share of values
    that they clip, and a dead zone, by the codec's own error. The file also has these options and the quantizer, so
    that `--dqt` alone is enough to use it.

    At the same error, a dead zone makes gradients worse, and one scale for all channels makes those of small values
    worse. --dead-zone 0, --scaling channel or --channels avoid this.

    \b
    Examples:
      actcodec dqt activations.npz --error 0.1 -o table.txt
      actcodec dqt activations.npz --ratio 12 --coder rice -o table.txt --plot tables.png
      actcodec compress conv1.npy conv1.act --mode jpeg-act --coder rice --dqt table.txt
      actcodec dqt activations.npz --error 0.1 --coder rice --quantizer div -o step.txt
      actcodec compress conv1.npy conv1.act --mode jpeg-act --coder rice --dqt step.txt
    """
    if [error, ratio, alpha].count(None) != 2:
        raise UserError("give one of --error, --ratio and --alpha")
    if alpha is not None and quantizer == "div":
        raise UserError("--alpha, the paper's own search, requires --quantizer sh")
    if quantizer == "sh" and (channels or dead_zone is not None or scaling not in (None, "channel")):
        raise UserError("--scaling, --dead-zone and --channels require --quantizer div")
    for source in files:
        check_target(target, sources.split(source)[0])
    if target.endswith(".npy"):
        raise UserError(f"{target}: the table is written as text, not as a .npy file")
    if plot:
        check_picture(plot)
    named_tensors = [(name, x) for source in files for name, x in sources.tensors(source, say)]
    if quantizer == "div":
        table, options, reached = fit_steps(named_tensors, coder, error, ratio, scaling, dead_zone, channels)
    else:
        samples = [sampled(name, x) for name, x in named_tensors]
        table, options, reached = fit(named_tensors, samples, coder, error, ratio, alpha)
    text = f"# --coder {coder}: ratio {reached[0]:.2f}, relative error {reached[1]:.4f}\n"
    text += "".join(f"{name} {value:g}\n" if isinstance(value, float) else f"{name} {value}\n"
                    for name, value in options.items())
    text += "".join(" ".join(f"{value:3g}" for value in row) + "\n" for row in table)
    with replacing(target) as file:
        file.write(text.encode())
    if plot:
        from actcodec.commands.dqt_plot import draw

        draw([sampled(name, x) for name, x in named_tensors], (*reached, coder), plot)
    if not is_standard(target, 1):
        say(f"{click.format_filename(target)}: ratio {reached[0]:.2f}, relative error {reached[1]:.4f}", quiet)


def single(name: str, x: np.ndarray) -> NDArray[np.float32]:
    """A tensor as float32, in the dimensions of an image. Raises :class:`UserError` for codes, which are scaled
    already, and for values that float32 does not have."""
    try:
        values, dtype = tensors.as_float32(x)
    except ValueError as error:
        raise UserError(f"{name}: {error}") from error
    if dtype == formats.CODES:
        raise UserError(f"{name}: has codes of SFPR ({dtype}), whose scales are not known here")
    return values.reshape(view(x.shape))


def sampled(name: str, x: np.ndarray) -> Sample:
    from actcodec.golden.jpegact import dqt

    return checked(name, dqt.sample, x)


def checked(name: str, sample: Any, x: np.ndarray) -> Any:
    """``sample`` of a tensor, at most :data:`MOST` tiles. Raises :class:`UserError` where it raises ValueError."""
    values = single(name, x)
    try:
        return sample(values, MOST)
    except ValueError as error:
        raise UserError(f"{name}: {error}") from error


def fit_steps(arrays: Sequence[Any], coder: str, error: float | None, ratio: float | None, scaling: str | None,
              dead_zone: int | None, channels: bool) -> tuple[np.ndarray, dict[str, Any], tuple[float, float]]:
    """As :func:`fit`, for quantizer div. With the best scales and dead zone for the samples, the step is the largest
    one within the error of all tensors, or the smallest one that reaches the ratio, measured by the codec."""
    from actcodec.golden.jpegact import dqt_steps, nibble, rice, steps

    samples = [checked(name, dqt_steps.sample, x) for name, x in arrays]
    scalings = [one for one in dqt_steps.SCALINGS if scaling in (None, one.scaling)]
    zones = steps.DEAD_ZONES if dead_zone is None else (dead_zone,)
    module = {"zvc": None, "nibble": nibble, "rice": rice}[coder]
    try:
        choice = dqt_steps.best(samples, module, error, ratio, scalings, zones, channels)
    except ValueError as wrong:
        raise UserError(str(wrong)) from wrong
    options = {"quantizer": "div", "dead_zone": choice.dead_zone, "scaling": choice.scaling.scaling,
               "cap": choice.scaling.cap, "clip": choice.scaling.clip}
    options = {name: value for name, value in options.items() if value is not None}

    @cache
    def at(step: int) -> tuple[np.ndarray, tuple[float, float]]:
        table = choice._replace(step=step).quarters / 4
        return table, measured(arrays, table, options | {"coder": coder}, channels)

    smaller = -1 if error else 1  # the direction in which the limit is met
    step, ends = choice.step, (steps.LEAST, steps.MOST)
    while not reaches(at(step)[1], error, ratio) and step + smaller in range(ends[0], ends[1] + 1):
        step += smaller
    if not reaches(at(step)[1], error, ratio):
        raise unreachable(at(step)[1], error, ratio)
    while step - smaller in range(ends[0], ends[1] + 1) and reaches(at(step - smaller)[1], error, ratio):
        step -= smaller
    table, reached = at(step)
    return table, options, reached


def unreachable(nearest: tuple[float, float], error: float | None, ratio: float | None) -> UserError:
    limit = f"an error of {error}" if error else f"a ratio of {ratio}"
    return UserError(f"no table has {limit}: the nearest has {nearest[1 if error else 0]:.4g}")


def fit(arrays: Sequence[Any], samples: Sequence[Sample], coder: str, error: float | None, ratio: float | None,
        alpha: float | None) -> tuple[np.ndarray, dict[str, Any], tuple[float, float]]:
    """The table, its options, and the ratio and error of all tensors with it, measured by the codec.

    A search sees a sample of tiles, and models SFPR's error as a constant. If all tensors together miss the limit, the
    search is repeated with a limit that is tighter by as much as it was wrong."""
    best: list[tuple] = []
    aim, nearest = error or ratio or 0.0, None
    while True:
        try:
            table, options, expected = search(samples, coder, aim if error else None, aim if ratio else None, alpha)
        except ValueError as wrong:
            if nearest is None:
                raise UserError(str(wrong)) from wrong
            break
        reached = measured(arrays, table, options | {"coder": coder})
        if reaches(reached, error, ratio):
            best = [(table, options, reached)]
            break
        nearest = reached
        if error:
            aim = min(aim, expected[1]) * error / reached[1] * (1 - MARGIN)
        elif ratio:
            aim = max(aim, expected[0]) * ratio / reached[0] * (1 + MARGIN)
    if alpha is None:  # a local search may miss a named table
        best += named(arrays, coder, error, ratio)
    if nearest and not best:
        raise unreachable(nearest, error, ratio)
    return max(best, key=lambda one: one[2][0] if ratio is None else -one[2][1])


def reaches(reached: tuple[float, float], error: float | None, ratio: float | None) -> bool:
    """Whether the ``(ratio, error)`` that was reached is within the limits, if any."""
    return (error is None or reached[1] <= error) and (ratio is None or reached[0] >= ratio)


def search(samples: Sequence[Sample], coder: str, error: float | None, ratio: float | None,
           alpha: float | None) -> tuple[np.ndarray, dict[str, Any], tuple[float, float]]:
    """A table, float64 [8, 8], its options, and the ratio and error of the samples with it."""
    from actcodec.golden.jpegact import dqt, dqt_gradient, nibble, quantize, rice

    module = {"zvc": None, "nibble": nibble, "rice": rice}[coder]
    if alpha is not None:
        return 2.0 ** quantize.shifts(dqt_gradient.gradient_descent(samples, alpha)), {"quantizer": "sh"}, (1, 1)
    if module:
        one = dqt.descend(samples, module, error, ratio)
        return 2.0**one.shifts, {"quantizer": "sh"}, (one.ratio, one.error)
    counts = dqt.total(samples)
    shifts = dqt.best(counts, error, ratio)
    return 2.0**shifts, {"quantizer": "sh"}, (float(counts.nbytes / counts.size(shifts)), float(counts.error(shifts)))


def named(arrays: Sequence[Any], coder: str, error: float | None, ratio: float | None) -> list[Any]:
    """The named tables that reach the error or the ratio, each as :func:`fit` returns one."""
    from actcodec.golden.jpegact import quantize

    each = [(2.0 ** quantize.shifts(quantize.table(name)), {"quantizer": "sh"},
             measured(arrays, name, {"coder": coder})) for name in quantize.TABLES]
    return [one for one in each if reaches(one[2], error, ratio)]


def measured(arrays: Sequence[Any], table: Any, options: Mapping[str, Any],
             channels: bool = False) -> tuple[float, float]:
    """The ratio of all tensors, and the root mean square of their relative errors, or of their channel errors, by the
    codec itself."""
    each = [(x.nbytes, api.evaluate(x, "jpeg-act", dqt=table, **options)) for _, x in arrays]
    ratio = sum(size for size, _ in each) / sum(size / one.ratio for size, one in each)
    errors = [one.channel_error if channels else one.relative_error for _, one in each]
    return ratio, float(np.sqrt(np.mean(np.square(errors))))
