"""The time to a first token against services that were measured."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from dse_evaluators.clusters.simulator import front_end
from dse_evaluators.fits import fits_in
from tests import tables

ROOT = Path(__file__).parents[4]
FITS = Path(front_end.__file__).with_name("front_end.fits.json")
needs_services = tables.needs("llm_serving_silicon.csv")


@pytest.fixture
def benchmark(monkeypatch):
    """The benchmark, as a module."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    file = ROOT / "benchmarks/serving_simulator.py"
    spec = importlib.util.spec_from_file_location("serving_simulator_bench", file)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


def few_clients(benchmark):
    """Judged points that take a second and not minutes: vLLM, few clients, short texts."""
    return [
        one
        for one in benchmark.points(tables.ELSEWHERE)
        if one.framework == "vllm"
        and one.model == "llama3-70b"
        and one.batch <= 8
        and one.isl + one.osl <= 2048
        and not benchmark.fits_on(one)
    ]


@needs_services
def test_half_of_the_services_of_few_clients_are_met_within_a_quarter(benchmark):
    """Llama-3-70B on H100 and B200. TensorRT-LLM's, at 0.65, are the worst of all points."""
    found = few_clients(benchmark)
    assert len(found) >= 20
    errors = abs(benchmark.errors(found, benchmark.with_front_end(found, benchmark.told(found))))
    assert np.median(errors) <= 0.25


@needs_services
@pytest.mark.proof
def test_all_points_are_met_as_the_fit_says(benchmark):
    found = benchmark.points(tables.ELSEWHERE)
    bare_s = benchmark.told(found)
    judged = np.array([not benchmark.fits_on(one) for one in found])
    fit = fits_in(FITS)["front end"]
    errors = abs(benchmark.errors(found, benchmark.with_front_end(found, bare_s)))
    assert [one.id for one in found if not benchmark.fits_on(one)] == list(fit.judged_on)
    assert errors[judged].mean() == pytest.approx(fit.judged_mean, abs=0.001)
    assert errors[judged].max() == pytest.approx(fit.judged_max, abs=0.01)
    assert np.median(errors[judged]) <= 0.3
    assert np.median(abs(benchmark.errors(found, bare_s))) <= 0.45


def test_the_front_end_was_fitted_on_one_model_and_device_alone():
    (row,) = json.loads(FITS.read_text(encoding="utf-8"))
    assert len(row["fitted_on"]) == 130
    assert all("llama_3_1_70b_h200_sxm" in one for one in row["fitted_on"])
    assert not any("llama_3_1_70b_h200_sxm" in one for one in row["judged_on"])


def test_a_front_end_takes_longer_with_more_clients():
    assert 0 < front_end.overhead_s(1) < front_end.overhead_s(64)
