"""Measures the table of networks in ``docs/pytorch.md``: those of ``tb/torch/networks.py``, untrained, each with four
presets: ratio, and error of the gradient.

``python -m docs.torch_networks`` records it as ``networks`` of ``docs/records/torch.json``, from which
:mod:`docs.torch_record` writes the table.
"""

import warnings

import torch

from docs import torch_record
from tb.torch.models import relative
from tb.torch.networks import LARGE, NETWORKS, compressed, fresh, gradient

__all__ = ["PRESETS", "rows"]

PRESETS = ("sfpr", "jpeg-act", "gist-fp8", "division-paper")


def measure(name, preset, exact):
    """Ratio, and the relative error of the gradient in per cent."""
    lossy, report = compressed(name, preset)
    return report.total["ratio"], 100 * relative(lossy, exact)


def rows(names=(*NETWORKS, *LARGE)):
    """Name, and both figures for each preset."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # that a network has nothing that a preset is for
    for name in names:
        exact = gradient(fresh(name), name, torch.enable_grad())
        yield [name, *(float(figure) for preset in PRESETS for figure in measure(name, preset, exact))]


if __name__ == "__main__":
    torch_record.record("networks", list(rows()))
