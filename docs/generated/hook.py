"""What mkdocs asks while it builds: pages that are generated, and the list of decisions."""

from __future__ import annotations

import re
from typing import Any

from mkdocs.structure.files import File, Files

from catalogue_pages import catalogue
from command_pages import command_line
from decision_pages import INDEX, decisions, decisions_in
from json_pages import json_reference, json_schemas
from python_pages import python_reference
from yaml_pages import yaml_reference

_DECISIONS = "Design decisions"
_NAMED_BLOCK = re.compile(r"^```(\w+) ([\w.-]+)$", re.MULTILINE)


def on_config(config: Any) -> Any:
    """The navigation with all decisions, in the order of their numbers."""
    for entry in config.nav:
        if _DECISIONS in entry:
            entry[_DECISIONS] = [INDEX, *decisions_in(config.docs_dir)]
    return config


def on_files(files: Files, config: Any) -> Files:
    """All files, with the generated ones."""
    pages = {
        "reference/command-line.md": command_line(),
        "reference/json.md": json_reference(),
        "reference/python.md": python_reference(),
        "reference/yaml.md": yaml_reference(),
        INDEX: decisions(config.docs_dir),
        **{f"reference/{group}.md": text for group, text in catalogue().items()},
        **{f"reference/{path}": text for path, text in json_schemas().items()},
    }
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The page, where a block that is a file has the file's name as its title."""
    return _NAMED_BLOCK.sub(r'```\1 title="\2"', markdown)
