"""Latency of networks that were not measured is a sum over the operators of their graphs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dse.core.batch import Batch
from dse.errors import DseError
from dse_evaluators.learned.network_latency import LearnedNetworks
from dse_evaluators.learned.operator_features import NAMES, features_of
from dse_evaluators.learned.operator_sum import fit_operator_sum

NODES, MACS = NAMES.index("matmul count"), NAMES.index("matmul macs")


def save_chain(path: Path, width: int, depth: int) -> str:
    """Write an ONNX file of ``depth`` matrix products and ReLUs, on four rows."""
    onnx = pytest.importorskip("onnx")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    weights = [
        onnx.numpy_helper.from_array(np.zeros((width, width), np.float32), f"w{at}")
        for at in range(depth)
    ]
    nodes = []
    for at in range(depth):
        nodes.append(helper.make_node("MatMul", [f"x{at}", f"w{at}"], [f"y{at}"]))
        nodes.append(helper.make_node("Relu", [f"y{at}"], [f"x{at + 1}"]))
    ends = [[helper.make_tensor_value_info(name, kind, [4, width])] for name in ("x0", f"x{depth}")]
    onnx.save(helper.make_model(helper.make_graph(nodes, "chain", *ends, weights)), str(path))
    return str(path)


def write_table(folder: Path, last: str = "") -> str:
    lines = ["network,family,latency"]
    for width in (16, 32, 64, 128, 256):
        for depth in (1, 2, 3, 5, 8):
            file = save_chain(folder / f"w{width}d{depth}.onnx", width, depth)
            latency = depth * (0.01 + 4 * width**2 * 1e-6)
            lines.append(f"{Path(file).name},w{width},{latency}")
    path = folder / "networks.csv"
    path.write_text("\n".join([*lines, *([last] if last else [])]))
    return str(path)


def test_the_work_of_an_onnx_file_is_counted_by_kind(tmp_path: Path) -> None:
    found = dict(zip(NAMES, features_of(save_chain(tmp_path / "n.onnx", 8, 3)), strict=True))
    assert {name: value for name, value in found.items() if value} == {
        "matmul count": 3,
        "matmul macs": 3 * 4 * 8 * 8,
        "matmul elements": 3 * 2 * 32,
        "matmul weights": 3 * 64,
        "simple count": 3,
        "simple elements": 3 * 2 * 32,
    }


def test_layers_of_a_workload_have_its_multiply_accumulates() -> None:
    found = dict(zip(NAMES, features_of("alexnet"), strict=True))
    assert found["conv count"] + found["grouped count"] == 5
    assert found["matmul weights"] == 9216 * 4096 + 4096 * 4096 + 4096 * 1000


def test_a_time_for_each_unit_of_work_is_found_again() -> None:
    rng = np.random.default_rng(0)
    work = np.zeros((40, len(NAMES)))
    work[:, NODES], work[:, MACS] = rng.integers(1, 30, 40), rng.random(40) * 1e9
    model = fit_operator_sum(work, work[:, NODES] * 1e-5 + work[:, MACS] * 2e-11)
    assert model.coefficients[NODES] == pytest.approx(1e-5, rel=0.02)
    assert model.coefficients[MACS] == pytest.approx(2e-11, rel=0.02)


def test_a_network_that_was_not_measured_is_predicted_inside_its_band(tmp_path: Path) -> None:
    made = LearnedNetworks(file=write_table(tmp_path), metrics={"latency": "ms"}, group="family")
    inside = save_chain(tmp_path / "new.onnx", 96, 4)
    larger = save_chain(tmp_path / "large.onnx", 512, 9)
    columns = made.evaluate(Batch.of([{"network": inside}, {"network": larger}])).columns
    assert columns["latency"][0] == pytest.approx(4 * (0.01 + 4 * 96**2 * 1e-6), rel=0.1)
    assert columns["latency_low"][0] <= columns["latency"][0] <= columns["latency_high"][0]
    assert columns["extrapolated"].tolist() == [0.0, 1.0]
    assert "by whole groups of family" in made.notes[0]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("missing.onnx,w1,3", "missing.onnx"),
        ("w16d1.onnx,w1,0", "no number above 0"),
        ("resnet81,w1,3", "resnet18"),
        (",w1,3", "networks.csv:27: there is no network"),
    ],
)
def test_a_wrong_row_is_refused(tmp_path: Path, row: str, words: str) -> None:
    with pytest.raises(DseError) as caught:
        LearnedNetworks(file=write_table(tmp_path, row), metrics={"latency": "ms"})
    assert words in f"{caught.value}"
