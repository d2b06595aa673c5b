"""One driver asks at a time, ahead for the others; nobody starves, and the record is proved."""

import random

import pytest

from benchmarks.simulated_drivers import STUDY, Account, Fleet, simulate
from dse.core.trial import Queue
from dse.optimizers.random_search import RandomSearch
from dse.study.history import TrialHistory, moments
from dse.study.lookahead import FIRST, Lookahead


def check_record(account: Account) -> None:
    """Every trial is finished once or waits, no design is there twice, each ask is replayed."""
    storage = account.storage
    history = TrialHistory(storage, STUDY)
    history.read()
    finished = [trial.number for trial in history.trials if trial.state.finished]
    assert sorted(storage.finished_order(STUDY)) == finished
    assert all(trial.worker is None for trial in history.open.values())
    assert len({trial.design for trial in history.trials}) == len(history.trials)
    optimizer = RandomSearch(account.problem)
    for moment in moments(storage.asks(STUDY), history.trials, history.finished):
        ask = moment.ask
        optimizer.tell(moment.news)
        given = [t.design for t in history.trials[ask.first : ask.first + ask.count]]
        assert optimizer.ask(ask.wanted, moment.pending) == given


def seconds(mean_s: float, place: int, number: int) -> float:
    return mean_s * random.Random(number * 1000 + place).uniform(0.7, 1.3)


FLEETS = {
    "quick asks": Fleet(
        drivers=8, evaluate_s=lambda p, n: seconds(1, p, n), ask_s=lambda _: 0.01, trials=100
    ),
    "slow asks": Fleet(
        drivers=8, evaluate_s=lambda p, n: seconds(10, p, n), ask_s=lambda _: 5.0, trials=100
    ),
    "slower for more": Fleet(
        drivers=8, evaluate_s=lambda p, n: seconds(10, p, n), ask_s=lambda n: 0.5 * n, trials=100
    ),
    "all at once": Fleet(drivers=8, evaluate_s=lambda *_: 10.0, ask_s=lambda _: 1.0, trials=96),
    "batches": Fleet(
        drivers=4,
        evaluate_s=lambda p, n: seconds(1, p, n),
        ask_s=lambda n: 0.2 * n,
        trials=120,
        batch=5,
    ),
    "no queue": Fleet(
        drivers=3,
        evaluate_s=lambda p, n: seconds(5, p, n),
        ask_s=lambda _: 1.0,
        trials=40,
        queue=False,
    ),
    "one after the other": Fleet(
        drivers=4,
        evaluate_s=lambda p, n: seconds(20, p, n),
        ask_s=lambda _: 5.0,
        trials=40,
        starts_at_s=lambda place: 33.0 * place,
    ),
}


@pytest.mark.parametrize("which", FLEETS)
def test_the_record_of_many_drivers_keeps_the_budget_and_is_proved(which):
    account = simulate(FLEETS[which])
    assert len(account.storage.finished_order(STUDY)) == account.fleet.trials
    check_record(account)


@pytest.mark.parametrize(
    "which", ["quick asks", "slow asks", "slower for more", "all at once", "batches"]
)
def test_no_ask_is_thrown_away_by_drivers_that_begin_together(which):
    account = simulate(FLEETS[which])
    assert account.asks_lost == 0


def test_a_newcomer_costs_a_driver_that_was_alone_one_ask_at_most():
    assert simulate(FLEETS["one after the other"]).asks_lost <= 1


def test_a_driver_that_is_alone_asks_nothing_ahead_and_is_no_asker():
    account = simulate(Fleet(drivers=1, evaluate_s=lambda *_: 1.0, ask_s=lambda _: 5.0, trials=20))
    asks = account.storage.asks(STUDY)
    assert [(ask.count, ask.wanted, ask.told) for ask in asks] == [(1, 1, n) for n in range(20)]
    assert account.transactions["acquire_asker"] == 0
    assert account.transactions["take"] == 1
    assert account.transactions_per_trial < 4


def test_where_asks_are_slow_designs_are_asked_ahead_for_others():
    account = simulate(FLEETS["slow asks"])
    assert max(ask.count for ask in account.storage.asks(STUDY)) > 1


@pytest.mark.parametrize("slower", ["evaluations", "asks"])
def test_a_driver_twice_as_slow_gets_its_share(slower):
    """Trials in proportion to its speed; a slow asker as many as the others."""
    slow = 2.0 if slower == "evaluations" else 1.0
    fleet = Fleet(
        drivers=5,
        evaluate_s=lambda p, n: seconds(10, p, n) * (slow if p == 0 else 1.0),
        ask_s=lambda _: 3.0,
        ask_slower=lambda p: 2.0 if p == 0 and slower == "asks" else 1.0,
        time_s=2000.0,
    )
    account = simulate(fleet)
    others = sum(account.trials[place] for place in range(1, 5)) / 4
    assert account.trials[0] == pytest.approx(others / slow, rel=0.15)
    check_record(account)


def test_when_the_time_is_up_no_trial_is_begun_and_what_waits_stays_pending():
    account = simulate(
        Fleet(
            drivers=6,
            evaluate_s=lambda p, n: seconds(10, p, n),
            ask_s=lambda _: 5.0,
            time_s=300.0,
        )
    )
    assert account.storage.take(STUDY, 0, 0).queue.waiting > 0
    assert account.seconds < 300.0 + 13.0 + 1.0
    check_record(account)


@pytest.mark.parametrize("place", range(3))
def test_when_the_asker_dies_in_an_ask_another_takes_over(place):
    account = simulate(
        Fleet(
            drivers=3,
            evaluate_s=lambda p, n: seconds(20, p, n),
            ask_s=lambda _: 4.0,
            trials=40,
            dies_at={place: 3},
        )
    )
    assert len(account.storage.finished_order(STUDY)) == 40
    check_record(account)
    last = account.storage.asks(STUDY)[-1]
    queue = account.storage.take(STUDY, 0, 0).queue
    assert (last.worker == place, queue.asker) == (False, None)


def test_simulations_are_equal():
    first, second = simulate(FLEETS["slow asks"]), simulate(FLEETS["slow asks"])
    assert list(first.storage.trials(STUDY)) == list(second.storage.trials(STUDY))
    assert (first.seconds, first.transactions) == (second.seconds, second.transactions)


def after(rate_per_s: float, *, drivers: int = 8) -> Lookahead:
    """A lookahead that has seen so many trials a second for a while."""
    lookahead = Lookahead()
    for second in range(0, 400, 10):
        queue = Queue(drivers=drivers, finished=round(rate_per_s * second))
        lookahead.note(float(second), queue)
    return lookahead


BUSY = {"drivers": 8, "holders": 8, "asked": 1, "finished": 10_000, "trials": 10_008}


@pytest.mark.parametrize(
    ("why", "queue", "own", "expected"),
    [
        ("alone", Queue(**{**BUSY, "drivers": 1, "ask_s": 9.0}), 1, 0),
        ("a quick ask needs no queue", Queue(**BUSY, ask_s=0.01), 1, 0),
        ("twice what is taken in an ask", Queue(**BUSY, ask_s=4.0), 1, 12),
        ("but what waits", Queue(**BUSY, ask_s=4.0, waiting=5), 1, 7),
        ("nothing for others while enough waits", Queue(**BUSY, ask_s=4.0, waiting=6), 0, 0),
        ("filled before it is empty", Queue(**BUSY, ask_s=4.0, waiting=5), 0, 7),
        ("never more than two for each other", Queue(**BUSY, ask_s=900.0, waiting=0), 1, 14),
        ("one for each that is idle", Queue(**{**BUSY, "holders": 5}, ask_s=0.01), 1, 2),
        ("as many as its own", Queue(**{**BUSY, "holders": 5}, ask_s=0.01), 4, 8),
    ],
)
def test_how_many_are_asked_ahead(why, queue, own, expected):
    assert after(1.0).count(queue, own=own, holds=False, lost=0) == expected, why


def test_who_is_lost_is_asked_nothing_for():
    queue = Queue(**{**BUSY, "holders": 5}, ask_s=0.01)
    assert after(1.0).count(queue, own=1, holds=False, lost=2) == 0


def test_of_an_ask_of_unknown_length_little_is_wanted_at_first():
    queue = Queue(drivers=1000)
    assert Lookahead().count(queue, own=1, holds=False, lost=0) == FIRST - 1


@pytest.mark.parametrize(("asked", "ask_s", "most"), [(16, 5.0, 192), (1, 30.0, FIRST)])
def test_an_ask_for_many_takes_no_longer_than_others_can_wait(asked, ask_s, most):
    queue = Queue(drivers=1000, asked=asked, ask_s=ask_s)
    assert Lookahead().count(queue, own=1, holds=False, lost=0) == most - 1


def test_a_rate_follows_the_last_trials():
    lookahead = after(1.0)
    for second in range(400, 800, 10):
        lookahead.note(float(second), Queue(drivers=8, finished=400 + 3 * (second - 400)))
    assert lookahead.low(Queue(drivers=8, ask_s=4.0)) == 18


def test_who_waits_in_vain_waits_longer_and_among_many_longest():
    lookahead = Lookahead()
    pauses = [lookahead.pause_s(waits, 8) for waits in range(12)]
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (0.01, 1.0)
    assert (lookahead.pause_s(0, 1600), lookahead.pause_s(99, 1600)) == (1.0, 16.0)
