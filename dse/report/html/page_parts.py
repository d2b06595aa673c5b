"""Common parts of HTML pages: frame, sections, figures and lists of facts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from dse.system.terminal_text import visible_html, visible_json


def page(title: str, body: Iterable[str]) -> str:
    """Return a complete HTML page that needs no network, no fonts and no other file."""
    from plotly.offline import get_plotlyjs

    return Template(_asset("page.html")).substitute(
        title=visible_html(escape(title)),
        css=_asset("page.css"),
        js=_asset("page.js"),
        plotly=get_plotlyjs(),
        body=visible_html("\n".join(body)),
    )


def section(title: str, content: str) -> str:
    """Return a section with a heading; empty if it has no content."""
    return f"<section><h2>{title}</h2>\n{content}\n</section>" if content else ""


def breakable(words: str) -> str:
    """Return escaped text in which a name may wrap after a dot or an underscore."""
    return re.sub(r"([._])(?=[A-Za-z])", r"\1<wbr>", escape(words))


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Render names with their values as an HTML list; empty without any."""
    cells = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in pairs)
    return (
        f'<div class="box" style="padding:1rem"><dl class="facts">{cells}</dl></div>'
        if cells
        else ""
    )


def render_drawings(drawings: Iterable[Any]) -> str:  # Drawing: importing it loads plotly
    """Render figures with their captions; they share one hover text per trial."""
    words: dict[str, str] = {}
    figures = [_figure(one, words) for one in drawings]
    told = f'<script type="application/json" data-hovers>{_inert(json.dumps(words))}</script>'
    return "\n".join([*figures, *([told] if words else [])])


def _figure(one: Any, words: dict[str, str]) -> str:
    plain = json.loads(one.figure.to_json())
    for trace in plain["data"]:
        if "customdata" in trace and "hovertext" in trace:
            told, numbers = trace.pop("hovertext"), trace["customdata"]
            each = [told] * len(numbers) if isinstance(told, str) else told
            words.update(zip(map(str, numbers), each, strict=True))
    return (
        f'<figure class="{"wide" if one.wide else ""}">'
        f"<figcaption><h3>{escape(one.title)}</h3><p>{escape(one.caption)}</p></figcaption>"
        f'<div class="scroll" tabindex="0" role="group" aria-label="{escape(one.title)}">'
        f'<div role="img" aria-label="{escape(f"{one.title}. {one.caption}")}"'
        f' style="min-width:{one.least_px}px;height:{one.figure.layout.height}px"></div>'
        f'<script type="application/json" data-figure="{one.key}">{_inert(json.dumps(plain))}'
        "</script></div></figure>"
    )


def _inert(text: str) -> str:
    """Return JSON that cannot close its script element, with invisible characters marked."""
    return visible_json(text).replace("<", "\\u003c")


def _asset(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")
