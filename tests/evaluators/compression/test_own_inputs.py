"""Models with several inputs get each by its name, as modules and as ONNX files."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from dse import Study
from dse.errors import DseError, EvaluationError
from dse_evaluators.workloads.own.named_model import model_ref
from dse_evaluators.workloads.workload import Signals
from tests.evaluators.compression.own_models import write_study

NET = """
import torch
from tests.evaluators.compression.test_own_inputs import TwoInputs

def make():
    return TwoInputs()

def data():
    from tests.evaluators.compression.test_own_inputs import arrays
    given = arrays()
    targets = given.pop("targets")
    return {"inputs": given, "targets": targets}
"""


class TwoInputs(nn.Module):
    """Sum of a token's embedding and of a projection of numbers."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.table = nn.Embedding(7, 4)
        self.numbers = nn.Linear(3, 4)
        self.head = nn.Linear(4, 2)

    def forward(self, ids: Tensor, features: Tensor) -> Tensor:
        signal = self.table(ids) + self.numbers(features)
        return self.head(torch.relu(signal))


def arrays() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "features": rng.normal(size=(60, 3)).astype(np.float32),
        "ids": rng.integers(0, 7, 60),
        "targets": rng.integers(0, 2, 60),
    }


@pytest.fixture
def folder(tmp_path):
    np.savez(tmp_path / "data.npz", **arrays())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            TwoInputs(),
            (torch.zeros(2, dtype=torch.int32), torch.zeros(2, 3)),
            str(tmp_path / "net.onnx"),
            dynamo=False,
            input_names=["ids", "features"],
            dynamic_axes={"ids": {0: "n"}, "features": {0: "n"}},
        )
    return tmp_path


def _data(folder, *names):
    return {"file": str(folder / "data.npz"), "inputs": list(names)}


def test_file_and_module_of_two_inputs_give_equal_outputs_and_calibration(folder):
    data = _data(folder, "features", "ids")
    file = model_ref(str(folder / "net.onnx"), data, "accuracy", runs=True).make()
    module = model_ref(TwoInputs(), data, "accuracy", runs=True).make()
    ours, theirs = (one.outputs(one.parameters, "test", Signals()) for one in (file, module))
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
    seen, wanted = file.calibration(), module.calibration()
    name = next(name for name in seen if seen[name].shape[1] == 3)
    np.testing.assert_array_equal(seen[name], wanted["numbers.weight"])


def test_order_of_the_names_does_not_matter(folder):
    outputs = []
    for names in (("ids", "features"), ("features", "ids")):
        made = model_ref(TwoInputs(), _data(folder, *names), "accuracy", runs=True).make()
        outputs.append(made.outputs(made.parameters, "test", Signals()))
    np.testing.assert_array_equal(*outputs)


def test_functions_of_a_file_run_in_a_study(tmp_path):
    (tmp_path / "net.py").write_text(NET)
    options = 'model: {python: "net.py:make"}, data: {python: "net.py:data"}, quality: accuracy'
    study = Study.open(write_study(tmp_path, options), storage="memory://")
    study.run()
    assert {one.failure for one in study.engine.finished} == {None}


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["ids"], "has the inputs ids, features, but the data has ids"),
        (["ids", "featurs"], "did you mean 'features'"),
        (["ids", "targets"], "but the data has ids, targets"),
        ([], "differ in the number of examples: none"),
    ],
)
def test_unfit_names_of_inputs_are_refused_before_a_run(names, words, folder):
    with pytest.raises(DseError) as found:
        model_ref(str(folder / "net.onnx"), _data(folder, *names), "accuracy", runs=True)
    assert words in str(found.value)


def test_single_input_without_a_name_is_refused_for_two(folder):
    data = (arrays()["features"], arrays()["targets"])
    with pytest.raises(DseError, match="has the inputs ids, features, but the data has one"):
        model_ref(str(folder / "net.onnx"), data, "accuracy", runs=True)


def test_inputs_of_different_lengths_are_refused(folder):
    given = {"ids": np.zeros(60, dtype=int), "features": np.zeros((59, 3))}
    with pytest.raises(DseError, match="ids: 60, features: 59"):
        model_ref(TwoInputs(), (given, arrays()["targets"]), "accuracy", runs=True)


def test_module_without_an_argument_of_that_name_fails_with_it(folder):
    given = {"tokens": arrays()["ids"], "features": arrays()["features"]}
    made = model_ref(TwoInputs(), (given, arrays()["targets"]), "accuracy", runs=True).make()
    with pytest.raises(EvaluationError, match="unexpected keyword argument 'tokens'"):
        made.outputs(made.parameters, "test", Signals())


def test_next_tokens_are_no_targets_of_several_inputs():
    given = {"ids": np.arange(240).reshape(60, 4), "mask": np.ones((60, 4))}
    with pytest.raises(DseError, match="loss needs targets"):
        model_ref(TwoInputs(), {"inputs": given}, "loss", runs=True)
