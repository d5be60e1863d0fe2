"""The .act file: one compressed tensor with everything that decompression needs. docs/container.md has the format.

Every length is checked against the file before memory is allocated for it, and a CRC-32 covers the whole file, so
that a damaged file is an error and never a wrong tensor.
"""

import struct
import zlib

import numpy as np

from actcodec import gist
from actcodec.files import UserError, replacing

__all__ = ["MAGIC", "MODES", "VERSION", "ContainerError", "pack", "read", "unpack", "write"]

MAGIC = b"\x89ACT"
VERSION = 1
MODES = ("raw", "sfpr", "sfpr-zvc", "jpeg-act", "brc", "zvc", *gist.MODES)
"""The modes in the order of their codes."""

HEADER = struct.Struct("<4sBBBBQ")  # magic, version, mode, CDUs, dimensions, bytes of payload
NONZERO = struct.Struct("<Q")  # values that SSDC stored
CRC = struct.Struct("<I")
BLOCK_BYTES = {"raw": (256, 256), "sfpr": (64, 64), "sfpr-zvc": (8, 72), "jpeg-act": (8, 72), "brc": (8, 8),
               "zvc": (8, 264)}
"""Fewest and most bytes that a block can have."""


class ContainerError(UserError):
    """The bytes are no .act file, or a damaged one, or one of another version."""


def pack(compressed):
    """The bytes of the .act file of a ``golden.jpegact.cdu.Compressed`` or a ``gist.Compressed``."""
    from golden.jpegact import cdu

    c = compressed
    parts = [HEADER.pack(MAGIC, VERSION, MODES.index(c.mode), c.cdus, len(c.shape), len(c.payload)),
             struct.pack(f"<{len(c.shape)}I", *c.shape)]
    if c.mode == "jpeg-act":
        name = c.dqt.encode()
        parts += [bytes([len(name)]), name, pack_shifts(c.table)]
    if c.mode in gist.MODES and c.nonzero is not None:
        parts.append(NONZERO.pack(c.nonzero))
    if c.mode in cdu.SCALED:
        words = np.ascontiguousarray(c.scales, dtype=np.float32).view(np.uint32)
        parts.append((words >> 16).astype("<u2").tobytes())  # exact: a scale is a bfloat16
    data = b"".join([*parts, bytes(c.payload)])
    return data + CRC.pack(zlib.crc32(data))


def unpack(data):
    """The ``golden.jpegact.cdu.Compressed``, or ``gist.Compressed``, in the bytes of an .act file. Raises
    :class:`ContainerError`."""
    check_header(data)
    if len(data) < HEADER.size + CRC.size or CRC.unpack(data[-CRC.size:])[0] != zlib.crc32(data[:-CRC.size]):
        raise ContainerError("truncated or altered: the CRC-32 does not match")
    # From here on only a file made wrong on purpose, or by a broken writer, can fail.
    _, _, mode, cdus, dimensions, payload_bytes = HEADER.unpack_from(data)
    if mode >= len(MODES) or not 1 <= cdus <= 8 or dimensions not in (2, 4):
        raise ContainerError(f"invalid header: mode {mode}, {cdus} CDUs, {dimensions} dimensions")
    mode, rest = MODES[mode], Reader(data[HEADER.size:-CRC.size])
    shape = struct.unpack(f"<{dimensions}I", rest.take(4 * dimensions, "shape"))
    try:
        if mode in gist.MODES:
            return unpack_gist(mode, shape, cdus, payload_bytes, rest)
        return unpack_cdu(mode, shape, cdus, payload_bytes, rest)
    except ValueError as error:
        raise ContainerError(f"invalid: {error}") from error


def unpack_gist(mode, shape, cdus, payload_bytes, rest):
    """The part of the file after its shape, in a mode of Gist. Raises ValueError, as the next function does."""
    if cdus != 1:
        raise ContainerError(f"invalid header: {cdus} CDUs in mode {mode}")
    nonzero = NONZERO.unpack(rest.take(NONZERO.size, "number of values"))[0] if mode.startswith("ssdc") else None
    payload = rest.take(payload_bytes, "payload")
    rest.end()
    return gist.Compressed(mode, shape, payload, nonzero)


def unpack_cdu(mode, shape, cdus, payload_bytes, rest):
    """The part of the file after its shape, in a mode of the CDU."""
    from golden.jpegact import blocks, cdu

    dqt = table = scales = None
    view = blocks.view(shape)
    if mode == "jpeg-act":
        dqt = rest.take(rest.take(1, "DQT's name")[0], "DQT's name").decode()
        if not dqt.isprintable():
            raise ContainerError("invalid DQT name")
        table = unpack_shifts(rest.take(24, "DQT"))
    if mode in cdu.SCALED:
        words = np.frombuffer(rest.take(2 * view.channels, "scales"), dtype="<u2")
        scales = (words.astype(np.uint32) << 16).view(np.float32)
    count = view.blocks(mode == "jpeg-act")
    least, most = (count * size for size in BLOCK_BYTES[mode])
    if not least <= payload_bytes <= most:
        raise ContainerError(f"a payload of {payload_bytes} bytes cannot hold {count} blocks of mode {mode}")
    payload = rest.take(payload_bytes, "payload")
    rest.end()
    return cdu.Compressed(mode, shape, dqt, table, scales, cdus, payload)


class Reader:
    """Takes the fields of a file one after another, and none that is longer than what is left."""

    def __init__(self, data):
        self.data, self.position = data, 0

    def take(self, size, what):
        if size > len(self.data) - self.position:
            raise ContainerError(f"ends within its {what}")
        self.position += size
        return self.data[self.position - size:self.position]

    def end(self):
        if self.position != len(self.data):
            raise ContainerError(f"has {len(self.data) - self.position} bytes more than its header says")


def pack_shifts(table):
    """24 bytes: 64 shifts of three bits, row-major, least significant bit first."""
    bits = np.asarray(table, dtype=np.uint8).reshape(64, 1) >> np.arange(3, dtype=np.uint8) & 1
    return np.packbits(bits.ravel(), bitorder="little").tobytes()


def unpack_shifts(data):
    """The shifts in 24 bytes, uint8 [8, 8]."""
    bits = np.unpackbits(np.frombuffer(data, dtype=np.uint8), bitorder="little").reshape(8, 8, 3)
    return (bits << np.arange(3, dtype=np.uint8)).sum(axis=-1, dtype=np.uint8)


def check_header(data):
    """Raises :class:`ContainerError` unless ``data`` starts like an .act file of this version."""
    if data[:len(MAGIC)] != MAGIC:
        raise ContainerError("not an .act file")
    if len(data) > len(MAGIC) and data[len(MAGIC)] != VERSION:
        raise ContainerError(f"an .act file of version {data[len(MAGIC)]}; this actcodec reads version {VERSION}")


def write(path, compressed):
    """Writes the .act file ``path`` in one piece; returns its bytes' number."""
    data = pack(compressed)
    with replacing(path) as file:
        file.write(data)
    return len(data)


def read(path):
    """The ``Compressed`` in the .act file ``path``. Raises :class:`ContainerError`, OSError as ``open`` does."""
    try:
        with open(path, "rb") as file:
            data = file.read(HEADER.size)
            check_header(data)  # before the rest of something foreign and large is read
            return unpack(data + file.read())
    except ContainerError as error:
        raise ContainerError(f"{path}: {error}") from error
