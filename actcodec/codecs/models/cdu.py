"""The modes of a CDU: ``golden/jpegact/cdu.py``. Side information are the scales, as bfloat16, and then the coder's
table; what divides is an option."""

import numpy as np

from actcodec.codecs import by_code, find, lane_modes
from actcodec.codecs.compressed import Compressed
from actcodec.golden.jpegact import cdu, sfpr, steps
from actcodec.golden.offload import blocks

__all__ = ["check", "check_payload", "check_scales", "compress", "compressed", "decompress", "job",
           "packed_scales", "saturated", "settings", "side_bytes", "size", "stored", "unpacked_scales"]

DEAD_ZONE = 1


def packed_scales(scales):
    return (scales.view(np.uint32) >> 16).astype("<u2").tobytes()  # exact: a scale is a bfloat16


def unpacked_scales(side):
    return (np.frombuffer(side, "<u2").astype(np.uint32) << 16).view(np.float32)


def compress(x, mode, cdus, dqt=None, signs=False, coder="zvc", quantizer="sh", dead_zone=DEAD_ZONE):
    lane = mode.variant({"coder": coder, "quantizer": quantizer})
    c = cdu.compress(x, lane.name, table(dqt), cdus, signs, dead_zone=dead_zone or 0)
    numbers = told(c.mode, c.code, c.table, dead_zone)
    return _compressed(lane_modes(c.mode)[0], c.shape, c.payload, cdus, dqt, c.scales, numbers)


def table(dqt):
    return "optL" if dqt is None else dqt.table


def job(dqt=None, signs=False, coder="zvc", quantizer="sh", dead_zone=DEAD_ZONE):
    """What the driver's ``compress`` has to know of the options."""
    return {"dqt": table(dqt), "signs": signs} | ({"options": {"dead_zone": dead_zone}} if quantizer == "div" else {})


def settings(x, mode, dqt="optL", signs=False, dead_zone=DEAD_ZONE):
    """What the units of a lane's mode have to be told of a tensor: a number for each of the mode's settings."""
    code = cdu.fit(x, mode.name, dqt, signs, dead_zone) if mode.name in cdu.TABLES else None
    quarters = cdu.table_of(mode.name, dqt) if mode.name in cdu.STEPPED else None
    return told(mode.name, code, quarters, dead_zone)


def told(name, code=None, quarters=None, dead_zone=0):
    """A number for each setting of a lane's mode: the word of ``code``, a coder's table or DIV's, or of the steps."""
    own = {"steps": lambda: steps.word(quarters), "dead_zone": lambda: dead_zone}
    return {setting.name: own.get(setting.name, lambda: code.word)() for setting in lane_modes(name)[0].told}


def compressed(lane, shape, payload, cdus, result, dqt=None, **options):
    """The ``Compressed`` of what a lane's mode made of a tensor, by the driver's ``result``."""
    return _compressed(lane, shape, payload, cdus, dqt, result.scales, result.settings)


def _compressed(lane, shape, payload, cdus, dqt, scales, numbers):
    mode, options = by_code(lane.code)
    options |= {"cdus": cdus} | ({"dqt": dqt} if lane.tiled else {})
    side = b"" if scales is None else packed_scales(scales)
    side += b"".join(numbers[setting.name].to_bytes(setting.bytes, "little") for setting in kept(lane))
    return Compressed(mode.name, shape, payload, options, side)


def decompress(compressed):
    return cdu.decompress(stored(compressed)[0])


def stored(compressed):
    """Golden's ``Compressed``, and the numbers of the settings. Raises ValueError."""
    c, dqt, lane = compressed, compressed.options.get("dqt"), find(compressed.mode).variant(compressed.options)
    name, numbers = dqt.name if dqt else None, dqt.numbers if lane.tiled and lane.name != cdu.BASE else None
    at = scale_bytes(c.shape, lane)
    scales = unpacked_scales(c.side[:at]) if lane.scaled else None
    code = cdu.TABLES[lane.name](dqt.numbers) if lane.name == cdu.BASE else None
    for setting in kept(lane):
        code = cdu.TABLES[lane.name].of(int.from_bytes(c.side[at : at + setting.bytes], "little"))
        at += setting.bytes
    found = cdu.Compressed(lane.name, c.shape, name, numbers, scales, c.cdus, c.payload, code)
    return found, told(lane.name, code, numbers)


def kept(lane):
    """The settings that side information has."""
    return [setting for setting in lane.told if setting.stored]


def scale_bytes(shape, lane):
    return 2 * blocks.view(shape).channels if lane.scaled else 0


def side_bytes(shape, mode, **options):
    return scale_bytes(shape, mode) + sum(setting.bytes for setting in kept(mode))


def size(shape, mode, **options):
    """None where it depends on the values."""
    if mode.format.shortest != mode.format.longest:
        return None
    return blocks.view(shape).blocks(mode.tiled) * mode.format.longest + side_bytes(shape, mode)


def check(compressed):
    c, mode = compressed, find(compressed.mode).variant(compressed.options)
    least = mode.format.shortest + (mode.name == cdu.BASE)  # where a block is never its first byte alone
    check_payload(c, blocks.view(c.shape).blocks(mode.tiled), least, mode.format.longest)
    stored(c)


def check_payload(compressed, count, shortest, longest):
    """Raises ValueError unless the payload can be that of ``count`` blocks."""
    c = compressed
    if not count * shortest <= c.payload_bytes <= count * longest:
        raise ValueError(f"a payload of {c.payload_bytes} bytes cannot hold {count} blocks of mode {c.mode}")


def check_scales(k, smallest=sfpr.SMALLEST):
    """Raises ValueError unless all are 0, or from ``smallest`` to the largest scale."""
    if not np.all((k == 0) | (k >= smallest) & (k <= sfpr.LARGEST)):
        raise ValueError("a scale is not a bfloat16 number that a tensor can have")


def saturated(x, compressed):
    """Values that SFPR clips."""
    c = stored(compressed)[0]
    return 0 if c.scales is None else sfpr.counts(x, c.scales).saturated
