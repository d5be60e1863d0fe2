"""``make dram``: tensors through an accelerator on DDR3, by LiteDRAM; tables of what that leaves of its rate."""

import re
from pathlib import Path

import click
import numpy as np

from actcodec.demo import sample
from actcodec.sim.toolchain import announcing
from examples.dram.controller import MEGAHERTZ
from examples.dram.simulation import DEPTH, Machine
from examples.dram.trips import trip

PAGE = Path(__file__).parents[2] / "docs/dram.md"
MODES = ("sfpr", "sfpr-zvc", "jpeg-act", "brc")
OUTSTANDING = 384
MAPS = {"brc": "ReLU_layers_0_relu1", "sfpr-zvc": "ReLU_layers_0_relu1"}  # of the others: a convolution's
SWEEP = [(8, DEPTH), (16, DEPTH), (32, DEPTH), (OUTSTANDING, DEPTH), (OUTSTANDING, 4), (OUTSTANDING, 8),
         (OUTSTANDING, 32)]
"""Beats that a lane has outstanding, and commands that the controller holds for each bank."""
SWEPT = ("sfpr-zvc", "brc")


def tensor(mode):
    """A feature map of a ResNet-20, float32 [8, 16, 32, 32]."""
    return np.concatenate([sample()[MAPS.get(mode, "conv0")]] * 2)


def table(titles, rows):
    """Lines of a table as Markdown has it, which can be read as it is."""
    widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
    line = ["|" + "|".join(f" {cell:{width}} " for cell, width in zip(row, widths, strict=True)) + "|"
            for row in (titles, ["-" * (width - 1) + ":" for width in widths], *rows)]
    return "\n".join(line) + "\n"


def rates():
    """A row for each mode."""
    rows = []
    with Machine(MODES, OUTSTANDING) as machine:
        for mode in MODES:
            one = trip(machine, tensor(mode), mode)
            rate = 256 * MEGAHERTZ / one.compressing
            rows.append([mode, f"{one.tensor / one.payload:.2f}", f"{one.least:.2f}", f"{one.compressing:.2f}",
                         f"{one.decompressing:.2f}", f"{rate:,.0f}", f"{100 * one.least / one.compressing:.0f} %"])
    return table(["mode", "ratio", "least", "compressing", "decompressing", "MB/s", "of the port"], rows)


def sweep():
    """A row for each of :data:`SWEEP`."""
    rows = []
    for outstanding, depth in SWEEP:
        with Machine(SWEPT, outstanding, depth) as machine:
            trips = [trip(machine, tensor(mode), mode) for mode in SWEPT]
        rows.append([f"{outstanding}", f"{depth}",
                     *(f"{one.compressing:.2f}, {one.decompressing:.2f}" for one in trips)])
    return table(["beats", "commands", *SWEPT], rows)


@click.command()
@click.option("--sweep", "swept", is_flag=True, help="Other depths of queues, too: builds of a minute.")
@click.option("--renew", is_flag=True, help="Write what is printed into docs/dram.md.")
def main(swept, renew):
    """Cycles of a block of 64 values, there and back, through DDR3; every byte as golden has it."""
    for name, make in [("rates", rates), *([("sweep", sweep)] if swept else [])]:
        with announcing(print):
            text = make()
        print(text)
        if renew:
            PAGE.write_text(re.sub(rf"(?<=<!-- {name} -->\n).*?(?=<!-- end -->)", lambda _, text=text: text,
                                   PAGE.read_text(), count=1, flags=re.DOTALL))


if __name__ == "__main__":
    main()
