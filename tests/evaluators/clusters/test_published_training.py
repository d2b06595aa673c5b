"""Training steps against published runs that no constant was fitted to, but for one that says so."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dse.core.batch import Batch
from dse_evaluators.clusters.training.training import Training
from dse_evaluators.fits import fits_in
from dse_evaluators.workloads.transformer_configs import TRANSFORMERS

CLUSTERS = Path(__file__).parents[3] / "evaluators" / "dse_evaluators" / "clusters"
MICROBATCHES = (1, 2, 4, 8, 16)

# Narayanan et al., SC 2021, table 1 (recalled): model, tensor, pipeline and data parallelism,
# sequences of a step, TFLOP/s of the hardware on each A100 with full recomputation.
SC21 = [
    ("gpt-1.7b", 1, 1, 32, 512, 137),
    ("gpt-3.6b", 2, 1, 32, 512, 138),
    ("gpt-7.5b", 4, 1, 32, 512, 142),
    ("gpt-18b", 8, 1, 32, 1024, 135),
    ("gpt-39b", 8, 2, 32, 1536, 138),
    ("gpt-76b", 8, 4, 32, 1792, 140),
    ("gpt-146b", 8, 8, 24, 2304, 148),
    ("gpt-310b", 8, 16, 15, 2160, 155),
    ("megatron-530b", 8, 35, 9, 2520, 163),
    ("megatron-1t", 8, 64, 6, 3072, 163),
]

# MLPerf Training 3.1, NVIDIA on Eos: replicas of 32 H100, sequences of a step, seconds of the last
# step in result_0.txt of 512 and of 1,344 nodes; the plan is that of its configuration files.
MLPERF = [(128, 2048, 1.606), (336, 2688, 0.930)]

# Dash et al., 2023, abstract: share of the peak of a die of MI250X.
FRONTIER = {
    "Frontier 22B": ("megatron-22b", {"tp": 2, "pp": 4, "dp": 16, "global_batch": 1024}, 0.3838),
    "Frontier 175B": ("gpt3-175b", {"tp": 4, "pp": 16, "dp": 16, "global_batch": 10_240}, 0.3614),
    "Frontier 1T": ("megatron-1t", {"tp": 8, "pp": 64, "dp": 6, "global_batch": 9600}, 0.3196),
}


def sc21_error(row):
    """How far off the fastest microbatch is that fits; the paper tells none."""
    name, tp, pp, dp, batch, published = row
    plans = [
        {"tp": tp, "pp": pp, "dp": dp, "global_batch": batch, "microbatch": size}
        for size in MICROBATCHES
    ]
    run = Training(model=name, system="a100-dgx", sequence=2048, number_format="bf16", fused=False)
    told = run.evaluate(Batch.of([{**plan, "recompute": "full"} for plan in plans]))
    fits = [at for at in range(len(plans)) if at not in told.failures]
    step_s = told.columns["step_time"][fits].min()
    model, tokens = TRANSFORMERS[name], batch * 2048
    more = 2048 / (6 * model.hidden) + 51_200 / (16 * model.layers * model.hidden)
    flops = 96 * tokens * model.layers * model.hidden**2 * (1 + more)  # equation 3 of the paper
    return flops / step_s / (tp * pp * dp) / 1e12 / published - 1


def test_megatrons_ten_models_are_met_within_ten_percent_on_average():
    errors = np.abs([sc21_error(row) for row in SC21])
    assert errors.mean() <= 0.10
    assert errors.max() <= 0.10


@pytest.mark.parametrize(("replicas", "batch", "published_s"), MLPERF)
def test_a_step_of_mlperfs_gpt3_on_thousands_of_h100_is_at_most_a_quarter_too_slow(
    replicas, batch, published_s
):
    plan = {"tp": 4, "pp": 8, "dp": replicas, "microbatch": 1, "interleave": 12, "zero": 1}
    told = Training(model="gpt3-175b", sequence=2048, number_format="fp8").evaluate(
        Batch.of([{**plan, "global_batch": batch, "sequence_parallel": True, "overlap": True}])
    )
    assert told.failures == {}
    assert 1.0 < told.columns["step_time"][0] / published_s < 1.25


def frontier_error(name):
    model, plan, published = FRONTIER[name]
    run = Training(model=model, system="frontier", sequence=2048, number_format="fp16")
    told = run.evaluate(Batch.of([{**plan, "microbatch": 1, "recompute": "full", "zero": 1}]))
    assert told.columns["extrapolated"][0] == 1
    return told.columns["utilization"][0] / published - 1


def test_one_model_of_frontier_tells_of_the_other_two_within_five_points():
    fit = fits_in(CLUSTERS / "chips.fits.json")["mi250x-gcd fp16"]
    errors = np.abs([frontier_error(name) for name in fit.judged_on])
    assert errors.mean() == pytest.approx(fit.judged_mean, abs=2e-3)
    assert errors.max() == pytest.approx(fit.judged_max, abs=2e-3)
    assert abs(frontier_error(*fit.fitted_on)) < 2e-3
