"""Effects of many trials: as those of the design matrix, of a sample near those of all."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dse.analysis.effects import Effects, estimate_effects
from dse.core.design import Design
from dse.core.expressions.parser import parse
from dse.core.metric import Metric
from dse.core.objective import Objective
from dse.core.parameter import Choice, Ordinal
from dse.core.problem import Problem, Source
from dse.core.space import DesignSpace
from dse.core.trial import State, Trial
from dse.report.effect_tables import effects_json, headline


class DesignMatrix:
    """The same by a column for each level and an SVD, which many trials are too many for."""

    def __init__(self, rows, values) -> None:
        names = sorted({name for row in rows for name in row})
        told = {name: [row.get(name) for row in rows] for name in names}
        order = {n: sorted({v for v in t if v is not None}) for n, t in told.items()}
        levels = {n: [*order[n], *([None] if None in told[n] else [])] for n in names}
        self._columns = {
            n: coded([levels[n].index(v) for v in told[n]], len(levels[n]))
            for n in names
            if len(levels[n]) > 1
        }
        self._centred = values - values.mean()
        self._every = beyond(self._stacked(), np.zeros((len(values), 0)))
        self.additive = self._share(self._every) or 0.0

    def main(self) -> dict:
        return {
            name: self._share(beyond(own, beyond(self._stacked(name), self._every[:, :0])))
            for name, own in self._columns.items()
        }

    def interactions(self) -> dict:
        found = {}
        for one, other in combinations(self._columns, 2):
            left, right = self._columns[one], self._columns[other]
            products = (left[:, :, None] * right[:, None, :]).reshape(len(left), -1)
            found[one, other] = self._share(beyond(products, self._every))
        return found

    def _stacked(self, but=None):
        kept = [columns for name, columns in self._columns.items() if name != but]
        return np.column_stack(kept) if kept else np.zeros((len(self._centred), 0))

    def _share(self, basis):
        if not basis.shape[1]:
            return None
        total = (self._centred**2).sum()
        return ((basis.T @ self._centred) ** 2).sum() / total if total else 0.0


def coded(codes, size):
    return np.vstack([np.eye(size - 1), -np.ones(size - 1)])[codes]


def beyond(columns, basis):
    rest = columns - columns.mean(axis=0)
    rest = rest - basis @ (basis.T @ rest)
    rest -= basis @ (basis.T @ rest)
    if not rest.shape[1]:
        return rest
    left, sizes, _ = np.linalg.svd(rest, full_matrices=False)
    return left[:, sizes > 1e-9 * np.linalg.norm(columns)]


WORDS = ("u", "v", "w")
PARAMETERS = (
    Ordinal(name="a", values=(1, 2, 3, 4)),
    Ordinal(name="b", values=(1, 2)),
    Choice(name="c", values=WORDS),
    Ordinal(name="d", values=(0, 5, 7)),
)


def problem_of(*parameters, seed=7) -> Problem:
    names = ("y", "z")
    return Problem(
        space=DesignSpace(parameters=parameters),
        sources={
            name: Source(metric=Metric(name=name), kind="modelled", reads=frozenset())
            for name in names
        },
        objectives=tuple(Objective(expression=parse(n), goal="minimize") for n in names),
        seed=seed,
    )


def trials_of(rows, **metrics) -> list[Trial]:
    return [
        Trial(
            number=number,
            design=Design(row),
            state=State.DONE,
            metrics={name: float(values[number]) for name, values in metrics.items()},
        )
        for number, row in enumerate(rows)
    ]


def drawn(size: int, seed: int) -> list[dict]:
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(size):
        row = {p.name: p.values[rng.integers(len(p.values))] for p in PARAMETERS}
        if row["c"] == "u" and rng.random() < 0.8:
            del row["d"]  # absent, and nearly told by c
        rows.append(row)
    return rows


def answers(rows, seed: int):
    rng = np.random.default_rng(seed)
    inner = [3 * r["a"] + 2 * r["b"] * WORDS.index(r["c"]) + r.get("d", 9) ** 0.5 for r in rows]
    return np.array(inner) + rng.normal(size=len(rows))


def check_as_by_the_matrix(found: Effects, rows, values) -> None:
    expected = DesignMatrix(rows, values)
    main = {one.parameter: one.share for one in found.main}
    pairs = {tuple(sorted(one.parameters)): one.share for one in found.interactions}
    assert found.additive == pytest.approx(expected.additive, abs=1e-9)
    assert main == {
        n: share and pytest.approx(share, abs=1e-9) for n, share in expected.main().items()
    }
    assert pairs == {
        n: share and pytest.approx(share, abs=1e-9) for n, share in expected.interactions().items()
    }


@pytest.mark.parametrize("size", [3, 12, 40, 700])
def test_counts_tell_what_the_design_matrix_tells(size) -> None:
    rows = drawn(size, seed=size)
    values = answers(rows, seed=1)
    found = estimate_effects(problem_of(*PARAMETERS), trials_of(rows, y=values), ["y"])
    check_as_by_the_matrix(found[0], rows, values)


ROWS = st.lists(
    st.fixed_dictionaries(
        {"a": st.sampled_from((1, 2, 3)), "b": st.sampled_from((1, 2))},
        optional={"c": st.sampled_from(WORDS), "d": st.sampled_from((0, 5))},
    ),
    min_size=2,
    max_size=14,
)


@settings(max_examples=150)
@given(ROWS, st.integers(0, 5))
def test_aliased_factors_have_the_shares_that_the_design_matrix_gives(rows, seed) -> None:
    values = np.random.default_rng(seed).normal(size=len(rows))
    found = estimate_effects(problem_of(*PARAMETERS), trials_of(rows, y=values), ["y"])
    check_as_by_the_matrix(found[0], rows, values)


def test_metrics_that_are_told_together_are_those_that_are_told_alone() -> None:
    rows = drawn(300, seed=3)
    y, z = answers(rows, seed=1), answers(rows, seed=2) ** 2
    z[:40] = np.nan
    trials = trials_of(rows, y=y, z=z)
    problem = problem_of(*PARAMETERS)
    together = estimate_effects(problem, trials)
    alone = [estimate_effects(problem, trials, [name])[0] for name in ("y", "z")]
    assert together == alone
    assert [one.trials for one in together] == [300, 260]


MANY = drawn(20_000, seed=5)
VALUES = answers(MANY, seed=1)


@pytest.fixture(scope="module")
def many():
    return trials_of(MANY, y=VALUES)


@pytest.fixture(scope="module")
def whole(many) -> Effects:
    return estimate_effects(problem_of(*PARAMETERS), many, ["y"])[0]


def shares(found: Effects) -> dict:
    pairs = {tuple(sorted(one.parameters)): one.share for one in found.interactions}
    return {one.parameter: one.share for one in found.main} | pairs


def test_a_sample_says_that_it_is_one_and_by_which_seed(many, whole) -> None:
    (some,) = estimate_effects(problem_of(*PARAMETERS), many, ["y"], rows=2_000)
    assert (whole.trials, whole.of, whole.seed) == (20_000, 20_000, None)
    assert (some.trials, some.of, some.seed) == (2_000, 20_000, 7)
    assert "over 2000 designs drawn of 20000 by seed 7" in headline(some)
    (told,) = effects_json("s", problem_of(*PARAMETERS), [some])["effects"]
    assert (told["trials"], told["of"], told["seed"]) == (2_000, 20_000, 7)
    assert "drawn" not in headline(whole)


def test_a_sample_is_the_same_whenever_it_is_drawn_and_another_by_another_seed(many) -> None:
    asked = [(problem_of(*PARAMETERS, seed=seed), many, ["y"]) for seed in (7, 7, 8)]
    one, again, other = (estimate_effects(*words, rows=500)[0] for words in asked)
    assert one == again
    assert shares(one) != shares(other)


def test_shares_of_a_sample_are_near_those_of_all(many, whole) -> None:
    """Over ten seeds, none is off by more than six standard errors of a share of the sample."""
    far = []
    for seed in range(10):
        problem = problem_of(*PARAMETERS, seed=seed)
        (some,) = estimate_effects(problem, many, ["y"], rows=4_000)
        exact, near = shares(whole), shares(some)
        far += [abs(near[name] - exact[name]) for name in exact]
    assert max(far) < 6 * (1 / 4_000) ** 0.5
    assert max(far) > 0


def test_a_parameter_of_too_many_words_is_left_out_and_named() -> None:
    words = tuple(f"w{number}" for number in range(1_200))
    few = tuple(f"f{number}" for number in range(70))
    parameters = (Choice(name="many", values=words), Choice(name="some", values=few), PARAMETERS[0])
    rng = np.random.default_rng(2)
    rows = [
        {"many": words[n % 1_200], "some": few[rng.integers(70)], "a": int(rng.integers(1, 5))}
        for n in range(2_400)
    ]
    values = np.array([row["a"] for row in rows], dtype=float)
    (found,) = estimate_effects(problem_of(*parameters), trials_of(rows, y=values), ["y"])
    assert (found.left_out, found.unpaired) == (("many",), ("some",))
    assert [one.parameter for one in found.main] == ["a", "some"]
    assert "no effect is estimated for many (too many values)" in headline(found)
    assert "no interaction is estimated for some (too many values)" in headline(found)


def test_progress_ends_with_all_terms_done(many) -> None:
    told = []
    estimate_effects(
        problem_of(*PARAMETERS), many[:200], ["y"], on_progress=lambda *one: told.append(one)
    )
    assert told == [(done, 10) for done in range(1, 11)]
