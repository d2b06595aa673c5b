"""What failed is tried again, as often as the kind of its failure allows."""

import pytest

from dse.core.trial import State
from dse.errors import SpecErrors
from dse.schema.study.plan import plan_of
from dse.storage.memory import MemoryStorage
from dse.study.replay import Replay
from tests.small_studies import MEASURED, study_in

KINDS = [("crash", "lost"), ("hang", "timeout"), ("raise", "raised")]

DEADLY = """
import json, os, signal, sys
design = json.load(sys.stdin)
with open("runs", "a") as file:
    file.write(f"{design['rows']} {design['cols']}\\n")
if design["rows"] % 2: os.kill(os.getppid(), signal.SIGKILL)
print(json.dumps({"time": design["rows"]}))
"""


@pytest.fixture
def storage() -> MemoryStorage:
    return MemoryStorage()


@pytest.mark.slow
@pytest.mark.parametrize(("deed", "kind"), KINDS)
def test_what_failed_is_tried_again_as_often_as_its_kind_allows(tmp_path, storage, deed, kind):
    retries = f"retries: {{{kind}: 2}}"
    study = study_in(tmp_path, MEASURED, storage, deed, EXECUTOR="processes", RETRIES=retries)
    study.run()
    assert [trial.state for trial in study.trials] == [State.DONE] * 2
    assert sorted(trial.attempts for trial in study.trials) == [0, 2]
    assert [attempt.failure.kind for attempt in storage.attempts("s")] == [kind] * 2
    assert Replay(study).proof().trials == 2


@pytest.mark.slow
@pytest.mark.parametrize(("deed", "kind"), KINDS)
def test_a_trial_that_fails_once_more_than_allowed_has_failed(tmp_path, storage, deed, kind):
    retries = f"retries: {{{kind}: 1}}"
    study = study_in(tmp_path, MEASURED, storage, deed, EXECUTOR="processes", RETRIES=retries)
    study.run()
    assert sorted((t.state.value, t.attempts) for t in study.trials) == [("done", 0), ("failed", 1)]


@pytest.mark.slow
@pytest.mark.parametrize("signal", ["SIGKILL", "SIGTERM", "SIGHUP"])
def test_a_program_that_is_killed_from_outside_is_tried_again(tmp_path, storage, signal):
    deed = f'kill"; os.kill(os.getpid(), signal.{signal}) if first else None; "'
    study = study_in(tmp_path, MEASURED, storage, deed)
    study.run()
    assert [trial.state for trial in study.trials] == [State.DONE] * 2
    failures = [attempt.failure for attempt in storage.attempts("s")]
    assert [failure.kind for failure in failures] == ["lost"] * 2
    assert all(failure.reason.startswith(f"killed by {signal}") for failure in failures)


@pytest.mark.slow
def test_a_design_that_kills_its_worker_each_time_is_given_up_alone(tmp_path, storage):
    text = MEASURED.replace("use: EXECUTOR", "use: processes, workers: 3")
    text = text.replace("measurements: 2", "measurements: 6")
    study = study_in(tmp_path, text, storage, RETRIES="retries: {lost: 2}")
    (tmp_path / "board.py").write_text(DEADLY)
    study.run()
    ends = {t.number: (t.state, t.attempts, t.failure and t.failure.kind) for t in study.trials}
    deadly = {trial.number for trial in study.trials if trial.design["rows"] % 2}
    assert 0 < len(deadly) < 6
    assert ends == {
        number: (State.FAILED, 2, "lost") if number in deadly else (State.DONE, 0, None)
        for number in range(6)
    }
    runs = (tmp_path / "runs").read_text().splitlines()
    assert len(runs) == len(set(runs)) + 2 * len(deadly)


def test_a_design_that_cannot_exist_is_never_tried_again(tmp_path, storage):
    retries = "retries: {raised: 5, crashed: 5, invalid: 5}"
    study_in(tmp_path, MEASURED, storage, "impossible", RETRIES=retries).run()
    assert storage.attempts("s") == []


def test_by_default_a_crash_is_final(tmp_path, storage):
    study = study_in(tmp_path, MEASURED, storage, "raise")
    study.run()
    assert storage.attempts("s") == []
    assert {trial.state for trial in study.trials} == {State.DONE, State.FAILED}


@pytest.mark.parametrize(
    ("retries", "said"),
    [
        (
            "{crash: 1}",
            r"study.yaml:10: there is no key 'crash' here\n  hint: did you mean 'crashed'",
        ),
        ("{infeasible: 1}", r"study.yaml:10: a design that cannot exist is never tried again"),
        ("{lost: -1}", r"study.yaml:10: lost is at least 0, not -1"),
        ("{lost: often}", r"study.yaml:10: lost: expected a whole number, found 'often'"),
    ],
)
def test_retries_that_cannot_be_are_refused_with_their_line(tmp_path, storage, retries, said):
    with pytest.raises(SpecErrors, match=said):
        study_in(tmp_path, MEASURED, storage, RETRIES=f"retries: {retries}")


def test_what_is_tried_again_may_be_changed_while_a_study_lives(tmp_path, storage):
    study_in(tmp_path, MEASURED, storage).run()
    changed = study_in(tmp_path, MEASURED, storage, RETRIES="retries: {timeout: 4}")
    assert changed.plan.retries == {"lost": 3, "memory": 1, "timeout": 4}
    assert plan_of(changed.plan.path).identity == changed.plan.identity
