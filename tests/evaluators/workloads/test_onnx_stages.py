"""An ONNX file whose layers take rounded inputs, against the same network in PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from dse.errors import EvaluationError
from dse_evaluators.compression.recipe_evaluator import ByRecipe
from dse_evaluators.formats.names import format_of
from dse_evaluators.workloads.models import workload_of
from dse_evaluators.workloads.onnx_runtime import Session
from dse_evaluators.workloads.onnx_stages import RoundedInput, StagedGraph
from dse_evaluators.workloads.workload import Signals
from tests.evaluators.compression.own_models import (
    image_network,
    images,
    vision_transformer,
    write_onnx,
)

onnx = pytest.importorskip("onnx")
FORMATS = ("int4:channel", "fp:e4m3", "int6")


class Residual(nn.Module):
    """Three layers that read one tensor, and embeddings in front of them."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(20, 8)
        self.first, self.second, self.third = (nn.Linear(8, 8) for _ in range(3))
        self.head = nn.Linear(8, 4)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.words(tokens)
        y = torch.relu(self.first(x)) * torch.sigmoid(self.second(x)) + self.third(x) + x
        return self.head(y.mean(1))


def residual() -> nn.Module:
    torch.manual_seed(1)
    return Residual().eval()


def sentences() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.integers(0, 20, (60, 6)), rng.integers(0, 4, 60)


NETWORKS = [(image_network, images), (vision_transformer, images), (residual, sentences)]


def outputs(model, data, signals):
    workload = workload_of(ByRecipe(model=model, data=data, quality="accuracy")._model)
    return workload.outputs(workload.parameters, "search", signals)


@pytest.mark.parametrize("text", FORMATS)
@pytest.mark.parametrize(("network", "data"), [NETWORKS[0], NETWORKS[2]])
def test_outputs_with_rounded_inputs_are_those_of_the_module(network, data, text, tmp_path):
    examples = data()
    write_onnx(tmp_path / "net.onnx", network(), torch.tensor(examples[0][:2]))
    signals = Signals(activations=format_of(text))
    wanted = outputs(network(), examples, signals)
    found = outputs(str(tmp_path / "net.onnx"), examples, signals)
    exact = outputs(network(), examples, Signals())
    error = np.abs(wanted - exact).mean()
    assert error > 1e-4
    # a value halfway between two codes may fall to either side in a few examples
    assert np.median(np.abs(found - wanted)) < 1e-5
    assert np.abs(found - wanted).mean() < 0.02 * error


@pytest.mark.parametrize(("network", "data"), NETWORKS)
def test_stages_without_rounding_give_the_outputs_of_one_session(network, data, tmp_path):
    inputs = data()[0][:2]
    write_onnx(tmp_path / "net.onnx", network(), torch.tensor(inputs))
    content = (tmp_path / "net.onnx").read_bytes()
    names = {one.name for one in onnx.load_model_from_string(content).graph.initializer}
    seen: list[tuple[int, ...]] = []

    def watch(array):
        seen.append(array.shape)
        return array

    graph = StagedGraph(content, {n: RoundedInput(key="", rounding=watch) for n in names})
    [found] = graph.run(inputs)
    assert np.allclose(found, Session(content).run(inputs)[0], atol=1e-5)
    assert graph.count > 2
    assert seen


def test_layers_that_read_one_tensor_round_it_once_unless_one_rescales_it(tmp_path):
    inputs, labels = sentences()
    write_onnx(tmp_path / "net.onnx", residual(), torch.tensor(inputs[:2]))
    content = (tmp_path / "net.onnx").read_bytes()
    calls: list[str] = []

    def rounded(key):
        return RoundedInput(key=key, rounding=lambda x: (calls.append(key), x)[1])

    model = onnx.load_model_from_string(content)
    weights = [n.input[1] for n in model.graph.node if n.op_type in ("MatMul", "Gemm")]
    assert len(weights) == 4
    for keys, count in ((["a"] * 4, 2), (["a", "own", "a", "a"], 3)):
        calls.clear()
        changes = {name: rounded(key) for name, key in zip(weights, keys, strict=True)}
        StagedGraph(content, changes).run(inputs)
        assert len(calls) == count
    options = {"data": (inputs, labels), "quality": "accuracy", "activations": "int4:channel"}
    names = ByRecipe(model=str(tmp_path / "net.onnx"), **options).recipes({})
    layers = dict.fromkeys(list(names)[2:3], "smooth 0.8/int8:channel")
    plain = ByRecipe(model=str(tmp_path / "net.onnx"), **options)
    smooth = ByRecipe(model=str(tmp_path / "net.onnx"), **options, layers=layers)
    one, other = (each._measure_design({})["deviation"] for each in (plain, smooth))
    assert one != other


def branching(then_factor: float = 2.0) -> bytes:
    """A product, a branch that reads its result from outside, and a product with a constant."""
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    value = helper.make_tensor_value_info

    def branch(name, factor):
        nodes = [
            helper.make_node("Constant", [], [f"{name}.c"], value_float=factor),
            helper.make_node("Mul", ["y", f"{name}.c"], [f"{name}.out"]),
        ]
        return helper.make_graph(nodes, name, [], [value(f"{name}.out", kind, None)])

    rng = np.random.default_rng(0)
    arrays = {
        "w": rng.normal(size=(5, 5)),
        "v": rng.normal(size=(5, 3)),
        "k": rng.normal(size=(1, 5)),
        "u": rng.normal(size=(5, 3)),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["y"]),
        helper.make_node("ReduceSum", ["y"], ["s"], keepdims=0),
        helper.make_node("Greater", ["s", "zero"], ["c"]),
        helper.make_node(
            "If", ["c"], ["z"], then_branch=branch("a", then_factor), else_branch=branch("b", 3.0)
        ),
        helper.make_node("MatMul", ["z", "v"], ["p"]),
        helper.make_node("MatMul", ["k", "u"], ["q"]),
        helper.make_node("Add", ["p", "q"], ["out"]),
        helper.make_node("MatMul", ["z", "u"], ["unused"]),
    ]
    graph = helper.make_graph(
        nodes,
        "branching",
        [value("x", kind, ["n", 5])],
        [value("out", kind, None), value("unused", kind, None)],
        [onnx.numpy_helper.from_array(a.astype(np.float32), n) for n, a in arrays.items()]
        + [onnx.numpy_helper.from_array(np.float32(0), "zero")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString()


@pytest.mark.parametrize("sign", [1, -1])
def test_branches_and_constants_are_rounded_as_written(sign):
    content = branching()
    stored = {n.name: onnx.numpy_helper.to_array(n) for n in _graph(content).initializer}
    x = sign * np.abs(np.random.default_rng(1).normal(size=(4, 5))).astype(np.float32)
    form = format_of("int4")
    change = RoundedInput(key="", rounding=form.quantize)
    [found] = StagedGraph(content, dict.fromkeys(("w", "v", "u"), change)).run(x)
    y = form.quantize(x) @ stored["w"]
    z = y * np.float32(2 if y.sum() > 0 else 3)
    wanted = form.quantize(z) @ stored["v"] + form.quantize(stored["k"]) @ stored["u"]
    assert np.allclose(found, wanted, atol=1e-4)


def _graph(content: bytes):
    return onnx.load_model_from_string(content).graph


def test_list_of_arrays_between_two_stages_is_refused():
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    value = helper.make_tensor_value_info
    nodes = [
        helper.make_node("SplitToSequence", ["x"], ["parts"], axis=1, keepdims=1),
        helper.make_node("MatMul", ["x", "w"], ["y"]),
        helper.make_node("SequenceInsert", ["parts", "y"], ["more"]),
        helper.make_node("ConcatFromSequence", ["more"], ["out"], axis=1),
    ]
    weights = onnx.numpy_helper.from_array(np.eye(2, dtype=np.float32), "w")
    graph = helper.make_graph(
        nodes, "g", [value("x", kind, ["n", 2])], [value("out", kind, None)], [weights]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    change = RoundedInput(key="", rounding=lambda x: x)
    staged = StagedGraph(model.SerializeToString(), {"w": change})
    with pytest.raises(EvaluationError, match=r"'parts'.*is a list of arrays"):
        staged.run(np.ones((3, 2), np.float32))
