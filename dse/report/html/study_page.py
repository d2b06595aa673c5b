"""Study report as one self-contained HTML page: no network, no fonts, no other file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from dse.analysis.effects import Effects
from dse.analysis.importance import Importance, weightiest
from dse.analysis.limits import activities
from dse.analysis.runner_up import Duel
from dse.analysis.scenarios import Contrast
from dse.analysis.trade_rates import rates
from dse.core.pareto import ParetoSet
from dse.core.proof import Proof
from dse.core.trial import Event, Trial
from dse.core.trials import Trials
from dse.report.answer import MOST_SHOWN, Answer
from dse.report.effects import effects_html
from dse.report.html.failures import failures, failures_html
from dse.report.html.fidelity import rungs, rungs_html
from dse.report.html.front_table import front_rows
from dse.report.html.page_parts import facts, page, render_drawings, section
from dse.report.html.runner_up import duels_html
from dse.report.html.scenarios import contrast_html
from dse.report.html.tradeoffs import limits_html, rates_html
from dse.report.schemas.reproduction import JudgedStudy
from dse.report.text.claims import claims_html
from dse.report.text.summary import best_words, common_words
from dse.report.words import reference_text, seconds_text, volume_text

_MAX_EVENTS = 200
"""Maximum number of events shown; the latest are kept."""

_BRUSHING = (
    '<p class="soft screen">Drag over designs to select them: they are highlighted in every figure'
    " and in the table. Double-click to clear the selection. Keyboard: arrow keys and Enter in the"
    " table, Escape.</p>"
)

_PICKED = (
    '<p id="picked" role="status" hidden><span></span><button type="button">show all</button></p>'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSections:
    """Optional sections of a study report.

    They hold the winners under each scenario, the effects of each parameter, the reasons why the
    best designs win, the importance of parameters for each objective, and the verdicts on the
    claims that the study states.
    """

    contrast: Contrast | None = None
    effects: Sequence[Effects] = ()
    duels: Sequence[Duel] = ()
    importances: Sequence[Importance] = ()
    claims: JudgedStudy | None = None


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
        beside: the optional sections.
    """
    trials = Trials.of(trials)
    beside = beside or ReportSections()
    weighty = weightiest(beside.importances)
    answer = Answer.of(front, trials, weighty)
    proof = Proof.of_study(front.problem, trials, events)
    body = [
        f"<header><h1>{escape(study)}</h1><p>{escape(question)}</p></header>",
        _tiles(front, answer, trials, proof),
        _headline(front, answer),
        section("Why the best ones win", duels_html(front.problem, beside.duels)),
        _figures(front, trials, weighty, exact=proof.searched),
        _table(front, answer),
        section("Where the winner changes", _contrast(beside)),
        section("What the objectives cost one another", rates_html(front.problem, rates(front))),
        section(
            "What the limits cost", limits_html(front.problem, activities(front.problem, trials))
        ),
        _importances(front, beside.importances),
        _effects(front, beside.effects),
        section("What was claimed, and what came out", _claims(beside)),
        section("How far the cheap numbers agree", rungs_html(rungs(front.problem, trials))),
        section("What was ruled out or failed", _failures(front, trials, proof)),
        _events(events),
        section("Where the numbers come from", facts((provenance or {}).items())),
    ]
    return page(study, body)


def _tiles(front: ParetoSet, answer: Answer, trials: Trials, proof: Proof) -> str:
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
    several = len(front.problem.objectives) > 1  # with one, the volume is only a distance
    if several and front.reference_point is not None:
        point = reference_text(front.problem.objectives, front.reference_point)
        tiles.append(("hypervolume", volume_text(front, 4), f"from {point}"))
    cells = (
        f"<div><dt>{name}</dt><dd>{escape(value)}<small>{escape(note)}</small></dd></div>"
        for name, value, note in tiles
    )
    return f'<dl class="tiles">{"".join(cells)}</dl>'


def _evaluated_note(trials: Trials) -> str:
    return ", ".join(f"{count:,} {state.value}" for state, count in trials.counts.items())


def _headline(front: ParetoSet, answer: Answer) -> str:
    sentences = "".join(
        f"<li><strong>{escape(heading)}</strong>: {escape(words)}</li>"
        for heading, words in best_words(front, answer)
    )
    told = f'<ul class="words">{sentences}</ul>'
    if answer.feasible or not answer.trials:
        return section("Best trade-offs", told)
    warning = (
        '<p class="warn"><strong>No design keeps every limit.</strong> These miss by least:</p>'
    )
    return section("Nearest misses", warning + told)


def _contrast(beside: ReportSections) -> str:
    return contrast_html(beside.contrast) if beside.contrast else ""


def _claims(beside: ReportSections) -> str:
    return claims_html(beside.claims) if beside.claims else ""


def _importances(front: ParetoSet, found: Sequence[Importance]) -> str:
    if not found:
        return ""
    from dse.report.figures.importance import importance_figures

    figures = render_drawings(importance_figures(front.problem, found))
    return section("What matters", f'<div class="figures">{figures}</div>')


def _effects(front: ParetoSet, effects: Sequence[Effects]) -> str:
    if not effects:
        return ""
    from dse.report.figures.effects import effects_figures

    figures = render_drawings(effects_figures(front.problem, effects))
    tables = effects_html(front.problem, effects)
    return section("What each parameter does", f'<div class="figures">{figures}</div>{tables}')


def _figures(
    front: ParetoSet, trials: Sequence[Trial], weighty: Sequence[str], *, exact: bool
) -> str:
    from dse.report.figures import drawings

    figures = render_drawings(drawings(front, trials, weighty, exact=exact))
    missing = (
        '<p class="soft">Hypervolumes are shown once ten designs keep all limits,'
        " or from a stated <code>reference:</code>.</p>"
        if front.reference is None
        else ""
    )
    told = f'{_BRUSHING}<div class="figures">{figures}</div>{missing}'
    return section("Figures", told if figures else "")


def _table(front: ParetoSet, answer: Answer) -> str:
    if not answer.trials:
        return ""
    common = common_words(answer)
    note = f'<p class="soft">The same in all: {escape(common)}</p>' if common else ""
    title = "The front" if answer.feasible else "The nearest misses"
    search = (
        '<input id="filter" type="search" aria-label="Filter the rows"'
        ' placeholder="Filter rows by words">'
    )
    table = f'<div class="box scroll" id="front">{front_rows(front, answer)}</div>'
    return section(title, f"{note}{_left_out(answer)}{search}{table}{_PICKED}")


def _left_out(answer: Answer) -> str:
    whole = len(answer.trials)
    some = f"{MOST_SHOWN:,} of {whole:,} designs are shown, evenly spaced."
    told = " ".join(filter(None, [some if whole > MOST_SHOWN else "", answer.untold]))
    rest = "<code>dse front --format csv</code> contains all."
    return f'<p class="soft">{told} {rest}</p>' if told else ""


def _failures(front: ParetoSet, trials: Trials, proof: Proof) -> str:
    words = f'<p class="warn">{escape(proof.failed_words)}</p>' if proof.failed_words else ""
    return words + failures_html(failures(front.problem, trials))


def _events(events: Sequence[Event]) -> str:
    shown = events[-_MAX_EVENTS:]
    told = [(f"{event.kind}, after {event.told} trials", event.text) for event in shown]
    if earlier := len(events) - len(shown):
        told.insert(0, ("before these", f"{earlier:,} more; dse status lists them all"))
    return section("What happened", facts(told))
