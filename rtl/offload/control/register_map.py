"""The register map of the accelerator, declared once as data.

The RTL (registers.py), the driver (actcodec/driver.py) and docs/registers.md all come from it. It imports nothing but
the standard library, so that a host needs no Amaranth.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from actcodec.rtl.offload.control.limits import FORMATS
from actcodec.rtl.offload.control.setting import BITS as SETTINGS

__all__ = ["ACCESS", "ADDRESS_BITS", "BITS", "COUNTERS", "DESCRIPTOR", "ERRORS", "MAGIC", "MAJOR", "MAP", "MINOR",
           "PAYLOAD", "PAYLOADS", "QUEUE", "REPORT", "REPORT_BYTES", "SCAN", "STREAMS", "VALUES", "Bits", "ErrorCode",
           "Field", "Register"]

MAGIC = int.from_bytes(b"JACT", "little")
MAJOR, MINOR = 2, 3
ADDRESS_BITS = 9  # of a byte address in the map
LANES = 8  # most that a device can have


class ErrorCode(IntEnum):
    """Why a tensor ended as it should not."""

    NONE = 0
    DESCRIPTOR = 1
    MODE = 2
    SHORT = 3
    EXCESS = 4
    READ = 5
    WRITE = 6
    BEAT = 7
    BLOCK = 8
    FORMAT = 9
    OVERFLOW = 10
    ABORTED = 11


ERRORS = {
    ErrorCode.NONE: "no error",
    ErrorCode.DESCRIPTOR: "the descriptor or a setting is beyond its limits",
    ErrorCode.MODE: "the mode is not built in",
    ErrorCode.SHORT: "the stream ended before the last block",
    ErrorCode.EXCESS: "the stream continued after the last block",
    ErrorCode.READ: "memory answered a read with an error",
    ErrorCode.WRITE: "memory answered a write with an error",
    ErrorCode.BEAT: "a beat of the stream was malformed (tkeep)",
    ErrorCode.BLOCK: "a block of the stream was malformed (detected only in modes whose first byte is a length)",
    ErrorCode.FORMAT: "the format is not built in",
    ErrorCode.OVERFLOW: "the payload is longer than the space in memory; `BYTES_OUT` has its true length",
    ErrorCode.ABORTED: "a soft reset gave the tensor up (only in the report of a descriptor)",
}

ACCESS = {
    "fixed": "read only, constant",
    "ro": "read only",
    "rw": "read and write",
    "w1c": "read; writing 1 clears it, unless it is set in the same cycle",
    "pulse": "writing 1 triggers the action once; reads 0",
}


@dataclass(frozen=True)
class Field:
    """Bits of a register: ``count`` entries of ``width`` bits, entry k from bit ``low + k * step`` on. The entries are
    pieces, in ascending order, of the value ``name``, which goes on in the next word where a register has several."""

    name: str
    low: int
    width: int
    access: str
    meaning: str
    reset: int | None = 0  # of the value; None: a parameter of the instance
    count: int = 1
    step: int = 0


@dataclass(frozen=True)
class Register:
    """``count`` words of 32 bits from byte address ``offset`` on."""

    name: str
    offset: int
    fields: tuple[Field, ...]
    count: int = 1
    locked: bool = False  # cannot be written while a tensor is under way


def _word(name, offset, access, meaning, count=1, **more):
    """A register that is one field."""
    return Register(name, offset, (Field(name.lower(), 0, 32, access, meaning, **more),), count, access == "rw")


_FORMATS = ", ".join(f"{code} {name}" for code, name in enumerate(FORMATS))

MAP = (
    _word("MAGIC", 0x00, "fixed", "`JACT` in ASCII, first letter in the low byte", reset=MAGIC),
    Register("VERSION", 0x04, (
        Field("minor", 0, 16, "fixed", "minor version of this map: incremented when all devices gain registers", MINOR),
        Field("major", 16, 16, "fixed", "major version: incremented by changes that break old drivers", MAJOR),
    )),
    Register("CAPABILITIES", 0x08, (
        Field("cdus", 0, 4, "fixed", "number of CDUs", None),
        Field("queues", 4, 4, "fixed", "log2 of the descriptors that a ring can have, or 0: there is no queue", None),
        Field("formats", 8, 3, "fixed", "bit f - 1: the format with code f is built in; float32 always is", None),
        Field("address_width", 16, 7, "fixed", "bits of an address in memory", None),
        Field("payloads", 24, 2, "fixed", "where payloads pass: 0 through the streams, 1 memory, 2 as `payload_memory` "
              "says", None),
        Field("scans", 28, 1, "fixed", "the accelerator can scan a tensor, and compute r from k", None),
    )),
    Register("CONTROL", 0x0C, (
        Field("start", 0, 1, "pulse", "starts a tensor; ignored while busy and together with `reset`"),
        Field("reset", 1, 1, "pulse", "soft reset: aborts the tensor; `busy` falls when memory is idle again"),
    )),
    Register("STATUS", 0x10, (
        Field("busy", 0, 1, "ro", "a tensor or a soft reset is in progress"),
        Field("done", 1, 1, "ro", "the last tensor has ended, with or without error; cleared by `start` and `reset`"),
        Field("error", 4, 4, "ro", "error code of the last tensor, below; kept until the next start or `reset`"),
        Field("clipped", 8, 1, "ro", "codes of the last tensor could not reach all values, as the scale table does not "
              "fit it; kept like `error` (exists only with modes whose blocks have segments)"),
    )),
    Register("INTERRUPT_STATUS", 0x14, (
        Field("done_pending", 0, 1, "w1c", "a tensor has ended, with or without an error"),
        Field("error_pending", 1, 1, "w1c", "a tensor has ended with an error"),
    )),
    Register("INTERRUPT_ENABLE", 0x18, (
        Field("done_enable", 0, 1, "rw", "`done_pending` raises the interrupt"),
        Field("error_enable", 1, 1, "rw", "`error_pending` raises the interrupt"),
    )),
    Register("MODE", 0x20, (
        Field("mode", 0, 8, "rw", "code of the mode, below"),
        Field("decompress", 8, 1, "rw", "direction: 0 memory to stream, 1 stream to memory"),
        Field("signs", 9, 1, "rw", "when compressing in a mode that scales: a positive value, unless subnormal, "
              "becomes at least 1"),
        Field("scan", 10, 1, "rw", "when compressing: the tensor is scanned first, which writes k of every channel to "
              "`SCALES` (this, `scan_only` and `reciprocal` exist only if `scans` is 1)"),
        Field("scan_only", 11, 1, "rw", "with `scan`: the scan is all; there is no payload, and no frame"),
        Field("format", 12, 2, "rw", f"what a value is in memory: {_FORMATS} (exists only with more than float32)"),
        Field("reciprocal", 14, 1, "rw", "when decompressing: the table has k, as for compression, in place of r"),
        Field("payload_memory", 16, 1, "rw", "the payload is in memory, at `PAYLOAD` (exists only if `payloads` is 2)"),
        Field("notify", 17, 1, "rw", "in a ring: the end of the tensor sets `done_pending` (exists only if `queues` is "
              "not 0)"),
    ), locked=True),
    _word("ROWS", 0x24, "rw", "rows of the tensor's view"),
    _word("WIDTH", 0x28, "rw", "values in a row"),
    _word("STRIDE", 0x2C, "rw", "bytes from one row to the next"),
    _word("HEIGHT", 0x30, "rw", "consecutive rows of one channel"),
    _word("CHANNELS", 0x34, "rw", "channels; row r has scale (r // height) mod channels"),
    _word("BASE", 0x38, "rw", "address of the tensor", 2),
    _word("SCALES", 0x40, "rw", "address of the scale table, a multiple of 32: one float32 per channel, k to compress "
          "and r to decompress, or k with `reciprocal`; the whole last 32 bytes may be read; a scan writes k there", 2),
    _word("PAYLOAD", 0x48, "rw", "address of the payload, a multiple of 32, or else the error DESCRIPTOR; without one, "
          "anything (this and the next register exist only if `payloads` is not 0)", 2),
    _word("PAYLOAD_SIZE", 0x50, "rw", "bytes that the payload may have when compressing, or has when decompressing", 2),
    Register("TABLE", 0x60, (
        Field("table", 0, 3, "rw", "log2 of the DQT, row-major, vertical frequency first", count=8, step=4),
    ), 8, locked=True),
    _word("CYCLES", 0x80, "ro", "cycles from the start to the end", 2),
    _word("BYTES_IN", 0x88, "ro", "input bytes: of the tensor or the payload", 2),
    _word("BYTES_OUT", 0x90, "ro", "output bytes: of the payload or the tensor", 2),
    _word("STALL_READ", 0x98, "ro", "cycles in which a CDU waited for memory reads", 2),
    _word("STALL_WRITE", 0xA0, "ro", "cycles in which a CDU waited for memory writes", 2),
    _word("STALL_STREAM", 0xA8, "ro", "cycles spent waiting for the stream", 2),
    _word("SATURATED", 0xB0, "ro", "values outside the range of their codes when compressed in a mode that scales, "
          "or in `mx`; infinities count; modulo 2^32 in each lane", 2),
    _word("NANS", 0xB8, "ro", "NaNs when compressed in a mode that scales, in `mx`, or in any mode with `scan`; modulo "
          "2^32 in each lane", 2),
    _word("MODES", 0xC0, "fixed", "bit m: the mode with code m is built in", 2, reset=None),
    _word("SETTINGS", 0xC8, "rw", "the settings of the mode's stages, below; up to the highest bit that "
          "a built-in mode uses they exist", SETTINGS // 32),
    _word("LENGTHS_IN", 0x148, "rw", "when decompressing in a mode with streams: bytes of the stream of each lane, one "
          "word per lane (up to `COUNT`, registers exist only with such modes, and for existing lanes)", LANES),
    _word("LENGTHS_OUT", 0x168, "ro", "the same, after compressing in such a mode", LANES),
    Register("BIN", 0x188, (
        Field("bin", 0, 5, "rw", "the histogram bin that `COUNT` shows"),
    ), locked=True),
    Register("COUNT", 0x18C, (
        Field("count", 0, 27, "ro", "when compressing in such a mode: values of the tensor that the codec counted in "
              "the bin, all lanes together, while `MODE` has its mode; a lane counts to 2^24 - 1"),
        Field("counted", 31, 1, "ro", "`count` is valid for `BIN`, some cycles after the write"),
    )),
    _word("MINIMUM", 0x190, "ro", "float32: the least finite number of the tensor, -0.0 below +0.0; infinite without "
          "any, and without a scan (this and the next two registers exist only if `scans` is 1)"),
    _word("MAXIMUM", 0x194, "ro", "the greatest one, likewise; minus infinity without any"),
    _word("ZEROS", 0x198, "ro", "zeros of either sign in the tensor, counted by the scan", 2),
    _word("RING", 0x1A0, "rw", "address of the ring of descriptors, a multiple of 512: the low nine bits are ignored; "
          "the whole ring lies within the address space (this and the registers behind it exist only if `queues` is "
          "not 0, with as many bits as it takes)", 2),
    Register("RING_SIZE", 0x1A8, (
        Field("ring_size", 0, 16, "rw", "descriptors in the ring, a power of two up to 2^`queues`, which is not "
              "checked; with 0 it does not start"),
        Field("stop_on_error", 31, 1, "rw", "the ring stops after a tensor that ends with an error"),
    ), locked=True),
    Register("HEAD", 0x1AC, (
        Field("head", 0, 16, "rw", "the number of the first descriptor that is not ready: `TAIL`, or one of the "
              "`RING_SIZE` after it. Numbers count on, modulo twice 2^`queues`; number n is in place n mod "
              "`RING_SIZE`. Every write starts the ring, or has it go on"),
    )),
    Register("TAIL", 0x1B0, (
        Field("tail", 0, 16, "ro", "the number of the first descriptor that has not ended; reports of all before are "
              "in memory"),
        Field("stopped", 16, 1, "ro", "no further descriptor begins until `HEAD` is written: since reset, a soft "
              "reset, an error with `stop_on_error`, or an error of the ring's memory", 1),
        Field("ring_failed", 17, 1, "ro", "memory answered with an error when a descriptor was read, or a report "
              "written; cleared when `HEAD` is written"),
    )),
)

STREAMS = ("lengths_in", "lengths_out", "bin", "count", "counted")
"""Values that a device has only with modes whose payload is streams."""

PAYLOAD = ("payloads", "payload", "payload_size")
"""Values that a device has only if payloads can be in memory."""

PAYLOADS = ("stream", "memory", "both")
"""Where payloads of tensors may pass, by the number that ``payloads`` has: AXI4-Stream, a memory port of their own, or
either, from tensor to tensor."""

SCAN = ("scans", "scan", "scan_only", "reciprocal", "minimum", "maximum", "zeros")
"""Values that a device has only if it can scan tensors."""

QUEUE = ("queues", "notify", "ring", "ring_size", "stop_on_error", "head", "tail", "stopped", "ring_failed")
"""Values that a device has only if it has a queue of descriptors."""

COUNTERS = ("cycles", "bytes_in", "bytes_out", "stall_read", "stall_write", "stall_stream", "saturated", "nans")


class Bits(NamedTuple):
    """Where one piece of a value lies: bits ``low`` on of the word at ``address`` are bits ``part`` on of ``name``."""

    address: int
    low: int
    width: int
    name: str
    part: int


class Info(NamedTuple):
    """A value of the map."""

    width: int
    access: str
    reset: int | None
    locked: bool


BITS = tuple(
    Bits(register.offset + 4 * word, field.low + k * field.step, field.width, field.name,
         (word * field.count + k) * field.width)
    for register in MAP for word in range(register.count) for field in register.fields for k in range(field.count)
)
"""Every piece of every value, addresses ascending."""

VALUES = {
    field.name: Info(field.width * field.count * register.count, field.access, field.reset, register.locked)
    for register in MAP for field in register.fields
}

DESCRIPTOR = range(0x20, 0x220)
"""Addresses of the map that a descriptor of 512 bytes in a ring has, from its first byte on. What can be written from
MODE to LENGTHS_IN counts in it; and there is room for the report."""

REPORT = {"status": (0, 32), "number": (32, 16), "cycles": (64, 64), "bytes_in": (128, 64), "bytes_out": (192, 64),
          "lengths_out": (256, 256),
          "minimum": (256, 32), "maximum": (288, 32), "zeros": (320, 64), "nans": (384, 64), "saturated": (448, 64)}
"""What the last REPORT_BYTES of a descriptor have when its tensor has ended: the lowest bit, and how many. ``status``
is as the register STATUS, and ``number`` that of the descriptor. ``lengths_out`` takes the place of what overlaps it
when a tensor was compressed in a mode with streams. The others are 0 where the register does not exist."""

REPORT_BYTES = max(low + width for low, width in REPORT.values()) // 8
