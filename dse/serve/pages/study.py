"""Page of one study: its state, figures, front, failures and controls."""

from __future__ import annotations

from html import escape
from shlex import quote

from dse.core.objective import Objective
from dse.report.answer import Answer
from dse.report.html.front_table import front_rows
from dse.report.html.page_parts import facts, section
from dse.report.words import number_text, seconds_text, truncate_text, volume_text
from dse.serve import models
from dse.serve.pages.frame import render_frame, study_url
from dse.serve.pages.lists import bar, limit_words, search, table
from dse.serve.snapshot import MOST_PAIRS, Snapshot
from dse.storage.trust import is_trusted_record

_MOST_ROWS = 500
_NAME_LETTERS = 32

_TABLES = ("csv", "CSV"), ("json", "JSON"), ("parquet", "Parquet")
_TAKEN = (
    ("front", [(f"front.{suffix}", words) for suffix, words in _TABLES]),
    ("all trials", [(f"trials.{suffix}", words) for suffix, words in _TABLES]),
    ("the complete record", [("study.jsonl", "JSON lines, which dse studies import reads")]),
    ("report", [("report.html", "one page of HTML")]),
)
"""Downloads by group, each with its file name and the text of its link."""

_FIGURES = '<div class="figures" id="figures"><p class="soft">Being drawn.</p></div>'

_APOSTROPHES = (
    '<p class="soft">In CSV an apostrophe stands before text that a spreadsheet would take for a '
    "formula. JSON and Parquet hold every text as it is.</p>"
)
_LAST = '<p class="soft">The last process that was started here ended with this output:</p>'
_PICKING = (
    '<p class="soft">Click a row, or press Space on its number, to highlight the design in all '
    "figures; drawing a box in a figure does the same.</p>"
)
_PICKED = (
    '<p id="picked" role="status" hidden><span></span><button type="button">show all</button></p>'
)


def study_page(snapshot: Snapshot, told: models.StudyState) -> str:
    """Return the complete page; scripts keep it up to date."""
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
        f'<div id="top">{_top(snapshot, told)}</div><section><h2>Front and progress</h2>'
        f'<div id="note">{_note(snapshot, told)}</div>{_FIGURES}</section>'
        f"{_below(snapshot, told)}{_PICKED}"
    )
    scripts = ("plotly.js", "tables.js", "brush.js", "live.js", "study.js")
    return render_frame(name, body, scripts=scripts, study=name, url=study_url(name))


def parts(snapshot: Snapshot, told: models.StudyState) -> str:
    """Return the four elements that change, with which the script updates the page."""
    return (
        f'<div id="top">{_top(snapshot, told)}</div><div id="note">{_note(snapshot, told)}</div>'
        f"{_below(snapshot, told)}"
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
    held = f'<dl class="facts">{groups}</dl>{_APOSTROPHES}'
    return f"<details><summary>Downloads</summary>{held}</details>"


def _controls() -> str:
    return (
        '<form id="controls" class="controls"><button type="button" id="start">Start</button>'
        ' <button type="button" id="pause">Pause</button>'
        ' <label>up to <input id="up-to" type="number" min="1" inputmode="numeric">'
        ' <span id="counted"></span></label>'
        ' <span id="answer" role="status"></span></form>'
    )


def _top(snapshot: Snapshot, told: models.StudyState) -> str:
    """Return the state as text, and tiles of numbers."""
    volume = volume_text(snapshot.front)
    point = snapshot.front.reference_point
    note = (
        "none yet: it requires a front"
        if point is None
        else _point(snapshot.study.problem.objectives, point)
    )
    failed = sum(told.counts.get(state, 0) for state in ("failed", "infeasible"))
    tiles = (
        ("on the front", str(told.front), _describe_front(snapshot, told)),
        ("finished", str(told.finished), f"of {told.trials} asked, {failed} without numbers"),
        ("measurements", str(told.measurements), _describe_measuring(snapshot, told)),
        ("evaluation time", seconds_text(told.seconds), "summed over workers"),
        ("hypervolume", volume, note),
    )
    cells = "".join(
        f'<div><dt>{name}</dt><dd data-tile="{name}">{escape(value)}'
        f"<small>{escape(small)}</small></dd></div>"
        for name, value, small in tiles
    )
    words = f'{_LAST}<pre class="warn">{escape(told.last_words)}</pre>' if told.last_words else ""
    return (
        f'{_progress(told)}{_render_trust_warning(snapshot)}{words}<dl class="tiles">{cells}</dl>'
    )


def _render_trust_warning(snapshot: Snapshot) -> str:
    """Return the warning above a study that was imported and may not be run; else empty."""
    if is_trusted_record(snapshot.spec, snapshot.events):
        return ""
    name = quote(snapshot.study.name)
    words = f"It was imported and is not trusted. To run it: dse studies trust {name}"
    return f'<p class="warn">{escape(words)}</p>'


def _describe_front(snapshot: Snapshot, told: models.StudyState) -> str:
    if told.front:
        return snapshot.proof.search_words
    if told.counts.get("done"):
        return "no design is within all limits"
    untold = told.finished or told.failure
    return "no design has numbers" if untold else "nothing is known yet"


def _describe_measuring(snapshot: Snapshot, told: models.StudyState) -> str:
    if not snapshot.study.problem.measured:
        return "all metrics are modelled"
    each = told.seconds / told.measurements if told.measurements else None
    return "" if each is None else f"{seconds_text(each)} each on average"


def _progress(told: models.StudyState) -> str:
    drivers = ", ".join(_driver(one) for one in told.drivers)
    by = f"Run by {drivers}." if drivers else ""
    used = told.of is not None and told.done >= told.of  # the bar shows it already
    words = "" if told.of is None else f"{bar(told)} {told.done}{limit_words(told)} {told.counted}"
    return (
        f'<p class="progress"><span class="state {told.state}" id="state">{told.state}</span>'
        f" {words} <small>{escape('' if used else told.reason)} {escape(by)}</small></p>"
    )


def _driver(one: models.DriverRow) -> str:
    machine = one.host.partition(" ")[0]
    elsewhere = "" if one.own else " (started elsewhere: Ctrl-C pauses it there)"
    return f"process {one.pid} of {machine}{elsewhere}"


def _note(snapshot: Snapshot, told: models.StudyState) -> str:
    """Return the note on what the figures leave out, or on why there are no figures."""
    count = len(snapshot.study.problem.objectives)
    pairs = count * (count - 1) // 2
    if told.counts.get("done"):
        words = f"The first {MOST_PAIRS} of {pairs} pairs of objectives; the report shows more."
        return f'<p class="soft">{words}</p>' if pairs > MOST_PAIRS else ""
    if told.finished:
        words = f"No design has numbers: {told.finished} finished; the reasons are below."
    elif told.failure:
        words = "No design has a value: see the reasons below."
    elif told.state == "running":
        words = "The first designs are being evaluated."
    else:
        words = f"Nothing has been tried yet. Start it here, or run: dse resume {told.name}"
    return f"<p>{escape(words)}</p>"


def _below(snapshot: Snapshot, told: models.StudyState) -> str:
    happened = ((f"{one.kind}, after {one.told} trials", one.text) for one in told.events)
    return (
        f'<div id="best">{_front(snapshot)}</div><div id="rest">'
        f"{section('What was ruled out or failed', _failures(told))}"
        f"{section('What happened', facts(happened))}</div>"
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
    untold = f'<p class="soft">{answer.untold} The CSV contains all.</p>' if answer.untold else ""
    return section(
        title, f'{_PICKING}{untold}{field}<div class="box scroll" id="front">{rows}</div>'
    )


def _failures(told: models.StudyState) -> str:
    words = f'<p class="warn">{escape(told.failure)}</p>' if told.failure else ""
    if not told.failures:
        return words
    lines = "".join(
        f'<tr><td class="text">{escape(one.kind)}</td><td class="text">{escape(one.reason)}</td>'
        f'<td>{one.count}</td><td class="text">{_links(told.name, one.trials)}</td></tr>'
        for one in told.failures
    )
    return words + table(("kind", "reason", "designs", "trials"), lines, texts=(0, 1, 3))


def _links(name: str, numbers: list[int]) -> str:
    return ", ".join(f'<a href="{study_url(name, "trials", n)}">{n}</a>' for n in numbers)


def _point(objectives: tuple[Objective, ...], point: tuple[float, ...]) -> str:
    pairs = zip(objectives, point, strict=True)
    words = (
        f"{truncate_text(o.name, _NAME_LETTERS)} {number_text(v, o.unit, written=o.written)}"
        for o, v in pairs
    )
    return f"from {', '.join(words)}"
