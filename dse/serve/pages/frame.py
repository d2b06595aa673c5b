"""Frame of every page: its head, navigation and script files."""

from __future__ import annotations

from html import escape
from typing import Any
from urllib.parse import quote

from starlette.responses import HTMLResponse

from dse.system.terminal_text import visible_html

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} · dse</title>
<link rel="icon" href="/assets/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/assets/page.css">
<link rel="stylesheet" href="/assets/live.css">
{scripts}
</head>
<body{data}>
<main>
<nav aria-label="pages">
<a href="/">studies</a> <a href="/compare">compare</a> <span id="token-state"></span></nav>
<p id="banner" class="warn" role="alert" hidden></p>
{body}
</main>
</body>
</html>
"""


class Page(HTMLResponse):
    """HTML response in which invisible characters of a study's texts are marked."""

    def render(self, content: Any) -> bytes | memoryview:
        return super().render(visible_html(content))


def render_frame(title: str, body: str, *, scripts: tuple[str, ...] = (), **data: str) -> str:
    """Return a complete HTML page.

    Args:
        title: plain text, not escaped yet.
        body: HTML.
        scripts: names of scripts in addition to the one that all pages have.
        data: attributes ``data-...`` of the body, which scripts read.
    """
    tags = "\n".join(
        f'<script defer src="/assets/{name}"></script>' for name in ("shared.js", *scripts)
    )
    attributes = "".join(f' data-{key}="{escape(value)}"' for key, value in data.items())
    return _PAGE.format(title=escape(title), scripts=tags, data=attributes, body=body)


def study_url(name: str, *more: object) -> str:
    """Return the URL of a study's page, or of a page below it."""
    return "/studies/" + "/".join([quote(name, safe=""), *map(str, more)])
