"""Hints for invalid parts of a file: examples of valid syntax, and corrections of wrong keys."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from dse.errors import nearest

_ENTRIES: Mapping[str, str] = {
    "evaluators": "{name}: {{use: command, run: [python3, bench.py], metrics: {{time: ms}}}}",
    "baselines": "{name}: {{threads: 4, format: int8}}",
    "include": "{name}: chip.yaml",
}
"""Example entries of sections with named entries, as format strings."""

_PARTS: Mapping[str, str] = {
    "real": "such as real: [1e-3, 1]",
    "integer": "such as integer: [1, 8], the least and the most; 'step: 2' is a key of its own",
    "choice": "such as choice: [int8, int4]",
    "boolean": "write boolean: true",
    "constraints": "write each rule on a line of its own, after '- '",
    "objectives": "write each objective on a line of its own, such as '- minimize: bench.time'",
    "budget": "such as budget: {measurements: 60}",
    "storage_patience": "such as storage_patience: 15 min",
    "retries": "such as retries: {crashed: 1, lost: 3}",
    "space": "one text: a study names the file of its space, a space file has a name of its own",
    "study": "give it a name, such as study: kernels",
    "parameters": "a name for each, on a line of its own: 'threads: {ordinal: [1, 2, 4]}'",
    "evaluators": "a name for each: 'bench: {use: command, run: [python3, bench.py], ...}'",
    "include": "a name for each file: 'chip: chip.yaml'",
}

_RANGE = "'real: [low, high]' or 'integer: [low, high]'"
_MEANT: Mapping[str, str] = {
    **dict.fromkeys(("float", "uniform"), "'real'"),
    "loguniform": "'real' with 'scale: log'",
    "log": "'scale: log'",
    **dict.fromkeys(("categorical", "category", "options"), "'choice'"),
    "values": "'choice' for words, 'ordinal' for numbers",
    **dict.fromkeys(
        ("range", "bounds", "low", "high", "lower", "upper", "minimum", "maximum", "start", "stop"),
        _RANGE,
    ),
    "int": "'integer'",
    "bool": "'boolean'",
    **dict.fromkeys(("params", "search_space", "variables", "knobs"), "'parameters'"),
    **dict.fromkeys(("algorithm", "sampler", "method", "strategy"), "'optimizer'"),
    **dict.fromkeys(("workers", "n_jobs", "parallel"), "'executor: {use: processes, workers: 4}'"),
    **dict.fromkeys(("random_state", "rng"), "'seed'"),
    "description": "'question'",
    "database": "'storage'",
    "type": "the kind as a key: 'real: [0, 1]', 'integer: [1, 8]' or 'choice: [a, b]'",
    **dict.fromkeys(("if", "condition", "conditions", "depends_on"), "'when'"),
    "min": f"'minimize', or {_RANGE}",
    "max": f"'maximize', or {_RANGE}",
    "default": "it as a baseline of the study: 'baselines: [{threads: 4}]'",
    **dict.fromkeys(("metric", "direction", "goal"), "'minimize: METRIC' or 'maximize: METRIC'"),
    **dict.fromkeys(("rules", "limits"), "'constraints'"),
    **dict.fromkeys(("n_trials", "iterations", "max_evals", "evaluations"), "'trials'"),
}
"""Hints for keys that other tools use, with the equivalent of this project."""

_NUMBERS = "{ordinal: [1, 2, 4]}"
_OF_SCENARIOS = ("weight", "values")

_DEEPER: Mapping[str, str] = {
    **dict.fromkeys(("n_trials", "trials"), "'budget: {trials: N}'"),
    "measurements": "'budget: {measurements: N}'",
}
"""Hints for keys that belong in a subsection."""


def example(path: Sequence[str | int], found: object) -> str:
    """Return an example of a valid value in place of an invalid one; empty if none is known.

    Args:
        path: the keys and list indices that lead to the invalid value.
        found: the invalid value.
    """
    match list(path):
        case ["objectives", int()] if isinstance(found, str):
            return f"write '- minimize: {found}', or maximize"
        case ["parameters", str(name)]:
            return f"such as {name}: {_domain(found)}"
        case ["constraints", int()] if isinstance(found, dict):
            return _rule(found)
        case ["scenarios", str(), str(name)] if nearest(name, _OF_SCENARIOS).startswith("did"):
            return nearest(name, _OF_SCENARIOS)
        case [section, str(name)] if section in _ENTRIES:
            return f"such as {_ENTRIES[str(section)].format(name=name)}"
        case [*_, str(key)] if key in _PARTS:
            return _PARTS[str(key)]
        case _:
            return ""


def _domain(found: object) -> str:
    """Return, in correct syntax, the domain that values without a domain key probably mean."""
    between = re.fullmatch(r"\s*([-+\w.]+?)\s*\.\.\s*([-+\w.]+)\s*", str(found))
    if between:
        return f"{{integer: [{between[1]}, {between[2]}]}}"
    if isinstance(found, list) and found and all(isinstance(one, str) for one in found):
        return f"{{choice: [{', '.join(found)[:60]}]}}"
    numbers = found if isinstance(found, list) else [found]
    if all(isinstance(one, int | float) and not isinstance(one, bool) for one in numbers):
        return f"{{ordinal: [{', '.join(map(str, numbers))[:60]}]}}" if numbers else _NUMBERS
    return _NUMBERS


def _rule(found: Mapping[str, object]) -> str:
    """Return a hint for a constraint that is written as a mapping instead of a text."""
    if found.keys() & {"minimize", "maximize"}:
        return "put 'minimize' and 'maximize' under 'objectives:'"
    return "write the rule as one text: '- area <= 12 mm2', in quotes if it holds ': '"


def meant(key: str, valid: Sequence[str]) -> str:
    """Return a hint on the key or syntax that an invalid key probably stands for.

    The hint is empty if none is known.

    Args:
        key: the invalid key.
        valid: the valid keys at this position.
    """
    if key.count("(") != key.count(")"):
        return "a text with a comma goes in quotes: '...(1, 2)'"
    if key.lstrip("+-").replace(".", "", 1).isdigit():
        return "put several values in brackets: [1, 2, 4]"
    for form in (_MEANT.get(key, ""), _DEEPER.get(key, "")):
        if set(re.findall(r"\w+", form)) & set(valid):
            return f"write {form}"
    return ""
