"""Terminal console that shows control characters of texts instead of executing them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from dse.system.terminal_text import visible


class SafeConsole(Console):
    """Console that shows control and other invisible characters of texts as visible marks.

    The console's own control codes are kept. Strings are marked before layout, so that tables fit;
    other output is marked when it is rendered.
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
    """Return the text with invisible characters marked; if any is, styles within it are lost."""
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
