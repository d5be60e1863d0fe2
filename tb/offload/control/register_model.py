"""The register map as a Python object, made from the declaration: what the RTL is held against, and a host's bus."""

from actcodec.rtl.offload.control.register_map import BITS, PAYLOAD, QUEUE, SCAN, STREAMS, VALUES

OKAY, SLVERR = 0, 2
STATUS = [name for name, info in VALUES.items() if info.access == "ro" and name != "done"]


class RegisterModel:
    """Values by name, words by address. ``pulses`` lists what a write set off, in order. ``lanes`` are those that have
    streams; ``payloads`` is where those can be, ``scans`` whether tensors are scanned, ``queue`` how many descriptors a
    ring can have."""

    def __init__(self, cdus=1, modes=0b111111, address_width=64, settings=0, clipped=0, lanes=0, formats=0,
                 payloads=0, scans=0, queue=0):
        widths = {"settings": settings} | {name: VALUES[name].width if lanes else 0 for name in STREAMS}
        widths |= {"lengths_in": 32 * lanes, "lengths_out": 32 * lanes}
        widths |= {"payload_memory": int(payloads == 2), **({} if payloads else dict.fromkeys(PAYLOAD, 0))}
        widths |= {} if scans else dict.fromkeys(SCAN, 0)
        widths |= dict.fromkeys(("ring_size", "head", "tail"), queue.bit_length()) if queue else dict.fromkeys(QUEUE, 0)
        there = [bits for bits in BITS if bits.part < widths.get(bits.name, bits.part + 1)]
        self.words = sorted({bits.address for bits in there})
        self.addresses = ("base", "scales", *(("payload", "payload_size") if payloads else ()),
                          *(("ring",) if queue else ()))
        self.locked = {bits.address for bits in there if VALUES[bits.name].locked}
        parameters = {"cdus": cdus, "modes": modes, "address_width": address_width, "formats": formats,
                      "payloads": payloads, "scans": scans, "queues": queue.bit_length() - 1 if queue else 0}
        self.values = {name: parameters[name] if info.reset is None else info.reset for name, info in VALUES.items()}
        widths |= {name: address_width for name in self.addresses} | {
            "clipped": clipped, "format": 2 * bool(formats)}
        self.limits = {name: (1 << min(info.width, widths.get(name, info.width))) - 1 for name, info in VALUES.items()}
        self.pulses = []
        self.held = [name for name, info in VALUES.items() if (info.locked or name == "head") and self.limits[name]]

    def load(self, place, line):
        """A line of a descriptor, 32 bytes, comes in its place."""
        for bits in BITS:
            at = bits.address - 0x20 - 32 * place
            if 0 <= at < 32 and bits.address < 0x168 and VALUES[bits.name].access == "rw":
                piece = int.from_bytes(line[at : at + 4], "little") >> bits.low & (1 << bits.width) - 1
                old = self.values[bits.name] & ~((1 << bits.width) - 1 << bits.part)
                self.values[bits.name] = (old | piece << bits.part) & self.limits[bits.name]

    def read(self, address):
        """``(data, response)``"""
        address &= ~3
        if address not in self.words:
            return 0, SLVERR
        return sum((self.values[bits.name] >> bits.part & (1 << bits.width) - 1) << bits.low
                   for bits in BITS if bits.address == address and VALUES[bits.name].access != "pulse"), OKAY

    def write(self, address, data, strobe=0xF):
        """The response."""
        address &= ~3
        if address not in self.words or (address in self.locked and self.values["busy"]):
            return SLVERR
        lanes = sum(0xFF << 8 * lane for lane in range(4) if strobe >> lane & 1)
        if any((data & lanes) >> bits.low & (1 << bits.width) - 1 & ~(self.limits[bits.name] >> bits.part)
               for bits in BITS if bits.address == address and bits.name in self.addresses):
            return SLVERR
        pulses = []
        for bits in (bits for bits in BITS if bits.address == address):
            mask = (1 << bits.width) - 1 & lanes >> bits.low
            new, access = data >> bits.low & mask, VALUES[bits.name].access
            if access == "rw":
                self.values[bits.name] &= ~(mask << bits.part)
                self.values[bits.name] |= new << bits.part & self.limits[bits.name]
            elif access == "w1c":
                self.values[bits.name] &= ~(new << bits.part)
            elif access == "pulse" and new:
                pulses.append(bits.name)
        if "start" in pulses and (self.values["busy"] or "reset" in pulses):
            pulses.remove("start")
        if pulses:
            self.values["done"] = 0
        self.pulses += pulses
        return OKAY

    def finish(self, error=0):
        """What the end of a tensor sets."""
        self.values |= {"busy": 0, "error": error, "done": 1, "done_pending": 1}
        if error:
            self.values["error_pending"] = 1

    @property
    def interrupt(self):
        v = self.values
        return v["done_pending"] & v["done_enable"] | v["error_pending"] & v["error_enable"]


def pack(names, model, **values):
    """Values of the model, but for those that are given, as a struct of those names."""
    result, at = 0, 0
    for name in names:
        result |= values.get(name, model.values[name]) << at
        at += model.limits[name].bit_length()
    return result
