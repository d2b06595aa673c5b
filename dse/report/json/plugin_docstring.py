"""Facts that a plug-in declares in its docstring: summary, options, limits, error, example."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from dse.core.values import Value
from dse.errors import PluginError

_SECTION = re.compile(r"^(Args|Inputs|Limits|Error|Example|Source|Raises|Laws):\n", re.MULTILINE)
_ITEM = re.compile(r"^    (\w+(?:, \w+)*): ", re.MULTILINE)
_ROLE = re.compile(r":\w+:`~?\.?(?:[\w.]+\.)?(\w+)`")
_LITERAL = re.compile(r"``(.+?)``", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """Options and parameters with which an evaluator can be tried, from its docstring.

    ``parameters`` maps each parameter to a list of values, or to its domain as in a space file;
    ``files`` maps each file that the options name to its contents. ``objectives`` maps metrics to
    ``minimize`` or ``maximize``; by default they are the first two metrics with a goal.
    """

    options: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    objectives: Mapping[str, str] = field(default_factory=dict)

    @property
    def designs(self) -> list[dict[str, Value]]:
        """Designs that together use each listed value of each parameter at least once."""
        lists = {name: values for name, values in self.parameters.items() if type(values) is list}
        count = max(map(len, lists.values()), default=1)
        return [
            {name: values[row % len(values)] for name, values in lists.items()}
            for row in range(count)
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginDocstring:
    """The sections of a plug-in's docstring, as Markdown; a section that is absent is empty."""

    summary: str
    details: str
    options: Mapping[str, str]
    inputs: Mapping[str, str]
    limits: str
    error: str
    source: str
    example: Example | None


def read_docstring(plugin: Any) -> PluginDocstring:
    """Return the sections of a plug-in's docstring.

    Raises:
        PluginError: the example in the docstring is not a mapping with the fields of
            :class:`Example`.
    """
    about, *rest = _SECTION.split(inspect.getdoc(plugin) or "")
    sections = dict(zip(rest[::2], rest[1::2], strict=True))
    summary, _, details = about.partition("\n\n")
    return PluginDocstring(
        summary=markdown(summary),
        details=markdown(details),
        options=_read_items(sections.get("Args", "")),
        inputs=_read_items(sections.get("Inputs", "")),
        limits=markdown(sections.get("Limits", "")),
        error=markdown(sections.get("Error", "")),
        source=markdown(sections.get("Source", "")),
        example=_read_example(plugin, sections.get("Example", "")),
    )


def _read_items(section: str) -> dict[str, str]:
    """Return the text of each item by name; one item may describe several names."""
    _, *parts = _ITEM.split(section)
    described = zip(parts[::2], parts[1::2], strict=True)
    return {one: markdown(text) for names, text in described for one in names.split(", ")}


def markdown(text: str) -> str:
    """Return a docstring's text as Markdown, with one line for each paragraph."""
    text = _LITERAL.sub(r"`\1`", _ROLE.sub(r"`\1`", text)).strip()
    return "\n\n".join(" ".join(part.split()) for part in re.split(r"\n\s*\n", text))


def _read_example(plugin: Any, text: str) -> Example | None:
    """Return the YAML example of a docstring; ``None`` without one, as if the example is Python."""
    if not text.strip() or text.lstrip().startswith(">>>"):
        return None
    try:
        return Example(**yaml.safe_load(text))
    except (yaml.YAMLError, TypeError) as error:
        raise PluginError(
            f"the example in the docstring of {plugin.__name__} cannot be read: {error}",
            hint="write a mapping with the keys options, parameters, files and objectives",
        ) from error
