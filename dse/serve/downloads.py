"""Routes for downloads: a study's record, tables of its front and trials, and reports."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Query
from starlette.responses import Response

from dse.core.trials import TrialStream
from dse.errors import StudyError
from dse.report.json.columns import (
    Sheet,
    csv_texts,
    front_columns,
    parquet_bytes,
    trials_columns,
    trials_sheets,
)
from dse.report.json.front import front_json, trials_json_texts
from dse.serve.context import Here
from dse.serve.errors import UnknownError
from dse.serve.made_reports import comparison_text, report_text
from dse.serve.pages.frame import Page, render_page
from dse.serve.snapshot import Snapshot
from dse.serve.spreadsheet import harmless
from dse.serve.streamed import build_stream_response, shown
from dse.services.studies.anonymize import names_of
from dse.services.studies.transfer import write_study_export

router = APIRouter(include_in_schema=False)

MOST_COMPARED = 50


@router.get("/studies/{name}/download/{kind}")
def download(house: Here, name: str, kind: str) -> Response:
    """Return a file of the study: its record, a table of its front or trials, or its report.

    ``kind`` is the file name, such as ``study.jsonl``.
    """
    snapshot = house.watch.snapshot(name)
    taken = _TAKEN.get(kind)
    if taken is None:
        raise UnknownError(f"there is no {kind[:80]!r}", hint=f"valid: {', '.join(_TAKEN)}")
    file = f"{name}.jsonl" if kind == "study.jsonl" else f"{name} {kind}"
    attached = f"attachment; filename*=UTF-8''{quote(file, safe='')}"
    with house.turns.one():
        return build_stream_response(
            taken.made(snapshot), taken.media, {"content-disposition": attached}
        )


@router.get("/studies/{name}/report")
def report(house: Here, name: str) -> Response:
    """Return the study's report as an HTML page."""
    snapshot = house.watch.snapshot(name)
    with house.turns.one():
        return shown(report_text(snapshot))


@router.get("/compare/report")
def comparison(
    house: Here,
    study: Annotated[list[str], Query(max_length=MOST_COMPARED)],
    *,
    seeds: bool = False,
    joint: bool = False,
) -> Response:
    """Return a comparison of several studies as an HTML page.

    With ``seeds``, studies that differ only in their seed form one group; with ``joint``, the
    reference point is the worst point of all fronts even if the studies state one. If the studies
    cannot be compared, the page for choosing them is returned with the reason.
    """
    found = [house.watch.snapshot(name) for name in dict.fromkeys(study)]
    with house.turns.one():
        try:
            return shown(comparison_text(found, seeds=seeds, joint=joint))
        except StudyError as error:
            problem = "; ".join(filter(None, [error.problem, error.hint]))
    page = render_page("compare", names=house.watch.names(), ticked=study, problem=problem)
    return Page(page, status_code=409)


@dataclass(frozen=True, slots=True)
class _Taken:
    media: str
    made: Callable[[Snapshot], bytes | Iterable[str]]


def _record(snapshot: Snapshot) -> bytes:
    study = snapshot.study
    with tempfile.TemporaryDirectory(prefix="dse-serve-") as folder:
        path = Path(folder) / "study.jsonl"
        write_study_export(study, path)
        return path.read_bytes()


def _front(snapshot: Snapshot) -> Sheet:
    return front_columns(snapshot.front, snapshot.finished)


def _front_json(snapshot: Snapshot) -> bytes:
    name, front = snapshot.study.name, snapshot.front
    return json.dumps(front_json(name, front, snapshot.finished, proof=snapshot.proof)).encode()


def _trials(snapshot: Snapshot) -> Sheet:
    names = names_of(snapshot.study)
    return names.sheet(trials_columns(snapshot.study.problem, snapshot.trials))


def _trials_sheets(snapshot: Snapshot) -> Iterator[Sheet]:
    names, stream = names_of(snapshot.study), TrialStream.of(snapshot.trials)
    return map(names.sheet, trials_sheets(snapshot.study.problem, stream))


def _trials_json(snapshot: Snapshot) -> Iterator[str]:
    stream = TrialStream.of(snapshot.trials)
    return trials_json_texts(snapshot.study.name, snapshot.study.problem, stream)


def _csv(sheets: Callable[[Snapshot], Iterable[Sheet]]) -> _Taken:
    return _Taken("text/csv; charset=utf-8", lambda s: csv_texts(map(harmless, sheets(s))))


def _parquet(sheet: Callable[[Snapshot], Sheet]) -> _Taken:
    media = "application/vnd.apache.parquet"
    return _Taken(media, lambda snapshot: parquet_bytes(sheet(snapshot)))


_TAKEN = {
    "front.csv": _csv(lambda snapshot: [_front(snapshot)]),
    "front.json": _Taken("application/json", _front_json),
    "front.parquet": _parquet(_front),
    "trials.csv": _csv(_trials_sheets),
    "trials.json": _Taken("application/json", _trials_json),
    "trials.parquet": _parquet(_trials),
    "study.jsonl": _Taken("application/x-ndjson", _record),
    "report.html": _Taken("text/html; charset=utf-8", lambda s: report_text(s).encode()),
}
