"""Study report as one self-contained HTML page: no network, no fonts, no other file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dse.analysis.effects import Effects
from dse.analysis.error_intervals import ErrorIntervals
from dse.analysis.importance import Importance, weightiest
from dse.analysis.limits import activities
from dse.analysis.runner_up import RunnerUpComparison
from dse.analysis.scenario_comparison import Contrast
from dse.analysis.trade_rates import rates
from dse.core.attributes import others
from dse.core.judged_trials import read_judged
from dse.core.pareto import ParetoSet
from dse.core.proof import Proof
from dse.core.recorded_gap import RecordedGap
from dse.core.trial import Event, Trial
from dse.core.trials import Trials
from dse.report.answer import MOST_SHOWN, Answer
from dse.report.effect_tables import effects_html
from dse.report.html.failure_reasons import failure_rows, list_failure_reasons, rarer_words
from dse.report.html.fidelity import rungs
from dse.report.html.front_table import front_rows
from dse.report.html.render import render_drawings, render_report
from dse.report.html.runner_up_html import duels_html
from dse.report.html.scenario_tables import contrast_html
from dse.report.html.tradeoffs import limits_html, rates_html
from dse.report.json.gap_json import gap_tiles, known_gap
from dse.report.schemas.reproduction import JudgedStudy
from dse.report.text.claim_verdicts import claims_html
from dse.report.text.interval_table import IntervalTable
from dse.report.text.judged_table import JudgedTable
from dse.report.text.summary import best_words, common_words
from dse.report.words import reference_text, seconds_text, volume_text

_MAX_EVENTS = 200
"""Maximum number of events shown; the latest are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSections:
    """Optional sections of a study report.

    They are the best trials under each scenario, parameter effects, comparisons of the best designs
    with the runners-up, parameter importances, verdicts on published claims that the study
    reproduces, and errors of modelled objectives.
    """

    contrast: Contrast | None = None
    effects: Sequence[Effects] = ()
    duels: Sequence[RunnerUpComparison] = ()
    importances: Sequence[Importance] = ()
    claims: JudgedStudy | None = None
    intervals: ErrorIntervals | None = None


def report_html(
    study: str,
    question: str,
    front: ParetoSet,
    trials: Sequence[Trial],
    events: Sequence[Event] = (),
    provenance: Mapping[str, str] | None = None,
    beside: ReportSections | None = None,
) -> str:
    """Return the report as HTML, ready to be written to a file.

    Args:
        study: the study's name.
        question: the study's question as its author wrote it.
        front: the study's front.
        trials: all trials, in the order in which they were finished.
        events: recorded events other than trials.
        provenance: the versions and the machine, by name.
        beside: the optional sections of the report.
    """
    from dse.report.figures import drawings

    trials = Trials.of(trials)
    beside = beside or ReportSections()
    weighty = weightiest(beside.importances)
    answer = Answer.of(front, trials, weighty)
    proof = Proof.of_study(front.problem, trials, events)
    found = list_failure_reasons(front.problem, trials)
    return render_report(
        "study",
        title=study,
        question=question,
        answer=answer,
        tiles=_tiles(front, answer, trials, proof, events),
        best=best_words(front, answer),
        duels=duels_html(front.problem, beside.duels),
        drawn=render_drawings(
            drawings(front, trials, weighty, exact=proof.searched, gap=known_gap(proof, events))
        ),
        has_reference=front.reference is not None,
        common=common_words(answer) if answer.trials else "",
        left_out=_left_out(answer),
        rows=front_rows(front, answer) if answer.trials else "",
        judged=JudgedTable.of(front.problem, front.trials, read_judged(events)),
        intervals=IntervalTable.of(front.problem, front.trials, beside.intervals),
        contrast=contrast_html(beside.contrast) if beside.contrast else "",
        rates=rates_html(front.problem, rates(front)),
        limits=limits_html(front.problem, activities(front.problem, trials)),
        importances=_importances(front, beside.importances),
        effects=_effects(front, beside.effects),
        effect_tables=effects_html(front.problem, beside.effects),
        claims=claims_html(beside.claims) if beside.claims else "",
        rungs=[one.words() for one in rungs(front.problem, trials)],
        failed=proof.failed_words,
        failures=failure_rows(found),
        rarer=rarer_words(found),
        events=_events(events),
        provenance=list((provenance or {}).items()),
    )


def _tiles(
    front: ParetoSet, answer: Answer, trials: Trials, proof: Proof, events: Sequence[Event]
) -> list[tuple[str, str, str]]:
    """Return the numbers at the top of the page, each with its name and a note."""
    finished = trials.take(trials.over)
    measured = int(front.problem.measurements(finished).sum())
    seconds = seconds_text(float(finished.cost_s.sum()))
    kind = proof.search_words
    tiles = [
        (
            "on the front",
            f"{len(front.trials):,}",
            kind
            if answer.feasible
            else "none keeps all limits"
            if answer.trials
            else "no design has a value"
            if proof.searched
            else "no answer yet",
        ),
        ("evaluated", f"{len(finished):,}", _evaluated_note(trials)),
        ("measurements", f"{measured:,}", "" if front.problem.measured else "all metrics modelled"),
        ("evaluation time", seconds, "summed over workers"),
    ]
    if front.hypervolume_share is not None and front.reference_point is not None:
        point = reference_text(front.problem.objectives, front.reference_point)
        tiles.append(("hypervolume", volume_text(front), f"from {point} to the ideal point"))
    return tiles + gap_tiles(RecordedGap.of(events))


def _evaluated_note(trials: Trials) -> str:
    return ", ".join(f"{count:,} {state.value}" for state, count in trials.counts.items())


def _importances(front: ParetoSet, found: Sequence[Importance]) -> str:
    if not found:
        return ""
    from dse.report.figures.importance_figure import importance_figures

    return render_drawings(importance_figures(front.problem, found))


def _effects(front: ParetoSet, effects: Sequence[Effects]) -> str:
    if not effects:
        return ""
    from dse.report.figures.effects_figure import effects_figures

    return render_drawings(effects_figures(front.problem, effects))


def _left_out(answer: Answer) -> str:
    """Return how many designs and parameters the table omits, as text."""
    whole = len(answer.trials)
    some = f"{MOST_SHOWN:,} of {whole:,} designs are shown, evenly spaced."
    return " ".join(filter(None, [some if whole > MOST_SHOWN else "", answer.omission_note]))


def _events(events: Sequence[Event]) -> list[tuple[str, str]]:
    events = others(events)
    shown = events[-_MAX_EVENTS:]
    rows = [(f"{event.kind}, after {event.told} trials", event.text) for event in shown]
    if earlier := len(events) - len(shown):
        rows.insert(0, ("before these", f"{earlier:,} more; dse status lists them all"))
    return rows
