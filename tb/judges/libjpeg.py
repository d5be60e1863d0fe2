"""libjpeg, through jpeglib: coefficients that it reads from a file, and the file that it writes of coefficients."""

import tempfile
from pathlib import Path

import jpeglib
import numpy as np

CODER = "6b"  # the version that comes with jpeglib and writes what the Independent JPEG Group first did


def read(file, version=CODER):
    """Coefficients (int16 [rows of tiles, tiles, 8, 8]) and quantization table of a JPEG file (bytes)."""
    with tempfile.TemporaryDirectory() as folder, jpeglib.version(version):
        path = Path(folder, "read.jpg")
        path.write_bytes(file)
        picture = jpeglib.read_dct(str(path))
        return picture.Y, picture.qt[0]


def written(q, dqt, tiles):
    """The grayscale file (bytes) of tiles in raster order, `tiles` side by side. Its component has the number 0."""
    with tempfile.TemporaryDirectory() as folder, jpeglib.version(CODER):
        path = Path(folder, "written.jpg")
        blocks = np.ascontiguousarray(q.reshape(-1, tiles, 8, 8), np.int16)
        jpeglib.from_dct(Y=blocks, qt=np.ascontiguousarray(dqt, np.uint16)[None]).write_dct(str(path))
        return path.read_bytes()


def parts(file):
    """What is in front of a file's scan, and the scan, its stuffed bytes included: marker and end are not."""
    start = file.rindex(b"\xff\xda") + 10
    assert file[-2:] == b"\xff\xd9"
    return file[:start], file[start:-2]
