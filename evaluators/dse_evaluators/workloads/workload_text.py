"""Parser of a workload's name with options, such as ``llama2-7b:prefill=2048,batch=4``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from dse.errors import SpecError, nearest
from dse_evaluators.workloads.layer_table import LayerTable

_DIGITS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberKey:
    """Option of a workload's name that takes an integer within bounds.

    The bounds ``least`` and ``most`` are included. Without a default the option may be absent.
    """

    least: int
    most: int
    default: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WordKey:
    """Option of a workload's name that takes one of ``words``; the first one is the default."""

    words: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadOptions:
    """Values of the options in a workload's name, with defaults; ``text`` is the complete name."""

    numbers: Mapping[str, int]
    words: Mapping[str, str]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadFamily:
    """Family of workloads with a common name, followed by options: ``llama2-7b:decode=4096``."""

    make: Callable[[WorkloadOptions], LayerTable]
    keys: Mapping[str, NumberKey | WordKey]


def wrap_table(table: LayerTable) -> WorkloadFamily:
    """Return a workload family for one fixed layer table, without options."""
    return WorkloadFamily(make=lambda _: table, keys={})


def parse_keys(text: str, keys: Mapping[str, NumberKey | WordKey]) -> WorkloadOptions:
    """Parse the options of a workload's name, ``name:key=value,...``.

    Raises:
        SpecError: a key is unknown, occurs twice, or has an invalid value.
    """
    pairs = pairs_of(text, text.partition(":")[2].split(","))
    for key in pairs:
        if key not in keys:
            hint = nearest(key, keys) if keys else "it takes no keys: write its name alone"
            raise SpecError(f"the workload {text!r} has no key {key!r}", hint=hint)
    numbers = {
        key: _number(text, key, pairs[key], kind) if key in pairs else kind.default
        for key, kind in keys.items()
        if isinstance(kind, NumberKey)
    }
    words = {
        key: _word(text, key, pairs[key], kind) if key in pairs else kind.words[0]
        for key, kind in keys.items()
        if isinstance(kind, WordKey)
    }
    present = {key: value for key, value in numbers.items() if value is not None}
    return WorkloadOptions(numbers=present, words=words, text=text)


def pairs_of(text: str, items: Iterable[str]) -> dict[str, str]:
    """Return the values of ``key=value`` items by key; empty items are ignored.

    Raises:
        SpecError: a key occurs twice.
    """
    pairs: dict[str, str] = {}
    for item in items:
        key, _, value = item.partition("=")
        if key in pairs:
            raise SpecError(f"the workload {text!r} has the key {key!r} twice")
        if item:
            pairs[key] = value
    return pairs


def whole(text: str, key: str, written: str, ends: tuple[int, int]) -> int:
    """Parse the integer value of an option, which must be in the closed range ``ends``.

    Raises:
        SpecError: the value is not an integer, or out of range.
    """
    least, most = ends
    problem = f"in the workload {text!r}, {key} is {written!r}"
    if not re.fullmatch(rf"\d{{1,{_DIGITS}}}", written):
        raise SpecError(problem, hint=f"a whole number from {least} to {most}")
    if not least <= int(written) <= most:
        near = min(max(int(written), least), most)
        raise SpecError(problem, hint=f"{key} goes from {least} to {most}; did you mean {near}?")
    return int(written)


def _number(text: str, key: str, written: str, kind: NumberKey) -> int:
    return whole(text, key, written, (kind.least, kind.most))


def _word(text: str, key: str, written: str, kind: WordKey) -> str:
    if written not in kind.words:
        raise SpecError(
            f"in the workload {text!r}, {key} is {written!r}", hint=nearest(written, kind.words)
        )
    return written
