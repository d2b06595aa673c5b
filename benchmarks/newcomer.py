"""The first ten minutes: from a clone to a front of one's own program, by the README's words alone.

    python benchmarks/newcomer.py [REPOSITORY]

A clone is made in a folder of its own; `make demo` is run there, the files of "Your own evaluator"
are saved under the names that the README gives them, and its commands are typed one by one. Each
step's seconds are printed as CSV; a step that fails ends it with its words and status 1.
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
from pathlib import Path

ROOT = Path(__file__).parents[1]
SECTION = "## Your own evaluator\n"
BLOCK = re.compile(r"(?:Save this as|this as) `([\w.]+)`[^`]*?```\w+\n(.*?)```", re.DOTALL)
COMMANDS = re.compile(r"```console\n(.*?)```", re.DOTALL)
MOST_S = 600.0


def main() -> None:
    """Print what each step took, and the sum."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("repository", nargs="?", default=str(ROOT))
    repository = parser.parse_args().repository
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["step", "seconds"])
    total_s = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for words, seconds in steps(repository, Path(folder)):
            total_s += seconds
            writer.writerow([words, f"{seconds:.1f}"])
            sys.stdout.flush()
    writer.writerow(["all", f"{total_s:.1f}"])
    if total_s > MOST_S:
        sys.exit(f"longer than {MOST_S:.0f} s")


def steps(repository: str, folder: Path) -> Iterator[tuple[str, float]]:
    """Each command with its seconds."""
    clone = folder / "dse"
    yield taken(["git", "clone", "--quiet", repository, str(clone)], folder)
    readme = (clone / "README.md").read_text(encoding="utf-8")
    first = next(line for line in readme.splitlines() if line.startswith("make "))
    yield taken(shlex.split(first.partition("#")[0]), clone)
    section = readme.partition(SECTION)[2].partition("\n## ")[0]
    for name, text in BLOCK.findall(section):
        (clone / name).write_text(text, encoding="utf-8")
    lines = [line for block in COMMANDS.findall(section) for line in block.splitlines()]
    for line in lines:
        yield taken(shlex.split(line.partition("  #")[0]), clone)


def taken(command: list[str], folder: Path) -> tuple[str, float]:
    """A command's words and seconds; it ends all if it fails."""
    path = f"{folder / '.venv' / 'bin'}:{os.environ['PATH']}"
    started = time.perf_counter()
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - started
    words = shlex.join(command[:2] if command[0] == "git" else command)
    if done.returncode:
        sys.exit(f"{words} failed\n{done.stdout}\n{done.stderr}")
    if command[:2] == ["dse", "front"] and "the " not in done.stdout:
        sys.exit(f"{words} shows no front\n{done.stdout}")
    return words, seconds


if __name__ == "__main__":
    main()
