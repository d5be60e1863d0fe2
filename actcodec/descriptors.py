"""Descriptors of a ring in memory, and the reports in them. Needs nothing but the standard library."""

from collections.abc import Mapping

from actcodec.rtl.offload.control.register_map import BITS, DESCRIPTOR, REPORT, REPORT_BYTES, VALUES

__all__ = ["SIZE", "descriptor", "report", "reported"]

SIZE = len(DESCRIPTOR)  # bytes of a descriptor
AT = SIZE - REPORT_BYTES  # of the report in it
STATUS = {bits.name: bits for bits in BITS if bits.name in ("done", "error", "clipped")}


def descriptor(values: Mapping[str, int]) -> bytes:
    """A descriptor that has these values of the register map, by their names, and zeros. Raises ValueError for a value
    that does not fit, and for one that no descriptor has."""
    words = bytearray(SIZE)
    places = {name: [bits for bits in BITS if bits.name == name and bits.address in DESCRIPTOR
                     and bits.address < DESCRIPTOR.start + AT] for name in values}
    for name, value in values.items():
        if not places[name] or not VALUES[name].locked:
            raise ValueError(f"a descriptor has no {name}")
        if not 0 <= value < 1 << VALUES[name].width:
            raise ValueError(f"{name} is {value}, must fit {VALUES[name].width} bits")
        for bits in places[name]:
            at = bits.address - DESCRIPTOR.start
            piece = (value >> bits.part & (1 << bits.width) - 1) << bits.low
            words[at : at + 4] = (int.from_bytes(words[at : at + 4], "little") | piece).to_bytes(4, "little")
    return bytes(words)


def report(content: bytes) -> dict[str, int]:
    """What a report says, from the bytes of a descriptor: ``done``, ``error`` and ``clipped``, and the values of
    ``REPORT``, with ``lengths_out`` as well as what is in its place."""
    number = int.from_bytes(content[AT:SIZE], "little")
    values = {name: number >> low & (1 << width) - 1 for name, (low, width) in REPORT.items()}
    status = values.pop("status")
    return {name: status >> bits.low & (1 << bits.width) - 1 for name, bits in STATUS.items()} | values


def reported(content: bytes) -> bool:
    """Whether the tensor of a descriptor has been reported; the host writes zeros in the place of the report."""
    return bool(report(content)["done"])
