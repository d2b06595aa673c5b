"""``dse plugins``: the installed plug-ins, with their options, inputs and metrics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from dse.cli import completion as completing
from dse.cli.options import OutputFormat, ToldOption, show_json
from dse.report.json.plugins import plugin_facts, plugin_rows
from dse.report.schemas.plugins import PluginFacts
from dse.report.text.terminal_table import print_lines


def list_plugins(*, output: ToldOption = OutputFormat.TABLE) -> None:
    """List all plug-ins by kind, with the distribution that each comes from.

    Example: dse plugins list
    """
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
    output: ToldOption = OutputFormat.TABLE,
) -> None:
    """Show a plug-in: its options and, for an evaluator, its inputs and metrics.

    Example: dse plugins show accelerators.systolic
    """
    told = plugin_facts(name)
    if output is OutputFormat.JSON:
        show_json(told)
        return
    for one in told:
        print_lines(_lines(one))


def _lines(one: PluginFacts) -> Iterator[str]:
    yield f"{one['name']} ({one['kind'][:-1]}): {one['about']}"
    if one["details"]:
        yield from ("", *(f"  {line}".rstrip() for line in one["details"].split("\n")), "")
    for option in one["options"]:
        given = "" if option["default"] is None else f" = {option['default']}"
        yield f"  option   {option['name']}: {option['type']}{given}"
    for reading in one["reads"] or ():
        mark = "" if reading["required"] else "?"
        yield f"  reads    {reading['name']}{mark} [{reading['unit']}]"
    for metric in one["provides"] or ():
        yield f"  provides {metric['name']} [{metric['unit']}]"
