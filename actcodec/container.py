"""The .act file: one compressed tensor with everything that decompression needs. docs/container.md has the format.

The fields of a file follow from the declaration of its mode in the registry. Every length is checked against the file
before memory is allocated for it, and a CRC-32 covers the whole file, so that a damaged file is an error, never a wrong
tensor. Nothing is written that could not be read back.
"""

import struct
import zlib
from pathlib import Path

from actcodec import codecs
from actcodec.codecs.compressed import (
    CRC,
    HEADER,
    KINDS,
    MAGIC,
    MOST_DIMENSIONS,
    VERSION,
    WORDS,
    Compressed,
    side_options,
    view,
)
from actcodec.files import UserError, reading, replacing
from actcodec.golden.offload.memory.formats import CODES, HALVES

__all__ = ["MAGIC", "VERSION", "ContainerError", "pack", "read", "unpack", "write"]


class ContainerError(UserError):
    """The bytes are not an .act file, or a damaged one, or one of another version."""


def pack(compressed: Compressed) -> bytes:
    """The .act file of a :class:`~actcodec.codecs.compressed.Compressed`, as bytes. Raises ValueError for an
    inconsistent one."""
    compressed.check()
    data = b"".join([compressed.head(), bytes(compressed.payload)])
    return data + CRC.pack(zlib.crc32(data))


def unpack(data: bytes) -> Compressed:
    """The :class:`~actcodec.codecs.compressed.Compressed` in the bytes of an .act file. Raises
    :class:`ContainerError`."""
    check_header(data)
    if len(data) < HEADER.size + CRC.size or CRC.unpack(data[-CRC.size:])[0] != zlib.crc32(data[:-CRC.size]):
        raise ContainerError("truncated or altered: the CRC-32 does not match")
    # From here on only a forged file, or one from a broken writer, can fail.
    _, _, code, cdus, kind, payload_bytes = HEADER.unpack_from(data)
    (mode, implied), dtype, dimensions = codecs.by_code(code), kind >> 4, kind & 15
    types = {code: name for name, code in KINDS.items() if name != CODES or (mode and mode.codes)}
    if mode and mode.halves:
        types |= {code + WORDS: name for code, name in types.items() if name in HALVES}
    if not mode or dtype not in types or not 1 <= dimensions <= MOST_DIMENSIONS:
        raise ContainerError(f"invalid header: mode {code}, type {dtype}, {dimensions} dimensions")
    old = dict(mode.old_codes).get(code)
    shared = None if old else mode.option("cdus")
    try:
        shared.check(cdus) if shared else codecs.Option("cdus", int, 1, "", range=(1, 1)).check(cdus)
    except ValueError:
        raise ContainerError(f"invalid header: {cdus} CDUs in mode {mode.name}") from None
    rest = Reader(data[HEADER.size:-CRC.size])
    shape = struct.unpack(f"<{dimensions}I", rest.take(4 * dimensions, "shape"))
    try:
        model_shape = view(shape)
        options = {option.name: option.unpack(rest.take) for option in mode.written(implied)} | implied
        options |= {"cdus": cdus} if shared else {}
        side = rest.take(mode.model.side_bytes(model_shape, **side_options(types[dtype], options)), "side information")
        payload = rest.take(payload_bytes, "payload")
        rest.end()
        if old:
            converted = codecs.import_object(old)(mode, model_shape, payload)
            payload, options, side = converted.payload, converted.options, converted.side
        compressed = Compressed(mode.name, shape, payload, options, side, types[dtype],
                                wide=bool(mode.halves) and dtype == KINDS[types[dtype]] and types[dtype] in HALVES)
        compressed.check()
    except ValueError as error:
        raise ContainerError(f"invalid: {error}") from error
    return compressed


class Reader:
    """Takes the fields of a file in order. Raises :class:`ContainerError` for one longer than the rest of the file."""

    def __init__(self, data: bytes) -> None:
        self.data, self.position = data, 0

    def take(self, size: int, what: str) -> bytes:
        if size > len(self.data) - self.position:
            raise ContainerError(f"ends within its {what}")
        self.position += size
        return self.data[self.position - size:self.position]

    def end(self) -> None:
        if self.position != len(self.data):
            raise ContainerError(f"has {len(self.data) - self.position} bytes more than its header says")


def check_header(data: bytes) -> None:
    """Raises :class:`ContainerError` unless ``data`` starts like an .act file of this version."""
    if data[:len(MAGIC)] != MAGIC:
        raise ContainerError("not an .act file")
    if len(data) > len(MAGIC) and data[len(MAGIC)] != VERSION:
        raise ContainerError(f"an .act file of version {data[len(MAGIC)]}; this actcodec reads version {VERSION}")


def write(path: Path | str, compressed: Compressed) -> int:
    """Writes the .act file ``path`` atomically, and returns its size in bytes. Raises as :func:`pack` does, and
    :class:`~actcodec.files.UserError` if the file cannot be written."""
    data = pack(compressed)
    with replacing(path) as file:
        file.write(data)
    return len(data)


def read(path: Path | str) -> Compressed:
    """The ``Compressed`` in the .act file ``path``. Raises :class:`ContainerError`, OSError as ``open`` does."""
    try:
        with reading(path) as file:
            data = file.read(HEADER.size)
            check_header(data)  # before reading the rest of what may be large and no .act file
            return unpack(data + file.read())
    except ContainerError as error:
        raise ContainerError(f"{path}: {error}") from error
