"""The comparison of optimizers: its problems are the published ones, its statistics are right."""

import importlib
import subprocess
import sys
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from dse.core.design import Design
from dse.core.expressions.expression import Expression
from dse.core.expressions.parser import parse
from dse.core.expressions.syntax import Listed, Name
from dse.core.metric import Metric
from dse.core.objective import Objective
from dse.core.parameter import Ordinal
from dse.core.problem import Problem, Source
from dse.core.space import DesignSpace
from tests import tables

FOLDER = Path(__file__).parent.parent / "benchmarks/optimizers"
needs_open_problems = tables.needs("open")
TABLES = ("vp8_encoder", "kt_gemm_port", "tx2_dvfs", "spector_sobel")


@pytest.fixture
def module(monkeypatch):
    """A module of the benchmark by name; its folder is no package."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module


@pytest.fixture
def stated(module):
    """An open problem as a case, and as its publisher's loader gives it."""
    problems = module("open_problems")

    def both(name):
        case = problems.case(name)
        return case, sys.modules["openbench"].load(name)

    return both


@needs_open_problems
def test_an_open_problem_has_the_published_metrics_and_a_table_its_pool_and_front(stated):
    for name in (*TABLES, "hwgpt_s", "rcm14_clutch", "vehicle_safety"):
        case, given = stated(name)
        metrics = {metric for metric, _, _ in given.objectives} | set(given.constraints)
        assert case.problem.measured == metrics, name
        if name in TABLES:
            ours = {design for batch in case.problem.space.enumerate() for design in batch}
            assert ours == {Design(design) for design in given.pool()}, name
        if name in ("tx2_dvfs", "spector_sobel"):
            trials = [case.played(Design(design), k) for k, design in enumerate(given.pool())]
            assert case.judge(trials) == pytest.approx(1, abs=1e-9), name


@needs_open_problems
def test_the_clutch_has_the_limits_of_the_published_problem(stated):
    case, given = stated("rcm14_clutch")
    designs = case.problem.space.sample(300, np.random.default_rng(1)).designs()
    trials = [case.played(design, number) for number, design in enumerate(designs)]
    assert len(case.problem.limits) == 8
    kept = case.problem.feasible(trials).tolist()
    assert kept == [given.feasible(given.evaluate(dict(design))) for design in designs]
    assert 0 < sum(kept) < 300


@needs_open_problems
def test_the_supernet_has_the_published_number_of_designs_without_inactive_parameters(stated):
    case, _ = stated("hwgpt_s")
    assert case.problem.space.count() == 6 * (9**10 + 9**11 + 9**12)
    (deep,) = case.problem.space.fixed({"n_layer": 12}).sample(1, np.random.default_rng(0))
    shallow = case.active({**deep, "n_layer": 10})
    assert set(deep) - set(shallow) == {
        f"{n}_{k}" for n in ("mlp_ratio", "n_head") for k in (10, 11)
    }
    assert shallow in case.problem.space


@pytest.fixture
def table(module):
    """A table of two designs, far apart among nine."""
    values = (0, 1, 2)
    pool = Listed((Name("x"), Name("y")), ((0, 0), (2, 2)))
    space = DesignSpace(
        parameters=(Ordinal(name="x", values=values), Ordinal(name="y", values=values)),
        constraints=(Expression("it was measured", pool),),
    )
    reads = frozenset(("x", "y"))
    cases = module("case")
    return cases.Case(
        name="table",
        problem=Problem(
            space=space,
            sources={"f": Source(metric=Metric(name="f"), kind="measured", reads=reads)},
            objectives=(Objective(expression=parse("f"), goal="minimize"),),
        ),
        evaluate=lambda design: cases.done({"f": float(design["x"])}),
        judge=len,
    )


class Stubborn:
    """Asks for these designs in turn and remembers what it was told."""

    def __init__(self, *designs):
        self.designs = list(designs)
        self.told = []

    def ask(self):
        return self.designs.pop(0)

    def refuse(self):
        pass

    def tell(self, trial):
        self.told.append(dict(trial.design))


def test_an_illegal_design_costs_no_trial(module, table):
    player = Stubborn({"x": 0, "y": 1}, {"x": 2, "y": 2})
    (step,) = module("playing").played(table, player, seed=0, trials=1, tries=5)
    assert (step.refused, step.given_up, player.told) == (1, 0, [{"x": 2, "y": 2}])


def test_the_nearest_legal_design_stands_in_for_one_that_stays_illegal(module, table):
    player = Stubborn({"x": 1, "y": 2}, {"x": 2, "y": 1})
    (step,) = module("playing").played(table, player, seed=0, trials=1, tries=2)
    assert (step.refused, step.given_up, player.told) == (2, 1, [{"x": 2, "y": 2}])


def test_a_design_that_is_asked_twice_costs_two_trials(module, table):
    player = Stubborn({"x": 2, "y": 2}, {"x": 2, "y": 2})
    steps = list(module("playing").played(table, player, seed=0, trials=2, tries=1))
    assert [step.trial.design["x"] for step in steps] == [2, 2]


class Published:
    """A problem in the words of a loader of open problems: a table, or a supernet of layers."""

    objectives = (("latency", "s", "min"), ("accuracy", "", "max"))
    constraints = ()

    def __init__(self, kind):
        self.kind, widths = kind, (16, 32, 64, 96)
        self.params = [ordinal("depth", (1, 2, 3)), ordinal("width_0", widths)]
        for layer in (1, 2):
            deeper = {"depth": tuple(range(layer + 1, 4))} if kind == "supernet" else None
            self.params.append(ordinal(f"width_{layer}", widths, deeper))

    def pool(self):
        """Two thirds of the grid, for the table."""
        grid = product(*(param.values for param in self.params))
        names = [param.name for param in self.params]
        rows = [dict(zip(names, row, strict=True)) for row in grid if sum(row) % 3]
        return rows if self.kind == "table" else None

    def legal(self, design):
        if self.kind == "table":
            return design in self.pool()
        return design.keys() == {"depth", *(f"width_{layer}" for layer in range(design["depth"]))}

    def evaluate(self, design):
        total = sum(design.values())
        return {"latency": float(total), "accuracy": 1 - 1 / total}


def ordinal(name, values, active=None):
    return SimpleNamespace(name=name, type="ord", values=values, active=active)


@pytest.mark.slow
@pytest.mark.parametrize(
    "peer", ["peers.optuna_random", "peers.optuna_tpe", "peers.optuna_nsga2", "peers.pymoo_mixed"]
)
@pytest.mark.parametrize("kind", ["table", "supernet"])
def test_a_peer_plays_legal_designs_from_the_common_first_ones(peer, kind, module, monkeypatch):
    published, problems = Published(kind), module("open_problems")
    loader = SimpleNamespace(load=lambda _: published)
    monkeypatch.setattr(problems, "_loader", lambda _: loader)
    case = problems.case(kind).seeded(3)
    trials = [step.trial for step in module(peer).run(case, 3, 30)]
    assert [trial.design for trial in trials[:8]] == case.first()
    assert len(trials) == 30
    assert all(published.legal(dict(trial.design)) for trial in trials)


def test_holms_correction_is_that_of_a_worked_example(module):
    # Holm 1979: the smallest times three, the next times two, and never below the one before.
    assert module("verdicts").holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


HEAD = "problem,optimizer,seed,trial,share,feasible,optimizer_s\n"


@pytest.fixture
def curves(module, tmp_path):
    """Curves of the lines of a CSV, with those about whole runs."""

    def of(lines, about=""):
        (tmp_path / "cells.csv").write_text(HEAD + "\n".join(lines))
        (tmp_path / "cells.runs.csv").write_text("problem,optimizer,seed,ended\n" + about)
        return module("regret").Curves.of([tmp_path / "cells.csv"])

    return of


def test_ten_pairs_of_one_sign_have_the_exact_p_of_wilcoxons_test(module, curves):
    ours = [f"a,auto,{seed},1,{0.9 + seed / 1000},1,0" for seed in range(10)]
    theirs = [f"a,ax,{seed},1,{0.8 - seed / 1000},1,0" for seed in range(10)]
    (verdict,) = module("verdicts").verdicts(curves(ours + theirs), "auto", ["ax"], 1)
    assert verdict.p == pytest.approx(2 / 2**10)
    assert (verdict.wins, verdict.losses, verdict.clear_wins, verdict.pairs) == (1, 0, 1, 10)
    assert verdict.ratio == pytest.approx((1 - 0.9045) / (1 - 0.7955))


def test_only_seeds_that_both_played_are_paired(module, curves):
    lines = ["a,auto,0,1,0.9,1,0", "a,auto,1,1,0.9,1,0", "a,ax,1,1,0.5,1,0", "a,ax,2,1,0.5,1,0"]
    (verdict,) = module("verdicts").verdicts(curves(lines), "auto", ["ax"], 1)
    assert verdict.pairs == 1


def test_a_run_that_was_cut_short_says_nothing_of_later_trials(curves):
    found = curves(["a,auto,0,1,0.9,1,0", "a,auto,0,2,0.95,2,0"], "a,auto,0,limit\n")
    assert found.regrets("a", "auto", 2) == pytest.approx({0: 0.05})
    assert found.regrets("a", "auto", 3) == {}


def test_a_run_that_had_nothing_left_to_ask_keeps_its_last_regret(curves):
    found = curves(["a,auto,0,1,0.9,1,0"], "a,auto,0,nothing left\n")
    assert found.regrets("a", "auto", 200) == pytest.approx({0: 0.1})


@pytest.mark.slow
def test_a_run_that_is_in_the_file_is_not_played_again(tmp_path):
    chosen = ["--problem", "bnh", "--optimizer", "dse-sobol", "--seeds", "2", "--trials", "5"]
    command = [sys.executable, str(FOLDER), *chosen, "-o", str(tmp_path / "cells.csv")]
    subprocess.run(command, check=True, capture_output=True)
    first = (tmp_path / "cells.csv").read_text()
    assert first.count("bnh,dse-sobol,") == 10
    again = subprocess.run(command, check=True, capture_output=True, text=True)
    assert again.stdout == ""
    assert (tmp_path / "cells.csv").read_text() == first
    told = subprocess.run(
        [sys.executable, str(FOLDER), "summary", str(tmp_path / "cells.csv")],
        check=True,
        capture_output=True,
        text=True,
    )
    assert "bnh: median regret" in told.stdout


def test_a_problem_by_formula_has_failures_and_shares_from_none_to_all(module):
    case = module("formulas").case("memory")
    trials = [
        case.played(design, number)
        for number, design in enumerate(case.problem.space.sample(200, np.random.default_rng(0)))
    ]
    failed = [trial for trial in trials if trial.failure is not None]
    assert 20 < len(failed) < 180
    assert case.judge(failed) == 0.0
    assert 0.3 < case.judge(trials) <= 1.0
