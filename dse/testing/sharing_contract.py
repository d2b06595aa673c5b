"""Contract tests of a storage that several drivers share; used like ``storage_contract``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import pytest

from dse.core.metric import Failure
from dse.core.trial import Ask, Asked, Attempt, Driver, Event, Outcome, Report, State
from dse.errors import Overtaken, StorageError, StudyError
from dse.protocols import Storage
from dse.testing.storage_contract import CRASHED, DESIGNS, DONE, IMPOSSIBLE, ODD, STUDY

HERE = Driver(host="größer", pid=4711, started="12345", provenance={"python": "3.11", "gpu": ODD})
LOST = Outcome(state=State.FAILED, failure=Failure(kind="lost", reason=ODD), cost_s=0.1)
CHOICE = Event(kind="choice", text=ODD, told=3)

_REFUSED: dict[str, Callable[[Storage, int], object]] = {
    "finish": lambda storage, bad: storage.finish(STUDY, {0: DONE, bad: DONE, 2: DONE}, [CHOICE]),
    "retry": lambda storage, bad: storage.retry(STUDY, {0: LOST, bad: LOST, 2: LOST}),
    "claim": lambda storage, bad: storage.claim(STUDY, [0, bad, 2], 0),
    "begin": lambda storage, bad: storage.begin(STUDY, {0: 1.5, bad: 1.5, 2: 1.5}),
    "report": lambda storage, bad: storage.report(STUDY, [_make_report(0), _make_report(bad)]),
}
_DRIVEN: dict[str, Callable[[Storage, int], object]] = {
    "beat": lambda storage, driver: storage.beat(STUDY, driver),
    "leave": lambda storage, driver: storage.leave(STUDY, driver),
}


class SharingContract:
    """Contract tests of a storage that several independent processes share."""

    @pytest.fixture
    def storage(self) -> Iterator[Storage]:
        """Yield an empty storage; subclasses have to override this fixture."""
        raise NotImplementedError("the contract needs the fixture 'storage'")

    @pytest.fixture
    def begun(self, storage: Storage) -> Storage:
        """Return the storage with a study of four pending trials and two drivers, 0 and 1."""
        storage.create(STUDY, {"seed": 7})
        storage.add(STUDY, DESIGNS)
        storage.enter(STUDY, HERE)
        storage.enter(STUDY, HERE)
        return storage

    def test_an_ask_is_kept_with_what_it_gave_and_its_events(self, begun: Storage) -> None:
        ask = Ask(told=2, after=4, wanted=3, seconds=0.1 + 0.2, by="größer", events=(CHOICE,))
        begun.add(STUDY, DESIGNS[:2], ask)
        begun.add(STUDY, [], Ask(wanted=1))
        assert begun.asks(STUDY) == [
            Asked(first=0, count=4),
            Asked(first=4, count=2, wanted=3, told=2, seconds=0.1 + 0.2, by="größer"),
            Asked(first=6, count=0, wanted=1),
        ]
        assert begun.events(STUDY) == [CHOICE]

    def test_times_are_kept_with_trials_and_attempts(self, begun: Storage) -> None:
        begun.add(STUDY, DESIGNS[:1], Ask(worker=0, at=1.25))
        begun.begin(STUDY, {4: 2.5, 0: 2.75})
        assert _times(begun) == [(None, 2.75, None), *[(None, None, None)] * 3, (1.25, 2.5, None)]
        begun.retry(STUDY, {4: replace(LOST, begun_at=2.5, finished_at=3.5)})
        begun.finish(STUDY, {0: replace(DONE, finished_at=4.5)})
        begun.finish(STUDY, {1: replace(DONE, begun_at=5.5, finished_at=6.5)})
        assert [(one.begun_at, one.finished_at) for one in begun.attempts(STUDY)] == [(2.5, 3.5)]
        assert _times(begun) == [
            (None, 2.75, 4.5),
            (None, 5.5, 6.5),
            *[(None, None, None)] * 2,
            (1.25, None, None),
        ]

    def test_what_is_finished_is_not_begun(self, begun: Storage) -> None:
        begun.finish(STUDY, {0: replace(DONE, begun_at=1.5, finished_at=2.5)})
        begun.begin(STUDY, {0: 9.5, 1: 9.5})
        assert _times(begun)[:2] == [(None, 1.5, 2.5), (None, 9.5, None)]

    def test_a_trial_that_is_taken_over_was_begun_and_one_that_is_freed_was_not(
        self, begun: Storage
    ) -> None:
        begun.claim(STUDY, [0, 1], 0)
        begun.begin(STUDY, {0: 1.5, 1: 1.5})
        (taken,) = begun.claim(STUDY, [0], 1, lost=[0])
        assert (taken.begun_at, taken.worker) == (1.5, 1)
        begun.leave(STUDY, 0)
        assert _times(begun)[:2] == [(None, 1.5, None), (None, None, None)]

    @pytest.mark.parametrize("after", [0, 3, 5])
    def test_who_was_overtaken_adds_nothing(self, begun: Storage, after: int) -> None:
        with pytest.raises(Overtaken, match="4 trials"):
            begun.add(STUDY, DESIGNS, Ask(after=after, events=(CHOICE,)))
        assert len(begun.trials(STUDY)) == 4
        assert begun.asks(STUDY) == [Asked(first=0, count=4)]
        assert begun.events(STUDY) == []

    def test_of_all_who_ask_after_the_same_trials_one_adds(self, begun: Storage) -> None:
        with ThreadPoolExecutor(4) as threads:
            added = list(threads.map(partial(_add_after_four, begun), range(8)))
        assert sorted(added) == [0] * 7 + [1]
        assert len(begun.trials(STUDY)) == 5

    def test_who_adds_with_a_driver_holds_the_trials_at_once(self, begun: Storage) -> None:
        new = begun.add(STUDY, DESIGNS[:1], Ask(worker=1))
        assert [(trial.state, trial.worker) for trial in new] == [(State.RUNNING, 1)]
        assert begun.trials(STUDY)[4:] == new
        assert begun.asks(STUDY)[-1].worker == 1

    def test_a_trial_is_claimed_by_one(self, begun: Storage) -> None:
        mine = begun.claim(STUDY, [2, 0], 0)
        assert [(t.number, t.state, t.worker) for t in mine] == [
            (2, State.RUNNING, 0),
            (0, State.RUNNING, 0),
        ]
        assert [trial.number for trial in begun.claim(STUDY, [0, 1, 2, 1], 1)] == [1]
        assert begun.claim(STUDY, [0, 1, 2], 0) == []
        assert [trial.worker for trial in begun.trials(STUDY)] == [0, 1, 0, None]

    def test_of_all_who_claim_a_trial_at_once_one_gets_it(self, begun: Storage) -> None:
        with ThreadPoolExecutor(4) as threads:
            got = list(threads.map(partial(_claim_all, begun), [0, 1] * 4))
        assert sorted(number for numbers in got for number in numbers) == [0, 1, 2, 3]

    def test_what_a_lost_driver_holds_can_be_claimed(self, begun: Storage) -> None:
        begun.claim(STUDY, [0, 1], 0)
        assert [trial.number for trial in begun.claim(STUDY, [0, 1], 1, lost=[0])] == [0, 1]
        assert begun.claim(STUDY, [0, 1], 1, lost=[0]) == []

    def test_what_is_finished_is_not_claimed(self, begun: Storage) -> None:
        begun.claim(STUDY, [0], 0)
        begun.finish(STUDY, {0: DONE, 1: DONE})
        assert begun.claim(STUDY, [0, 1], 1, lost=[0]) == []

    def test_who_leaves_gives_back_what_is_not_finished(self, begun: Storage) -> None:
        begun.claim(STUDY, [0, 1], 0)
        begun.claim(STUDY, [2], 1)
        begun.finish(STUDY, {1: DONE})
        begun.leave(STUDY, 0)
        assert [(trial.state, trial.worker) for trial in begun.trials(STUDY)] == [
            (State.PENDING, None),
            (State.DONE, 0),
            (State.RUNNING, 1),
            (State.PENDING, None),
        ]
        assert [driver.left for driver in begun.drivers(STUDY)] == [True, False]
        assert [trial.number for trial in begun.claim(STUDY, [0], 1)] == [0]

    def test_what_is_added_for_who_has_left_can_be_claimed(self, begun: Storage) -> None:
        begun.leave(STUDY, 0)
        begun.add(STUDY, DESIGNS[:1], Ask(worker=0))
        assert [trial.number for trial in begun.claim(STUDY, [4], 1)] == [4]

    def test_drivers_are_numbered_and_kept_as_they_entered(self, begun: Storage) -> None:
        assert begun.enter(STUDY, HERE) == 2
        first = begun.drivers(STUDY)[0]
        entered = (first.id, first.host, first.pid, first.started, first.beat, first.left)
        assert entered == (0, HERE.host, HERE.pid, HERE.started, 0, False)
        assert first.provenance == HERE.provenance
        assert [driver.id for driver in begun.drivers(STUDY)] == [0, 1, 2]

    def test_a_beat_rises_for_who_beats(self, begun: Storage) -> None:
        begun.beat(STUDY, 1)
        begun.beat(STUDY, 1)
        assert [driver.beat for driver in begun.drivers(STUDY)] == [0, 2]

    @pytest.mark.parametrize("method", sorted(_DRIVEN))
    @pytest.mark.parametrize("driver", [2, -1])
    def test_a_driver_that_never_entered_is_refused(
        self, begun: Storage, method: str, driver: int
    ) -> None:
        with pytest.raises(StudyError, match=f"no driver {driver}"):
            _DRIVEN[method](begun, driver)

    def test_the_first_outcome_is_taken_and_a_later_one_passed_over(self, begun: Storage) -> None:
        assert begun.finish(STUDY, {2: DONE, 0: CRASHED}) == [2, 0]
        assert begun.finish(STUDY, {0: DONE, 3: DONE, 2: CRASHED}) == [3]
        assert begun.finished_order(STUDY) == [2, 0, 3]
        assert [trial.state for trial in begun.trials(STUDY).finished] == [
            State.DONE,
            State.FAILED,
            State.DONE,
        ]

    def test_the_first_outcome_counts_whoever_holds_the_trial(self, begun: Storage) -> None:
        begun.claim(STUDY, [0, 1], 0)
        assert begun.finish(STUDY, {0: DONE}, worker=1) == [0]
        assert begun.finish(STUDY, {0: DONE, 1: DONE}, worker=0) == [1]
        assert [trial.worker for trial in begun.trials(STUDY)[:2]] == [1, 0]

    def test_of_all_who_finish_a_trial_at_once_one_is_heard(self, begun: Storage) -> None:
        with ThreadPoolExecutor(4) as threads:
            taken = list(threads.map(partial(_finish_all, begun), range(8)))
        assert sorted(number for numbers in taken for number in numbers) == [0, 1, 2, 3]
        assert sorted(begun.finished_order(STUDY)) == [0, 1, 2, 3]

    def test_events_are_kept_with_the_outcomes(self, begun: Storage) -> None:
        begun.finish(STUDY, {0: DONE}, [CHOICE])
        begun.finish(STUDY, {0: DONE}, [Event(kind="late", text="")])
        assert [event.kind for event in begun.events(STUDY)] == ["choice", "late"]

    @pytest.mark.parametrize("state", [state for state in State if state.finished])
    def test_a_trial_ends_in_every_state_that_is_an_end(self, begun: Storage, state: State) -> None:
        begun.finish(STUDY, {0: Outcome(state=state, metrics={"q.accuracy": 0.5})})
        assert begun.trials(STUDY)[0].state is state

    def test_a_trial_that_is_issued_again_is_pending_and_free(self, begun: Storage) -> None:
        begun.claim(STUDY, [0, 1], 0)
        begun.finish(STUDY, {1: DONE})
        assert begun.retry(STUDY, {0: LOST, 1: LOST}) == [0]
        trial = begun.trials(STUDY)[0]
        assert (trial.state, trial.worker, trial.attempts) == (State.PENDING, None, 1)
        assert (trial.failure, trial.cost_s) == (None, 0.0)
        assert [trial.number for trial in begun.claim(STUDY, [0], 1)] == [0]

    def test_what_was_given_up_is_remembered_with_its_fault_and_cost(self, begun: Storage) -> None:
        begun.retry(STUDY, {1: LOST, 0: DONE})
        begun.retry(STUDY, {1: CRASHED})
        begun.finish(STUDY, {1: IMPOSSIBLE})
        assert begun.attempts(STUDY) == [
            Attempt(number=1, attempt=0, failure=LOST.failure, cost_s=0.1),
            Attempt(number=0, attempt=0, cost_s=1.5),
            Attempt(number=1, attempt=1, failure=CRASHED.failure, cost_s=0.25),
        ]
        assert [trial.attempts for trial in begun.trials(STUDY)] == [1, 2, 0, 0]

    def test_news_is_returned_without_what_is_known(self, begun: Storage) -> None:
        begun.finish(STUDY, {3: DONE, 0: CRASHED})
        begun.add(STUDY, DESIGNS[:2])
        begun.finish(STUDY, {4: DONE, 1: DONE})
        news = begun.since(STUDY, finished=1, trials=4)
        assert [trial.number for trial in news.finished] == [0, 4, 1]
        assert [trial.number for trial in news.added] == [4, 5]
        assert news.finished[0] == begun.trials(STUDY)[0]
        none = begun.since(STUDY, finished=4, trials=6)
        assert ([*none.finished], [*none.added]) == ([], [])

    def test_reports_of_an_attempt_that_was_given_up_are_passed_over(self, begun: Storage) -> None:
        begun.report(STUDY, [_make_report(0)])
        begun.retry(STUDY, {0: LOST})
        late, now = _make_report(0), replace(_make_report(0), attempt=1)
        begun.report(STUDY, [late, now])
        assert begun.reports(STUDY) == [_make_report(0), now]

    def test_reports_come_in_the_order_of_their_arrival(self, begun: Storage) -> None:
        first, second = (
            _make_report(3),
            Report(number=0, attempt=1, step=-7, metrics={"a": 0.1 + 0.2}),
        )
        begun.report(STUDY, [first])
        begun.report(STUDY, [])
        begun.report(STUDY, [second, first])
        assert begun.reports(STUDY) == [first, second, first]
        assert begun.reports(STUDY, since=1) == [second, first]
        assert begun.reports(STUDY, since=3) == []

    @pytest.mark.parametrize("value", [float("nan"), float("inf")])
    def test_what_is_no_number_is_not_reported(self, begun: Storage, value: float) -> None:
        with pytest.raises(StorageError, match="trial 1: a"):
            begun.report(STUDY, [_make_report(0), Report(number=1, step=0, metrics={"a": value})])
        assert begun.reports(STUDY) == []

    @pytest.mark.parametrize("bad", [4, -1])
    @pytest.mark.parametrize("method", sorted(_REFUSED))
    def test_a_call_about_an_unknown_trial_leaves_no_trace(
        self, begun: Storage, method: str, bad: int
    ) -> None:
        before = begun.trials(STUDY)
        with pytest.raises(StudyError):
            _REFUSED[method](begun, bad)
        assert begun.trials(STUDY) == before
        assert begun.events(STUDY) == []
        assert begun.attempts(STUDY) == []
        assert begun.reports(STUDY) == []

    def test_a_deleted_study_is_forgotten_with_all_that_drivers_did(self, begun: Storage) -> None:
        begun.retry(STUDY, {0: LOST})
        begun.report(STUDY, [_make_report(0)])
        begun.delete(STUDY)
        begun.create(STUDY, {})
        assert begun.asks(STUDY) == []
        assert begun.attempts(STUDY) == []
        assert begun.reports(STUDY) == []
        assert begun.drivers(STUDY) == []


def _times(storage: Storage) -> list[tuple[float | None, ...]]:
    return [(t.asked_at, t.begun_at, t.finished_at) for t in storage.trials(STUDY)]


def _make_report(number: int) -> Report:
    return Report(number=number, step=1, metrics={"q.accuracy": 0.5})


def _add_after_four(storage: Storage, _: int) -> int:
    try:
        return len(storage.add(STUDY, DESIGNS[:1], Ask(after=4)))
    except Overtaken:
        return 0


def _claim_all(storage: Storage, driver: int) -> list[int]:
    return [trial.number for trial in storage.claim(STUDY, range(4), driver)]


def _finish_all(storage: Storage, _: int) -> list[int]:
    return storage.finish(STUDY, dict.fromkeys(range(4), DONE))
