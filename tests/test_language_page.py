"""The page that teaches the language is true: its spaces, their counts, and its commands."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dse.report.words import design_text
from dse.schema.space.space_loader import space_of
from dse.schema.study.plan import plan_of
from dse.schema.yaml.files import Files
from dse.study.study_engine import StudyEngine

PAGE = (Path(__file__).parent.parent / "docs/language.md").read_text()
BLOCKS = re.findall(r"^```(\w+) ?(\S*)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
FILES = [text for kind, _, text in BLOCKS if kind == "yaml"]
STUDIES = [text for text in FILES if re.search("^study: ", text, re.MULTILINE)]
ANSWERED = [text for text in STUDIES if text.splitlines()[-1].startswith("# front: ")]
SPACES = [text for text in FILES if text not in STUDIES]
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
    unnamed = "study.yaml" if text in STUDIES else "space.yaml"
    return named.group(1) if named else unnamed


def title_of(text):
    return re.search(r"^(?:study|space): (.*)$", text, re.MULTILINE).group(1)


def front_of(path):
    """The designs of a study's front as the page writes them."""
    study = StudyEngine.open(path, storage="memory://")
    study.run()
    designs = [trial.design for trial in study.front.trials]
    return "; ".join(design_text(design, design, {}) for design in designs)


@pytest.fixture
def folder(tmp_path):
    """A folder with every file that the page names."""
    for kind, name, text in BLOCKS:
        if kind == "csv":
            (tmp_path / name).write_text(text)
        elif kind == "yaml" and name_of(text) not in ("space.yaml", "study.yaml"):
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


@pytest.mark.parametrize("text", STUDIES, ids=title_of)
def test_a_study_of_the_page_is_a_study(text, folder):
    (folder / name_of(text)).write_text(text)
    assert plan_of(folder / name_of(text)).name == title_of(text)


@pytest.mark.parametrize("text", ANSWERED, ids=title_of)
def test_a_study_of_the_page_has_the_front_that_stands_under_it(text, folder):
    (folder / name_of(text)).write_text(text)
    assert text.splitlines()[-1] == f"# front: {front_of(folder / name_of(text))}"


@pytest.mark.parametrize(("command", "told"), COMMANDS, ids=[c for c, _ in COMMANDS])
def test_a_command_of_the_page_prints_what_the_page_shows(command, told, folder):
    parts = [re.escape(part) for part in re.split(r"^\.\.\.\n", told, flags=re.MULTILINE)]
    assert re.fullmatch("(.*\n)*".join(parts), run(command, folder))


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_of_the_page_runs(program):
    exec(program, {})
