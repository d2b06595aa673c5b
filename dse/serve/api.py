"""Routes of the JSON API, which offers programs the same data and actions as the pages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from threading import Lock
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.responses import StreamingResponse
from fastapi.security import HTTPBearer
from starlette.responses import Response

from dse.core.design import Design
from dse.core.trial import Outcome, Trial
from dse.core.values import Value
from dse.errors import DesignError, SpecError, StudyError
from dse.evaluation.pipeline import MeasurementCache
from dse.protocols import Executor
from dse.registry import make
from dse.report.figures.style import Drawing
from dse.report.schemas.front_schema import FrontFacts
from dse.schema.models import Scalar
from dse.schema.study.designs import design_of
from dse.serve import api_models
from dse.serve import serialize as telling
from dse.serve.access import COOKIE
from dse.serve.connection_limits import PLACE
from dse.serve.context import Here
from dse.serve.snapshot import Snapshot
from dse.services.studies import add_design as adding
from dse.system.terminal_text import visible, visible_json

Name = Annotated[str, Path(description="A study's name.", max_length=1_000)]

Number = Annotated[int, Path(ge=0, le=2**53, description="A trial's number.")]

_SEEN = {401: "reading needs the token", 421: "the host name is not allowed"}

_FOUND = {**_SEEN, 404: "not found", 409: "the study does not allow it", 503: "the storage fails"}

_DONE = {
    **_FOUND,
    400: "the body is not valid text",
    403: "the request comes from a page of another origin",
    408: "the request took too long to arrive",
    413: "the request is too long",
}

EVALUATION_S = 120.0
"""Time limit of an evaluation in seconds; a longer one belongs in a study, which has no limit."""

_one_at_a_time = Lock()


def _problems(described: dict[int, str]) -> dict[int | str, dict[str, Any]]:
    every = {**described, 422: "the request is invalid"}
    return {
        code: {"model": api_models.ErrorDetail, "description": words}
        for code, words in every.items()
    }


router = APIRouter(prefix="/api", responses=_problems(_FOUND))

changing = APIRouter(
    prefix="/api",
    responses=_problems(_DONE),
    dependencies=[Depends(HTTPBearer(auto_error=False, description="The server's token."))],
)


@router.get("/studies")
def studies(house: Here) -> api_models.Studies:
    """List all studies of the storage."""
    found = list(telling.rows(house.watch, house.runners))
    return api_models.Studies(storage=house.storage, studies=found)


@router.get("/studies/{name}")
def study(house: Here, name: Name) -> api_models.StudyState:
    """Return the present state of a study: progress, trial counts, drivers and events."""
    return telling.state(house.watch.snapshot(name), house.runners)


@router.get("/studies/{name}/front")
def front(house: Here, name: Name) -> FrontFacts:
    """Return the Pareto front of a study; the least infeasible designs if none is feasible."""
    return telling.front(house.watch.snapshot(name))


@router.get("/studies/{name}/figures")
def drawings(house: Here, name: Name) -> api_models.Figures:
    """Return the figures of a study in plotly's JSON form."""
    return figures(house.watch.snapshot(name))


@router.get("/studies/{name}/trials")
def trials(
    house: Here, name: Name, some: Annotated[api_models.TrialFilter, Query()]
) -> api_models.TrialPage:
    """Return a selection of trials by number."""
    return telling.trials(house.watch.snapshot(name), some)


@router.get("/studies/{name}/trials/{number}")
def trial(house: Here, name: Name, number: Number) -> api_models.TrialRecord:
    """Return the complete record of a trial."""
    return telling.trial(house.watch.snapshot(name), number)


@router.get(
    "/studies/{name}/events",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}, "description": "States as they come."}},
)
def events(house: Here, name: Name, request: Request) -> StreamingResponse:
    """Stream the study's state as server-sent events, one at each change.

    If too many clients have open streams already, only the present state is sent.
    """
    house.watch.snapshot(name)  # raises at once if there is no such study
    if PLACE in request.scope:
        stream = house.listeners.stream(house.watch, house.runners, name)
        return StreamingResponse(stream, media_type="text/event-stream")
    once = house.listeners.stream_once(house.watch, house.runners, name)
    return StreamingResponse(once, media_type="text/event-stream", headers={"connection": "close"})


@changing.post("/studies/{name}/start", status_code=202)
def start(house: Here, name: Name, request: api_models.Start) -> api_models.StudyState:
    """Start or resume the study in a new process on the server's machine."""
    snapshot = house.watch.snapshot(name)
    snapshot.study.check_runnable()
    options = [
        word
        for option, value in request.model_dump(exclude_none=True).items()
        for word in (f"--{option}", str(value))
    ]
    house.runners.start(name, options)
    return telling.state(snapshot, house.runners)


@changing.post("/studies/{name}/pause", status_code=202)
def pause(house: Here, name: Name) -> api_models.StudyState:
    """Ask the process that this server started for the study to stop; it can be resumed."""
    snapshot = house.watch.snapshot(name)
    house.runners.pause(name, snapshot.there)
    return telling.state(snapshot, house.runners)


@changing.post("/studies/{name}/designs")
def propose(house: Here, name: Name, proposal: api_models.Proposal) -> api_models.Judgement:
    """Check a design for legality; on request, evaluate it or add it to the study."""
    snapshot = house.watch.snapshot(name)
    values: dict[str, Scalar] = dict(proposal.values)
    try:
        design = find_legal_design(snapshot, values)
    except (DesignError, SpecError) as error:
        reason = " ".join(filter(None, [error.problem, f"({error.where})" if error.where else ""]))
        words = f"{reason}; {error.hint}" if error.hint else reason
        return api_models.Judgement(legal=False, reason=words, design={})
    known = adding.trial_with(snapshot.trials, design)
    judgement = api_models.Judgement(legal=True, reason="", design=dict(design), same_as=known)
    if proposal.action == "evaluate":
        judgement.outcome = telling.outcome_row(snapshot, evaluate_separately(snapshot, design))
    elif proposal.action == "add":
        judgement.added = adding.add_pending_design(snapshot.study, design, snapshot.trials)
    return judgement


@changing.post("/session", status_code=204)
def session(house: Here, request: Request) -> Response:
    """Set a cookie with which the browser may read; changes still need the token."""
    response = Response(status_code=204)
    secure = request.url.scheme == "https"
    response.set_cookie(
        COOKIE, house.gate.reading_pass, httponly=True, samesite="strict", secure=secure
    )
    return response


def find_legal_design(snapshot: Snapshot, values: Mapping[str, Value]) -> Design:
    """Return the legal design with these values; quantities may be strings with a unit.

    Raises:
        DesignError: it breaks a rule of the space.
        SpecError: a quantity cannot be read.
    """
    return design_of(values, snapshot.study.problem.space)


def evaluate_separately(snapshot: Snapshot, design: Design) -> Trial:
    """Evaluate a design in a separate process and return the result as a trial.

    Nothing is stored. Measurements that the study already has are reused.

    Raises:
        StudyError: another design is being evaluated, or the evaluators have changed.
    """
    snapshot.study.check_runnable()
    if not _one_at_a_time.acquire(blocking=False):
        raise StudyError("another design is being evaluated", hint="wait until it is done")
    try:
        readings = MeasurementCache(snapshot.study.plan.pipeline)
        if snapshot.study.problem.measured:
            for trial in snapshot.finished:
                readings.learn(trial)
        trial = Trial(number=0, design=design)
        pipeline = snapshot.study.plan.pipeline
        runner: Executor = make(
            "executors", "processes", pipeline, workers=1, timeout_s=EVALUATION_S
        )
        with closing(runner):
            runner.submit(readings.task(trial))
            outcome: Outcome = runner.collect()[0]
        return trial.finished(outcome)
    finally:
        _one_at_a_time.release()


def figures(snapshot: Snapshot) -> api_models.Figures:
    """Return the figures of the study in its present state: fronts, hypervolume, timeline."""
    return api_models.Figures(
        mark=snapshot.mark, figures=[_figure(one) for one in snapshot.drawings]
    )


def _figure(drawing: Drawing) -> api_models.Figure:
    plain = json.loads(visible_json(drawing.figure.to_json()))
    return api_models.Figure(
        key=drawing.key,
        title=visible(drawing.title),
        caption=visible(drawing.caption),
        height_px=int(drawing.figure.layout.height),
        data=plain["data"],
        layout=plain["layout"],
    )
