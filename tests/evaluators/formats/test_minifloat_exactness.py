"""Minifloats bit for bit, against ml_dtypes and gfloat."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from dse_evaluators.formats.names import format_of

# Ours, and the type of ml_dtypes or numpy.
FLOATS = [
    ("fp:e5m2,overflow=ieee", ml_dtypes.float8_e5m2),
    ("fp:e4m3,overflow=ieee", ml_dtypes.float8_e4m3fn),
    ("fp:e4m3,specials=ieee,overflow=ieee", ml_dtypes.float8_e4m3),
    ("fp:e3m4,overflow=ieee", ml_dtypes.float8_e3m4),
    ("fp:e4m3,specials=nuz,overflow=ieee", ml_dtypes.float8_e4m3fnuz),
    ("fp:e5m2,specials=nuz,overflow=ieee", ml_dtypes.float8_e5m2fnuz),
    ("fp:e4m3,specials=nuz,bias=11,overflow=ieee", ml_dtypes.float8_e4m3b11fnuz),
    ("fp:e3m2", ml_dtypes.float6_e3m2fn),
    ("fp:e2m3", ml_dtypes.float6_e2m3fn),
    ("fp:e2m1", ml_dtypes.float4_e2m1fn),
    ("bf16:overflow=ieee", ml_dtypes.bfloat16),
    ("fp16:overflow=ieee", np.float16),
]
WITHOUT_NAN = ("fp:e3m2", "fp:e2m3", "fp:e2m1")


def patterns(dtype):
    """Every code of a type, and its number."""
    word = np.uint8 if np.dtype(dtype).itemsize == 1 else np.uint16
    return word, np.arange(np.iinfo(word).max + 1, dtype=word).view(dtype).astype(np.float32)


def asked(values, text, dtype, near):
    """The values, with those around every number of the format."""
    asked_of = np.concatenate([values, near(patterns(dtype)[1])])
    return asked_of[~np.isnan(asked_of)] if text in WITHOUT_NAN else asked_of


def same_bits(ours, theirs):
    return (ours.view(np.uint32) == theirs.view(np.uint32)) | (np.isnan(ours) & np.isnan(theirs))


@pytest.mark.slow
@pytest.mark.parametrize(("text", "dtype"), FLOATS)
def test_every_value_is_rounded_to_the_bits_that_ml_dtypes_gives(text, dtype, values, near):
    given = asked(values, text, dtype, near)
    with np.errstate(over="ignore", invalid="ignore"):
        theirs = given.astype(dtype).astype(np.float32)
    assert len(given) >= 1_000_000
    assert np.count_nonzero(~same_bits(format_of(text).quantize(given), theirs)) == 0


@pytest.mark.slow
@pytest.mark.parametrize(("text", "dtype"), FLOATS)
def test_every_value_gets_the_code_that_ml_dtypes_gives(text, dtype, values, near):
    given = asked(values, text, dtype, near)
    with np.errstate(over="ignore", invalid="ignore"):
        cast = given.astype(dtype)
    word, _ = patterns(dtype)
    theirs = cast.view(word).astype(np.uint32) & (2 ** format_of(text).grid.bits - 1)
    known = ~np.isnan(cast.astype(np.float32))  # of NaN there are several
    assert np.count_nonzero((format_of(text).encode(given).codes != theirs)[known]) == 0


@pytest.mark.parametrize(("text", "dtype"), FLOATS)
def test_every_code_stands_for_the_number_that_it_is_in_ml_dtypes(text, dtype):
    grid = format_of(text).grid
    word, numbers = patterns(dtype)
    codes = np.arange(2**grid.bits, dtype=np.uint32)
    theirs = codes.astype(word).view(dtype).astype(np.float32)
    assert len(numbers) >= len(codes)
    assert same_bits(grid.values(codes), theirs).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("fp:e4m3", "format_info_ocp_e4m3"),
        ("fp:e5m2", "format_info_ocp_e5m2"),
        ("fp:e3m2", "format_info_ocp_e3m2"),
        ("fp:e2m3", "format_info_ocp_e2m3"),
        ("fp:e2m1", "format_info_ocp_e2m1"),
        ("fp16", "format_info_binary16"),
        ("bf16", "format_info_bfloat16"),
    ],
)
def test_what_saturates_is_rounded_to_the_bits_that_gfloat_gives(text, name, values):
    gfloat = pytest.importorskip("gfloat")
    formats = pytest.importorskip("gfloat.formats")
    finite = values[np.isfinite(values)]
    theirs = gfloat.round_ndarray(getattr(formats, name), finite.astype(np.float64), sat=True)
    ours = format_of(text).quantize(finite)
    assert np.count_nonzero(~same_bits(ours, theirs.astype(np.float32))) == 0


# Where a format overflows: the middle between its largest number and the next is a tie.
@pytest.mark.parametrize(
    ("text", "given", "wanted"),
    [
        ("fp:e4m3", [464.0, 465.0, 1e9, np.inf], [448.0, 448.0, 448.0, 448.0]),
        ("fp:e4m3,overflow=ieee", [464.0, 465.0, np.inf], [448.0, np.nan, np.nan]),
        ("fp:e5m2,overflow=ieee", [61439.0, 61440.0, -np.inf], [57344.0, np.inf, -np.inf]),
        ("fp:e5m2", [61440.0, -np.inf], [57344.0, -57344.0]),
        ("fp:e2m1", [5.0, 7.0, -np.inf], [4.0, 6.0, -6.0]),
    ],
)
def test_an_overflow_goes_where_the_text_says(text, given, wanted):
    found = format_of(text).quantize(np.array(given, dtype=np.float32))
    assert np.array_equal(found, np.array(wanted, dtype=np.float32), equal_nan=True)
