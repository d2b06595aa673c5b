"""JSON descriptions of plug-ins: their options, inputs and metrics."""

from __future__ import annotations

import inspect
import re
from typing import Any

from dse.errors import PluginError, nearest
from dse.registry import GROUPS, Group, load, names, options_of
from dse.report.schemas.plugins import OptionFacts, PluginFacts, PluginRow, ProvidedFacts, ReadFacts

_RAISES = re.compile(r"^Raises:$", re.MULTILINE)


def plugin_rows() -> list[PluginRow]:
    """Return name, kind and providing package of each installed plug-in, by kind."""
    return [
        {"kind": group, "name": name, "distribution": point.dist.name if point.dist else "?"}
        for group in GROUPS
        for name, point in names(group).items()
    ]


def plugin_facts(name: str) -> list[PluginFacts]:
    """Return the descriptions of the plug-ins of that name: one, unless two kinds share it.

    Raises:
        PluginError: no plug-in has that name, or its import failed.
    """
    found = [(group, load(group, name)) for group in GROUPS if name in names(group)]
    if not found:
        every = [known for group in GROUPS for known in names(group)]
        raise PluginError(f"there is no plug-in {name!r}", hint=nearest(name, every))
    return [_facts(group, name, plugin) for group, plugin in found]


def _facts(group: Group, name: str, plugin: Any) -> PluginFacts:
    about, *more = (inspect.getdoc(plugin) or "").split("\n")
    made = _make_plugin(plugin) if group == "evaluators" else None
    return {
        "kind": group,
        "name": name,
        "about": about,
        "details": _RAISES.split("\n".join(more).replace("``", ""))[0].strip("\n"),
        "options": [_option(parameter) for parameter in options_of(plugin).values()],
        "reads": None if made is None else _reads(made),
        "provides": None if made is None else _provides(made),
    }


def _make_plugin(evaluator: Any) -> Any:
    """Create an evaluator without options, or return ``None`` if that fails.

    A failure means that its inputs depend on its options.
    """
    try:
        return evaluator()
    except Exception:  # noqa: BLE001 - any failure means that its inputs are unknown
        return None


def _reads(made: Any) -> list[ReadFacts]:
    wanted = [(name, True) for name in sorted(made.reads)]
    wanted += [(name, False) for name in sorted(made.optional)]
    return [
        {"name": name, "unit": made.units.get(name, ""), "required": required}
        for name, required in wanted
    ]


def _provides(made: Any) -> list[ProvidedFacts]:
    return [
        {"name": name, "unit": metric.unit, "words": list(metric.words)}
        for name, metric in made.provides.items()
    ]


def _option(parameter: inspect.Parameter) -> OptionFacts:
    """Return an option's name, type, default and whether it is required, as JSON."""
    default = parameter.default
    required = default is parameter.empty
    made = "<factory>" in str(default)  # usually an empty mapping or list
    return {
        "name": parameter.name,
        "type": str(parameter.annotation).strip("'"),
        "required": required,
        "default": None if required or made else repr(default),
    }
