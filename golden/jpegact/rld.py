"""RLD, the decoder of run lengths and Huffman codes (JPEG-ACT, section III-E; ITU-T T.81, section F.2.2); `rle` has
the format.
"""

from typing import NamedTuple

import numpy as np

from actcodec.golden.jpegact.rle import EOB, K3, K5, ZIGZAG, ZRL, check
from actcodec.golden.offload.blocks import BLOCK

REASONS = (
    "", "a code that is in no table", "a run that goes beyond coefficient 63", "an end before the block is complete",
    "damage in front of it",
)  # fmt: skip
_NO_CODE, _BEYOND, _CUT, _LOST = range(1, 5)


class Salvaged(NamedTuple):
    """What a damaged payload still gives."""

    blocks: np.ndarray  # int8 [n, 64]
    errors: np.ndarray  # uint8 [n]: index of each block's error in REASONS, 0 if it has none


def _array(payload):
    return payload if isinstance(payload, np.ndarray) else np.frombuffer(payload, np.uint8)


def _windows(payload):
    """The 32 bits from each byte on, uint32, to four bytes behind the end, where there are ones."""
    padded = np.concatenate([payload, np.full(8, 0xFF, np.uint8)]).astype(np.uint32)
    return padded[:-3] << 24 | padded[1:-2] << 16 | padded[2:-1] << 8 | padded[3:]


def _frames(payload, n):
    """Bits at which the codes of each of `n` blocks start and end in framing "block", and where the last one ends in
    bytes by the lengths alone; blocks that the payload does not reach are empty.
    """
    data, starts, ends, place = payload.tobytes(), [], [], 0
    for _ in range(n):
        size = data[place] if place < len(data) else 0
        place += 1
        starts.append(min(place, len(data)))
        place += size
        ends.append(min(place, len(data)))
    return 8 * np.array(starts, np.int64), 8 * np.array(ends, np.int64), place


def _walk(payload, n):
    """Bits at which each of `n` blocks starts in framing "stream", right up to the first damaged one."""

    def at_each_bit(entries):
        return entries.astype(np.uint8)[windows].tobytes()

    # What a code would do is looked up for all bits at once, so that the loop over the true codes only adds up.
    windows = (_windows(payload)[:, None] >> np.arange(16, 8, -1, dtype=np.uint32)).astype(np.uint16)
    dc_bits, ac_bits = (at_each_bit((table.lookup >> 8) + (table.lookup & 15)) for table in (K3, K5))
    # EOB goes on to the next block, and so does what is no code.
    places = at_each_bit(np.where(K5.lookup & 0xFF == EOB, BLOCK, (K5.lookup >> 4 & 15) + 1))
    starts, bit = [], 0
    for _ in range(n):
        starts.append(bit)
        bit += dc_bits[bit]
        place = 1
        while place < BLOCK:
            place += places[bit]
            bit += ac_bits[bit]
    return np.array(starts, np.int64)


def _symbols(payload, starts, ends):
    """Decode blocks whose codes start and end at these bits: values in zigzag order (int16 [n, 64]), errors, and the
    bits behind the last code that counts: one in the table, with all its bits and those of its value.
    """
    windows = _windows(payload)
    values, errors, bits = np.zeros((starts.size, BLOCK), np.int16), np.zeros(starts.size, np.uint8), starts.copy()
    live, place, lookup = np.arange(starts.size), np.zeros(starts.size, np.int64), K3.lookup
    while live.size:
        bit = bits[live]
        window = windows[bit >> 3] << (bit & 7).astype(np.uint32)  # 25 bits of it are true, 24 are needed
        entry = lookup[window >> 16].astype(np.int64)
        length, run, category = entry >> 8, entry >> 4 & 15, entry & 15
        value = (window << length.astype(np.uint32)).astype(np.int64) >> 32 - category
        value -= (value < 1 << category >> 1) * ((1 << category) - 1)
        bit += np.where(entry, length + category, 16)
        place += run
        end = (entry & 0xFF == EOB) & (lookup is K5.lookup)
        room = BLOCK - (entry & 0xFF == ZRL)  # a value has to follow ZRL
        error = np.select([bit > ends[live], entry == 0, place >= room], [_CUT, _NO_CODE, _BEYOND])
        errors[live] = error
        good = error == 0
        values[live[good], place[good]] = value[good]  # 0 for EOB and ZRL
        bits[live[good]] = bit[good]
        place += 1
        more = good & ~end & (place < BLOCK)
        live, place, lookup = live[more], place[more], K5.lookup
    return values, errors, bits


def _read(payload, n, framing, dc="none"):
    """Salvaged, the bits where the codes of each block start and should and do end, and where the last one ends in
    bytes.
    """
    if framing == "block":
        starts, ends, total = _frames(payload, n)
    else:
        starts, ends = _walk(payload, n), np.full(n, 8 * payload.size)
    values, errors, bits = _symbols(payload, starts, ends)
    if dc == "pred":
        values[:, 0] = np.cumsum(values[:, 0]) * (bits > starts)
    if framing == "stream":
        total = -(-bits.max(initial=0) // 8)
        lost = np.cumsum(errors != 0) > (errors != 0)
        values[lost], errors[lost] = 0, _LOST
    blocks = np.zeros((n, BLOCK), np.int8)
    blocks[:, ZIGZAG] = values
    return Salvaged(blocks, errors), starts, ends, bits, total


def _sound(payload, n, framing, dc="none"):
    """The `n` blocks and their sizes in bits, without what is around them; raises as `decode` does."""
    (blocks, errors), starts, ends, bits, total = _read(payload, n, framing, dc)
    for i in np.flatnonzero(errors)[:1]:
        raise ValueError(f"block {i} is damaged: {REASONS[errors[i]]}")
    if total != payload.size:
        raise ValueError(f"the codes of {n} blocks do not add up to the payload's {payload.size} bytes")
    filled = np.arange(n) if framing == "block" else np.arange(n)[-1:]
    fill = (ends - bits)[filled]
    zeros = ~payload[(ends[filled] >> 3) - 1] & (1 << np.minimum(fill, 7)) - 1
    for i in filled[(fill > 7) | (zeros != 0)][:1]:
        raise ValueError(f"block {i} is damaged: behind its codes is more than a byte's filling of ones")
    return blocks, bits - starts


def sizes(payload, n, framing="block"):
    """Sizes (int64), as `encode` gives them, of the `n` blocks in `payload`: in bytes where framing is "block", which
    needs nothing but the length bytes, in bits where it is "stream".

    The payload is bytes or an array of uint8. Raises ValueError if it is not exactly as long as its length bytes, or
    its codes, say; for damaged codes where it needs them; and for another framing.
    """
    check(framing)
    payload = _array(payload)
    if framing == "stream":
        return _sound(payload, n, framing)[1]
    starts, ends, total = _frames(payload, n)
    if total != payload.size:
        raise ValueError(f"the lengths of {n} blocks do not add up to the payload's {payload.size} bytes")
    return 1 + (ends - starts) // 8


def decode(payload, n, framing="block", dc="none"):
    """The `n` blocks (int8 [n, 64]) in `payload`; the reverse of `encode`.

    The payload is bytes or an array of uint8. Raises ValueError for damage, as far as codes show it (see `salvage`), if
    the payload is not exactly as long as they and the length bytes say, if a byte is not filled with ones, and for
    another framing or dc.
    """
    check(framing, dc)
    return _sound(_array(payload), n, framing, dc)[0]


def salvage(payload, n, framing="block", dc="none"):
    """Salvaged: what a decoder in hardware makes of `n` blocks, which has to go on after damage.

    An error of a block is a code in no table (categories above 8 are in none), a run beyond coefficient 63 (after ZRL a
    value has to come, so it may end at 62), and an end before the block is complete: of the block in framing "block",
    else of the payload. The values in front of it stay, the rest of the block is zeros. With framing "block" the next
    one starts where the length byte says; with "stream" all that follow are zeros with an error, too. A DC value that
    is lost counts as no difference for the next one with dc "pred".

    No errors are what lies behind the last code of a block, and a value of category 8 that int8 cannot hold, which
    keeps its low 8 bits. Raises ValueError for another framing or dc.
    """
    check(framing, dc)
    return _read(_array(payload), n, framing, dc)[0]
