"""Readable differences between a stored study's specification and the current one."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from dse.core.inspection.diff import difference as space_difference
from dse.schema.space.parameters.number_text import spell_number

_SHOWN_CHANGES = 3
_LIBRARY = "['library of "
_RESUME = "its record has what was used, and 'dse resume NAME' uses that"


def difference(stored: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Describe how a stored study's identity differs from the current one; empty if equal.

    The identity is what must not change during the life of a study: its space, objectives,
    evaluators and so on. Differences of the space come first; how it is split into files does not
    matter. For each other key of the identity, only the first difference is described.
    """
    changes = space_difference(stored["space"], now["space"], spell_number)
    parts: list[str] = []
    if changes:
        more = (
            f" (and {len(changes) - _SHOWN_CHANGES} more)" if len(changes) > _SHOWN_CHANGES else ""
        )
        parts.append("space: " + "; ".join(changes[:_SHOWN_CHANGES]) + more)
        stored, now = _beside_space(stored), _beside_space(now)
    edited = _edited_functions(stored, now)
    parts += [
        f"the function of the evaluator {name!r} was edited; if its results are unchanged, "
        f"declare: @evaluator(..., version={version!r})"
        for name, version in edited.items()
    ]
    if edited:
        stored, now = (_without_versions(one, edited) for one in (stored, now))
    parts += [
        _between(part, stored.get(part), now.get(part))
        for part in sorted((stored.keys() | now.keys()) - {"space"})
        if stored.get(part) != now.get(part)
    ]
    return "; ".join(parts)


def _edited_functions(stored: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, str]:
    """Return evaluators whose Python function was edited, with its stored version.

    The keys are evaluator names. An evaluator whose function has another name than before counts as
    a different one and is not returned.
    """
    before, after = (one.get("evaluators", {}) for one in (stored, now))
    found: dict[str, str] = {}
    for name in sorted(before.keys() & after.keys()):
        options, newer = (one[name].get("options", {}) for one in (before, after))
        function = str(options.get("function", ""))
        given = function.startswith("given:") and function == newer.get("function")
        if given and options.get("version") != newer.get("version"):
            found[name] = str(options.get("version"))
    return found


def _without_versions(identity: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Return an identity without the versions of these evaluators' functions."""
    evaluators = {
        name: {
            **{key: value for key, value in one.items() if key not in ("options", "version")},
            "options": {k: v for k, v in one.get("options", {}).items() if k != "version"},
        }
        if name in names
        else one
        for name, one in identity.get("evaluators", {}).items()
    }
    return {**identity, "evaluators": evaluators}


def _beside_space(identity: Mapping[str, Any]) -> dict[str, Any]:
    """Return an identity without what is derived from the space: inputs, parameter order."""
    evaluators = {
        name: {key: value for key, value in one.items() if key != "reads"}
        for name, one in identity.get("evaluators", {}).items()
    }
    rest = {part: one for part, one in identity.items() if part != "order of parameters"}
    return {**rest, "evaluators": evaluators}


def _between(path: str, before: Any, after: Any) -> str:
    """Describe the first difference between two values, searched depth-first in mappings."""
    if isinstance(before, dict) and isinstance(after, dict):
        keys = before.keys() | after.keys()
        key = min((k for k in keys if before.get(k) != after.get(k)), key=str)
        return _between(f"{path}.{key}", before.get(key), after.get(key))
    if isinstance(before, list) and isinstance(after, list):
        gone = [one for one in before if one not in after] or before
        new = [one for one in after if one not in before] or after
        if str(gone[:1]).startswith(_LIBRARY) and str(new[:1]).startswith(_LIBRARY):
            return f"the library of 'transfer_from' changed since the study began: {_RESUME}"
        return f"{path}: {gone[:1]} is now {new[:1]}"
    return f"{path}: {before!r} is now {after!r}"
