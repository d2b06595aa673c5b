"""The reference of what commands print as JSON: a page, and a schema for each command."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from dse.cli.json_schemas import PUBLISHED, example, schema
from plain_text import cell, prose

Schema = Mapping[str, Any]

_PLAIN = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "null": "null",
}
_HEAD = """# JSON of commands

With `--format json`, a command prints only its result, as JSON, on standard output. Messages,
progress and errors go to standard error, and the exit codes do not change. After an error in the
input (exit code 2), nothing is printed on standard output, except the mistakes that `dse check`
found.

The output has every listed key, unless the key's meaning states a condition, and no other key. A
number that is not finite is `null`. Each command has a schema (JSON Schema 2020-12), which tests
check against its output.
"""


def json_reference() -> str:
    """The page of all commands and of the parts that their outputs are made of."""
    schemas = {command: schema(command) for command in PUBLISHED}
    parts = {name: part for one in schemas.values() for name, part in one.get("$defs", {}).items()}
    lines = [_HEAD, "| command | output |", "|---|---|"]
    lines += [
        f"| [`dse {command}`](#dse-{_dashed(command)}) | {_summary(command, one)} |"
        for command, one in schemas.items()
    ]
    for command, one in schemas.items():
        lines += ["", *_command(command, one)]
    lines += ["", "## Parts", "", "Objects inside these outputs, by their names in the schemas."]
    for name in sorted(parts):
        lines += ["", f"### {name} {{#{name.lower()}}}", "", *_object(parts[name])]
    return "\n".join([*lines, ""])


def json_schemas() -> dict[str, str]:
    """The schema of each command by its page below ``reference/``."""
    return {
        f"schemas/{_dashed(command)}.json": json.dumps(schema(command), indent=2) + "\n"
        for command in PUBLISHED
    }


def _command(command: str, one: Schema) -> Iterator[str]:
    link = f"[schema](schemas/{_dashed(command)}.json)"
    yield from (f"## dse {command} {{#dse-{_dashed(command)}}}", "")
    yield from ("```console", example(command), "```", "")
    if "properties" in one:
        yield from (f"An object ({link}).", "")
        yield from _object(one)
    else:
        told = _printed(command, one)
        yield f"{told[0].upper()}{told[1:]} ({link})."


def _summary(command: str, one: Schema) -> str:
    return prose(one["description"]) if "properties" in one else _printed(command, one)


def _printed(command: str, one: Schema) -> str:
    """What comes out where it is no object of its own: a list, or one of several."""
    told = f"a {_words(one)}"
    return f"on each line {told}" if PUBLISHED[command].each_line else told


def _object(one: Schema) -> Iterator[str]:
    """What an object is, and a row for each of its keys."""
    yield from (prose(one.get("description", "")), "")
    yield from ("| key | value | meaning |", "|---|---|---|")
    for key, value in one["properties"].items():
        yield f"| `{key}` | {cell(_words(value))} | {cell(prose(value['description']))} |"


def _words(one: Schema | Literal[True]) -> str:
    """Return a schema as a short text; ``true`` and a schema without keys accept any value."""
    if one is True or not one.keys() - {"description"}:
        return "any JSON value"
    if "$ref" in one:
        name = one["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in one:
        return _either([_words(each) for each in one["anyOf"]])
    if "enum" in one:
        return " or ".join(f"`{word}`" for word in one["enum"])
    if one["type"] == "array":
        return _listed(one)
    if one["type"] == "object":
        return f"mapping of {_names(one)} to {_words(one['additionalProperties'])}"
    return _PLAIN[one["type"]]


def _listed(one: Schema) -> str:
    """A list of any length, or of so many, each of its own kind."""
    if "prefixItems" in one:
        return f"list of {', '.join(_words(each) for each in one['prefixItems'])}"
    inner = _words(one["items"]).replace("mapping of", "mappings of", 1)
    return f"list of ({inner})" if "anyOf" in one["items"] else f"list of {inner}"


def _names(one: Schema) -> str:
    known = one.get("propertyNames", {}).get("enum")
    return "names" if known is None else ", ".join(f"`{name}`" for name in known)


def _either(words: list[str]) -> str:
    """Several kinds of value; a number covers the whole ones."""
    if {*words} == {*_PLAIN.values()} - {"null"}:
        return "number, text, true or false"
    return " or ".join(word for word in words if word != "whole number" or "number" not in words)


def _dashed(command: str) -> str:
    return command.replace(" --", "-").replace(" ", "-")
