from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dse.core.batch import Batch
from dse.core.expressions.parser import parse
from dse.core.metric import Metrics
from dse.core.parameter import Choice, Real
from dse.core.space import DesignSpace
from dse.optimizers.bayesian.conditional_fronts import ConditionalFrontCache
from dse.optimizers.bayesian.measured_settings import MeasuredSplit
from dse.optimizers.grey_box import GreyBox
from dse.optimizers.separable.additive_space import build_additive_space
from dse.optimizers.separable.predicted_front import PredictedFront
from dse.optimizers.separable.separable_model import SeparableModel
from dse.testing.known import Known, played, problem_of
from dse.testing.optimizer_contract import OptimizerContract
from tests.optimizers.quantized_layers import (
    LAYERS,
    SENSITIVITIES,
    SPACE,
    WIDTHS,
    noises,
    quantized,
    total,
)


def best_in_the_middle(parts: np.ndarray) -> np.ndarray:
    """Return a loss that is lowest with four bits in each layer, whatever their noise."""
    four = np.abs(parts / SENSITIVITIES - noises(np.array(4.0))) < 1e-9
    return np.asarray(np.where(four, 0.0, SENSITIVITIES).sum(axis=1))


class TestWithDeclaredParts(OptimizerContract):
    @pytest.fixture
    def make(self):
        return GreyBox

    @pytest.fixture
    def known(self) -> Known:
        return quantized(total)


def model_of(known: Known) -> SeparableModel:
    found = SeparableModel.of(known.problem, MeasuredSplit(problem=known.problem))
    assert isinstance(found, SeparableModel)
    return found


def test_a_declared_sum_needs_fewer_measurements() -> None:
    declared, plain = (quantized(total, declared=one) for one in (True, False))
    found = declared.share(played(declared, GreyBox(declared.problem), 18))
    without = plain.share(played(plain, GreyBox(plain.problem, find_sums=False), 18))
    assert found > 0.985
    assert without < found - 0.02


def test_the_first_designs_have_all_features_at_their_least_and_at_their_largest() -> None:
    known = quantized(total)
    first = GreyBox(known.problem).ask(2)
    assert [set(design.values()) for design in first] == [{8}, {2}]


def test_the_ends_are_left_out_once_their_values_are_known() -> None:
    known = quantized(total)
    drawn = SPACE.sample(60, np.random.default_rng(1))
    assert not len(model_of(known).open_ends(drawn))


def test_a_wrong_declaration_is_dropped_and_reported() -> None:
    known = quantized(best_in_the_middle)
    optimizer = GreyBox(known.problem)
    designs = SPACE.sample(60, np.random.default_rng(3)).designs()
    optimizer.tell(known.finished(designs))
    optimizer.ask(1)
    texts = [event.text for event in optimizer.events() if event.kind == "model"]
    assert len(texts) == 1
    assert texts[0].startswith("loss is learnt as a Gaussian process without the declared terms")


def test_a_right_declaration_is_kept_and_reported() -> None:
    known = quantized(total)
    optimizer = GreyBox(known.problem)
    designs = SPACE.sample(30, np.random.default_rng(3)).designs()
    optimizer.tell(known.finished(designs))
    optimizer.ask(1)
    texts = [event.text for event in optimizer.events() if event.kind == "model"]
    assert len(texts) == 1
    assert texts[0].startswith("loss is learnt as a sum of terms: the leave-one-out log density")


def test_a_resumed_study_asks_what_an_uninterrupted_one_asks() -> None:
    known = quantized(total)
    optimizer = GreyBox(known.problem)
    trials = played(known, optimizer, 14)
    resumed = GreyBox(known.problem)
    resumed.tell(trials)
    assert resumed.ask(1) == optimizer.ask(1)


def test_terms_that_a_rule_couples_are_one_term() -> None:
    space = DesignSpace(
        parameters=tuple(Choice(name=name, values=WIDTHS) for name in "abcd"),
        constraints=(parse("a >= b"),),
    )

    def truth(batch: Batch) -> Metrics:
        return Metrics(columns={"loss": sum(batch[name].astype(float) for name in "abcd")})

    problem = problem_of(space, {"loss": "measured"}, {"loss": "minimize"}, truth)
    groups = [frozenset({name}) for name in "abcd"]
    found = build_additive_space(problem, MeasuredSplit(problem=problem), groups)
    assert [sorted(term.names) for term in found.terms] == [["a", "b"], ["c"], ["d"]]
    assert [term.count for term in found.terms] == [15, 5, 5]
    drawn = space.sample(20, np.random.default_rng(2))
    assert found.designs(found.rows_of(drawn)).designs() == drawn.designs()


def test_parts_with_real_parameters_are_ignored_and_the_reason_reported() -> None:
    known = quantized(total)
    space = DesignSpace(parameters=tuple(Real(name=name, low=2.0, high=8.0) for name in LAYERS))
    known = replace(known, problem=replace(known.problem, space=space))
    optimizer = GreyBox(known.problem)
    optimizer.tell(known.finished(optimizer.ask(2)))
    (event,) = optimizer.events()
    assert event.text == "declared terms are ignored: bits[0] is a real parameter: give it steps"


def test_a_sum_of_modelled_losses_is_recognised_as_exact() -> None:
    known = quantized(total)
    split = MeasuredSplit(problem=known.problem)
    front_cache = ConditionalFrontCache(known.problem, split)
    contexts = PredictedFront(model_of(known).space, front_cache).contexts
    assert [context.exact for context in contexts] == [True]


def test_parts_without_features_are_learnt_as_effects_of_their_values() -> None:
    known = quantized(best_in_the_middle)
    source = known.problem.sources["loss"]
    assert source.separable is not None
    source = replace(source, separable=replace(source.separable, by=""))
    sources = {**known.problem.sources, "loss": source}
    known = replace(known, problem=replace(known.problem, sources=sources))
    optimizer = GreyBox(known.problem)
    optimizer.tell(known.finished(SPACE.sample(40, np.random.default_rng(3)).designs()))
    for _ in range(3):
        (design,) = optimizer.ask(1)
        optimizer.tell(known.finished([design]))
    (event,) = optimizer.events()
    assert event.text.startswith("loss is learnt as a sum of terms: the leave-one-out log density")
    assert sum(value == 4 for value in design.values()) >= 3


def test_a_sum_is_found_without_a_declaration_and_reported_with_both_scores() -> None:
    known = quantized(total, declared=False)
    found, without = GreyBox(known.problem), GreyBox(known.problem, find_sums=False)
    shares = [known.share(played(known, optimizer, 22)) for optimizer in (found, without)]
    assert shares[0] > shares[1] + 0.01
    (event,) = (event for event in found.events() if event.kind == "model")
    assert event.text.startswith("loss is learnt as a sum of terms: the leave-one-out log density")
    assert not [event for event in without.events() if event.kind == "model"]


def test_a_sum_is_found_without_any_modelled_feature() -> None:
    known = quantized(total, declared=False)
    sources = {name: one for name, one in known.problem.sources.items() if name != "noise"}
    known = replace(known, problem=replace(known.problem, sources=sources))
    optimizer = GreyBox(known.problem)
    optimizer.tell(known.finished(SPACE.sample(60, np.random.default_rng(3)).designs()))
    optimizer.ask(1)
    (event,) = (event for event in optimizer.events() if event.kind == "model")
    assert "is learnt as a sum of terms" in event.text


def test_no_sum_is_found_where_a_layers_effect_depends_on_all_others() -> None:
    known = quantized(lambda parts: np.cos(3 * parts).prod(axis=1), declared=False)
    optimizer = GreyBox(known.problem)
    optimizer.tell(known.finished(SPACE.sample(60, np.random.default_rng(3)).designs()))
    optimizer.ask(1)
    assert not [event for event in optimizer.events() if event.kind == "model"]


def test_a_resumed_study_finds_the_same_sum() -> None:
    known = quantized(total, declared=False)
    optimizer = GreyBox(known.problem)
    trials = played(known, optimizer, 13)
    resumed = GreyBox(known.problem)
    resumed.tell(trials)
    assert resumed.ask(1) == optimizer.ask(1)
