"""Eight sub-streams as one stream of bytes, in the order in which a decoder asks for them (after Giesen, Interleaved
entropy coders, 2014).

The stream begins with a byte of each lane. In each step, for lanes 0 to 7: one that holds fewer than 16 bits gets its
next byte at the end of the step; the step takes 1 to 8 bits of what it held. So a lane holds 8 to 22 bits, and no
lengths are stored. What takes the bytes apart again is the decoder itself (`actcodec.golden.comet.huffman.decode`), as
their order follows from the codes.
"""

import numpy as np

from actcodec.golden.common import bitstring

LANES = 8


def demands(lengths):
    """Which lanes ask for a byte in each step: bool, shape of `lengths` ([steps, 8], bits that each step takes).

    A lane that holds h bits asks if h < 16, so it has had 2 + ceil(taken / 8) bytes when the step ends, where `taken`
    are the bits of all steps before.
    """
    return _demands(np.asarray(lengths).T).T


def _demands(lengths):
    """The same of lanes, [8, steps]."""
    taken = np.cumsum(lengths, axis=1, dtype=np.uint8)  # modulo 256: a step takes 8 bits at most
    taken -= lengths.astype(np.uint8)
    bytes_ = taken + np.uint8(7) >> 3
    asks = np.ones(bytes_.shape, bool)
    np.not_equal(bytes_[:, 1:], bytes_[:, :-1], out=asks[:, 1:])
    return asks


def interleave(values, lengths):
    """The stream (bytes) of what the lanes give: `values` in [steps, 8], each of 1 to 8 bits (`lengths`).

    A lane's bit string has the first bit in a byte's top bit, and zeros behind its end. The bytes asked for in the last
    step are there though nobody reads them. Without a step there is no byte.
    """
    values, lengths = (np.ascontiguousarray(np.asarray(part).T, np.uint8) for part in (values, lengths))
    if not lengths.size:
        return b""
    asks = np.pad(_demands(lengths), ((0, 0), (1, 0)), constant_values=True)
    stream = np.zeros(asks.shape, np.uint8)
    for lane in range(LANES):
        own = bitstring.packed(*bitstring.merged(values[lane], lengths[lane], 8))
        place = np.flatnonzero(asks[lane])
        stream[lane, place[: own.size]] = own
    return stream.T[asks.T].tobytes()
