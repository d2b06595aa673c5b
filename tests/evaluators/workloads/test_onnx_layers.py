"""Layers read from ONNX files: the products that torch counts, and clear words where none are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from dse.errors import SpecError
from dse_evaluators.workloads import shapes
from dse_evaluators.workloads.catalogue import layers_of, table_of
from dse_evaluators.workloads.layers import DIGITS_CNN

onnx = pytest.importorskip("onnx", reason="needs the extra 'onnx'")
EXPORT = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch warns of its exporter

DIGITS = nn.Sequential(
    nn.Conv2d(1, 32, 3, padding=1),
    nn.ReLU(),
    nn.Conv2d(32, 64, 3, padding=1),
    nn.MaxPool2d(2),
    nn.Conv2d(64, 64, 3, padding=1),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(256, 128),
    nn.Linear(128, 10),
)


class Attention(nn.Module):
    """Four heads of eight over whatever comes in, and a product by a learnt matrix on the left."""

    def __init__(self):
        super().__init__()
        self.inputs = nn.Linear(32, 96, bias=False)
        self.mix = nn.Parameter(torch.zeros(6, 12))

    def forward(self, signal):
        count, length, _ = signal.shape
        parts = self.inputs(signal).view(count, length, 3, 4, 8).permute(2, 0, 3, 1, 4)
        query, key, value = parts[0], parts[1], parts[2]
        mixed = torch.softmax(query @ key.transpose(-1, -2), dim=-1) @ value
        return self.mix @ mixed.transpose(1, 2).reshape(count, length, 32)


MODELS = {
    "a network of the digits": (DIGITS, (1, 1, 8, 8)),
    "strides and padding": (nn.Conv2d(3, 8, 7, stride=2, padding=3), (1, 3, 33, 20)),
    "groups": (nn.Conv2d(8, 24, 3, groups=4), (1, 8, 9, 9)),
    "depthwise": (nn.Conv2d(8, 8, (5, 3), stride=2, groups=8), (1, 8, 16, 9)),
    "holes": (nn.Conv2d(4, 6, 3, dilation=2), (1, 4, 11, 11)),
    "strides that differ": (nn.Conv2d(4, 6, 3, stride=(2, 1), groups=2), (1, 4, 11, 12)),
    "one axis": (nn.Conv1d(4, 6, 5, stride=3), (1, 4, 40)),
    "three axes": (nn.Conv3d(2, 6, 3, padding=1), (1, 2, 5, 6, 7)),
    "transposed": (nn.ConvTranspose2d(6, 4, 2, stride=2, groups=2), (1, 6, 5, 5)),
    "a batch of images": (nn.Conv2d(3, 8, 3, stride=2), (5, 3, 17, 17)),
    "a batch of vectors": (nn.Linear(12, 7), (5, 12)),
    "attention": (Attention(), (3, 12, 32)),
}


def exported(folder, model, shape, **options):
    """The file of a model, and the multiply-accumulates that torch counts."""
    example = torch.zeros(shape)
    with FlopCounterMode(display=False) as counter, torch.inference_mode():
        model(example)
    path = folder / "model.onnx"
    torch.onnx.export(model, (example,), str(path), dynamo=False, **options)
    return path, counter.get_total_flops() // 2


def saved(folder, nodes, inputs, weights=()):
    """A file of these operators: the signals' axes by name, float weights by shape."""
    signals = [
        onnx.helper.make_tensor_value_info(name, kind, axes)
        for name, (kind, axes) in inputs.items()
    ]
    stored = [
        onnx.numpy_helper.from_array(torch.zeros(shape).numpy(), name)
        for name, shape in dict(weights).items()
    ]
    result = onnx.helper.make_tensor_value_info("out", onnx.TensorProto.FLOAT, None)
    graph = onnx.helper.make_graph(nodes, "graph", signals, [result], initializer=stored)
    opset = [onnx.helper.make_opsetid("", 17)]
    path = folder / "model.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=opset), str(path))
    return path


def floats(*axes):
    return onnx.TensorProto.FLOAT, axes


def node(operator, inputs, **attributes):
    return onnx.helper.make_node(operator, inputs, ["out"], **attributes)


@EXPORT
@pytest.mark.parametrize("name", MODELS)
def test_the_products_are_those_that_torch_counts(tmp_path, name):
    path, macs = exported(tmp_path, *MODELS[name])
    assert table_of(f"onnx:{path}").macs == macs


@EXPORT
@pytest.mark.parametrize("name", MODELS)
def test_the_parameters_are_those_of_torch(tmp_path, name):
    path, _ = exported(tmp_path, *MODELS[name])
    assert table_of(f"onnx:{path}").parameters == sum(
        x.numel() for x in MODELS[name][0].parameters()
    )


@EXPORT
def test_the_table_of_an_exported_network_is_the_one_that_was_written_by_hand(tmp_path):
    path, _ = exported(tmp_path, DIGITS, (1, 1, 8, 8))
    found = [(x.height, x.filter_height, x.channels, x.filters) for x in layers_of(f"onnx:{path}")]
    written = [(x.height, x.filter_height, x.channels, x.filters) for x in DIGITS_CNN]
    assert found == written


@EXPORT
def test_attention_multiplies_by_no_weights(tmp_path):
    path, _ = exported(tmp_path, *MODELS["attention"])
    first, scores, mix, last = layers_of(f"onnx:{path}")
    assert [x.weighted for x in (first, scores, mix, last)] == [True, False, False, True]
    assert (scores.copies, scores.height, scores.channels, scores.filters) == (12, 12, 8, 12)
    assert (last.height, last.channels, last.filters) == (96, 12, 6)  # turned to the right


@EXPORT
def test_open_axes_are_what_the_text_says(tmp_path):
    axes = {"input": {0: "batch", 1: "tokens"}}
    path, macs = exported(tmp_path, *MODELS["attention"], input_names=["input"], dynamic_axes=axes)
    told = table_of(f"onnx:{path},batch=3,tokens=12")
    assert told.macs == macs
    assert table_of(f"onnx:{path},batch=6,tokens=12").macs == 2 * macs


def test_an_open_axis_without_a_name_is_called_after_its_input(tmp_path):
    matmul = node("MatMul", ["x", "w"])
    path = saved(tmp_path, [matmul], {"x": floats(None, 4)}, {"w": (4, 5)})
    assert table_of(f"onnx:{path},x.0=6").macs == 6 * 4 * 5


def test_a_right_hand_side_that_several_share_is_one_copy(tmp_path):
    # grouped heads: 8 queries each for 2 keys
    inputs = {"q": floats(2, 8, 16, 64), "k": floats(2, 1, 64, 100)}
    (layer,) = layers_of(f"onnx:{saved(tmp_path, [node('MatMul', ['q', 'k'])], inputs)}")
    assert (layer.copies, layer.height, layer.channels, layer.filters) == (2, 8 * 16, 64, 100)


def test_experts_weights_are_copies(tmp_path):
    path = saved(tmp_path, [node("MatMul", ["x", "w"])], {"x": floats(16, 4)}, {"w": (3, 4, 5)})
    (layer,) = layers_of(f"onnx:{path}")
    assert (layer.copies, layer.height, layer.weights) == (3, 16, 3 * 4 * 5)


@pytest.mark.parametrize(("cell", "gates"), [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
def test_a_cell_is_its_inputs_and_what_it_keeps(tmp_path, cell, gates):
    weights = {"w": (1, gates * 8, 6), "r": (1, gates * 8, 8)}
    recurrent = node(cell, ["x", "w", "r"], hidden_size=8)
    table = table_of(f"onnx:{saved(tmp_path, [recurrent], {'x': floats(20, 2, 6)}, weights)}")
    assert table.macs == 20 * 2 * gates * 8 * (6 + 8)
    assert table.weights == gates * 8 * (6 + 8)


def test_rows_that_are_picked_are_looked_up_and_shared_with_the_head(tmp_path):
    nodes = [
        onnx.helper.make_node("Gather", ["w", "ids"], ["rows"]),
        onnx.helper.make_node("Transpose", ["w"], ["turned"]),
        node("MatMul", ["rows", "turned"]),
    ]
    inputs = {"ids": (onnx.TensorProto.INT64, (2, 7))}
    table = table_of(f"onnx:{saved(tmp_path, nodes, inputs, {'w': (50, 6)})}")
    (lookup,) = table.lookups
    assert (lookup.rows, lookup.width, lookup.picked, lookup.shared) == (50, 6, 14, True)
    assert (table.parameters, table.macs) == (50 * 6, 14 * 6 * 50)


def test_weights_of_eight_bits_are_weights(tmp_path):
    codes = onnx.numpy_helper.from_array(torch.zeros(4, 5, dtype=torch.int8).numpy(), "codes")
    scale = onnx.helper.make_tensor("scale", onnx.TensorProto.FLOAT, [], [0.5])
    nodes = [
        onnx.helper.make_node("Constant", [], ["codes"], value=codes),
        onnx.helper.make_node("Constant", [], ["scale"], value=scale),
        onnx.helper.make_node("DequantizeLinear", ["codes", "scale"], ["w"]),
        node("MatMul", ["x", "w"]),
    ]
    table = table_of(f"onnx:{saved(tmp_path, nodes, {'x': floats(3, 4)})}")
    assert (table.macs, table.weights) == (3 * 4 * 5, 4 * 5)


@pytest.mark.parametrize(
    ("left", "right", "macs"),
    [((4,), (4, 5), 20), ((3, 4), (4,), 12), ((4,), (4,), 4), ((2, 3, 4), (4, 5), 120)],
)
def test_vectors_are_products_of_one_row_or_column(tmp_path, left, right, macs):
    path = saved(tmp_path, [node("MatMul", ["x", "w"])], {"x": floats(*left)}, {"w": right})
    assert table_of(f"onnx:{path}").macs == macs


@pytest.mark.parametrize(("left", "turns_left"), [((3, 4), 0), ((4, 3), 1)])
@pytest.mark.parametrize(("right", "turns_right"), [((4, 5), 0), ((5, 4), 1)])
def test_a_gemm_may_turn_its_sides(tmp_path, left, turns_left, right, turns_right):
    gemm = node("Gemm", ["x", "w"], transA=turns_left, transB=turns_right)
    (layer,) = layers_of(f"onnx:{saved(tmp_path, [gemm], {'x': floats(*left)}, {'w': right})}")
    assert (layer.height, layer.channels, layer.filters) == (3, 4, 5)


@pytest.mark.parametrize(
    ("operator", "image", "weight", "macs"),
    [
        ("QLinearConv", (1, 2, 8, 8), (6, 2, 3, 3), 6 * 6 * 6 * 18),
        ("QLinearMatMul", (7, 2, 8), (8, 9), 7 * 2 * 8 * 9),
    ],
)
def test_a_quantised_operator_is_a_layer(tmp_path, operator, image, weight, macs):
    codes = onnx.TensorProto.INT8
    zeros = dict.fromkeys(("xz", "wz", "yz"), (codes, ()))
    path = saved(
        tmp_path,
        [
            onnx.helper.make_node(
                operator, ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"], ["codes"]
            ),
            node("Cast", ["codes"], to=onnx.TensorProto.FLOAT),
        ],
        {"x": (codes, image), "w": (codes, weight), **zeros},
        {"xs": (), "ws": (), "ys": ()},
    )
    assert table_of(f"onnx:{path}").macs == macs


def test_what_multiplies_constants_is_no_work(tmp_path):
    path = saved(
        tmp_path, [node("MatMul", ["a", "b"])], {"x": floats(1)}, {"a": (2, 3), "b": (3, 4)}
    )
    assert layers_of(f"onnx:{path}") == ()


def test_a_file_that_changed_is_read_again(tmp_path):
    matmul = node("MatMul", ["x", "w"])
    text = f"onnx:{saved(tmp_path, [matmul], {'x': floats(3, 4)}, {'w': (4, 5)})}"
    before = table_of(text).macs
    saved(tmp_path, [matmul], {"x": floats(3, 4)}, {"w": (4, 50)})
    assert table_of(text).macs == 10 * before


@pytest.mark.parametrize(
    ("operator", "inputs", "sizes", "problem", "hint"),
    [
        ("Einsum", {"x": floats(3, 4)}, "", "cannot be read as layers: Einsum", "plain operators"),
        ("MatMul", {"x": floats("n", 4)}, "", "axes without a size: n", "onnx:model.onnx,n=1"),
        ("MatMul", {"x": floats("rows", 4)}, ",row=3", "no open axis 'row'", "mean 'rows'?"),
        ("MatMul", {"x": floats("n", 4)}, ",n=0", "n is '0'", "did you mean 1?"),
        (
            "MatMul",
            {"x": floats(3, 6)},
            "",
            "shape of 'out' at 'MatMul0'",
            "do not match",
        ),
    ],
)
def test_a_model_that_cannot_be_read_is_told_with_what_would_mend_it(
    tmp_path, operator, inputs, sizes, problem, hint
):
    attributes = {"equation": "ij,jk->ik"} if operator == "Einsum" else {}
    one = node(operator, ["x", "w"], **attributes)
    path = saved(tmp_path, [one], inputs, {"w": (4, 5)})
    with pytest.raises(SpecError) as caught:
        layers_of(f"onnx:{path}{sizes}")
    assert problem in caught.value.problem
    assert hint in caught.value.hint


def test_a_shape_that_hangs_on_numbers_is_told_to_be_unknown(tmp_path):
    nodes = [
        onnx.helper.make_node("NonZero", ["x"], ["places"]),
        onnx.helper.make_node("Cast", ["places"], ["floats"], to=onnx.TensorProto.FLOAT),
        node("MatMul", ["w", "floats"]),
    ]
    path = saved(tmp_path, nodes, {"x": floats(3, 4)}, {"w": (5, 2)})
    with pytest.raises(SpecError, match="the shape of 'floats' at 'MatMul2' cannot be inferred"):
        layers_of(f"onnx:{path}")


@pytest.mark.parametrize("name", ["absent.onnx", "."])
def test_a_file_that_is_not_there_is_told(tmp_path, name):
    with pytest.raises(SpecError, match="cannot be read"):
        layers_of(f"onnx:{tmp_path / name}")


def test_a_model_of_no_edition_is_told(tmp_path):
    path = saved(tmp_path, [node("MatMul", ["x", "w"])], {"x": floats(3, 4)}, {"w": (4, 5)})
    model = onnx.load(str(path))
    del model.opset_import[:]
    onnx.save(model, str(path))
    with pytest.raises(SpecError, match="is not a complete model"):
        layers_of(f"onnx:{path}")


def test_a_function_of_the_models_own_is_written_out(tmp_path):
    path = saved(tmp_path, [node("MatMul", ["x", "w"])], {"x": floats(3, 4)}, {"w": (4, 5)})
    model = onnx.load(str(path))
    domains = [onnx.helper.make_opsetid("", 17)]
    inner = onnx.helper.make_node("MatMul", ["a", "b"], ["c"])
    model.functions.append(
        onnx.helper.make_function("own", "times", ["a", "b"], ["c"], [inner], domains)
    )
    model.opset_import.append(onnx.helper.make_opsetid("own", 1))
    model.graph.node[0].op_type, model.graph.node[0].domain = "times", "own"
    onnx.save(model, str(path))
    assert table_of(f"onnx:{path}").macs == 3 * 4 * 5


def test_weights_that_lie_beside_the_model_need_not_be_there(tmp_path):
    path = saved(tmp_path, [node("MatMul", ["x", "w"])], {"x": floats(3, 64)}, {"w": (64, 500)})
    onnx.save(onnx.load(str(path)), str(path), save_as_external_data=True, location="weights")
    (tmp_path / "weights").unlink()
    assert table_of(f"onnx:{path}").weights == 64 * 500


def test_a_file_that_is_no_model_is_told(tmp_path):
    path = tmp_path / "words.onnx"
    path.write_text("words")
    with pytest.raises(SpecError, match="is not an ONNX model"):
        layers_of(f"onnx:{path}")


def test_magika_multiplies_by_its_three_matrices(asset):
    file = asset("magika") / "magika" / "models" / "standard_v3_3" / "model.onnx"
    (axis,) = [
        place.dim_param
        for place in onnx.load(str(file)).graph.input[0].type.tensor_type.shape.dim
        if place.dim_param
    ]
    table = table_of(f"onnx:{file},{axis}=1")
    dims = json.loads(Path(shapes.__file__).with_name("shapes.json").read_text())["magika"]
    # 2,048 bytes each become 64 numbers of 257; 508 windows of 5 x 256; one vector of 512
    assert table.macs == 2048 * 257 * 64 + 508 * 5 * 256 * 512 + 512 * 214
    assert table.parameters == sum(torch.Size(shape).numel() for shape in dims.values())
