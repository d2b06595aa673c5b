"""What is found group by group is what comparing all designs finds."""

from dataclasses import replace
from functools import partial

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from dse.core.batch import Column
from dse.core.expressions.parser import parse
from dse.core.metric import Failure, Metric, Metrics
from dse.core.objective import Limit, Objective
from dse.core.parameter import Choice, Integer, Ordinal
from dse.core.problem import Problem, Source
from dse.core.space import DesignSpace
from dse.errors import StudyError
from dse.optimizers.decompose import cannot, find_exact_front
from dse.optimizers.exact.chunks import judge_with_metrics
from dse.optimizers.exact.exact_front import exact_front

SPACE = DesignSpace(
    parameters=(
        Integer(name="a", low=0, high=3),
        Ordinal(name="as", values=(1, 2, 4)),
        Integer(name="b", low=-2, high=2),
        Choice(name="word", values=("x", "y", "z")),
        Ordinal(name="if_x", values=(0.5, 1.5)),
        Integer(name="free", low=0, high=1),
    ),
    conditions={"if_x": parse("word == 'x'")},
    constraints=(parse("a + as <= 5"),),
)
GROUPS = {"one": ("a", "as"), "two": ("b",), "three": ("word", "if_x")}
PLACES = 30  # of the table that a metric looks its value up in

names = [f"{group}.{metric}" for group in GROUPS for metric in ("e", "t")]
values = [-2.0, -1.0, 0.0, 0.1, 0.3, 0.7, 1.0, 3.0]


def drawn(seed):
    """A table of few values for each metric, of one sign for every other seed."""
    rng = np.random.default_rng(seed)
    return {name: rng.choice(values[2 * (seed % 2) :], PLACES) for name in names}


tables = st.integers(0, 2**32).map(drawn)
faulty = st.fixed_dictionaries(
    {group: st.sets(st.integers(0, PLACES - 1), max_size=6) for group in GROUPS}
)
leaves = st.sampled_from([*names, "a", "b", "if_x", "1", "2", "0.7", "(word == 'y')"])
formulas = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from("+-*/"), inner),
        st.builds("{}({}, {})".format, st.sampled_from(["min", "max"]), inner, inner),
        st.builds(
            "{}({}, {}, {})".format, st.sampled_from(["sum", "product"]), inner, inner, inner
        ),
        st.builds("{}({})".format, st.sampled_from(["abs", "-", "floor", "sqrt"]), inner),
        st.builds("(({} >= {}) * {})".format, inner, inner, inner),
    ),
    max_leaves=6,
)
sums = st.permutations(names).flatmap(
    lambda order: st.integers(2, 6).map(lambda count: " + ".join(order[:count]))
)
asked = st.one_of(
    sums,
    formulas,
    st.builds("{} {} ({})".format, formulas, st.sampled_from(["+", "-", "*", "/"]), sums),
)


def place_of(group, batch):
    parts = [np.nan_to_num(batch.columns[name].codes + 1) for name in GROUPS[group]]
    return sum(part * factor for part, factor in zip(parts, (1, 7), strict=False)) % PLACES


def model(batch, tables, faulty):
    places = {group: place_of(group, batch) for group in GROUPS}
    failures = {
        row: Failure(kind="infeasible", reason="never")
        for group, bad in faulty.items()
        for row in np.flatnonzero(np.isin(places[group], list(bad))).tolist()
    }
    columns = {name: table[places[name.split(".")[0]]] for name, table in tables.items()}
    return Metrics(columns=columns, failures=failures)


def problem_of(texts, goals, limits, tables, faulty):
    return Problem(
        space=SPACE,
        sources={
            name: Source(
                metric=Metric(name=name),
                kind="modelled",
                reads=frozenset(GROUPS[name.split(".")[0]]),
            )
            for name in tables
        },
        objectives=tuple(
            Objective(expression=parse(text), goal=goal)
            for text, goal in zip(texts, goals, strict=True)
        ),
        limits=tuple(Limit(text=f"{text} >= 0", slack=parse(text)) for text in limits),
        model=partial(model, tables=tables, faulty=faulty),
    )


def told(problem, designs):
    """The losses of the designs in one order; by how much they break the limits, if they do."""
    batch = problem.space.batch(designs)
    columns = problem.known(batch).columns
    whole = batch.with_columns({name: Column(values) for name, values in columns.items()})
    losses, violations, _ = judge_with_metrics(problem, whole)
    wanted = violations[:, None] if violations.any() else losses + 0.0
    return np.unique(wanted, axis=0).tolist()


def found(problem):
    try:
        return find_exact_front(problem)
    except StudyError:  # no design without a fault, or a part that is infinite
        assume(False)


problems = st.builds(
    problem_of,
    st.lists(asked, min_size=2, max_size=2),
    st.tuples(*[st.sampled_from(["minimize", "maximize"])] * 2),
    st.lists(asked, max_size=2),
    tables,
    faulty,
)


@given(problems)
def test_the_front_is_that_of_comparing_all_designs(problem):
    one, whole = found(problem), exact_front(problem)
    assert one.total == whole.total == 400
    assert (one.feasible, bool(one.designs)) == (whole.feasible > 0, bool(whole.designs))
    assert told(problem, one.designs) == told(problem, whole.designs)


@given(problems)
def test_every_design_of_the_front_is_legal(problem):
    assert all(design in SPACE for design in found(problem).designs)


def test_a_sum_over_groups_needs_a_few_combinations():
    rng = np.random.default_rng(1)
    problem = problem_of(
        ["one.e + two.e + three.e", "one.t + two.t + three.t"],
        ["minimize", "minimize"],
        [],
        {name: rng.random(PLACES) for name in names},
        {},
    )
    assert cannot(problem) == ""
    assert find_exact_front(problem).compared < 100
    assert told(problem, find_exact_front(problem).designs) == told(
        problem, exact_front(problem).designs
    )


def test_where_no_design_is_feasible_it_asks_the_one_that_breaks_the_limits_least():
    rng = np.random.default_rng(2)
    problem = problem_of(
        ["one.e + two.e", "three.t"],
        ["minimize", "minimize"],
        ["-1 - one.e - three.e", "-2 - two.t"],
        {name: rng.random(PLACES) for name in names},
        {},
    )
    answer = find_exact_front(problem)
    assert len(answer.designs) == 1
    assert "no design is feasible" in answer.coverage.text
    assert told(problem, answer.designs) == told(problem, exact_front(problem).designs)


def test_an_empty_space_has_no_front():
    problem = problem_of(["one.e"], ["minimize"], [], dict.fromkeys(names, np.zeros(PLACES)), {})
    empty = replace(problem, space=replace(SPACE, constraints=(parse("1 == 2"),)))
    assert find_exact_front(empty).designs == []
