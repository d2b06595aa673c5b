"""Contract tests of a storage: subclass, override one fixture, run pytest.

.. code-block:: python

    class TestSqlite(StorageContract):
        @pytest.fixture
        def storage(self, tmp_path):
            storage = SqlStorage(f"sqlite:///{tmp_path}/study.db")
            yield storage
            storage.close()

Sharing between drivers and durability beyond the process have contracts of their own: see
``sharing_contract`` and ``durability_contract``.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from dse.core.design import Design
from dse.core.metric import Failure
from dse.core.trial import (
    Ask,
    Asked,
    Attempt,
    Driver,
    Event,
    History,
    Outcome,
    Report,
    State,
    Trial,
)
from dse.core.trials import Trials
from dse.errors import StorageError, StudyError
from dse.interop.archive.stream import open_trials
from dse.protocols import Storage

STUDY = "edge: größer & 'besser'"
DESIGNS = tuple(
    Design({"tp": tp, "clock": 0.1 * tp, "format": "int8", "on": True}) for tp in (1, 2, 4, 8)
)
ODD = "no UTF-8: \x00 \udcff \U0001f600"
"""Text that is not valid UTF-8, as a crashing process may print."""

DONE = Outcome(
    state=State.DONE,
    metrics={"q.accuracy": 0.1 + 0.2, "chip.energy": 5e-324},
    spread={"q.accuracy": 1e-3},
    cost_s=1.5,
    measured=2,
)
IMPOSSIBLE = Outcome(
    state=State.INFEASIBLE,
    metrics={"chip.area": 2.0},
    failure=Failure(kind="infeasible", reason="big"),
)
CRASHED = Outcome(state=State.FAILED, failure=Failure(kind="crashed", reason=ODD), cost_s=0.25)


def _make_trial(number: int) -> Trial:
    return Trial(number=number, design=DESIGNS[number], told=number)


HISTORY = History(
    trials=[
        _make_trial(0).finished(CRASHED),
        _make_trial(1).freed(attempts=1),
        _make_trial(2).finished(DONE, 0),
    ],
    order=[2, 0],
    events=[Event(kind="choice", text=ODD, told=1)],
    asks=[Asked(first=0, count=3, wanted=4, by="random")],
    attempts=[Attempt(number=1, attempt=0, failure=CRASHED.failure)],
    reports=[Report(number=2, step=1, metrics={"q.accuracy": 0.5})],
    drivers=[Driver(id=0, host="here", pid=7, beat=3, left=True)],
)

_METHODS: dict[str, Callable[[Storage], object]] = {
    "delete": lambda storage: storage.delete("another"),
    "add": lambda storage: storage.add("another", DESIGNS),
    "move": lambda storage: storage.move("another", [0], State.RUNNING),
    "finish": lambda storage: storage.finish("another", {0: DONE}),
    "trials": lambda storage: storage.trials("another"),
    "finished_order": lambda storage: storage.finished_order("another"),
    "record": lambda storage: storage.record("another", [Event(kind="choice", text="")]),
    "events": lambda storage: storage.events("another"),
    "claim": lambda storage: storage.claim("another", [0], 0),
    "retry": lambda storage: storage.retry("another", {0: CRASHED}),
    "attempts": lambda storage: storage.attempts("another"),
    "since": lambda storage: storage.since("another", 0, 0),
    "asks": lambda storage: storage.asks("another"),
    "report": lambda storage: storage.report("another", []),
    "reports": lambda storage: storage.reports("another"),
    "enter": lambda storage: storage.enter("another", Driver()),
    "beat": lambda storage: storage.beat("another", 0),
    "leave": lambda storage: storage.leave("another", 0),
    "drivers": lambda storage: storage.drivers("another"),
}


class StorageContract:
    """Contract tests of a storage within one process."""

    @pytest.fixture
    def storage(self) -> Storage:
        """Return an empty storage; subclasses have to override this fixture."""
        raise NotImplementedError("the contract needs the fixture 'storage'")

    @pytest.fixture
    def begun(self, storage: Storage) -> Storage:
        """Return the storage with a study of four pending trials."""
        storage.create(STUDY, {"seed": 7})
        storage.add(STUDY, DESIGNS)
        return storage

    def test_a_study_is_created_with_its_spec_and_nothing_else(self, storage: Storage) -> None:
        spec = {"z": [1, 2.5, None, True], "a": {"ß": "\n", "b": ODD}}
        storage.create(STUDY, spec)
        assert storage.spec(STUDY) == spec
        assert storage.trials(STUDY) == []
        assert storage.finished_order(STUDY) == []
        assert storage.events(STUDY) == []

    def test_a_spec_keeps_the_order_of_its_keys(self, storage: Storage) -> None:
        storage.create(STUDY, {"z": 1, "a": 2, "m": {"y": 1, "b": 2}})
        spec = storage.spec(STUDY) or {}
        assert list(spec) == ["z", "a", "m"]
        assert list(spec["m"]) == ["y", "b"]

    def test_a_spec_that_is_changed_later_is_kept_as_it_was(self, storage: Storage) -> None:
        spec = {"seed": 7}
        storage.create(STUDY, spec)
        spec["seed"] = 8
        (storage.spec(STUDY) or {})["seed"] = 9
        assert storage.spec(STUDY) == {"seed": 7}

    def test_there_is_one_study_of_a_name(self, begun: Storage) -> None:
        with pytest.raises(StudyError, match="already"):
            begun.create(STUDY, {"seed": 8})
        assert begun.spec(STUDY) == {"seed": 7}

    def test_studies_come_in_the_order_of_their_creation(self, storage: Storage) -> None:
        for name in ("b", "c", "a"):
            storage.create(name, {})
        storage.delete("c")
        storage.create("c", {})
        assert storage.studies() == ["b", "a", "c"]

    def test_a_study_is_created_with_a_history_in_one_step(self, storage: Storage) -> None:
        storage.create(STUDY, {"seed": 7}, HISTORY)
        assert storage.trials(STUDY) == HISTORY.trials
        assert storage.finished_order(STUDY) == [2, 0]
        assert storage.events(STUDY) == HISTORY.events
        assert storage.asks(STUDY) == HISTORY.asks
        assert storage.attempts(STUDY) == HISTORY.attempts
        assert storage.reports(STUDY) == HISTORY.reports
        assert storage.drivers(STUDY) == HISTORY.drivers

    def test_a_history_is_gone_on_with(self, storage: Storage) -> None:
        storage.create(STUDY, {}, HISTORY)
        assert [trial.number for trial in storage.add(STUDY, DESIGNS[:1])] == [3]
        assert storage.finish(STUDY, {0: DONE, 3: DONE, 1: DONE}) == [3, 1]
        assert storage.finished_order(STUDY) == [2, 0, 3, 1]
        assert storage.enter(STUDY, Driver()) == 1

    def test_what_was_running_in_a_history_is_pending_and_free(self, storage: Storage) -> None:
        storage.create(STUDY, {}, History(trials=[_make_trial(0).held(4)]))
        assert storage.trials(STUDY) == [_make_trial(0)]

    @pytest.mark.parametrize(
        "odd",
        [
            History(trials=[_make_trial(1)]),
            History(trials=[_make_trial(0).finished(DONE)]),
            History(trials=[_make_trial(0)], order=[0]),
            History(trials=[_make_trial(0).finished(DONE)], order=[0, 0]),
        ],
        ids=["gap", "no place", "not finished", "twice"],
    )
    def test_a_history_that_cannot_be_begins_no_study(self, storage: Storage, odd: History) -> None:
        with pytest.raises(StudyError):
            storage.create(STUDY, {}, odd)
        assert storage.studies() == []

    def test_a_study_that_is_not_there_has_no_spec(self, storage: Storage) -> None:
        assert storage.spec(STUDY) is None

    @pytest.mark.parametrize("method", sorted(_METHODS))
    def test_a_study_that_is_not_there_is_reported_as_missing(
        self, begun: Storage, method: str
    ) -> None:
        with pytest.raises(StudyError, match="there is no study 'another'"):
            _METHODS[method](begun)
        assert begun.studies() == [STUDY]

    def test_a_deleted_study_is_forgotten_with_all_its_trials(self, begun: Storage) -> None:
        begun.record(STUDY, [Event(kind="choice", text="nsga2")])
        begun.delete(STUDY)
        assert begun.studies() == []
        begun.create(STUDY, {})
        assert begun.trials(STUDY) == []
        assert begun.events(STUDY) == []

    def test_what_is_added_is_numbered_and_pending(self, begun: Storage) -> None:
        more = begun.add(STUDY, DESIGNS[:2], Ask(told=3))
        assert [trial.number for trial in more] == [4, 5]
        assert [trial.told for trial in begun.trials(STUDY)] == [0, 0, 0, 0, 3, 3]
        assert {trial.state for trial in begun.trials(STUDY)} == {State.PENDING}
        assert begun.trials(STUDY)[4:] == more

    def test_nothing_is_added_when_there_is_nothing_to_add(self, begun: Storage) -> None:
        assert begun.add(STUDY, []) == []
        assert len(begun.trials(STUDY)) == 4

    def test_studies_number_their_own_trials(self, begun: Storage) -> None:
        begun.create("another", {})
        assert [trial.number for trial in begun.add("another", DESIGNS[:1])] == [0]
        begun.finish("another", {0: DONE})
        assert begun.trials(STUDY)[0].state is State.PENDING

    def test_numbers_run_from_0_without_a_gap_whoever_adds(self, storage: Storage) -> None:
        storage.create(STUDY, {})
        with ThreadPoolExecutor(4) as threads:
            added = list(threads.map(partial(_add_two, storage), range(40)))
        assert sorted(number for numbers in added for number in numbers) == list(range(80))
        assert [trial.number for trial in storage.trials(STUDY)] == list(range(80))

    def test_trials_come_by_number_as_they_were_written(self, begun: Storage) -> None:
        before = begun.trials(STUDY)
        begun.finish(STUDY, {2: DONE, 0: CRASHED, 1: IMPOSSIBLE})
        after = begun.trials(STUDY)
        assert [trial.design for trial in before] == list(DESIGNS)
        assert after == [
            before[0].finished(CRASHED),
            before[1].finished(IMPOSSIBLE),
            before[2].finished(DONE),
            before[3],
        ]

    def test_the_parts_of_a_stream_hold_all_trials_in_their_order(self, begun: Storage) -> None:
        begun.finish(STUDY, {2: CRASHED, 0: DONE, 1: IMPOSSIBLE})
        with open_trials(begun, STUDY) as stream:
            assert (stream.size, stream.spread) == (4, frozenset({"q.accuracy"}))
            found = Trials.joined(list(stream.parts))
        whole = begun.trials(STUDY)
        assert found == whole
        assert found.ended.tolist() == whole.ended.tolist()

    def test_all_parts_of_a_stream_show_one_state_of_the_study(self, begun: Storage) -> None:
        with open_trials(begun, STUDY) as stream:
            begun.finish(STUDY, {1: DONE})
            begun.add(STUDY, DESIGNS)
            states = [trial.state for part in stream.parts for trial in part]
        assert (stream.size, stream.spread) == (4, frozenset())
        assert states == [State.PENDING] * 4

    def test_a_stream_of_a_study_without_trials_is_empty(self, storage: Storage) -> None:
        storage.create(STUDY, {})
        with open_trials(storage, STUDY) as stream:
            assert (stream.size, [*stream.parts]) == (0, [])

    def test_a_value_of_a_design_keeps_its_type(self, begun: Storage) -> None:
        values = begun.trials(STUDY)[0].design
        assert {name: type(value) for name, value in values.items()} == {
            "clock": float,
            "format": str,
            "on": bool,
            "tp": int,
        }

    def test_the_order_in_which_trials_finished_is_kept(self, begun: Storage) -> None:
        begun.finish(STUDY, {2: DONE, 0: CRASHED})
        begun.finish(STUDY, {})
        begun.finish(STUDY, {3: DONE})
        assert begun.finished_order(STUDY) == [2, 0, 3]

    def test_a_finished_trial_never_changes(self, begun: Storage) -> None:
        begun.finish(STUDY, {1: DONE})
        assert begun.finish(STUDY, {1: CRASHED}) == []
        with pytest.raises(StudyError, match="done already"):
            begun.move(STUDY, [1], State.PENDING)
        assert begun.trials(STUDY)[1].finished(DONE) == begun.trials(STUDY)[1]
        assert begun.finished_order(STUDY) == [1]

    @pytest.mark.parametrize("bad", [1, 4, -1], ids=["finished", "unknown", "negative"])
    def test_a_call_that_is_refused_leaves_no_trace(self, begun: Storage, bad: int) -> None:
        begun.finish(STUDY, {1: DONE})
        before = begun.trials(STUDY)
        with pytest.raises(StudyError):
            begun.move(STUDY, [0, bad, 2], State.RUNNING)
        assert begun.trials(STUDY) == before
        assert begun.finished_order(STUDY) == [1]

    @pytest.mark.parametrize("value", [float("nan"), float("inf")])
    def test_what_is_no_number_is_refused(self, begun: Storage, value: float) -> None:
        bad = Outcome(state=State.DONE, metrics={"q.accuracy": value})
        with pytest.raises(StorageError, match=r"trial 1: q\.accuracy"):
            begun.finish(STUDY, {0: DONE, 1: bad})
        assert begun.finished_order(STUDY) == []

    def test_a_trial_ends_only_with_an_outcome(self, begun: Storage) -> None:
        with pytest.raises(StudyError):
            begun.finish(STUDY, {0: Outcome(state=State.RUNNING)})
        with pytest.raises(StudyError):
            begun.move(STUDY, [0], State.DONE)
        assert begun.trials(STUDY)[0].state is State.PENDING

    def test_an_unfinished_trial_is_put_in_another_unfinished_state(self, begun: Storage) -> None:
        begun.move(STUDY, [0, 2], State.RUNNING)
        begun.move(STUDY, [2], State.PENDING)
        begun.move(STUDY, [], State.RUNNING)
        states = [trial.state for trial in begun.trials(STUDY)]
        assert states == [State.RUNNING, State.PENDING, State.PENDING, State.PENDING]

    def test_events_come_oldest_first(self, begun: Storage) -> None:
        first, second = (
            Event(kind="choice", text="b", told=0),
            Event(kind="proof", text=ODD, told=9),
        )
        begun.record(STUDY, [first])
        begun.record(STUDY, [])
        begun.record(STUDY, [second, first])
        assert begun.events(STUDY) == [first, second, first]


def _add_two(storage: Storage, finished: int) -> list[int]:
    return [trial.number for trial in storage.add(STUDY, DESIGNS[:2], Ask(told=finished))]
