"""A console that shows what a terminal would obey: no text of a study moves the cursor."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from dse.system.terminal_text import visible


class SafeConsole(Console):
    """A console whose every text is marked where it is not visible; its own controls are left.

    Texts are marked before they are laid out, so that tables fit; what comes by another way is
    marked when it is drawn.
    """

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(visible(text), **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        if isinstance(renderable, Text):
            renderable = _visible_text(renderable)
        for segment in super().render(renderable, options):
            text = segment.text if segment.control else visible(segment.text)
            yield segment if text == segment.text else Segment(text, segment.style)


def _visible_text(text: Text) -> Text:
    """Return the text, marked; a marked one keeps its own style but not those of its parts."""
    plain = visible(text.plain)
    if plain == text.plain:
        return text
    return Text(
        plain,
        style=text.style,
        justify=text.justify,
        overflow=text.overflow,
        no_wrap=text.no_wrap,
        end=text.end,
        tab_size=text.tab_size,
    )
