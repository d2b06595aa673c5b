"""Metrics of evaluators that a study calls by their names in the version before."""

from __future__ import annotations

import pickle
import warnings

import pytest

from dse import Study
from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.errors import SpecError, SpecErrors
from dse.protocols import HasDeployedModel, ModelError, StatesModelErrors, find_test_evaluator
from dse.schema.study.former_names import keep_former_metrics
from dse.schema.study.plan import plan_of


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


SPACE = "space: queue\nparameters:\n  replicas: {ordinal: [1, 2]}\n"
QUEUE = """\
study: queue
space: space.yaml
evaluators:
  server:
    {use: clusters.serving-simulator, model: llama3-8b, device: h100-sxm, requests: 8, tp: 1, rate: 4 1/s,
     max_num_seqs: 8, budget: 2048, memory_share: 0.9, ttft_limit: 1 s}
objectives:
  - minimize: server.ttft_p99
  - maximize: server.device_goodput
optimizer: exhaustive
executor: serial
"""


def test_a_study_in_former_names_has_the_results_of_the_present_ones(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "space.yaml").write_text(SPACE)
    fronts = {}
    for word in ("ttft", "first_token"):
        path = tmp_path / f"{word}.yaml"
        path.write_text(QUEUE.replace("ttft", word).replace("study: queue", f"study: {word}"))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            study = Study.open(path)
        warned = [str(one.message) for one in caught]
        study.run()
        fronts[word] = [
            (trial.metrics[f"server.{word}_p99"], trial.metrics["server.device_goodput"])
            for trial in Study.load(word).trials
        ]
        assert all(any(name in text for text in warned) for name in NAMED[word]), warned
        assert len(warned) == len(NAMED[word])
    assert fronts["ttft"] == fronts["first_token"]


NAMED = {
    "ttft": [],
    "first_token": [
        "first_token.yaml:4: 'server.first_token_p99' is called 'server.ttft_p99' now",
        "first_token.yaml:4: 'first_token_limit' is called 'ttft_limit' now",
    ],
}


def test_an_option_under_both_of_its_names_is_a_mistake(tmp_path):
    (tmp_path / "space.yaml").write_text(SPACE)
    path = tmp_path / "study.yaml"
    path.write_text(QUEUE.replace("ttft_limit: 1 s", "ttft_limit: 1 s, first_token_limit: 2 s"))
    with pytest.raises(SpecErrors, match=r"study.yaml:4.*'first_token_limit' is the old name"):
        plan_of(path)
