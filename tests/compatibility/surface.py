"""What users hold of this project, as JSON: names, keys, commands, tables and fields of files.

Run: python -m tests.compatibility.surface > tests/compatibility/surface.json

after a change that was meant; the changelog says what became of what was there before.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from typing import Any

import typer
from pydantic import BaseModel

import dse
from dse.cli.app import app
from dse.cli.json_schemas import PUBLISHED, schema
from dse.interop.archive.record_codec import SHAPES
from dse.schema.models import StudySpec
from dse.schema.space.file import SpaceSpec
from dse.storage.sql.tables import metadata

GROUPS = ("evaluators", "optimizers", "executors", "storages", "assets", "environments")


def surface() -> dict[str, Any]:
    """Return all of it, by what it is."""
    return {
        "python": {name: list_members(getattr(dse, name)) for name in sorted(dse.__all__)},
        "study keys": list_keys(StudySpec),
        "space keys": list_keys(SpaceSpec),
        "commands": list_commands(typer.main.get_command(app)),
        "json": {name: list_properties(schema(name)) for name in sorted(PUBLISHED)},
        "tables": {
            name: sorted(column.name for column in table.columns)
            for name, table in sorted(metadata.tables.items())
        },
        "exported files": {
            kind.__name__.lower(): sorted(fields)
            for kind, fields in sorted(SHAPES.items(), key=lambda one: one[0].__name__)
        },
        "plug-ins": {
            group: sorted(one.name for one in entry_points(group=f"dse.{group}"))
            for group in GROUPS
        },
    }


def list_members(value: object) -> list[str]:
    """Return the parameters of a function, or the public members of a class with theirs."""
    if inspect.isclass(value):
        members = sorted(name for name in dir(value) if not name.startswith("_"))
        own = [name for name in members if name not in dir(Exception)]
        made = f"({', '.join(list_parameters(value))})"
        return [made, *(f"{n}({', '.join(list_parameters(getattr(value, n)))})" for n in own)]
    return list_parameters(value)


def list_parameters(value: object) -> list[str]:
    """Return the names of the parameters of what can be called."""
    if not callable(value):
        return []
    try:
        parameters: Callable[..., Any] = value
        return [name for name in inspect.signature(parameters).parameters if name != "self"]
    except ValueError:  # of a builtin
        return []


def list_keys(model: type[BaseModel]) -> list[str]:
    """Return the keys of a file, those of its parts with a dot."""
    return list_properties(model.model_json_schema())


def list_properties(told: Mapping[str, Any]) -> list[str]:
    """Return the keys of a JSON Schema, those of its definitions after their name."""
    found = set(told.get("properties", ()))
    for name, part in told.get("$defs", {}).items():
        found |= {f"{name}.{key}" for key in (*part.get("properties", ()), *part.get("enum", ()))}
    return sorted(map(str, found))


def list_commands(command: Any, words: str = "dse") -> dict[str, list[str]]:
    """Return each command with its options and arguments."""
    inner = getattr(command, "commands", {})
    found: dict[str, list[str]] = {}
    for name, one in sorted(inner.items()):
        found |= list_commands(one, f"{words} {name}")
    if not inner:
        options = (word for one in command.params for word in (*one.opts, *one.secondary_opts))
        found[words] = sorted(options)
    return found


def main() -> None:
    """Print the surface."""
    json.dump(surface(), sys.stdout, indent=1, ensure_ascii=False)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
