"""Studies that are not like others have a report too, and it is quiet, whole and readable."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pytest
from selenium.webdriver.common.by import By

from dse.analysis.importance import importances
from dse.analysis.runner_up import duels
from dse.core.design import Design
from dse.core.expressions.parser import parse
from dse.core.metric import Failure, Metric
from dse.core.objective import Objective
from dse.core.parameter import Choice, Real
from dse.core.pareto import ParetoSet
from dse.core.problem import Problem, Source
from dse.core.space import DesignSpace
from dse.core.trial import Outcome, State, Trial
from dse.report.html.study_page import ReportSections, report_html
from tests.browsing import soon

LONG = "a_long_name_of_sixty_letters_" + "x" * 31
HUGE_NAME = "n" * 10_000


def problem(parameters, units: Mapping[str, str], words=()) -> Problem:
    names = frozenset(one.name for one in parameters)
    return Problem(
        space=DesignSpace(parameters=tuple(parameters)),
        sources={
            name: Source(
                metric=Metric(name=name, unit=unit, words=words), kind="measured", reads=names
            )
            for name, unit in units.items()
        },
        objectives=tuple(
            Objective(expression=parse(name), goal="minimize", unit=unit)
            for name, unit in units.items()
        ),
    )


def study(parameters, units, value: Callable, *, count: int = 30, words=()):
    asked = problem(parameters, units, words)
    batch = asked.space.sample(count, np.random.default_rng(0))
    trials = []
    for number, design in enumerate(batch.designs()):
        metrics = {name: value(place, number, design) for place, name in enumerate(units)}
        outcome = Outcome(state=State.DONE, metrics=metrics, cost_s=1.0, measured=1)
        trials.append(Trial(number=number, design=design, told=number).finished(outcome))
    return asked, trials


def plain(count: int = 2, name: str = "p") -> list:
    words = Choice(name=f"{name}_kind", values=("first", "second", "third"))
    return [words, *(Real(name=f"{name}{at}", low=0.0, high=1.0) for at in range(count))]


def opposed(place: int, number: int, design: Design) -> float:
    values = [float(value) for value in design.values() if not isinstance(value, str)]
    return 1.0 + abs(values[0] - place / 2) + 0.1 * values[-1] * (place + 1)


TWO = {"energy": "J", "latency": "s"}


def one_trial():
    return study(plain(), TWO, opposed, count=1)


def all_failed():
    asked, trials = study(plain(), TWO, opposed)
    failure = Failure(kind="exit status", reason="out of memory " + "x" * 3_000)
    broken = Outcome(state=State.FAILED, failure=failure, cost_s=1.0, measured=1)
    return asked, [Trial(number=t.number, design=t.design).finished(broken) for t in trials]


def one_objective():
    return study(plain(), {"energy": "J"}, opposed)


def six_objectives():
    return study(plain(4), {f"metric{at}": "" for at in range(6)}, opposed, count=80)


def sixty_parameters():
    return study(plain(60), TWO, opposed, count=40)


def long_names():
    return study(plain(3, LONG), {f"{LONG}.a": "J", f"{LONG}.b": "s"}, opposed)


def huge_names():
    values = Choice(name="kind", values=(HUGE_NAME, "short"))
    return study([values, Real(name=HUGE_NAME, low=0.0, high=1.0)], TWO, opposed)


def wide_magnitudes():
    return study(
        plain(),
        {"tiny": "J", "giant": "B", "signed": ""},
        lambda place, number, design: (
            10.0 ** (-200 + number),
            10.0 ** (200 - number),
            1e9 * (number - 15),
        )[place],
    )


def constant():
    return study(plain(), TWO, lambda place, number, design: 3.0)


def words_for_numbers():
    asked, trials = study(plain(), TWO, opposed)
    told = {
        **asked.sources,
        "bound": Source(
            metric=Metric(name="bound", words=("compute", "memory")),
            kind="measured",
            reads=frozenset({"p0"}),
        ),
    }
    metrics = [{**t.metrics, "bound": float(t.number % 2)} for t in trials]
    pairs = zip(trials, metrics, strict=True)
    asked = replace(
        asked,
        sources=told,
        objectives=(*asked.objectives, Objective(expression=parse("bound"), goal="minimize")),
    )
    return asked, [replace(trial, metrics=each) for trial, each in pairs]


STUDIES = {
    maker.__name__: maker
    for maker in (
        one_trial,
        all_failed,
        one_objective,
        six_objectives,
        sixty_parameters,
        long_names,
        huge_names,
        wide_magnitudes,
        constant,
        words_for_numbers,
    )
}


def page_of(name: str) -> str:
    asked, trials = STUDIES[name]()
    front = ParetoSet.of(asked, trials)
    beside = ReportSections(duels=duels(front, trials), importances=importances(asked, trials))
    return report_html(name, "What does this come to?", front, trials, beside=beside)


@pytest.mark.parametrize("name", STUDIES)
def test_a_strange_study_has_a_page_of_measured_size(name: str) -> None:
    assert len(page_of(name)) < 8_000_000


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize("name", STUDIES)
def test_a_strange_study_is_drawn_without_a_complaint(name: str, chromium, tmp_path) -> None:
    path = tmp_path / "report.html"
    path.write_text(page_of(name), encoding="utf-8")
    chromium.get_log("browser")
    metrics = {"width": 400, "height": 900, "deviceScaleFactor": 1, "mobile": True}
    chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    chromium.get(path.as_uri())
    for event in ("beforeprint", "afterprint"):
        chromium.execute_script(f"window.dispatchEvent(new Event('{event}'))")
    figures = len(chromium.find_elements(By.CSS_SELECTOR, "script[data-figure]"))
    drawn = ".js-plotly-plot .main-svg:first-child"
    soon(chromium, lambda d: len(d.find_elements(By.CSS_SELECTOR, drawn)) == figures)
    width = chromium.execute_script("return document.documentElement.scrollWidth")
    chromium.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    severe = [one for one in chromium.get_log("browser") if one["level"] == "SEVERE"]
    assert severe == []
    assert width == 400
