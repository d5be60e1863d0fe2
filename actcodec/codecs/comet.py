"""COMET (Jin et al., VLDB 2022)."""

from actcodec.codecs.unit import Unit

__all__ = ["MODES", "units"]

MODES = ()


def units():
    """The hardware, imported only when it is asked for."""
    from actcodec.rtl.comet.book import Book
    from actcodec.rtl.comet.comet import Comet
    from actcodec.rtl.comet.histogram import Histogram
    from actcodec.rtl.comet.huffman_decode import Decode as HuffmanDecode
    from actcodec.rtl.comet.huffman_encode import Encode as HuffmanEncode
    from actcodec.rtl.comet.interleave import BYTES, SPARE, STEPS, Interleave
    from actcodec.rtl.comet.lorenzo import Lorenzo
    from actcodec.rtl.comet.outliers import Outliers
    from actcodec.rtl.comet.prequantise import Prequantise
    from actcodec.rtl.comet.reconstruct import Reconstruct
    from actcodec.rtl.comet.rounds import Gather, Scatter

    return (
        Unit("prequantise", Prequantise, "float32 to multiples of a step, half away from zero"),
        Unit("lorenzo", Lorenzo, "differences to neighbours, and sums, both directions"),
        Unit("outliers", Outliers, "bytes of outliers past prediction, both directions"),
        Unit("gather", Gather, "symbols of sectors to rounds of eight"),
        Unit("scatter", Scatter, "rounds of eight symbols to sectors"),
        Unit("histogram", Histogram, "32 bins of one symbol in eight",
             tests="^(?!.*saturates)"),  # the other one sets its counts
        Unit("book", Book, "a code book's tables from its lengths"),
        Unit("huffman_encode", HuffmanEncode, "eight symbols to eight codes, and escapes"),
        Unit("interleave", Interleave, "eight lanes of bits to bytes in the decoder's order",
             {"bytes": BYTES + SPARE, "steps": STEPS + SPARE}),
        Unit("huffman_decode", HuffmanDecode, "bytes to eight lanes of bits to eight symbols"),
        Unit("reconstruct", Reconstruct, "multiples of a step to float32"),
        Unit("comet", Comet, "COMET's codec, both directions"),
    )
