"""Files of dse in which code runs when one design goes from YAML to the front.

``python benchmarks/walk.py`` counts them twice: when a study is opened a second time, and from
one suggestion of its run to the next. The study has three parameters, a program as its evaluator
(``use: command``), the optimizer ``grey-box``, the serial executor and SQLite. Another study is run
first, so that no import counts. Each file is printed with the number of its lines that ran, those
of functions only; with ``--goals 60 35`` the exit status is 1 if more files take part. Only the
main thread is traced.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from types import FrameType
from typing import Any

import dse
from dse.optimizers.grey_box import GreyBox
from dse.study.study_engine import StudyEngine

STUDY = """\
study: walk
space: space.yaml
evaluators:
  program: {{use: command, run: [{python}, program.py], metrics: {{time: s, area: mm^2}}}}
objectives: [{{minimize: program.time}}, {{minimize: program.area}}]
optimizer: grey-box
executor: serial
storage: sqlite:///{folder}/dse.db
budget: {{measurements: {measurements}}}
"""
SPACE = """\
space: walk
parameters:
  rows: {ordinal: [4, 8, 16, 32]}
  columns: {ordinal: [4, 8, 16, 32]}
  depth: {integer: [1, 8]}
constraints:
  - rows * columns <= 512
"""
PROGRAM = """\
import json, sys
design = json.load(sys.stdin)
area = design["rows"] * design["columns"]
print(json.dumps({"time": 1000 / area + design["depth"], "area": area}))
"""

SUGGESTION = 12
"""Number of the suggestion with which the count begins; the first ones need no surrogate."""

_ROOT = str(Path(dse.__file__).parent)


class Walk:
    """Lines of each file of dse that ran while this was the tracer of the main thread."""

    def __init__(self) -> None:
        self.lines: dict[str, set[int]] = defaultdict(set)

    def begin(self) -> None:
        """Trace the calls from here on, and the functions that are running already."""
        frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - the only way to its callers
        while frame is not None:
            if frame.f_code.co_filename.startswith(_ROOT):
                frame.f_trace = self._line
            frame = frame.f_back
        sys.settrace(self._call)

    def end(self) -> None:
        """Trace no further call."""
        sys.settrace(None)

    def _call(self, frame: FrameType, event: str, argument: Any) -> Any:  # noqa: ARG002
        code = frame.f_code
        is_own = code.co_filename.startswith(_ROOT) and code.co_name != "<module>"
        return self._line if is_own else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:  # noqa: ARG002
        self.lines[frame.f_code.co_filename].add(frame.f_lineno)
        return self._line


def write_study(folder: Path, measurements: int) -> Path:
    """Write the study, its space and its program into a folder; return the study file."""
    study = STUDY.format(python=sys.executable, folder=folder, measurements=measurements)
    for name, text in (("study.yaml", study), ("space.yaml", SPACE), ("program.py", PROGRAM)):
        (folder / name).write_text(text)
    return folder / "study.yaml"


def trace_opening(file: Path) -> Walk:
    """Open a study, and return what ran."""
    walk = Walk()
    walk.begin()
    try:
        StudyEngine.open(file)
    finally:
        walk.end()
    return walk


def trace_suggestion(file: Path) -> Walk:
    """Run a study, and return what ran from the end of one suggestion to the end of the next."""
    walk, ask, asked = Walk(), GreyBox.ask, 0

    def counted(optimizer: GreyBox, *arguments: Any) -> Any:
        nonlocal asked
        found = ask(optimizer, *arguments)
        asked += 1
        if asked == SUGGESTION:
            walk.begin()
        elif asked == SUGGESTION + 1:
            walk.end()
        return found

    GreyBox.ask = counted  # type: ignore[method-assign]
    try:
        StudyEngine.open(file).run()
    finally:
        walk.end()
        GreyBox.ask = ask  # type: ignore[method-assign]
    return walk


def print_walk(title: str, walk: Walk) -> None:
    """Print the files of a walk, with their lines that ran and their length."""
    print(f"{title}: {len(walk.lines)} files, {sum(map(len, walk.lines.values()))} lines")
    for name, lines in sorted(walk.lines.items()):
        length = len(Path(name).read_text().splitlines())
        print(f"{len(lines):6} of {length:4}  {Path(name).relative_to(_ROOT)}")


def main() -> int:
    """Count and print both walks; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--goals", type=int, nargs=2, metavar="FILES", help="most files of each")
    goals = parser.parse_args().goals
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        StudyEngine.open(write_study(Path(first), SUGGESTION + 4)).run()
        file = write_study(Path(second), SUGGESTION + 4)
        StudyEngine.open(file)
        walks = [trace_opening(file), trace_suggestion(file)]
    for title, walk in zip(("opening", "between two suggestions"), walks, strict=True):
        print_walk(title, walk)
    return int(any(len(w.lines) > most for w, most in zip(walks, goals or (), strict=False)))


if __name__ == "__main__":
    sys.exit(main())
