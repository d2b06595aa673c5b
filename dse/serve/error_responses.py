"""Error responses: JSON for programs, an HTML page for people."""

from __future__ import annotations

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from dse.errors import DesignError, DseError, PluginError, SpecError, SpecErrors, StorageError
from dse.serve.pages.frame import Page, render_page
from dse.system.terminal_text import visible

_STATUS: tuple[tuple[type[DseError], int], ...] = (
    (StorageError, 503),
    (DesignError, 422),
    (SpecError, 422),
    (SpecErrors, 422),
    (PluginError, 409),
)
_OTHER = 409
_WORDS = {404: "there is nothing at this address", 405: "this method is not allowed here"}
_LONGEST = 2_000


class UnknownError(DseError):
    """Raised if a requested resource, such as a study, does not exist."""


class BusyError(DseError):
    """Raised if the server is overloaded at the moment."""


def refusal(
    path: str, status: int, problem: str, hint: str = "", headers: dict[str, str] | None = None
) -> Response:
    """Return an error response that states the problem and how to fix it, as JSON or HTML."""
    problem, hint = visible(problem)[:_LONGEST], visible(hint)[:_LONGEST]
    if path.startswith("/api"):
        content = {"error": problem, "hint": hint}
        return JSONResponse(content, status_code=status, headers=headers)
    href, words = ("/login", "Enter the token") if status == 401 else ("/", "To all studies")
    title = f"{problem[:1].upper()}{problem[1:]}"
    body = render_page("refusal", title=title, hint=hint, href=href, words=words)
    return Page(body, status_code=status, headers=headers)


def add_refusals(app: FastAPI) -> None:
    """Register the handlers that turn exceptions of a route into error responses."""

    def ours(request: Request, error: Exception) -> Response:
        assert isinstance(error, DseError)
        kinds = ((UnknownError, 404), (BusyError, 503), *_STATUS)
        status = next((code for kind, code in kinds if isinstance(error, kind)), _OTHER)
        place = f" ({error.where})" if error.where else ""
        return refusal(request.url.path, status, f"{error.problem}{place}", error.hint)

    def http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        headers = dict(error.headers or {})
        words = _WORDS.get(error.status_code, str(error.detail))
        return refusal(request.url.path, error.status_code, words, headers=headers)

    def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        return refusal(request.url.path, 422, f"{place}: {first['msg']}")

    app.add_exception_handler(DseError, ours)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(RequestValidationError, invalid)
