"""Products whose weights alone are narrow: what widening them costs, on matrices kept back."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest

from dse_evaluators.accelerators.devices.devices import device_of
from dse_evaluators.accelerators.devices.weight_only import (
    FITS,
    VECTOR_ROWS,
    nearest_widths,
    rates_of,
    weight_only_of,
    widened_times,
    work_of,
)
from dse_evaluators.clusters.serving.engine import engine
from dse_evaluators.fits import fits_in
from tests import tables

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
needs_products = tables.needs("gemm_weight_only_measured.csv")

MEASURED = {
    ("a100-sxm-80gb", 4): 0.11,
    ("a100-sxm-80gb", 8): 0.11,
    ("h100-sxm", 8): 0.18,
    ("h200-sxm", 4): 0.15,
    ("h200-sxm", 8): 0.13,
    ("l40s", 4): 0.10,
    ("l40s", 8): 0.10,
}
"""The mean error that docs/devices.md states, rounded up to a percent."""


@pytest.fixture
def fitting(monkeypatch):
    """The script that fits; its folder is no package."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("weight_only")


def products(fitting, device, width):
    (found,) = [
        each
        for each in fitting.measured(tables.ELSEWHERE)
        if (each.device, each.width) == (device, width)
    ]
    return found


@needs_products
def test_products_that_no_constant_was_fitted_to_are_predicted(fitting):
    """Of matrices kept back, within the stated error; of a Hopper, from another one's constants."""
    for (device, width), most in MEASURED.items():
        found = products(fitting, device, width)
        back = found.take(found.kept_back)
        errors = back.errors(weight_only_of(device, width))
        assert len(errors) >= 100, device
        assert errors.mean() <= most, (device, width)
        assert errors.mean() < back.free().mean() / 2, (device, width)
    for width in (4, 8):
        found = products(fitting, "h200-sxm", width)
        borrowed = fitting.without("h200-sxm", width)
        assert found.errors(borrowed).mean() < found.free().mean(), width


@needs_products
def test_the_file_holds_what_the_fit_gives(fitting):
    found = products(fitting, "l40s", 4)
    fitted, kept = fitting.fitted(found), weight_only_of("l40s", 4)
    for kernel in ("vector", "tiles"):
        for name in ("compute_share", "memory_share", "launch_s"):
            ours, theirs = (getattr(getattr(each, kernel), name) for each in (fitted, kept))
            assert ours == pytest.approx(theirs, rel=2e-2)


@pytest.mark.parametrize("fit", fits_in(FITS).values(), ids=lambda fit: fit.name)
def test_no_matrix_is_on_both_sides_of_a_fit(fit):
    fitted, judged = (
        {point.split("x", 1)[1] for point in points} for points in (fit.fitted_on, fit.judged_on)
    )
    assert fitted
    assert not fitted & judged


def test_speedups_of_four_bits_on_h200_are_near_the_measured_ones(fitting):
    """1.98, 1.37, 1.19, 1.10, 1.00 and .85 at 1 to 128 rows; nothing was fitted to them."""
    off = fitting.speedups() / np.array(fitting.MEASURED_SPEEDUPS) - 1
    assert np.abs(off).max() <= 0.15
    assert np.abs(off).mean() <= 0.08


def test_a_chip_of_the_same_die_lends_its_constants():
    borrowed = weight_only_of("h100-sxm", 4)
    assert borrowed.tiles == weight_only_of("h200-sxm", 4).tiles
    assert not borrowed.own
    assert weight_only_of("h200-sxm", 4).own


@pytest.mark.parametrize("device", ["mi300x", "my-own-chip"])
def test_a_device_that_nobody_measured_has_medians_of_all(device):
    found = weight_only_of(device, 8)
    shares = [
        fit.constants["tiles_memory_share"]
        for fit in fits_in(FITS).values()
        if " int8 " in fit.name
    ]
    assert not found.own
    assert found.tiles.memory_share == pytest.approx(np.median(shares))


def test_the_nearest_measured_width_stands_for_others():
    assert nearest_widths(np.array([1.0, 3.2, 4.5, 6.1, 8.1, 12.0])).tolist() == [4, 4, 4, 8, 8, 8]


@pytest.mark.parametrize("rows", [1, VECTOR_ROWS, VECTOR_ROWS + 1, 128])
def test_a_served_product_takes_what_its_kernel_takes(rows):
    device = device_of("h200-sxm")
    m, k, n = (np.array([float(side)]) for side in (rows, 8192, 10240))
    kernels = engine(device, ["bf16"], np.array([0]), np.array([4.0]))
    served = kernels.product_s(kernels.product(m, k, n))
    alone = widened_times(work_of(m, n, k, 0.5), weight_only_of("h200-sxm", 4), rates_of(device), m)
    assert served == pytest.approx(alone.total_s, rel=1e-12)


def test_four_bits_are_slower_than_sixteen_for_many_rows_on_hopper():
    device, side = device_of("h200-sxm"), np.array([8192.0, 8192.0])
    kernels = engine(device, ["bf16"], np.array([0, 0]), np.array([4.0, 0.0]))
    few, many = (
        kernels.product_s(kernels.product(np.full(2, rows), side, side)) for rows in (1.0, 128.0)
    )
    assert few[0] < few[1] / 1.5
    assert many[0] > many[1]


@pytest.mark.parametrize("rows", [1.0, 64.0, 4096.0])
def test_widening_to_eight_bits_never_beats_words_that_need_no_widening(rows):
    """W4A8 was not measured: its kernel is taken to be no better than either of its parents."""
    device, side, m = device_of("h200-sxm"), np.full(2, 8192.0), np.full(2, rows)
    both = engine(device, ["fp8"], np.array([0, 0]), np.array([4.0, 0.0]))
    free = both.product(m, side, side)
    plain = engine(device, ["fp8"], np.array([0, 0])).product_s(free)
    assert both.product_s(free)[0] >= plain[0] * (1 - 1e-12)
    assert both.product_s(free)[1] == plain[1]
