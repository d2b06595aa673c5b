"""Held against measured services: vLLM 0.6.0 with Llama-3.1-70B on H100."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from dse.core.batch import Batch
from dse_evaluators.clusters.apex import apex
from dse_evaluators.clusters.apex.apex import Apex
from dse_evaluators.fits import fits_in

# microsoft/apex_plus@8769096 (MIT), vllm/results; copies' means are weighted by their tokens.
with Path(__file__).with_name("vllm_points.csv").open(encoding="utf-8", newline="") as _file:
    POINTS = {row["point"]: row for row in csv.DictReader(_file)}
FIT = fits_in(Path(apex.__file__).with_name("apex.fits.json"))["vllm-0.6 on h100-sxm"]


@cache
def service(point: str) -> dict[str, float]:
    """What the model says of a measured service."""
    row = POINTS[point]
    dp, tp = int(row["dp"]), int(row["tp"])
    evaluator = Apex(workload=row["workload"], rate=float(row["rate_per_s"]), memory="80 GiB")
    found = evaluator.evaluate(Batch.of([{"devices": dp * tp, "dp": dp, "pp": 1}]))
    return {name: float(column[0]) for name, column in found.columns.items()}


def errors(points: tuple[str, ...], metric: str, column: str) -> np.ndarray:
    """How far off the model is, relative, by point."""
    found = [service(point)[metric] / float(POINTS[point][column]) for point in points]
    return np.abs(np.array(found) - 1.0)


@pytest.mark.slow
def test_points_that_were_not_fitted_come_out_as_the_fit_says():
    off = errors(FIT.judged_on, "tpot_counted", "tpot_s")
    assert off.mean() == pytest.approx(FIT.judged_mean, abs=5e-4)
    assert off.max() == pytest.approx(FIT.judged_max, abs=5e-4)
    assert off.mean() <= 0.05  # the bar


def test_every_measured_point_was_fitted_or_judged():
    assert set(FIT.fitted_on) | set(FIT.judged_on) == set(POINTS)


def test_no_measured_point_is_extrapolated():
    assert service("creation-0.5/4TP")["extrapolated"] == 0.0  # the one with the most texts


def test_points_that_were_fitted_are_within_two_percent():
    assert errors(FIT.fitted_on, "tpot_counted", "tpot_s").max() < 0.02


@pytest.mark.parametrize(
    "load", ["lmsys-0.5", "creation-0.5", "creation-0.25", "summarization-0.5"]
)
def test_a_token_takes_longer_the_fewer_devices_share_a_copy(load: str):
    found = [service(f"{load}/{plan}")["tpot"] for plan in ("8TP", "2DP4TP", "4DP2TP")]
    assert found == sorted(found)


@pytest.mark.slow
def test_first_tokens_come_too_early_by_a_quarter_on_the_mean():
    off = errors(tuple(POINTS), "ttft", "ttft_s")
    assert off.mean() == pytest.approx(0.28, abs=0.005)  # told, not a bar: nothing was fitted
