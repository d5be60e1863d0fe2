"""Which error of activations predicts that of the gradient: ``python -m tb.torch.yardstick`` measures both over the
lossy presets of ``make train-check``, quantizers in quarters, COMET by error, and a plain quantizer with a step for
each tensor or each channel; and writes the rank correlations into ``docs/ratios.md``.

Both are root mean squares over the tensors that are compressed, in the gradient of ``check.py``: the relative L2 error
of the tensor, and the root mean square of those of its channels.
"""

import math
import warnings
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

import actcodec.torch as at
from actcodec.metrics import channel_error, relative_error
from actcodec.torch import compress
from docs import marks
from tb.torch import check
from tb.torch.models import lossless, relative

DOCUMENT = Path(__file__).parents[2] / "docs/ratios.md"
LEVELS = (6, 12, 25, 50, 100)


class Uniform(at.Codec):
    """Rounds to so many steps up to the largest value, of the tensor or of each channel."""

    def __init__(self, levels, channels):
        self.levels, self.across = levels, (0, *range(2, 4)) if channels else (0, 1, 2, 3)

    def encode(self, x):
        x = x.reshape((*x.shape, 1, 1)[:4])
        step = x.abs().amax(self.across, keepdim=True).clamp_min(1e-30) / self.levels
        return ((x / step).round(), step)

    def decode(self, data):
        return data[0] * data[1]

    def nbytes(self, data):
        return data[0].numel()


def steps(zone, **options):
    """Cases of ``jpeg-act``; a step below 8 clips the mean of blocks."""
    return {f"div {step}, dead zone {zone} {options}": (
                "jpeg-act", {"quantizer": "div", "dqt": step, "dead_zone": zone, **options})
            for step in (8.0, 11.5, 16.0, 23.5, 32.0)}


def groups():
    """{group: {case: (preset or None, options or rules)}}."""
    presets = {case: way for case, way in check.CASES.items() if case not in check.VARIANTS and not lossless(way[0])}
    tables = {case: way for case, way in presets.items() if way[0] == "jpeg-act" and "signs" not in way[1]}
    return {
        "presets of `make train-check`": presets,
        "`jpeg-act`, tables, and steps without dead zone": tables | steps(0),
        "`jpeg-act`, steps, dead zone 1": steps(1),
        "`jpeg-act`, steps, dead zone 2": steps(2),
        "`jpeg-act`, steps without dead zone, one scale": steps(0, scaling="tensor"),
        "`comet` by error": {f"comet {l2}": ("comet", {"l2": l2}) for l2 in (0.02, 0.05, 0.1, 0.2)},
        "one step for a tensor": {f"tensor {n}": (None, {"rules": [at.rule(Uniform(n, False))]}) for n in LEVELS},
        "a step for each channel": {f"channel {n}": (None, {"rules": [at.rule(Uniform(n, True))]}) for n in LEVELS}}


def measure(preset, options):
    """(error of the gradient, of tensors, of channels), or None if nothing was lost."""
    errors = []

    def both(values, exact):
        x, y = (one.detach().numpy() for one in (exact, values))
        errors.append((relative_error(x, y), channel_error(x, y)))
        return errors[-1][0]

    model, exact = check.trained()
    before, compress.relative_error = compress.relative_error, both
    try:
        arguments = (preset,) if preset else ()
        error = relative(check.gradient(model, at.Compress(model, *arguments, error_every=1, **options)), exact)
    finally:
        compress.relative_error = before
    return (error, *np.sqrt(np.mean(np.square(errors), 0)).tolist()) if errors and error else None


def lines(results):
    """The table: rank correlations with the gradient's error in each group, and that error over each of the others, as
    a geometric mean."""
    yield ("| cases | number | rank correlation: tensor's error | channels' | gradient's error over tensor's | over "
           "channels' |")
    yield "|---|---:|---:|---:|---:|---:|"
    *_, comet, tensor, channel = results.values()
    more = {"the last three together": [*comet, *tensor, *channel],
            "all": [one for group in results.values() for one in group]}
    for name, group in {**results, **more}.items():
        gradient, *errors = np.array(group).T
        ranks = (f"{spearmanr(gradient, error).statistic:.3f}" for error in errors)
        ratios = (f"{math.exp(np.mean(np.log(gradient / error))):.3f}" for error in errors)
        yield f"| {name} | {len(group)} | {' | '.join([*ranks, *ratios])} |"


def main():
    warnings.simplefilter("ignore")  # that some modes are slow
    results = {}
    for name, cases in groups().items():
        results[name] = []
        for case, way in cases.items():
            errors = measure(*way)
            print(case, errors, flush=True)
            results[name] += [errors] if errors and errors not in results[name] else []  # some presets do the same
    DOCUMENT.write_text(marks.render(DOCUMENT.read_text(), {"yardstick": lambda: lines(results)}))


if __name__ == "__main__":
    main()
