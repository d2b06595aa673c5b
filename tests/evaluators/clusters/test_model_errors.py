"""The errors that models of clusters and devices state for their metrics."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dse.core.batch import Batch
from dse_evaluators.accelerators.devices.error_table import ErrorGroup, ErrorTable
from dse_evaluators.accelerators.devices.gemm import Gemm
from dse_evaluators.accelerators.devices.gpu import Gpu
from dse_evaluators.clusters.serving.serving import Serving
from dse_evaluators.clusters.training.training import Training

TABLE = ErrorTable(
    (
        ErrorGroup(kind="dense", device="a", format="bf16", points=10, mean=0.05, within=0.02),
        ErrorGroup(kind="dense", device="a", format="fp8", points=30, mean=0.09),
        ErrorGroup(kind="dense", device="b", format="nvfp4", points=5, mean=0.3),
    )
)
PLAN = {"tp": 1, "pp": 1, "dp": 8, "microbatch": 1, "zero": 1, "number_format": "fp8"}
SHAPE = {"m": 64, "n": 4096, "k": 4096}


@pytest.mark.parametrize(
    ("device", "number_format", "origin", "mean"),
    [
        ("a", "fp16", "held out", 0.05),  # as bf16
        (
            "a",
            "nvfp4",
            "extrapolated",
            (10 * 0.05 + 30 * 0.09) / 40,
        ),  # the device before the format
        ("c", "nvfp4", "extrapolated", 0.3),
        ("c", "int8", "extrapolated", (10 * 0.05 + 30 * 0.09 + 5 * 0.3) / 45),
    ],
)
def test_the_nearest_group_counts(device, number_format, origin, mean):
    found = TABLE.nearest("dense", device, number_format)
    assert (found.origin, found.mean) == (origin, pytest.approx(mean))


def test_a_kind_without_measurements_has_no_error():
    found = TABLE.nearest("experts", "a", "bf16")
    assert found.origin == "data sheet only"
    assert math.isnan(found.mean)


def test_each_training_plan_has_the_error_of_its_system():
    trained = Training(model="llama2-13b", system=["b200-dgx", "h100-dgx"], global_batch=64)
    batch = Batch.of([PLAN | {"system": "h100-dgx"}, PLAN | {"system": "b200-dgx"}])
    errors = trained.model_errors(batch)
    first, second = errors["step_time"]
    assert first.group.startswith("dense, h100-sxm, fp8")
    assert second.group.startswith("dense, b200-sxm, fp8")
    assert first.shares != second.shares
    assert "devices" not in errors
    assert math.isnan(errors["energy_per_token"][0].mean)


def test_experts_in_training_are_extrapolated():
    trained = Training(model="mixtral-8x7b", system="h100-dgx", global_batch=64)
    assert trained.model_errors(Batch.of([PLAN]))["step_time"][0].origin == "extrapolated"


def test_a_service_is_held_out_where_services_like_it_were_measured():
    served = Serving(model="llama3-70b", device="h200-sxm")
    plain = {"tp": 4, "batch": 16, "weight_format": "fp8"}
    errors = served.model_errors(Batch.of([plain, plain | {"pp": 2}]))["tpot"]
    assert [one.origin for one in errors] == ["held out", "extrapolated"]
    assert 0 < errors[0].within < errors[0].mean < 1


def test_every_metric_that_is_not_exact_has_an_error_for_each_design():
    served = Serving(model="llama3-8b")
    errors = served.model_errors(Batch.of([{"tp": 1, "batch": 4}] * 3))
    assert errors.keys() == served.provides.keys() - {"devices", "bottleneck", "extrapolated"}
    assert {len(column) for column in errors.values()} == {3}


def test_products_outside_of_the_measured_sizes_are_extrapolated():
    sizes = Batch.of([SHAPE, SHAPE | {"m": 10**6}])
    origins = [one.origin for one in Gemm(device="h100-sxm").model_errors(sizes)["latency"]]
    assert origins == ["held out", "extrapolated"]


def test_an_unmeasured_device_has_only_its_data_sheet():
    found = Gemm(device="h20-sxm").model_errors(Batch.of([SHAPE]))["latency"][0]
    assert found.origin == "data sheet only"
    assert math.isnan(found.mean)


def test_a_named_stack_has_a_smaller_error_than_the_median_over_stacks():
    batch = Batch.of([SHAPE])
    any_stack = Gemm(device="h100-sxm", format="fp8_block").model_errors(batch)["latency"][0]
    one = Gemm(device="h100-sxm", format="fp8_block", stack="vllm").model_errors(batch)
    assert one["latency"][0].mean < any_stack.mean


def test_complete_networks_on_a_device_are_extrapolated():
    design = {"device": "a100-sxm-80gb", "format": "fp16", "batch": 8}
    errors = Gpu(workload="resnet18").model_errors(Batch.of([design]))
    assert errors["latency"][0].origin == "extrapolated"
    assert np.isfinite(errors["latency"][0].mean)
