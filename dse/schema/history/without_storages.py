"""Removal of storage URLs and passwords from the texts of a study, for its record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

import yaml

from dse.system.credentials import mask

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_SPECS = (".yaml", ".yml")
_KEY = "storage"


def storageless(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a study's specification with storage URLs and passwords removed from its file texts.

    Args:
        spec: the specification of a new or stored study, of any version.
    """
    texts = spec.get("texts")
    if not isinstance(texts, Mapping):
        return dict(spec)
    own = spec.get("path")
    specs = [path for path in texts if path == own or PurePath(path).suffix.lower() in _SPECS]
    found = {path: without_storages(texts[path]) for path in specs}
    return {**spec, "texts": {**texts, **found}}


def without_storages(text: str) -> str:
    """Return a YAML text with each ``storage:`` value replaced by null, also in ``transfer_from:``.

    Passwords in URLs within comments are masked. Line numbers do not change.
    """
    if _KEY in text or "\\" in text:
        for start, end in reversed(list(_spans(text))):
            text = f"{text[:start]}null{text[start:end].count(chr(10)) * chr(10)}{text[end:]}"
    return _with_masked_comments(text)


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the character offsets (start, end) of each ``storage:`` value, in text order."""
    try:
        root = yaml.compose(text, Loader=_LOADER)
    except yaml.YAMLError:
        return
    found = list(_values(root, _KEY))
    for prior in (*_values(root, "transfer_from"), *_values(root, "prior")):
        several = prior.value if isinstance(prior, yaml.SequenceNode) else [prior]
        found += [value for one in several for value in _values(one, _KEY)]
    spans = ((one.start_mark.index, one.end_mark.index) for one in found)
    yield from sorted(span for span in spans if span[0] < span[1])


def _values(node: yaml.Node | None, name: str) -> list[yaml.Node]:
    if not isinstance(node, yaml.MappingNode):
        return []
    return [value for key, value in node.value if getattr(key, "value", None) == name]


def _with_masked_comments(text: str) -> str:
    """Mask the passwords of URLs line by line, where the parsed YAML stays unchanged."""
    if mask(text) == text:
        return text
    lines = text.split("\n")
    for place, line in enumerate(lines):
        masked = mask(line)
        if masked != line:
            changed = [*lines[:place], masked, *lines[place + 1 :]]
            if _same("\n".join(lines), "\n".join(changed)):
                lines = changed
    return "\n".join(lines)


def _same(one: str, other: str) -> bool:
    """Return whether two strings are valid YAML with the same structure and values."""
    try:
        kept = [repr(list(_scalars(yaml.compose(text, Loader=_LOADER)))) for text in (one, other)]
    except yaml.YAMLError:
        return False
    return kept[0] == kept[1]


def _scalars(node: yaml.Node | None) -> Iterator[object]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield "mapping"
            yield from _scalars(key)
            yield from _scalars(value)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            yield "sequence"
            yield from _scalars(value)
    elif node is not None:
        yield node.value
