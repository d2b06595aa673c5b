"""The catalogue of plug-ins, from the registry: what each is, takes, reads and provides."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from itertools import groupby
from typing import Any

from dse.registry import Group, load, names, options_of
from plain_text import cell, prose

_GROUPS: Mapping[Group, str] = {
    "evaluators": "Evaluators provide metrics. `evaluators/README.md` lists the error of each.",
    "optimizers": "Optimizers suggest designs. `auto` chooses one and prints the reason.",
    "executors": "Executors run evaluations. `auto` chooses one and prints the reason.",
    "storages": "Storages keep studies; the name is the scheme of a storage URL.",
}

_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "clusters.serving": {"model": "llama3-70b"},
    "clusters.serving-simulator": {"model": "llama3-70b"},
    "clusters.training": {"model": "llama2-70b"},
    "compression.matrix": {"recipe": "prune {density}", "rows": 32, "columns": 32},
    "compression.noise": {"model": "digits-cnn"},
    "compression.recipe": {"model": "digits-cnn"},
    "compression.size": {"model": "digits-cnn"},
}
"""What is made with these, to tell what it then reads and provides."""

_SECTIONS = re.compile(r"^(Args|Source|Raises|Laws):\n", re.MULTILINE)
_LITERAL = re.compile(r"Literal\[(['\"][^\]]*)\]")
_WORDS = {
    "str": "text",
    "float": "number",
    "int": "whole number",
    "bool": "true or false",
    "Sequence[str]": "list of text",
    "Mapping[str, str]": "mapping of names to text",
    "Mapping[str, float]": "mapping of names to number",
}
_OPTION = re.compile(r"^    (\w+): ", re.MULTILINE)


def catalogue() -> dict[str, str]:
    """A page for each group of plug-ins, by the group's name."""
    return {group: _page(group, about) for group, about in _GROUPS.items()}


def _page(group: Group, about: str) -> str:
    found = {name: load(group, name) for name in names(group)}
    lines = [f"# {group.capitalize()}", "", about, "", "| name | description |", "|---|---|"]
    lines += [f"| [`{n}`](#{_anchor(n)}) | {cell(_first(p))} |" for n, p in found.items()]
    families = groupby(found, key=lambda name: name.partition(".")[0] if "." in name else "")
    for family, members in sorted((family, list(members)) for family, members in families):
        lines += ["", f"## {family}"] * bool(family)
        for name in members:
            lines += ["", _entry(group, name, found[name])]
    return "\n".join([*lines, ""])


def _entry(group: Group, name: str, plugin: Any) -> str:
    about, parts = _docstring(plugin)
    lines = [f"### `{name}` {{#{_anchor(name)}}}", "", prose(about), ""]
    described = _OPTION.split(parts.get("Args", ""))
    told = dict(zip(described[1::2], described[2::2], strict=True))
    options = options_of(plugin)
    if options:
        lines += ["", "| option | type | default | meaning |", "|---|---|---|---|"]
        lines += [_option(parameter, told.get(o, "")) for o, parameter in options.items()]
    if group == "evaluators":
        lines += ["", *_evaluator(name, plugin)]
    if "Source" in parts:
        lines += ["", f"Source: {prose(parts['Source'])}"]
    return "\n".join([*lines, ""])


def _evaluator(name: str, plugin: Any) -> list[str]:
    """What an evaluator reads and provides, where it can be made without a question."""
    given = _OPTIONS.get(name, {})
    needed = [o for o, p in options_of(plugin).items() if p.default is p.empty and o not in given]
    if needed:
        return ["Its inputs and metrics depend on its options."]
    made = plugin(**given)
    such = ", ".join(f"`{option}: {value}`" for option, value in given.items())
    lines = [f"{made.kind.capitalize()}{f'; listed for {such}' if such else ''}.", ""]
    reads = [(r, "") for r in sorted(made.reads)] + [(r, "yes") for r in sorted(made.optional)]
    if reads:
        lines += ["| input | unit | may be absent |", "|---|---|---|"]
        lines += [f"| `{r}` | {made.units.get(r, '')} | {may} |" for r, may in reads]
    lines += ["", "| metric | unit | goal | part of | text values |", "|---|---|---|---|---|"]
    for own, metric in made.provides.items():
        words, whole = ", ".join(metric.words), f"`{metric.part_of}`" if metric.part_of else ""
        lines.append(f"| `{own}` | {metric.unit} | {metric.goal or ''} | {whole} | {cell(words)} |")
    return lines


def _option(parameter: inspect.Parameter, told: str) -> str:
    value = parameter.default
    default = "required" if value is parameter.empty else f"`{_written(value)}`"
    if value is None or value == "" or "<factory>" in default:
        default = "none"
    kind = _kind(str(parameter.annotation).strip("'"))
    row = (f"`{parameter.name}`", kind, default, prose(told))
    return f"| {' | '.join(cell(one) for one in row)} |"


def _written(value: Any) -> str:
    """A default as a file would have it."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def _kind(annotation: str) -> str:
    """A type as a reader of YAML would say it, as far as there are words for it."""
    chosen = _LITERAL.fullmatch(annotation)
    if chosen:
        return " or ".join(f"`{word.strip()[1:-1]}`" for word in chosen.group(1).split(","))
    kinds = [kind for kind in annotation.split(" | ") if kind != "None"]
    return ", or ".join(_WORDS.get(kind, f"`{kind}`") for kind in kinds)


def _docstring(plugin: Any) -> tuple[str, dict[str, str]]:
    """The text of a docstring, and its sections by their names."""
    about, *rest = _SECTIONS.split(inspect.getdoc(plugin) or "")
    return about, dict(zip(rest[::2], rest[1::2], strict=True))


def _first(plugin: Any) -> str:
    return prose((inspect.getdoc(plugin) or "").split("\n\n")[0])


def _anchor(name: str) -> str:
    return name.replace(".", "-")
