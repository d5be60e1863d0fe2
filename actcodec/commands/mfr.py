"""``actcodec mfr``."""

import json

import click

from actcodec import mfr
from actcodec.commands.common import check_target
from actcodec.golden.gist.dpr import FORMATS
from actcodec.golden.gist.networks import NETWORKS


@click.command("mfr")
@click.argument("network", nargs=-1, required=True, type=click.Choice([*NETWORKS, "all"]), metavar="NETWORK...")
@click.option("--minibatch", type=click.IntRange(1), show_default="64; resnet-50: 32", help="Samples in a minibatch.")
@click.option("--sparsity", multiple=True, metavar="S|LAYER=S", show_default="0.8",
              help="Share of zeros that a ReLU leaves, in all layers or in one; may be given several times.")
@click.option("--dpr", type=click.Choice(list(FORMATS)), show_default="the smallest that keeps the accuracy",
              help="Format of lossy encoding.")
@click.option("--plot", metavar="FILE.png", help="Draw stacked bars.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list of networks.")
def command(network, minibatch, sparsity, dpr, plot, as_json):
    """Show the memory that training NETWORK takes, and what Gist's encodings leave of it.

    NETWORK is alexnet, nin, overfeat, vgg16, inception-v1, resnet-50, or all. MFR is the baseline's footprint over the
    encoded one's. Rows are the bars of the Gist paper's figures 8 (end to end), 10 (lossless encodings one by one), 13
    (DPR) and 17 (dynamic allocation).

    \b
    Examples:
      actcodec mfr vgg16
      actcodec mfr alexnet overfeat --sparsity 0.6 --sparsity relu3=0.9
      actcodec mfr all --plot mfr.png
      actcodec mfr resnet-50 --minibatch 64 --dpr fp8 --json
    """
    if plot:
        check_target(plot, "")
    names = list(dict.fromkeys(NETWORKS if "all" in network else network))
    results = mfr.evaluate(names, minibatch, dpr, sparsity)
    if plot:
        mfr.draw(results, plot)
    if as_json:
        click.echo(json.dumps(mfr.facts(results)))
    else:
        mfr.show(results)
