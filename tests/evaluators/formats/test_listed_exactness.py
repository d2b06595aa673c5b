"""Posits and NF4 bit for bit, against softposit and bitsandbytes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dse_evaluators.formats.names import format_of
from dse_evaluators.formats.tables import dynamic_tree


def by_softposit(values, kind):
    posit = getattr(pytest.importorskip("softposit"), kind)
    return np.array([float(posit(float(value))) for value in values], dtype=np.float32)


def hard_posits(text, longer, near):
    """Values around every posit, and those on which posits one bit longer round."""
    rng = np.random.default_rng(8)
    drawn = np.concatenate(
        [
            rng.standard_normal(20_000),
            rng.standard_t(1, 20_000),
            np.exp2(rng.uniform(-32, 32, 5000)),
        ]
    )
    numbers = [format_of(name).grid.values(np.arange(2**bits)) for name, bits in (text, longer)]
    points = [near(every.astype(np.float32)) for every in numbers]
    special = [0.0, -0.0, 1e-30, -1e-30, 1e30, -1e30, np.inf, -np.inf, np.nan]
    return np.concatenate([drawn, *points, special]).astype(np.float32)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "longer", "kind"),
    [
        (("posit:8,0", 8), ("posit:9,0", 9), "posit8"),
        (("posit:16,1", 16), ("posit:16,1", 16), "posit16"),
    ],
)
def test_every_value_goes_to_the_posit_that_softposit_gives(text, longer, kind, near):
    values = hard_posits(text, longer, near)
    ours, theirs = format_of(text[0]).quantize(values), by_softposit(values, kind)
    is_nar = np.isnan(ours) & ~np.isfinite(theirs)
    assert np.count_nonzero((ours != theirs) & ~is_nar) == 0


# Gustafson and Yonemoto 2017, figure 5 (posit 5,1) and figure 6's rule; worked by hand.
def test_the_posits_of_five_bits_are_those_in_print():
    printed = [0, 1 / 64, 1 / 16, 1 / 8, 1 / 4, 3 / 8, 1 / 2, 3 / 4, 1, 3 / 2, 2, 3, 4, 8, 16, 64]
    assert format_of("posit:5,1").grid.values(np.arange(16, dtype=np.uint32)).tolist() == printed


@pytest.mark.parametrize("text", ["posit:8,1", "posit:16,2", "posit:12,2", "posit:16,0"])
def test_no_number_becomes_zero_or_no_number_as_a_posit(text):
    values = np.array([1e-44, -1e-44, 3e38, -3e38], dtype=np.float32)
    found = format_of(text).quantize(values)
    assert (found != 0).all()
    assert np.isfinite(found).all()
    assert np.array_equal(found[::2], -found[1::2])


def test_a_long_posit_is_rounded_as_its_list_of_numbers_says():
    rng = np.random.default_rng(9)
    values = (rng.standard_normal(4000) * np.exp2(rng.integers(-28, 28, 4000))).astype(np.float32)
    numbers = format_of("posit:13,2").grid.values(np.arange(2**13, dtype=np.uint32))
    listed = np.sort(numbers[np.isfinite(numbers)])
    # One bit longer, every second posit is a boundary.
    longer = format_of("posit:14,2").grid.values(np.arange(1, 2**14, 2, dtype=np.uint32))
    between = np.sort(longer)[1:-1]
    assert len(between) == len(listed) - 1
    wanted = listed[np.searchsorted(between, values)]
    assert np.array_equal(format_of("posit:13,2").quantize(values), wanted)


@pytest.mark.slow
def test_nf4_has_the_bits_that_bitsandbytes_gives(blocks):
    functional = pytest.importorskip("bitsandbytes.functional")
    values = blocks[: len(blocks) // 2 * 2].reshape(-1, 64)
    state = functional.quantize_4bit(torch.from_numpy(values), blocksize=64, quant_type="nf4")
    theirs = functional.dequantize_4bit(*state).numpy()
    assert values.size >= 1_000_000
    assert np.count_nonzero(format_of("nf4").quantize(values, axis=None) != theirs) == 0


@pytest.mark.slow
def test_the_scales_of_scales_are_the_numbers_that_bitsandbytes_has():
    functional = pytest.importorskip("bitsandbytes.functional")
    tree = np.sort(functional.create_dynamic_map().numpy())
    codes = np.arange(256, dtype=np.uint32)
    assert np.array_equal(dynamic_tree().values(codes), tree)
