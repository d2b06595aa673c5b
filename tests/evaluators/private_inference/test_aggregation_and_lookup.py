"""Recovery of participations, and the published figures of secure lookup tables."""

from __future__ import annotations

import pytest

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.private_inference.aggregation import Aggregation
from dse_evaluators.private_inference.secure_lookup import SecureLookup


def recovery(**design):
    found = Aggregation(repeats=2).evaluate(Batch.of([{"users": 30, "window": 2, **design}]))
    return found.columns["recovery"][0]


@pytest.mark.parametrize("rounds", [60, 80, 120])
def test_as_many_windows_as_users_reveal_every_participation(rounds):
    assert recovery(rounds=rounds) == 1.0


def test_half_as_many_windows_do_not():
    assert 0.75 < recovery(rounds=30) < 0.93


def test_noise_and_wider_windows_hide_participations():
    assert recovery(rounds=80, noise=20.0) < recovery(rounds=80, noise=5.0) < 1.0
    assert recovery(rounds=80, window=8) < recovery(rounds=80, window=4) < 1.0


def test_more_users_than_rounds_have_a_reason():
    found = Aggregation().evaluate(Batch.of([{"users": 30, "rounds": 20, "window": 2}]))
    assert found.failures[0].reason == "30 users, and sums of rank 20 at most"


def lookup(**design):
    found = SecureLookup(**design.pop("options", {})).evaluate(Batch.of([design]))
    return {name: column[0] for name, column in found.columns.items()}


def test_eight_bits_take_two_bytes_and_280_to_560_times_less_than_garbled_circuits():
    table, garbled = lookup(bits=8), lookup(bits=8, method="garbled-circuit")
    assert table["traffic"] == 2.0
    assert 280 <= garbled["traffic"] / table["traffic"] <= 560


def test_calls_of_a_network_are_the_outputs_of_its_layers():
    assert lookup(bits=4, options={"workload": "digits-cnn"})["calls"] == (
        64 * 32 + 64 * 64 + 16 * 64 + 128 + 10
    )


def test_storage_above_the_limit_has_a_reason():
    found = SecureLookup(most_storage=100.0).evaluate(Batch.of([{"bits": 8}]))
    assert found.failures[0].reason == "a party stores more than 100 B"


def test_wrong_bits_are_refused():
    with pytest.raises(SpecError, match="bits"):
        SecureLookup(bits=1)
