"""Studies to take away: the whole record, the front as a table, the report as a page."""

from __future__ import annotations

import base64
import hashlib
import io
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Query
from starlette.background import BackgroundTask
from starlette.responses import FileResponse, HTMLResponse, Response

from dse.analysis.comparison import Asked, compare
from dse.analysis.effects import asked_effects
from dse.analysis.groups import alone, by_kind
from dse.analysis.importance import importances
from dse.analysis.runner_up import duels
from dse.analysis.runs import Run
from dse.interchange import portable
from dse.interchange.portable_record import Record, about
from dse.report.comparison_page import comparison_html
from dse.report.html import Beside, report_html
from dse.report.sheet import front_columns, write_csv
from dse.serve.house import Here
from dse.serve.refusals import UnknownError
from dse.serve.watching import Snapshot

router = APIRouter(include_in_schema=False)

MOST_COMPARED = 50


@router.get("/studies/{name}/download/{kind}")
def download(house: Here, name: str, kind: str) -> Response:
    """The study as lines of JSON, its front as CSV, or its report as one page."""
    snapshot = house.watch.snapshot(name)
    if kind == "study.jsonl":
        return _lines(snapshot)
    if kind == "front.csv":
        text = io.StringIO()
        write_csv(front_columns(snapshot.front, snapshot.finished), text)
        return _given(text.getvalue(), "text/csv; charset=utf-8", f"{name}.csv")
    if kind == "report.html":
        return _given(_report(snapshot), "text/html; charset=utf-8", f"{name}.html")
    raise UnknownError(f"there is no {kind[:80]!r}", hint="study.jsonl, front.csv, report.html")


@router.get("/studies/{name}/report")
def report(house: Here, name: str) -> Response:
    """The report, to be looked at here."""
    return _shown(_report(house.watch.snapshot(name)))


@router.get("/compare/report")
def comparison(
    house: Here,
    study: Annotated[list[str], Query(max_length=MOST_COMPARED)],
    *,
    seeds: bool = False,
    joint: bool = False,
) -> Response:
    """Several studies side by side.

    With ``seeds`` those that differ in nothing else are one group; with ``joint`` the reference
    point is the worst of all fronts where no study states one.
    """
    found = [house.watch.snapshot(name) for name in dict.fromkeys(study)]
    runs = [
        Run.of(s.study.name, s.study.problem, s.finished, s.study.plan.budget.price_per_s)
        for s in found
    ]
    groups = by_kind(runs) if seeds else alone(runs)
    return _shown(comparison_html(compare(groups, Asked(joint_nadir=joint))))


def _report(snapshot: Snapshot) -> str:
    study, front, finished = snapshot.study, snapshot.front, snapshot.finished
    factorial = study.plan.optimizer.use == "factorial"
    return report_html(
        study.name,
        study.plan.question,
        front,
        finished,
        snapshot.events,
        study.provenance,
        Beside(
            contrast=study.contrast,
            effects=asked_effects(study.problem, finished) if factorial else [],
            duels=duels(front, finished),
            importances=importances(study.problem, finished),
        ),
    )


def _lines(snapshot: Snapshot) -> Response:
    study = snapshot.study
    folder = tempfile.TemporaryDirectory(prefix="dse-serve-")
    path = Path(folder.name) / "study.jsonl"
    record = Record.of(study.storage, study.name)
    portable.write(replace(record, about=about(study.problem)), path)
    return FileResponse(
        path,
        media_type="application/x-ndjson",
        headers={"content-disposition": _attached(f"{study.name}.jsonl")},
        background=BackgroundTask(folder.cleanup),
    )


def _given(text: str, kind: str, file: str) -> Response:
    headers = {"content-disposition": _attached(file)}
    return Response(text, media_type=kind, headers=headers)


def _attached(file: str) -> str:
    return f"attachment; filename*=UTF-8''{quote(file, safe='')}"


def _shown(text: str) -> Response:
    """A page that carries its own scripts: these two run and no other, apart from our origin."""
    scripts = " ".join(f"'sha256-{digest}'" for digest in _digests())
    policy = (
        f"default-src 'none'; script-src {scripts}; style-src 'unsafe-inline';"
        " img-src data: blob:; form-action 'none'; base-uri 'none'; frame-ancestors 'none';"
        " sandbox allow-scripts allow-downloads"
    )
    return HTMLResponse(text, headers={"content-security-policy": policy})


@cache
def _digests() -> Sequence[str]:
    """What the scripts of a report's page come to."""
    from plotly.offline import get_plotlyjs

    own = files("dse.report").joinpath("page.js").read_text("utf-8")
    scripts = (get_plotlyjs(), f"\n{own}\n")
    return [base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in scripts]
