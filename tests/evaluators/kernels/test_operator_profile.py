"""The evaluator ``kernels.operator-profile``: classes of operators, networks of the user, mistakes."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from dse.core.batch import Batch
from dse.errors import DseError, SpecError
from dse_evaluators.kernels.measured.classic_networks import CLASSIC_NETWORKS
from dse_evaluators.kernels.measured.operator_profile import CLASSES, OperatorProfile, class_of

OWN = """
from torch import nn


def make():
    return nn.Sequential(nn.Conv2d(3, 32, 3), nn.ReLU(), nn.Flatten(), nn.Linear(32 * 900, 2))


def words():
    return nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 2))


def fails():
    return nn.Linear(3, 4)
"""


def metrics_of(evaluator, **design):
    got = evaluator.evaluate(Batch.of([design]))
    assert not got.failures
    return {name: column.item() for name, column in got.columns.items()}


@pytest.fixture
def own(tmp_path):
    path = tmp_path / "net.py"
    path.write_text(OWN)
    return str(path)


@pytest.mark.parametrize(
    ("operator", "name"),
    [
        ("aten::addmm", "matrix"),
        ("aten::mkldnn_convolution", "convolution"),
        ("aten::native_batch_norm", "normalization"),
        ("aten::_softmax", "reduction"),
        ("aten::copy_", "movement"),
        ("aten::threshold_backward", "elementwise"),
        ("aten::_fused_sgd_", "optimizer"),
        ("autograd::engine::evaluate_function: AddmmBackward0", "other"),
    ],
)
def test_operators_have_the_class_of_what_they_compute(operator, name):
    assert class_of(operator) == name


def test_shares_sum_to_one_and_the_dominant_class_has_the_largest():
    found = metrics_of(OperatorProfile(repeats=1), network="memnet", batch=2)
    shares = [found[f"{name}_share"] for name in CLASSES]
    assert sum(shares) == pytest.approx(1)
    assert max(shares) == shares[int(found["dominant"])]
    assert 1 <= found["heavy_operators"] <= found["operators"]


def test_training_calls_the_optimizer_and_inference_does_not():
    evaluator = OperatorProfile(network="autoenc", batch=2, repeats=1)
    shares = [
        metrics_of(evaluator, phase=phase)["optimizer_share"] for phase in ("inference", "training")
    ]
    assert shares[0] == 0 < shares[1]


def test_a_network_of_the_user_is_profiled(own):
    workload = {"python": f"{own}:make", "input": [3, 32, 32]}
    found = metrics_of(OperatorProfile(workload=workload, repeats=1), batch=8)
    assert found["convolution_share"] > found["normalization_share"] == 0


def test_a_network_that_reads_words_gets_words(own):
    workload = {"python": f"{own}:words", "input": [5]}
    assert metrics_of(OperatorProfile(workload=workload, repeats=1), batch=2)["movement_share"] > 0


def test_a_module_is_profiled():
    workload = {"python": nn.Linear(8, 8), "input": [8]}
    assert metrics_of(OperatorProfile(workload=workload, repeats=1))["matrix_share"] > 0


def test_a_network_that_cannot_run_fails_with_its_message(own):
    evaluator = OperatorProfile(workload={"python": f"{own}:fails", "input": [5]}, repeats=1)
    got = evaluator.evaluate(Batch.of([{"batch": 2}]))
    assert "cannot run on [(2, 5)]" in got.failures[0].reason


def test_more_threads_than_processors_are_infeasible():
    got = OperatorProfile(network="memnet").evaluate(Batch.of([{"threads": 1024}]))
    assert got.failures[0].kind == "infeasible"


@pytest.mark.parametrize("name", CLASSIC_NETWORKS)
def test_each_network_runs_on_a_batch_of_one(name):
    network = CLASSIC_NETWORKS[name]
    with torch.inference_mode():
        assert torch.isfinite(network.make().eval()(network.inputs(1))).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workload": "resnet50"}, "names are values of network"),
        ({"workload": {"python": "nowhere.py:make", "input": [3]}}, "nowhere.py"),
        ({"network": "memnett"}, "memnet"),
        ({"network": "memnet", "repeats": 0}, "repeats"),
    ],
)
def test_a_mistake_is_named_with_its_mend(options, message):
    with pytest.raises((SpecError, DseError)) as refused:
        OperatorProfile(**options)
    assert message in f"{refused.value.problem} {refused.value.hint}"
