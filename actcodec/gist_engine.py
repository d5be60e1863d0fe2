"""The rtl engine of Gist's modes and Bitpack under the name that synth/traffic.py knows."""

from actcodec import engines

__all__ = ["compress", "decompress"]


def compress(x, mode):
    return engines.compress("rtl", x, mode)


def decompress(compressed):
    return engines.decompress("rtl", compressed)
