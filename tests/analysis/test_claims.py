"""What a comparison claims, and how seldom it claims what is not so."""

import numpy as np
import pytest

from dse.analysis.comparison import ComparisonOptions, compare, shortfalls

BETTER = [[(1 + 0.01 * s, 1)] for s in range(8)]  # about 9 below (4, 4)
WORSE = [[(2 + 0.01 * s, 2)] for s in range(8)]  # about 4

ROUNDS = 200


def test_groups_of_the_same_seeds_are_compared_in_pairs(question) -> None:
    groups = [question.group("b", BETTER), question.group("w", WORSE)]
    assert all(claim.paired for claim in compare(groups).claims)


@pytest.mark.parametrize("first", [1, 100])
def test_groups_of_other_seeds_are_compared_as_they_are(question, first: int) -> None:
    groups = [question.group("b", BETTER), question.group("w", WORSE, first=first)]
    assert not any(claim.paired for claim in compare(groups).claims)


def test_pairs_are_found_by_seed_whatever_the_order(question) -> None:
    b, w = question.group("b", BETTER), question.group("w", WORSE)
    turned = w._replace(runs=tuple(reversed(w.runs)))
    assert compare([b, turned]).claims == compare([b, w]).claims


def test_who_is_better_is_claimed_in_every_indicator(question) -> None:
    told = compare([question.group("w", WORSE), question.group("b", BETTER)]).claims
    assert [claim.better for claim in told] == ["b"] * 4
    assert [claim.superiority for claim in told] == [0.0] * 4
    assert [claim.chance for claim in told] == [2 / 2**8] * 4
    assert [claim.corrected for claim in told] == [4 * 2 / 2**8] * 4


def test_the_difference_is_that_of_the_medians(question) -> None:
    (claim, *_) = compare([question.group("b", BETTER), question.group("w", WORSE)]).claims
    low, high = claim.interval
    assert claim.difference == pytest.approx(2.965 * 3 - 1.965 * 2)
    assert low < claim.difference < high


def test_fewer_indicators_need_less_correction(question) -> None:
    groups = [question.group("b", BETTER), question.group("w", WORSE)]
    (claim,) = compare(groups, ComparisonOptions(indicators=("hypervolume",))).claims
    assert claim.corrected == claim.chance


def test_two_studies_are_no_reason_for_a_claim(question) -> None:
    groups = [question.group("b", BETTER[:1]), question.group("w", WORSE[:1])]
    assert {(claim.least, claim.better) for claim in compare(groups).claims} == {(1.0, None)}


def test_studies_without_a_front_rank_behind_all_others(question) -> None:
    empty = question.group("e", [[]] * 8)
    told = compare([question.group("b", BETTER), empty], ComparisonOptions(at=1)).claims
    assert [claim.better for claim in told] == ["b"] * 4
    assert [claim.difference is None for claim in told] == [False, True, True, True]


@pytest.mark.parametrize(
    ("paired", "first"),
    [
        pytest.param(True, 0, id="pairs", marks=pytest.mark.proof),
        pytest.param(False, 50, id="samples", marks=pytest.mark.proof),
    ],
)
@pytest.mark.slow
def test_of_two_hundred_comparisons_of_equals_at_most_one_in_twenty_claims_anything(
    question, paired: bool, first: int
) -> None:
    rng = np.random.default_rng(2_024)
    found = [
        compare([question.chance("a", rng, 10), question.chance("b", rng, 10, first)]).claims
        for _ in range(ROUNDS)
    ]
    assert all(claim.paired == paired for told in found for claim in told)
    assert sum(any(claim.made for claim in told) for told in found) <= ROUNDS // 20


@pytest.mark.proof
def test_of_three_groups_of_equals_at_most_one_comparison_in_twenty_claims_anything(
    question,
) -> None:
    rng = np.random.default_rng(7)
    found = [compare([question.chance(name, rng, 12) for name in "abc"]).claims for _ in range(100)]
    assert sum(any(claim.made for claim in told) for told in found) <= 5


@pytest.mark.slow
def test_what_is_so_is_claimed_nearly_always(question) -> None:
    rng = np.random.default_rng(3)
    rounds = [
        (
            question.chance("a", rng, 10),
            question.group("b", (rng.random((10, 30, 2)) + 0.1).tolist()),
        )
        for _ in range(40)
    ]
    claimed = [compare(list(pair)).claims[0].better == "a" for pair in rounds]
    assert np.mean(claimed) > 0.9


def test_a_single_study_falls_short_by_its_number(question) -> None:
    groups = [question.group("base", [[(1, 1)]]), question.group("new", [[(1, 1.2)]])]
    comparison = compare(groups)  # 9 and 8.4: 6.7 % less
    assert len(shortfalls(comparison, 0.05)) == 1
    assert shortfalls(comparison, 0.07) == []


def test_a_better_study_falls_short_of_nothing(question) -> None:
    groups = [question.group("base", [[(2, 2)]]), question.group("new", [[(1, 1)]])]
    assert shortfalls(compare(groups), 0.0) == []


def test_groups_fall_short_only_where_a_difference_can_be_claimed(question) -> None:
    noisy = [[(1 + 0.3 * (s % 2), 1)] for s in range(8)]
    turned = [[(1 + 0.3 * (s % 2 == 0), 1 + 0.2 * (s in (0, 2)))] for s in range(8)]
    groups = [question.group("base", noisy), question.group("new", turned)]
    comparison = compare(groups)
    assert shortfalls(comparison, 0.0) == []
    assert (
        len(shortfalls(compare([question.group("b", BETTER), question.group("w", WORSE)]), 0.3))
        == 1
    )


def test_too_few_seeds_to_claim_anything_are_judged_by_their_medians(question) -> None:
    groups = [question.group("base", BETTER[:3]), question.group("new", WORSE[:3])]
    (sentence,) = shortfalls(compare(groups), 0.05)
    assert "new falls short of base: 55.6% less hypervolume" in sentence
