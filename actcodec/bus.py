"""How a host reaches an accelerator: its bus and its memory as two small interfaces, and the registers by their names.

Needs nothing but the standard library.
"""

from collections.abc import Coroutine, Mapping
from typing import Any, Protocol

from actcodec.rtl.offload.control.register_map import BITS, VALUES

__all__ = ["Bus", "Memory", "Plain", "RegisterAccess", "run"]


class Bus(Protocol):
    """The registers: words of 32 bits at byte addresses from the accelerator's first one on."""

    async def read(self, address: int) -> int: ...

    async def write(self, address: int, value: int) -> None: ...


class Memory(Protocol):
    """The memory that the accelerator works on, at the addresses that it sees."""

    async def read(self, address: int, size: int) -> bytes: ...

    async def write(self, address: int, data: bytes) -> None: ...


class Plain:
    """Makes a :class:`Bus` or :class:`Memory` of an object whose ``read`` and ``write`` are ordinary functions."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    async def read(self, *arguments: Any) -> Any:
        return self.inner.read(*arguments)

    async def write(self, *arguments: Any) -> None:
        self.inner.write(*arguments)


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """The result of a coroutine that never has to wait, as those of a driver on :class:`Plain` interfaces.

    Raises RuntimeError if it waits after all.
    """
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    coroutine.close()
    raise RuntimeError("the coroutine waits for something; it needs an event loop")


class RegisterAccess:
    """The values of the register map, over a :class:`Bus`."""

    def __init__(self, bus: Any) -> None:
        self.bus = bus

    async def get(self, *names: str, sizes: Mapping[str, int] | None = None) -> list[int]:
        """The values of that name, as a list; every word is read once. ``sizes`` tells of which values only so many
        bits are there."""
        words: dict[int, int] = {}
        values = dict.fromkeys(names, 0)
        for bits in BITS:
            if bits.name in values and bits.part < (sizes or {}).get(bits.name, VALUES[bits.name].width):
                if bits.address not in words:
                    words[bits.address] = await self.bus.read(bits.address)
                values[bits.name] |= (words[bits.address] >> bits.low & (1 << bits.width) - 1) << bits.part
        return [values[name] for name in names]

    async def put(self, sizes: Mapping[str, int] | None = None, /, **values: int) -> None:
        """Writes all words that hold any of these values; what else is in them becomes 0. ``sizes`` tells of which
        values only so many bits are to be written. Raises ValueError for a value that does not fit, before anything is
        written."""
        words: dict[int, int] = {}
        for name, value in values.items():
            if not 0 <= value < 1 << VALUES[name].width:
                raise ValueError(f"{name} is {value}, must fit {VALUES[name].width} bits")
        for bits in BITS:
            if bits.name in values and bits.part < (sizes or {}).get(bits.name, VALUES[bits.name].width):
                piece = values[bits.name] >> bits.part & (1 << bits.width) - 1
                words[bits.address] = words.get(bits.address, 0) | piece << bits.low
        for address, word in words.items():
            await self.bus.write(address, word)
