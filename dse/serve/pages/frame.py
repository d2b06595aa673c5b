"""Responses that are HTML pages, and the URLs that they link to."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from starlette.responses import HTMLResponse

from dse.report.html.render import render
from dse.system.terminal_text import visible_html


class Page(HTMLResponse):
    """HTML response in which invisible characters of a study's texts are made visible."""

    def render(self, content: Any) -> bytes | memoryview:
        return super().render(visible_html(content))


def render_page(name: str, **context: object) -> str:
    """Return a page of the live view, from the template of this name."""
    return render(f"serve/{name}.html", study_url=study_url, **context)


def study_url(name: str, *more: object) -> str:
    """Return the URL path of a study's page, or of a subpage such as ``trials``."""
    return "/studies/" + "/".join([quote(name, safe=""), *map(str, more)])
