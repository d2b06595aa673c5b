"""What the roofline's constants are worth on products that they were not fitted to."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest

from dse.errors import SpecError
from dse_evaluators.accelerators.devices.calibrations import (
    MOST_EXPONENT,
    MOST_SHARE,
    calibration_of,
)
from dse_evaluators.accelerators.devices.devices import DEVICES
from dse_evaluators.accelerators.devices.recipes import RECIPES

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
DATA = Path(__file__).parents[4] / "shared" / "data"
needs_data = pytest.mark.skipif(not DATA.exists(), reason="../shared/data is not here")


@pytest.fixture
def fitting(monkeypatch):
    """The script that fits; its folder is no package."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("gemm_roofline")


def kernels(fitting, device):
    """What Vidur measured on one device."""
    return [part for part in fitting.vidur(DATA) if part.device == device]


MEASURED = ["a40", "a100-sxm-80gb", "h100-sxm"]


@needs_data
@pytest.mark.parametrize("device", MEASURED)
def test_shapes_that_were_held_out_are_told_within_8_percent(fitting, device):
    parts = kernels(fitting, device)
    (errors,) = fitting.held_out(parts, lambda part: part.fold)
    assert errors.mean() <= 0.08


@needs_data
@pytest.mark.parametrize("device", MEASURED)
def test_models_that_were_held_out_are_told_within_8_percent(fitting, device):
    parts = kernels(fitting, device)
    (errors,) = fitting.held_out(parts, lambda part: part.model)
    assert errors.mean() <= 0.08


@needs_data
@pytest.mark.parametrize("device", MEASURED)
def test_the_constants_that_are_kept_beat_the_sheet_by_far(fitting, device):
    (part,) = kernels(fitting, device)
    kept = calibration_of(device, "fp16", "vidur").constants
    ours = np.abs(part.predicted(kept) / part.seconds - 1).mean()
    naive = np.abs(part.naive() / part.seconds - 1).mean()
    assert ours <= 0.08
    assert naive >= 0.25


@needs_data
@pytest.mark.slow
def test_half_of_the_served_shapes_that_were_held_out_are_told_within_the_bars(fitting):
    families = fitting.families(fitting.aiconfigurator(DATA))
    errors = [np.concatenate(fitting.held_out(each, lambda part: part.fold)) for each in families]
    wide = [held for each, held in zip(families, errors, strict=True) if each[0].format == "bf16"]
    assert np.median(np.concatenate(errors)) <= 0.13
    assert np.median(np.concatenate(wide)) <= 0.12


@needs_data
def test_the_table_is_what_the_fit_gives(fitting):
    (part,) = kernels(fitting, "a40")
    (found,) = fitting.of_versions([part])
    kept = calibration_of("a40", "fp16", "vidur-7d47513").constants
    assert kept.compute_share == pytest.approx(found.compute_share, rel=1e-3)
    assert kept.chain_s == pytest.approx(found.chain_s, rel=1e-3)


@pytest.mark.parametrize("number_format", sorted(RECIPES))
def test_no_device_is_better_than_its_sheet(number_format):
    kept = [calibration_of(device, number_format).constants for device in DEVICES]
    assert all(0 < each.compute_share <= MOST_SHARE for each in kept)
    assert all(0 < each.memory_share <= MOST_SHARE for each in kept)
    assert all(1 <= each.exponent <= MOST_EXPONENT for each in kept)


def test_a_fit_that_cannot_be_is_left_out():
    with pytest.raises(SpecError, match=r"vllm-0\.24\.0"):
        calibration_of("h100-sxm", "fp8_block", "vllm-0.24.0")


def test_a_stack_has_constants_of_its_own():
    slow = calibration_of("h100-sxm", "bf16", "sglang-0.5.9")
    assert slow.stack == "sglang-0.5.9"
    assert slow.constants != calibration_of("h100-sxm", "bf16", "vllm").constants


def test_an_unknown_stack_is_told_the_known_ones():
    with pytest.raises(SpecError, match="not measured in bf16 with 'vlm'") as error:
        calibration_of("h100-sxm", "bf16", "vlm")
    assert "vllm" in error.value.hint


def test_what_nobody_measured_has_the_medians_of_what_was_and_says_so():
    borrowed = calibration_of("mi300x", "bf16")
    assert not borrowed.own
    assert calibration_of("h200-sxm", "bf16").own


def test_int8_borrows_from_fp8():
    assert calibration_of("mi300x", "int8").constants == calibration_of("mi300x", "fp8").constants
