"""Page of one study: its state, figures, front, failures and controls."""

from __future__ import annotations

from shlex import quote

from dse.core.objective import Objective
from dse.core.recorded_gap import RecordedGap
from dse.report.answer import Answer
from dse.report.html.front_table import front_rows
from dse.report.json.gap_json import gap_tiles
from dse.report.words import number_text, seconds_text, truncate_text, volume_text
from dse.serve import api_models
from dse.serve.pages.frame import render_page
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


def render_study(name: str, snapshot: Snapshot, study_state: api_models.StudyState) -> str:
    """Return a study's page (``study``), or only its changing parts (``study_parts``)."""
    answer = Answer.of(snapshot.front, snapshot.finished)
    is_listed = 0 < len(answer.trials) <= _MOST_ROWS
    drivers = ", ".join(_driver(one) for one in study_state.drivers)
    used = (
        study_state.of is not None and study_state.done >= study_state.of
    )  # the bar shows it already
    return render_page(
        name,
        study_state=study_state,
        downloads=_TAKEN,
        reason="" if used else study_state.reason,
        drivers=f"Run by {drivers}." if drivers else "",
        distrust=_warn_of_distrust(snapshot),
        tiles=_tiles(snapshot, study_state),
        left_out=_left_out(snapshot) if study_state.counts.get("done") else "",
        nothing="" if study_state.counts.get("done") else _nothing(study_state),
        answer=answer,
        rows=front_rows(snapshot.front, answer) if is_listed else "",
        happened=[(f"{one.kind}, after {one.told} trials", one.text) for one in study_state.events],
    )


def _tiles(snapshot: Snapshot, study_state: api_models.StudyState) -> list[tuple[str, str, str]]:
    """Return the figures at the top of the page, each as (name, value, note)."""
    point = snapshot.front.reference_point
    note = (
        "none yet: it requires a front"
        if point is None
        else _point(snapshot.study.problem.objectives, point)
    )
    failed = sum(study_state.counts.get(state, 0) for state in ("failed", "infeasible"))
    volume = ("hypervolume", volume_text(snapshot.front), note)
    several = len(snapshot.study.problem.objectives) > 1  # with one, the share is always 100 %
    return [
        ("on the front", str(study_state.front), _describe_front(snapshot, study_state)),
        (
            "finished",
            str(study_state.finished),
            f"of {study_state.trials} asked, {failed} without numbers",
        ),
        ("measurements", str(study_state.measurements), _describe_measuring(snapshot, study_state)),
        ("evaluation time", seconds_text(study_state.seconds), "summed over workers"),
        *([volume] if several else []),
        *gap_tiles(RecordedGap.of(snapshot.events)),
    ]


def _warn_of_distrust(snapshot: Snapshot) -> str:
    """Return a warning if the study was imported and is not trusted to run; else empty."""
    if is_trusted_record(snapshot.spec, snapshot.events):
        return ""
    name = quote(snapshot.study.name)
    return f"It was imported and is not trusted. To run it: dse studies trust {name}"


def _describe_front(snapshot: Snapshot, study_state: api_models.StudyState) -> str:
    if study_state.front:
        return snapshot.proof.search_words
    if study_state.counts.get("done"):
        return "no design is within all limits"
    is_known = study_state.finished or study_state.failure
    return "no design has numbers" if is_known else "nothing is known yet"


def _describe_measuring(snapshot: Snapshot, study_state: api_models.StudyState) -> str:
    if not snapshot.study.problem.measured:
        return "all metrics are modelled"
    each = study_state.seconds / study_state.measurements if study_state.measurements else None
    return "" if each is None else f"{seconds_text(each)} each on average"


def _driver(one: api_models.DriverRow) -> str:
    machine = one.host.partition(" ")[0]
    elsewhere = "" if one.own else " (started elsewhere: Ctrl-C pauses it there)"
    return f"process {one.pid} of {machine}{elsewhere}"


def _left_out(snapshot: Snapshot) -> str:
    """Return a note on the pairs of objectives without a figure; empty if all have one."""
    count = len(snapshot.study.problem.objectives)
    pairs = count * (count - 1) // 2
    words = f"The first {MOST_PAIRS} of {pairs} pairs of objectives; the report shows more."
    return words if pairs > MOST_PAIRS else ""


def _nothing(study_state: api_models.StudyState) -> str:
    """Return a sentence on why there are no figures yet."""
    if study_state.finished:
        return f"No design has numbers: {study_state.finished} finished; the reasons are below."
    if study_state.failure:
        return "No design has a value: see the reasons below."
    if study_state.state == "running":
        return "The first designs are being evaluated."
    return f"Nothing has been tried yet. Start it here, or run: dse resume {study_state.name}"


def _point(objectives: tuple[Objective, ...], point: tuple[float, ...]) -> str:
    pairs = zip(objectives, point, strict=True)
    words = (
        f"{truncate_text(o.name, _NAME_LETTERS)} {number_text(v, o.unit, written=o.written)}"
        for o, v in pairs
    )
    return f"from {', '.join(words)} to the ideal point"
