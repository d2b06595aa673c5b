"""Models of others, run in their own environments, say what they say when they are run by hand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dse.core.batch import Batch
from dse.errors import PluginError, SpecError
from dse_evaluators.outside.layer_shapes import shapes
from dse_evaluators.outside.mlsysim import MlSysim
from dse_evaluators.outside.scalesim import ScaleSim
from dse_evaluators.outside.service import ExternalService, TimeLimits
from dse_evaluators.outside.tool import worker
from dse_evaluators.outside.zigzag import ZigZag
from dse_evaluators.workloads.layers import Layer

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


def layer(side: int, window: int, channels: int, filters: int, **more: int) -> Layer:
    return Layer(
        name="one",
        height=side,
        width=side,
        filter_height=window,
        filter_width=window,
        channels=channels,
        filters=filters,
        **more,
    )


@pytest.mark.parametrize("evaluator", [ScaleSim, ZigZag, MlSysim])
def test_without_its_environment_an_evaluator_says_how_to_get_it(evaluator, tmp_path, monkeypatch):
    monkeypatch.setenv("DSE_CACHE", str(tmp_path))
    with pytest.raises(PluginError, match="needs the environment") as told:
        evaluator().evaluate(Batch.of([{"rows": 8, "cols": 8, "device": "H100"}]))
    assert told.value.hint.startswith("dse environments install ")


def test_a_python_without_the_tool_is_told_by_the_tools_name():
    told = ScaleSim(python=sys.executable).evaluate(Batch.of([{"rows": 8, "cols": 8}]))
    assert "No module named 'scalesim'" in told.failures[0].reason


def test_an_evaluator_can_be_made_and_checked_without_its_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("DSE_CACHE", str(tmp_path))
    with pytest.raises(SpecError, match="dataflow cannot be 'rs'"):
        ScaleSim().check_values({"rows": [8], "dataflow": ["ws", "rs"]})


def test_an_option_fixes_a_knob():
    evaluator = ScaleSim(rows=8, dataflow="os", clock="1 GHz")
    assert (evaluator.reads, "clock" in evaluator.optional) == ({"cols"}, False)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"dataflow": "rs"}, "dataflow cannot be 'rs'"),
        ({"rows": "many"}, "rows must be a number"),
        ({"workload": "resnet5"}, "workload"),
    ],
)
def test_an_option_that_a_knob_cannot_be_is_told(options, why):
    with pytest.raises(SpecError, match=why):
        ScaleSim(**options)


def test_equal_layers_are_told_once_and_a_group_is_a_layer_of_its_own():
    told = shapes([layer(8, 3, 4, 4), layer(8, 3, 4, 4), layer(8, 3, 4, 4, groups=4)])
    assert [(one["channels"], one["filters"], one["times"]) for one in told] == [
        (4, 4, 2),
        (1, 1, 4),
    ]


def test_part_of_a_kibibyte_is_no_buffer_of_scalesim(environment):
    environment("scalesim")
    told = ScaleSim().evaluate(Batch.of([{"rows": 8, "cols": 8, "ifmap_sram": 1000}]))
    assert told.failures[0].kind == "infeasible"


# scalesim 3.0.0 with numpy 2.3.5, run by hand on a 64 x 48 x 40 product: 16 x 16, 64 KiB each
@pytest.mark.slow
@pytest.mark.parametrize(("flow", "cycles"), [("os", 839), ("ws", 989), ("is", 1127)])
def test_scalesim_has_the_cycles_that_it_has_by_hand(environment, flow, cycles):
    environment("scalesim")
    service = ExternalService(worker("scalesim"), {}, TimeLimits())
    one = {**shapes([layer(1, 1, 40, 48)])[0], "height": 64}
    design = {"rows": 16, "cols": 16, "dataflow": flow, "layers": [one]}
    design |= dict.fromkeys(("ifmap_sram", "filter_sram", "ofmap_sram"), 65536)
    assert service.answer(design, ("cycles",))["cycles"].value == cycles


@pytest.mark.slow
def test_scalesim_in_its_environment_agrees_with_ours_on_random_layers(environment):
    environment("scalesim")
    ran = subprocess.run(
        [sys.executable, str(BENCHMARKS / "scalesim_exact.py"), "--points", "5", "--seed", "7"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout.splitlines()[2]) == (0, "cycles,5,5"), ran.stderr


@pytest.mark.proof
def test_scalesim_has_our_cycles_on_200_layers_of_a_seed_from_the_clock(environment):
    environment("scalesim")
    ran = subprocess.run(
        [sys.executable, str(BENCHMARKS / "scalesim_exact.py")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout.splitlines()[2]) == (0, "cycles,200,200"), ran.stdout


# zigzag-dse 3.9.1, run by hand on its tpu_like with lpf_limit 5: 98,367 cycles, 8.7198 * 10^7 pJ
@pytest.mark.slow
def test_zigzag_has_the_cycles_and_energy_that_it_has_by_hand(environment):
    environment("zigzag")
    service = ExternalService(worker("zigzag"), {"opt": "latency", "lpf_limit": 5}, TimeLimits())
    one = {**shapes([layer(1, 1, 768, 768)])[0], "height": 128}
    design = {"rows": 32, "cols": 32, "clock": 1e9, "dram_bandwidth": 8e9}
    design |= {"ifmap_sram": 1 << 20, "ofmap_sram": 1 << 20, "filter_sram": 1 << 17}
    parts = ("compute_cycles", "stall_cycles", "transfer_cycles", "mac_energy", "memory_energy")
    told = service.answer({**design, "layers": [one]}, parts)
    assert sum(told[name].value for name in parts[:3]) == 98_367
    assert sum(told[name].value for name in parts[3:]) == pytest.approx(87_198_093.312, rel=1e-9)


@pytest.mark.slow
def test_less_bandwidth_never_makes_zigzag_faster(environment):
    environment("zigzag")
    evaluator = ZigZag(workload="movielens-dlrm", rows=16, cols=16, loop_factors=3, clock="1 GHz")
    told = evaluator.evaluate(Batch.of([{"dram_bandwidth": rate} for rate in (8e9, 4e9, 1e9)]))
    assert np.all(np.diff(told.columns["latency"]) >= 0)


# mlsysim 0.3.0, run by hand: ResNet-50 on a V100, batch 1 and 32, efficiency 0.5
@pytest.mark.slow
def test_mlsysim_has_the_latency_and_energy_that_it_has_by_hand(environment):
    environment("mlsysim")
    told = MlSysim(device="V100").evaluate(Batch.of([{"batch": 1}, {"batch": 32}])).columns
    assert told["latency"] == pytest.approx([0.6512e-3, 4.7184e-3], rel=1e-9)
    assert told["energy"] == pytest.approx([0.072384, 0.865488], rel=1e-9)


@pytest.mark.slow
def test_mlsysim_says_by_how_much_a_model_does_not_fit_and_where_it_guesses(environment):
    environment("mlsysim")
    evaluator = MlSysim(model="Llama3_70B")
    told = evaluator.evaluate(
        Batch.of(
            [
                {"device": "v100-sxm2"},
                {"device": "V100", "precision": "int4", "batch": 2},
                {"device": "mi300x", "precision": "fp16"},
            ]
        )
    )
    assert told.failures[0].reason.endswith("short")
    assert told.columns["extrapolated"][2] == 0
