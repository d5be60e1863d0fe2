"""``actcodec dqt``."""

import click
import numpy as np

from actcodec import api, sources, tensors
from actcodec.codecs.compressed import view
from actcodec.commands.common import check_picture, check_target, quiet_option, say
from actcodec.files import UserError, is_standard, replacing

MOST = 4096  # tiles of a tensor that a search looks at


@click.command("dqt")
@click.argument("files", metavar="FILES...", nargs=-1, required=True)
@click.option("--error", type=click.FloatRange(0, min_open=True), help="The highest relative L2 error.")
@click.option("--ratio", type=click.FloatRange(1, min_open=True), help="The lowest ratio.")
@click.option("--alpha", type=click.FloatRange(0, 1),
              help="The paper's own search instead, with this weight of the error.")
@click.option("--coder", type=click.Choice(["zvc", "nibble", "rice"]), default="zvc", show_default=True,
              help="The code of blocks that the table is for.")
@click.option("--quantizer", type=click.Choice(["sh", "div"]), default="sh", show_default=True,
              help="The quantizer that it is for; for div, steps and a dead zone.")
@click.option("-o", "--output", "target", default="-", metavar="FILE",
              help="Where to write it. [default: standard output]")
@click.option("--plot", metavar="FILE", help="Draw the best tables of ZVC, and this one; .png, .svg or .pdf.")
@quiet_option
def command(files, error, ratio, alpha, coder, quantizer, target, plot, quiet):
    """Find a quantization table for mode jpeg-act that suits tensors: the smallest payload for an error, or the
    smallest error for a ratio.

    FILES are those of `evaluate`. Of all tensors together the root mean square of their errors counts, and the ratio of
    all their bytes. The table is written as text, for `--dqt`. For zvc it is the best one, for nibble and rice the best
    that small steps find, in some seconds; of large tensors 4,096 tiles are looked at. With quantizer div all values
    are the same, but where some would clip, and the first line has the dead zone that belongs to them, for
    `--dead-zone`.

    \b
    Examples:
      actcodec dqt activations.npz --error 0.1 -o table.txt
      actcodec dqt activations.npz --ratio 12 --coder rice -o table.txt --plot tables.png
      actcodec compress conv1.npy conv1.act --mode jpeg-act --coder rice --dqt table.txt
      actcodec dqt activations.npz --error 0.1 --coder rice --quantizer div -o step.txt
    """
    if [error, ratio, alpha].count(None) != 2:
        raise UserError("give one of --error, --ratio and --alpha")
    if alpha is not None and quantizer == "div":
        raise UserError("the paper's own search, --alpha, is for --quantizer sh")
    check_target(target, "")
    if plot:
        check_picture(plot)
    found = [(name, tensors.taken(x)[0].reshape(view(x.shape)))
             for file in files for name, x in sources.tensors(file, say)]
    samples = [sampled(name, x) for name, x in found]
    options = {"coder": coder, "quantizer": quantizer}
    try:
        if quantizer == "div":
            table, options["dead_zone"] = steps(samples, coder, error, ratio)
        else:
            table = 2.0 ** search(samples, coder, error, ratio, alpha)
    except ValueError as wrong:
        raise UserError(str(wrong)) from wrong
    reached = measured(found, table, options)
    if alpha is None and quantizer == "sh":  # small steps may end beside a table that has a name
        table, reached = max([(table, reached), *named(found, options, error, ratio)],
                             key=lambda one: one[1][0] if ratio is None else -one[1][1])
    shown = {name: value for name, value in options.items() if name != "quantizer" or value != "sh"}
    words = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in shown.items())
    text = f"# {words}: ratio {reached[0]:.2f}, relative error {reached[1]:.4f}\n"
    text += "".join(" ".join(f"{value:3g}" for value in row) + "\n" for row in table)
    with replacing(target) as file:
        file.write(text.encode())
    if plot:
        from actcodec.dqt_plot import draw

        draw(samples, (*reached, coder), plot)
    if not is_standard(target, 1):
        say(f"{click.format_filename(target)}: ratio {reached[0]:.2f}, relative error {reached[1]:.4f}", quiet)


def sampled(name, x):
    from actcodec.golden.jpegact import dqt

    try:
        return dqt.sample(x, MOST)
    except ValueError as error:
        raise UserError(f"{name}: {error}") from error


def search(samples, coder, error, ratio, alpha):
    """Shifts, uint8 [8, 8]."""
    from actcodec.golden.jpegact import dqt, dqt_gradient, nibble, quantize, rice

    if alpha is not None:
        return quantize.shifts(dqt_gradient.gradient_descent(samples, alpha))
    if coder == "zvc":
        return dqt.best(dqt.total(samples), error, ratio)
    return dqt.descend(samples, {"nibble": nibble, "rice": rice}[coder], error, ratio).shifts


def steps(samples, coder, error, ratio):
    """A table of steps, float64 [8, 8], and its dead zone."""
    from actcodec.golden.jpegact import dqt_steps, nibble, rice

    found = dqt_steps.best(samples, {"zvc": None, "nibble": nibble, "rice": rice}[coder], error, ratio)
    return found.quarters / 4, found.dead_zone


def named(found, options, error, ratio):
    """Those of the tables with names that reach the error or the ratio: [(table, what they reach)]."""
    from actcodec.golden.jpegact import quantize

    each = [(2.0 ** quantize.shifts(quantize.table(name)), measured(found, name, options)) for name in quantize.TABLES]
    return [one for one in each if (one[1][1] <= error if ratio is None else one[1][0] >= ratio)]


def measured(found, table, options):
    """The ratio of all tensors, and the root mean square of their relative errors, by the codec itself."""
    each = [(x.nbytes, api.evaluate(x, "jpeg-act", dqt=table, **options)) for _, x in found]
    ratio = sum(size for size, _ in each) / sum(size / one.ratio for size, one in each)
    return ratio, float(np.sqrt(np.mean([one.relative_error**2 for _, one in each])))
