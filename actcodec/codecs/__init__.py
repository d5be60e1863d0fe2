"""The registry of codecs: a file for each paper, which declares its modes as data. Everything else loops over it."""

from actcodec.codecs import a2dtwp, comet, division, gist, jpegact, mx
from actcodec.codecs.jpegact import CDMA, JPEG_ACT, JPEG_ACT_CODED, METHODS, TABLE_2
from actcodec.codecs.mode import Mode, Option, Setting, Stage, import_object
from actcodec.codecs.registry import (
    MODES,
    aliases,
    by_code,
    codes,
    effective,
    find,
    host_mode,
    lane_modes,
    options,
    refused,
    register,
    unregister,
)

__all__ = ["CDMA", "JPEG_ACT", "JPEG_ACT_CODED", "METHODS", "MODES", "PAPERS", "TABLE_2", "Mode", "Option", "Setting",
           "Stage", "aliases", "by_code", "codes", "effective", "find", "host_mode", "import_object", "lane_modes",
           "options", "refused", "register", "unregister"]

PAPERS = (jpegact, gist, a2dtwp, division, comet, mx)
"""What is declared: each has ``MODES``; ``units()``, the hardware; and maybe ``ROWS``, what the paper says of it."""

register(*(mode for paper in PAPERS for mode in paper.MODES))
