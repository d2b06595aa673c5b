"""The API for programs: everything that the pages show and do, as JSON."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.responses import StreamingResponse
from fastapi.security import HTTPBearer
from starlette.responses import Response

from dse.errors import DesignError, SpecError
from dse.schema.models import Scalar
from dse.serve import designs_by_hand as by_hand
from dse.serve import models
from dse.serve import serialize as telling
from dse.serve.access import COOKIE
from dse.serve.context import Here
from dse.serve.figures import figures
from dse.serve.limits import PLACE
from dse.services.studies import add_design as adding

Name = Annotated[str, Path(description="A study's name.", max_length=1_000)]
Number = Annotated[int, Path(ge=0, le=2**53, description="A trial's number.")]

_SEEN = {401: "looking needs the token", 421: "the server is not called so"}
_FOUND = {**_SEEN, 404: "there is none", 409: "it cannot be told", 503: "the storage fails"}
_DONE = {
    **_FOUND,
    400: "the body is no text",
    403: "a page of elsewhere asks",
    408: "it is too slow",
    413: "it is too long",
}


def _problems(told: dict[int, str]) -> dict[int | str, dict[str, Any]]:
    every = {**told, 422: "what is asked cannot be read"}
    return {code: {"model": models.Problem, "description": words} for code, words in every.items()}


router = APIRouter(prefix="/api", responses=_problems(_FOUND))
changing = APIRouter(
    prefix="/api",
    responses=_problems(_DONE),
    dependencies=[Depends(HTTPBearer(auto_error=False, description="The server's token."))],
)


@router.get("/studies")
def studies(house: Here) -> models.Studies:
    """All studies of the storage."""
    found = list(telling.rows(house.watch, house.runners))
    return models.Studies(storage=house.storage, studies=found)


@router.get("/studies/{name}")
def study(house: Here, name: Name) -> models.StudyState:
    """A study as it stands."""
    return telling.state(house.watch.snapshot(name), house.runners)


@router.get("/studies/{name}/front")
def front(house: Here, name: Name) -> models.Front:
    """The designs that no other beats."""
    return telling.front(house.watch.snapshot(name))


@router.get("/studies/{name}/figures")
def drawings(house: Here, name: Name) -> models.Figures:
    """The study's drawings for plotly."""
    return figures(house.watch.snapshot(name))


@router.get("/studies/{name}/trials")
def trials(house: Here, name: Name, some: Annotated[models.Some, Query()]) -> models.Trials:
    """Some trials by number."""
    return telling.trials(house.watch.snapshot(name), some)


@router.get("/studies/{name}/trials/{number}")
def trial(house: Here, name: Name, number: Number) -> models.TrialTold:
    """All that the record has of a trial."""
    return telling.trial(house.watch.snapshot(name), number)


@router.get(
    "/studies/{name}/events",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}, "description": "States as they come."}},
)
def events(house: Here, name: Name, request: Request) -> StreamingResponse:
    """The study's state whenever it changes, as server-sent events; once if too many listen."""
    house.watch.snapshot(name)  # one that is not there is told at once
    if PLACE in request.scope:
        told = house.listeners.told(house.watch, house.runners, name)
        return StreamingResponse(told, media_type="text/event-stream")
    once = house.listeners.told_once(house.watch, house.runners, name)
    return StreamingResponse(once, media_type="text/event-stream", headers={"connection": "close"})


@changing.post("/studies/{name}/start", status_code=202)
def start(house: Here, name: Name, told: models.Start) -> models.StudyState:
    """Run the study, or go on with it, by a process of this server."""
    snapshot = house.watch.snapshot(name)
    snapshot.study.check_runnable()
    options = [
        word
        for option, value in told.model_dump(exclude_none=True).items()
        for word in (f"--{option}", str(value))
    ]
    house.runners.start(name, options)
    return telling.state(snapshot, house.runners)


@changing.post("/studies/{name}/pause", status_code=202)
def pause(house: Here, name: Name) -> models.StudyState:
    """Ask the process of this server that runs the study to stop; it can be gone on with."""
    snapshot = house.watch.snapshot(name)
    house.runners.pause(name, snapshot.there)
    return telling.state(snapshot, house.runners)


@changing.post("/studies/{name}/designs")
def propose(house: Here, name: Name, told: models.Proposal) -> models.Judgement:
    """Judge a design; evaluate it apart, or add it to the study, if it is legal."""
    snapshot = house.watch.snapshot(name)
    values: dict[str, Scalar] = dict(told.values)
    try:
        design = by_hand.find_legal_design(snapshot, values)
    except (DesignError, SpecError) as error:
        reason = " ".join(filter(None, [error.problem, f"({error.where})" if error.where else ""]))
        words = f"{reason}; {error.hint}" if error.hint else reason
        return models.Judgement(legal=False, reason=words, design={})
    known = adding.trial_with(snapshot.trials, design)
    judgement = models.Judgement(legal=True, reason="", design=dict(design), same_as=known)
    if told.action == "evaluate":
        judgement.outcome = telling.outcome_row(
            snapshot, by_hand.evaluate_separately(snapshot, design)
        )
    elif told.action == "add":
        judgement.added = adding.add_pending_design(snapshot.study, design, snapshot.trials)
    return judgement


@changing.post("/session", status_code=204)
def session(house: Here, request: Request) -> Response:
    """Let the browser that knows the token look, by a cookie; changes need the token still."""
    response = Response(status_code=204)
    secure = request.url.scheme == "https"
    response.set_cookie(
        COOKIE, house.gate.reading_pass, httponly=True, samesite="strict", secure=secure
    )
    return response
