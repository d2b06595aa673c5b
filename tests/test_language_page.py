"""The page that teaches the language is true: its spaces, their counts, and its commands."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dse.schema.files import Files
from dse.schema.space import space_of

PAGE = (Path(__file__).parent.parent / "docs/language.md").read_text()
BLOCKS = re.findall(r"^```(\w+) ?(\S*)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
SPACES = [text for kind, _, text in BLOCKS if kind == "yaml"]
COMMANDS = [
    tuple(part.partition("\n")[::2])
    for kind, _, text in BLOCKS
    if kind == "console"
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
]
PROGRAMS = [text for kind, _, text in BLOCKS if kind == "python"]


def name_of(text):
    """A block that starts with ``# file.yaml`` is that file."""
    named = re.match(r"# (\S+\.yaml)\n", text)
    return named.group(1) if named else "space.yaml"


def title_of(text):
    return re.search(r"^space: (.*)$", text, re.MULTILINE).group(1)


@pytest.fixture
def folder(tmp_path):
    """A folder with every file that the page names."""
    for kind, name, text in BLOCKS:
        if kind == "csv":
            (tmp_path / name).write_text(text)
        elif kind == "yaml" and name_of(text) != "space.yaml":
            (tmp_path / name_of(text)).write_text(text)
    return tmp_path


def run(command, folder):
    """What a command of the page prints, on lines of 80 characters."""
    done = subprocess.run(
        [sys.executable, "-m", "dse.cli", *command.split()[1:]],
        cwd=folder,
        env={**os.environ, "COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=False,
    )
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())


@pytest.mark.parametrize("text", SPACES, ids=title_of)
def test_a_space_of_the_page_has_the_count_that_stands_under_it(text, folder):
    (folder / name_of(text)).write_text(text)
    space = space_of(folder / name_of(text), Files())
    told = text.splitlines()[-1].removeprefix("# ")
    count = space.count()
    assert told == ("not countable" if count is None else f"{count:,} legal designs")


@pytest.mark.parametrize(("command", "told"), COMMANDS, ids=[c for c, _ in COMMANDS])
def test_a_command_of_the_page_prints_what_the_page_shows(command, told, folder):
    parts = [re.escape(part) for part in re.split(r"^\.\.\.\n", told, flags=re.MULTILINE)]
    assert re.fullmatch("(.*\n)*".join(parts), run(command, folder))


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_of_the_page_runs(program):
    exec(program, {})
