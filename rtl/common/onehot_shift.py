"""Shifters whose distance is known a cycle ahead: its digits are flip-flops, one for each value of each digit.

Such a shifter takes fewer levels of gates than one of binary stages, and less area.
"""

from amaranth.hdl import Const, Mux, Signal

from actcodec.rtl.common.target import target

__all__ = ["Digits", "choose", "digits_of", "exceeds", "turn", "window"]


def digits_of(bits, platform):
    """Bits of each of the :class:`Digits` that so many bits become: two, with an odd one last; of one bit each for
    LUTs, which choose one of two: one of four takes three of them, and as many levels as two digits of one bit."""
    return [1] * bits if target(platform) == "lut" else [min(2, bits - low) for low in range(0, bits, 2)]


def exceeds(number, count, platform):
    """Whether a number is more than each of those below ``count``; for LUTs by its halves, and not by carries."""
    if target(platform) != "lut":
        return [number > k for k in range(count)]
    half = len(number) + 1 >> 1
    low, high = number[:half], number[half:]
    lows = [low > k for k in range(1 << half)]
    ranks = [(high > k, high == k) for k in range(1 << len(number) - half)]
    return [ranks[k >> half][0] | (ranks[k >> half][1] & lows[k % (1 << half)]) for k in range(count)]


def choose(pairs):
    """The value of ``pairs`` (condition, value) whose condition holds, of which at most one does; 0 if none."""
    values = [Mux(condition, value, 0) for condition, value in pairs] or [Const(0)]
    while len(values) > 1:  # a tree
        values = [one | other for one, other in zip(values[::2], [*values[1::2], 0], strict=False)]
    return values[0]


class Digits:
    """A number below ``limit`` as flip-flops, which reset makes 0; or no number at all, if ``init`` is 0; or leaves as
    they are, if it is None.

    Parameters
    ----------
    sizes : sequence of int
        Bits of each digit, the least significant one first.
    limit : int
        The most significant digit has as many values as it needs.
    name : str
    init : int
    """

    def __init__(self, sizes, limit, name, init=1):
        self.places = [sum(sizes[:k]) for k in range(len(sizes))]
        self.signals = [Signal(min(1 << size, -(-limit >> place)), init=init or 0, reset_less=init is None,
                               name=f"{name}_{place}")
                        for place, size in zip(self.places, sizes, strict=True)]
        self._sizes = sizes

    def __getitem__(self, which):
        """Pairs (place of the digit's lowest bit, its signal)."""
        return list(zip(self.places, self.signals, strict=True))[which]

    def reaches(self, bound):
        """Whether the number is ``bound`` or more."""
        result = Const(1, 1)
        for place, signal in self[:]:
            least = (bound >> place) % len(signal)
            result = signal[least + 1 :].any() | (signal[least] & result)
        return result

    def values(self, number):
        """What the digits are of a number."""
        return [1 << number[place:][:size] for place, size in zip(self.places, self._sizes, strict=True)]

    def eq(self, number, valid=1):
        """Assignments of a number; without ``valid`` no value of any digit is set."""
        return [signal.eq(Mux(valid, value, 0))
                for signal, value in zip(self.signals, self.values(number), strict=True)]


def window(m, lanes, digits, size):
    """``size`` lanes of the list ``lanes`` from the one on whose number is in ``digits``; zeros after the end.

    ``digits`` are some of :class:`Digits` that follow each other."""
    for place, digit in reversed(digits):
        reach = min(size + (1 << place) - 1, len(lanes))
        stage = [Signal(len(lanes[0]), name=f"shown_{1 << place}_{k}") for k in range(reach)]
        m.d.comb += [lane.eq(choose((one, lanes[k + (q << place)]) for q, one in enumerate(digit)
                                    if k + (q << place) < len(lanes))) for k, lane in enumerate(stage)]
        lanes = stage
    return lanes


def turn(m, lanes, digits, ring):
    """The list ``lanes``, filled up with zeros to ``ring`` of them, turned upwards by the number in ``digits``."""
    for place, digit in digits:
        reach = min(len(lanes) + (len(digit) - 1 << place), ring)
        stage = [Signal(len(lanes[0]), name=f"turned_{1 << place}_{k}") for k in range(reach)]
        m.d.comb += [lane.eq(choose((one, lanes[(k - (q << place)) % ring]) for q, one in enumerate(digit)
                                    if (k - (q << place)) % ring < len(lanes))) for k, lane in enumerate(stage)]
        lanes = stage
    return lanes
