"""``actcodec jpeg``."""

from pathlib import Path

import click

from actcodec import codecs, files, sources, tensors
from actcodec.codecs.compressed import view
from actcodec.commands.common import check_target, quiet_option, report, say, shape_text

DQT = codecs.find("jpeg-base").option("dqt")


@click.command("jpeg")
@click.argument("source", metavar="IN")
@click.argument("target", metavar="OUT.jpg")
@click.option("--dqt", metavar=DQT.metavar, default=DQT.default,
              help="Quantization table: a name, or a file of 64 whole numbers, 1 to 255.")
@quiet_option
def command(source: str, target: str, dqt: str, quiet: bool) -> None:
    """Write what jpeg-base keeps of a tensor as a picture.

    IN is as for `compress`. The picture is grayscale, in baseline JPEG, which any viewer opens: feature maps one below
    the other, N*C*H rows of W values, each channel scaled to its largest magnitude; 0 is gray 128. A tensor with more
    rows than a picture can have (65,496) becomes several: OUT.jpg, OUT-1.jpg, OUT-2.jpg and so on.

    \b
    Examples:
      actcodec jpeg conv1.npy conv1.jpg
      actcodec jpeg conv1.npy conv1.jpg --dqt optH-div
      actcodec jpeg conv1.npy - --dqt my_table.txt > conv1.jpg
    """
    from actcodec.golden.jpegact import jpeg

    path = sources.split(source)[0]
    check_target(target, path)
    table = DQT.own.parse(dqt)
    x = sources.tensor(source, lambda text: say(text, quiet))
    try:
        values, _ = tensors.as_float32(x)
        pictures = jpeg.files(values.reshape(view(x.shape)), table.table)
    except ValueError as error:
        raise files.UserError(f"{source}: {error}") from error
    names = [target, *(str(Path(target).with_stem(f"{Path(target).stem}-{n}")) for n in range(1, len(pictures)))]
    if len(pictures) > 1 and files.is_standard(target, 1):
        raise files.UserError(f"{source}: {len(pictures)} pictures do not fit on the standard output; give a file name")
    for name in names[1:]:
        check_target(name, path)
    for name, picture in zip(names, pictures, strict=True):
        with files.replacing(name) as file:
            file.write(picture)
    if quiet:
        return
    if loss := tensors.loss(x):
        say(f"note: {loss}")
    size = sum(map(len, pictures))
    several = "" if len(pictures) == 1 else f" and {len(pictures) - 1} more"
    report(target, f"{shape_text(x.shape)}, {table}, {size} bytes{several}, ratio {x.nbytes / size:.2f}", None)
