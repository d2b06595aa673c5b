"""The first ten minutes: from a clone to a front of one's own program, by the README's words alone.

    python benchmarks/newcomer.py [REPOSITORY]

A clone is made in a folder of its own, and the README's first command is typed there; then "Your
own evaluator" is followed from top to bottom: each file is saved under the name that is given for
it, each command is typed. Each step's seconds are printed as CSV, and what the last one showed; a
step that fails ends it with its words and status 1.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
SECTION = "## Your own evaluator\n"
PIECE = re.compile(
    r"(?:this as `(?P<name>[^`]+)`:\s+)?```(?P<kind>\w+)\n(?P<text>.*?)```", re.DOTALL
)
MOST_S = 600.0


@dataclass(frozen=True, kw_only=True)
class File:
    """A file that the README asks to be saved."""

    name: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Step:
    """A command that was typed, and what came of it."""

    words: str
    seconds: float
    shown: str


def main() -> None:
    """Print what each step took, the sum, and the front."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("repository", nargs="?", default=str(ROOT))
    repository = parser.parse_args().repository
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["step", "seconds"])
    total_s, shown = 0.0, ""
    with tempfile.TemporaryDirectory() as folder:
        for step in steps(repository, Path(folder)):
            total_s, shown = total_s + step.seconds, step.shown
            writer.writerow([step.words, f"{step.seconds:.1f}"])
            sys.stdout.flush()
    writer.writerow(["all", f"{total_s:.1f}"])
    print(f"\n{shown}")
    if total_s > MOST_S:
        sys.exit(f"longer than {MOST_S:.0f} s")


def steps(repository: str, folder: Path) -> Iterator[Step]:
    """Each command of the way, with the clone made in the folder."""
    clone = folder / "dse"
    yield taken(["git", "clone", "--quiet", repository, str(clone)], folder)
    readme = (clone / "README.md").read_text(encoding="utf-8")
    first = next(line for line in readme.splitlines() if line.startswith("make "))
    yield taken(shlex.split(first, comments=True), clone)
    yield from followed(readme, clone, clone / ".venv" / "bin")


def followed(readme: str, folder: Path, programs: Path) -> Iterator[Step]:
    """The section on one's own evaluator, in a folder and with the programs of an environment."""
    for piece in pieces(readme.partition(SECTION)[2].partition("\n## ")[0]):
        match piece:
            case File():
                (folder / piece.name).write_text(piece.text, encoding="utf-8")
            case command:
                yield taken(shlex.split(command, comments=True), folder, programs)


def pieces(section: str) -> Iterator[File | str]:
    """The files and the commands of a text, in their order; other blocks only show something."""
    for found in PIECE.finditer(section):
        if found["name"]:
            yield File(name=found["name"], text=found["text"])
        elif found["kind"] == "console":
            yield from found["text"].splitlines()


def taken(command: list[str], folder: Path, programs: Path | None = None) -> Step:
    """A command, done in the folder; it ends all if it fails."""
    before = [] if programs is None else [str(programs)]
    started = time.perf_counter()
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PATH": os.pathsep.join([*before, os.environ["PATH"]])},
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - started
    words = shlex.join(command[:2] if command[0] == "git" else command)
    if done.returncode:
        sys.exit(f"{words} failed\n{done.stdout}\n{done.stderr}")
    return Step(words=words, seconds=seconds, shown=done.stdout)


if __name__ == "__main__":
    main()
