"""The command line. Every error of the user's is one line on stderr and exit code 2, and leaves no output behind."""

import json
import os
import sys
from pathlib import Path

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from actcodec import container, engines, files, gist, metrics
from actcodec.verilog import Verilog, written
from golden.gist.dpr import FORMATS
from golden.gist.networks import NETWORKS

__all__ = ["main"]


class OneLineErrors(click.Group):
    """A group that says what is wrong in one line instead of several and a traceback."""

    def main(self, *args, standalone_mode=True, **kwargs):
        if not standalone_mode:
            return super().main(*args, standalone_mode=False, **kwargs)
        try:
            sys.exit(super().main(*args, standalone_mode=False, **kwargs) or 0)
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
        except click.Abort:
            self.fail("interrupted", 130)
        except click.ClickException as error:
            self.fail(error.format_message())
        except files.UserError as error:
            self.fail(error)
        except OSError as error:
            self.fail(f"{error.filename}: {error.strerror}" if error.filename else error)
        except MemoryError:
            self.fail("not enough memory")
        sys.exit(2)

    def fail(self, message, code=2):
        click.echo(f"actcodec: error: {' '.join(str(message).split())}", err=True)
        sys.exit(code)


@click.group(cls=OneLineErrors, context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.version_option(package_name="actcodec", prog_name="actcodec")
def main():
    """Compress the activations of a neural network as the hardware does, and take the hardware away as Verilog.

    \b
    Examples:
      actcodec compress conv1.npy conv1.act --mode jpeg-act
      actcodec info conv1.act
      actcodec decompress conv1.act back.npy --engine rtl
      actcodec units
      actcodec mfr vgg16
      actcodec demo
      actcodec bench
    """


engine_option = click.option("--engine", type=click.Choice(engines.ENGINES), default="golden",
                             help="The NumPy model, or a simulation of the hardware. Both give the same bytes.")
quiet_option = click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")


@main.command()
@click.argument("source", metavar="IN.npy")
@click.argument("target", metavar="OUT.act")
@click.option("--mode", metavar="MODE", type=click.Choice(container.MODES), required=True,
              help="How to compress; see above.")
@click.option("--dqt", metavar="optL|optH|jpeg80|jpeg60|FILE", default="optL",
              help="Table of mode jpeg-act: a name, or a file of 64 values, 1 or more (text or .npy), each taken "
                   "to the nearest power of two up to 128.")
@click.option("--cdus", type=click.IntRange(1, 8), default=1,
              help="Compression units that share the work; 1 in the modes of Gist and A2DTWP.")
@engine_option
@quiet_option
def compress(source, target, mode, dqt, cdus, engine, quiet):
    """Compress the float32 tensor in IN.npy, [N, C, H, W] or [N, F].

    \b
    Modes:
      jpeg-act   dense activations (conv, sum); lossy
      sfpr-zvc   ReLU to conv, pool, dropout; lossy
      sfpr       anything, 8 bits a value; lossy
      brc        ReLU to anything else: keeps only whether x > 0
      zvc        ReLU, dropout; lossless
      raw        anything, as it is

    \b
    Modes of Gist and A2DTWP:
      binarize   as brc, but without padding
      ssdc       ReLU to conv: values that are not zero, and where; lossless but for -0
      dpr-fp16, dpr-fp10, dpr-fp8      anything, as smaller floats; lossy
      ssdc-fp16, ssdc-fp10, ssdc-fp8   ssdc, and dpr of its values; lossy
      bitpack-1, bitpack-2, bitpack-3  weights: the top bytes of each; lossy

    \b
    Examples:
      actcodec compress conv1.npy conv1.act --mode jpeg-act
      actcodec compress conv1.npy conv1.act --mode jpeg-act --dqt my_table.txt --cdus 4
      actcodec compress relu1.npy relu1.act --mode sfpr-zvc --engine rtl
      actcodec compress relu1.npy relu1.act --mode ssdc-fp8
    """
    check_target(target, source)
    if mode in gist.MODES and cdus != 1:
        raise files.UserError(f"--cdus is {cdus}; mode {mode} does not use CDUs")
    x = files.read_tensor(source)
    with simulating(engine, quiet):
        compressed, cycles = engines.compress(engine, x, mode, dqt, cdus)
    file_bytes = container.write(target, compressed)
    if quiet:
        return
    if compressed.mode != mode:
        click.echo(f"note: shape {shape_text(x.shape)} has no 8x8 tiles, so {mode} fell back to {compressed.mode}",
                   err=True)
    report(target, f"{shape_text(x.shape)}, {mode_text(compressed)}, ratio {compressed.ratio:.2f} "
                   f"({metrics.ratio_with_side(compressed, file_bytes):.2f} with side information)", cycles)


@main.command()
@click.argument("source", metavar="IN.act")
@click.argument("target", metavar="OUT.npy")
@engine_option
@quiet_option
def decompress(source, target, engine, quiet):
    """Decompress IN.act to the float32 tensor OUT.npy.

    \b
    Examples:
      actcodec decompress conv1.act back.npy
      actcodec decompress conv1.act back.npy --engine rtl
    """
    check_target(target, source)
    compressed = container.read(source)
    with simulating(engine, quiet):
        try:
            x, cycles = engines.decompress(engine, compressed)
        except ValueError as error:  # the CRC is right, so the file was written wrong
            raise container.ContainerError(f"{source}: invalid payload: {error}") from error
    with files.replacing(target) as file:
        np.save(file, x)
    if not quiet:
        report(target, f"{shape_text(x.shape)}, from {mode_text(compressed)}", cycles)


@main.command()
@click.argument("source", metavar="IN.act")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def info(source, as_json):
    """Show what is in IN.act.

    ratio is the tensor's bytes over the payload's; ratio_with_side counts the whole file.

    \b
    Examples:
      actcodec info conv1.act
      actcodec info conv1.act --json
    """
    compressed = container.read(source)
    file_bytes = len(container.pack(compressed))
    facts = {"mode": compressed.mode, "dqt": compressed.dqt, "shape": list(compressed.shape),
             "cdus": compressed.cdus, "payload_bytes": len(compressed.payload),
             "side_bytes": file_bytes - len(compressed.payload), "ratio": compressed.ratio,
             "ratio_with_side": metrics.ratio_with_side(compressed, file_bytes)}
    if as_json:
        click.echo(json.dumps(facts))
        return
    table = Table(show_header=False, box=None)
    for key, value in facts.items():
        table.add_row(key, f"{value:.3f}" if isinstance(value, float) else "-" if value is None else str(value))
    Console(markup=False, emoji=False).print(table)  # the name of a DQT is the user's


@main.command()
def units():
    """List the units of the hardware.

    \b
    Examples:
      actcodec units
      actcodec verilog UNIT --help
    """
    from rtl.units import UNITS

    table = Table("unit", "what it is", "parameters", box=None, header_style="bold")
    for unit in UNITS.values():
        defaults = (f"{key}={written(value)}" for key, value in unit.parameters.items())
        table.add_row(unit.name, unit.summary, " ".join(defaults))
    Console().print(table)


main.add_command(Verilog(name="verilog", subcommand_metavar="UNIT [OPTIONS]", help="""
    Print the Verilog of a unit.

    \b
    Examples:
      actcodec verilog dct
      actcodec verilog cdu --modes jpeg-act,sfpr -o cdu.v
      actcodec verilog cdu --help
    """))


@main.command()
@click.argument("network", nargs=-1, required=True, type=click.Choice([*NETWORKS, "all"]), metavar="NETWORK...")
@click.option("--minibatch", type=click.IntRange(1), show_default="64; resnet-50: 32", help="Samples in a minibatch.")
@click.option("--sparsity", multiple=True, metavar="S|LAYER=S", show_default="0.8",
              help="Share of zeros that a ReLU leaves, in all layers or in one; may be given several times.")
@click.option("--dpr", type=click.Choice(list(FORMATS)), show_default="the smallest that keeps the accuracy",
              help="Format of lossy encoding.")
@click.option("--plot", metavar="FILE.png", help="Draw stacked bars.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list of networks.")
def mfr(network, minibatch, sparsity, dpr, plot, as_json):
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
    from actcodec import mfr as gist

    if plot:
        check_target(plot, "")
    names = list(dict.fromkeys(NETWORKS if "all" in network else network))
    results = gist.evaluate(names, minibatch, dpr, sparsity)
    if plot:
        gist.draw(results, plot)
    if as_json:
        click.echo(json.dumps(gist.facts(results)))
    else:
        gist.show(results)


@main.command()
@click.option("--output", metavar="DIR", default="build", help="Folder for the picture, demo.png.")
def demo(output):
    """Run real activations of a ResNet-20 through the simulated hardware, and compare with the NumPy model.

    Exits with code 1 if a single bit differs.

    \b
    Examples:
      actcodec demo
      actcodec demo --output pictures
    """
    from actcodec.demo import run

    if not run(Path(output)):
        click.get_current_context().exit(1)


@main.command()
@click.option("--output", metavar="DIR", default="build/bench", help="Folder for report.json and bench.png.")
@click.option("--quick", is_flag=True, help="Fewer widths and numbers of CDUs.")
def bench(output, quick):
    """Measure the simulated accelerator in exact cycles: rate by mode, width and CDUs, and effective offload rate.

    \b
    Examples:
      actcodec bench
      actcodec bench --quick --output pictures
    """
    from actcodec.bench import run

    try:
        with engines.simulator():
            run(Path(output), quick)
    except ModuleNotFoundError as error:
        raise files.UserError(f"actcodec bench needs the Python package {error.name}") from error


def check_target(target, source):
    """Refuses what cannot be written before any work is done for it."""
    if os.path.isdir(target):
        raise files.UserError(f"{target}: is a directory")
    if not os.path.isdir(os.path.dirname(target) or "."):
        raise files.UserError(f"{os.path.dirname(target)}: no such directory")
    if os.path.exists(target) and os.path.exists(source) and os.path.samefile(source, target):
        raise files.UserError(f"{target}: input and output are the same file")


def simulating(engine, quiet):
    """Something that moves in a terminal while the hardware is built and simulated."""
    return Console(stderr=True, quiet=quiet or engine != "rtl").status("building and simulating the hardware")


def shape_text(shape):
    return "x".join(map(str, shape))


def mode_text(compressed):
    return f"{compressed.mode} {compressed.dqt}" if compressed.mode == "jpeg-act" else compressed.mode


def report(target, text, cycles):
    """The line after a command that went well."""
    speed = f", {cycles.cycles_per_block:.2f} cycles per block" if cycles else ""
    click.echo(f"{click.format_filename(target)}: {text}{speed}")
