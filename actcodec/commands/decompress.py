"""``actcodec decompress``."""

import click

from actcodec import container, engines
from actcodec.commands.common import (
    check_target,
    engine_option,
    mode_text,
    progress_bar,
    quiet_option,
    report,
    shape_text,
)
from actcodec.files import UserError, replacing, write_array


@click.command("decompress")
@click.argument("source", metavar="IN.act")
@click.argument("target", metavar="OUT.npy")
@engine_option
@quiet_option
def command(source: str, target: str, engine: str, quiet: bool) -> None:
    """Decompress IN.act to the tensor OUT.npy.

    The tensor has its original shape and type. A file may be `-`, the standard input or output.

    \b
    Examples:
      actcodec decompress conv1.act back.npy
      actcodec decompress conv1.act back.npy --engine rtl
      actcodec decompress - - < conv1.act > back.npy
    """
    check_target(target, source)
    if target.endswith((".npz", ".pt")):
        raise UserError(f"{target}: the output must be a .npy file")
    compressed = container.read(source)
    with progress_bar(engine, quiet, f"decompressing {source}"):
        try:
            x, cycles = engines.decompress(engine, compressed)
        except ValueError as error:  # the CRC matches, so the writer of the file was wrong
            raise container.ContainerError(f"{source}: invalid payload: {error}") from error
    with replacing(target) as file:
        write_array(file, x)
    if not quiet:
        report(target, f"{shape_text(x.shape)}, from {mode_text(compressed)}", cycles)
