"""Places that a walk gives by itself, compared with golden's, as the benches of the scan's parts do it."""

from actcodec.rtl.common.vectors import place_layout
from tb.harness import SEED, Bench, after, parameters
from tb.offload.memory.addresses import fields

__all__ = ["Walker"]


class Walker(Bench):
    """Starts a walk, and compares what it gives."""

    async def walks(self, random, expected, what, whole, stall="never"):
        """From a start on: ``expected`` are places as (address, values, slot, last). Of a walk that is not ``whole``
        they are the first ones; it is ended by a reset. Returns in which cycles after the start they come."""
        await self.pulse("start")
        run = await self.run({}, {"o": len(expected)}, random, stall=stall)
        layout = place_layout(parameters()["width"])
        got = [tuple(fields(layout, word)[name] for name in ("address", "words", "slot", "last")) for word in run["o"]]
        self.equal(got, expected, f"SEED={SEED}: {what}")
        if whole:
            more = await self.run({}, {"o": None}, random, until=after(8))
            assert not more["o"], f"SEED={SEED}: {what}: goes on after its last place"
        else:
            await self.reset()
        return [cycle + 2 for cycle in run.cycles["o"]]  # the first one that `run` counts is the second after the start
