"""Writer of readable YAML in the supported subset: one entry per line, quotes only if needed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_WORD = re.compile(r"[^\W\d][\w./-]*( [\w./-]+)*")
_QUANTITY = re.compile(r"-?[0-9][0-9.]*(e[-+]?[0-9]+)? [^\W\d$][\w/^-]*( [^\W\d][\w/^-]*)*")
_RULE = re.compile(r"[\w(][^:#\n]*[^\s:#]")
_TAKEN = re.compile(r"(?i)(true|false|null|yes|no|on|off|y|n|~|\.nan|-?\.inf)?")
"""Texts that some YAML parsers do not read as texts, and that are therefore quoted."""

_HIDDEN = re.compile(r"[\x7f-\x9f\u2028\u2029\ufeff]")


def yaml_text(value: Mapping[str, Any]) -> str:
    """Return a mapping as YAML text, with its sections as blocks of one entry per line."""
    lines: list[str] = []
    for key, one in value.items():
        if isinstance(one, Mapping) and one:
            lines += [f"{_scalar(key)}:", *_entries(one, "  ", records=key == "data")]
        elif isinstance(one, list) and one:
            lines += [f"{_scalar(key)}:", *(f"  - {_item(part)}" for part in one)]
        else:
            lines.append(f"{_scalar(key)}: {_flow(one)}")
    return "\n".join(lines) + "\n"


def _entries(value: Mapping[str, Any], indent: str, *, records: bool) -> Iterator[str]:
    """Yield the lines of a section: one per entry; with ``records``, one per row of a table."""
    for key, one in value.items():
        if not records:
            yield f"{indent}{_scalar(key)}: {_flow(one)}"
        elif isinstance(one, Mapping):
            yield f"{indent}{_scalar(key)}:"
            yield from _entries(one, f"{indent}  ", records=False)
        else:
            yield f"{indent}{_scalar(key)}:"
            yield from (f"{indent}  - {_flow(part)}" for part in one)


def _item(value: Any) -> str:
    plain = isinstance(value, str) and _RULE.fullmatch(value) and value.isprintable()
    if plain and not _TAKEN.fullmatch(value) and not _is_number(value):
        return str(value)
    return _flow(value)


def _flow(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_scalar(k)}: {_flow(one)}" for k, one in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return _scalar(value)


def _scalar(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    plain = _WORD.fullmatch(value) or _QUANTITY.fullmatch(value)
    if plain and value.isprintable() and not _TAKEN.fullmatch(value):
        return str(value)
    quoted = json.dumps(value, ensure_ascii=False)
    return _HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)


def _is_number(text: str) -> bool:
    try:
        float(text.replace("_", ""))
    except ValueError:
        return False
    return True
