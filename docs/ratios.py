"""``make docs``: the tables of ``docs/ratios.md``, ratio and error of every mode on the sample that the package
carries, of tensors of 16 bits, of a transformer's, coders with the tables of another batch, and of DIVISION on smooth
maps.

``python -m docs.ratios`` writes each between the lines ``<!-- ratios -->`` and ``<!-- /ratios -->``, or ``halves``,
``transformer``, ``stale`` or ``smooth``. A mode is shown with the defaults of its options, and with those of
:data:`MORE`.
"""

from pathlib import Path

import numpy as np

import actcodec
from actcodec import demo
from actcodec.codecs import lane_modes
from actcodec.golden.mx.element import FORMATS
from actcodec.tensors import restore
from docs import marks
from docs import transformer as transformers

__all__ = ["DOCUMENT", "render", "sample"]

DOCUMENT = Path(__file__).parent / "ratios.md"
MORE = {
    "sfpr": [{"signs": True}],
    "sfpr-zvc": [{"coder": "nibble"}, {"coder": "rice"}],
    "jpeg-act": [*({"dqt": name} for name in ("optH", "jpeg80", "jpeg60")),
                 *({"coder": name, **dqt} for name in ("nibble", "rice") for dqt in ({}, {"dqt": "optH"})),
                 *({"quantizer": "div", "coder": name, "dqt": 23.5} for name in ("zvc", "nibble", "rice"))],
    "jpeg-base": [{"dqt": name} for name in ("jpeg60", "optL-div", "optH-div")],
    "mx": [{"format": "e4m3"}, {"format": "e4m3", "rule": "floor"}, {"format": "e5m2"}, {"format": "e3m2"},
           {"format": "e2m3"}, {"format": "e2m1"}, {"format": "e2m1", "rule": "even"},
           *({"coder": name} for name in ("zvc", "nibble", "rice")),
           *({"format": name, "coder": "zvc"} for name in ("e4m3", "e2m3", "e2m1"))],
    "comet": [{"relative_bound": 0.001}, {"l2": 0.05}, {"l2": 0.2}],
    "division": [{"bits": 1}, {"bits": 4}, {"rounding": "nearest"}, {"lfc": "on"}, {"lfc": "off"},
                 {"lfc": "on", "offset": "min"}],
}
TYPES = [*(("mx", {"format": name}) for name in FORMATS), ("sfpr", {}), ("sfpr-zvc", {"coder": "rice"}),
         *(("jpeg-act", {"dqt": dqt, "coder": coder}) for dqt in ("optL", "optH") for coder in ("zvc", "rice")),
         ("jpeg-act", {"quantizer": "div", "dead_zone": 0, "coder": "rice", "dqt": 24})]


EQUAL = ("e2m1", "e3m2", "e2m3")  # elements of MX that the transform mode is held against
WHOLE = {"clip": 1.0}  # the largest value of a channel is not clipped


def sample(kind):
    """The sample's tensors whose names begin so: "conv" or "ReLU"."""
    return [x for name, x in demo.sample().items() if name.startswith(kind)]


def cells(mode, options, tensors):
    """Ratio and ratio with side information of all tensors together, and the root mean square of their errors."""
    results = [actcodec.evaluate(x, mode, **options) for x in tensors]
    size = sum(x.nbytes for x in tensors)
    ratios = [size / sum(x.nbytes / getattr(one, field) for x, one in zip(tensors, results, strict=True))
              for field in ("ratio", "ratio_with_side")]
    error = np.sqrt(np.mean([one.relative_error**2 for one in results]))
    return [*(f"{ratio:.2f}" for ratio in ratios), f"{error:.4f}" if error > 1e-4 else f"{error:.0e}" if error else "0"]


def ratios():
    """The lines of the first table."""
    kinds = [sample("conv"), sample("ReLU")]
    yield "| mode | dense: ratio | with side | error | ReLU: ratio | with side | error |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for mode in actcodec.modes():
        for options in [{}, *MORE.get(mode, [])]:
            words = [f"`{mode}`", *(f"{name}={value}" for name, value in options.items())]
            numbers = [cell for tensors in kinds for cell in cells(mode, options, tensors)]
            yield f"| {' '.join(words)} | {' | '.join(numbers)} |"


def halves():
    """The lines of the table of MX beside the modes with scales by channel, for both types of input."""
    yield ("| mode | dense, float32: ratio | error | bfloat16: ratio | error | ReLU, float32: ratio | error | "
           "bfloat16: ratio | error |")
    yield "|---|---:|---:|---:|---:|---:|---:|---:|---:|"
    kinds = [sample("conv"), sample("ReLU")]
    each = [[restore(x, x.shape, form) for x in kind] for kind in kinds for form in ("float32", "bfloat16")]
    for mode, options in TYPES:
        words = [f"`{mode}`", *(f"{name}={value}" for name, value in options.items())]
        numbers = [cell for some in each for cell in cells(mode, options, some)[1:]]
        yield f"| {' '.join(words)} | {' | '.join(numbers)} |"


def transformer():
    """The lines of the table of a transformer's tensors: the modes of the table before, and, at the errors of MX's
    elements, the transform mode with the step that saves most and has no more."""
    each = [transformers.load(kind) for kind in transformers.KINDS]
    yield "| mode | hidden states: ratio | error | attention: ratio | error | GELU: ratio | error |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for mode, options in (*TYPES[:-1], ("sfpr", WHOLE), ("sfpr-zvc", {"coder": "rice"} | WHOLE)):
        words = [f"`{mode}`", *(f"{name}={value}" for name, value in options.items())]
        numbers = [cell for some in each for cell in cells(mode, options, some)[1:]]
        yield f"| {' '.join(words)} | {' | '.join(numbers)} |"
    steps = [at_steps(some) for some in each]
    for form in EQUAL:
        errors = [float(cells("mx", {"format": form}, some)[2]) for some in each]
        numbers = [cell for attempts, error in zip(steps, errors, strict=True) for cell in at_error(attempts, error)]
        words = "`jpeg-act` quantizer=div dead_zone=0 coder=rice clip=1.0, with the error of `mx`"
        yield f"| {words} {form} | {' | '.join(numbers)} |"


def at_steps(tensors):
    """Ratio with side information and error of tensors by each of many steps."""
    options = {"quantizer": "div", "dead_zone": 0, "coder": "rice"} | WHOLE
    return [cells("jpeg-act", options | {"dqt": quarters / 4}, tensors)[1:] for quarters in range(10, 100, 3)]


def at_error(attempts, error):
    """Of steps with no more than an error, what the one with the largest ratio has; small steps saturate."""
    fine = [(float(ratio), ratio, actual) for ratio, actual in attempts if float(actual) <= error]
    return max(fine)[1:] if fine else ["none", f"{min(float(actual) for _, actual in attempts):.4f}"]


def stale():
    """The lines of the second table: two halves of each batch, with each other's tables."""
    yield "| tensors | mode | tables of its own | of the other half | loss |"
    yield "|---|---|---:|---:|---:|"
    for kind, mode, dqt in (("conv", "jpeg-act", "optL"), ("conv", "jpeg-act", "optH"), ("ReLU", "sfpr", None)):
        halves = [(x[:2], x[2:]) for x in sample(kind)]
        for coder in ("nibble", "rice"):
            name = f"{mode}-{coder}"
            sizes = np.zeros(2, int)
            for pair in halves:
                model = lane_modes(name)[0].model
                plans = [model.fit(x, dqt=dqt or "optL") for x in pair]
                for x, (words, own), (_, other) in zip(pair, plans, plans[::-1], strict=True):
                    view = model.view(x.shape)
                    rows = x.reshape(view.rows, view.width)
                    sizes += [len(model.encode(rows, view, words, settings, 1)[0]) for settings in (own, other)]
            own, other = sum(x.nbytes for pair in halves for x in pair) / sizes
            words = f"`{mode}` dqt={dqt}" if dqt else "`sfpr-zvc`"
            yield (f"| {'dense' if kind == 'conv' else kind} | {words} coder={coder} | {own:.2f} | {other:.2f} | "
                   f"{own / other - 1:.1%} |")


def maps(power):
    """64 images of 64 x 64 with the spectrum 1 / f^power, in eight samples of eight channels, standard deviation 1."""
    frequency = np.hypot(np.fft.fftfreq(64)[:, None], np.fft.rfftfreq(64))
    frequency[0, 0] = np.inf  # no mean
    phases = np.exp(2j * np.pi * np.random.default_rng(0).random((8, 8, *frequency.shape)))
    x = np.fft.irfft2(frequency**-power * phases)
    return (x / x.std()).astype(np.float32)


def smooth():
    """The lines of the third table."""
    yield "| a | with averages | with minima | without | ReLU of it: averages | minima | without |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    ways = [{"lfc": "on"}, {"lfc": "on", "offset": "min"}, {"lfc": "off"}]
    for power in (0.5, 1.0, 1.5, 2.0, 2.5):
        x = maps(power)
        errors = [actcodec.evaluate(y, "division", **way).relative_error for y in (x, np.maximum(x, 0)) for way in ways]
        yield f"| {power} | {' | '.join(f'{error:.3f}' for error in errors)} |"


def render(text):
    """The document with the tables of today."""
    return marks.render(text, {"ratios": ratios, "halves": halves, "transformer": transformer, "stale": stale,
                               "smooth": smooth})


if __name__ == "__main__":
    DOCUMENT.write_text(render(DOCUMENT.read_text()))
