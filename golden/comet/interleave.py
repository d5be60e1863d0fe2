"""Eight sub-streams as one stream of bytes, in the order in which a decoder asks for them (after Giesen, Interleaved
entropy coders, 2014).

The stream begins with a byte of each lane. In each step, for lanes 0 to 7: one that holds fewer than 16 bits gets its
next byte at the end of the step; the step takes 1 to 8 bits of what it held. So a lane holds 8 to 22 bits, and no
lengths are stored. What takes the bytes apart again is the decoder itself (`actcodec.golden.comet.deinterleave`), as
their order follows from the codes.
"""

import numpy as np
from numpy.typing import NDArray

from actcodec.golden.common import bitstring

LANES = 8


def demands(lengths: NDArray[np.uint8]) -> NDArray[np.bool]:
    """Which lanes ask for a byte in each step: bool, shape of `lengths` ([steps, 8], bits that each step takes).

    A lane that holds h bits asks if h < 16, so it has had 2 + ceil(taken / 8) bytes when the step ends, where `taken`
    are the bits of all steps before.
    """
    lengths = np.asarray(lengths)
    return np.stack([_demands(lengths[:, lane]) for lane in range(LANES)], axis=1)


def _demands(lengths):
    """The same of a lane."""
    position = np.cumsum(lengths, dtype=np.uint8)  # modulo 256: a step takes 8 bits at most
    position -= lengths.astype(np.uint8)
    whole = position + np.uint8(7) >> 3
    asks = np.ones(whole.shape, bool)
    np.not_equal(whole[1:], whole[:-1], out=asks[1:])
    return asks


def interleave(values: NDArray[np.uint8], lengths: NDArray[np.uint8]) -> bytes:
    """The stream (bytes) of what the lanes give: `values` in [steps, 8], each of 1 to 8 bits (`lengths`).

    A lane's bit string has the first bit in a byte's top bit, and zeros after its end. The bytes asked for in the last
    step are there though nobody reads them. Without a step there is no byte.
    """
    values, lengths = np.asarray(values), np.asarray(lengths)
    if not len(lengths):
        return b""
    asks = np.ones((1 + len(lengths), LANES), bool)
    stream = np.zeros(asks.shape, np.uint8)
    for lane in range(LANES):
        bits, widths = (np.ascontiguousarray(part[:, lane], np.uint8) for part in (values, lengths))
        asks[1:, lane] = _demands(widths)
        own = bitstring.packed(*bitstring.merged(bits, widths, 8))
        stream[np.flatnonzero(asks[:, lane])[: own.size], lane] = own
    return stream[asks].tobytes()
