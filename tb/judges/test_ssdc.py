"""SSDC against SciPy's CSR."""

import numpy as np
import pytest
import scipy.sparse

from actcodec.golden.gist import dpr, ssdc

LENGTHS = (0, 1, 7, 8, 9, 255, 256, 257, 511, 512, 513, 4096, 10_000)
CORNERS = np.array([1, 1 << 31 | 1, 0x7FFFFF, 0x800000, 0x3F800000, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7F800001,
                    0xFFC00000, 0x7FFFFFFF, 0xFFFFFFFF], np.uint32).view(np.float32)


def sparse(length, density, seed=0):
    """Random bit patterns and corner cases among zeros of both signs."""
    random = np.random.default_rng([seed, length])
    values = random.integers(0, 2**32, length, np.uint32).view(np.float32)
    values = np.where(random.random(length) < 0.3, random.choice(CORNERS, length), values)
    zeros = np.where(random.random(length) < 0.5, np.float32(-0.0), np.float32(0))
    return np.where(random.random(length) < density, values, zeros)


def csr(x):
    """SciPy's matrix of the tensor, its end filled up with zeros."""
    return scipy.sparse.csr_matrix(np.pad(x, (0, -x.size % 256)).reshape(-1, 256))


def bits(x):
    return np.asarray(x).view(np.uint32).tolist()


@pytest.mark.parametrize("density", [0, 0.02, 0.5, 0.9, 1])
@pytest.mark.parametrize("length", LENGTHS)
def test_arrays_are_scipys(length, density):
    x = sparse(length, density)
    judge, encoded = csr(x), ssdc.encode(x)
    assert bits(encoded.values) == bits(judge.data)
    assert encoded.columns.dtype == np.uint8 and encoded.columns.tolist() == judge.indices.tolist()
    assert encoded.counts.dtype == np.dtype("<u2") and encoded.counts.tolist() == np.diff(judge.indptr).tolist()


@pytest.mark.parametrize("density", [0, 0.02, 0.5, 0.9, 1])
@pytest.mark.parametrize("length", LENGTHS)
def test_decode_gives_the_matrix_back(length, density):
    x = sparse(length, density)
    judge = csr(x)
    encoded = ssdc.Encoded(judge.data, judge.indices.astype(np.uint8), np.diff(judge.indptr).astype("<u2"))
    decoded = ssdc.decode(encoded, length)
    assert decoded.dtype == np.float32
    # As integers, since SciPy adds floats up on the way, which makes signalling NaNs quiet.
    judge.data = judge.data.view(np.uint32)
    assert bits(decoded) == judge.toarray().reshape(-1)[:length].tolist()
    assert bits(decoded) == bits(np.where(x == 0, np.float32(0), x)), "all but the sign of zero is kept"


def test_tensors_are_flat_in_memory_order():
    x = sparse(3 * 5 * 40, 0.4)
    for one, other in zip(ssdc.encode(x.reshape(3, 5, 40)), ssdc.encode(x), strict=True):
        assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("form", dpr.FORMATS)
def test_dpr_comes_after_the_zeros_are_out(form):
    """Values too small for a format stay as codes of zero."""
    x = np.where(np.random.default_rng(1).random(3000) < 0.5, sparse(3000, 0.7), np.float32(1e-30))
    full, reduced = ssdc.encode(x), ssdc.encode(x, form)
    assert np.count_nonzero(full.values == np.float32(1e-30)) > 1000
    assert reduced.columns.tolist() == full.columns.tolist() and reduced.counts.tolist() == full.counts.tolist()
    rounded = dpr.decode(dpr.encode(full.values, form), form, full.values.size)
    assert reduced.values.tobytes() == dpr.encode(full.values, form).tobytes()
    expected = np.zeros(3000, np.float32)
    expected[np.flatnonzero(x)] = rounded
    assert bits(ssdc.decode(reduced, 3000, form)) == bits(expected)


@pytest.mark.parametrize("length, counts, columns, values, message", [
    (300, [257, 0], 257, 257, "row 0 counts 257 values and has room for 256"),
    (300, [0, 45], 45, 45, "row 1 counts 45 values and has room for 44"),
    (300, [0, 65535], 5, 5, "row 1 counts 65535"),
    (300, [3], 3, 3, "1 row counts, 300 values need 2"),
    (300, [3, 0, 0], 3, 3, "3 row counts, 300 values need 2"),
    (0, [0], 0, 0, "1 row counts, 0 values need 0"),
    (300, [3, 2], 4, 5, "4 columns, the row counts ask for 5"),
    (300, [3, 2], 6, 5, "6 columns, the row counts ask for 5"),
    (300, [3, 2], 5, 4, "16 bytes of values, the row counts ask for 20"),
    (300, [3, 2], 5, 6, "24 bytes of values, the row counts ask for 20"),
    (300, [3, 0], [1, 3, 2], 3, "ascend"),
    (300, [3, 0], [1, 2, 2], 3, "ascend"),
    (300, [0, 2], [1, 44], 2, "beyond"),
])  # fmt: skip
def test_arrays_that_do_not_fit_together_are_refused(length, counts, columns, values, message):
    columns = np.arange(columns) if isinstance(columns, int) else columns
    with pytest.raises(ValueError, match=message):
        ssdc.decode(ssdc.Encoded(np.ones(values, np.float32), np.array(columns).astype(np.uint8),
                                 np.array(counts, "<u2")), length)


@pytest.mark.parametrize("form, wrong, message", [
    (None, {"values": np.ones(3, np.uint32)}, "values are uint32, have to be float32"),
    (None, {"values": np.ones(3, ">f4")}, "values are >f4, have to be float32"),
    ("fp16", {"values": np.ones(2, np.float32)}, "values are float32, have to be uint8"),
    ("fp8", {"values": np.ones(4, np.int8)}, "values are int8, have to be uint8"),
    (None, {"columns": np.arange(3)}, "columns are int64, have to be uint8"),
    (None, {"columns": np.arange(256, 259)}, "columns are int64, have to be uint8"),
    (None, {"counts": np.array([3, 0], np.int16)}, "counts are int16, have to be uint16"),
])  # fmt: skip
def test_arrays_of_another_type_are_refused(form, wrong, message):
    arrays = ssdc.encode(np.where(np.arange(300) < 3, np.float32(1), np.float32(0)), form)
    for function in (ssdc.places, ssdc.decode):
        function(arrays, 300, form)
        with pytest.raises(ValueError, match=message):
            function(arrays._replace(**wrong), 300, form)


def test_arrays_are_checked_before_there_is_memory_for_values():
    with pytest.raises(ValueError, match="1 row counts, 1125899906842624 values need"):
        ssdc.decode(ssdc.Encoded(np.zeros(0, np.float32), np.zeros(0, np.uint8), np.zeros(1, "<u2")), 1 << 50)
