"""DIVISION (Wang et al., ICML 2023)."""

from actcodec.codecs.unit import Unit

__all__ = ["MODES", "units"]

MODES = ()


def units():
    """The hardware, imported only when it is asked for."""
    from actcodec.rtl.division.decode import Decode
    from actcodec.rtl.division.encode import Encode

    return (
        Unit("division_encode", Encode, "DIVISION behind SFPR: averages, and codes for the rest", {"bits": (1, 2, 4)},
             variants={"in a CDU": {"align": False}}),
        Unit("division_decode", Decode, "DIVISION in front of SFPR: averages and codes to values", {"bits": (1, 2, 4)},
             variants={"in a CDU": {"align": False}}),
    )
