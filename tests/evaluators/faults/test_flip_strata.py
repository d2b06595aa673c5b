"""Stratified samples of flips: their intervals cover known rates, their estimates are unbiased."""

from __future__ import annotations

import numpy as np
import pytest

from dse.core.batch import Batch
from dse_evaluators.faults.bit_flips import BitFlips
from dse_evaluators.faults.flip_strata import (
    FlipStrata,
    allocate,
    allocate_by_pilot,
    pilot_size,
    stratify_flips,
)
from dse_evaluators.faults.proportions import stratified_proportion
from dse_evaluators.faults.protections import PROTECTIONS
from dse_evaluators.faults.stored_layer import StoredLayer
from tests.evaluators.faults.small_networks import weights_of, write_examples, write_network

HIGH = np.linspace(0, 1, 20) > 0.85
RATES = {
    "some high": np.where(HIGH, 0.8, 0.0),
    "smooth": 1 / (1 + np.exp(12 - np.arange(20.0))),
    "rare everywhere": np.full(20, 0.003),
    "one in the middle": np.where(np.arange(20) == 7, 0.3, HIGH),
    "arbitrary": np.random.default_rng(3).random(20),
}


def sample(rates, trials: int, rng: np.random.Generator):
    """Return an estimate as a campaign makes it, of strata with equal shares."""
    shares, sizes = np.full(20, 0.05), np.full(20, 10**6)
    nothing = np.zeros(0, dtype=np.int64)
    strata = FlipStrata(
        shares=shares,
        sizes=sizes,
        is_whole=True,
        _weights=nothing,
        _masks=nothing,
        _copies=nothing,
        _order=nothing,
    )
    pilot = pilot_size(strata, trials)
    counts = allocate(shares, sizes, pilot)
    counts = allocate_by_pilot(strata, rng.binomial(counts, rates), counts, trials - pilot)
    assert counts.sum() == trials - pilot
    return stratified_proportion(rng.binomial(counts, rates), counts, sizes, shares)


@pytest.mark.parametrize("name", RATES)
def test_intervals_of_stratified_samples_cover_known_rates(name):
    rng, rates = np.random.default_rng(1), RATES[name]
    found = [sample(rates, 400, rng) for _ in range(300)]
    covered = [one.low <= rates.mean() <= one.high for one in found]
    assert np.mean(covered) >= 0.93
    error = np.std([one.value for one in found])
    assert np.mean([one.value for one in found]) == pytest.approx(rates.mean(), abs=4 * error / 17)


def test_stratified_samples_vary_less_than_simple_ones_if_strata_tell_corruptions_apart():
    rng, rates = np.random.default_rng(2), RATES["some high"]
    values = [sample(rates, 400, rng).value for _ in range(300)]
    simple = np.sqrt(rates.mean() * (1 - rates.mean()) / 400)
    assert np.std(values) < simple / 2


def test_one_stratum_has_the_interval_of_clopper_and_pearson():
    """Newcombe: Two-Sided Confidence Intervals for the Single Proportion, 1998, table I, no. 5."""
    one = np.array([81])
    found = stratified_proportion(one, np.array([263]), np.array([10**9]), np.ones(1))
    assert (found.low, found.high) == pytest.approx((0.2527, 0.3676), abs=1e-3)


def test_census_of_all_flips_has_no_error():
    sizes = np.array([4, 6])
    found = stratified_proportion(np.array([4, 3]), sizes, sizes, np.array([0.2, 0.3]))
    assert found == pytest.approx((0.35, 0.35, 0.35, 0))


@pytest.mark.parametrize("protection", ["none", "range-zero", "duplicate", "parity"])
def test_strata_have_all_flips_that_change_what_is_read(protection):
    weight = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    stored, found = StoredLayer("bf16", weight), PROTECTIONS[protection]
    rng = np.random.default_rng(1)
    strata = stratify_flips(stored, found, stored.code.all, None, 10**6, rng)
    flips = strata.draw(strata.sizes, rng)
    values = stored.read(
        found, *(one[..., :1] for one in (flips.places, flips.masks, flips.copies))
    )
    bits = 16 + found.check_bits(stored.code)
    assert values[0] != stored.values.reshape(-1)[flips.places[0]]
    assert strata.shares.sum() == pytest.approx(len(flips.places) / (12 * bits))
    assert len(flips.places) > 12


def test_majority_leaves_no_flip_to_run():
    stored = StoredLayer("fp32", weights_of()[0])
    rng = np.random.default_rng(1)
    strata = stratify_flips(stored, PROTECTIONS["tmr"], stored.code.all, None, 100, rng)
    assert not len(strata.sizes)


def test_mean_estimate_over_seeds_is_the_rate_of_all_flips(tmp_path):
    weights = weights_of()
    options = {
        "model": write_network(tmp_path, weights),
        "data": write_examples(tmp_path, weights),
        "quality": "accuracy",
    }
    names = ("sdc_rate", "accuracy")
    whole = BitFlips(**options, trials=10_000).evaluate(Batch.of([{}])).columns
    seeds = Batch.of([{"seed": seed} for seed in range(40)])
    some = BitFlips(**options, trials=60).evaluate(seeds).columns
    for name in names:
        error = some[name].std() / np.sqrt(40)
        assert some[name].mean() == pytest.approx(whole[name][0], abs=3.5 * error)
    covered = (some["sdc_low"] <= whole["sdc_rate"]) & (whole["sdc_rate"] <= some["sdc_high"])
    assert covered.mean() >= 0.9
