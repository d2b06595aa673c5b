"""The six built-in networks, brought as a user would bring them, have the metrics they have by name.

Modules in files run the same kernels in the same order, so that their metrics are equal to the
last bit, and so are those of a file that onnxruntime runs in both cases. The other cases compute
something else, which the table states, and are equal within rounding.

``size`` counts the names of parameters, as they are stored; a model whose parameters have other
names is larger by the difference in length, and by nothing else.
"""

from __future__ import annotations

import pytest
import torch
from torch import nn

from dse.core.batch import Batch
from dse.errors import PluginError
from dse_evaluators.compression.recipe_evaluator import ByRecipe
from dse_evaluators.workloads.shapes import shapes_of
from tests.evaluators.compression import built_in_again as again

pytestmark = pytest.mark.slow

DESIGNS = [{"bits": "int8:channel"}, {"bits": "int4:channel"}]

EXACT = {
    "digits-cnn": lambda: again.images_again("digits-cnn"),
    "mnist-cnn": lambda: again.images_again("mnist-cnn"),
    "shakespeare-lm": again.characters_again,
    "movielens-dlrm": again.ratings_again,
    "minilm": lambda: again.words_again("search"),
}
ROUNDED = {
    # onnxruntime has convolutions of its own
    "digits-cnn": lambda folder: again.images_exported("digits-cnn", folder),
    "mnist-cnn": lambda folder: again.images_exported("mnist-cnn", folder),
    # words are padded to one length, and attention is written out
    "minilm": lambda _: again.sentences_again("search"),
    # onnxruntime computes the logarithm, numpy that of the built-in model
    "magika": again.files_exported,
}


def _metrics(designs, **options):
    """Return the metrics of designs, and the length of the parameters' names, part of the size."""
    made = ByRecipe(recipe="format {bits}", **options)
    found = made.evaluate(Batch.of(designs))
    assert not found.failures
    columns = {name: column.tolist() for name, column in found.columns.items()}
    return columns, len("\n".join(shapes_of(made._model)).encode())


def _options(make, *arguments):
    try:
        return make(*arguments)
    except PluginError as error:
        pytest.skip(error.problem)


def _cheap_first(names, costly):
    """Return the names as parameters; those that take longest are left to proofs."""
    return [
        pytest.param(name, marks=pytest.mark.proof) if name in costly else name for name in names
    ]


@pytest.mark.parametrize("name", _cheap_first(EXACT, {"mnist-cnn", "minilm", "movielens-dlrm"}))
def test_model_in_files_has_the_metrics_of_the_name_to_the_last_bit(name, tmp_path):
    own, _ = _metrics(DESIGNS, **again.exported(name, tmp_path, _options(EXACT[name])))
    built_in, _ = _metrics(DESIGNS, model=name)
    assert own == built_in


def test_own_onnx_file_has_the_metrics_of_the_name_to_the_last_bit(tmp_path):
    own, _ = _metrics(DESIGNS, **_options(again.shares_exported, tmp_path))
    built_in, _ = _metrics(DESIGNS, model="magika")
    assert own == built_in


@pytest.mark.parametrize("name", _cheap_first(ROUNDED, ROUNDED.keys() - {"digits-cnn"}))
def test_file_has_the_metrics_of_the_name_up_to_rounding(name, tmp_path):
    designs = DESIGNS[1:] if name == "minilm" else DESIGNS
    own, own_names = _metrics(designs, **_options(ROUNDED[name], tmp_path))
    built_in, names = _metrics(designs, model=name)
    assert own.keys() == built_in.keys()
    assert own["bits_per_weight"] == built_in["bits_per_weight"]
    sizes = [size - own_names + names for size in own["size"]]
    constants = 500 if name == "magika" else 0  # numbers of its graph, such as 0.5
    assert sizes == pytest.approx(built_in["size"], rel=0, abs=constants)
    for metric in own.keys() - {"bits_per_weight", "size"}:
        assert own[metric] == pytest.approx(built_in[metric], rel=1e-4, abs=1e-9), metric


class Scaled(nn.Module):
    """A layer whose outputs are multiplied by a learnt number without axes."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(3, 2)
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.linear(inputs) * self.scale


def test_parameter_without_axes_is_measured_and_read_back_as_it_was():
    from dse_evaluators.compression.model_layers import write_model
    from dse_evaluators.compression.operators.bundle import unbundle_layers
    from dse_evaluators.compression.operators.record import Record

    data = (torch.randn(60, 3, generator=torch.Generator().manual_seed(0)), torch.arange(60) % 2)
    made = ByRecipe(model=Scaled(), data=data, quality="accuracy", recipe="format int8:channel")
    assert not made.evaluate(Batch.of([{}])).failures
    content = write_model(made._model, {"linear.weight": "format int8:channel"})
    scale = unbundle_layers(Record.from_bytes(content))["scale"]
    assert (scale.shape, float(scale)) == ((), 2.0)
