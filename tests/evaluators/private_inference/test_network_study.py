"""Encryption parameters of each layer of a user's network, and an exact front over nine layers."""

from __future__ import annotations

import sys
from functools import reduce
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import yaml

from dse.core.batch import Batch
from dse.errors import SpecError
from dse.optimizers.decompose import find_exact_front
from dse.optimizers.exact.chunks import judged
from dse.schema.study.plan import plan_of
from dse_evaluators.private_inference import write_study as command
from dse_evaluators.private_inference.bfv import Bfv
from dse_evaluators.private_inference.write_study import write_study

ROOT = Path(__file__).parents[3]


@pytest.fixture
def network(tmp_path, monkeypatch):
    """An ONNX file of a convolution and a dense layer."""
    onnx = pytest.importorskip("onnx", reason="needs the extra 'onnx'")
    helper, numbers = onnx.helper, onnx.TensorProto.FLOAT
    weights = [("w", (4, 1, 3, 3)), ("v", (10, 144))]
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], name="first", pads=[1, 1, 1, 1]),
        helper.make_node("Flatten", ["a"], ["b"]),
        helper.make_node("Gemm", ["b", "v"], ["y"], name="last", transB=1),
    ]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", numbers, [1, 1, 6, 6])],
        [helper.make_tensor_value_info("y", numbers, [1, 10])],
        [
            helper.make_tensor(name, numbers, shape, np.zeros(shape).ravel())
            for name, shape in weights
        ],
    )
    monkeypatch.chdir(tmp_path)
    onnx.save(helper.make_model(graph), "net.onnx")
    return "net.onnx"


def test_study_of_an_onnx_file_has_an_evaluator_for_each_layer(network, tmp_path):
    assert write_study(network, tmp_path / "own") == ("first", "last")
    problem = plan_of(tmp_path / "own" / "study.yaml").problem
    secure = {
        f"layer_{place}.{name}": value
        for place in (1, 2)
        for name, value in {
            "ring": 8192, "data_primes": 2, "prime_bits": 54, "plain_bits": 23,
            "schedule": "mixed", "weights_in_ntt": True,
        }.items()
    }  # fmt: skip
    losses, violations, _ = judged(problem, Batch.of([secure]))
    assert np.isfinite(losses).all()
    assert not violations.any()


def test_study_is_not_written_over_another(network, tmp_path):
    write_study(network, tmp_path / "own")
    with pytest.raises(SpecError, match="exists"):
        write_study(network, tmp_path / "own")


def test_network_with_products_of_activations_is_refused(tmp_path):
    with pytest.raises(SpecError, match="block0-scores is a product of two activations"):
        write_study("gpt2", tmp_path)


def test_command_names_a_file_that_is_absent(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["write_study", "absent.onnx"])
    with pytest.raises(SystemExit, match="2"):
        command.main()
    assert "there is no file absent.onnx" in capsys.readouterr().err


def front(points):
    """Return the points that no other one dominates, (n, columns)."""
    points = np.unique(points, axis=0)
    kept = [one for one in points if not _is_dominated(one, points)]
    return np.array(kept)


def _is_dominated(one, points):
    return bool(((points <= one).all(axis=1) & (points < one).any(axis=1)).any())


def layer_points(evaluator):
    """Latency, traffic and weight size of each parameter set of one layer that can exist."""
    grid = product(
        (2048, 4096, 8192, 16384), (1, 2, 3, 4), (27, 30, 33, 36, 40, 44, 48, 54),
        range(14, 31), ("rotate-then-multiply", "multiply-then-rotate", "mixed"), (False, True),
    )  # fmt: skip
    names = (
        "ring", "data_primes", "prime_bits", "plain_bits", "schedule", "weights_in_ntt",
    )  # fmt: skip
    found = evaluator.evaluate(Batch.of([dict(zip(names, row, strict=True)) for row in grid]))
    sound = [row for row in range(len(found.columns["latency"])) if row not in found.failures]
    return np.stack([found.columns[name][sound] for name in MEASURES], axis=1)


MEASURES = ("latency", "traffic", "weight_size")


@pytest.mark.proof
def test_front_of_nine_layers_is_the_front_of_sums_of_all_parameter_sets():
    path = ROOT / "studies" / "private_inference.yaml"
    problem, study = plan_of(path).problem, yaml.safe_load(path.read_text())
    exact = find_exact_front(problem)
    assert exact.total == problem.space.count() > 10**30
    layers = [
        Bfv(shape=one["shape"], weight_bits=6, activation_bits=6)
        for one in study["evaluators"].values()
    ]
    assert len(layers) == 9
    fronts = [front(layer_points(layer)) for layer in layers]
    sums = reduce(lambda left, right: front((left[:, None] + right).reshape(-1, 3)), fronts)
    kept = front(sums[sums[:, 2] <= 4 * 2**30][:, :2])
    losses = judged(problem, Batch.of(exact.designs))[0]
    assert losses[np.lexsort(losses.T)] == pytest.approx(kept[np.lexsort(kept.T)])
