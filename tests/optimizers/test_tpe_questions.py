"""Optuna is told everything, asked in silence, and leaves nothing behind."""

import logging
import subprocess
import sys

import numpy as np
import pytest

from dse import registry
from dse.core.expressions.parser import parse
from dse.core.metric import Failure, Metrics
from dse.core.objective import Limit
from dse.core.parameter import Choice, Integer, Real
from dse.core.space import DesignSpace
from dse.core.trial import State, Trial
from dse.optimizers.support.unseen_designs import fresh
from dse.optimizers.tpe import Tpe
from dse.testing.known import Known, played, problem_of
from dse.testing.problems import mixed_reals, zdt1


def _told(known, count, optimizer=None):
    optimizer = optimizer or Tpe(known.problem)
    optimizer.tell(known.finished(fresh(known.problem.space, count, np.random.default_rng(2), ())))
    return optimizer


def _line(truth, *limits):
    problem = problem_of(
        DesignSpace(parameters=(Integer(name="n", low=0, high=400),)),
        {"cost": "measured", "gain": "measured"},
        {"cost": "minimize", "gain": "maximize"},
        truth,
        limits=limits,
    )
    return Known(problem=problem, truth=truth, front=np.zeros((1, 2)), reference=np.ones(2))


def _bowls(batch):
    n = batch["n"].astype(float)
    return Metrics(columns={"cost": 1e-6 * (n - 110) ** 2, "gain": 500 - (n - 140) ** 2})


def test_it_asks_where_the_front_is():
    asked = [design["n"] for design in _told(_line(_bowls), 60).ask(8)]
    assert 100 <= np.median(asked) <= 150


def test_it_asks_where_the_limits_are_kept():
    limit = Limit(text="gain <= -30000", slack=parse("-30000 - gain"), scale=3e4)
    asked = [design["n"] for design in _told(_line(_bowls, limit), 60).ask(8)]
    assert np.median(asked) > 280  # 140 + 173 is the nearest that keeps it


def _failing_below_a_tenth(batch):
    x = batch["x"].astype(float)
    failures = {row: Failure(kind="raised", reason="too small") for row in np.flatnonzero(x < 0.1)}
    return Metrics(columns={"loss": x + (batch["y"].astype(float) - 0.3) ** 2}, failures=failures)


@pytest.mark.slow
def test_it_learns_where_designs_fail():
    space = DesignSpace(parameters=tuple(Real(name=name, low=0.0, high=1.0) for name in "xy"))
    problem = problem_of(space, {"loss": "measured"}, {"loss": "minimize"}, _failing_below_a_tenth)
    known = Known(
        problem=problem, truth=_failing_below_a_tenth, front=np.zeros((1, 1)), reference=np.ones(1)
    )
    failed = [
        sum(trial.state is State.FAILED for trial in played(one, Tpe(one.problem), 40))
        for one in map(known.seeded, range(5))
    ]
    assert np.median(failed) <= 13  # 27 where failed trials were ignored
    assert max(failed) <= 20


def test_with_nothing_but_failures_it_goes_on_with_new_designs():
    space = DesignSpace(parameters=(Integer(name="n", low=0, high=40),))
    problem = problem_of(space, {"loss": "measured"}, {"loss": "minimize"}, _bowls)
    optimizer = Tpe(problem)
    designs = optimizer.ask(30)
    lost = [Trial(number=n, design=d, state=State.FAILED) for n, d in enumerate(designs)]
    optimizer.tell(lost)
    assert not set(optimizer.ask(11)) & set(designs)


def test_designs_under_way_keep_it_from_asking_beside_them():
    optimizer = _told(_line(_bowls), 60)
    pending = _line(_bowls).problem.space.batch([{"n": n} for n in range(100, 151)]).designs()
    assert not set(optimizer.ask(4, pending)) & set(pending)


def test_a_choice_that_others_depend_on_is_learnt_with_them():
    space = DesignSpace(
        parameters=(
            Choice(name="mode", values=("plain", "tuned", "wild")),
            Real(name="knob", low=1e-3, high=1.0, scale="log"),
        ),
        conditions={"knob": parse("mode == 'tuned'")},
    )

    def truth(batch):
        bad = np.where(batch["mode"] == "tuned", np.abs(np.log10(batch.get("knob", 1.0)) + 2), 2.0)
        return Metrics(columns={"loss": bad})

    problem = problem_of(space, {"loss": "measured"}, {"loss": "minimize"}, truth)
    known = Known(problem=problem, truth=truth, front=np.zeros((1, 1)), reference=np.ones(1))
    played(known, optimizer := Tpe(problem), 40)
    asked = optimizer.ask(6)
    assert [design["mode"] for design in asked].count("tuned") >= 4
    assert np.median([abs(np.log10(d["knob"]) + 2) for d in asked if "knob" in d]) < 0.5


def test_nothing_is_printed_and_the_log_is_left_as_it_was(capfd):
    import optuna

    level, handlers = optuna.logging.get_verbosity(), list(logging.getLogger("optuna").handlers)
    _told(mixed_reals(), 20).ask(2)
    assert capfd.readouterr() == ("", "")
    assert optuna.logging.get_verbosity() == level
    assert [handler.filters for handler in handlers] == [[] for _ in handlers]


@pytest.mark.parametrize("told", [30, 31])
def test_questions_in_between_change_no_later_one(told):
    known = mixed_reals()
    trials = known.finished(fresh(known.problem.space, told, np.random.default_rng(2), ()))
    curious, calm = Tpe(known.problem), Tpe(known.problem)
    calm.tell(trials)
    curious.tell(trials[:20])
    curious.ask(3, [trials[20].design])
    curious.tell(trials[20:])
    assert curious.ask(2) == calm.ask(2)


def test_without_optuna_the_error_says_what_to_install():
    script = (
        "import sys; sys.modules['optuna'] = None\n"
        "from dse.optimizers.tpe import Tpe\n"
        "from dse.testing.problems import zdt1\n"
        "Tpe(zdt1().problem)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert "PluginError" in ended.stderr
    assert 'pip install "dse-engine[optuna]"' in ended.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("make", "budget"), [(mixed_reals, 40), (zdt1, 60)])
def test_it_beats_random_search(make, budget):
    shares = {"tpe": [], "random": []}
    for seed in range(3):
        for name, found in shares.items():
            known = make().seeded(seed)
            optimizer = registry.make("optimizers", name, known.problem)
            found.append(known.share(played(known, optimizer, budget)))
    assert np.median(shares["tpe"]) > np.median(shares["random"])
