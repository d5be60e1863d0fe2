"""The host's side of the accelerator: what software writes and reads to have a tensor compressed or decompressed.

Written once, as coroutines, against two small interfaces (:class:`Bus`, :class:`Memory`): under cocotb or asyncio they
are awaited; a host whose accesses return at once wraps them in :class:`Plain` and calls :func:`run`. docs/registers.md
has the registers. Needs NumPy, for the scales, but no Amaranth.

The stream belongs to the DMA engine: what takes the payload, or gives it, has to be at work when a tensor starts.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from actcodec import codecs
from actcodec.bus import Bus, Memory, Plain, RegisterAccess, run
from actcodec.golden.offload.memory import formats
from actcodec.golden.offload.scan import Statistics
from actcodec.result import LENGTH, AcceleratorError, Result, Task, conclude, sources
from actcodec.rtl.offload.control.limits import CODES, FORMATS, check, scaled, scanned, value_bytes
from actcodec.rtl.offload.control.register_map import COUNTERS, MAGIC, MAJOR, VALUES, ErrorCode
from actcodec.rtl.offload.control.setting import width

__all__ = ["AcceleratorError", "Bus", "Driver", "Memory", "Plain", "Result", "Statistics", "check_scan", "run"]

MOST = 8  # a value takes no more bytes in it
HARDWARE = "hardware"  # in place of scales: the accelerator finds them
TABLE = VALUES["table"].width  # a DQT of shifts, which has registers of its own


class Driver(RegisterAccess):
    """One accelerator, made by :meth:`open`. ``cdus``, ``modes``, ``formats`` (of values in memory) and
    ``address_width`` say what it has; ``payloads`` where payloads can be: 0 in the streams, 1 in memory, 2 in either;
    ``scans`` whether it can scan tensors; ``queue`` how many descriptors a ring can have, or 0. One that scans also
    computes r, so that its scale tables always hold k.

    One tensor at a time. Tensors are contiguous unless ``stride`` tells the bytes from one row of their view to the
    next. ``scale_table`` is the address, a multiple of 32, of room for a float32 word for each channel, rounded up to
    32 bytes; only the modes that scale need it. ``payload``, an address, a multiple of 32, and a number of bytes, is
    the space for a payload in memory, or what it has there; without, it passes the stream.
    """

    def __init__(self, bus: Any, memory: Any, wait: Callable[[], Any] | None = None) -> None:
        super().__init__(bus)
        self.memory, self.wait = memory, wait
        self.cdus = self.address_width = self.payloads = self.queue = 0
        self.scans = False
        self.modes: tuple[str, ...] = ()
        self.formats: tuple[str, ...] = ()

    @classmethod
    async def open(cls, bus: Any, memory: Any, wait: Callable[[], Any] | None = None) -> Self:
        """Looks whether there is an accelerator that this driver knows, and what it can do.

        ``wait`` is a coroutine function without arguments. It is awaited before each look at the status while a tensor
        is under way: it waits for the interrupt, or for a while, or raises when patience is over. Without it, the
        status is read all the time. Raises RuntimeError for another device and for another major version.
        """
        self = cls(bus, memory, wait)
        magic, major = await self.get("magic", "major")
        if magic != MAGIC:
            raise RuntimeError(f"no accelerator: the magic number is {magic:#010x}, not {MAGIC:#010x}")
        if major != MAJOR:
            raise RuntimeError(f"the accelerator's registers have version {major}, this driver knows version {MAJOR}")
        self.cdus, modes, beside, self.address_width, self.payloads, scans, queues = await self.get(
            "cdus", "modes", "formats", "address_width", "payloads", "scans", "queues")
        self.queue = 1 << queues if queues else 0
        self.scans = bool(scans)
        self.formats = tuple(name for code, name in enumerate(FORMATS) if (2 * beside | 1) >> code & 1)
        self.modes = tuple(mode.name for mode in codecs.lane_modes() if modes >> mode.code & 1)
        await self.put(done_enable=1, error_enable=0)
        return self

    # -------------------------------------------------------------------------------------------------------- tensors
    async def compress(self, address: int, shape: Sequence[int], mode: Any, *, signs: bool = False,
                       options: Mapping[str, Any] | None = None, settings: Mapping[str, int] | None = None,
                       scales: ArrayLike | str | None = None, scale_table: int | None = None,
                       stride: int | None = None, dtype: str = "float32",
                       payload: tuple[int, int] | None = None) -> Result:
        """Compresses the tensor of ``shape`` and ``dtype``, one of :attr:`formats`, at ``address``; :class:`Result`.

        A mode of tiles falls back where the tensor has none. With ``signs``, no positive value becomes 0 under a scale.
        ``settings`` has a number for each of the mode's, such as the table of its coder, perhaps that of an earlier
        tensor. ``scales`` are the k of all channels, or, where there is more to a scale, the words of its table,
        uint32; "hardware" has the accelerator scan the tensor for them, in any mode. Without scales or settings the
        tensor is read, and what fits it is computed by the mode's ``options``, or their defaults. Raises ValueError for
        what cannot be, and :class:`AcceleratorError`, whose ``length`` is that of a payload that does not fit its
        space. int8 are codes of SFPR, for modes that begin with it, but for DIVISION's; they have no scales.
        """
        name, (mode, job) = mode, self._job(address, shape, mode, False, stride, dtype)
        job |= {"signs": int(signs), **self._place(payload)}
        hardware = isinstance(scales, str)
        if hardware:
            self._scanned(job, scales)
            check_scan(options or {})
        lane = mode.codes if dtype == CODES else mode
        if (lane.scaled and scales is None) or ((mode.settings or mode.shifts) and settings is None):
            x = (await self._rows(address, mode.model.view(shape), job["stride"], dtype)).reshape(shape)
            here = {"cdus": self.cdus, "signs": signs}
            words, fitted = lane.model.fit(x, signs=signs, **_options(name, options or {}, here))
            scales, settings = words if scales is None else scales, fitted if settings is None else settings
        words = None if scales is None or hardware else np.ascontiguousarray(scales)
        if words is not None and words.dtype != np.uint32:
            words = words.astype(np.float32).view(np.uint32)
        k = None if words is None else (words & np.uint32(0xFFFF0000)).view(np.float32)
        return await self._tensor(mode, job, k, words, settings, scale_table)

    async def decompress(self, address: int, shape: Sequence[int], mode: Any, *, scales: ArrayLike | None = None,
                         settings: Mapping[str, int] | None = None, lengths: Sequence[int] = (),
                         scale_table: int | None = None, stride: int | None = None, dtype: str = "float32",
                         payload: tuple[int, int] | None = None) -> Result:
        """Decompresses the stream into the room for a tensor of ``shape`` and ``dtype`` at ``address``;
        :class:`Result`.

        ``mode`` (falling back as in :meth:`compress`), ``scales`` (k), ``settings`` and ``lengths`` are those of the
        result of compression. An accelerator that :attr:`scans` needs no ``scales`` if the table is still in memory,
        which the result then has. Raises ValueError for what cannot be, and :class:`AcceleratorError`.
        """
        from actcodec.golden.jpegact import sfpr

        mode, job = self._job(address, shape, mode, True, stride, dtype)
        job |= self._place(payload)
        back = None if scales is None else np.asarray(scales, np.float32)
        if self.scans:
            job |= {"reciprocal": 1}
        elif back is not None:
            back = sfpr.reciprocal(back)
        if mode.format.endless:
            if len(lengths) != self.cdus or not all(0 <= length < 1 << LENGTH for length in lengths):
                raise ValueError(f"mode {mode.name} needs a length of {LENGTH} bits for each of {self.cdus} lanes, not "
                                 f"{tuple(lengths)}")
            job |= {"lengths_in": sum(int(length) << LENGTH * k for k, length in enumerate(lengths))}
        return await self._tensor(mode, job, scales, None if back is None else back.view(np.uint32), settings,
                                  scale_table)

    async def scan(self, address: int, shape: Sequence[int], mode: Any, *, scale_table: int, stride: int | None = None,
                   dtype: str = "float32") -> Result:
        """Has the accelerator scan a tensor and no more: the k that ``mode`` would compress it with, which are in the
        table as well, and its statistics. Of the settings, the result has defaults. Raises as :meth:`compress`."""
        mode, job = self._job(address, shape, mode, False, stride, dtype)
        self._scanned(job, HARDWARE)
        settings = {setting.name: setting.default for setting in mode.settings} | ({"table": 0} if mode.shifts else {})
        return await self._tensor(mode, job | {"scan_only": 1}, None, None, settings, scale_table)

    async def histogram(self) -> list[int]:
        """What the lanes' codecs counted in the last tensor, which was compressed in a mode whose payload is streams:
        a list of 32 numbers, those of all lanes together."""
        counts = []
        for number in range(1 << VALUES["bin"].width):
            await self.put(bin=number)
            counted = 0
            while not counted:
                count, counted = await self.get("count", "counted")
            counts.append(count)
        return counts

    async def reset(self) -> None:
        """Soft reset: gives up whatever is under way, and returns when the accelerator is at rest. A frame that waits
        at the stream is left for the next tensor; docs/integration.md says how to be rid of it."""
        await self.put(reset=1)
        while (await self.get("busy"))[0]:
            pass
        await self.put(done_pending=1, error_pending=1)

    async def must_rest(self) -> None:
        """Raises RuntimeError while a tensor, or a ring, is running: registers could not be written, and its end would
        be taken for that of the next one."""
        if (await self.get("busy"))[0]:
            raise RuntimeError("the accelerator is busy: wait until the tensor or the ring has ended, or reset it")

    def _job(self, address, shape, mode, decompress, stride, dtype):
        """The mode, and the values of the descriptor, checked."""
        mode = codecs.effective(codecs.lane_modes(mode)[0], shape)
        view = mode.model.view(shape)
        if mode.name not in self.modes:
            raise ValueError(f"mode {mode.name} was not built in, there are {', '.join(self.modes)}")
        if dtype not in self.formats:
            raise ValueError(f"dtype {dtype} was not built in, there are {', '.join(self.formats)}")
        job = {"mode": mode.code, "decompress": int(decompress), "base": address, "rows": view.rows,
               "width": view.width, "height": view.height, "channels": view.channels, "format": FORMATS.index(dtype)}
        job |= {"stride": value_bytes(job) * view.width if stride is None else stride}
        check(job, mode, self.address_width)
        share = 256 * -(-view.blocks(mode.tiled) // (4 * self.cdus))  # values of the lane that has most
        if mode.format.endless and MOST * share >= 1 << LENGTH:
            raise ValueError(f"shape {tuple(shape)} is too large for mode {mode.name}: a lane's stream could have 2^"
                             f"{LENGTH} bytes")
        return mode, job

    def _scanned(self, job, scales):
        """Adds to the registers that the tensor is scanned."""
        if scales != HARDWARE:
            raise ValueError(f"scales must be numbers or {HARDWARE!r}, not {scales!r}")
        if not self.scans:
            raise ValueError("scales cannot be found by hardware: this accelerator has no scan")
        job |= {"scan": 1}

    def _place(self, payload):
        """The registers of a payload in memory, or none."""
        if (payload is None and self.payloads == 1) or (payload is not None and not self.payloads):
            raise ValueError("payloads of this accelerator are in memory only: payload must be an address and a size"
                             if payload is None else "payloads of this accelerator are in the streams only")
        if payload is None:
            return {}
        address, size = payload
        return {"payload": address, "payload_size": size} | ({"payload_memory": 1} if self.payloads == 2 else {})

    async def _rows(self, address, view, stride, dtype):
        """The tensor in memory, float32 [rows, width], or int8."""
        size = formats.bytes_of(dtype) * view.width
        if stride == size:
            data = await self.memory.read(address, size * view.rows)
        else:
            data = b"".join([await self.memory.read(address + row * stride, size) for row in range(view.rows)])
        words = np.frombuffer(data, {"float32": "<f4", CODES: "i1"}.get(dtype, "<u2")).reshape(view.rows, view.width)
        return formats.widen(words, dtype) if dtype in formats.HALVES else words

    async def _tensor(self, *planned):
        """Has a tensor done that :meth:`_plan` plans."""
        await self.must_rest()
        task = await self._plan(*planned)
        await self.put({"settings": width([task.mode]), "lengths_in": LENGTH * self.cdus}, **task.job)
        await self.put(done_pending=1, error_pending=1)
        await self.put(start=1)
        done = 0
        while not done:
            if self.wait is not None:
                await self.wait()
            done, error, clipped = await self.get("done", "error", "clipped")
        await self.put(done_pending=1, error_pending=1)
        names = () if error else (*COUNTERS, *sources(task))
        names = ("bytes_out",) if error == ErrorCode.OVERFLOW else names
        read = await self.get(*names, sizes={"lengths_out": LENGTH * self.cdus})
        values = dict(zip(names, read, strict=True)) | {"error": error, "clipped": clipped}
        return await conclude(task, values, self.memory, self.cdus)

    async def _plan(self, mode, job, scales, words, settings, scale_table):
        """A tensor, checked: ``words`` go into the scale table, k or r, unless it has them or will get them."""
        in_memory = scanned(job) or (words is None and "reciprocal" in job)
        needed = scaled(job, mode)
        if needed and not in_memory:
            scales, words = np.asarray(scales, np.float32), np.asarray(() if words is None else words, "<u4")
            if words.shape != (job["channels"],):
                raise ValueError(f"mode {mode.name} needs {job['channels']} scales, there are {words.size}")
        if needed and scale_table is None:
            raise ValueError(f"mode {mode.name} needs a scale_table")
        job |= {"scales": scale_table} if needed else {}
        known = {setting.name: setting.width for setting in mode.settings} | ({"table": TABLE} if mode.shifts else {})
        settings = {name: _number(mode, name, width, settings) for name, width in known.items()}
        job |= {"settings": sum(settings[setting.name] << setting.low for setting in mode.settings)}
        job |= {"table": settings["table"]} if mode.shifts else {}
        check(job, mode, self.address_width)
        if needed and not in_memory:
            await self.memory.write(scale_table, words.tobytes())
        return Task(mode, job, scales if needed else None, settings, needed and in_memory)


def check_scan(options: Mapping[str, Any]) -> None:
    """Raises ValueError if ``options`` of a mode want other scales than those that a scan finds."""
    from actcodec.golden.jpegact import sfpr

    if (options.get("scaling", "channel"), options.get("clip", sfpr.S)) != ("channel", sfpr.S):
        raise ValueError("a scan finds the scales of channels, with the paper's clip")


def _options(name, options, here):
    """A value for each option of a lane's mode, if users can ask for it; ``here`` has those that the accelerator has
    decided."""
    mode, implied = codecs.by_code(codecs.lane_modes(name)[0].code)
    decided = implied | here
    for option, value in options.items():
        if value is not None and option in decided and value != decided[option]:
            raise ValueError(f"{option} of mode {name} is {decided[option]} here, not {value!r}")
    values = mode.option_values(implied | options) if mode else options
    return {name: value for name, value in values.items() if name not in here}


def _number(mode, name, width, settings):
    value = (settings or {}).get(name)
    if value is None or not 0 <= value < 1 << width:
        raise ValueError(f"mode {mode.name} needs setting {name}, of {width} bits, not {value}")
    return int(value)

