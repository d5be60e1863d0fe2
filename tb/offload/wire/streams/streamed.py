"""What the benches of collector and splitter of streams share."""

from tb.harness import Bench, parameters

__all__ = ["Streamed", "streams"]


class Streamed:
    """The unit under test with its lanes."""

    def __init__(self, dut):
        self.dut, self.bench, self.cdus = dut, Bench(dut), parameters()["cdus"]

    @classmethod
    async def started(cls, dut):
        """One that is reset."""
        lanes = cls(dut)
        await lanes.bench.start()
        return lanes


def streams(random, cdus, most=200):
    """Streams of any lengths, some of them none."""
    lengths = random.integers(0, most, cdus) * (random.random(cdus) < 0.9)
    lengths[random.integers(cdus)] += 1
    return [random.bytes(int(n)) for n in lengths]
