"""Scripts and style sheets, served from a fixed table: no path in a request is ever opened."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.resources import files

from fastapi import APIRouter
from starlette.responses import Response

from dse.serve.errors import UnknownError

router = APIRouter(include_in_schema=False)

_SCRIPT, _STYLE = "text/javascript; charset=utf-8", "text/css; charset=utf-8"
_SCRIPTS = ("shared", "studies", "study", "live", "brush", "design", "tables", "trial", "login")


def _plotly() -> str:
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())


def _own(name: str) -> Callable[[], str]:
    return lambda: files("dse.serve").joinpath("assets", name).read_text(encoding="utf-8")


_ASSETS: dict[str, tuple[str, Callable[[], str]]] = {
    **{f"{name}.js": (_SCRIPT, _own(f"{name}.js")) for name in _SCRIPTS},
    "icon.svg": ("image/svg+xml", _own("icon.svg")),
    "live.css": (_STYLE, _own("live.css")),
    "page.css": (_STYLE, lambda: files("dse.report.html").joinpath("page.css").read_text("utf-8")),
    "plotly.js": (_SCRIPT, _plotly),
}


@cache
def _content(name: str) -> bytes:
    return _ASSETS[name][1]().encode()


@router.get("/assets/{name}")
async def asset(name: str) -> Response:
    """Return a script or style sheet of the pages.

    The route is asynchronous, so it responds even while other requests hold all threads.
    """
    if name not in _ASSETS:
        raise UnknownError(f"there is no {name[:80]!r}")
    lasting = {"cache-control": "max-age=86400" if name == "plotly.js" else "no-cache"}
    return Response(_content(name), media_type=_ASSETS[name][0], headers=lasting)
