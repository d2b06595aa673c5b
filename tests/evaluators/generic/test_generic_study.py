"""A study of a command, a table and a formula: names, units and files meet as the YAML says."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dse.core.trial import Trial
from dse.study.study_engine import StudyEngine

SPACE = """
space: boards
parameters:
  rows: {ordinal: [8, 16]}
  format: {choice: [int8, fp8]}
  clock: {ordinal: [100 MHz, 200 MHz], unit: MHz}
"""

BENCH = """
import json, sys
d = json.load(sys.stdin)
print(json.dumps({"power": d["rows"] * d["clock"], "seen": len(d)}))
"""

TABLE = """clock,rows,format,accuracy
100,8,int8,0.90
100,8,fp8,0.95
200,8,fp8,0.97
"""

STUDY = f"""
study: boards
space: space.yaml
evaluators:
  board:
    use: command
    run: [{sys.executable}, bench.py]
    metrics: {{power: mW, seen: ''}}
    units: {{clock: MHz}}
    timeout: 60 s
  quality: {{use: table, file: bench.csv, metrics: {{accuracy: ''}}, units: {{clock: MHz}}}}
  cost:
    use: expression
    metrics:
      energy: {{formula: "board.power / clock * max(1, 2 * (format == 'fp8'))", unit: nJ}}
objectives:
  - minimize: cost.energy
  - maximize: quality.accuracy
optimizer: exhaustive
executor: serial
"""


@pytest.fixture
def trials(tmp_path: Path) -> dict[tuple[object, ...], Trial]:
    """The trials of the study by rows, format and clock in Hz."""
    texts = {"space.yaml": SPACE, "bench.py": BENCH, "bench.csv": TABLE, "study.yaml": STUDY}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    study = StudyEngine.open(tmp_path / "study.yaml", storage="memory://")
    study.run()
    return {tuple(t.design[n] for n in ("rows", "format", "clock")): t for t in study.trials}


def test_all_kinds_of_evaluators_work_together(trials: dict[tuple[object, ...], Trial]) -> None:
    """8 rows at 200 MHz say 1600 mW, twice 1.6 W / 0.2 GHz is 16 nJ."""
    assert len(trials) == 8
    assert dict(trials[8, "fp8", 200e6].metrics) == {
        "board.power": 1600.0,
        "board.seen": 3.0,
        "cost.energy": pytest.approx(16.0),
        "quality.accuracy": 0.97,
    }
    gaps = [key for key, trial in trials.items() if trial.failure]
    assert sorted(gaps) == [
        (8, "int8", 200e6),
        (16, "fp8", 100e6),
        (16, "fp8", 200e6),
        (16, "int8", 100e6),
        (16, "int8", 200e6),
    ]
