"""Tables and JSON of trials in parts: the bytes do not depend on where the parts are cut."""

import weakref
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dse.core.design import Design
from dse.core.metric import Failure, Metric
from dse.core.trial import State, Trial
from dse.core.trials import Trials, TrialStream
from dse.report.json.columns import csv_texts, trials_sheets
from dse.report.json.front_json import trials_json_texts
from tests.report.row_writer import csv_by_rows, json_by_rows

INFINITE, UNKNOWN = float("inf"), float("nan")
TEXTS = ("a, b", 'say "x"', "two\nlines", "back\rhome", "both\r\n", "=1+1", " ", "Größe", "")
NUMBERS = (0.0, -0.0, 1e-320, 1e300, 0.1 + 0.2, INFINITE, -INFINITE, UNKNOWN)


def streamed(trials: Trials, size: int) -> TrialStream:
    return replace(TrialStream.of(trials), parts=trials.parts(size))


def odd_trials(trials: list[Trial]) -> Trials:
    """The trials, with numbers and texts among them that formats stumble over."""
    odd = [
        replace(
            trial,
            metrics={**trial.metrics, "chip.energy": number},
            spread={"chip.area": number},
            cost_s=number,
        )
        for trial, number in zip(trials[10:], NUMBERS, strict=False)
    ]
    failed = [
        Trial(
            number=trial.number,
            design=Design({**trial.design, "weight_format": text}),
            state=State.FAILED,
            failure=Failure(kind="raised", reason=text),
        )
        for trial, text in zip(trials[30:], TEXTS, strict=False)
    ]
    waiting = [replace(one, state=State.RUNNING, metrics={}, spread={}) for one in trials[50:53]]
    middle = [*trials[:10], *odd, *trials[10 + len(odd) : 30], *failed]
    return Trials.of([*middle, *trials[len(middle) : 50], *waiting, *trials[53:]])


@pytest.fixture(scope="module", params=["made up", "odd", "hopeless", "none"])
def asked(request, made_up, hopeless):
    """A problem with trials of every kind."""
    if request.param == "hopeless":
        return hopeless.problem, Trials.of(hopeless.trials)
    trials = {"made up": made_up.trials, "odd": odd_trials(made_up.trials), "none": []}
    return made_up.problem, Trials.of(trials[request.param])


@pytest.mark.parametrize("size", [1, 7, 40, 4096])
def test_a_table_in_parts_is_the_table_of_rows(asked, size) -> None:
    problem, trials = asked
    texts = csv_texts(trials_sheets(problem, streamed(trials, size)))
    assert "".join(texts) == csv_by_rows(problem, trials)


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("size", [1, 7, 40, 4096])
def test_json_in_parts_is_the_json_of_rows(asked, size, indent) -> None:
    problem, trials = asked
    texts = trials_json_texts("s", problem, streamed(trials, size), indent)
    assert "".join(texts) == json_by_rows("s", problem, trials, indent)


def test_words_of_a_metric_are_told_in_every_part(made_up) -> None:
    named = Metric(name="accuracy", words=("good", "bad"))
    source = replace(made_up.problem.sources["quality.accuracy"], metric=named)
    problem = replace(
        made_up.problem, sources={**made_up.problem.sources, "quality.accuracy": source}
    )
    values = (0.0, 1.0, 0.5, 2.0, INFINITE)
    trials = Trials.of(
        [
            replace(trial, metrics={**trial.metrics, "quality.accuracy": value})
            for trial, value in zip(made_up.trials, values, strict=False)
        ]
    )
    texts = csv_texts(trials_sheets(problem, streamed(trials, 2)))
    assert "".join(texts) == csv_by_rows(problem, trials)


@given(
    st.lists(st.sampled_from(NUMBERS) | st.floats(), min_size=1, max_size=12),
    st.text(max_size=6),
    st.integers(1, 5),
)
def test_whatever_trials_hold_the_parts_are_the_whole(made_up, numbers, text, size) -> None:
    trials = Trials.of(
        [
            replace(
                made_up.trials[place],
                metrics={**made_up.trials[place].metrics, "chip.latency": number},
                spread={"chip.latency": number},
                failure=Failure(kind="raised", reason=text),
            )
            for place, number in enumerate(numbers)
        ]
    )
    texts = csv_texts(trials_sheets(made_up.problem, streamed(trials, size)))
    assert "".join(texts) == csv_by_rows(made_up.problem, trials)


@pytest.mark.parametrize("form", ["csv", "json"])
def test_a_part_that_was_written_is_let_go(made_up, form) -> None:
    trials, held = Trials.of(made_up.trials), []

    def parts() -> Iterator[Trials]:
        for part in trials.parts(10):
            copy = part.take(slice(None)).take([*range(len(part))])
            held.append(weakref.ref(copy.number))
            yield copy
            del copy

    stream = TrialStream(size=len(trials), spread=frozenset(), parts=parts())
    if form == "csv":
        texts = csv_texts(trials_sheets(made_up.problem, stream))
    else:
        texts = trials_json_texts("s", made_up.problem, stream, 2)
    most = max(sum(one() is not None for one in held) for _ in texts)
    assert len(held) == 12
    assert most <= 2
