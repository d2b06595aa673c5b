"""Escaping of control and invisible characters in untrusted texts, for terminals and pages."""

from __future__ import annotations

import json
import re
from html import escape

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but for tab and line feed, DEL, C1
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff\ud800-\udfff]"
)
"""Control characters, and characters of zero width or that change the reading direction.

Source:
    https://www.unicode.org/reports/tr36/ (bidirectional text), and the property
    ``Default_Ignorable_Code_Point`` of https://www.unicode.org/reports/tr44/ without the variation
    selectors, which emoji use.
"""


_TAG = re.compile(r"(?P<tag><[^>]*>)|[^<]+")
_CODED = re.compile(r"(?:\\\\)+|\\(?P<code>u[0-9a-fA-F]{4}|[bfr])|" + _UNSEEN.pattern)


def visible(text: str) -> str:
    r"""Return the text with control and invisible characters escaped.

    ESC becomes ``\x1b``, U+202E ``<U+202E>``; line feeds and tabs stay.
    """
    return _UNSEEN.sub(_escape_character, text)


def visible_html(page: str) -> str:
    """Return HTML with control and invisible characters escaped in text, and as references in tags.

    A script that reads an attribute therefore reads the original characters.
    """
    if not _UNSEEN.search(page):
        return page
    return _TAG.sub(
        lambda part: _UNSEEN.sub(_escape_as_reference if part["tag"] else _marked_html, part[0]),
        page,
    )


def visible_json(text: str) -> str:
    """Return JSON with control and invisible characters escaped in its strings, for display."""
    return _CODED.sub(_marked_json, text)


def is_visible(text: str) -> bool:
    """Return whether the text has no control or invisible character, line feed or tab."""
    return not _UNSEEN.search(text) and "\n" not in text and "\t" not in text


def _marked_html(found: re.Match[str]) -> str:
    return escape(_escape_character(found))


def _escape_as_reference(found: re.Match[str]) -> str:
    return f"&#x{ord(found[0]):X};"


def _marked_json(found: re.Match[str]) -> str:
    if found[0].startswith("\\\\"):
        return found[0]
    character = json.loads(f'"{found[0]}"') if found["code"] else found[0]
    if "\ud800" <= character <= "\udfff":  # half of a surrogate pair
        return found[0]
    return json.dumps(visible(character))[1:-1]


def _escape_character(found: re.Match[str]) -> str:
    character = found[0]
    if ord(character) < 0xA0 or "\ud800" <= character <= "\udfff":
        return character.encode("unicode_escape").decode()
    return f"<U+{ord(character):04X}>"
