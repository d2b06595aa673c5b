"""Complete HTML pages of reports, and their figures."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dse.report.html.render import render, trusted
from dse.system.terminal_text import visible_json


def render_report(name: str, **context: object) -> str:
    """Return a complete HTML page that needs no network, no fonts and no other file."""
    from plotly.offline import get_plotlyjs

    files = {"css": _asset("page.css"), "js": _asset("page.js"), "plotly": get_plotlyjs()}
    own = {name: trusted(text) for name, text in files.items()}
    return render(f"report/{name}.html", **own, **context)


def render_drawings(drawings: Iterable[Any]) -> str:  # Drawing: importing it loads plotly
    """Render figures with captions as HTML; hover texts of a trial are stored once for all."""
    words: dict[str, str] = {}
    drawn = [(one, _inert(_take_hovers(one, words))) for one in drawings]
    return render("report/drawings.html", drawn=drawn, hovers=_inert(words) if words else "")


def _take_hovers(one: Any, words: dict[str, str]) -> Any:
    """Return a figure in plotly's JSON form, and move its hover texts by trial to ``words``."""
    plain = json.loads(one.figure.to_json())
    for trace in plain["data"]:
        if "customdata" in trace and "hovertext" in trace:
            told, numbers = trace.pop("hovertext"), trace["customdata"]
            each = [told] * len(numbers) if isinstance(told, str) else told
            words.update(zip(map(str, numbers), each, strict=True))
    return plain


def _inert(value: Any) -> str:
    """Return JSON that can be embedded in a script element, with invisible characters marked."""
    return trusted(visible_json(json.dumps(value)).replace("<", "\\u003c"))


def _asset(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")
