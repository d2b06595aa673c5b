"""The front completed for free: designs that share what was measured."""

from dataclasses import replace

import numpy as np
import pytest

from dse.core.expressions.parser import parse
from dse.core.metric import Metrics
from dse.core.parameter import Choice, Integer, Ordinal
from dse.core.pareto import nondominated
from dse.core.space import DesignSpace
from dse.optimizers.bayesian.front_completion import Completion, complete_front, worthwhile
from dse.testing.known import enumerated

SPACE = DesignSpace(
    parameters=(
        Choice(name="format", values=("bf16", "fp8", "mxfp4")),
        Ordinal(name="group", values=(16, 32)),
        Ordinal(name="rows", values=(4, 8, 16, 32)),
        Ordinal(name="cols", values=(4, 8, 16, 32)),
        Integer(name="clock", low=1, high=6),
    ),
    conditions={"group": parse("format == 'mxfp4'")},
    constraints=(parse("rows * cols <= 256"),),
)


def truth(batch):
    bits = batch.lookup("format", {"bf16": 16.0, "fp8": 8.0, "mxfp4": 4.0})
    array = batch["rows"] * batch["cols"] * 1.0
    return Metrics(
        columns={
            "accuracy": np.log2(bits) - batch.get("group", 0) / 100,
            "time": 1000 / (array * batch["clock"]) + array / 500,
            "energy": bits * (1 + batch["clock"] ** 2 / 20 + array / 300),
        }
    )


def known():
    kinds = {"accuracy": "measured", "time": "modelled", "energy": "modelled"}
    goals = {"accuracy": "maximize", "time": "minimize", "energy": "minimize"}
    found = enumerated(SPACE, kinds, goals, truth)
    source = found.problem.sources["accuracy"]
    read = replace(source, reads=frozenset({"format", "group"}))
    problem = replace(found.problem, sources={**found.problem.sources, "accuracy": read})
    return replace(found, problem=problem)


def measured(problem_known, *designs):
    """The trials of these designs, each of which cost a measurement."""
    trials = problem_known.finished(problem_known.problem.space.batch(designs).designs())
    return [replace(trial, measured=1) for trial in trials]


def asked(case, optimizer, at_once=1, most=10_000):
    """All that it asks, told back as designs that cost no measurement."""
    trials = []
    while len(trials) < most and (designs := optimizer.ask(at_once)):
        free = [replace(t, measured=0) for t in case.finished(designs, len(trials))]
        optimizer.tell(free)
        trials += free
    return trials


START = (
    {"format": "bf16", "rows": 4, "cols": 4, "clock": 1},
    {"format": "mxfp4", "group": 32, "rows": 32, "cols": 8, "clock": 3},
)


def test_from_two_measurements_it_finds_the_front_of_all_designs_that_share_them():
    case = known()
    found = complete_front(case.problem, measured(case, *START))
    (everything,) = SPACE.enumerate(1_000_000)
    shared = [
        design
        for design in everything.designs()
        if design["format"] == "bf16" or design.get("group") == 32
    ]
    losses = case.problem.trial_losses(case.finished(shared))
    best = np.unique(losses[nondominated(losses)], axis=0)
    got = np.unique(case.problem.trial_losses(case.finished(found)), axis=0)
    assert len(best) > 10
    assert got.tolist() == best.tolist()


def test_it_asks_each_once_and_then_nothing_and_says_so():
    case = known()
    optimizer = Completion(case.problem)
    optimizer.tell(measured(case, *START))
    trials = asked(case, optimizer, at_once=7)
    designs = [trial.design for trial in trials]
    assert len(set(designs)) == len(designs) > 10
    assert all(design in SPACE for design in designs)
    assert [event.kind for event in optimizer.events()] == ["completed"]
    assert optimizer.events() == []


def test_a_completion_that_was_cut_short_goes_on_as_it_would_have():
    case = known()
    whole = Completion(case.problem)
    whole.tell(measured(case, *START))
    expected = [trial.design for trial in asked(case, whole)]
    cut = Completion(case.problem)
    cut.tell(measured(case, *START))
    first = asked(case, cut, most=5)
    again = Completion(case.problem)
    again.tell([*measured(case, *START), *first])
    rest = asked(case, again)
    assert [trial.design for trial in (*first, *rest)] == expected


def test_nothing_measured_completes_to_nothing():
    assert complete_front(known().problem, []) == []


@pytest.mark.parametrize(
    ("reads", "expected"), [({"format", "group"}, True), (set(SPACE.by_name), False)]
)
def test_it_is_worthwhile_where_a_measurement_does_not_read_everything(reads, expected):
    problem = known().problem
    source = replace(problem.sources["accuracy"], reads=frozenset(reads))
    problem = replace(problem, sources={**problem.sources, "accuracy": source})
    assert worthwhile(problem) is expected
