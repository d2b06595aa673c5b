"""Forward-only fine-tuning: published memories, the flow line, and its limits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.clusters.offload.zeroth_order import ZerothOrder
from dse_evaluators.clusters.offload.zeroth_order_time import FIT

# Wang et al., ZO2, README of liangyuwang/zo2: layers, width, GB of the GPU's memory.
OPT = {
    "OPT-1.3B": (24, 2048, 3.75),
    "OPT-2.7B": (32, 2560, 4.14),
    "OPT-6.7B": (32, 4096, 4.99),
    "OPT-13B": (40, 5120, 6.18),
    "OPT-30B": (48, 7168, 8.86),
    "OPT-66B": (64, 9216, 12.07),
    "OPT-175B": (96, 12288, 18.04),
}
BASE = {"layers": 48, "hidden": 7168, "weights_at": "cpu"}
ROOMY = ZerothOrder(host_memory="10 TB")


def told(evaluator=ROOMY, **design):
    got = evaluator.evaluate(Batch.of([BASE | design]))
    assert not got.failures
    return {name: float(values[0]) for name, values in got.columns.items()}


def off(names):
    got = [told(layers=OPT[name][0], hidden=OPT[name][1])["gpu_memory"] for name in names]
    published = [OPT[name][2] * 1e9 for name in names]
    return np.abs(np.array(got) / published - 1.0)


def test_memory_of_models_it_was_not_fitted_on_is_as_far_off_as_its_file_tells():
    assert off(FIT.judged_on).mean() == pytest.approx(FIT.judged_mean, abs=5e-5)
    assert off(FIT.judged_on).max() == pytest.approx(FIT.judged_max, abs=5e-5)


def test_its_constants_are_the_least_squares_of_the_points_that_it_names():
    rows = [OPT[name] for name in FIT.fitted_on]
    passing = [24.0 * hidden**2 + 2.0 * (50_272 + 2_050) * hidden for _, hidden, _ in rows]
    design = np.stack([np.ones(len(rows)), np.array(passing)], axis=1)
    solved = np.linalg.lstsq(design, np.array([row[2] * 1e9 for row in rows]), rcond=None)[0]
    assert solved == pytest.approx(list(FIT.constants.values()), rel=1e-7)


def test_every_published_point_is_fitted_or_judged():
    assert set(FIT.fitted_on) | set(FIT.judged_on) == set(OPT)


# An independent count: a line of three stations, played block by block.
@given(st.integers(1, 60), st.sampled_from([64, 512, 2048]), st.sampled_from(["fp16", "fp8"]))
@settings(max_examples=30, deadline=None)
def test_an_overlapped_step_is_that_of_a_line_that_is_played(layers, sequence, wire):
    got = told(layers=layers, sequence=sequence, wire_format=wire, vocabulary=0, positions=0)
    move = got["wire_traffic"] / 2 / layers / 25e9
    gpu = (got["compute_time"] + got["perturb_time"]) / layers
    ends = np.zeros(3)
    for _ in range(layers):
        ends[0] += move
        ends[1] = max(ends[0], ends[1]) + gpu
        ends[2] = max(ends[1], ends[2]) + move
    assert got["step_time"] == pytest.approx(ends[2], rel=1e-9)


def test_a_model_that_stays_on_the_gpu_moves_nothing_and_loses_nothing():
    got = told(weights_at="gpu", layers=4)
    assert got["wire_traffic"] == got["transfer_time"] == got["cpu_memory"] == 0.0
    assert got["slowdown"] == 1.0


# 156 TFLOP/s over 2 x 25 GB/s; eight bits are half of 16.
@pytest.mark.parametrize(("wire", "tokens"), [("fp32", 6240), ("fp16", 3120), ("fp8", 1560)])
def test_two_forward_passes_hide_a_block_from_so_many_tokens_on(wire, tokens):
    assert told(wire_format=wire)["tokens_to_hide"] == pytest.approx(tokens)


@pytest.mark.parametrize("wire", ["fp16", "fp8"])
def test_beyond_that_many_tokens_the_wire_is_hidden(wire):
    tokens = int(told(wire_format=wire)["tokens_to_hide"]) + 1
    assert told(wire_format=wire, sequence=tokens)["hidden_transfer"] == 1.0


@given(st.integers(1, 60), st.integers(1, 4096), st.booleans())
@settings(max_examples=30, deadline=None)
def test_overlap_fused_updates_and_a_faster_wire_are_never_slower(layers, sequence, other):
    base = {"layers": layers, "sequence": sequence}
    whole = told(**base)["step_time"] * (1 - 1e-12)
    assert whole <= told(**base, overlap=False, fused_update=other)["step_time"]
    assert whole <= told(**base, fused_update=False, overlap=other)["step_time"]
    assert whole <= told(**base, pcie_bandwidth=1e10)["step_time"]
    assert whole <= told(**base, wire_format="fp32")["step_time"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("layers", 49),
        ("hidden", 7296),
        ("vocabulary", 32_000),
        ("positions", 0),
        ("batch", 2),
        ("sequence", 1024),
        ("weights_at", "gpu"),
        ("wire_format", "fp8"),
        ("overlap", False),
        ("fused_update", False),
        ("pcie_bandwidth", 1e10),
    ],
)
def test_no_reading_of_a_step_is_inert(name, value):
    assert told(**{name: value}) != told()


@pytest.mark.parametrize(
    ("evaluator", "changes", "word"),
    [
        (ROOMY, {"weights_at": "gpu", "layers": 64}, "GB of gpu_memory, has 80 GB"),
        (
            ZerothOrder(host_memory="1 GB"),
            {},
            "needs 59.2 GB of cpu_memory, has 1 GB: 58.2 GB short",
        ),
    ],
)
def test_a_step_that_does_not_fit_says_by_how_much(evaluator, changes, word):
    assert word in evaluator.evaluate(Batch.of([BASE | changes])).failures[0].reason


@pytest.mark.parametrize(
    ("design", "flag"), [({}, 0.0), ({"batch": 2}, 1.0), ({"hidden": 16_384}, 1.0)]
)
def test_memory_beyond_the_fitted_models_is_marked(design, flag):
    assert told(**design)["extrapolated"] == flag


def test_words_of_32_bits_are_marked_too():
    other = ZerothOrder(number_format="tf32", host_memory="10 TB")
    assert told(other, layers=4)["extrapolated"] == 1.0


@pytest.mark.parametrize("options", [{"device": "a100"}, {"number_format": "int8"}])
def test_a_device_or_format_that_nobody_knows_is_refused(options):
    with pytest.raises(SpecError):
        ZerothOrder(**options)


def test_a_wire_format_that_there_is_not_is_refused():
    with pytest.raises(SpecError, match="wire_format"):
        ROOMY.check_values({"wire_format": ["fp7"]})


def test_a_row_of_many_is_the_row_alone():
    rows = [BASE | {"sequence": size} for size in (128, 1024, 2048)]
    together = ROOMY.evaluate(Batch.of(rows)).columns
    alone = [ROOMY.evaluate(Batch.of([row])).columns for row in rows]
    assert {name: values.tolist() for name, values in together.items()} == {
        name: [float(one[name][0]) for one in alone] for name in together
    }
