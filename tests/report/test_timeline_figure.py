"""The figure of who evaluated when: bars, and shares of time where there are many."""

from dataclasses import replace

import numpy as np
import pytest

from dse.core.design import Design
from dse.core.trial import Outcome, State, Trial
from dse.core.trials import STATES, Trials
from dse.report.figures import drawings
from dse.report.figures.timeline_figure import MOST_BARS, MOST_LANES, timeline_figure

MANY = 100_000


def trial(number, worker, begun, finished, state=State.DONE):
    ended = Outcome(state=state, begun_at=begun, finished_at=finished)
    return Trial(number=number, design=Design({"x": 1}), asked_at=0.0, worker=worker).finished(
        ended
    )


def many(drivers: int) -> Trials:
    rng = np.random.default_rng(3)
    begun = np.sort(rng.uniform(0, 1e5, MANY))
    whole = Trials.of([trial(0, 0, 1.0, 2.0)]).take(np.zeros(MANY, dtype=int))
    return replace(
        whole,
        number=np.arange(MANY),
        worker=rng.integers(0, drivers, MANY),
        begun_at=begun,
        finished_at=begun + rng.exponential(2.0, MANY),
    )


def test_each_state_is_a_series_of_bars_and_waits_are_lines():
    trials = [
        trial(0, 0, 10.0, 20.0),
        trial(1, 0, 15.0, 18.0, State.FAILED),
        trial(2, 1, 30.0, 90.0),
        Trial(number=3, design=Design({"x": 2}), state=State.RUNNING, worker=1, begun_at=95.0),
    ]
    (drawing,) = timeline_figure(trials, measured=True)
    bars = {one.name: one for one in drawing.figure.data if one.type == "bar"}
    assert {name: list(one.y) for name, one in bars.items()} == {
        "done": ["driver 0, 1", "driver 1"],
        "failed": ["driver 0, 2"],
        "running": ["driver 1"],
    }
    assert list(bars["done"].base) == pytest.approx([10.0, 30.0])
    assert list(bars["done"].x) == pytest.approx([10.0, 60.0])
    assert bars["done"].hovertext == ("trial 0: 10 s", "trial 2: 1 min 0 s")
    (waits,) = (one for one in drawing.figure.data if one.name == "waiting")
    ends = np.array(waits.x, dtype=float).reshape(-1, 3)[:, :2].tolist()
    assert ends == [[0.0, 10.0], [0.0, 15.0], [0.0, 30.0]]
    assert drawing.caption.startswith("26% of 3 lanes busy over 1 min 35 s, 114 trials an hour.")


@pytest.mark.parametrize("drivers", [3, 500])
def test_many_evaluations_are_shares_of_time_and_no_large_page(drivers):
    (drawing,) = timeline_figure(many(drivers), measured=True)
    (heat,) = drawing.figure.data
    assert heat.type == "heatmap"
    assert len(heat.y) <= MOST_LANES
    assert len(drawing.figure.to_json()) < 500_000
    shares = np.array(heat.z)
    assert ((shares >= 0) & (shares <= 1)).all()


def test_shares_of_time_sum_to_what_was_spent():
    trials = many(3)
    (drawing,) = timeline_figure(trials, measured=True)
    (heat,) = drawing.figure.data
    span_s = trials.finished_at.max()
    shares = np.array(heat.z)
    spent = shares.sum() * span_s / shares.shape[1]
    assert spent == pytest.approx((trials.finished_at - trials.begun_at).sum(), rel=1e-3)


@pytest.mark.parametrize("count", [MOST_BARS, MOST_BARS + 1])
def test_as_many_bars_are_drawn_as_can_be_seen(count):
    trials = [trial(n, 0, float(n), n + 0.5) for n in range(count)]
    (drawing,) = timeline_figure(trials, measured=True)
    assert {one.type for one in drawing.figure.data} == (
        {"bar", "scatter"} if count == MOST_BARS else {"heatmap"}
    )


def test_a_study_that_measures_nothing_or_tells_no_times_has_no_such_figure(made_up):
    assert timeline_figure([trial(0, 0, 1.0, 2.0)], measured=False) == []
    assert "timeline" not in [one.key for one in drawings(made_up.front, made_up.trials)]
    timed = [
        replace(t, asked_at=1.0 * t.number, begun_at=t.number + 0.5, finished_at=t.number + 1.0)
        for t in made_up.trials
    ]
    assert "timeline" in [one.key for one in drawings(made_up.front, timed)]


def test_every_state_has_a_colour():
    trials = [trial(n, 0, float(n), n + 0.5, state) for n, state in enumerate(STATES)]
    (drawing,) = timeline_figure(trials, measured=True)
    assert len([one for one in drawing.figure.data if one.type == "bar"]) == len(STATES)
