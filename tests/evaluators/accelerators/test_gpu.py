"""The evaluator ``accelerators.gpu``: what moves it, what cannot be, and how fast it tells."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dse.core.batch import Batch, Column
from dse.errors import EvaluationError, SpecError
from dse.registry import make
from dse_evaluators.accelerators.devices.devices import DEVICES
from dse_evaluators.accelerators.devices.gpu import Gpu
from dse_evaluators.accelerators.devices.gpu_layers import kernels_of
from dse_evaluators.accelerators.devices.gpu_run import ENERGIES, TIMES
from dse_evaluators.accelerators.devices.recipes import RECIPES
from dse_evaluators.workloads.catalogue import layers_of

DESIGN = {
    "workload": "resnet50",
    "device": "h200-sxm",
    "format": "bf16",
    "batch": 8,
    "power_cap": 1.0,
    "duty": 1.0,
}


def told(evaluator=None, **changes):
    """The metrics of the design with these changes."""
    got = (evaluator or Gpu()).evaluate(Batch.of([DESIGN | changes]))
    assert not got.failures
    return {name: column.item() for name, column in got.columns.items()}


def failure(**changes):
    got = Gpu().evaluate(Batch.of([DESIGN, DESIGN | changes]))
    assert list(got.failures) == [1]
    return got.failures[1]


def test_it_is_registered():
    assert isinstance(make("evaluators", "accelerators.gpu", workload="resnet18"), Gpu)


@pytest.mark.parametrize(
    "changes",
    [
        {"workload": "resnet18"},
        {"device": "a100-sxm-80gb"},
        {"format": "fp8"},
        {"batch": 16},
        {"power_cap": 0.3},
        {"duty": 0.5},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_every_knob_moves_something(changes):
    before, after = told(), told(**changes)
    assert any(before[name] != pytest.approx(after[name], rel=1e-6) for name in before)


@pytest.mark.parametrize("workload", ["digits-cnn", "resnet50", "mobilenetv2", "llama2-7b"])
def test_all_multiplications_are_counted(workload):
    kernels = kernels_of(workload)
    work = kernels.work(RECIPES["bf16"], np.array([3.0]))
    macs = sum(layer.macs for layer in layers_of(workload))
    assert (work.flops * kernels.repeats).sum() == 2 * 3 * macs


def test_weights_are_read_once_and_keys_once_a_text():
    kernels = kernels_of("llama2-7b:decode=1024")
    layers = layers_of("llama2-7b:decode=1024")
    weights = sum(layer.weights for layer in layers)
    keys_and_values = 2 * 32 * 32 * 128 * 1024  # Llama-2-7B: 32 blocks of 32 heads of 128
    rights = (kernels.rights(np.array([5.0])) * kernels.repeats).sum()
    assert rights == weights + 5 * keys_and_values


@settings(max_examples=30)
@given(
    st.sampled_from(["resnet18", "mobilenetv1", "bert-base", "llama2-7b:decode=64"]),
    st.sampled_from(["h100-sxm", "mi300x", "gb200"]),
    st.sampled_from(["bf16", "fp8"]),
    st.integers(1, 16),
    st.floats(1, 10),
)
def test_more_bandwidth_is_never_slower(workload, device, number_format, batch, more):
    bandwidth = DEVICES[device].dram_bytes_per_s * more
    wider = Gpu(platforms={"wider": {"like": device, "bandwidth": bandwidth}})
    design = {"workload": workload, "format": number_format, "batch": batch}
    before = told(device=device, **design)["latency"]
    assert told(wider, device="wider", **design)["latency"] <= before * (1 + 1e-12)


@pytest.mark.parametrize("workload", ["resnet50", "llama2-7b:decode=1024"])
@pytest.mark.parametrize(("narrow", "wide"), [("nvfp4", "fp8"), ("fp8", "bf16"), ("bf16", "tf32")])
def test_fewer_bits_never_take_more_bytes(workload, narrow, wide):
    narrower, wider = (
        told(workload=workload, device="gb200", format=each, batch=1)["memory"]
        for each in (narrow, wide)
    )
    assert narrower <= wider


@given(st.floats(1, 64), st.floats(1, 4))
def test_a_larger_batch_takes_longer_and_no_longer_than_several_small_ones(batch, times):
    small, large = told(batch=batch)["latency"], told(batch=batch * times)["latency"]
    assert small <= large * (1 + 1e-12)
    assert large <= small * times * (1 + 1e-9)


def test_the_parts_are_the_latency_and_the_energy():
    got = told(power_cap=0.3, duty=0.5)
    assert sum(got[f"{name}_time"] for name in TIMES) == pytest.approx(got["latency"])
    assert sum(got[f"{name}_energy"] for name in ENERGIES) == pytest.approx(got["energy"])


def test_the_bottleneck_is_the_largest_part():
    got = told(workload="llama2-7b:decode=1024", batch=1)
    assert TIMES[int(got["bottleneck"])] == "memory"
    assert TIMES[int(told(workload="vgg16", batch=256)["bottleneck"])] == "compute"


def test_it_never_draws_more_than_its_cap():
    assert told(workload="vgg16", batch=64, power_cap=0.4)["power"] <= 0.4 * 700 * (1 + 1e-12)


def test_idling_costs_energy_and_lowers_the_mean_power():
    busy, seldom = told(), told(duty=0.2)
    assert seldom["latency"] == busy["latency"]
    assert seldom["energy"] > busy["energy"]
    assert seldom["power"] < busy["power"]


def test_what_does_not_fit_says_by_how_much():
    found = failure(workload="llama2-70b:decode=1", batch=1, device="h100-sxm")
    assert found.kind == "infeasible"
    # 68,976,648,192 parameters (Llama 2) in two bytes are 128.5 GiB.
    assert found.reason == "needs 128.5 GiB of memory, has 74.5 GiB: 54.0 GiB short"


def test_a_format_without_units_says_so():
    assert failure(device="v100-sxm2").reason == "v100-sxm2 has no units for bf16"


def test_a_cap_below_the_base_says_by_how_much():
    reason = failure(power_cap=0.1).reason
    assert reason == "a cap of 70 W is 61 W below the base power of 131 W"


def test_products_within_the_calibration_are_not_extrapolated():
    layers = {"workload": "paradnn-fc:layers=4,nodes=4096", "batch": 64}
    assert told(**layers)["extrapolated"] == 0
    assert told(device="mi300x", **layers)["extrapolated"] == 1
    assert told(workload="resnet50")["extrapolated"] == 1  # windows were never calibrated


def test_power_that_nobody_measured_says_so():
    assert told()["power_measured"] == 1
    assert told(device="a100-sxm-80gb")["power_measured"] == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "h100"}, "device cannot be 'h100'"),
        ({"workload": "resnet49"}, "resnet49"),
        ({"format": "bf61"}, "format cannot be 'bf61'"),
        ({"power_cap": 2.0}, "power_cap cannot be 2"),
        ({"device": "tpu-v5e"}, "power limit of tpu-v5e"),
        ({"platforms": {"mine": {"like": "h1000"}}}, "h1000"),
    ],
)
def test_an_option_that_cannot_be_is_refused(options, message):
    with pytest.raises(SpecError, match=message):
        Gpu(**options)


def test_a_space_with_an_unknown_device_is_refused():
    with pytest.raises(SpecError, match="device cannot be 'h100'"):
        Gpu().check_values({"device": ["h100-sxm", "h100"]})


def test_an_unknown_device_of_a_design_is_refused():
    with pytest.raises(EvaluationError, match="device cannot be 'h100'"):
        Gpu().evaluate(Batch.of([DESIGN | {"device": "h100"}]))


@pytest.mark.slow
def test_of_a_hundred_thousand_networks_of_54_layers_each_is_what_it_is_alone():
    rng = np.random.default_rng(0)
    count = 100_000
    words = {"device": ("h100-sxm", "b200-sxm", "mi300x"), "format": ("bf16", "fp8")}
    batch = Batch(
        {
            **{
                name: Column.coded(each, rng.integers(len(each), size=count))
                for name, each in words.items()
            },
            "batch": Column(rng.uniform(1, 64, count)),
            "power_cap": Column(rng.uniform(0.7, 1, count)),
        },
        count,
    )
    evaluator = Gpu(workload="resnet50")
    among = evaluator.evaluate(batch).columns
    few = rng.choice(count, 20, replace=False)
    for name, alone in evaluator.evaluate(batch.take(few)).columns.items():
        np.testing.assert_allclose(among[name][few], alone, rtol=1e-12)
