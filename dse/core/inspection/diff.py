"""Differences between two spaces, described as English sentences."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from dse.core.inspection.fingerprint import Outline, outline
from dse.core.space import DesignSpace
from dse.core.values import Value

Shown = Callable[[float, str], str]
"""Formatter of a number and its coherent unit for display."""

_Change = tuple[str, str]
"""A parameter's name, and the rest of the sentence about it."""

_MANY = 8
"""Most values that are listed in full; a longer list is cut to its first three and its last."""

_KINDS = {
    "real": "a real number",
    "integer": "a whole number",
    "ordinal": "one of a list of numbers",
    "choice": "a choice",
}


def _bare(value: float, unit: str) -> str:
    return f"{value} {unit}".rstrip()


def difference(
    old: DesignSpace | Outline, new: DesignSpace | Outline, shown: Shown = _bare
) -> list[str]:
    """Return sentences on how a new version of a space differs from the old; empty if equal.

    Args:
        old: a space, or the outline (canonical form) that a study's record stored.
        new: the present space, or its outline.
        shown: formats a number with its coherent unit.
    """
    before, after = outline(old), outline(new)
    words = _Words(shown)
    return [
        *_merge_sentences(_parameters(before["parameters"], after["parameters"], words)),
        *_merge_sentences(_conditions(before, after)),
        *_rules(before["rules"], after["rules"]),
    ]


class _Words:
    """Formatter of values and domains as text."""

    def __init__(self, shown: Shown) -> None:
        self._shown = shown

    def value(self, value: Value, unit: str) -> str:
        if isinstance(value, bool | str) or not unit:
            return str(value)
        return self._shown(value, unit)

    def values(self, values: Sequence[Value], unit: str) -> str:
        words = [self.value(value, unit) for value in values]
        if len(words) > _MANY:
            words = [*words[:3], "...", words[-1]]
        return ", ".join(words)

    def domain(self, domain: Mapping[str, Any]) -> str:
        unit = domain["unit"]
        if "values" in domain:
            return self.values(domain["values"], unit)
        step = f" in steps of {self.value(domain['step'], unit)}" if _step(domain) > 1 else ""
        low, high = self.value(domain["low"], unit), self.value(domain["high"], unit)
        return f"{low} .. {high}{step}"


def _parameters(old: Mapping[str, Any], new: Mapping[str, Any], words: _Words) -> Iterator[_Change]:
    for name in sorted(old.keys() | new.keys(), key=_natural):
        before, after = old.get(name), new.get(name)
        if before is None:
            assert after is not None
            yield name, f"is new: {words.domain(after)}"
        elif after is None:
            yield name, f"is gone; it was {words.domain(before)}"
        elif before != after:
            yield from ((name, change) for change in _describe_change(before, after, words))


def _describe_change(
    old: Mapping[str, Any], new: Mapping[str, Any], words: _Words
) -> Iterator[str]:
    if (old["kind"], old["unit"]) != (new["kind"], new["unit"]):
        was, now = (
            f"{_describe_kind(old)}: {words.domain(old)}",
            f"{_describe_kind(new)}: {words.domain(new)}",
        )
        yield f"was {was}; now it is {now}"
        return
    if old.get("scale") != new.get("scale"):
        yield f"has a {new.get('scale')} scale now; it was {old.get('scale')}"
    if "values" in old:
        yield from _list(old, new, words)
    elif _ends(old) != _ends(new):
        how = {(True, False): "wider", (False, True): "narrower"}
        comparison = how.get((_inside(old, new), _inside(new, old)), "changed")
        yield f"is {comparison}: it was {words.domain(old)}, now it is {words.domain(new)}"


def _list(old: Mapping[str, Any], new: Mapping[str, Any], words: _Words) -> Iterator[str]:
    gone = [value for value in old["values"] if not _holds(new["values"], value)]
    more = [value for value in new["values"] if not _holds(old["values"], value)]
    if more:
        yield f"is wider: it may also be {words.values(more, new['unit'])}"
    if gone:
        yield f"is narrower: it can no longer be {words.values(gone, old['unit'])}"
    if not more and not gone and old["values"] != new["values"]:
        yield f"has another order: {words.domain(new)}; it was {words.domain(old)}"


def _conditions(before: Outline, after: Outline) -> Iterator[_Change]:
    old, new = before["conditions"], after["conditions"]
    for name in sorted(old.keys() | new.keys(), key=_natural):
        was, now = old.get(name), new.get(name)
        if not all(name in outline["parameters"] for outline in (before, after)):
            continue
        if was is None:
            yield name, f"exists only when {now['text']!r} now; it always did"
        elif now is None:
            yield name, f"always exists now; it did only when {was['text']!r}"
        elif was["hash"] != now["hash"]:
            change = f"exists when {now['text']!r} now; it did when {was['text']!r}"
            yield name, change + _data(was["text"], now["text"])


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a sort key that puts ``bits[9]`` before ``bits[10]``."""
    parts = re.split(r"(\d+)", name)
    return [(int(part), "") if part.isdecimal() else (0, part) for part in parts]


def _merge_sentences(changes: Iterator[_Change]) -> Iterator[str]:
    """Yield the sentences, with equal ones about consecutive members of a list merged into one."""
    for (_, words), group in groupby(changes, key=lambda one: (one[0].partition("[")[0], one[1])):
        names = [name for name, _ in group]
        who = names[0] if len(names) == 1 else f"each of {names[0]} to {names[-1]}"
        yield f"{who} {words}"


def _rules(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    gone = {text for key, text in old.items() if key not in new}
    more = {text for key, text in new.items() if key not in old}
    for text in sorted(gone & more):
        yield f"the rule {text!r} means something else now" + _data(text, text)
    for text in sorted(gone - more):
        yield f"the rule {text!r} is gone"
    for text in sorted(more - gone):
        yield f"the rule {text!r} is new"


def _data(old: str, new: str) -> str:
    return ", because the definitions of its names changed" if old == new else ""


def _describe_kind(domain: Mapping[str, Any]) -> str:
    unit = f" in {domain['unit']}" if domain["unit"] else ""
    return _KINDS[domain["kind"]] + unit


def _ends(domain: Mapping[str, Any]) -> tuple[float, float, int]:
    return domain["low"], domain["high"], _step(domain)


def _step(domain: Mapping[str, Any]) -> int:
    step: int = domain.get("step", 1)
    return step


def _inside(inner: Mapping[str, Any], outer: Mapping[str, Any]) -> bool:
    """Return whether every value of the inner range is a value of the outer range."""
    within = outer["low"] <= inner["low"] and inner["high"] <= outer["high"]
    if "step" not in outer or not within:
        return within
    same = (inner["low"] - outer["low"]) % outer["step"] == 0
    return bool(same and (inner["low"] == inner["high"] or inner["step"] % outer["step"] == 0))


def _holds(values: Sequence[Value], value: Value) -> bool:
    """Return whether the value is among the values; unlike in Python, ``True`` differs from 1."""
    return any(
        mine == value and isinstance(mine, bool) == isinstance(value, bool) for mine in values
    )
