"""A small study that several tests carry elsewhere."""

from pathlib import Path

import pytest

SPACE = """
space: small
parameters:
  rows: {ordinal: range(1 .. 16)}
  power: {ordinal: [1 mW, 2 mW]}
  format: {choice: [int4, int8]}
  clock: {real: [200 MHz, 1.6 GHz], scale: log}
  group: {ordinal: [16, 32], when: format == 'int4'}
constraints:
  - rows * 2 <= 30
"""

STUDY = """
study: carry
space: space.yaml
evaluators:
  cost:
    use: expression
    metrics:
      energy: {formula: "rows * power * (1 + (format == 'int8')) / clock", unit: pJ}
      error: {formula: "1 / rows + 0.1 * (format == 'int4')"}
objectives: [{minimize: cost.energy}, {minimize: cost.error * clock}, {maximize: cost.error}]
constraints: [cost.energy <= 60 pJ]
unread: [group]
optimizer: nsga2
budget: {trials: 30}
seed: 3
"""


MEASURED = """
study: bench
space: space.yaml
evaluators:
  bench: {use: command, run: [python, bench.py], metrics: {loss: '', time: ms}}
  cost: {use: expression, metrics: {energy: {formula: a * b}}}
objectives: [{minimize: bench.loss}, {minimize: cost.energy}]
optimizer: random
budget: {trials: 4}
"""


@pytest.fixture
def study_file(tmp_path) -> Path:
    """A study of modelled metrics, with units, a condition, a rule and a limit."""
    (tmp_path / "space.yaml").write_text(SPACE)
    (tmp_path / "study.yaml").write_text(STUDY)
    return tmp_path / "study.yaml"


@pytest.fixture
def measured_file(tmp_path) -> Path:
    """A study whose loss and time another tool may have measured."""
    folder = tmp_path / "measured"
    folder.mkdir()
    (folder / "space.yaml").write_text(
        "space: grid\nparameters:\n  a: {ordinal: [1, 2, 3]}\n  b: {ordinal: [1, 2]}\n"
    )
    (folder / "study.yaml").write_text(MEASURED)
    return folder / "study.yaml"
