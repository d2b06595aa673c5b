"""The page: whole, escaped, without a word to the network."""

import re
from dataclasses import replace

import pytest

from dse.core.design import Design
from dse.core.metric import Failure
from dse.core.parameter import Choice
from dse.core.pareto import ParetoSet
from dse.core.trial import Event, State
from dse.report.html.failure_reasons import MOST_REASONS, list_failure_reasons
from dse.report.html.study_page import report_html

HOSTILE = "</script><script>alert('x')</script><img src=x onerror=alert(1)>"


def page(study, **changes) -> str:
    facts = {"question": study.question, "events": study.events, "trials": study.trials, **changes}
    front = ParetoSet.of(study.problem, facts["trials"])
    provenance = facts.get("provenance", {})
    return report_html(
        facts.get("name", study.name),
        facts["question"],
        front,
        facts["trials"],
        facts["events"],
        provenance,
    )


def space_of(study):
    return study.problem.space.parameters


def own(text: str) -> str:
    """The page without plotly's own source."""
    return text[text.index("<body>") :]


def test_the_page_says_what_was_asked_and_found(made_up) -> None:
    text = own(page(made_up))
    assert made_up.question in text
    assert f"trial {made_up.front.knee.number} with" in text
    assert "Highest quality.accuracy" in text
    assert "Lowest chip.energy" in text


def test_plotly_is_in_the_page_once(made_up) -> None:
    assert page(made_up).count("plotly.js v") == 1


def test_the_page_loads_nothing(made_up) -> None:
    head = page(made_up).partition("<script>")[0] + own(page(made_up))
    assert re.findall(r"(?:src|href)=\"(?!data:)", head) == []
    assert re.findall(r"https?://", head) == []


def test_the_page_forbids_the_browser_to_reach_out(made_up) -> None:
    assert "default-src 'none'" in page(made_up)
    assert "connect-src" not in page(made_up).partition("<title>")[0]


def test_each_front_design_has_a_row_with_numbers_to_sort_by(made_up) -> None:
    text = own(page(made_up)).partition('id="front"')[2].partition("</table>")[0]
    best = made_up.front.trials[0]
    assert f'data-value="{best.metrics["chip.energy"]}"' in text
    assert text.count('scope="col"') == 11


def test_failures_stand_by_kind_and_reason(made_up) -> None:
    found = list_failure_reasons(made_up.problem, made_up.trials)
    assert [(one.kind, one.reason, len(one.trials)) for one in found] == [
        ("outside a limit", "chip.area <= 3 mm2", 21),
        ("timeout", "quality took more than 60 s", 5),
        ("infeasible", "the tile does not fit the buffer", 4),
    ]


def test_an_exact_front_says_so_in_the_page(made_up) -> None:
    events = [Event(kind="exact", text="all 4,096 legal designs")]
    sound = [trial for trial in made_up.trials if trial.state is not State.FAILED]
    assert "every legal design considered" in own(
        page(replace(made_up, trials=sound), events=events)
    )


def test_a_front_with_failures_is_never_exact_in_the_page(made_up) -> None:
    text = "exact over the 4,000 designs that have values; 96 of 4,096 legal designs failed"
    shown = own(page(made_up, events=[Event(kind="exact over", text=text)]))
    assert "exact over the 4,000 designs that have values" in shown
    assert "96 of 4,096 legal designs failed" in shown
    plain = own(page(made_up, events=[Event(kind="exact", text="all 4,096 legal designs")]))
    assert "exact over the 4,091 designs that have values" in plain
    assert "5 of 4,096 legal designs failed" in plain


def test_the_nearest_misses_are_not_called_a_front(hopeless) -> None:
    text = own(page(hopeless))
    assert "No design keeps every limit." in text
    assert "chip.area &lt;= 0.01 mm2 is missed by 998 %" in text
    assert "<h2>The front</h2>" not in text


def test_an_empty_study_has_a_page_too(made_up) -> None:
    text = own(page(made_up, trials=[]))
    assert "No answer yet" in text
    assert "<figure" not in text


def test_a_young_study_says_when_hypervolumes_will_be_told(made_up) -> None:
    assert "once ten designs keep all limits" in own(page(made_up, trials=made_up.trials[:6]))


@pytest.mark.parametrize("place", ["name", "question"])
def test_hostile_words_are_shown_and_not_run(made_up, place: str) -> None:
    text = own(page(made_up, **{place: HOSTILE}))
    assert HOSTILE not in text
    assert "&lt;img src=x onerror=alert(1)&gt;" in text


def test_hostile_designs_faults_events_and_versions_are_not_run(made_up) -> None:
    formats = Choice(name="weight_format", values=("fp16", "int8", "int4", "mxfp4", HOSTILE))
    space = replace(made_up.problem.space, parameters=(formats, *space_of(made_up)[1:]))
    study = replace(made_up, problem=replace(made_up.problem, space=space))
    best, failed = made_up.front.trials[0], made_up.trials[5]
    design = Design({**best.design, "weight_format": HOSTILE})
    hostile = [
        replace(best, design=design, metrics={**best.metrics, "chip.energy": 1e-9}),
        replace(failed, state=State.FAILED, failure=Failure(kind="raised", reason=HOSTILE)),
    ]
    text = own(
        page(
            study,
            trials=[*made_up.trials[:4], *hostile],
            events=[Event(kind=HOSTILE, text=HOSTILE)],
            provenance={HOSTILE: HOSTILE},
        )
    )
    assert "<img" not in text
    assert text.count("<script>") == 1


def test_of_a_front_of_thousands_the_table_has_the_designs_that_the_figures_draw(
    made_up, monkeypatch
):
    for room in ("html.study_page", "html.front_table", "figures.scene"):
        monkeypatch.setattr(f"dse.report.{room}.MOST_SHOWN", 6)
    assert len(made_up.front.trials) > 8
    text = own(page(made_up))
    rows = re.search(r"<tbody>(.*?)</tbody>", text[text.index('id="front"') :])[1].count("<tr>")
    assert rows in {6, 7}  # with the knee, where it is not among the six
    assert f"6 of {len(made_up.front.trials)} designs are shown, evenly spaced" in text
    assert f"({rows} drawn)" in text
    assert '<span class="tag">knee</span>' in text


def test_of_thousands_of_reasons_and_events_the_page_tells_some_and_says_so(made_up) -> None:
    done = made_up.trials[:20]
    wrong = [
        replace(
            trial,
            number=1_000 + place,
            state=State.FAILED,
            failure=Failure(kind="raised", reason=f"at 0x{place:08x} {'z' * 5_000}"),
        )
        for place, trial in enumerate(made_up.trials[:1] * 3_000)
    ]
    events = [Event(kind="fallback", text=f"event {place}.", told=place) for place in range(3_000)]
    text = own(page(made_up, trials=[*done, *wrong], events=events))
    assert len(text) < 1_000_000
    rest = len(list_failure_reasons(made_up.problem, [*done, *wrong])) - MOST_REASONS
    assert rest > 2_900
    assert f"{rest:,} rarer reasons of {rest:,} designs are left out" in text
    assert "2,800 more; dse status lists them all" in text
    assert "event 2999." in text
    assert "event 2799." not in text


@pytest.mark.slow
def test_a_report_of_5000_trials_tells_of_them_all(large) -> None:
    assert "5000" in page(large)
