"""Cuts of networks between device and server: exact over all cuts, with the tensors that cross."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from dse import Study
from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.edge.cut_points import cut_points
from dse_evaluators.edge.partition import Partition
from dse_evaluators.edge.partition_costs import bisect_threshold, enumerate_threshold
from dse_evaluators.workloads.own.own_workload import workload_of_option

TEN = [
    "alexnet",
    "vgg16",
    "resnet18",
    "resnet50-v1.5",
    "mobilenetv1",
    "mobilenetv2",
    "vit-b16",
    "mnist-cnn",
    "bert-base:tokens=128",
    "gpt2:prefill=128",
]
PLACE = {"device": "jetson-tx2", "server": "a100-sxm-80gb"}


def write_residual(path, channels=4, side=8):
    """Two 3 x 3 convolutions that an addition skips, a pooling, and a third convolution."""

    def conv(name, before, after, ins, outs):
        weight = helper.make_tensor(
            f"{name}.w", TensorProto.FLOAT, [outs, ins, 3, 3], np.ones(outs * ins * 9)
        )
        node = helper.make_node(
            "Conv", [before, f"{name}.w"], [after], name=name, pads=[1, 1, 1, 1]
        )
        return weight, node

    parts = [
        conv("c1", "x", "a", 3, channels),
        conv("c2", "a", "b", channels, channels),
        conv("c3", "pooled", "out", channels, 2),
    ]
    nodes = [one for _, one in parts]
    nodes[2:2] = [
        helper.make_node("Add", ["a", "b"], ["sum"]),
        helper.make_node("MaxPool", ["sum"], ["pooled"], kernel_shape=[2, 2], strides=[2, 2]),
    ]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, side, side])],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, None)],
        [weight for weight, _ in parts],
    )
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), str(path))
    return path


def test_tensors_that_skip_a_cut_cross_it_and_pooling_stays_on_the_device(tmp_path):
    cuts = cut_points(workload_of_option(write_residual(tmp_path / "net.onnx")))
    assert cuts.names == ("input", "c1", "c2", "c3")
    # after c1 its result alone is needed, by c2 and by the addition; after c2 the pooled sum
    assert cuts.features.tolist() == [0, 4 * 64, 4 * 16, 0]
    assert cuts.inputs.tolist() == [3 * 64, 0, 0, 0]


def test_a_module_is_cut_as_the_graph_that_it_exports():
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3, padding=1),
        torch.nn.MaxPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Linear(64, 8),
    )
    cuts = cut_points(workload_of_option({"python": net, "input": [3, 8, 8]}))
    assert cuts.inputs[0] == 3 * 64
    assert cuts.features.tolist() == [0, 64, 0]


@pytest.mark.parametrize("workload", TEN)
def test_the_best_cut_is_that_of_a_plain_sum_over_all_cuts(workload):
    made = Partition(workload=workload, bandwidth="20 MB/s", round_trip="5 ms", **PLACE)
    costs = made.costs_of({})
    count = len(made.names_of_cuts)
    found = made.evaluate(Batch.of([{"cut": k} for k in range(count)])).columns
    slow = [
        costs.device_s[k] + costs.server_s[k] + (costs.sent_bytes[k] / 2e7 + 5e-3) * (k < count - 1)
        for k in range(count)
    ]
    assert found["latency"] == pytest.approx(slow, rel=1e-12)
    assert int(found["latency"].argmin()) == slow.index(min(slow))


@pytest.mark.parametrize("workload", TEN)
def test_thresholds_by_bisection_are_those_by_enumeration(workload):
    costs = Partition(workload=workload, **PLACE).costs_of({})
    trips = np.array([0.0, 1e-4, 1e-3, 1e-2, 0.1])
    wanted = enumerate_threshold(costs, trips)
    assert bisect_threshold(costs, trips) == pytest.approx(wanted, rel=1e-12, nan_ok=True)


def test_a_cut_elsewhere_wins_above_the_threshold_and_not_below():
    made = Partition(workload="vgg16", round_trip="1 ms", **PLACE)
    count = len(made.names_of_cuts)

    def best(bandwidth):
        rows = [{"cut": k, "bandwidth": bandwidth} for k in range(count)]
        return int(made.evaluate(Batch.of(rows)).columns["latency"].argmin())

    row = Batch.of([{"cut": 0, "bandwidth": 1e6}])
    threshold = made.evaluate(row).columns["threshold_bandwidth"][0]
    assert best(0.999 * threshold) == count - 1
    assert best(1.001 * threshold) < count - 1


def test_a_threshold_that_no_bandwidth_reaches_is_undefined_with_its_reason_and_row():
    made = Partition(workload="alexnet", cut=0, bandwidth=1e6, **PLACE)
    found = made.evaluate(Batch.of([{"round_trip": 0.0}, {"round_trip": 3600.0}]))
    assert np.isfinite(found.columns["threshold_bandwidth"]).tolist() == [True, False]
    assert found.undefined["threshold_bandwidth"].keys() == {1}


def test_a_format_of_four_bits_sends_a_quarter_of_sixteen():
    rows = Batch.of([{"cut_format": one} for one in ("fp16", "int4:tensor")])
    made = Partition(workload="alexnet", cut=3, bandwidth=1e6, round_trip=0.0, **PLACE)
    wide, narrow = made.evaluate(rows).columns["sent"]
    assert wide == 2 * 13 * 13 * 384
    assert 4 * narrow == pytest.approx(wide, rel=1e-3)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"workload": "paradnn-fc:layers=1", "cut": 9}, "cut cannot be 9"),
        ({"workload": "movielens-dlrm"}, "no graph of movielens-dlrm is known"),
        ({"workload": "alexnet", "device": "jetson-tx3"}, "device cannot be 'jetson-tx3'"),
        ({"workload": "alexnet", "radio": "lorawan"}, "radio cannot be 'lorawan'"),
        ({"workload": "alexnet", "input_bits": 0}, "input_bits is 0"),
        ({"workload": "alexnet", "bandwidth": "0 B/s"}, r"bandwidth cannot be 0\.0"),
        ({"workload": "alexnet", "round_trip": "-1 ms"}, r"round_trip cannot be -0\.001"),
        ({"workload": "alexnet", "radio": {"bit_energy": "3 nJ"}}, "radio lacks power"),
        ({"workload": "alexnet", "radio": {"powr": 1}}, "a radio has no 'powr'"),
    ],
)
def test_what_cannot_be_cut_is_refused(options, words):
    with pytest.raises(SpecError, match=words):
        Partition(**options)


def test_figures_that_are_assumed_are_named_in_the_notes_and_the_users_own_are_not():
    assumed = Partition(workload="alexnet", radio="lte", device="jetson-tx2").notes
    assert any("radio lte is assumed" in note for note in assumed)
    assert any("jetson-tx2" in note and "assumed" in note for note in assumed)
    own = Partition(workload="alexnet", radio={"bit_energy": "1 nJ", "power": "1 W"})
    assert not any("assumed" in note for note in own.notes)


def test_a_radio_of_the_user_counts_each_bit_and_the_time_of_sending():
    radio = {"bit_energy": "2 nJ", "power": "0.5 W"}
    made = Partition(workload="alexnet", radio=radio, bandwidth=1e6, round_trip=0.0, **PLACE)
    found = made.evaluate(Batch.of([{"cut": 0}])).columns
    sent = 3 * 224 * 224
    assert found["radio_energy"][0] == pytest.approx(8 * sent * 2e-9 + sent / 1e6 * 0.5)


def test_a_network_of_one_layer_has_no_place_to_cut(tmp_path):
    weight = helper.make_tensor("w", TensorProto.FLOAT, [4, 2], np.ones(8))
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [weight],
    )
    path = tmp_path / "one.onnx"
    onnx.save(helper.make_model(graph, ir_version=8), str(path))
    with pytest.raises(SpecError, match=r"one\.onnx has no place to cut"):
        Partition(workload=str(path))


def test_a_cut_beyond_the_last_of_a_function_of_the_user_is_infeasible(tmp_path):
    (tmp_path / "net.py").write_text(
        "from torch import nn\n"
        "def make():\n"
        "    return nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 2))\n"
    )
    function = {"python": f"{tmp_path}/net.py:make", "input": [8]}
    made = Partition(workload=function, bandwidth=1e6, round_trip=0.0, **PLACE)
    found = made.evaluate(Batch.of([{"cut": 1}, {"cut": 3}]))
    assert found.columns["sent"][0] == 2 * 4
    assert found.failures[1].reason == "cut 3 is beyond the last of make, 2"


def test_a_device_file_of_the_user_changes_the_device_half(tmp_path):
    (tmp_path / "mine.yaml").write_text("like: jetson-tx2\nbandwidth: 10 GB/s\n")
    rows = Batch.of([{"cut": 8, "device": name} for name in ("jetson-tx2", "mine")])
    made = Partition(
        workload="alexnet",
        platforms={"mine": str(tmp_path / "mine.yaml")},
        server="t4",
        bandwidth=1e6,
        round_trip=0.0,
    )
    whole, slow = made.evaluate(rows).columns["latency"]
    assert slow > 2 * whole


STUDY = """\
study: own-devices
space: space.yaml
evaluators:
  split:
    use: edge.partition
    workload: alexnet
    platforms: {mine: mine.yaml, other: {like: h100-sxm, memory: 96 GB}}
    device: mine
    server: other
    bandwidth: 1 MB/s
    round_trip: 10 ms
objectives: [{minimize: split.latency}]
optimizer: exhaustive
executor: serial
"""


def test_files_of_platforms_are_relative_to_the_study(tmp_path, monkeypatch):
    (tmp_path / "study.yaml").write_text(STUDY)
    (tmp_path / "space.yaml").write_text("space: cuts\nparameters: {cut: {integer: [0, 8]}}\n")
    (tmp_path / "mine.yaml").write_text("like: jetson-tx2\nmemory: 4 GB\n")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    study = Study.open(tmp_path / "study.yaml", storage="memory://")
    study.run(progress=False)
    assert {one.failure for one in study.engine.finished} == {None}


def test_a_missing_file_of_a_platform_is_named(tmp_path):
    with pytest.raises(SpecError, match=r"there is no file .*none\.yaml"):
        Partition(workload="alexnet", platforms={"mine": str(tmp_path / "none.yaml")})
