"""A ring of descriptors: tensors for an accelerator with a queue, which runs them one after another by itself.

It uses the interfaces of :class:`~actcodec.driver.Driver`. docs/integration.md has the layout of the ring in memory.
"""

from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self, cast

from actcodec.descriptors import SIZE, descriptor, report
from actcodec.driver import Driver
from actcodec.result import AcceleratorError, Result, Task, conclude

__all__ = ["Ring", "RingError"]


class RingError(RuntimeError):
    """The ring has stopped: a memory access of its own failed, a tensor had an error and ``stop_on_error`` is set, or
    the accelerator was reset. Or a tensor has no report. :meth:`Ring.compress_many` says what ``results`` and
    ``waiting`` are.
    """

    results: Sequence[Result | AcceleratorError] = ()
    waiting: Sequence[int] = ()


class _Planner(Driver):
    """The ``driver``, planning tensors instead of running them: its methods return a :class:`Task`."""

    def __init__(self, driver: Driver) -> None:
        vars(self).update(vars(driver))

    async def _tensor(self, *planned):
        return await self._plan(*planned)


class Ring:
    """A ring of ``size`` descriptors at ``address``, created by :meth:`open`. Call :meth:`wait` before the driver runs
    a tensor outside the ring.

    :meth:`compress`, :meth:`decompress` and :meth:`scan` have the parameters of the driver's methods, and return the
    number of the tensor, for :meth:`result`. Until then its tensor, table of scales and payload must not overlap those
    of others in memory. A tensor waits in its descriptor until :meth:`start`, or until the ring is full. At any
    time one task may be adding a tensor, and one waiting, as adding to a full ring does: others get a RuntimeError.
    """

    def __init__(self, driver: Driver, address: int, size: int) -> None:
        self.driver, self.address, self.size = driver, address, size
        self._planner = _Planner(driver)
        self._first = 0  # the hardware's number of tensor 0, modulo twice the largest ring
        self._added = self._ready = self._ended = 0  # tensors: added, released, known to have ended
        self._tasks_in: set[str] = set()  # what tasks are doing, in words
        self._tasks: dict[int, Task] = {}
        self._reports: dict[int, dict[str, int]] = {}

    @classmethod
    async def open(cls, driver: Driver, address: int, size: int, *, stop_on_error: bool = False) -> Self:
        """Opens a ring. ``address`` is a multiple of 512, ``size`` a power of two, at most ``driver.queue``. With
        ``stop_on_error``, the ring stops after a tensor with an error, until the next :meth:`start`. Raises ValueError
        for an illegal parameter, and RuntimeError while the accelerator is busy."""
        if size < 1 or size & size - 1 or size > driver.queue:
            raise ValueError(f"size must be a power of two up to {driver.queue}, not {size!r}" if driver.queue else
                             "this accelerator has no queue")
        if address % SIZE or not 0 <= address <= (1 << driver.address_width) - size * SIZE:
            raise ValueError(f"address must be a multiple of {SIZE}, with room for {size} descriptors, not {address!r}")
        await driver.must_rest()
        self = cls(driver, address, size)
        await driver.put(ring=address)
        await driver.put(ring_size=size, stop_on_error=int(stop_on_error))
        self._first, = await driver.get("tail")
        return self

    async def compress(self, address: int, shape: Sequence[int], mode: Any, *, notify: bool = True, **job: Any) -> int:
        """Adds a tensor to compress, as :meth:`~actcodec.driver.Driver.compress` does, and returns its number. Its end
        raises the interrupt only with ``notify``; a wait for one without it lasts until the next one with it."""
        return await self._add(await self._planner.compress(address, shape, mode, **job), notify)

    async def decompress(self, address: int, shape: Sequence[int], mode: Any, *, notify: bool = True,
                         **job: Any) -> int:
        """Adds a tensor to decompress, as :meth:`~actcodec.driver.Driver.decompress` does, and returns its number."""
        return await self._add(await self._planner.decompress(address, shape, mode, **job), notify)

    async def scan(self, address: int, shape: Sequence[int], mode: Any, *, notify: bool = True, **job: Any) -> int:
        """Adds a tensor to scan, as :meth:`~actcodec.driver.Driver.scan` does, and returns its number."""
        return await self._add(await self._planner.scan(address, shape, mode, **job), notify)

    async def start(self) -> None:
        """Rings the doorbell: all tensors in the ring may run."""
        self._ready = self._added
        await self.driver.put(head=(self._first + self._ready) % (2 * self.driver.queue))

    async def result(self, number: int) -> Result:
        """Waits for a tensor to end, and returns its result, once. Raises :class:`AcceleratorError` if it ended with an
        error, :class:`RingError` if the ring stopped before it, or if memory has no report of it, and KeyError for a
        number without a tensor, or whose result was returned before."""
        task = self._tasks[number]
        if number >= self._ready:
            await self.start()
        await self._until(number + 1)
        del self._tasks[number]
        values = self._reports.pop(number)
        if not values["done"]:
            raise RingError(f"tensor {number} has ended without a report in memory")
        return await conclude(task, values, self.driver.memory, self.driver.cdus)

    async def wait(self) -> None:
        """Returns once all tensors in the ring have ended. Raises :class:`RingError` if the ring stops before that."""
        if self._ready < self._added:
            await self.start()
        await self._until(self._added)
        while (await self.driver.get("busy"))[0]:
            pass

    async def compress_many(self, jobs: Sequence[Mapping[str, Any]]) -> list[Result | AcceleratorError]:
        """Compresses tensors, each described by the parameters of :meth:`compress`, and returns the result, or the
        error, of each, in their order. Each tensor is released as it is added, which starts a ring that an error has
        stopped again.

        What it raises, :class:`RingError` if the ring stops, or ValueError for a tensor with illegal parameters, has
        two attributes: ``results``, those so far, and ``waiting``, the numbers of the other tensors that were added,
        for :meth:`result`: now for those that have ended, for the others after the next :meth:`start`."""
        return await self._many(self._planner.compress, jobs)

    async def decompress_many(self, jobs: Sequence[Mapping[str, Any]]) -> list[Result | AcceleratorError]:
        """The same with :meth:`decompress`."""
        return await self._many(self._planner.decompress, jobs)

    # ----------------------------------------------------------------------------------------------------------- parts
    async def _many(self, plan, jobs):
        """Releases each as soon as its descriptor is written, so that hardware works while others are planned. In a
        full ring one has to raise the interrupt; and the last one, which is known when the next one is refused."""
        numbers, every = list[int](), max(self.size // 2, 1)
        results: list[Result | AcceleratorError] = []

        async def planned(index):
            if index == len(jobs):
                return None, None
            try:
                job = dict(jobs[index])
                notify = job.pop("notify", index % every == every - 1)
                return (await plan(**job), notify), None
            except Exception as error:
                return None, error

        try:
            ahead, refusal = await planned(0)
            while ahead:
                (task, notify), (ahead, refusal) = ahead, await planned(len(numbers) + 1)
                numbers.append(await self._add(task, notify or not ahead))
                await self.start()
            if refusal:
                raise refusal
            for number in numbers:
                try:
                    results.append(await self.result(number))
                except AcceleratorError as error:
                    results.append(error)
        except BaseException as error:  # of any kind: nobody else knows the numbers
            vars(error).update(results=results, waiting=[number for number in numbers if number in self._tasks])
            raise
        return results

    @contextmanager
    def _alone(self, what):
        """Around what must not be interleaved, in any event loop."""
        if what in self._tasks_in:
            raise RuntimeError(f"another task {what} already: one at a time may use a ring so")
        self._tasks_in.add(what)
        try:
            yield
        finally:
            self._tasks_in.remove(what)

    def _place(self, number):
        return self.address + (self._first + number) % self.size * SIZE

    async def _add(self, planned, notify):
        with self._alone("adds a tensor"):
            task, number = cast(Task, planned), self._added
            if number - self._ended == self.size:  # full: wait for the oldest one
                if self._ready < number:
                    await self.start()
                await self._until(number - self.size + 1)
            await self.driver.memory.write(self._place(number), descriptor(task.job | {"notify": int(notify)}))
            self._tasks[number] = task
            self._added += 1
            return number

    async def _until(self, count):
        """Waits until ``count`` tensors have ended, and reads their reports before descriptors overwrite them."""
        with self._alone("waits for a tensor"):
            await self._look(count)

    async def _look(self, count):
        driver = self.driver
        while self._ended < count:
            await driver.put(done_pending=1, error_pending=1)  # first: what ends from here on raises it again
            busy, tail, stopped, failed = await driver.get("busy", "tail", "stopped", "ring_failed")
            ended = self._ended + (tail - self._first - self._ended) % (2 * driver.queue)
            while self._ended < ended:
                content = await driver.memory.read(self._place(self._ended), SIZE)
                self._reports[self._ended] = report(content)
                self._ended += 1
            if self._ended < count:
                if stopped and not busy:  # busy was read first
                    raise RingError("a memory access of the ring failed" if failed else
                                    f"the ring has stopped after tensor {self._ended - 1}")
                if driver.wait is not None:
                    await driver.wait()
