"""Large studies read by several processes are the runs that one process reads."""

import numpy as np
import pytest

from dse.analysis.run_groups import alone
from dse.services.studies import read as reading
from dse.study.study_engine import StudyEngine

SPACE = "space: s\nparameters:\n  x: {real: [0, 1]}\n"

STUDY = """
study: one
space: space.yaml
evaluators:
  m: {use: expression, metrics: {a: {formula: x}, b: {formula: (1 - x) ** 2}}}
objectives:
  - minimize: m.a
  - minimize: m.b
constraints:
  - m.a <= 0.9
reference: {m.a: 1, m.b: 1}
optimizer: random
budget: {trials: 30, price: 4 $/h}
"""


@pytest.mark.slow
def test_many_processes_read_what_one_does(tmp_path, monkeypatch):
    (tmp_path / "space.yaml").write_text(SPACE)
    (tmp_path / "study.yaml").write_text(STUDY)
    url = f"sqlite:///{tmp_path}/dse.db"
    made = [
        StudyEngine.open(tmp_path / "study.yaml", name=f"s.{seed}", storage=url, seed=seed)
        for seed in (0, 1)
    ]
    assert all(study.run() for study in made)
    names, storage = [study.name for study in made], made[0].storage
    one = reading.stored_runs(names, storage, url)
    monkeypatch.setattr(reading, "LARGE_BYTES", 0)
    several = reading.stored_runs(names, storage, url)
    told = [[(r.name, r.price_per_s, r.problem.seed) for r in runs] for runs in (one, several)]
    assert told[0] == told[1]
    columns = [
        np.column_stack(
            [
                np.vstack([r.losses for r in runs]),
                np.concatenate([r.measured for r in runs]),
                np.concatenate([r.cost_s for r in runs]),
            ]
        )
        for runs in (one, several)
    ]
    np.testing.assert_array_equal(columns[0], columns[1])
    assert np.isnan(columns[0]).any()
    assert [group.name for group in alone(several)] == names
