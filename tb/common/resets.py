"""A reset of a unit that has a register with a word in it."""

from tb.harness import Bench, after, rng

__all__ = ["reset_empties"]


async def reset_empties(dut):
    """A word that waits at ``o`` is gone after a reset."""
    random = rng()
    bench = Bench(dut)
    await bench.start()
    await bench.run({"i": [1]}, {}, random, until=after(3))
    assert dut.o__valid.value == 1
    await bench.reset()
    assert dut.o__valid.value == 0
