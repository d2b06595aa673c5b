"""Metrics of evaluators that a study calls by their names in the version before."""

from __future__ import annotations

import pickle

import pytest

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.errors import SpecError
from dse.protocols import HasDeployedModel, ModelError, StatesModelErrors, find_test_evaluator
from dse.schema.study.former_names import keep_former_metrics


class Server:
    """Server whose metric ``ttft`` was called ``first_token``."""

    reads = frozenset({"rows"})
    optional: frozenset[str] = frozenset()
    units: dict[str, str] = {}
    provides = {name: Metric(name=name, unit="s", goal="minimize") for name in ("ttft", "tpot")}
    kind = "modelled"
    version = "2"
    former_metrics = {"first_token": "ttft", "first_token_p99": "ttft_p99"}

    def evaluate(self, batch: Batch) -> Metrics:
        return Metrics(
            columns={"ttft": 2 * batch["rows"], "tpot": batch["rows"]},
            undefined={"ttft": {0: "no token"}},
        )

    def model_errors(self, batch: Batch):
        return {"ttft": [ModelError("held out", 0.1)] * len(batch)}

    def test_evaluator(self) -> Server | None:
        return Server()


STUDY = {
    "question": "is server.first_token what counts?",
    "objectives": [{"minimize": "server.first_token@chat"}, {"minimize": "myserver.ttft"}],
    "evaluators": {"cost": {"bind": {"first": "server.tpot"}}},
}


def test_an_evaluator_keeps_the_names_that_a_study_uses():
    kept, names = keep_former_metrics("server", Server(), STUDY)
    kept = pickle.loads(pickle.dumps(kept))
    batch = Batch.of([{"rows": 3}])
    metrics = kept.evaluate(batch)
    assert names == {"server.first_token": "server.ttft"}
    assert {name: metric.name for name, metric in kept.provides.items()} == {
        "first_token": "first_token",
        "tpot": "tpot",
    }
    assert {name: column[0] for name, column in metrics.columns.items()} == {
        "first_token": 6,
        "tpot": 3,
    }
    assert metrics.undefined == {"first_token": {0: "no token"}}
    assert isinstance(kept, StatesModelErrors)
    assert not isinstance(kept, HasDeployedModel)
    assert kept.model_errors(batch)["first_token"][0].mean == 0.1
    assert find_test_evaluator(kept).provides.keys() == kept.provides.keys()


def test_an_evaluator_is_unchanged_without_former_names():
    study = {**STUDY, "objectives": ["server.ttft_p99", "my.server.first_token"]}
    server = Server()
    assert keep_former_metrics("server", server, study) == (server, {})


def test_former_and_present_names_do_not_mix():
    study = {**STUDY, "constraints": ["server.ttft <= 2 s"]}
    with pytest.raises(SpecError, match=r"server.first_token is the former .* server.ttft a pres"):
        keep_former_metrics("server", Server(), study)
