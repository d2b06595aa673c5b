"""Pages other than those of a study: the list of studies, the comparison form, the login."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from html import escape

from dse.report.words import seconds_text
from dse.serve import models
from dse.serve.pages.frame import render_frame, study_url

_JOINT = (
    "Take the worst of all fronts as the reference point, as is done where no study states one, "
    "even if they do"
)


def list_page(storage: str, rows: Sequence[models.StudySummary]) -> str:
    """Return the list of studies; a script keeps its rows up to date."""
    lines = "".join(_study_line(row) for row in rows)
    heads = ("", "study", "state", "progress", "on the front", "hypervolume", "last news")
    body = (
        f"<header><h1>Studies</h1><p>{escape(storage)}</p></header>"
        f'<p id="none"{" hidden" if rows else ""}>There is no study yet. Begin one: '
        "<code>dse run STUDY.yaml</code>. It will appear here.</p>"
        '<form action="/compare/report" method="get"><p class="controls">'
        f"{search('#studies', 'Filter studies by words')}"
        ' <button id="compare">Compare</button></p>'
        f"{table(heads, lines, key='studies', texts=(0, 1, 2))}</form>"
    )
    return render_frame("Studies", body, scripts=("tables.js", "studies.js"))


def compare_page(names: Sequence[str], ticked: Collection[str] = (), problem: str = "") -> str:
    """Return the page on which to choose the studies to compare.

    Args:
        names: all studies.
        ticked: those that were chosen already.
        problem: why these could not be compared.
    """
    boxes = "".join(_box("study", name, name, ticked=name in ticked) for name in names)
    few = "" if len(names) > 1 else "<p>There are no two studies yet.</p>"
    warning = f'<p class="warn" role="alert">{escape(problem)}</p>' if problem else ""
    body = (
        "<header><h1>Compare studies</h1><p>They must have the same question and space.</p>"
        f'</header>{warning}{few}<form action="/compare/report" method="get" class="choices">'
        f"{boxes}<hr>"
        f"{_box('seeds', 'true', 'Studies that differ in their seed alone are one group')}"
        f"{_box('joint', 'true', _JOINT)}"
        "<p><button>Compare</button></p></form>"
    )
    return render_frame("Compare studies", body)


def _box(name: str, value: str, words: str, *, ticked: bool = False) -> str:
    return (
        f'<label><input type="checkbox" name="{name}" value="{escape(value)}"'
        f"{' checked' if ticked else ''}><span>{escape(words)}</span></label>"
    )


def login_page() -> str:
    """Return the page that asks for the token.

    A script sends the token as a header, never in an address.
    """
    body = (
        "<h1>The token</h1><p><code>dse serve</code> printed it when it started.</p>"
        '<form id="login" class="choices"><label>token <input id="token" type="password"'
        ' autocomplete="off" required></label><p><button>Go on</button></p>'
        '<p id="answer" role="status"></p></form>'
    )
    return render_frame("The token", body, scripts=("login.js",))


def search(table: str, words: str) -> str:
    """Return a filter field that keeps the rows of a table that contain its text."""
    return (
        f'<input id="filter" type="search" data-filters="{table}" aria-label="{words}"'
        f' placeholder="{words}">'
    )


def table(heads: Iterable[str], lines: str, *, key: str = "", texts: Sequence[int] = ()) -> str:
    """Return a sortable table; ``texts`` are the indices of the text columns."""
    cells = "".join(_heading(head, words=at in texts) for at, head in enumerate(heads))
    named = f' id="{key}"' if key else ""
    return (
        f'<div class="box scroll"{named}><table><thead><tr>{cells}</tr></thead>'
        f"<tbody>{lines}</tbody></table></div>"
    )


def _heading(head: str, *, words: bool) -> str:
    button = f'<button type="button">{escape(head)}</button>' if head else ""
    return f'<th scope="col" class="{"text" if words else ""}">{button}</th>'


def header(study: str, title: str, state: str = "") -> str:
    """Return the heading of a page below a study's, with a link back to it."""
    link = f'<p class="way"><a href="{study_url(study)}">{escape(study)}</a></p>'
    told = f" {pill(state)}" if state else ""
    return f"<header>{link}<h1>{escape(title)}{told}</h1></header>"


def pill(state: str) -> str:
    """Return a state as a coloured label."""
    return f'<span class="state {escape(state)}">{escape(state)}</span>'


def bar(row: models.StudySummary) -> str:
    """Return a bar that shows the used share of a study's budget; empty without a budget."""
    if row.of is None:
        return ""
    words, value = f"{row.done}{limit_words(row)} {row.counted}", min(row.done, row.of)
    return f'<progress max="{row.of}" value="{value}" aria-label="{words}"></progress>'


def limit_words(row: models.StudySummary) -> str:
    """Return the budget as text to follow the used amount, which may exceed it."""
    if row.of is None:
        return ""
    return f" of {row.of}" if row.done <= row.of else f" (its budget: {row.of})"


def _study_line(row: models.StudySummary) -> str:
    about = "≈" if row.hypervolume_estimated else ""
    volume = "-" if row.hypervolume is None else f"{about}{row.hypervolume:.5g}"
    quiet = "none seen" if row.quiet_s is None else f"{seconds_text(round(row.quiet_s))} ago"
    name, told = escape(row.name), escape(row.problem or row.question)
    limit = limit_words(row)
    numbers = (
        (str(row.front), row.front),
        (volume, row.hypervolume),
        (quiet, row.quiet_s),
    )
    progress = (
        f'<td data-value="{row.done}">{bar(row)}<small class="soft">{row.done}{limit}'
        f" <span>{row.counted}</span></small></td>"
    )
    cells = progress + "".join(
        f'<td data-value="{"" if value is None else value}">{words}</td>'
        for words, value in numbers
    )
    return (
        f'<tr><td class="text"><input type="checkbox" name="study" value="{name}"'
        f' aria-label="compare {name}"></td>'
        f'<td class="text" data-value="{name}"><a href="{study_url(row.name)}">{name}</a>'
        f'<small class="soft">{told}</small></td>'
        f'<td class="text" data-value="{row.state}">'
        f"{pill(row.state)}</td>{cells}</tr>"
    )
