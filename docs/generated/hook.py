"""What mkdocs asks while it builds: pages that are generated, and the list of decisions."""

from __future__ import annotations

import posixpath
import re
from typing import Any

from mkdocs.structure.files import File, Files

from catalogue_pages import anchor, catalogue, family_of, family_path, family_title
from command_pages import command_line
from decision_pages import INDEX, decisions, decisions_in
from dse.registry import names
from json_pages import json_reference, json_schemas
from python_pages import python_reference
from yaml_pages import yaml_reference

_DECISIONS = "Design decisions"
_REFERENCE, _EVALUATORS = "Reference", "Evaluators"
_CODE = re.compile(r"(^```.*?^```$|^#.*?$|\[[^\]]*\]\([^)]*\))", re.DOTALL | re.MULTILINE)
_PAGE = re.compile(r"`docs/([\w/-]+\.md)`")
_NAMED_BLOCK = re.compile(r"^```(\w+) ([\w.-]+)$", re.MULTILINE)


def on_config(config: Any) -> Any:
    """The navigation with all decisions by their numbers, and all families of evaluators."""
    for entry in config.nav:
        if _DECISIONS in entry:
            entry[_DECISIONS] = [INDEX, *decisions_in(config.docs_dir)]
        for place, page in enumerate(entry.get(_REFERENCE, ())):
            if _EVALUATORS in page:
                entry[_REFERENCE][place] = {_EVALUATORS: [page[_EVALUATORS], *_families()]}
    return config


def _families() -> list[dict[str, str]]:
    """The page of each family of evaluators, by its title."""
    found = sorted({family_of(name) for name in names("evaluators")})
    return [{family_title(family): f"reference/{family_path(family)}"} for family in found]


def on_files(files: Files, config: Any) -> Files:
    """All files, with the generated ones."""
    pages = {
        "reference/command-line.md": command_line(),
        "reference/json.md": json_reference(),
        "reference/python.md": python_reference(),
        "reference/yaml.md": yaml_reference(),
        INDEX: decisions(config.docs_dir),
        **{f"reference/{path}": text for path, text in catalogue().items()},
        **{f"reference/{path}": text for path, text in json_schemas().items()},
    }
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The page: a block that is a file has its name as its title; names of evaluators are links.

    So are names of pages. In headings, blocks and links, names stay as they are.
    """
    titled = _NAMED_BLOCK.sub(r'```\1 title="\2"', markdown)
    parts = _CODE.split(titled)
    parts[::2] = [_linked(part, posixpath.dirname(page.file.src_uri)) for part in parts[::2]]
    return "".join(parts)


def _linked(text: str, folder: str) -> str:
    """Text of a page in a folder, with links to the pages and evaluators that it names."""

    def link(shown: str, target: str) -> str:
        return f"[{shown}]({posixpath.relpath(target, folder)})"

    text = _PAGE.sub(lambda found: link(found.group(), found.group(1)), text)
    for name in names("evaluators"):
        if "." in name:
            target = f"reference/{family_path(family_of(name))}#{anchor(name)}"
            text = text.replace(f"`{name}`", link(f"`{name}`", target))
    return text
