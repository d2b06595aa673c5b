"""When trials were evaluated, from what they tell of their times."""

import numpy as np
import pytest

from dse.analysis.timeline import PAUSE_S, timeline
from dse.core.design import Design
from dse.core.trial import Outcome, State, Trial

EPOCH = 1.7e9


def trial(number, worker, asked, begun, finished=None):
    """A trial with times in seconds after some moment; without an end it still runs."""
    one = Trial(number=number, design=Design({"x": number}), asked_at=EPOCH + asked).held(worker)
    if finished is None:
        return Trial(number=number, design=one.design, state=State.RUNNING, worker=worker,
                     asked_at=one.asked_at, begun_at=EPOCH + begun)  # fmt: skip
    times = {"begun_at": EPOCH + begun, "finished_at": EPOCH + finished}
    return one.finished(Outcome(state=State.DONE, **times))


def test_evaluations_of_a_driver_at_once_lie_in_lanes_of_their_own():
    trials = [
        trial(0, 0, 0, 1, 5),
        trial(1, 0, 0, 2, 4),
        trial(2, 1, 0, 2, 3),
        trial(3, 0, 3, 4, 6),
        trial(4, 0, 3, 5, 10),
    ]
    found = timeline(trials)
    assert found.lanes == [(0, 0), (0, 1), (1, 0)]
    order = found.trial.argsort()
    assert found.lane[order].tolist() == [0, 1, 2, 1, 0]
    assert found.start[order].tolist() == [1, 2, 2, 4, 5]
    assert found.asked[order].tolist() == [0, 0, 0, 3, 3]
    assert (found.span_s, found.finished, found.busy) == (10, 5, (4 + 2 + 1 + 2 + 5) / 30)
    assert found.per_hour == 5 * 360


def test_no_two_evaluations_of_a_lane_run_at_once():
    rng = np.random.default_rng(7)
    begun = np.sort(rng.uniform(0, 100, 300))
    ends = begun + rng.uniform(0, 20, 300)
    found = timeline(
        [trial(n, int(n % 3), 0, b, e) for n, (b, e) in enumerate(zip(begun, ends, strict=True))]
    )
    most = 0
    for lane in range(len(found.lanes)):
        mine = np.flatnonzero(found.lane == lane)
        mine = mine[found.start[mine].argsort()]
        assert (found.start[mine][1:] >= found.end[mine][:-1]).all()
    for driver in range(3):
        mine = [row for row in range(300) if found.lanes[found.lane[row]][0] == driver]
        at_once = [
            sum(found.start[other] <= found.start[row] < found.end[other] for other in mine)
            for row in mine
        ]
        most = max(at_once)
        assert len([lane for lane in found.lanes if lane[0] == driver]) == most


def test_what_still_runs_ends_at_the_last_moment_that_is_known():
    found = timeline([trial(0, 0, 0, 1, 5), trial(1, 0, 0, 2), trial(2, 0, 9, 9.5)])
    assert found.end[found.trial.argsort()].tolist() == [5, 9.5, 9.5]
    assert found.finished == 1


def test_a_pause_is_cut_out_and_a_long_evaluation_is_none():
    long_s = 5 * PAUSE_S
    left = timeline([trial(0, 0, 0, 0, 5), trial(1, 1, 5 + long_s, 5 + long_s, 9 + long_s)])
    assert (left.span_s, left.pauses.tolist()) == (9, [5])
    assert left.start.tolist() == [0, 5]
    worked = timeline([trial(0, 0, 0, 0, long_s), trial(1, 0, 1, long_s, long_s + 1)])
    assert (worked.span_s, worked.pauses.tolist()) == (long_s + 1, [])


@pytest.mark.parametrize("trials", [[], [Trial(number=0, design=Design({}))], [trial(0, 0, 0, 1)]])
def test_where_no_trial_tells_both_ends_there_is_none(trials):
    assert timeline(trials) is None


def test_a_clock_that_was_put_back_makes_no_negative_time():
    found = timeline([trial(0, 0, 5, 4, 3), trial(1, 0, 0, 1, 2)])
    assert (found.end >= found.start).all()
    assert (found.start >= found.asked).all()
