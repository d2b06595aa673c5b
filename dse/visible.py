"""Characters that a terminal obeys or hides, made visible: for texts of programs and strangers."""

from __future__ import annotations

import re

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but for tab and line feed, DEL, C1
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff\ud800-\udfff]"
)
"""Controls, and marks that have no width or turn the reading order.

Source:
    https://www.unicode.org/reports/tr36/ (bidirectional text), and the property
    ``Default_Ignorable_Code_Point`` of https://www.unicode.org/reports/tr44/ without the selectors
    of variants, which emoji use.
"""


def visible(text: str) -> str:
    r"""Return the text with a mark for each character that a terminal obeys or hides.

    ESC becomes ``\\\\x1b``, U+202E ``<U+202E>``; line feeds and tabs stay.
    """
    return _UNSEEN.sub(_marked, text)


def is_visible(text: str) -> bool:
    """Return True if there is no such character in the text, nor a line feed or a tab."""
    return not _UNSEEN.search(text) and "\n" not in text and "\t" not in text


def _marked(found: re.Match[str]) -> str:
    character = found[0]
    if ord(character) < 0xA0 or "\ud800" <= character <= "\udfff":
        return character.encode("unicode_escape").decode()
    return f"<U+{ord(character):04X}>"
