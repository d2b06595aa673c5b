"""The study that is stored: five parameters, three objectives, outcomes drawn at random."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from dse.core.design import Design
from dse.core.trial import Outcome, State
from dse.study.study_engine import StudyEngine

SPACE = """\
space: stored
parameters:
  lanes:  {real: [0, 10000000]}
  stages: {ordinal: [1, 2, 4, 8]}
  clock:  {real: [100 MHz, 2 GHz]}
  format: {choice: [bf16, fp8, int8, mxfp4]}
  sparse: {choice: [true, false]}
"""

STUDY = """\
study: stored
space: space.yaml
evaluators:
  chip: {use: expression, metrics: {energy: {formula: 1 + lanes}, time: {formula: 1 / stages}}}
  board: {use: command, run: [board], reads: [format], metrics: {error: '', area: ''}}
objectives:
  - minimize: board.error
  - minimize: chip.energy
  - minimize: chip.time
reference: {board.error: 1, chip.energy: 1, chip.time: 1}
storage: sqlite:///stored.db
seed: 7
unread: [clock, sparse]
"""


def begun(folder: Path, name: str) -> StudyEngine:
    """A new study of that name in the folder's database."""
    (folder / "space.yaml").write_text(SPACE)
    (folder / "study.yaml").write_text(STUDY)
    return StudyEngine.open(folder / "study.yaml", name=name, storage=url(folder))


def url(folder: Path) -> str:
    """The folder's database."""
    return f"sqlite:///{folder}/stored.db"


def designs(count: int) -> Iterator[Design]:
    """So many designs, no two alike."""
    chance = random.Random(7)
    for number in range(count):
        yield Design(
            {
                "lanes": float(number),
                "stages": chance.choice((1, 2, 4, 8)),
                "clock": chance.uniform(1e8, 2e9),
                "format": chance.choice(("bf16", "fp8", "int8", "mxfp4")),
                "sparse": chance.random() < 0.5,
            }
        )


def outcomes(count: int, seed: int) -> Iterator[Outcome]:
    """So many outcomes of four metrics; one in a hundred failed to keep a limit of physics."""
    chance = random.Random(seed)
    for _ in range(count):
        yield Outcome(
            state=State.DONE if chance.random() < 0.99 else State.INFEASIBLE,
            metrics={
                "board.error": chance.random(),
                "board.area": chance.random(),
                "chip.energy": chance.random(),
                "chip.time": chance.random(),
            },
            cost_s=chance.expovariate(1.0),
            measured=1,
        )
