"""Bench of the driver's ring: many tensors by one call, each as the driver alone has it, and every byte right."""

import asyncio

import numpy as np
import pytest

from actcodec.driver import AcceleratorError, Driver, Plain, run
from actcodec.golden.offload import scan
from actcodec.ring import Ring, RingError
from actcodec.rtl.offload.control.register_map import ErrorCode
from actcodec.sim.rtl_engine import Contents
from actcodec.sim.simulator import Simulator
from tb.offload.test_rings import QUEUED

SPACE = 1 << 13  # of a tensor, its table or its payload
PLACES = 24
RING = 3 * PLACES * SPACE
MODES = ("sfpr-zvc", "raw", "brc", "zvc")


@pytest.fixture
def simulator():
    return Simulator(QUEUED.modes, QUEUED.cdus, RING + (1 << 13), formats=QUEUED.formats, payload="both", scan=True,
                     queue=QUEUED.queue)


@pytest.fixture
def driver(simulator):
    async def wait():
        simulator.run()
    return run(Driver.open(Plain(simulator), Plain(Contents(simulator.bytes)), wait))


def job(k, x, mode, **more):
    """The parameters of the k-th tensor."""
    return {"address": 3 * k * SPACE, "shape": x.shape, "mode": mode, "scale_table": (3 * k + 1) * SPACE,
            "payload": ((3 * k + 2) * SPACE, SPACE), **more}


def tensors(random, simulator, count):
    result = []
    for k in range(count):
        shape = tuple(map(int, random.integers(1, (3, 5, 9, 12)))) if k % 5 else (3, 20)
        x = random.normal(0, 3, shape).astype(np.float32)
        simulator.bytes[3 * k * SPACE :][: x.nbytes] = x.reshape(-1).view(np.uint8)
        result.append(x)
    return result


def contents(simulator, at, size):
    return simulator.bytes[at : at + size].tobytes()


def test_many_tensors_there_and_back(simulator, driver, random):
    """More than the ring has room for; as the driver alone compresses them."""
    x = tensors(random, simulator, PLACES)
    ring = run(Ring.open(driver, RING, QUEUED.queue))
    jobs = [job(k, one, MODES[k % 4], **({"scales": "hardware"} if k % 3 == 0 else {})) for k, one in enumerate(x)]
    results = run(ring.compress_many(jobs))
    run(ring.wait())
    payloads = []
    for k, (one, result) in enumerate(zip(jobs, results, strict=True)):
        size = result.counters["bytes_out"]
        payloads.append(contents(simulator, one["payload"][0], size))
        alone = run(driver.compress(**one))
        assert (alone.mode, alone.settings, alone.clipped) == (result.mode, result.settings, result.clipped)
        assert {name: alone.counters[name] for name in ("bytes_in", "bytes_out", "nans", "saturated")}.items() \
            <= result.counters.items()
        np.testing.assert_array_equal(result.scales, alone.scales)
        assert payloads[-1] == contents(simulator, one["payload"][0], size)
        assert result.statistics == (scan.statistics(x[k]) if k % 3 == 0 else None)
    back = [{name: value for name, value in one.items() if name not in ("scales", "payload")}
            | {"scales": result.scales, "settings": result.settings,
               "payload": (one["payload"][0], result.counters["bytes_out"])}
            for one, result in zip(jobs, results, strict=True)]
    for one, values in zip(back, x, strict=True):
        simulator.bytes[one["address"] :][: values.nbytes] = 0
    done = run(ring.decompress_many(back))
    run(ring.wait())
    for one, values, result in zip(back, x, done, strict=True):
        assert result.counters["bytes_out"] == values.nbytes
        restored = contents(simulator, one["address"], values.nbytes)
        simulator.bytes[one["address"] :][: values.nbytes] = 0
        run(driver.decompress(**one))
        assert restored == contents(simulator, one["address"], values.nbytes)
        assert one["mode"] not in ("raw", "zvc") or restored == values.tobytes()


def test_an_error_is_its_own_tensors(simulator, driver, random):
    x = tensors(random, simulator, 6)
    ring = run(Ring.open(driver, RING, 4))
    jobs = [job(k, one, "raw") for k, one in enumerate(x)]
    jobs[2]["payload"] = jobs[2]["payload"][0], 0
    results = run(ring.compress_many(jobs))
    assert [isinstance(one, AcceleratorError) for one in results] == [k == 2 for k in range(6)]
    assert results[2].code == ErrorCode.OVERFLOW and results[2].length >= x[2].nbytes


def test_tensors_one_by_one_and_a_ring_that_stops(simulator, driver, random):
    """Behind an error, to go on with the next start; and at a soft reset."""
    x = tensors(random, simulator, 5)
    ring = run(Ring.open(driver, RING, 4, stop_on_error=True))
    first = run(ring.scan(0, x[0].shape, "sfpr-zvc", scale_table=SPACE))
    assert run(ring.result(first)).statistics == scan.statistics(x[0])
    with pytest.raises(KeyError):
        run(ring.result(first))
    jobs = [job(k, one, "raw") for k, one in enumerate(x)]
    jobs[1]["payload"] = jobs[1]["payload"][0], 0
    numbers = [run(ring.compress(**one)) for one in jobs[:3]]
    run(ring.result(numbers[0]))
    with pytest.raises(AcceleratorError, match="OVERFLOW"):
        run(ring.result(numbers[1]))
    with pytest.raises(RingError, match="stopped after tensor 2"):
        run(ring.result(numbers[2]))
    run(ring.start())
    assert run(ring.result(numbers[2])).mode == "raw"
    number = run(ring.compress(**jobs[3]))
    run(ring.start())
    run(driver.reset())
    with pytest.raises((AcceleratorError, RingError), match=r"ABORTED|stopped"):
        run(ring.result(number))


def test_a_ring_that_stops_has_the_results_so_far(simulator, driver, random):
    x = tensors(random, simulator, 6)
    ring = run(Ring.open(driver, RING, 8, stop_on_error=True))
    jobs = [job(k, one, "raw") for k, one in enumerate(x)]
    jobs[2]["payload"] = jobs[2]["payload"][0], 0
    with pytest.raises(RingError, match="stopped after tensor 2") as stop:
        run(ring.compress_many(jobs))
    ended = stop.value.results
    assert [one.counters["bytes_in"] for one in ended[:2]] == [one.nbytes for one in x[:2]]
    assert len(ended) == 3 and ended[2].code == ErrorCode.OVERFLOW
    waiting = stop.value.waiting
    assert list(waiting) == [3, 4, 5]
    run(ring.start())
    assert [run(ring.result(number)).counters["bytes_in"] for number in waiting] == [
        one.nbytes for one in x[3:]]


def test_a_tensor_that_is_refused_takes_no_result_with_it(simulator, driver, random):
    x = tensors(random, simulator, 3)
    ring = run(Ring.open(driver, RING, 8))
    jobs = [job(k, one, "raw") for k, one in enumerate(x)]
    jobs[2] |= {"mode": "jpeg-act", "shape": (1, 1, 8, 8)}
    with pytest.raises(ValueError, match="jpeg-act was not built in") as refusal:
        run(ring.compress_many(jobs))
    assert refusal.value.results == [] and refusal.value.waiting == [0, 1]
    assert [run(ring.result(number)).counters["bytes_in"] for number in (0, 1)] == [one.nbytes for one in x[:2]]


def test_what_cannot_be_is_refused(driver):
    for address, size, text in ((RING, 3, "size must be a power of two up to 8, not 3"), (RING, 16, "up to 8, not 16"),
                                (RING + 32, 4, "address must be a multiple of 512"),
                                (1 << 40, 4, "with room for 4 descriptors")):
        with pytest.raises(ValueError, match=text):
            run(Ring.open(driver, address, size))
    ring = run(Ring.open(driver, RING, 4))
    with pytest.raises(ValueError, match="mode jpeg-act was not built in"):
        run(ring.compress(0, (1, 1, 8, 8), "jpeg-act"))
    driver.queue = 0
    with pytest.raises(ValueError, match="this accelerator has no queue"):
        run(Ring.open(driver, RING, 4))


def test_tasks_take_turns(simulator, driver, random):
    """In a memory that waits, interleaved ones would write the same descriptor, or read a report twice."""
    class Slow(Plain):
        async def read(self, *arguments):
            await asyncio.sleep(0)
            return await super().read(*arguments)

        async def write(self, *arguments):
            await asyncio.sleep(0)
            await super().write(*arguments)

    x = tensors(random, simulator, 4)
    jobs = [job(k, one, "raw") for k, one in enumerate(x)]

    async def session():
        slow = await Driver.open(Slow(simulator), Slow(Contents(simulator.bytes)), driver.wait)
        ring = await Ring.open(slow, RING, QUEUED.queue)
        results = await asyncio.gather(*(ring.compress(**one) for one in jobs[:2]), return_exceptions=True)
        assert results[0] == 0 and "already" in str(results[1])
        assert await ring.compress(**jobs[1]) == 1
        results = await asyncio.gather(ring.result(0), ring.result(1), return_exceptions=True)
        wrong, = (number for number, one in enumerate(results) if isinstance(one, RuntimeError))
        results[wrong] = await ring.result(wrong)
        assert [one.counters["bytes_in"] for one in results] == [one.nbytes for one in x[:2]]

    asyncio.run(session())


def test_a_ring_is_not_opened_while_another_one_is_running(simulator, driver, random):
    x = tensors(random, simulator, 2)
    ring = run(Ring.open(driver, RING, QUEUED.queue))
    run(ring.compress(**job(0, x[0], "raw")))
    run(ring.start())
    with pytest.raises(RuntimeError, match="busy"):
        run(Ring.open(driver, RING + (1 << 12), 2))
    run(ring.wait())
