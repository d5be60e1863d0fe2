"""What a design is made for: standard cells, or an FPGA's look-up tables and multipliers."""

__all__ = ["TARGETS", "Target", "target"]

TARGETS = ("cells", "lut")


class Target:
    """A platform for Amaranth: units read their ``target`` when they are elaborated.

    A design has the same ports and gives the same bits for either, with other latencies. Without a platform, or with
    one that says nothing of it, it is made for "cells".

    Parameters
    ----------
    target : {"cells", "lut"}

    Raises
    ------
    ValueError
        If the target is unknown.
    """

    def __init__(self, target=TARGETS[0]):
        if target not in TARGETS:
            raise ValueError(f"target must be one of {', '.join(TARGETS)}, not {target!r}")
        self.target = target


def target(platform):
    """The target of a platform."""
    return getattr(platform, "target", TARGETS[0])
