"""What the pages say of the command line: the program takes each command, and the files are there."""

import re
import shlex
from pathlib import Path

import pytest
import typer

from dse.cli.app import app

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
BLOCK = re.compile(r"^```(?:console|sh)[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
OURS = re.compile(r"\b(?:studies|spaces|benchmarks)/[\w/]+\.(?:yaml|py)\b")
DSE = typer.main.get_command(app)
SETTINGS = re.compile(r"^(?:\w+=\S+ +)*(?=dse )")


def lines_of(page):
    """The lines that a reader types."""
    blocks = [text.replace("\\\n", " ") for text in BLOCK.findall(page.read_text())]
    shown = [text.startswith("$ ") for text in blocks]
    return [
        line.removeprefix("$ ")
        for text, prompted in zip(blocks, shown, strict=True)
        for line in text.splitlines()
        if line.startswith("$ ") or not prompted
    ]


def commands():
    """Each command of ours, with the page that has it."""
    return [
        pytest.param(line, id=f"{page.stem}: {line[:60]}")
        for page in PAGES
        for line in lines_of(page)
        if SETTINGS.match(line)
    ]


@pytest.mark.parametrize("line", commands())
def test_a_command_of_a_page_is_one_that_the_program_takes(line):
    words = shlex.split(SETTINGS.sub("", line), comments=True)[1:]
    command = DSE
    while hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
    assert command.make_context("dse", words) is not None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_files_that_commands_of_a_page_name_are_there(page):
    named = {found for line in lines_of(page) for found in OURS.findall(line)}
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []
