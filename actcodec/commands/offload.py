"""``actcodec offload``."""

import json
from collections.abc import Sequence
from typing import Any

import click
from rich.table import Table

from actcodec import codecs
from actcodec.commands import offload_step
from actcodec.commands.common import ModeCommand, check_picture
from actcodec.commands.evaluate import every_way
from actcodec.commands.offload_step import CDUS, PAPER, Machine, Result, Way
from actcodec.console import Console
from actcodec.files import UserError
from actcodec.golden.common import networks, overlap
from actcodec.golden.common.networks import Graph
from actcodec.golden.common.overlap import Layer

NETWORKS = networks.NETWORKS | networks.PYTORCH
POSITIVE = click.FloatRange(0, min_open=True)


@click.command("offload", cls=ModeCommand, several=True)
@click.argument("network", required=False, type=click.Choice(list(NETWORKS)), metavar="[NETWORK]")
@click.option("--model", metavar="MODULE:FUNCTION", help="A function that returns a PyTorch model.")
@click.option("--minibatch", type=click.IntRange(1), default=16, help="Samples in a minibatch.")
@click.option("--image", type=click.IntRange(1), default=224, help="Height and width of the images.")
@click.option("--compute", type=POSITIVE, default=12.0, help="Compute rate of the device, TFLOP/s.")
@click.option("--memory", type=POSITIVE, default=650.0, help="Bandwidth of the device's memory, GB/s.")
@click.option("--link", type=POSITIVE, default=12.8, help="Bandwidth of the link to the host's memory, GB/s.")
@click.option("--clock", type=POSITIVE, default=1.455, help="Clock of the accelerator, GHz.")
@click.option("--ahead", type=click.IntRange(1), default=1,
              help="How many layers' tensors may be in transfer while a layer runs.")
@click.option("--ratio", "ratios", multiple=True, type=click.FloatRange(1), metavar="R",
              help="Compress all tensors by a factor of R instead of in a mode; may be repeated.")
@click.option("--all", "every", is_flag=True, help="All modes that have hardware.")
@click.option("--layers", "by_layer", is_flag=True, help="Also print each layer of the last way.")
@click.option("--plot", metavar="FILE", help="Draw when layers run and tensors move; .png, .svg or .pdf.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON with every layer of every way.")
def command(network: str | None, model: str | None, minibatch: int, image: int, compute: float, memory: float,
            link: float, clock: float, ahead: int, ratios: Sequence[float], every: bool, by_layer: bool,
            plot: str | None, as_json: bool, mode: Sequence[str], **options: Any) -> None:
    """Show the time of a training step with offload.

    Activations leave the device and return while it computes.

    NETWORK is alexnet, nin, overfeat, vgg16, inception-v1, resnet-50 or wrn-50-2. Without --mode, --ratio and --all the
    ways are those of the JPEG-ACT paper: none (all stays on the device), vDNN (moved uncompressed), cDMA+, SFPR,
    JPEG-BASE and JPEG-ACT, with the mode of the paper's Table II for each kind of tensor; a last column has the paper's
    mean speeds (Figure 20). Otherwise the ways are none, vDNN and those asked for. Ratios are measured on the package's
    sample for each kind of tensor, rates are those of docs/performance.md; --cdus is 4 by default.

    \b
    Examples:
      actcodec offload resnet-50
      actcodec offload resnet-50 --compute 7.45 --minibatch 32 --plot step.png
      actcodec offload vgg16 --mode jpeg-act --dqt optH --coder rice --layers
      actcodec offload resnet-50 --ratio 2 --ratio 8 --ratio 12 --cdus 1 --cdus 4
      actcodec offload --model my_models:unet --image 64 --all
    """
    if (network is None) == (model is None):
        raise UserError("give either a NETWORK or --model MODULE:FUNCTION")
    if every and mode:
        raise UserError("give either --mode, once or more, or --all")
    if plot:
        check_picture(plot)
    numbers, options["cdus"] = options["cdus"] or (CDUS,), ()
    modes = [name for name, one in codecs.MODES.items() if one.format] if every else [*dict.fromkeys(mode)]
    chosen = [*ratios, *every_way(modes, options)]
    rows = offload_step.methods()[:2]
    for cdus in dict.fromkeys(numbers):
        rows += [labelled(one, cdus) for one in chosen] or offload_step.methods(cdus)[2:]
    machine = Machine(compute * 1e12, memory * 1e9, link * 1e9, clock * 1e9, ahead)
    graph = build(network, model, minibatch, image)
    results = offload_step.evaluate(graph, minibatch, machine, rows)
    layers = overlap.layers(graph, minibatch)
    if plot:
        from actcodec.commands.offload_plot import draw

        draw(results, graph.name, minibatch, plot)
    if as_json:
        click.echo(json.dumps({"network": graph.name, "minibatch": minibatch, "compute": compute, "memory": memory,
                               "link": link, "clock": clock, "ahead": ahead,
                               "ways": offload_step.facts(results, layers, machine)}))
        return
    console = Console(markup=False, highlight=False)
    console.print(f"{graph.name}, minibatch {minibatch}: {compute:g} TFLOP/s, {memory:g} GB/s of memory, {link:g} GB/s "
                  "of the link", soft_wrap=True)
    console.print(summary_table(results, len(set(numbers)) > 1))
    if by_layer:
        console.print("", layer_table(results[-1], layers, machine))


def labelled(one: Any, cdus: int) -> Way:
    """The :class:`Way` of a ratio, or of an item of :func:`every_way`."""
    if isinstance(one, tuple):
        label, mode, options = one
        return offload_step.way(mode, label, options, cdus)
    return Way(f"{one:g}x", ratio=one, cdus=cdus)


def build(network: str | None, model: str | None, minibatch: int, image: int) -> Graph:
    if model:
        from actcodec.torch import graph

        return graph.load(model, minibatch, image)
    try:
        return NETWORKS[str(network)]((3, image, image))
    except ValueError as error:
        raise UserError(f"--image {image}: too small for {network}: {error}") from error


def summary_table(results: Sequence[Result], several: bool) -> Table:
    """A row for each way."""
    table = Table("way", box=None, header_style="bold", pad_edge=False, collapse_padding=True)
    heads = ["ratio", "GB\nmoved", "forward\nms", "backward\nms", "step\nms", "idle\n%", "step\n/ none",
             "speed\n/ vDNN"]
    papers = all(one.way.name in PAPER for one in results)
    for head in ["CDUs"] * several + heads + ["paper,\n/ vDNN"] * papers:
        table.add_column(head, justify="right", no_wrap=True)
    none, vdnn = (one.step.seconds for one in results[:2])
    for one in results:
        step, moves = one.step, one.way.moves
        table.add_row(one.way.name, *[str(one.way.cdus or "")] * several, f"{one.ratio:.2f}" if moves else "",
                      f"{one.after / 1e9:.3f}" if moves else "", f"{1e3 * step.forward_seconds:.1f}",
                      f"{1e3 * (step.seconds - step.forward_seconds):.1f}", f"{1e3 * step.seconds:.1f}",
                      f"{100 * sum(step.waits) / step.seconds:.0f}", f"{step.seconds / none:.2f}",
                      f"{vdnn / step.seconds:.2f}", *(f"{PAPER[one.way.name]:.2f}" for _ in range(papers)))
    return table


def layer_table(result: Result, layers: Sequence[Layer], machine: Machine) -> Table:
    """A row for each layer of one way; times in ms for each pass: computing, moving its tensors, waiting."""
    table = Table("layer", "op", "bound by", box=None, header_style="bold", pad_edge=False, collapse_padding=True,
                  title=f"{result.way.name}, ms", title_justify="left")
    for head in ("forward", "out", "wait", "MB", "backward", "back", "wait"):
        table.add_column(head, justify="right", no_wrap=True)
    for one in offload_step.facts([result], layers, machine)[0]["layers"]:
        times = {name: f"{1e3 * (one[name][1] - one[name][0]):.3f}" if one[name] else ""
                 for name in ("forward", "out", "backward", "back")}
        waits = [f"{1e3 * one[name]:.3f}" if one[name] > 5e-7 else "" for name in ("forward_wait", "backward_wait")]
        table.add_row(one["layer"], one["op"], one["bound"], times["forward"], times["out"], waits[0],
                      f"{one['bytes'] / 1e6:.1f}" if one["bytes"] else "", times["backward"], times["back"], waits[1])
    return table
