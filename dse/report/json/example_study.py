"""Example of an evaluator as the files that a user would write: a space and a study."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from dse.core.metric import Metric
from dse.protocols import COHERENT, Evaluator
from dse.report.json.plugin_docstring import Example

_MOST_OBJECTIVES = 2


def example_files(name: str, example: Example, made: Evaluator | None) -> dict[str, str]:
    """Return the files of an evaluator's example by name: ``space.yaml``, ``study.yaml``, others.

    Args:
        name: the evaluator's name in study files.
        example: options and parameters of the example.
        made: the evaluator, whose metrics are the objectives unless the example names others;
            ``None`` if it cannot be constructed without the files.
    """
    own = name.rpartition(".")[2].replace("-", "_")
    wanted = example.objectives or _objectives(made.provides if made else {})
    units = made.units if made else {}
    space = [f"space: {own}_space", "parameters:", *_parameters(example.parameters, units)]
    study = [
        f"study: {own}_study",
        "space: space.yaml",
        "evaluators:",
        f"  {own}: {_flow({'use': name, **example.options})}",
        "objectives:",
        *(f"  - {goal}: {own}.{metric}" for metric, goal in wanted.items()),
    ]
    texts = {"space.yaml": space, "study.yaml": study}
    return {**{file: "\n".join([*one, ""]) for file, one in texts.items()}, **example.files}


def _objectives(provides: Mapping[str, Metric]) -> Mapping[str, str]:
    """Return the first metrics with a goal that are not part of another, and their goals."""
    goals = {name: one.goal for name, one in provides.items() if one.goal and not one.part_of}
    first = dict.fromkeys(list(provides)[:1], "minimize")
    return dict(list(goals.items())[:_MOST_OBJECTIVES]) or first


def _parameters(parameters: Mapping[str, Any], units: Mapping[str, str]) -> Iterator[str]:
    for name, values in parameters.items():
        if isinstance(values, list):
            yield f"  {name}: {_flow(_domain(values, units.get(name, '').replace(COHERENT, '')))}"
        else:
            yield f"  {name}: {_flow(values)}"


def _domain(values: Sequence[Any], unit: str) -> Mapping[str, Any]:
    """Return the domain of a list of values as a space file defines it."""
    if all(isinstance(value, bool) for value in values):
        return {"boolean": True}
    if any(isinstance(value, str | bool) for value in values):
        return {"choice": list(values)}
    return {"ordinal": list(values), **({"unit": unit} if unit else {})}


def _flow(value: Any) -> str:
    """Return a value as YAML on one line."""
    text: str = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=float("inf"))
    return text.strip()
