"""What holds of every training plan: sums, signs, limits, and what more bandwidth can do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dse.core.batch import Batch
from dse.core.design import Design
from dse.protocols import Task
from dse.schema.space.space_loader import space_of
from dse.schema.study.plan import plan_of
from dse.schema.yaml.files import Files
from dse_evaluators.clusters.chips import chips_of
from dse_evaluators.clusters.systems import system_of
from dse_evaluators.clusters.training.account import model_flops
from dse_evaluators.clusters.training.kernels import plain
from dse_evaluators.clusters.training.layer import layer, passed_s
from dse_evaluators.clusters.training.model_state import state
from dse_evaluators.clusters.training.plan_inputs import READINGS, plans
from dse_evaluators.clusters.training.replicas import compute_exchange
from dse_evaluators.clusters.training.step import EXPOSED, PARTS, Habits, Rest, step
from dse_evaluators.clusters.training.training import Training
from dse_evaluators.clusters.training.training_plan import OFFLOADED, SCHEDULES, TrainingJob
from dse_evaluators.reading_table import Readings
from dse_evaluators.workloads.transformer_configs import TRANSFORMERS

ROOT = Path(__file__).parents[4]
MIXTRAL = TRANSFORMERS["mixtral-8x7b"]
SYSTEM = system_of("h100-dgx")
HABITS = Habits(host_bytes_per_s=25e9, overlap_tax=0.1)

designs = st.fixed_dictionaries(
    {
        "tp": st.sampled_from([1, 2, 4, 8]),
        "pp": st.sampled_from([1, 2, 4, 8, 16]),
        "dp": st.sampled_from([1, 2, 8, 64]),
        "cp": st.sampled_from([1, 2, 8]),
        "ep": st.sampled_from([1, 2, 8]),
        "microbatch": st.sampled_from([1, 2, 4]),
        "interleave": st.sampled_from([1, 2]),
        "schedule": st.sampled_from(SCHEDULES),
        "sequence_parallel": st.booleans(),
        "recompute": st.sampled_from(["none", "selective", "full"]),
        "zero": st.sampled_from([0, 1, 2, 3]),
        "zero_group": st.sampled_from([0, 2]),
        "overlap": st.booleans(),
        "overlap_experts": st.booleans(),
        "offload": st.sampled_from(OFFLOADED),
        "gradient_format": st.sampled_from(["fp32", "bf16"]),
        "number_format": st.sampled_from(["bf16", "fp8"]),
    }
)


def metrics(*some, **options):
    usual = {"model": "mixtral-8x7b", "global_batch": 512}
    return Training(**usual | options).evaluate(Batch.of(some))


def step_s(design, system=SYSTEM, habits=HABITS, *, compute=1.0, memory=1.0):
    """A step of Mixtral on any system, whether the plan fits or not."""
    job = TrainingJob(model=MIXTRAL, sequence=4096, fused=True)
    plan = plans(Batch.of([design]), Readings(READINGS).fixed({"global_batch": 512.0}))
    chips = {
        form: replace(
            chip, flops_per_s=compute * chip.flops_per_s, bytes_per_s=memory * chip.bytes_per_s
        )
        for form, chip in chips_of(system.device).items()
    }
    one = layer(job, plan, chips, system, overlap_tax=habits.overlap_tax)
    rest = Rest(
        state=state(MIXTRAL, plan),
        replicas=compute_exchange(job, plan, system),
        passed_s=passed_s(job, plan, system),
    )
    took = step(plan, one, rest, chip=plain(chips), habits=habits)
    return sum(float(getattr(took, f"{part}_s")[0]) for part in PARTS)


@settings(max_examples=30)
@given(designs)
def test_parts_sum_and_none_is_negative(design):
    got = {name: float(column[0]) for name, column in metrics(design).columns.items()}
    parts = [got[f"{part}_time"] for part in PARTS]
    kept = [got[f"{part}_memory"] for part in ("weights", "gradients", "optimizer", "activations")]
    assert min(*parts, *kept, got["host_memory"]) >= 0
    assert sum(parts) == pytest.approx(got["step_time"], rel=1e-12)
    assert sum(kept) == pytest.approx(got["memory"], rel=1e-12)
    assert got["exposed"] == pytest.approx(
        sum(got[f"{part}_time"] for part in EXPOSED), rel=1e-12, abs=1e-15
    )
    assert 0 < got["utilization"] < 1


@settings(max_examples=30)
@given(designs, st.floats(1.0, 16.0))
def test_a_faster_network_never_slows_a_step(design, times):
    faster = replace(
        SYSTEM.network,
        adapter_bytes_per_s=times * SYSTEM.network.adapter_bytes_per_s,
        device_bytes_per_s=times * SYSTEM.network.device_bytes_per_s,
    )
    assert step_s(design, replace(SYSTEM, network=faster)) <= step_s(design) * (1 + 1e-12)


@settings(max_examples=30)
@given(designs, st.floats(1.0, 16.0), st.floats(1.0, 16.0))
def test_a_faster_device_never_slows_a_step(design, compute, memory):
    faster_s = step_s(design, compute=compute, memory=memory)
    assert faster_s <= step_s(design) * (1 + 1e-12)


@settings(max_examples=30)
@given(designs, st.floats(1.0, 16.0))
def test_a_faster_host_never_slows_a_step(design, times):
    faster = replace(HABITS, host_bytes_per_s=times * HABITS.host_bytes_per_s)
    assert step_s(design, habits=faster) <= step_s(design) * (1 + 1e-12)


@settings(max_examples=30)
@given(designs)
def test_overlap_never_slows_a_step(design):
    assert step_s(design | {"overlap": True}) <= step_s(design | {"overlap": False})


@settings(max_examples=30)
@given(designs)
def test_a_further_stage_of_zero_says_no_fewer_bytes_and_keeps_no_more(design):
    stages = [design | {"zero": stage} for stage in (1, 2, 3)]
    got = metrics(*stages).columns
    assert np.all(np.diff(got["data_traffic"]) >= 0)
    assert np.all(np.diff(got["gradients_memory"]) <= 0)
    assert np.all(np.diff(got["optimizer_memory"]) <= 0)


def test_the_volumes_of_zero_are_those_in_print():
    # Rajbhandari et al., 2020, section 7: with one microbatch two, two, two and three times the
    # weights; here gradients have four bytes and weights two.
    some = [{"tp": 1, "pp": 1, "dp": 512, "microbatch": 1, "zero": stage} for stage in range(4)]
    got = metrics(*some, model="llama2-7b").columns["data_traffic"]
    model = TRANSFORMERS["llama2-7b"]
    assert got[1:] / got[0] == pytest.approx([(4 + 2) / 8, (4 + 2) / 8, (4 + 2 + 2) / 8])
    count = 6.738e9  # Touvron et al., 2023: the weights of Llama-2-7B
    assert got[0] == pytest.approx(2 * 4 * count * 511 / 512, rel=1e-3)
    assert model.layers == 32


ALONE = {"tp": 1, "pp": 1, "dp": 1, "cp": 1, "ep": 1, "microbatch": 8}


def test_one_device_waits_for_nobody():
    got = metrics(ALONE, model="gpt2", sequence=1024, global_batch=8)
    told_s = {name: column[0] for name, column in got.columns.items()}
    assert not got.failures
    assert told_s["exposed"] == 0
    assert told_s["bubble_time"] == 0
    assert told_s["data_traffic"] == 0
    assert told_s["step_time"] == told_s["compute_time"] + told_s["optimizer_time"]


def test_one_device_takes_no_less_than_its_operations_and_its_optimizer():
    got = metrics(ALONE, model="gpt2", sequence=1024, global_batch=8).columns
    chip = plain(chips_of("h100-sxm"))
    job = TrainingJob(model=TRANSFORMERS["gpt2"], sequence=1024, fused=True)
    least_s = 8 * model_flops(job) / (chip.flops_per_s * chip.constants.compute_share)
    # Attention sees half of its scores; the model's own operations count all.
    assert got["compute_time"][0] > 0.8 * least_s
    weights = got["weights_memory"][0] / 2
    moved_s = 30 * weights / (chip.bytes_per_s * chip.constants.memory_share)
    assert got["optimizer_time"][0] == pytest.approx(moved_s + chip.constants.launch_s, rel=1e-12)


def test_a_plan_that_cannot_be_has_no_price():
    shipped = plan_of(ROOT / "studies/llm_training.yaml")
    space = shipped.problem.space
    some = space.sample(64, np.random.default_rng(0)).designs()
    tasks = [Task(number=at, design=Design(dict(one))) for at, one in enumerate(some)]
    found = shipped.pipeline(tasks)
    infeasible = [one for one in found if one.failure is not None]
    assert infeasible
    assert all(not one.metrics for one in infeasible)
    assert all("plan.cost_per_token" in one.metrics for one in found if one.failure is None)


@pytest.mark.parametrize("devices", [8, 65_536])
def test_some_plan_of_the_shipped_space_fits_few_devices_and_many(devices, tmp_path):
    path = tmp_path / "some.yaml"
    shipped = ROOT / "spaces/clusters/transformer_training.yaml"
    told_of = f"{{file: {shipped}, with: {{devices: {devices}, global_batch: 4096}}}}"
    path.write_text(f"space: some\ninclude:\n  plan: {told_of}\n")
    some = space_of(path, Files()).sample(1000, np.random.default_rng(0))
    batch = some.renamed({name.removeprefix("plan."): name for name in some.names})
    got = Training(model="llama2-70b", global_batch=4096).evaluate(batch)
    assert np.all(got.columns["devices"] == devices)
    assert len(got.failures) < 1000
