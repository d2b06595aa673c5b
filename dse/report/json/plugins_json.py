"""JSON descriptions of plug-ins: their options, inputs, metrics, limits and errors."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from dse.errors import PluginError, nearest
from dse.protocols import (
    COHERENT,
    DescribesInputs,
    Evaluator,
    HasHeldOutErrors,
    HeldOutError,
    InputDescription,
)
from dse.registry import GROUPS, Group, load, names, options_of
from dse.report.json.example_study import example_files
from dse.report.json.plugin_docstring import Example, read_docstring
from dse.report.schemas.plugins_schema import (
    HeldOutFacts,
    OptionFacts,
    PluginFacts,
    PluginRow,
    ProvidedFacts,
    ReadFacts,
)


def plugin_rows() -> list[PluginRow]:
    """Return name, kind and providing package of each installed plug-in, by kind."""
    return [
        {"kind": group, "name": name, "distribution": point.dist.name if point.dist else "?"}
        for group in GROUPS
        for name, point in names(group).items()
    ]


def plugin_facts(name: str) -> list[PluginFacts]:
    """Return the descriptions of the plug-ins of that name, one per kind of plug-in.

    Raises:
        PluginError: no plug-in has that name, or its import failed.
    """
    found = [group for group in GROUPS if name in names(group)]
    if not found:
        every = [known for group in GROUPS for known in names(group)]
        raise PluginError(f"there is no plug-in {name!r}", hint=nearest(name, every))
    return [facts_of(group, name) for group in found]


def facts_of(group: Group, name: str) -> PluginFacts:
    """Return the description of one plug-in, from its signature, docstring and declarations.

    An evaluator is constructed without options or, where it has required ones, with those of its
    example.

    Raises:
        PluginError: there is no such plug-in, its import failed, or its example cannot be read.
    """
    plugin = load(group, name)
    text = read_docstring(plugin)
    example = text.example or Example()
    made = _make_plugin(plugin, example.options) if group == "evaluators" else None
    shown = example_files(name, example, made) if text.example else {}
    options = options_of(plugin)
    return {
        "kind": group,
        "name": name,
        "about": text.summary,
        "details": text.details,
        "options": [_option(one, text.options.get(own, "")) for own, one in options.items()],
        "origin": None if made is None else made.kind,
        "reads": None if made is None else _reads(made, {**text.options, **text.inputs}),
        "provides": None if made is None else _provides(made),
        "limits": text.limits,
        "error": text.error,
        "held_out": _held_out(made),
        "source": text.source,
        "example": shown,
    }


def _make_plugin(evaluator: Any, options: Mapping[str, Any]) -> Evaluator | None:
    """Create an evaluator without options, else with the given ones; ``None`` if both fail.

    If both fail, the inputs of the evaluator depend on options that are not known here.
    """
    for given in ({}, options):
        try:
            made: Evaluator = evaluator(**given)
        except Exception:  # noqa: BLE001, S112 - any failure means: not with these options
            continue
        return made
    return None


def _reads(made: Evaluator, meanings: Mapping[str, str]) -> list[ReadFacts]:
    described = made.input_descriptions if isinstance(made, DescribesInputs) else {}
    return [
        {
            "name": name,
            "unit": made.units.get(name, "").replace(COHERENT, ""),
            "required": name in made.reads,
            "values": one.values,
            "default": None if one.default is None else _written(one.default),
            "about": meanings.get(name, ""),
        }
        for name in (*sorted(made.reads), *sorted(made.optional))
        for one in [described.get(name, InputDescription(""))]
    ]


def _provides(made: Evaluator) -> list[ProvidedFacts]:
    return [
        {
            "name": name,
            "unit": metric.unit,
            "goal": metric.goal,
            "part_of": metric.part_of,
            "words": list(metric.words),
        }
        for name, metric in made.provides.items()
    ]


def _held_out(made: object) -> list[HeldOutFacts]:
    errors: Sequence[HeldOutError] = ()
    if isinstance(made, HasHeldOutErrors):
        errors = made.held_out_errors
    return [
        {
            "name": one.name,
            "fitted": one.fitted,
            "held_out": one.held_out,
            "mean": one.mean,
            "largest": one.largest,
            "source": one.source,
        }
        for one in errors
    ]


def _written(value: object) -> str:
    """Return a default value as it would be written in a study file."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def _option(parameter: inspect.Parameter, about: str) -> OptionFacts:
    """Return an option's name, type, default, meaning and whether it is required, as JSON."""
    default = parameter.default
    required = default is parameter.empty
    made = "<factory>" in str(default)  # usually an empty mapping or list
    return {
        "name": parameter.name,
        "type": str(parameter.annotation).strip("'"),
        "required": required,
        "default": None if required or made else repr(default),
        "about": about,
    }
