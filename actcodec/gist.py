"""The golden engine of Gist's modes and Bitpack under the name that synth/traffic.py knows."""

from actcodec import engines

__all__ = ["compress"]


def compress(x, mode):
    return engines.compress("golden", x, mode)[0]
