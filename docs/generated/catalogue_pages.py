"""The catalogue of plug-ins: what each is, takes, reads and provides, as ``dse plugins show``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import NamedTuple

from dse.registry import Group, names
from dse.report.json.plugins_json import facts_of
from dse.report.schemas.plugins_schema import OptionFacts, PluginFacts
from plain_text import cell, escaped


class Family(NamedTuple):
    """Evaluators whose names begin alike: the title of their page, and its introduction."""

    title: str
    about: str


FAMILIES: Mapping[str, Family] = {
    "accelerators": Family(
        "Accelerators: systolic arrays, GPUs, training chips",
        "Time, energy and area of a network on one chip. See also [systolic arrays](../../systolic"
        ".md), [GPUs and other devices](../../devices.md) and [workloads](../../workloads.md).",
    ),
    "architectures": Family(
        "Architectures: trained networks, supernets, blocks, scaling",
        "Accuracy, latency and size of networks of a space of architectures. See also [search for "
        "an architecture](../../how-to/architecture.md) and [latency of your networks]"
        "(../../how-to/learned.md).",
    ),
    "clusters": Family(
        "Clusters: training, offloading, collectives, faults, power",
        "Time, memory, energy, cost and carbon of jobs on many devices; [serving](serving.md) has "
        "a page of its own. See also [training](../../training.md), [offloading](../../offload.md),"
        " [collectives](../../collectives.md) and [MAD-Max](../../two_streams.md).",
    ),
    "serving": Family(
        "Serving language models: simulated, measured",
        "Latency, throughput, energy and cost of models that answer requests. See also [serving]"
        "(../../serving.md), [the serving simulator](../../simulator.md) and [APEX]"
        "(../../apex.md).",
    ),
    "compression": Family(
        "Compression: pruning, quantization, retraining",
        "Quality and size of compressed models. See also [number formats](../../formats.md) and "
        "[workloads](../../workloads.md).",
    ),
    "edge": Family(
        "Edge: device and server, robots, phones, microcontrollers",
        "Systems with limited power at the edge of a network. See also [cutting a network]"
        "(../../how-to/edge-partition.md).",
    ),
    "faults": Family(
        "Faults: bit flips in memory, protections",
        "Corruptions of real networks by flips in their stored weights, and of missions of a robot "
        "by flips in its state. See also [bit flips]"
        "(../../how-to/faults.md).",
    ),
    "formats": Family(
        "Number formats: rounding error",
        "Distortion of tensors by [number formats](../../formats.md).",
    ),
    "hardware": Family(
        "Chips: MAC units, dies, DRAM, technology nodes, carbon",
        "Energy, area, cost and carbon of the parts of a chip. See also [chip technology]"
        "(../../technology.md).",
    ),
    "kernels": Family(
        "Kernels: convolution, GEMM",
        "Time and traffic of single layers on GPUs and CPUs. See also [devices](../../devices.md).",
    ),
    "numerics": Family(
        "Numerics: attention and decoding in low precision",
        "Errors of computations whose results are rounded. See also [number formats]"
        "(../../formats.md).",
    ),
    "outside": Family(
        "External simulators: SCALE-Sim, ZigZag, mlsysim",
        "Programs of others, each in an environment of its own. See also [external simulators]"
        "(../../outside.md).",
    ),
    "private": Family(
        "Private inference: encryption parameters, rotations, lookup tables, retrieval",
        "Time, traffic and noise of inference on data that the server cannot read. See also "
        "[encryption parameters of a network](../../how-to/private-inference.md).",
    ),
    "reasoning": Family(
        "Reasoning: test-time compute",
        "Accuracy and cost of repeated, verified and longer answers of language models. See also "
        "[how much to spend on a query](../../how-to/test-time-compute.md).",
    ),
    "recommenders": Family(
        "Recommenders: stages of ranking, storage of embedding tables",
        "Quality, time and memory of recommendations, by their stages and by where tables are.",
    ),
    "retrieval": Family(
        "Retrieval: indexes of vectors",
        "Recall, time and size of searches for nearest neighbours, measured on your vectors. See "
        "also [choosing a vector index](../../how-to/vector-index.md).",
    ),
    "scaling": Family(
        "Scaling laws: precision and size of models",
        "Published laws and cost functions of quantised models.",
    ),
    "schedules": Family(
        "Schedules: loops pipelined by a solver",
        "Schedules that are optimal, infeasible, or bounded at the time limit. See also [schedule "
        "a loop](../../how-to/kernel.md#schedule-a-loop).",
    ),
    "training": Family(
        "Training: recipes that train a real network",
        "Quality and time to a target of recipes, measured, and their numbers of updates. See also "
        "[training recipes](../../how-to/training-recipe.md).",
    ),
    "": Family(
        "Commands, formulas, tables, Python functions",
        "Evaluators of your own programs, formulas and data. See also [commands]"
        "(../../how-to/command.md), [formulas](../../how-to/formula.md), [tables]"
        "(../../how-to/table.md), [functions](../../how-to/python.md) and [writing an evaluator]"
        "(../../how-to/own-evaluator.md).",
    ),
}
"""A family that is absent, such as one of a third-party package, has its name as its title."""

_SERVING = ("apex", "length_aware", "reasoning", "serving", "simulator")
"""Packages whose evaluators of clusters have a page of their own."""

_GROUPS: Mapping[Group, str] = {
    "optimizers": "Optimizers suggest designs. `auto` chooses one and prints the reason.",
    "executors": "Executors run evaluations. `auto` chooses one and prints the reason.",
    "storages": "Storages keep studies; the name is the scheme of a storage URL.",
}

_INDEX = """# Evaluators

Evaluators provide the metrics of designs. A modelled evaluator is a formula or a simulation in
Python; a measured one runs a program. `dse plugins show NAME` prints what these pages have of an
evaluator: its inputs, metrics, options, limits, error, source and an example.
[Write an evaluator](../how-to/own-evaluator.md) shows how to add one.
"""

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


def catalogue() -> dict[str, str]:
    """Each page by its path below ``reference/``: groups, and families of evaluators."""
    evaluators = [facts_of("evaluators", name) for name in names("evaluators")]
    families = {
        family: list(members)
        for family, members in groupby(sorted(evaluators, key=_family), key=_family)
    }
    return {
        "evaluators.md": _index(families),
        **{family_path(family): _page(family, one) for family, one in families.items()},
        **{f"{group}.md": _group(group, about) for group, about in _GROUPS.items()},
    }


def family_of(name: str) -> str:
    """The family of an evaluator; empty for one without a family."""
    packages = names("evaluators")[name].module.split(".")
    if packages[:2] == ["dse_evaluators", "clusters"] and packages[2] in _SERVING:
        return "serving"
    return name.partition(".")[0] if "." in name else ""


def family_path(family: str) -> str:
    """The path of a family's page, below ``reference/``."""
    return f"evaluators/{family or 'generic'}.md"


def family_title(family: str) -> str:
    """The title of a family's page."""
    return FAMILIES[family].title if family in FAMILIES else family.capitalize()


def anchor(name: str) -> str:
    """The anchor of a plug-in's section."""
    return name.replace(".", "-")


def _family(one: PluginFacts) -> str:
    return family_of(one["name"])


def _index(families: Mapping[str, list[PluginFacts]]) -> str:
    lines = [_INDEX]
    for family, members in families.items():
        path = family_path(family)
        lines += [f"## [{family_title(family)}]({path})", ""]
        lines += ["| evaluator | modelled or measured | description |", "|---|---|---|"]
        for one in members:
            link = f"[`{one['name']}`]({path}#{anchor(one['name'])})"
            lines.append(f"| {link} | {one['origin'] or ''} | {cell(escaped(one['about']))} |")
        lines.append("")
    return "\n".join(lines)


def _page(family: str, members: list[PluginFacts]) -> str:
    lines = [f"# {family_title(family)}", ""]
    if family in FAMILIES:
        lines += [FAMILIES[family].about, ""]
    lines += ["| evaluator | description |", "|---|---|", *map(_row, members)]
    for one in members:
        lines += ["", *_entry(one)]
    return "\n".join([*lines, ""])


def _group(group: Group, about: str) -> str:
    found = [facts_of(group, name) for name in names(group)]
    lines = [f"# {group.capitalize()}", "", about, "", "| name | description |", "|---|---|"]
    lines += map(_row, found)
    for one in found:
        lines += ["", *_entry(one)]
    return "\n".join([*lines, ""])


def _row(one: PluginFacts) -> str:
    return f"| [`{one['name']}`](#{anchor(one['name'])}) | {cell(escaped(one['about']))} |"


def _entry(one: PluginFacts) -> Iterator[str]:
    yield f"## `{one['name']}` {{#{anchor(one['name'])}}}"
    yield from ("", escaped(one["about"]), "", escaped(one["details"]))
    yield from _evaluator(one)
    yield from _options(one)
    for title in ("limits", "error", "source"):
        if one[title]:
            yield from ("", f"**{title.capitalize()}.** {escaped(one[title])}")
    yield from _held_out(one)
    if one["example"]:
        yield from ("", "**Example.**")
    for file, text in one["example"].items():
        kind = file.rpartition(".")[2].replace("py", "python")
        yield from ("", f'```{kind} title="{file}"', text.rstrip("\n"), "```")


def _evaluator(one: PluginFacts) -> Iterator[str]:
    """What an evaluator reads and provides."""
    if one["kind"] != "evaluators":
        return
    if one["provides"] is None:
        yield from ("", "Its inputs and metrics depend on its options.")
        return
    such = ", with the options of the example" if any(o["required"] for o in one["options"]) else ""
    yield from ("", f"**{(one['origin'] or '').capitalize()}**{such}.")
    if one["reads"]:
        yield from ("", "| input | unit | values | default | meaning |", "|---|---|---|---|---|")
    for read in one["reads"] or ():
        default = f"`{read['default']}`" if read["default"] is not None else "optional"
        default = "required" if read["required"] else default
        texts = (cell(escaped(read["values"])), default, cell(escaped(read["about"])))
        row = (f"`{read['name']}`", read["unit"], *texts)
        yield f"| {' | '.join(row)} |"
    yield from ("", "| metric | unit | goal | part of | text values |", "|---|---|---|---|---|")
    for metric in one["provides"]:
        words, total = ", ".join(metric["words"]), metric["part_of"]
        row = (metric["unit"], metric["goal"] or "", f"`{total}`" if total else "", cell(words))
        yield f"| `{metric['name']}` | {' | '.join(row)} |"


def _options(one: PluginFacts) -> Iterator[str]:
    """The options, of which those that fix an input are only listed."""
    inputs = {read["name"] for read in one["reads"] or ()}
    fixing = [o["name"] for o in one["options"] if o["name"] in inputs and o["default"] == "None"]
    others = [option for option in one["options"] if option["name"] not in fixing]
    if others:
        yield from ("", "| option | type | default | meaning |", "|---|---|---|---|")
        yield from map(_option, others)
    if fixing:
        listed = ", ".join(f"`{name}`" for name in fixing)
        yield from ("", f"Options that fix the input of their name for all designs: {listed}.")


def _held_out(one: PluginFacts) -> Iterator[str]:
    if not one["held_out"]:
        return
    yield from ("", "| fit | fitted to | held out | mean error | largest error | points |")
    yield "|---|---|---|---|---|---|"
    for fit in one["held_out"]:
        errors = f"{fit['mean']:.1%} | {fit['largest']:.1%}"
        source = cell(escaped(fit["source"]))
        yield f"| {fit['name']} | {fit['fitted']} | {fit['held_out']} | {errors} | {source} |"


def _option(option: OptionFacts) -> str:
    default = "required" if option["required"] else f"`{_written(option['default'])}`"
    if option["default"] in (None, "None", "''") and not option["required"]:
        default = "none"
    row = (f"`{option['name']}`", _kind(option["type"]), default, escaped(option["about"]))
    return f"| {' | '.join(map(cell, row))} |"


def _written(default: str | None) -> str:
    """A default, in Python notation, as a file would have it."""
    text = (default or "").strip("'")
    return text.lower() if text in ("True", "False") else text


def _kind(annotation: str) -> str:
    """A type as a reader of YAML would say it, as far as there are words for it."""
    chosen = _LITERAL.fullmatch(annotation)
    if chosen:
        return " or ".join(f"`{word.strip()[1:-1]}`" for word in chosen.group(1).split(","))
    kinds = [kind for kind in annotation.split(" | ") if kind != "None"]
    return ", or ".join(_WORDS.get(kind, f"`{kind}`") for kind in kinds)
