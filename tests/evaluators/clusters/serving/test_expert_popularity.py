"""Unequal popularity of experts in ``clusters.serving``."""

import numpy as np
import pytest

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.clusters.serving.expert_popularity import busiest_of_groups, selection_chances
from dse_evaluators.clusters.serving.serving import Serving

PLAN = {"tp": 8, "replicas": 1, "weight_format": "fp8", "kv_format": "fp8"}


def token_s(popularity, batch, ep=1):
    model = Serving(model="qwen3-235b-a22b", device="h200-sxm", popularity=popularity)
    return float(model.evaluate(Batch.of([{**PLAN, "batch": batch, "ep": ep}])).columns["tpot"][0])


@pytest.mark.parametrize("exponent", [0.0, 1.0, 1.01, 1.2])
def test_a_token_selects_k_experts_on_average(exponent):
    chances = selection_chances(256, 8, exponent)
    assert chances.sum() == pytest.approx(8)
    assert (chances > 0).all()
    assert (chances < 1).all()


def test_with_exponent_0_all_experts_are_equally_popular():
    assert np.array_equal(selection_chances(128, 8, 0.0), np.full(128, 8 / 128))


@pytest.mark.parametrize("groups", [2, 4, 16])
def test_the_busiest_group_is_that_of_random_placements(groups):
    chances, rng = selection_chances(256, 8, 1.01), np.random.default_rng(0)
    sums = [rng.permutation(chances).reshape(groups, -1).sum(axis=1).max() for _ in range(4000)]
    drawn = np.mean(sums) * groups / 8
    assert float(busiest_of_groups(chances, np.array(groups))) == pytest.approx(
        drawn, rel=0.04
    )  # sums of few are skewed


def test_one_group_and_equally_popular_experts_have_no_imbalance():
    assert busiest_of_groups(selection_chances(64, 4, 1.2), np.array([1.0])) == 1
    assert busiest_of_groups(selection_chances(64, 4, 0.0), np.array([8.0])) == 1


def test_unequal_popularity_saves_reads_between_one_sequence_and_many():
    assert token_s(1.01, 1) == pytest.approx(token_s(0.0, 1))
    assert token_s(1.01, 16) < 0.95 * token_s(0.0, 16)


def test_unequal_popularity_costs_more_with_expert_parallelism():
    alone = token_s(1.01, 64) / token_s(0.0, 64)
    parallel = token_s(1.01, 64, ep=8) / token_s(0.0, 64, ep=8)
    assert parallel > alone


def test_popularity_of_a_dense_model_is_refused():
    with pytest.raises(SpecError, match="popularity of a model without experts"):
        Serving(model="llama3-70b", device="h200-sxm", popularity=1.01)
