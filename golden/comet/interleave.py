"""Eight sub-streams as one stream of bytes, in the order in which a decoder asks for them (after Giesen, Interleaved
entropy coders, 2014).

The stream begins with a byte of each lane. In each step, for lanes 0 to 7: one that holds fewer than 16 bits gets its
next byte at the end of the step; the step takes 1 to 8 bits of what it held. So a lane holds 8 to 22 bits, and no
lengths are stored. What takes the bytes apart again is the decoder itself (`actcodec.golden.comet.huffman.decode`), as
their order follows from the codes.
"""

import numpy as np

LANES = 8


def demands(lengths):
    """Which lanes ask for a byte in each step: bool, shape of `lengths` ([steps, 8], bits that each step takes).

    A lane that holds h bits asks if h < 16, so it has had 2 + ceil(taken / 8) bytes when the step ends, where `taken`
    are the bits of all steps before.
    """
    taken = np.cumsum(lengths, axis=0, dtype=np.int64) - lengths
    return np.diff(-(-taken // 8), axis=0, prepend=-1) > 0


def interleave(values, lengths):
    """The stream (bytes) of what the lanes give: `values` in [steps, 8], each of 1 to 8 bits (`lengths`).

    A lane's bit string has the first bit in a byte's top bit, and zeros behind its end. The bytes asked for in the last
    step are there though nobody reads them. Without a step there is no byte.
    """
    lengths = np.asarray(lengths, np.int64)
    if not len(lengths):
        return b""
    present = np.concatenate([np.ones((1, LANES), bool), demands(lengths)])
    stream = np.zeros(present.shape, np.uint8)
    aligned = (np.asarray(values) << 8 - lengths).astype(np.uint8)
    for lane in range(LANES):
        bits = np.unpackbits(aligned[:, lane, None], axis=1)[np.arange(8) < lengths[:, lane, None]]
        own = np.packbits(bits)
        stream[np.flatnonzero(present[:, lane])[: own.size], lane] = own
    return stream[present].tobytes()
