"""One study as one self-contained HTML page: no network, no fonts, no other file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from dse.analysis.effects import Effects
from dse.analysis.scenarios import Contrast
from dse.core.pareto import ParetoSet
from dse.core.trial import Event, State, Trial
from dse.report.answer import Answer
from dse.report.effects import effects_html
from dse.report.failures import Failure, failures
from dse.report.fidelity import rungs, rungs_html
from dse.report.page_table import front_rows
from dse.report.scenarios import contrast_html
from dse.report.story import best_words, common_words
from dse.report.words import reference_text, seconds_text

_MAX_NUMBERS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """Who wins under which scenario, and what each parameter does, for studies that tell it."""

    contrast: Contrast | None = None
    effects: Sequence[Effects] = ()


def report_html(
    study: str,
    question: str,
    front: ParetoSet,
    trials: Sequence[Trial],
    events: Sequence[Event] = (),
    provenance: Mapping[str, str] | None = None,
    beside: Beside | None = None,
) -> str:
    """The page, to be written to a file as it is.

    Args:
        study: the study's name.
        question: what was asked, in the user's words.
        front: the study's front.
        trials: all trials, in the order in which they were finished.
        events: what happened beside the trials.
        provenance: the versions and the machine, by name.
        beside: what some studies tell beside their front.
    """
    from plotly.offline import get_plotlyjs

    answer = Answer.of(front, trials)
    beside = beside or Beside()
    exact = any(event.kind == "exact" for event in events)
    body = [
        f"<header><h1>{escape(study)}</h1><p>{escape(question)}</p></header>",
        _tiles(front, answer, trials, exact=exact),
        _headline(front, answer),
        _figures(front, trials),
        _table(front, answer),
        _section("Where the winner changes", _contrast(beside)),
        _effects(front, beside.effects),
        _section("How far the cheap numbers agree", rungs_html(rungs(front.problem, trials))),
        _failures(front, trials),
        _events(events),
        _section("Where the numbers come from", _facts((provenance or {}).items())),
    ]
    return Template(_asset("page.html")).substitute(
        title=escape(study),
        css=_asset("page.css"),
        js=_asset("page.js"),
        plotly=get_plotlyjs(),
        body="\n".join(body),
    )


def _asset(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _section(title: str, content: str) -> str:
    return f"<section><h2>{title}</h2>\n{content}\n</section>" if content else ""


def _tiles(front: ParetoSet, answer: Answer, trials: Sequence[Trial], *, exact: bool) -> str:
    finished = [trial for trial in trials if trial.state.finished]
    measured = sum(trial.measured for trial in finished)
    seconds = seconds_text(sum(trial.cost_s for trial in finished))
    kind = "every legal design considered" if exact else "best found so far"
    tiles = [
        (
            "on the front",
            str(len(front.trials)),
            kind if answer.feasible else "none keeps all limits",
        ),
        ("evaluated", str(len(finished)), _evaluated_note(trials)),
        ("measurements", str(measured), "" if measured else "all metrics modelled"),
        ("evaluation time", seconds, "summed over workers"),
    ]
    if front.hypervolume is not None and front.reference_point is not None:
        point = reference_text(front.problem.objectives, front.reference_point)
        tiles.append(("hypervolume", f"{front.hypervolume:.4g}", f"from {point}"))
    cells = (
        f"<div><dt>{name}</dt><dd>{escape(value)}<small>{escape(note)}</small></dd></div>"
        for name, value, note in tiles
    )
    return f'<dl class="tiles">{"".join(cells)}</dl>'


def _evaluated_note(trials: Sequence[Trial]) -> str:
    counts = Counter(trial.state for trial in trials)
    told = [f"{counts[state]} {state.value}" for state in State if counts[state]]
    return ", ".join(told)


def _headline(front: ParetoSet, answer: Answer) -> str:
    sentences = "".join(
        f"<li><strong>{escape(heading)}</strong>: {escape(words)}</li>"
        for heading, words in best_words(front, answer)
    )
    told = f'<ul class="words">{sentences}</ul>'
    if answer.feasible or not answer.trials:
        return _section("Best trade-offs", told)
    warning = (
        '<p class="warn"><strong>No design keeps every limit.</strong> These miss by least:</p>'
    )
    return _section("Nearest misses", warning + told)


def _contrast(beside: Beside) -> str:
    return contrast_html(beside.contrast) if beside.contrast else ""


def _effects(front: ParetoSet, effects: Sequence[Effects]) -> str:
    if not effects:
        return ""
    from dse.report.figures.effects import effects_figures

    drawn = _drawn(effects_figures(front.problem, effects))
    tables = effects_html(front.problem, effects)
    return _section("What each parameter does", f'<div class="figures">{drawn}</div>{tables}')


def _figures(front: ParetoSet, trials: Sequence[Trial]) -> str:
    from dse.report.figures import drawings

    drawn = drawings(front, trials)
    figures = _drawn(drawn)
    missing = (
        '<p class="soft">Hypervolumes are told once ten designs keep all limits,'
        " or from a stated <code>reference:</code>.</p>"
        if front.reference is None
        else ""
    )
    return _section("Figures", f'<div class="figures">{figures}</div>{missing}' if drawn else "")


def _drawn(drawings: Iterable[Any]) -> str:  # of plotly, which comes late
    return "\n".join(
        f'<figure class="{"wide" if one.wide else ""}">'
        f"<figcaption><h3>{escape(one.title)}</h3><p>{escape(one.caption)}</p></figcaption>"
        f'<div class="scroll"><div role="img" aria-label="{escape(one.title)}"'
        f' style="min-width:{one.least_px}px;height:{one.figure.layout.height}px"></div>'
        f'<script type="application/json" data-figure="{one.key}">{_inert(one.figure.to_json())}'
        "</script></div></figure>"
        for one in drawings
    )


def _inert(json: str) -> str:
    """JSON that cannot end the element it stands in."""
    return json.replace("<", "\\u003c")


def _table(front: ParetoSet, answer: Answer) -> str:
    if not answer.trials:
        return ""
    common = common_words(answer)
    note = f'<p class="soft">The same in all: {escape(common)}</p>' if common else ""
    title = "The front" if answer.feasible else "The nearest misses"
    return _section(title, f'{note}<div class="box scroll">{front_rows(front, answer)}</div>')


def _failures(front: ParetoSet, trials: Sequence[Trial]) -> str:
    found = failures(front.problem, trials)
    rows = "".join(
        f'<tr><td class="text">{escape(one.kind)}</td><td class="text">{escape(one.reason)}</td>'
        f'<td>{len(one.trials)}</td><td class="text">{_numbers(one)}</td></tr>'
        for one in found
    )
    head = (
        '<tr><th class="text">kind</th><th class="text">reason</th>'
        '<th>designs</th><th class="text">trials</th></tr>'
    )
    table = (
        f'<div class="box scroll"><table><thead>{head}</thead><tbody>{rows}</tbody></table></div>'
    )
    return _section("What was ruled out or failed", table if found else "")


def _numbers(failure: Failure) -> str:
    more = len(failure.trials) - _MAX_NUMBERS
    numbers = ", ".join(map(str, failure.trials[:_MAX_NUMBERS]))
    return f"{numbers} and {more} more" if more > 0 else numbers


def _events(events: Sequence[Event]) -> str:
    told = [(f"{event.kind}, after {event.told} trials", event.text) for event in events]
    return _section("What happened", _facts(told))


def _facts(pairs: Iterable[tuple[str, str]]) -> str:
    cells = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in pairs)
    return (
        f'<div class="box" style="padding:1rem"><dl class="facts">{cells}</dl></div>'
        if cells
        else ""
    )
