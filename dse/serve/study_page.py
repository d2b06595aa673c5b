"""The page of one study: its state, its figures, its front, what failed, and what can be done."""

from __future__ import annotations

from html import escape

from dse.core.objective import Objective
from dse.report.answer import Answer
from dse.report.page_parts import facts, section
from dse.report.page_table import front_rows
from dse.report.words import number_text, seconds_text
from dse.serve import models
from dse.serve.frame import framed, study_url
from dse.serve.pages import search, table
from dse.serve.snapshot import Snapshot

_MOST_ROWS = 500

_TABLES = ("csv", "CSV"), ("json", "JSON"), ("parquet", "Parquet")
_TAKEN = (
    ("front", [(f"front.{suffix}", words) for suffix, words in _TABLES]),
    ("all trials", [(f"trials.{suffix}", words) for suffix, words in _TABLES]),
    ("the whole record", [("study.jsonl", "JSON lines, which dse studies import reads")]),
    ("report", [("report.html", "one page of HTML")]),
)
"""What can be taken away, and under which names."""

_FIGURES = (
    '<section><h2>Front and progress</h2><div class="figures" id="figures">'
    '<p class="soft">Being drawn.</p></div></section>'
)


_PICKED = (
    '<p id="picked" role="status" hidden><span></span><button type="button">show all</button></p>'
)


def study_page(snapshot: Snapshot, told: models.StudyState) -> str:
    """The whole page; scripts keep it as the study stands."""
    name = told.name
    links = " ".join(
        f'<a href="{study_url(name, place)}">{words}</a>'
        for place, words in (
            ("trials", "all trials"),
            ("design", "design by hand"),
            ("report", "report"),
        )
    )
    body = (
        f"<header><h1>{escape(name)}</h1><p>{escape(told.question)}</p></header>"
        f'<p class="links">{links}</p>{_downloads(name)}{_controls()}'
        f'<div id="top">{_top(snapshot, told)}</div>{_FIGURES}'
        f'<div id="parts">{_rest(snapshot, told)}</div>{_PICKED}'
    )
    scripts = ("plotly.js", "tables.js", "brush.js", "live.js", "study.js")
    return framed(name, body, scripts=scripts, study=name, url=study_url(name))


def parts(snapshot: Snapshot, told: models.StudyState) -> str:
    """What changes: two elements, which the script puts in their places."""
    return (
        f'<div id="top">{_top(snapshot, told)}</div><div id="parts">{_rest(snapshot, told)}</div>'
    )


def _downloads(name: str) -> str:
    groups = "".join(
        f'<dt>{words}</dt><dd class="links">'
        + " ".join(
            f'<a href="{study_url(name, "download", kind)}" download>{written}</a>'
            for kind, written in kinds
        )
        + "</dd>"
        for words, kinds in _TAKEN
    )
    return f'<details><summary>Downloads</summary><dl class="facts">{groups}</dl></details>'


def _controls() -> str:
    return (
        '<form id="controls" class="controls"><button type="button" id="start">Start</button>'
        ' <button type="button" id="pause">Pause</button>'
        ' <label>up to <input id="up-to" type="number" min="1" inputmode="numeric"></label>'
        ' <span id="answer" role="status"></span></form>'
    )


def _top(snapshot: Snapshot, told: models.StudyState) -> str:
    """The state in words, and tiles of numbers."""
    volume = "-" if told.hypervolume is None else f"{told.hypervolume:.5g}"
    point = snapshot.front.reference_point
    note = "" if point is None else _point(snapshot.study.problem.objectives, point)
    kind = "every legal design considered" if told.exact else "best found so far"
    failed = sum(told.counts.get(state, 0) for state in ("failed", "infeasible"))
    tiles = (
        ("on the front", str(told.front), kind),
        ("finished", str(told.finished), f"of {told.trials} asked, {failed} without numbers"),
        ("measurements", str(told.measurements), ""),
        ("evaluation time", seconds_text(told.seconds), "summed over workers"),
        ("hypervolume", volume, note),
    )
    cells = "".join(
        f'<div><dt>{name}</dt><dd data-tile="{name}">{escape(value)}'
        f"<small>{escape(small)}</small></dd></div>"
        for name, value, small in tiles
    )
    words = f'<pre class="warn">{escape(told.last_words)}</pre>' if told.last_words else ""
    return f'{_progress(told)}{words}<dl class="tiles">{cells}</dl>'


def _progress(told: models.StudyState) -> str:
    drivers = ", ".join(_driver(one) for one in told.drivers)
    by = f"Run by {drivers}." if drivers else ""
    bar = (
        ""
        if told.of is None
        else f'<progress max="{told.of}" value="{min(told.done, told.of)}"></progress>'
        f" {told.done} of {told.of} {told.counted}"
    )
    return (
        f'<p class="progress"><span class="state {told.state}" id="state">{told.state}</span>'
        f" {bar} <small>{escape(told.reason)} {escape(by)}</small></p>"
    )


def _driver(one: models.DriverRow) -> str:
    machine = one.host.partition(" ")[0]
    return f"process {one.pid} of {machine}{'' if one.own else ' (started elsewhere)'}"


def _rest(snapshot: Snapshot, told: models.StudyState) -> str:
    happened = ((f"{one.kind}, after {one.told} trials", one.text) for one in told.events)
    return (
        f"{_front(snapshot)}"
        f"{section('What was ruled out or failed', _failures(told))}"
        f"{section('What happened', facts(happened))}"
    )


def _front(snapshot: Snapshot) -> str:
    answer = Answer.of(snapshot.front, snapshot.finished)
    if not answer.trials:
        return ""
    if len(answer.trials) > _MOST_ROWS:
        words = f"{len(answer.trials)} designs are too many for a page: take the CSV."
        return section("The front", f"<p>{words}</p>")
    title = "The front" if answer.feasible else "The nearest misses"
    rows = front_rows(snapshot.front, answer)
    field = search("#front", "Filter rows by words")
    return section(title, f'{field}<div class="box scroll" id="front">{rows}</div>')


def _failures(told: models.StudyState) -> str:
    if not told.failures:
        return ""
    lines = "".join(
        f'<tr><td class="text">{escape(one.kind)}</td><td class="text">{escape(one.reason)}</td>'
        f'<td>{one.count}</td><td class="text">{_links(told.name, one.trials)}</td></tr>'
        for one in told.failures
    )
    return table(("kind", "reason", "designs", "trials"), lines, texts=(0, 1, 3))


def _links(name: str, numbers: list[int]) -> str:
    return ", ".join(f'<a href="{study_url(name, "trials", n)}">{n}</a>' for n in numbers)


def _point(objectives: tuple[Objective, ...], point: tuple[float, ...]) -> str:
    pairs = zip(objectives, point, strict=True)
    return "from " + ", ".join(f"{o.name} {number_text(v, o.unit)}" for o, v in pairs)
