"""Clusters and devices of the user: a YAML file, a built-in one with changes, and lists."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.clusters.offload.offload import Offload
from dse_evaluators.clusters.own_system import device_from, system_from
from dse_evaluators.clusters.serving.serving import Serving
from dse_evaluators.clusters.simulator.serving_simulator import ServingSimulator
from dse_evaluators.clusters.systems import SYSTEMS
from dse_evaluators.clusters.training.training import Training

_TRAINING = {"model": "llama3-8b", "global_batch": 64}
_LAYOUT = {"tp": 2, "pp": 1, "dp": 16, "microbatch": 1, "zero": 1}
_PLAN = {"tp": 4, "batch": 16}


def _train(**options):
    return Training(**_TRAINING, **options).evaluate(Batch.of([_LAYOUT]))


def _serve(plan=None, **options):
    return Serving(**{"model": "llama3-8b", **options}).evaluate(Batch.of([plan or _PLAN]))


def test_nothing_changed_is_the_system_itself():
    same = system_from({"like": "h200-hgx"})
    assert replace(same, source=SYSTEMS["h200-hgx"].source) == SYSTEMS["h200-hgx"]


def test_a_file_is_read_as_its_mapping_and_named_by_its_stem(tmp_path):
    file = tmp_path / "rack.yaml"
    file.write_text("{like: h100-dgx, nodes: 4, device: {like: h100-sxm, memory: 96 GB}}\n")
    system = system_from(str(file))
    assert (system.name, system.nodes, system.sheet.dram_bytes) == ("rack", 4, 96e9)
    assert system.sheet.flops_per_s == device_from("h100-sxm").flops_per_s


def test_a_file_is_like_another_file_relative_to_itself(tmp_path):
    (tmp_path / "base.yaml").write_text("{like: h100-dgx, nodes: 4}\n")
    (tmp_path / "own.yaml").write_text("{like: ./base.yaml, node_devices: 4}\n")
    system = system_from(str(tmp_path / "own.yaml"))
    assert (system.nodes, system.node_devices) == (4, 4)


def test_files_that_are_like_each_other_are_refused(tmp_path):
    (tmp_path / "one.yaml").write_text("{like: ./other.yaml}\n")
    (tmp_path / "other.yaml").write_text("{like: ./one.yaml, nodes: 2}\n")
    with pytest.raises(SpecError, match=r"one.yaml is like itself"):
        Training(**_TRAINING, system=str(tmp_path / "one.yaml"))


def test_a_change_of_the_file_that_a_system_is_like_changes_the_version(tmp_path):
    (tmp_path / "own.yaml").write_text("{like: ./base.yaml, node_devices: 4}\n")
    versions = set()
    for nodes in (4, 8):
        (tmp_path / "base.yaml").write_text(f"{{like: h100-dgx, nodes: {nodes}}}\n")
        for system in (str(tmp_path / "own.yaml"), {"like": str(tmp_path / "own.yaml")}):
            versions.add(Training(**_TRAINING, system=system).version)
    assert len(versions) == 4


@pytest.mark.parametrize("evaluate", [_serve, _train])
def test_a_plan_with_more_devices_than_the_system_is_infeasible(evaluate):
    small = {"like": "h100-dgx", "nodes": 1}
    plan = {**_PLAN, "replicas": 4}
    found = evaluate(system=small, **({"plan": plan} if evaluate is _serve else {}))
    assert "but the system has 8" in found.failures[0].reason


def test_a_slower_fabric_and_network_make_a_step_longer():
    usual = _train().columns["step_time"]
    fabric = {"like": "h100-dgx", "fabric": {"bandwidth": "20 GB/s", "latency": "20 us"}}
    network = {"like": "h100-dgx", "network": {"adapters": 1, "adapter_bandwidth": "10 GB/s"}}
    assert _train(system=fabric).columns["tensor_time"] > 2 * _train().columns["tensor_time"]
    assert _train(system=network).columns["step_time"] > 1.2 * usual


def test_the_fabric_of_the_user_times_a_collective_by_hand():
    # An all-reduce over 4 sends 2 * 3/4 of its bytes; the model adds its latency.
    system = {"like": "h100-dgx", "fabric": {"bandwidth": "100 GB/s", "latency": "10 us"}}
    found = _serve(system=system)
    size = 2 * 16 * 4096
    layers = 32 * 2 * (10e-6 + 1.5 * size / 100e9)
    assert found.columns["collectives_time"] == pytest.approx(layers, rel=0.05)
    assert found.columns["extrapolated"] == 1


def test_a_device_of_the_user_is_read_by_its_own_bandwidth():
    fast = {"like": "h100-sxm", "bandwidth": "6.7 TB/s", "memory": "160 GB"}
    usual, twice = _serve(device="h100-sxm"), _serve(device=fast)
    assert twice.columns["products_time"] < 0.8 * usual.columns["products_time"]
    assert twice.columns["headroom"] > usual.columns["headroom"] + 70e9
    assert (usual.columns["extrapolated"], twice.columns["extrapolated"]) == (0, 1)


def test_a_rack_shares_a_layer_among_more_than_eight_devices():
    plan = {"tp": 1, "attention_dp": 64, "ep": 64, "batch": 64, "weight_format": "fp8"}
    rack = _serve(plan, model="deepseek-v3", system="gb200-nvl72")
    node = _serve(plan, model="deepseek-v3", system="h200-hgx")
    assert rack.failures == {} == node.failures
    parts = [found.columns["collectives_time"][0] for found in (rack, node)]
    assert 2 * parts[0] < parts[1]  # eight nodes exchange over adapters of 50 GB/s


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_system_trains_in_a_format_of_its_device(name):
    found = Training(model="llama3-8b", system=name, sequence=1024, global_batch=64)
    columns = found.evaluate(Batch.of([_LAYOUT])).columns
    assert columns["step_time"] > 0
    assert columns["device_throughput"][0] < 1e6


def test_models_and_systems_are_inputs_if_they_are_lists():
    mine = {"like": "llama3-8b", "name": "mine", "layers": 16}
    served = Serving(model=["llama3-8b", mine], system=["h100-hgx", "h200-hgx"])
    assert {"model", "system"} <= served.reads
    pairs = [(m, s) for m in ("mine", "llama3-8b") for s in ("h200-hgx", "h100-hgx")]
    found = served.evaluate(Batch.of([{**_PLAN, "model": m, "system": s} for m, s in pairs]))
    alone = [
        Serving(model=mine if m == "mine" else m, system=s).evaluate(Batch.of([_PLAN]))
        for m, s in pairs
    ]
    assert found.columns["tpot"].tolist() == [one.columns["tpot"][0] for one in alone]


def test_training_and_the_simulator_choose_among_lists_too():
    train = Training(**{**_TRAINING, "model": ["llama3-8b", "qwen3-8b"]}, system=["h100-dgx"])
    layouts = [{**_LAYOUT, "model": m, "system": "h100-dgx"} for m in ("qwen3-8b", "llama3-8b")]
    found = train.evaluate(Batch.of(layouts))
    assert np.unique(found.columns["step_time"]).size == 2
    simulator = ServingSimulator(model=["llama3-8b", "qwen3-8b"], requests=4)
    plan = {"tp": 1, "max_num_seqs": 4, "rate": 1.0}
    found = simulator.evaluate(Batch.of([{**plan, "model": m} for m in ("qwen3-8b", "llama3-8b")]))
    assert np.unique(found.columns["tpot"]).size == 2


def test_a_value_that_is_not_in_the_list_is_refused():
    served = Serving(model=["llama3-8b", "qwen3-8b"])
    with pytest.raises(SpecError, match="model cannot be 'qwen3-9b'"):
        served.check_values({"model": ["qwen3-9b"]})
    with pytest.raises(SpecError, match="has no units for"):
        Serving(model="llama3-8b", system=["h100-hgx", "a100-dgx"]).check_values(
            {"system": ["a100-dgx"], "weight_format": ["fp8"]}
        )


def test_offload_takes_a_device_of_the_user():
    plan = Batch.of([{"batch": 4, "weights_at": "cpu", "optimizer_at": "cpu"}])
    usual = Offload(layers=8, hidden=2048).evaluate(plan).columns["step_time"]
    device = {"like": "rtx-4090", "fp16": "16 TFLOP/s"}
    assert Offload(layers=8, hidden=2048, device=device).evaluate(plan).columns["step_time"] > usual


REFUSED = [  # option, part of the problem, part of the hint
    ("h100-dg", "system cannot be 'h100-dg'", "h100-dgx"),
    ("./none.yaml", "there is no file", "YAML"),
    ({"nodes": 4}, "no key 'like'", "like: h100-dgx"),
    ({"like": "h100-dgx", "node": 4}, "no key 'node'", "nodes"),
    ({"like": "h100-dgx", "nodes": 0}, "nodes cannot be 0", "from 1 to"),
    ({"like": "h100-dgx", "node_devices": 2.5}, "node_devices cannot be 2.5", "whole number"),
    ({"like": "h100-dgx", "fabric": {"bandwidth": 0}}, "bandwidth is 0", "1 B/s or more"),
    ({"like": "h100-dgx", "fabric": {"latency": 1}}, "no key 'bandwidth'", "GB/s"),
    ({"like": "h100-dgx", "fabric": {"bandwith": 1}}, "no key 'bandwith'", "bandwidth"),
    ({"like": "h100-dgx", "fabric": "nvlink"}, "fabric cannot be 'nvlink'", "nvl"),
    ({"like": "h100-dgx", "network": {"adapters": 0}}, "adapters cannot be 0", "from 1 to"),
    ({"like": "h100-dgx", "network": {"latency": "-1 s"}}, "latency is", "or more"),
    ({"like": "h100-dgx", "device": {"memory": "9 GB"}}, "no key 'like'", "h100-sxm"),
    ({"like": "h100-dgx", "device": {"like": "h100-sxm", "mem": 1}}, "no key 'mem'", "memory"),
    ({"like": "h100-dgx", "device": {"like": "h100-sxm", "memory": 0}}, "memory of", "B"),
    (7, "system cannot be 7", "h100-dgx"),
]


@pytest.mark.parametrize(("option", "problem", "hint"), REFUSED)
def test_what_is_no_system_is_refused_with_its_mend(option, problem, hint):
    with pytest.raises(SpecError) as caught:
        system_from(option)
    assert problem in caught.value.problem
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[1, 2]", "is no mapping"),
        ("{like: [", "cannot be read as YAML"),
        ("{like: ./own.yaml}", "is like itself"),
    ],
)
def test_a_file_that_is_no_system_is_refused(tmp_path, text, problem):
    (tmp_path / "own.yaml").write_text(text)
    with pytest.raises(SpecError, match=problem):
        system_from(str(tmp_path / "own.yaml"))


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"system": "h200-hgx", "device": "h200-sxm"}, "h200-hgx has a device of its own"),
        ({"system": "h200-hgx", "device": "h100-sxm"}, "a device of its own, h200-sxm"),
        ({"system": "tpu-v5e"}, "power limit of tpu-v5e is unknown"),
        ({"system": "v100-pcie"}, "no rate in bf16"),
        ({"model": ["llama3-8b", "llama3-8b"]}, "model has 'llama3-8b' twice"),
        ({"model": []}, "model is an empty list"),
    ],
)
def test_what_serving_cannot_use_is_refused(options, problem):
    with pytest.raises(SpecError, match=problem):
        Serving(**{"model": "llama3-8b", **options})


def test_a_format_that_only_one_system_has_is_infeasible_on_the_other():
    training = Training(model="gpt2", system=["a100-dgx", "h100-hgx"], global_batch=64)
    plan = {"tp": 1, "pp": 1, "dp": 1, "microbatch": 1, "number_format": "fp8"}
    training.check_values({"number_format": ["fp8"]})
    found = training.evaluate(
        Batch.of([{**plan, "system": name} for name in ("a100-dgx", "h100-hgx")])
    )
    assert found.failures[0].reason == "a100-dgx: number_format cannot be fp8"
    assert 1 not in found.failures
