"""Devices, models and traces of the user in the evaluators of one device, alone and in lists."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.clusters.apex.apex import Apex
from dse_evaluators.clusters.chosen_options import ChosenOptions
from dse_evaluators.clusters.length_aware.length_aware_batching import LengthAwareBatching
from dse_evaluators.clusters.offload.offload import Offload
from dse_evaluators.clusters.offload.zeroth_order import ZerothOrder

SIZES = {"layers": 40, "hidden": 5120}
LARGE = {"like": "a100-sxm-80gb", "memory": "96 GB", "name": "a100-96"}
PLAN = {"weights_at": "cpu", "optimizer_at": "cpu", "batch": 8, "host_memory": 1e12}
GUESS = {"policy": "known", "devices": 1, "batch": 64}
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 2048,
    "intermediate_size": 5632,
    "num_attention_heads": 32,
    "num_key_value_heads": 4,
    "num_hidden_layers": 22,
    "vocab_size": 32000,
}


def column(evaluator: ChosenOptions, name: str, *designs: dict) -> list[float]:
    found = evaluator.evaluate(Batch.of(list(designs)))
    assert not found.failures
    values: list[float] = found.columns[name].tolist()
    return values


def test_a_slower_device_of_the_user_takes_longer_steps() -> None:
    slow = {"like": "a100-sxm-80gb", "fp16": "100 TFLOP/s"}
    design = {"weights_at": "gpu"}
    [usual] = column(ZerothOrder(**SIZES), "compute_time", design)
    [longer] = column(ZerothOrder(**SIZES, device=slow), "compute_time", design)
    assert longer == pytest.approx(usual * 312.0 / 100.0, rel=1e-6)


@pytest.mark.parametrize("kind", [ZerothOrder, Offload])
def test_each_design_chooses_a_device_of_a_list(kind: type[ChosenOptions]) -> None:
    listed = kind(**SIZES, device=["rtx-4090", LARGE])
    assert "device" in listed.reads
    assert kind(**SIZES, device=LARGE).version != kind(**SIZES).version
    designs = [{**PLAN, "device": name} for name in ("rtx-4090", "a100-96")]
    if kind is ZerothOrder:
        designs = [{**one, "batch": 1} for one in designs]
    together = column(listed, "step_time", *designs)
    alone = [
        column(kind(**SIZES, device=one), "step_time", {**designs[0]})[0]
        for one in ("rtx-4090", LARGE)
    ]
    assert together == alone


def test_a_file_of_a_device_names_the_device_in_the_space(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("{like: rtx-4090, memory: 48 GB}")
    listed = ZerothOrder(**SIZES, device=["rtx-4090", str(tmp_path / "mine.yaml")])
    listed.check_values({"device": ["mine", "rtx-4090"]})
    with pytest.raises(SpecError, match="yours"):
        listed.check_values({"device": ["yours"]})


def test_two_devices_of_one_name_are_refused() -> None:
    with pytest.raises(SpecError, match="twice"):
        ZerothOrder(**SIZES, device=["a100-sxm-80gb", {"like": "a100-sxm-80gb", "memory": "1 TB"}])


def test_more_memory_holds_more_of_a_model_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "tiny").mkdir()
    path = tmp_path / "tiny" / "config.json"
    path.write_text(json.dumps(CONFIG))
    listed = LengthAwareBatching(
        texts=50, model=["gpt-j-6b", str(path)], device=["a100-sxm-80gb", LARGE]
    )
    pairs = [
        (model, device) for model in ("gpt-j-6b", "tiny") for device in ("a100-sxm-80gb", "a100-96")
    ]
    designs = [{**GUESS, "model": model, "device": device} for model, device in pairs]
    opt, opt_large, tiny, tiny_large = column(listed, "room", *designs)
    assert opt < opt_large < tiny < tiny_large
    weights, token = 1.1e9 * 2, 22 * 2 * 4 * 64 * 2
    assert tiny == pytest.approx((0.95 * 80 * 1024**3 - weights) / token, rel=0.08)


def test_a_device_without_a_calibration_is_refused_by_its_name() -> None:
    with pytest.raises(SpecError, match="rtx-4090 has no measured bf16 calibration"):
        LengthAwareBatching(device={"like": "rtx-4090", "memory": "48 GB"})


def test_a_trace_of_the_user_arrives_as_it_was_recorded(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    rows = [f"{10 + 2 * each},100,20" for each in range(8)]
    path.write_text("\n".join(["arrival,prompt,answer", *rows]))
    plan = {"devices": 8, "dp": 1, "pp": 1}
    own = Apex(model="llama3-8b", workload=str(path))
    [usual, half] = column(own, "makespan", plan, {**plan, "rate": 0.25})
    assert usual == pytest.approx(14.0, abs=2.0)
    assert half == pytest.approx(28.0, abs=2.0)
    path.write_text("\n".join(["arrival,prompt,answer", *rows[:4]]))
    assert Apex(model="llama3-8b", workload=str(path)).version != own.version
    with pytest.raises(SpecError, match="mine has 4 requests, not 9"):
        Apex(workload=str(path), requests=9)


def test_designs_of_dense_models_lay_out_no_experts() -> None:
    listed = Apex(model=["llama3-8b", "mixtral-8x7b"], requests=4)
    assert "ffn_mode" in listed.optional
    plan = {"devices": 8, "dp": 1, "pp": 1}
    designs = [
        {**plan, "model": model, "ffn_mode": mode}
        for model in ("llama3-8b", "mixtral-8x7b")
        for mode in ("tp", "ep")
    ]
    found = listed.evaluate(Batch.of(designs))
    assert list(found.failures) == [1]
    assert "ffn_mode cannot be ep" in found.failures[1].reason
    assert np.isfinite(found.columns["makespan"][[0, 2, 3]]).all()


def test_a_device_whose_fabric_was_not_measured_is_refused() -> None:
    with pytest.raises(SpecError, match="rtx-4090 has no listed clock"):
        Apex(device={"like": "rtx-4090", "memory": "48 GB"})


def test_the_only_value_of_a_list_needs_no_parameter() -> None:
    design = {"weights_at": "gpu"}
    listed = ZerothOrder(**SIZES, device=["a100-sxm-80gb"])
    assert "device" not in listed.reads
    [time] = column(ZerothOrder(**SIZES), "step_time", design)
    assert column(listed, "step_time", {**design, "device": "a100-sxm-80gb"}) == [time]
    assert column(listed, "step_time", design) == [time]
