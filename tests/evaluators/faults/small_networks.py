"""Small networks as ONNX files, written on the spot, with their outputs in numpy."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from dse_evaluators.formats.arrays import Single


def weights_of(sizes: tuple[int, ...] = (4, 3, 2)) -> list[Single]:
    """Return random weights, each (inputs, outputs)."""
    rng = np.random.default_rng(0)
    return [rng.normal(size=pair).astype(np.float32) for pair in pairwise(sizes)]


def write_network(folder: Path, weights: list[Single], *, skip: bool = False) -> str:
    """Write products with ReLU between them; ``skip`` adds each layer's input to its output."""
    signal, nodes = "x", []
    for place in range(len(weights)):
        nodes.append(helper.make_node("MatMul", [signal, f"w{place}"], [f"m{place}"]))
        last = f"m{place}"
        if skip:
            nodes.append(helper.make_node("Add", [last, signal], [f"s{place}"]))
            last = f"s{place}"
        if place < len(weights) - 1:
            nodes.append(helper.make_node("Relu", [last], [f"r{place}"]))
            last = f"r{place}"
        signal = last
    rows = [weights[0].shape[0], weights[-1].shape[1]]
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", rows[0]])],
        [helper.make_tensor_value_info(signal, TensorProto.FLOAT, ["n", rows[1]])],
        [numpy_helper.from_array(one, f"w{place}") for place, one in enumerate(weights)],
    )
    opset = helper.make_opsetid("", 17)
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=8), folder / "net.onnx")
    return str(folder / "net.onnx")


def write_examples(folder: Path, weights: list[Single], count: int = 60) -> str:
    """Write inputs and, as targets, the classes that the network gives them."""
    inputs = np.random.default_rng(1).normal(size=(count, len(weights[0]))).astype(np.float32)
    np.savez(folder / "data.npz", inputs=inputs, targets=run(weights, inputs).argmax(axis=1))
    return str(folder / "data.npz")


def run(weights: list[Single], inputs: Single) -> Single:
    """Return the outputs of the network without skip connections, (n, classes)."""
    for weight in weights[:-1]:
        inputs = np.maximum(inputs @ weight, 0)
    return inputs @ weights[-1]


def write_embedding(folder: Path) -> tuple[dict[str, str], Single, Single]:
    """Write an embedding of six rows, of which inputs name four, and a product behind it."""
    rng = np.random.default_rng(3)
    table = rng.normal(size=(6, 2)).astype(np.float32)
    weight = rng.normal(size=(2, 3)).astype(np.float32)
    graph = helper.make_graph(
        [
            helper.make_node("Gather", ["table", "code"], ["row"]),
            helper.make_node("MatMul", ["row", "weight"], ["m"]),
            helper.make_node("ReduceMean", ["m"], ["out"], axes=[1], keepdims=0),
        ],
        "embedding",
        [helper.make_tensor_value_info("code", TensorProto.INT64, ["n", 2])],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, ["n", 3])],
        [numpy_helper.from_array(table, "table"), numpy_helper.from_array(weight, "weight")],
    )
    opset = helper.make_opsetid("", 17)
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=8), folder / "e.onnx")
    codes = np.array([(one, other) for one in range(4) for other in range(4)])
    splits = np.array(["search"] * 12 + ["test"] * 2 + ["calibration"] * 2)
    targets = table[codes].mean(axis=1) @ weight
    np.savez(folder / "codes.npz", inputs=codes, targets=targets.argmax(axis=1), split=splits)
    options = {"model": str(folder / "e.onnx"), "data": str(folder / "codes.npz")}
    return {**options, "quality": "accuracy"}, table, weight
