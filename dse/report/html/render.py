"""Rendering of the HTML templates: strings are escaped unless this program made them as HTML."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dse.report.words import seconds_text, share_text, truncate_text
from dse.system.terminal_text import visible_html, visible_json

if TYPE_CHECKING:
    from jinja2 import Environment

_FOLDER = Path(__file__).parents[1] / "templates"


def render(name: str, **context: object) -> str:
    """Return a rendered template, as HTML that other templates insert without escaping it.

    Args:
        name: the template's path in ``dse/report/templates``.
        context: the values that the template refers to; a missing one is an error.
    """
    return trusted(_environment().get_template(name).render(context))


def call_macro(name: str, macro: str, *arguments: object, **options: object) -> str:
    """Return the HTML of one macro of a template, which other templates do not escape again."""
    rendered: str = getattr(_environment().get_template(name).module, macro)(*arguments, **options)
    return rendered


def trusted(html: str) -> str:
    """Mark HTML that this program made as safe, so that templates insert it without escaping."""
    return _markup()(html)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_escape_value,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters.update(
        breakable=_breakable,
        seconds=seconds_text,
        share=lambda value, estimated: share_text(value, estimated=estimated),
        short=truncate_text,
        visible=lambda text: trusted(visible_html(_escape_value(text))),
    )
    return environment


def _escape_value(value: Any) -> str:
    """Escape a value as the standard library does, which writes quotes as ``&quot;``."""
    return value if hasattr(value, "__html__") else _markup()(escape(str(value)))


@cache
def _markup() -> type[str]:
    from markupsafe import Markup

    return Markup


def _breakable(words: str) -> str:
    """Return escaped text in which a name may wrap after a dot or an underscore."""
    return trusted(re.sub(r"([._])(?=[A-Za-z])", r"\1<wbr>", escape(words)))


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
            hovers, numbers = trace.pop("hovertext"), trace["customdata"]
            each = [hovers] * len(numbers) if isinstance(hovers, str) else hovers
            words.update(zip(map(str, numbers), each, strict=True))
    return plain


def _inert(value: Any) -> str:
    """Return JSON that can be embedded in a script element, with invisible characters marked."""
    return trusted(visible_json(json.dumps(value)).replace("<", "\\u003c"))


def _asset(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")
