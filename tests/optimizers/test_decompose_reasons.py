"""Problems that cannot be decomposed are refused with the reason that couples their parts."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dse.core.design import Design
from dse.core.expressions.parser import parse
from dse.core.metric import Failure, Metric, Metrics
from dse.core.objective import Objective
from dse.core.parameter import Choice, Integer
from dse.core.pareto import nondominated
from dse.core.problem import Problem, Source
from dse.core.space import DesignSpace
from dse.core.trial import Outcome, State, Trial
from dse.errors import StudyError
from dse.optimizers import decompose
from dse.optimizers.decompose import Decompose, cannot, find_exact_front
from dse.optimizers.exact import joined_fronts as combination
from dse.optimizers.exact.chunks import judged
from dse.optimizers.exact.exact_front import exact_front
from dse.schema.study.plan import plan_of
from dse.testing.problems import tiny_codesign, zdt1

ROOT = Path(__file__).parents[2]


def model(batch):
    x, y = batch["x"].astype(float), batch["y"].astype(float)
    return Metrics(columns={"a.e": (x - 300) ** 2, "a.t": x, "b.e": (y - 200) ** 2, "b.t": y})


def separate(*texts, high=999, space=None, model=model):
    """Two parameters, of which each has an energy and a time of its own."""
    return Problem(
        space=space
        or DesignSpace(
            parameters=(
                Integer(name="x", low=0, high=high),
                Integer(name="y", low=0, high=high),
                Choice(name="paint", values=("red", "blue")),
            )
        ),
        sources={
            f"{group}.{metric}": Source(
                metric=Metric(name=metric), kind="modelled", reads=frozenset(read)
            )
            for group, read in (("a", "x"), ("b", "y"))
            for metric in "et"
        },
        objectives=tuple(Objective(expression=parse(text), goal="minimize") for text in texts),
        model=model,
    )


SUMS = ("a.e + b.e", "a.t + b.t")


def done(designs):
    return [
        Trial(number=place, design=design).finished(Outcome(state=State.DONE))
        for place, design in enumerate(designs)
    ]


def test_what_is_measured_is_refused():
    assert cannot(tiny_codesign().problem) == "accuracy has to be measured"


def test_a_real_parameter_is_refused():
    assert "x0 is a real parameter" in cannot(zdt1(kind="modelled").problem)


def test_a_metric_that_reads_everything_is_named():
    problem = plan_of(ROOT / "studies" / "systolic_exact.yaml").problem
    assert cannot(problem).startswith("chip.")
    assert "ties parameters together that no rule ties: clock, cols, dataflow" in cannot(problem)


def test_rules_that_tie_all_parameters_are_named():
    tied = DesignSpace(
        parameters=(Integer(name="x", low=0, high=9), Integer(name="y", low=0, high=9)),
        constraints=(parse("x <= y"),),
    )
    assert cannot(separate(*SUMS, space=tied)) == "the rules tie all parameters together"


def test_a_group_that_is_too_large_to_list_is_named():
    problem = separate(*SUMS)
    wide = tuple(Integer(name=name, low=0, high=999) for name in ("x", "x2", "x3"))
    sources = {
        name: replace(source, reads=source.reads | {"x2", "x3"} if "x" in source.reads else {"y"})
        for name, source in problem.sources.items()
    }
    space = DesignSpace(parameters=(*wide, *problem.space.parameters[1:]))
    reason = cannot(replace(problem, sources=sources, space=space))
    assert "x, x2, x3 have 1,000,000,000 combinations" in reason


def test_the_optimizer_says_the_reason():
    with pytest.raises(StudyError, match="cannot be decomposed: accuracy has to be measured"):
        Decompose(tiny_codesign().problem)


def test_too_many_combinations_are_told_with_the_part_that_may_go_either_way(monkeypatch):
    monkeypatch.setattr(combination, "MOST_PAIRS", 1_000)
    with pytest.raises(StudyError, match=r"300 x 201 .* 'a.t' may go either way"):
        find_exact_front(separate("a.t - b.e", "b.e - a.t", high=299))


def test_no_design_that_can_exist_is_told_with_a_reason(monkeypatch):
    def never(batch):
        failure = Failure(kind="infeasible", reason="too hot")
        return replace(model(batch), failures=dict.fromkeys(range(len(batch)), failure))

    problem = separate(*SUMS, high=99, model=never)
    assert find_exact_front(problem).coverage.text == (
        "exact over all 20,000 legal designs; 20,000 cannot exist"
    )
    monkeypatch.setattr(decompose, "SEARCHED", 1_000)
    with pytest.raises(StudyError, match="none can exist: too hot"):
        find_exact_front(problem)


def test_what_nothing_reads_takes_its_first_value_however_much_there_is_of_it():
    problem = separate("a.e", "b.t")
    space = replace(
        problem.space,
        parameters=(
            *problem.space.parameters,
            *(Integer(name=f"free{place}", low=0, high=999) for place in range(30)),
        ),
    )
    answer = find_exact_front(replace(problem, space=space))
    assert answer.total == 2 * 10**96
    assert [(d["x"], d["y"], d["paint"], d["free7"]) for d in answer.designs] == [
        (300, 0, "red", 0)
    ]


def test_it_asks_the_front_once_and_proves_it_when_it_is_told():
    problem = separate(*SUMS, high=99)
    optimizer, whole = Decompose(problem), exact_front(problem)
    first = optimizer.ask(3)
    assert optimizer.events() == []
    optimizer.tell(done(first))
    rest = optimizer.ask(10_000, pending=[Design({"x": 0, "y": 0, "paint": "red"})])
    assert len({*first, *rest}) == len(whole.designs) == len(first) + len(rest)
    optimizer.tell(done(rest))
    (event,) = optimizer.events()
    assert (event.kind, optimizer.ask(1), optimizer.events()) == ("exact", [], [])
    assert event.text.startswith("exact over all 20,000 legal designs; 201 rows of 3 independent")


def test_what_was_told_before_is_not_asked_again():
    problem = separate(*SUMS, high=99)
    one, other = Decompose(problem), Decompose(problem)
    first = one.ask(4)
    other.tell(done(first[:2]))
    assert other.ask(2) == first[2:]


@pytest.mark.slow
def test_nineteen_trillion_designs_have_a_front_in_seconds():
    problem = plan_of(ROOT / "benchmarks" / "two_chips_exact.yaml").problem
    answer = find_exact_front(problem)
    assert (answer.total, answer.rows) == (4_320_600**2, 2 * 4_320_600)
    front, _, _ = judged(problem, problem.space.batch(answer.designs))
    drawn = problem.space.sample(20_000, np.random.default_rng(0))
    losses, violations, _ = judged(problem, drawn)
    feasible = losses[violations == 0]
    assert len(feasible) > 1_000
    assert nondominated(front).all()
    assert not nondominated(np.concatenate([front, feasible]))[len(front) :].any()
