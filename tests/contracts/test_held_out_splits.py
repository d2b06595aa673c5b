"""Every registered evaluator with a test split keeps the laws of it, and a broken one is found."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.protocols import Evaluator, HasTestSplit
from dse.registry import load
from dse.testing.held_out_split_contract import HeldOutSplitContract
from dse_evaluators.workloads.assets import is_installed
from tests.contracts.test_evaluators import CASES

NAMES = (
    *("compression.recipe", "compression.post-training", "compression.retraining"),
    *("compression.width", "compression.sliced", "compression.layer-drop"),
    *("compression.early-exit", "compression.tuned-correction", "compression.onnx"),
)


QUICK = ("compression.post-training",)
PARAMS = [
    pytest.param(n, marks=getattr(pytest.mark, "slow" if n in QUICK else "proof")) for n in NAMES
]


class TestEveryTestSplit(HeldOutSplitContract):
    @pytest.fixture(scope="class", params=PARAMS)
    @classmethod
    def name(cls, request: pytest.FixtureRequest) -> str:
        for package in CASES[request.param].packages:
            pytest.importorskip(package)
        for asset in CASES[request.param].assets:
            if not is_installed(asset):
                pytest.skip(f"needs the asset {asset!r}: dse assets install {asset}")
        return request.param

    @pytest.fixture(scope="class")
    @classmethod
    def evaluator(cls, name: str) -> Evaluator:
        return load("evaluators", name)(**CASES[name].options)

    @pytest.fixture(scope="class")
    @classmethod
    def batch(cls, name: str) -> Batch:
        return Batch.of(CASES[name].designs)

    @pytest.fixture(scope="class")
    @classmethod
    def searched(cls, evaluator: Evaluator, batch: Batch) -> Metrics:
        return evaluator.evaluate(batch)

    @pytest.fixture(scope="class")
    @classmethod
    def tested(cls, evaluator: HasTestSplit, batch: Batch, searched: Metrics) -> Metrics:
        return evaluator.test_evaluator().evaluate(batch)

    @pytest.fixture
    def noisy(self, name: str) -> frozenset[str]:
        return frozenset(CASES[name].noisy)


def test_each_evaluator_that_has_a_test_split_is_checked():
    known = [name for name, case in CASES.items() if name.startswith("compression.")]
    able = [n for n in known if hasattr(load("evaluators", n), "test_evaluator")]
    assert sorted(able) == sorted(NAMES)


@dataclass(kw_only=True)
class Split:
    """Evaluator of a mean over examples; ``fault`` names the law that it breaks."""

    split: str = "search"
    failure: str = ""
    calls: list[int] = field(default_factory=list)

    reads = frozenset({"bits"})
    optional: frozenset[str] = frozenset()
    units: dict[str, str] = field(default_factory=dict)
    kind = "measured"
    version = "1"

    @property
    def provides(self) -> dict[str, Metric]:
        names = ["accuracy"]
        if self.split == "test":
            names += ["accuracy#0", "accuracy#1" if self.failure != "numbers" else "accuracy#2"]
        if self.split == "test" and self.failure == "metrics":
            names.append("loss")
        return {name: Metric(name) for name in names}

    def evaluate(self, batch: Batch) -> Metrics:
        shift = 0.1 if self.split == "test" and self.failure != "examples" else 0.0
        if self.failure == "state":
            shift += len(self.calls)
        if self.split == "test":
            self.calls.append(1)
        value = np.asarray(batch["bits"], dtype=float) / 10 + shift
        far = 5.0 if self.failure == "far" else 0.0
        columns = {
            "accuracy": value,
            "accuracy#0": value + 0.01 + far,
            "accuracy#1": value - 0.01 + far,
            "accuracy#2": value,
            "loss": value,
        }
        return Metrics(columns={name: columns[name] for name in self.provides})

    def test_evaluator(self) -> Split | None:
        if self.split == "test" and self.failure != "endless":
            return None
        return replace(self, split="test")


LAWS = HeldOutSplitContract()
BATCH = Batch.of([{"bits": 2.0}, {"bits": 4.0}])


def run_laws(failure: str) -> None:
    split = Split(failure=failure)
    searched = split.evaluate(BATCH)
    tested = split.test_evaluator().evaluate(BATCH)
    quiet: frozenset[str] = frozenset()
    LAWS.test_it_reads_the_same_inputs_and_provides_the_same_metrics(split)
    LAWS.test_it_measures_on_examples_that_the_search_does_not_use(searched, tested, quiet)
    LAWS.test_a_measurement_on_the_test_split_leaves_the_search_as_it_was(
        split, BATCH, searched, tested, quiet
    )
    LAWS.test_resamples_of_a_metric_are_numbered_and_lie_around_it(split, tested)
    LAWS.test_the_same_design_has_the_same_metrics_on_the_test_split(split, BATCH, tested, quiet)
    LAWS.test_the_evaluator_on_the_test_split_has_no_further_one(split)


def test_an_evaluator_that_keeps_the_laws_passes():
    run_laws("")


@pytest.mark.parametrize("failure", ["metrics", "examples", "state", "numbers", "far", "endless"])
def test_each_way_of_breaking_a_law_is_found(failure):
    with pytest.raises(AssertionError):
        run_laws(failure)
