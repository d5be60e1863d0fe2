"""``actcodec compress``."""

from typing import Any

import click

from actcodec import api, codecs, container, engines, files, sources, tensors
from actcodec.api import Evaluation
from actcodec.commands.common import (
    ModeCommand,
    check_target,
    engine_option,
    mode_text,
    progress_bar,
    quiet_option,
    report,
    say,
    settings,
    shape_text,
)


@click.command("compress", cls=ModeCommand)
@click.argument("source", metavar="IN")
@click.argument("target", metavar="OUT.act")
@engine_option
@click.option("--scan", is_flag=True, help="With --engine rtl: the hardware computes the scales, too.")
@quiet_option
def command(source: str, target: str, mode: str, engine: str, scan: bool, quiet: bool, **options: Any) -> None:
    """Compress the tensor in IN to OUT.act.

    The tensor has 1 to 5 dimensions, and is float16, bfloat16, float32, float64, or int8 for codes of SFPR.

    IN is a .npy, an array in a .npz, as file.npz:name, or, with PyTorch, a tensor in a .pt, as file.pt:name. IN may be
    `-`, a .npy on the standard input, and OUT.act `-`, the standard output.

    \b
    Examples:
      actcodec compress conv1.npy conv1.act --mode jpeg-act
      actcodec compress conv1.npy conv1.act --mode jpeg-act --dqt my_table.txt --cdus 4
      actcodec compress activations.npz:relu1 relu1.act --mode sfpr-zvc --engine rtl
      actcodec compress - - --mode ssdc-fp8 < relu1.npy > relu1.act
    """
    check_target(target, sources.split(source)[0])
    values = settings(mode, options, quiet)
    x = sources.tensor(source, lambda text: say(text, quiet))
    with progress_bar(engine, quiet, f"compressing {source}") as step:
        try:
            compressed, cycles = engines.compress(engine, x, mode, scan, **values)
        except ValueError as error:
            raise files.UserError(f"{source}: {error}") from error
        step("measuring the error")
        evaluation = None if quiet else api.measured(x, compressed)
    container.write(target, compressed)
    if evaluation is None:
        return
    if compressed.mode != codecs.find(mode).name:
        say(f"note: shape {shape_text(x.shape)} has no 8x8 tiles, so {mode} fell back to {compressed.mode}")
    if loss := tensors.loss(x):
        say(f"note: {loss}")
    warn(evaluation, x.size)
    report(target, f"{shape_text(x.shape)}, {mode_text(compressed)}, ratio {evaluation.ratio:.2f} "
                   f"({evaluation.ratio_with_side:.2f} with side information), {error_text(evaluation)}", cycles)


def error_text(evaluation: Evaluation) -> str:
    """The error of an ``Evaluation`` as text."""
    return f"error {evaluation.relative_error:.4g}" if evaluation.relative_error else "no error"


def warn(evaluation: Evaluation, size: int) -> None:
    """Warns of values that the mode cannot represent."""
    counts = {"NaN": evaluation.nans, "infinite": evaluation.infinities, "saturated": evaluation.saturated}
    if any(counts.values()):
        say(f"warning: of {size} values, {', '.join(f'{n} {what}' for what, n in counts.items() if n)}")
