"""``dse plugins``: the installed plug-ins, with their options, inputs and metrics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from dse.cli import completion as completing
from dse.cli.options import JsonOrTableOption, OutputFormat, show_json
from dse.report.schemas.plugins_schema import PluginFacts, ProvidedFacts
from dse.report.text.terminal_table import print_lines


def list_plugins(*, output: JsonOrTableOption = OutputFormat.TABLE) -> None:
    """List all plug-ins by kind, with the distribution that each comes from.

    Example: dse plugins list
    """
    from dse.report.json.plugins_json import plugin_rows

    found = plugin_rows()
    if output is OutputFormat.JSON:
        show_json(found)
        return
    wide = max(len(one["name"]) for one in found)
    print_lines(f"{one['kind']:<12}{one['name']:<{wide}}  {one['distribution']}" for one in found)


def show_plugin(
    name: Annotated[
        str,
        typer.Argument(
            autocompletion=completing.plugins, help="A plug-in's name.", show_default=False
        ),
    ],
    *,
    output: JsonOrTableOption = OutputFormat.TABLE,
) -> None:
    """Show a plug-in: its options; for an evaluator also inputs, metrics, limits and error.

    Example: dse plugins show accelerators.systolic
    """
    from dse.report.json.plugins_json import plugin_facts

    facts = plugin_facts(name)
    if output is OutputFormat.JSON:
        show_json(facts)
        return
    for one in facts:
        print_lines(line.replace("`", "") for line in _lines(one))
        print_lines(_example_lines(one))


def _lines(one: PluginFacts) -> Iterator[str]:
    """Yield the lines of a description, with the contents and the order of the reference page."""
    origin = f"{one['origin']} " if one["origin"] else ""
    yield f"{one['name']} ({origin}{one['kind'][:-1]}): {one['about']}"
    for paragraph in one["details"].split("\n\n"):
        yield from ("", f"  {paragraph}") if paragraph else ()
    yield ""
    for read in one["reads"] or ():
        default = "" if read["default"] is None else f", default {read['default']}"
        values = f" {read['values']}{default}" if read["values"] or default else ""
        mark = "" if read["required"] else "?"
        yield f"  reads    {read['name']}{mark} [{read['unit']}]{values}"
        yield from _meaning(read["about"])
    for metric in one["provides"] or ():
        yield f"  provides {metric['name']} [{metric['unit']}]{_role(metric)}"
    for option in one["options"]:
        given = "" if option["default"] is None else f" = {option['default']}"
        yield f"  option   {option['name']}: {option['type']}{given}"
        yield from _meaning(option["about"])
    for title, text in (("limits", one["limits"]), ("error", one["error"])):
        yield from ("", f"  {title}: {text}") if text else ()
    for fit in one["held_out"]:
        points = f"{fit['fitted']} points, {fit['held_out']} held out"
        yield f"    {fit['name']}, fitted to {points}: mean error {fit['mean']:.1%}"
    yield from ("", f"  source: {one['source']}") if one["source"] else ()


def _example_lines(one: PluginFacts) -> Iterator[str]:
    for file, text in one["example"].items():
        yield from ("", f"  {file}:", *(f"    {line}" for line in text.splitlines()))


def _meaning(about: str) -> Iterator[str]:
    yield from (f"             {about}",) if about else ()


def _role(metric: ProvidedFacts) -> str:
    """Return the end of a metric's line: its goal, the metric that it is a part of, and notes."""
    part = f"part of {metric['part_of']}" if metric["part_of"] else ""
    words = ", ".join(metric["words"])
    return "".join(f" {text}" for text in (metric["goal"], part, words) if text)
