"""Standard errors on the test split: bootstrap resamples of the examples, paired over designs."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from dse import Space, Study
from dse.core.batch import Batch
from dse_evaluators.compression.recipe_evaluator import ByRecipe
from dse_evaluators.workloads.judging import accuracy, auc, cross_entropy_nat
from dse_evaluators.workloads.resampling import RESAMPLES, expand_examples, resample_quality

RNG = np.random.default_rng(3)
COUNT = 400


class Given:
    """Workload whose outputs are given: two classes, and ``each`` rows for an example."""

    def __init__(self, labels, each=1):
        self.labels, self.each = labels, each

    def count_examples(self, split):
        assert split == "test"
        return len(self.labels) // self.each

    def quality(self, outputs, reference, split, chosen=None):
        rows = expand_examples(chosen, len(outputs), self.count_examples(split))
        ours, labels = outputs[rows], self.labels[rows]
        return {
            "accuracy": accuracy(ours, labels),
            "loss": cross_entropy_nat(ours, labels),
            "auc": auc(ours[:, 1] - ours[:, 0], labels),
        }


@pytest.fixture
def drawn():
    labels = RNG.integers(0, 2, COUNT)
    logits = RNG.normal(size=(COUNT, 2)).astype(np.float32)
    logits[np.arange(COUNT), labels] += 1
    return labels, logits


def test_the_error_of_an_accuracy_is_that_of_a_binomial_share(drawn):
    labels, logits = drawn
    found = resample_quality(Given(labels), logits, logits, "test")
    share = accuracy(logits, labels)
    assert len(found["accuracy"]) == RESAMPLES
    assert found["accuracy"].std(ddof=1) == pytest.approx(
        math.sqrt(share * (1 - share) / COUNT), rel=0.2
    )


def test_the_error_of_an_area_under_the_curve_is_that_of_hanley_and_mcneil(drawn):
    labels, logits = drawn
    found = resample_quality(Given(labels), logits, logits, "test")["auc"]
    area = auc(logits[:, 1] - logits[:, 0], labels)
    ones, zeros = labels.sum(), (1 - labels).sum()
    first, second = area / (2 - area), 2 * area**2 / (1 + area)
    variance = area * (1 - area) + (ones - 1) * (first - area**2) + (zeros - 1) * (second - area**2)
    assert found.std(ddof=1) == pytest.approx(math.sqrt(variance / (ones * zeros)), rel=0.25)


def test_a_mean_over_examples_is_resampled_like_any_other_metric(drawn):
    labels, logits = drawn
    workload = Given(labels)
    found = resample_quality(workload, logits, logits, "test")
    draws = np.random.default_rng(0).integers(0, COUNT, (RESAMPLES, COUNT))
    whole = [workload.quality(logits, logits, "test", chosen) for chosen in draws[:5]]
    assert found["loss"][:5] == pytest.approx([one["loss"] for one in whole])
    assert found["auc"][:5] == pytest.approx([one["auc"] for one in whole])


def test_positions_of_a_sequence_are_drawn_together(drawn):
    labels, logits = drawn
    repeated, same = np.repeat(labels, 4), np.repeat(logits, 4, axis=0)
    alone = resample_quality(Given(repeated), same, same, "test")["loss"].std()
    together = resample_quality(Given(repeated, each=4), same, same, "test")["loss"].std()
    assert together == pytest.approx(2 * alone, rel=0.25)


def test_a_difference_of_two_designs_is_more_certain_than_each_of_them(drawn):
    labels, logits = drawn
    moved = logits + RNG.normal(scale=0.05, size=logits.shape).astype(np.float32)
    one = resample_quality(Given(labels), logits, logits, "test")["loss"]
    other = resample_quality(Given(labels), moved, logits, "test")["loss"]
    assert (one - other).std() < 0.2 * one.std()


def test_an_evaluator_on_its_test_split_has_no_other():
    searched = ByRecipe(model="digits-cnn", recipe="format {bits}")
    held_out = searched.test_evaluator()
    assert held_out.reads == searched.reads
    assert held_out.provides.keys() > searched.provides.keys()
    assert (
        ByRecipe(model="digits-cnn", recipe="format {bits}", split="test").test_evaluator() is None
    )


def test_a_study_of_an_own_model_ends_with_its_front_on_the_test_examples():
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(300, 6)).astype(np.float32)
    weight = np.array([-2.0, -1.1, 0.9, 0.5, 0.2, -0.1], dtype=np.float32)
    targets = (inputs @ weight + rng.normal(size=300) < 0).astype(np.int64)
    net = nn.Sequential(nn.Linear(6, 2, bias=False))
    net.requires_grad_(requires_grad=False)
    net[0].weight.data.copy_(torch.tensor(np.stack([weight, -weight])))
    study = Study(
        "own",
        Space({"bits": ["keep", "format int8:channel", "format ternary"]}),
        evaluators={
            "q": {
                "use": "compression.recipe",
                "model": net,
                "data": (inputs, targets),
                "quality": ["accuracy", "auc"],
                "recipe": "{bits}",
            }
        },
        maximize=["q.accuracy", "q.auc"],
        minimize="q.size",
        optimizer="exhaustive",
        storage="memory://",
    )
    study.run()
    judged = study.front.judged
    assert judged.is_paired
    assert judged.is_compared
    assert judged.depends == (False, True, True)
    held_out = ByRecipe(
        model=net,
        data=(inputs, targets),
        quality=["accuracy", "auc"],
        recipe="{bits}",
        split="test",
    )
    expected = held_out.evaluate(Batch.of([dict(t.design) for t in study.front]))
    assert [row.values[1] for row in judged.rows] == pytest.approx(expected.columns["accuracy"])
