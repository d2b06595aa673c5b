"""Optional capabilities of evaluators with fixed inputs or replicates."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from typer.testing import CliRunner

from dse.cli.app import app
from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.protocols import (
    DeployedModel,
    HasDeployedModel,
    ModelError,
    StatesModelErrors,
    find_test_evaluator,
)
from dse.schema.models import ReplicatesSpec
from dse.schema.study.fixed_inputs import FixedInputs
from dse.schema.study.repeats import Replicated


class Sum:
    """Sum of its inputs, with an offset for the test split."""

    reads = frozenset({"bits", "seed"})
    optional: frozenset[str] = frozenset()
    units: dict[str, str] = {}
    provides = {"loss": Metric(name="loss", unit="1", goal="minimize")}
    kind = "modelled"
    version = "1"

    def __init__(self, offset: float = 0.0) -> None:
        self.offset = offset

    def evaluate(self, batch: Batch) -> Metrics:
        total = batch["bits"] + batch["seed"] + self.offset
        return Metrics(columns={"loss": total})


class Capable(Sum):
    """The same with every capability that takes a design."""

    def test_evaluator(self) -> Sum:
        return Sum(offset=100.0)

    def deployed_model(self, design):
        return DeployedModel(tensors={}, size_metric=f"{design['bits']} {design['seed']}")

    def model_errors(self, batch: Batch):
        return {"loss": [ModelError("held out", float(s)) for s in batch["seed"]]}


WRAPPED = {
    "fixed": (lambda one: FixedInputs(one, {"seed": 7}), 7, 7.0),
    "replicated": (lambda one: Replicated(one, ReplicatesSpec(count=3)), 0, 1.0),
    "both": (
        lambda one: Replicated(FixedInputs(one, {"bits": 4}), ReplicatesSpec(count=3)),
        0,
        1.0,
    ),
}


@pytest.mark.parametrize(("wrap", "seed", "mean"), WRAPPED.values(), ids=WRAPPED)
def test_a_wrapped_evaluator_keeps_its_capabilities(wrap, seed, mean):
    batch = Batch.of([{"bits": 4}, {"bits": 4}])
    wrapped = pickle.loads(pickle.dumps(wrap(Capable())))  # as executors pass it on
    on_test = find_test_evaluator(wrapped)
    np.testing.assert_allclose(wrapped.evaluate(batch).columns["loss"], 4 + mean)
    np.testing.assert_allclose(on_test.evaluate(batch).columns["loss"], 104 + mean)
    assert find_test_evaluator(on_test) is None
    assert wrapped.deployed_model({"bits": 4}).size_metric == f"4 {seed}"
    assert [one.mean for one in wrapped.model_errors(batch)["loss"]] == [seed, seed]


@pytest.mark.parametrize(("wrap", "seed", "mean"), WRAPPED.values(), ids=WRAPPED)
def test_a_wrapped_evaluator_gets_no_capability(wrap, seed, mean):
    wrapped = wrap(Sum())
    assert not isinstance(wrapped, HasDeployedModel)
    assert not isinstance(wrapped, StatesModelErrors)
    assert find_test_evaluator(wrapped) is None


def test_a_replicated_program_that_is_not_there_is_refused_before_a_run(tmp_path):
    (tmp_path / "space.yaml").write_text("space: s\nparameters:\n  rows: {ordinal: [1, 2]}\n")
    (tmp_path / "study.yaml").write_text(
        "study: s\nspace: space.yaml\nevaluators:\n  board:\n    use: command\n"
        "    run: [no-such-program]\n    reads: [rows, seed]\n    metrics: {time: s}\n"
        "    replicates: {count: 2, seed_input: seed}\nobjectives:\n  - minimize: board.time\n"
    )
    shown = CliRunner().invoke(app, ["check", str(tmp_path / "study.yaml")])
    assert shown.exit_code != 0
    assert "no-such-program" in shown.output
