"""Routes for downloads: a study's record, tables of its front and trials, and reports."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Query
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from dse.analysis.comparison import ComparisonOptions, compare
from dse.analysis.run_groups import alone, by_kind
from dse.analysis.runs import Run
from dse.core.trials import TrialStream
from dse.core.values import Value
from dse.errors import StudyError
from dse.interop.found_trials import FORMULA_SIGNS
from dse.report.html.comparison_page import comparison_html
from dse.report.json.columns import (
    Sheet,
    csv_texts,
    front_columns,
    parquet_bytes,
    trials_columns,
    trials_sheets,
)
from dse.report.json.front_json import front_json, trials_json_texts
from dse.serve.context import Here
from dse.serve.error_responses import UnknownError
from dse.serve.middleware import PIECE_BYTES
from dse.serve.pages.frame import Page, render_page
from dse.serve.snapshot import Snapshot
from dse.services.studies.anonymize import names_of
from dse.services.studies.html_report import report_of
from dse.services.studies.study_transfer import write_study_export

router = APIRouter(include_in_schema=False)

MOST_COMPARED = 50

_BEGINS = re.compile(rf'^(?=[\t\r\n])|(?:^|(?<=[;\t\r\n]))(?=[ "]*[{FORMULA_SIGNS}])')
"""Pattern of the positions at which a cell may begin with a formula sign.

In some locales spreadsheets split cells at semicolons and ignore the quotes of a text after a
comma. A cell may therefore also begin after a line break or a semicolon, and quotes after them
belong to that cell.

Source:
    OWASP: CSV Injection, https://owasp.org/www-community/attacks/CSV_Injection.
"""

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def report_text(snapshot: Snapshot) -> str:
    """Return the report of a study as one HTML page."""
    return report_of(snapshot.study, snapshot.front, snapshot.finished, snapshot.events)


@router.get("/studies/{name}/download/{kind}")
def download(house: Here, name: str, kind: str) -> Response:
    """Return a file of a study: its record, a table of its front or trials, or its report.

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
    reference point is the worst value of each objective over all fronts, even if the studies state
    a point. If the studies cannot be compared, the page for choosing them is returned with the
    reason.
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


def comparison_text(found: Sequence[Snapshot], *, seeds: bool, joint: bool) -> str:
    """Return a comparison of several studies as one HTML page.

    Args:
        found: the studies.
        seeds: whether studies that differ only in their seed form one group.
        joint: whether the worst of all fronts is the reference point, as it always is if no study
            states one.
    """
    runs = [
        Run.of(s.study.name, s.study.problem, s.finished, s.study.plan.budget.price_per_s)
        for s in found
    ]
    groups = by_kind(runs) if seeds else alone(runs)
    stated = any(s.study.problem.fixed_reference is not None for s in found)
    return comparison_html(compare(groups, ComparisonOptions(joint_nadir=joint or not stated)))


def harmless(sheet: Sheet) -> Sheet:
    """Return the table with an apostrophe before strings that spreadsheets take for formulas.

    Column names are prefixed, too. Numbers, and strings that only hold a number, are not changed.
    """
    return {_text(name): list(map(_cell, cells)) for name, cells in sheet.items()}


def _cell(cell: Value | None) -> Value | None:
    return _text(cell) if isinstance(cell, str) else cell


def _text(words: str) -> str:
    return words if _NUMBER.fullmatch(words) else _BEGINS.sub("'", words)


def build_stream_response(
    content: bytes | Iterable[str], media: str, headers: Mapping[str, str]
) -> Response:
    """Return a response that is sent from a temporary file with this content."""
    return _Held(content, media_type=media, headers=headers)


class _Held(StreamingResponse):
    """Response sent from a temporary file.

    The file is closed at the end, even if the client disconnects before the first byte.
    """

    def __init__(
        self, content: bytes | Iterable[str], media_type: str, headers: Mapping[str, str]
    ) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the response ends
        whole = [content] if isinstance(content, bytes) else (text.encode() for text in content)
        self._file.writelines(whole)
        length = {"content-length": str(self._file.tell())}
        self._file.seek(0)
        pieces = iter(lambda: self._file.read(PIECE_BYTES), b"")
        super().__init__(pieces, media_type=media_type, headers={**headers, **length})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._file.close()


def shown(text: str) -> Response:
    """Return an HTTP response with a report's HTML page, sandboxed by a content security policy.

    Only the two scripts of the page may run, without access to the server's origin.
    """
    scripts = " ".join(f"'sha256-{digest}'" for digest in _digests())
    policy = (
        f"default-src 'none'; script-src {scripts}; style-src 'unsafe-inline';"
        " img-src data: blob:; form-action 'none'; base-uri 'none'; frame-ancestors 'none';"
        " sandbox allow-scripts allow-downloads"
    )
    headers = {"content-security-policy": policy}
    return build_stream_response(text.encode(), "text/html; charset=utf-8", headers)


@cache
def _digests() -> Sequence[str]:
    """Return the base64 SHA-256 digests of a report's two scripts, for the security policy."""
    from plotly.offline import get_plotlyjs

    own = files("dse.report.html").joinpath("page.js").read_text("utf-8")
    scripts = (get_plotlyjs(), f"\n{own}\n")
    return [base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in scripts]
