"""Networks on microcontrollers: vectors and cores by Amdahl's law, transfers, memory."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, save

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.edge.microcontroller import Microcontroller

CHIP = {
    "cores": 1,
    "mac_rate": 0.5,
    "scalar_share": 0.163,
    "clock": 1e8,
    "bandwidth": 1e12,
    "power": 0.05,
    "memory": 1e9,
}


@pytest.fixture
def perceptron(tmp_path):
    """Ten inputs, twenty hidden units, five outputs, as a file of the user."""
    weights = {"w1": (10, 20), "w2": (20, 5)}
    stored = [
        numpy_helper.from_array(np.ones(shape, dtype=np.float32), name)
        for name, shape in weights.items()
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["h"]),
        helper.make_node("MatMul", ["h", "w2"], ["y"]),
    ]
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, n])
        for name, n in (("x", 10), ("y", 5))
    ]
    path = tmp_path / "net.onnx"
    save(helper.make_model(helper.make_graph(nodes, "net", ends[:1], ends[1:], stored)), path)
    return str(path)


def run(workload, **design):
    made = Microcontroller(workload=workload, **{k: v for k, v in CHIP.items() if k not in design})
    return made.evaluate(Batch.of([{"number_format": "fp32"} | design]))


def test_a_share_of_163_thousandths_gives_the_measured_1_72_times(perceptron):
    wide = run(perceptron).columns["latency"][0]
    narrow = run(perceptron, number_format="fp16").columns["latency"][0]
    assert wide / narrow == pytest.approx(1.72, abs=0.005)


def test_cycles_are_products_by_hand(perceptron):
    found = run(perceptron).columns
    assert found["macs"][0] == 10 * 20 + 20 * 5
    assert found["cycles"][0] == pytest.approx(300 / 0.5)
    assert found["energy"][0] == pytest.approx(600 / 1e8 * 0.05)


def test_training_needs_no_gradient_of_the_networks_input(perceptron):
    found = run(perceptron, task="training").columns
    assert found["macs"][0] == 2 * 200 + 3 * 100
    assert found["memory_need"][0] == 4 * (2 * 300 + 10 + 20 + 5)


def test_inference_keeps_the_largest_pair_of_activations(perceptron):
    assert run(perceptron).columns["memory_need"][0] == 4 * (300 + 10 + 20)


def test_cores_shorten_all_but_the_serial_share(perceptron):
    one = run(perceptron, serial_share=0.1).columns["latency"][0]
    eight = run(perceptron, serial_share=0.1, cores=8).columns["latency"][0]
    assert one / eight == pytest.approx(1 / (0.1 + 0.9 / 8))


def test_a_slow_memory_makes_transfers_the_limit_and_formats_gain_by_their_bytes(perceptron):
    wide = run(perceptron, bandwidth=1e3).columns
    assert wide["latency"][0] == wide["transfer_time"][0] == pytest.approx(4 * 355 / 1e3)
    narrow = run(perceptron, bandwidth=1e3, number_format="fp16").columns
    assert wide["latency"][0] / narrow["latency"][0] == pytest.approx(2)


def test_what_does_not_fit_and_training_in_int8_are_infeasible(perceptron):
    failures = run(perceptron, memory=1000).failures
    assert failures[0].reason == "it needs 1320 B of the 1000 B of memory"
    assert "int8" in run(perceptron, task="training", number_format="int8").failures[0].reason


def test_a_format_that_the_chip_lacks_and_a_bandwidth_of_zero_are_refused(perceptron):
    with pytest.raises(SpecError, match="number_format cannot be 'fp8'"):
        Microcontroller(workload=perceptron, number_format="fp8")
    with pytest.raises(SpecError, match="bandwidth cannot be 0"):
        Microcontroller(workload=perceptron, bandwidth="0 B/s")
