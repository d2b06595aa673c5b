"""Routes of the HTML pages."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from dse.serve import serialize as telling
from dse.serve.api_models import TrialView
from dse.serve.context import Here
from dse.serve.pages.design_form import design_page
from dse.serve.pages.frame import Page, render_page
from dse.serve.pages.live_study_page import render_study
from dse.serve.pages.trials_page import trial_page, trials_page

router = APIRouter(include_in_schema=False, default_response_class=Page)


@router.get("/")
def studies(house: Here) -> str:
    """Return the page that lists all studies."""
    rows = list(telling.rows(house.watch, house.runners))
    return render_page("studies", storage=house.storage, rows=rows)


@router.get("/studies/{name}")
def study(house: Here, name: str) -> str:
    """Return the page of one study, which scripts keep up to date."""
    snapshot = house.watch.snapshot(name)
    return render_study("study", snapshot, telling.state(snapshot, house.runners))


@router.get("/studies/{name}/parts")
def study_parts(house: Here, name: str) -> str:
    """Return the parts of a study's page that change, as HTML, without figures."""
    snapshot = house.watch.snapshot(name)
    return render_study("study_parts", snapshot, telling.state(snapshot, house.runners))


@router.get("/studies/{name}/trials")
def trials(house: Here, name: str, some: Annotated[TrialView, Query()]) -> str:
    """Return the page with a table of selected trials."""
    snapshot = house.watch.snapshot(name)
    return trials_page(telling.trials(snapshot, some), some, snapshot.trials.counts)


@router.get("/studies/{name}/trials/{number}")
def trial(house: Here, name: str, number: int) -> str:
    """Return the page of one trial."""
    snapshot = house.watch.snapshot(name)
    record = telling.trial(snapshot, number)
    return trial_page(snapshot.study, record, len(snapshot.trials))


@router.get("/studies/{name}/design")
def design(house: Here, name: str, like: Annotated[int | None, Query(ge=0)] = None) -> str:
    """Return the page for entering a design, filled with the design of the trial ``like``."""
    return design_page(house.watch.snapshot(name), like)


@router.get("/compare")
def compare(house: Here) -> str:
    """Return the page for choosing the studies to compare."""
    return render_page("compare", names=house.watch.names(), ticked=(), problem="")


@router.get("/login")
async def login() -> str:
    """Return the page that asks for the access token."""
    return render_page("login")
