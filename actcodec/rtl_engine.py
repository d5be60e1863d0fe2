"""The rtl engine: the same tensors and files as the golden model, through a simulation of the generated hardware.

With several CDUs, each one runs on its own groups; the collector's and splitter's interleaving is golden's.
"""

from dataclasses import dataclass

import numpy as np

from actcodec.simulator import SimulationError, Simulator, prepare
from golden.jpegact import blocks, cdu, quantize, sfpr, stream, zvc

__all__ = ["Cycles", "SimulationError", "compress", "decompress", "prepare"]

LAYOUT_LIMIT = 2  # rows of tiles with three tiles or more are all alike


@dataclass(frozen=True)
class Cycles:
    """What the simulation counted, from the first beat in to the last beat out.

    With several CDUs, which work side by side, ``cycles`` is the slowest one's.
    """

    cycles: int
    blocks: int  # of that CDU
    latency: int  # from the first beat in to the first beat out
    bytes: int  # of the whole payload
    nans: int = 0
    saturated: int = 0

    @property
    def cycles_per_block(self):
        return self.cycles / self.blocks


def _shares(total, cdus):
    """The numbers of the groups of each CDU that has any."""
    groups = np.arange(-(-total // blocks.GROUP))
    return [groups[unit::cdus] for unit in range(min(cdus, len(groups)))]


def _members(groups, size, total):
    """The indices of all members of some groups, ``size`` to a group, ``total`` in all."""
    index = (groups[:, None] * size + np.arange(size)).reshape(-1)
    return index[index < total]


def _sector_scales(view, tiled, scales, count):
    """A scale's bits for each sector in the order of the port; those that are padding get zero."""
    rows = blocks.order(view, tiled) // view.tiles_per_row
    words = np.zeros(count, np.uint32)
    real = np.flatnonzero(rows < view.rows)
    words[real] = scales.astype(np.float32).view(np.uint32)[view.channel[rows[real]]]
    return words.reshape(-1, 1)


def _sizes(compressed_mode, payload, count):
    item = cdu.ITEM.get(compressed_mode)
    return zvc.sizes(payload, count, item.itemsize) if item else np.full(count, cdu.BLOCK_BYTES[compressed_mode])


def compress(x, mode, dqt="optL", cdus=1):
    """As golden's ``cdu.compress``, by simulated hardware. Returns (Compressed, :class:`Cycles`)."""
    mode = cdu.effective_mode(x, mode)
    view, tiled = blocks.view(x.shape), mode == "jpeg-act"
    name, dqt = (dqt, quantize.table(dqt)) if isinstance(dqt, str) else ("custom", dqt)
    table, k = quantize.shifts(dqt), None
    total = view.blocks(tiled)
    stream.order(0, cdus)
    sectors = blocks.sectors(np.ascontiguousarray(x).view(np.uint32), view, tiled)
    sectors = np.pad(sectors, ((0, 8 * total - len(sectors)), (0, 0)))
    inputs = {"sectors_i": sectors}
    if mode in cdu.SCALED:
        k = sfpr.scales(x).k
        inputs["scales"] = _sector_scales(view, tiled, k, 8 * total)

    unit = Simulator(mode)
    members, payloads, sizes, stats = [], [], [], []
    for groups in _shares(total, cdus):
        mine, ports = _members(groups, 4, total), _members(groups, 32, 8 * total)
        outputs, cycles, latency, counts = unit.run(
            0, min(view.tiles_per_row - 1, LAYOUT_LIMIT), len(mine), table,
            {name: beats[ports] for name, beats in inputs.items()}, {"bytes_o": 264 * len(mine) // unit.width + 1})
        if counts[0]:
            raise SimulationError(f"the simulated CDU reports error {counts[0]} while compressing")
        members.append(mine)
        payloads.append(_bytes(outputs["bytes_o"], unit.width))
        sizes.append(_sizes(mode, payloads[-1], len(mine)))
        stats.append((cycles, len(mine), latency, *counts[1:]))
    ascending = np.argsort(np.concatenate(members))
    payload, sizes = stream.reorder(np.concatenate(payloads), np.concatenate(sizes), ascending)
    payload, _ = stream.interleave(payload, sizes, cdus)
    result = cdu.Compressed(mode, x.shape, name if tiled else None, table if tiled else None, k, cdus,
                            payload.tobytes())
    return result, _total(stats, result)


def decompress(compressed):
    """As golden's ``cdu.decompress``, by simulated hardware. Returns (tensor, :class:`Cycles`)."""
    c, view, total = compressed, compressed.view, compressed.blocks
    payload = np.frombuffer(c.payload, np.uint8)
    payload, sizes = stream.deinterleave(payload, _sizes(c.mode, payload, total), c.cdus)
    scales = _sector_scales(view, c.tiled, sfpr.reciprocal(c.scales), 8 * total) if c.scales is not None else None
    table = c.table if c.table is not None else np.zeros((8, 8), np.uint8)

    unit = Simulator(c.mode)
    sectors, stats = np.zeros((8 * total, 8), np.uint32), []
    for groups in _shares(total, c.cdus):
        mine, ports = _members(groups, 4, total), _members(groups, 32, 8 * total)
        inputs = {"bytes_i": _beats(stream.reorder(payload, sizes, mine)[0], unit.width)}
        if scales is not None:
            inputs["scales"] = scales[ports]
        outputs, cycles, latency, counts = unit.run(
            1, min(view.tiles_per_row - 1, LAYOUT_LIMIT), len(mine), table, inputs, {"sectors_o": len(ports)})
        if counts[0]:
            raise SimulationError(f"the simulated CDU reports error {counts[0]} while decompressing")
        sectors[ports] = outputs["sectors_o"]
        stats.append((cycles, len(mine), latency, *counts[1:]))

    index = blocks.order(view, c.tiled)
    memory = np.zeros((max(index) + 1, 8), np.uint32)
    memory[index] = sectors[: len(index)]
    x = memory.reshape(-1, view.padded_width)[: view.rows, : view.width]
    return np.ascontiguousarray(x).view(np.float32).reshape(c.shape), _total(stats, c)


def _total(stats, compressed):
    cycles, count, latency, *_ = max(stats)
    return Cycles(cycles, count, latency, compressed.payload_bytes, *(sum(s[k] for s in stats) for k in (3, 4)))


def _bytes(beats, width):
    """The bytes of chunks: all beats are full, but for the last one."""
    if not len(beats):
        return np.zeros(0, np.uint8)
    count = beats[-1, width // 4] & (2 * width - 1)
    data = beats[:, : width // 4].astype("<u4").view(np.uint8).reshape(-1)
    return data[: (len(beats) - 1) * width + count]


def _beats(payload, width):
    """Bytes as chunks, the last of which carries ``last``."""
    count = -(-payload.size // width)
    data = np.pad(payload, (0, count * width - payload.size)).view("<u4").reshape(count, width // 4)
    control = np.full((count, 1), width, np.uint32)
    control[-1] = (payload.size - width * (count - 1)) | 2 * width
    return np.concatenate([data, control], axis=1)
