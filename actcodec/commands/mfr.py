"""``actcodec mfr``."""

import json
from collections.abc import Sequence

import click

from actcodec import codecs
from actcodec.commands import mfr_codec, mfr_gist
from actcodec.commands.common import check_picture
from actcodec.files import UserError
from actcodec.golden.common.networks import NETWORKS
from actcodec.golden.gist.dpr import FORMATS


@click.command("mfr")
@click.argument("network", nargs=-1, required=True, type=click.Choice([*mfr_codec.NETWORKS, "all"]),
                metavar="NETWORK...")
@click.option("--minibatch", type=click.IntRange(1), show_default="64; Gist's resnet-50: 32",
              help="Samples in a minibatch.")
@click.option("--sparsity", multiple=True, metavar="S|LAYER=S", show_default="0.8",
              help="Share of zeros in the output of a ReLU, for all layers or for one; may be repeated.")
@click.option("--dpr", type=click.Choice(list(FORMATS)), show_default="the smallest that keeps the accuracy",
              help="Format of the lossy encoding.")
@click.option("--codec", type=click.Choice([*codecs.MODES, *codecs.aliases()]), metavar="MODE",
              help="Compress dense activations with this mode instead of Gist's encodings.")
@click.option("--option", "options", multiple=True, metavar="NAME=VALUE",
              help="With --codec: an option of the mode; may be repeated.")
@click.option("--ratio", type=click.FloatRange(1), help="With --codec: the ratio, if it depends on values.")
@click.option("--plot", metavar="FILE", help="Draw stacked bars; .png, .svg or .pdf.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list of networks.")
def command(network: Sequence[str], minibatch: int | None, sparsity: Sequence[str], dpr: str | None, codec: str | None,
            options: Sequence[str], ratio: float | None, plot: str | None, as_json: bool) -> None:
    """Show the memory that training NETWORK needs.

    NETWORK is alexnet, nin, overfeat, vgg16, inception-v1, resnet-50, or all; with --codec also wrn-50-2. MFR is the
    baseline's footprint over the encoded one's. Rows are the bars of the Gist paper's figures 8 (end to end), 10
    (lossless encodings one by one), 13 (DPR) and 17 (dynamic allocation).

    With --codec, they count only the activations that the backward pass reads: inputs of convolutions, batch
    normalisation and linear layers in the mode, one bit for each value of a ReLU or dropout, 4 bits for each maximum of
    a pooling. Rows of the mode's paper for the same network follow, if it has any.

    \b
    Examples:
      actcodec mfr vgg16
      actcodec mfr alexnet overfeat --sparsity 0.6 --sparsity relu3=0.9
      actcodec mfr all --plot mfr.png
      actcodec mfr resnet-50 --minibatch 64 --dpr fp8 --json
      actcodec mfr resnet-50 wrn-50-2 --codec division --minibatch 128
      actcodec mfr vgg16 --codec jpeg-act --ratio 4.95
    """
    if codec:
        if sparsity or dpr or plot:
            raise UserError("--sparsity, --dpr and --plot are for Gist's encodings, not for --codec")
        names = list(dict.fromkeys(mfr_codec.NETWORKS if "all" in network else network))
        results = mfr_codec.evaluate(names, codec, minibatch, options, ratio)
        if as_json:
            click.echo(json.dumps(mfr_codec.facts(results)))
        else:
            mfr_codec.show(results)
        return
    if options or ratio:
        raise UserError("--option and --ratio require --codec")
    if others := [name for name in network if name not in (*NETWORKS, "all")]:
        raise UserError(f"{others[0]} requires --codec")
    if plot:
        check_picture(plot)
    names = list(dict.fromkeys(NETWORKS if "all" in network else network))
    results = mfr_gist.evaluate(names, minibatch, dpr, sparsity)
    if plot:
        mfr_gist.draw(results, plot)
    if as_json:
        click.echo(json.dumps(mfr_gist.facts(results)))
    else:
        mfr_gist.show(results)
