"""What every page is made of: its frame, sections, figures and lists of facts."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from pathlib import Path
from string import Template
from typing import Any


def page(title: str, body: Iterable[str]) -> str:
    """A whole page that needs no network, no fonts and no other file."""
    from plotly.offline import get_plotlyjs

    return Template(_asset("page.html")).substitute(
        title=escape(title),
        css=_asset("page.css"),
        js=_asset("page.js"),
        plotly=get_plotlyjs(),
        body="\n".join(body),
    )


def section(title: str, content: str) -> str:
    """A part of the page under a heading; nothing where it would be empty."""
    return f"<section><h2>{title}</h2>\n{content}\n</section>" if content else ""


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Names with what is told of each."""
    cells = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in pairs)
    return (
        f'<div class="box" style="padding:1rem"><dl class="facts">{cells}</dl></div>'
        if cells
        else ""
    )


def drawn(drawings: Iterable[Any]) -> str:  # of plotly, which comes late
    """Figures with their captions."""
    return "\n".join(
        f'<figure class="{"wide" if one.wide else ""}">'
        f"<figcaption><h3>{escape(one.title)}</h3><p>{escape(one.caption)}</p></figcaption>"
        f'<div class="scroll"><div role="img" aria-label="{escape(one.title)}"'
        f' style="min-width:{one.least_px}px;height:{one.figure.layout.height}px"></div>'
        f'<script type="application/json" data-figure="{one.key}">{_inert(one.figure.to_json())}'
        "</script></div></figure>"
        for one in drawings
    )


def _inert(json: str) -> str:
    """JSON that cannot end the element it stands in."""
    return json.replace("<", "\\u003c")


def _asset(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")
