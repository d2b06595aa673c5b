"""How a part of a file is written: the hint where something else stands there."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_ENTRIES: Mapping[str, str] = {
    "parameters": "{name}: {{ordinal: [1, 2, 4]}}",
    "evaluators": "{name}: {{use: command, run: [python3, bench.py], metrics: {{time: ms}}}}",
    "baselines": "{name}: {{threads: 4, format: int8}}",
    "include": "{name}: chip.yaml",
}
"""Sections whose entries have names."""

_PARTS: Mapping[str, str] = {
    "real": "such as real: [1e-3, 1]",
    "integer": "such as integer: [1, 8], the least and the most; 'step: 2' is a key of its own",
    "choice": "such as choice: [int8, int4]",
    "boolean": "write boolean: true",
    "constraints": "write each rule on a line of its own, after '- '",
    "objectives": "write each objective on a line of its own, such as '- minimize: bench.time'",
    "budget": "such as budget: {measurements: 60}",
}

_MEANT: Mapping[str, str] = {
    **dict.fromkeys(("float", "uniform"), "'real'"),
    "loguniform": "'real', and 'scale: log' beside it",
    "log": "'scale: log'",
    **dict.fromkeys(("categorical", "category", "options"), "'choice'"),
    "values": "'choice' for words, 'ordinal' for numbers",
    **dict.fromkeys(
        ("range", "bounds", "low", "high"), "'real: [low, high]' or 'integer: [low, high]'"
    ),
    "type": "the kind as a key: 'real: [0, 1]', 'integer: [1, 8]' or 'choice: [a, b]'",
    **dict.fromkeys(("if", "condition", "conditions", "depends_on"), "'when'"),
    "min": "'minimize'",
    "max": "'maximize'",
    **dict.fromkeys(("metric", "direction", "goal"), "'minimize: METRIC' or 'maximize: METRIC'"),
    **dict.fromkeys(("rules", "limits"), "'constraints'"),
    "n_trials": "'trials'",
}
"""What other tools call a thing, and how it is written here."""

_DEEPER: Mapping[str, str] = {
    **dict.fromkeys(("n_trials", "trials"), "'budget: {trials: N}'"),
    "measurements": "'budget: {measurements: N}'",
}
"""Keys of a section that are written beside it instead."""


def example(path: Sequence[str | int], found: object) -> str:
    """What could stand at the path instead of what was found; empty where nothing is known.

    Args:
        path: the keys that lead there.
        found: what does stand there.
    """
    match list(path):
        case ["objectives", int()] if isinstance(found, str):
            return f"write '- minimize: {found}', or maximize"
        case [section, str(name)] if section in _ENTRIES:
            return f"such as {_ENTRIES[str(section)].format(name=name)}"
        case [*_, str(key)] if key in _PARTS:
            return _PARTS[str(key)]
        case _:
            return ""


def meant(key: str, valid: Sequence[str]) -> str:
    """What a key that is none is called here; empty where nothing is known."""
    if key.count("(") != key.count(")"):
        return "a text with a comma goes in quotes: '...(1, 2)'"
    for told in (_MEANT.get(key, ""), _DEEPER.get(key, "")):
        if set(re.findall(r"\w+", told)) & set(valid):
            return f"write {told}"
    return ""
