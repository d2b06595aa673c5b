"""A front is called exact only if every legal design has a value or cannot exist; else it says so."""

import json
import math
from io import StringIO

import pytest
from rich.console import Console
from typer.testing import CliRunner

from dse import InfeasibleError, Study, evaluator
from dse.cli.app import app
from dse.core.proof import Coverage, Proof
from dse.core.trial import Event
from dse.report.html.failure_reasons import list_failure_reasons
from dse.report.text.trial_tables import front_table
from dse.services.studies.status import ended_json, status_json
from dse.storage.memory import MemoryStorage

SPACE = {"n": [0, 1, 2, 3], "m": [0, 1, 2, 3]}


def formula(text):
    return {"use": "expression", "metrics": {"cost": {"formula": text}}}


def function(kind, value, *, batch=False):
    @evaluator("cost", kind=kind, version="1", batch=batch)
    def tells(n):
        return {"cost": value(n)}

    return tells


def fails_below(most):
    def value(n):
        if n < most:
            raise ValueError("no way")
        return float(n)

    return value


def cannot_below(most):
    def value(n):
        if n < most:
            raise InfeasibleError("too wide")
        return float(n)

    return value


def nothing_below(most, nothing):
    return lambda n: nothing if n < most else float(n)


# The evaluator; of 16 designs, how many failed and how many cannot exist; the reason.
CASES = [
    (function("modelled", fails_below(4)), 16, 0, "raised: ValueError: no way"),
    (function("modelled", fails_below(3)), 12, 0, "raised: ValueError: no way"),
    (function("modelled", fails_below(0)), 0, 0, ""),
    (function("modelled", cannot_below(2)), 0, 8, ""),
    (function("modelled", nothing_below(2, math.nan)), 8, 0, "e.cost is nan|cost is nan"),
    (function("modelled", nothing_below(1, -math.inf)), 4, 0, "cost is -inf"),
    (function("modelled", nothing_below(1, None)), 4, 0, "cost is None"),
    (function("measured", fails_below(4)), 16, 0, "raised: ValueError: no way"),
    (function("measured", fails_below(3)), 12, 0, "raised: ValueError: no way"),
    (function("measured", cannot_below(1)), 0, 4, ""),
    (formula("1 / n"), 4, 0, "'1 / n' with n = 0"),
    (formula("sqrt(n - 2)"), 8, 0, "sqrt"),
    (formula("n + 1"), 0, 0, ""),
]
MEASURED = [case for case in CASES if getattr(case[0], "kind", "") == "measured"]
MODELLED = [case for case in CASES if case not in MEASURED]
RUNS = [
    *[(case, optimizer) for case in MODELLED for optimizer in ("exhaustive", "decompose", "auto")],
    *[(case, optimizer) for case in MEASURED for optimizer in ("exhaustive", "factorial")],
]


def run(one, optimizer, storage="memory://", **asked):
    kept = MemoryStorage(storage) if storage == "memory://" else storage
    goal = {"minimize": ["e.cost", "f.z"], "optimizer": optimizer}
    evaluators = {"e": one, "f": {"use": "expression", "metrics": {"z": {"formula": "m"}}}}
    study = Study("s", SPACE, evaluators, storage=kept, **{**goal, **asked})
    return study, study.run(progress=False, on_error="keep")


@pytest.mark.parametrize(("case", "optimizer"), RUNS)
def test_a_failed_design_is_counted_and_named(case, optimizer):
    one, failed, impossible, reason = case
    study, ended = run(one, optimizer)
    proof = study.engine.proof
    assert (proof.exact, proof.failed, proof.of) == (failed == 0, failed, 16)
    assert proof.over == (16 - failed - impossible if failed else 16)
    assert any(part in proof.example for part in reason.split("|"))
    assert ("n=" in proof.example) == bool(failed)
    for told in (status_json(study.engine), ended_json(study.engine, ended)):
        assert (told["exact"], told["failed"], told["exact_over"]) == (
            not failed,
            failed,
            proof.over,
        )
        assert told["failure"] == proof.failed_words
    words = f"exact over the {proof.over} designs that have values; {failed} of 16 legal designs"
    assert ended.startswith(words if failed else "exact over all 16 legal designs")
    assert (f"; {impossible} cannot exist" in ended) == bool(impossible)


def test_everything_that_shows_a_front_shows_what_failed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    study, _ = run(function("modelled", fails_below(3)), "exhaustive", "sqlite:///dse.db")
    words = "12 of 16 legal designs failed, such as m=0, n=0 (raised: ValueError: no way)"
    over = "exact over the 4 designs that have values"
    shown = StringIO()
    front_table(
        study.front.found,
        study.trials,
        proof=study.front.proof,
        console=Console(file=shown, width=200),
    )
    assert (over in shown.getvalue(), words in shown.getvalue()) == (True, True)
    assert (study.front.exact, study.front.failed) == (False, 12)
    assert (over in repr(study.front), words in repr(study.front)) == (True, True)
    assert words in study.front._repr_html_()
    assert words in study._repr_html_()
    page = study.report(tmp_path / "report.html").read_text()
    assert (over in page, words in page, "every legal design considered" in page) == (
        True,
        True,
        False,
    )
    cli = CliRunner()
    status = cli.invoke(app, ["status", "s"]).stdout
    assert ("exact over the 4 that have values" in status, words in status) == (True, True)
    told = json.loads(cli.invoke(app, ["front", "s", "--format", "json"]).stdout)
    assert (told["exact"], told["exact_over"], told["failed"], told["failure"]) == (
        False,
        4,
        12,
        words,
    )
    front = cli.invoke(app, ["front", "s"]).stdout
    assert "the exact front" not in front


def test_a_front_that_nobody_proved_counts_what_failed():
    study, _ = run(function("measured", fails_below(2)), "random", budget={"trials": 12}, seed=3)
    failed = sum(trial.design["n"] < 2 for trial in study.trials)
    assert (study.front.exact, study.front.proof.over, study.front.failed) == (False, None, failed)
    assert f"{failed} of 12 finished designs failed" in repr(study.front)


def test_an_objective_without_a_value_is_a_failure_of_the_design():
    study, _ = run(function("measured", float), "exhaustive", minimize=["1 / e.cost", "f.z"])
    assert (study.front.failed, study.front.proof.over) == (4, 12)
    assert "1 / e.cost is inf" in study.front.proof.example
    found = [
        (one.kind, one.reason, len(one.trials))
        for one in list_failure_reasons(study.problem, study.trials)
    ]
    assert found == [("undefined", "1 / e.cost is inf", 4)]


def test_an_exact_front_ends_with_what_it_is():
    for one in (formula("n + 1"), function("measured", float)):
        _, ended = run(one, "exhaustive")
        assert ended == "exact over all 16 legal designs"


def test_old_words_of_a_record_are_understood():
    for text, legal in (
        ("exact front of 565 feasible among 640 of 640 legal designs", 640),
        ("all of 1,024 legal designs were evaluated", 1_024),
        (
            "exact front of all 9,123,456,789 legal designs: 3 rows of 2 independent groups",
            9_123_456_789,
        ),
    ):
        study, _ = run(formula("n + 1"), "random", budget={"trials": 2})
        proof = Proof.of_study(study.problem, [], [Event(kind="exact", text=text)])
        assert (proof.exact, proof.over) == (True, legal)


def test_a_failure_after_the_search_takes_the_claim_back():
    study, _ = run(function("measured", fails_below(1)), "random", budget={"trials": 40})
    event = Event(kind="exact", text="all of 16 legal designs were evaluated")
    proof = Proof.of_study(study.problem, study.trials, [event])
    assert (proof.exact, proof.over, proof.failed) == (False, 12, 4)


@pytest.mark.parametrize("at_least", [False, True])
@pytest.mark.parametrize("failed", [0, 3])
def test_what_is_written_of_a_search_is_read_back(failed, at_least):
    example = "n=1; m='one that failed: x' (raised: a; b\nc)" if failed else ""
    cover = Coverage(
        legal=12_345,
        impossible=45,
        failed=failed,
        example=example,
        at_least=at_least,
        note="7 keep every limit",
    )
    study, _ = run(formula("n + 1"), "random", budget={"trials": 2})
    proof = Proof.of_study(study.problem, [], [cover.event(5)])
    assert (proof.exact, proof.failed, proof.at_least) == (
        not failed and not at_least,
        failed,
        at_least,
    )
    assert proof.example == example
    assert proof.over == (None if at_least else 12_300 - failed if failed else 12_345)


@pytest.mark.parametrize("mixed", [False, True])
def test_a_completed_design_without_a_value_is_counted_and_named(mixed):
    @evaluator("loss", kind="measured")
    def board(n: int) -> dict[str, float]:
        return {"loss": float(n)}

    @evaluator("area", kind="modelled", version="1")
    def chip(m: int) -> dict[str, float]:
        if m == 2:
            raise ValueError("no such chip")
        return {"area": 1.0 / m if m else math.nan}

    goals = ["board.loss * chip.area", "chip.area"] if mixed else ["board.loss", "chip.area"]
    study = Study(
        "s",
        SPACE,
        {"board": board, "chip": chip},
        minimize=goals,
        storage=MemoryStorage("memory://"),
        optimizer="grey-box",
        budget={"measurements": 4, "trials": 100},
    )
    ended = study.run(progress=False, on_error="keep")
    shared = {trial.design["n"] for trial in study.trials if trial.measured}
    least = 1 if mixed else 2 * len(shared)  # a search of neighbours does not see all
    assert least <= study.front.proof.sharing <= 2 * len(shared)
    words = "designs that share them failed, such as"
    assert words in study.front.proof.failed_words
    assert words in study.front._repr_html_()
    assert words in ended_json(study.engine, ended)["failure"]


@pytest.mark.parametrize("optimizer", ["exhaustive", "random"])
def test_that_a_design_cannot_exist_goes_before_a_failure(optimizer):
    first = function("modelled", fails_below(2))
    evaluators = {"a": first, "b": function("modelled", cannot_below(1)), "f": formula("m")}
    asked = {"minimize": ["a.cost", "b.cost", "f.cost"], "optimizer": optimizer}
    study = Study(
        "s", SPACE, evaluators, storage=MemoryStorage("memory://"), budget={"trials": 40}, **asked
    )
    study.run(progress=False, on_error="keep")
    assert study.front.failed == 4
    assert all(t.failure.kind == "infeasible" for t in study.trials if t.design["n"] == 0)
