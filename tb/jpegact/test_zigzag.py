"""The order in which JPEG reads a block is golden's."""

from actcodec.golden.jpegact import zigzag as golden
from actcodec.rtl.jpegact import zigzag


def test_the_order_is_goldens():
    assert [8 * row + column for row, column in zigzag.ZIGZAG] == golden.ZIGZAG.tolist()
    assert [zigzag.diagonal(place) for place in range(64)] == sorted(row + column for row, column in zigzag.ZIGZAG)
