"""Steps of training dense networks: recorded outcomes, and what holds for all of them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.kernels.paradnn_fc import ParadnnFc
from dse_evaluators.workloads.catalogue import layers_of

TPU, GPU = ParadnnFc(platform="tpu-v2"), ParadnnFc(platform="v100")
BY_SHEET = ParadnnFc(platform="tpu-v2", mode="sheet"), ParadnnFc(platform="v100", mode="sheet")
DESIGN = {"layers": 4, "nodes": 2048, "inputs": 2000, "outputs": 1000, "batch": 1024}

networks = st.fixed_dictionaries(
    {
        "layers": st.integers(1, 200),
        "nodes": st.integers(1, 10_000),
        "inputs": st.integers(1, 10_000),
        "outputs": st.integers(1, 2_000),
        "batch": st.integers(1, 20_000),
    }
)
evaluators = st.sampled_from([TPU, GPU, *BY_SHEET])


def told(*rows, evaluator=TPU):
    return evaluator.evaluate(Batch.of(rows)).columns


def recorded():
    """The 1,944 networks that the authors ran on the TPU."""
    axes = {
        "layers": [2**n for n in range(2, 8)],
        "nodes": [2**n for n in range(5, 14)],
        "inputs": [2000, 8000],
        "outputs": [200, 1000],
        "batch": [2**n for n in range(6, 15)],
    }
    return Batch.of([dict(zip(axes, row, strict=True)) for row in product(*axes.values())])


def test_as_many_networks_run_out_of_memory_as_the_authors_recorded():
    # 220 of 1,944 on a TPU: ParaDnn's recorded states.
    assert len(TPU.evaluate(recorded()).failures) == 220


def test_the_winner_changes_where_the_authors_recorded_it():
    # Geometric means of TPU over GPU over the batches, 64 layers: 3.39 with 512 nodes, 0.60 with
    # 2,048; these networks were held out of the fit, whose bar is 30 %.
    rows = [DESIGN | {"layers": 64, "batch": 2**n} for n in range(6, 15)]
    for nodes, published in ((512, 3.39), (2048, 0.60)):
        designs = [row | {"nodes": nodes} for row in rows]
        ratio = told(*designs, evaluator=GPU)["latency"] / told(*designs)["latency"]
        assert np.exp(np.log(ratio).mean()) == pytest.approx(published, rel=0.3)


@settings(max_examples=30, deadline=None)
@given(design=networks)
def test_by_the_sheets_the_tpu_always_wins(design):
    tpu, gpu = (told(design, evaluator=each)["latency"][0] for each in BY_SHEET)
    assert tpu < gpu


@settings(max_examples=30, deadline=None)
@given(design=networks, evaluator=evaluators)
def test_the_parts_sum_to_the_whole(design, evaluator):
    metrics = told(design, evaluator=evaluator)
    parts = [m.name for m in evaluator.provides.values() if m.part_of == "latency"]
    assert sum(metrics[name] for name in parts) == pytest.approx(metrics["latency"], rel=1e-12)


@settings(max_examples=30, deadline=None)
@given(design=networks, evaluator=evaluators, knob=st.sampled_from(sorted(DESIGN)))
def test_more_of_anything_is_never_faster_nor_smaller(design, evaluator, knob):
    metrics = told(design, design | {knob: design[knob] + 1}, evaluator=evaluator)
    assert metrics["latency"][0] <= metrics["latency"][1] * (1 + 1e-12)
    assert metrics["memory"][0] <= metrics["memory"][1]


@pytest.mark.parametrize("knob", sorted(DESIGN))
def test_every_knob_moves_a_metric(knob):
    metrics = told(DESIGN, DESIGN | {knob: DESIGN[knob] * 2})
    assert any(column[0] != column[1] for column in metrics.values())


def test_operations_are_those_of_the_workload_of_the_same_name():
    # Forth once and back twice, two operations for each multiplication.
    macs = sum(
        layer.macs
        for layer in layers_of("paradnn-fc:layers=4,nodes=512,input=2000,output=1000,batch=64")
    )
    metrics = told(
        DESIGN | {"nodes": 512, "batch": 64},
        evaluator=ParadnnFc(platform="tpu-v2", mode="sheet"),
    )
    told_s = sum(metrics[f"{part}_time"][0] for part in ("weight", "activation", "compute"))
    assert 6 * macs / 180e12 <= told_s
    assert metrics["weight_time"][0] * 2400e9 / 34 == pytest.approx(macs / 64)


@pytest.mark.parametrize(
    ("change", "flag"), [({}, 0), ({"nodes": 16}, 1), ({"inputs": 9000}, 1), ({"layers": 2}, 1)]
)
def test_what_lies_outside_of_the_fit_says_so(change, flag):
    assert told(DESIGN | change)["extrapolated"][0] == flag


def test_the_gpu_was_fitted_to_one_width_of_inputs():
    assert told(DESIGN | {"inputs": 8000}, evaluator=GPU)["extrapolated"][0] == 1


def test_a_network_that_does_not_fit_says_by_how_much():
    found = TPU.evaluate(Batch.of([DESIGN | {"layers": 128, "nodes": 4096}, DESIGN]))
    assert set(found.failures) == {0}
    assert found.failures[0].reason == "a worker needs 26.0 GB, has 8.0 GB: 18.0 GB short"


@pytest.mark.parametrize("options", [{"platform": "tpu"}, {"mode": "free"}])
def test_an_unknown_option_is_told(options):
    with pytest.raises(SpecError, match="cannot be"):
        ParadnnFc(**options)
