"""Contract tests of a storage that queues trials for its drivers; see ``storage_contract``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from dse.core.trial import Ask, Driver, State
from dse.errors import Overtaken, StudyError
from dse.protocols import Queueing
from dse.testing.storage_contract import DESIGNS, DONE, STUDY

_METHODS: dict[str, Callable[[Queueing, str], object]] = {
    "acquire_asker": lambda storage, study: storage.acquire_asker(study, 0, 0),
    "release_asker": lambda storage, study: storage.release_asker(study, 0, 0),
    "take": lambda storage, study: storage.take(study, 0, 1),
}


class QueueingContract:
    """Contract tests of a storage with a queue, for processes that share a study."""

    @pytest.fixture
    def storage(self) -> Iterator[Queueing]:
        """Yield an empty storage; subclasses have to override this fixture."""
        raise NotImplementedError("the contract needs the fixture 'storage'")

    @pytest.fixture
    def begun(self, storage: Queueing) -> Queueing:
        """Return the storage with a study of four pending trials and the drivers 0, 1 and 2."""
        storage.create(STUDY, {"seed": 7})
        storage.add(STUDY, DESIGNS)
        for _ in range(3):
            storage.enter(STUDY, Driver())
        return storage

    def test_it_has_what_queueing_needs(self, storage: Queueing) -> None:
        assert isinstance(storage, Queueing)

    @pytest.mark.parametrize("method", sorted(_METHODS))
    def test_a_study_that_is_missing_has_no_queue(self, storage: Queueing, method: str) -> None:
        with pytest.raises(StudyError, match="there is no study 'another'"):
            _METHODS[method](storage, "another")

    def test_of_all_who_acquire_a_term_one_gets_it(self, begun: Queueing) -> None:
        with ThreadPoolExecutor(4) as threads:
            got = list(threads.map(partial(_acquire, begun, 0), [0, 1, 2]))
        assert sum(got) == 1
        queue = begun.take(STUDY, 0, 0).queue
        assert (queue.asker, queue.term) == (got.index(True), 1)

    def test_an_asker_is_succeeded_in_the_next_term(self, begun: Queueing) -> None:
        assert begun.acquire_asker(STUDY, 0, 0)
        assert not begun.acquire_asker(STUDY, 1, 0)
        assert begun.acquire_asker(STUDY, 1, 1)
        queue = begun.take(STUDY, 2, 0).queue
        assert (queue.asker, queue.term) == (1, 2)

    def test_to_acquire_a_term_twice_is_as_good_as_once(self, begun: Queueing) -> None:
        assert [begun.acquire_asker(STUDY, 0, 0) for _ in range(2)] == [True, True]
        assert begun.take(STUDY, 0, 0).queue.term == 1

    def test_a_driver_that_never_entered_cannot_ask(self, begun: Queueing) -> None:
        with pytest.raises(StudyError, match="no driver 3"):
            begun.acquire_asker(STUDY, 3, 0)

    @pytest.mark.parametrize("term", [1, None])
    def test_the_ask_of_the_asker_is_kept(self, begun: Queueing, term: int | None) -> None:
        begun.acquire_asker(STUDY, 1, 0)
        ask = Ask(worker=1, term=term)
        assert [trial.number for trial in begun.add(STUDY, DESIGNS[:1], ask)] == [4]
        assert begun.take(STUDY, 0, 0).queue.asker == 1

    @pytest.mark.parametrize(
        "ask",
        [
            Ask(worker=0),
            Ask(worker=0, after=4),
            Ask(worker=0, term=1),
            Ask(worker=0, term=2),
            Ask(worker=1, term=1),
        ],
        ids=["no term", "no term, all known", "past term", "the other's term", "own past term"],
    )
    def test_no_other_ask_is_kept(self, begun: Queueing, ask: Ask) -> None:
        begun.acquire_asker(STUDY, 0, 0)
        begun.acquire_asker(STUDY, 1, 1)
        before = begun.trials(STUDY), begun.asks(STUDY)
        with pytest.raises(Overtaken):
            begun.add(STUDY, DESIGNS, ask)
        assert (begun.trials(STUDY), begun.asks(STUDY)) == before

    def test_a_past_term_stays_past_when_its_successor_has_stepped_down(
        self, begun: Queueing
    ) -> None:
        begun.acquire_asker(STUDY, 0, 0)
        begun.acquire_asker(STUDY, 1, 1)
        begun.release_asker(STUDY, 1, 2)
        with pytest.raises(Overtaken, match="not the asker"):
            begun.add(STUDY, DESIGNS, Ask(worker=0, term=1))
        assert begun.acquire_asker(STUDY, 2, 2)

    def test_what_is_added_by_hand_waits_for_no_asker(self, begun: Queueing) -> None:
        begun.acquire_asker(STUDY, 0, 0)
        assert [trial.number for trial in begun.add(STUDY, DESIGNS[:1], Ask(after=4))] == [4]

    def test_without_an_asker_whoever_knows_all_trials_may_ask(self, begun: Queueing) -> None:
        begun.acquire_asker(STUDY, 0, 0)
        begun.release_asker(STUDY, 0, 1)
        assert len(begun.add(STUDY, DESIGNS[:1], Ask(worker=1, after=4))) == 1

    def test_only_the_asker_of_a_term_gives_it_up(self, begun: Queueing) -> None:
        begun.acquire_asker(STUDY, 0, 0)
        for driver, term in [(1, 1), (0, 0), (0, 2)]:
            begun.release_asker(STUDY, driver, term)
        assert begun.take(STUDY, 0, 0).queue.asker == 0
        begun.release_asker(STUDY, 0, 1)
        queue = begun.take(STUDY, 0, 0).queue
        assert (queue.asker, queue.term) == (None, 1)

    def test_an_ask_can_end_the_term(self, begun: Queueing) -> None:
        begun.acquire_asker(STUDY, 0, 0)
        begun.add(STUDY, DESIGNS[:1], Ask(worker=0, term=1, releases=True))
        queue = begun.take(STUDY, 0, 0).queue
        assert (queue.asker, queue.term, queue.trials) == (None, 1, 5)

    def test_a_driver_that_leaves_is_the_asker_no_more(self, begun: Queueing) -> None:
        begun.acquire_asker(STUDY, 0, 0)
        begun.leave(STUDY, 1)
        assert begun.take(STUDY, 2, 0).queue.asker == 0
        begun.leave(STUDY, 0)
        assert begun.take(STUDY, 2, 0).queue.asker is None

    def test_what_is_asked_ahead_waits_for_any_driver(self, begun: Queueing) -> None:
        new = begun.add(STUDY, DESIGNS[:3], Ask(worker=1, ahead=2, wanted=3))
        assert [(trial.state, trial.worker) for trial in new] == [
            (State.RUNNING, 1),
            (State.PENDING, None),
            (State.PENDING, None),
        ]
        assert begun.trials(STUDY)[4:] == new
        assert (begun.asks(STUDY)[-1].count, begun.asks(STUDY)[-1].worker) == (3, 1)

    def test_the_lowest_numbers_are_taken_first(self, begun: Queueing) -> None:
        begun.claim(STUDY, [1], 2)
        mine = begun.take(STUDY, 0, 2)
        assert [(t.number, t.state, t.worker) for t in mine.trials] == [
            (0, State.RUNNING, 0),
            (2, State.RUNNING, 0),
        ]
        assert begun.trials(STUDY)[0] == mine.trials[0]
        assert [t.number for t in begun.take(STUDY, 1, 9).trials] == [3]
        assert [*begun.take(STUDY, 1, 9, known=[3]).trials] == []

    def test_each_take_gives_other_trials_whoever_takes(self, begun: Queueing) -> None:
        begun.add(STUDY, DESIGNS * 4)
        with ThreadPoolExecutor(4) as threads:
            takes = list(threads.map(partial(_take_three, begun), [0, 1, 2, 0, 1, 2]))
        assert sorted(number for numbers in takes for number in numbers) == list(range(18))

    def test_finished_trials_are_not_taken(self, begun: Queueing) -> None:
        begun.finish(STUDY, {0: DONE, 2: DONE})
        assert [trial.number for trial in begun.take(STUDY, 0, 9).trials] == [1, 3]

    def test_only_trials_below_a_number_are_taken(self, begun: Queueing) -> None:
        assert [trial.number for trial in begun.take(STUDY, 0, 9, below=2).trials] == [0, 1]

    def test_the_trials_of_lost_drivers_are_taken_and_named(self, begun: Queueing) -> None:
        begun.take(STUDY, 0, 2)
        begun.take(STUDY, 1, 1)
        taken = begun.take(STUDY, 2, 9, lost=[0])
        assert [trial.number for trial in taken.trials] == [0, 1, 3]
        assert taken.inherited == {0, 1}

    def test_the_trials_of_a_driver_that_left_are_free(self, begun: Queueing) -> None:
        begun.leave(STUDY, 0)
        begun.add(STUDY, DESIGNS[:1], Ask(worker=0))
        taken = begun.take(STUDY, 1, 9)
        assert [trial.number for trial in taken.trials] == [0, 1, 2, 3, 4]
        assert taken.inherited == frozenset()

    def test_what_an_unheard_take_gave_is_given_again(self, begun: Queueing) -> None:
        begun.take(STUDY, 0, 2)
        again = begun.take(STUDY, 0, 3, known=[1])
        assert [trial.number for trial in again.trials] == [0, 2, 3]
        assert again.inherited == frozenset()

    def test_a_take_shows_how_the_study_stands(self, begun: Queueing) -> None:
        begun.add(STUDY, DESIGNS[:2], Ask(seconds=0.5, worker=2, ahead=1))
        begun.leave(STUDY, 1)
        begun.finish(STUDY, {3: DONE})
        queue = begun.take(STUDY, 0, 2).queue
        assert (queue.waiting, queue.holders, queue.drivers) == (2, 2, 2)
        assert (queue.trials, queue.finished) == (6, 1)
        assert (queue.asked, queue.ask_s) == (2, 0.5)
        assert begun.take(STUDY, 0, 0).queue == queue

    def test_a_deleted_study_leaves_no_asker(self, begun: Queueing) -> None:
        begun.acquire_asker(STUDY, 0, 0)
        begun.delete(STUDY)
        begun.create(STUDY, {})
        queue = begun.take(STUDY, 0, 0).queue
        assert (queue.asker, queue.term, queue.drivers) == (None, 0, 0)


def _acquire(storage: Queueing, term: int, driver: int) -> bool:
    return storage.acquire_asker(STUDY, driver, term)


def _take_three(storage: Queueing, driver: int) -> list[int]:
    # A superset of the numbers that a driver holds, so that no trial is given to it again.
    known = range(20)
    return [trial.number for trial in storage.take(STUDY, driver, 3, known=known).trials]
