"""About which values of a parameter an evaluator is asked before a study is run."""

from __future__ import annotations

from pathlib import Path

import pytest

from dse.errors import SpecError, SpecErrors
from dse.schema.study.plan import plan_of

STUDY = """
study: ranks
space: space.yaml
evaluators:
  matrix: {use: compression.matrix, recipe: "svd {rank}/fp16", rows: 8, columns: 8}
objectives: [{minimize: matrix.error}]
"""


def planned(folder: Path, domain: str):
    (folder / "space.yaml").write_text(f"space: s\nparameters:\n  rank: {domain}\n")
    (folder / "study.yaml").write_text(STUDY)
    return plan_of(folder / "study.yaml")


@pytest.mark.parametrize(
    ("domain", "told"),
    [
        ("{real: [1, 4]}", "is no whole number"),
        ("{integer: [9, 400]}", "a rank of 400 is not in 1 to 8"),
        ("{choice: [a, b]}", "'a' is no whole number"),
    ],
)
def test_a_domain_that_cannot_be_is_told_with_its_line(tmp_path, domain, told):
    with pytest.raises((SpecError, SpecErrors)) as caught:
        planned(tmp_path, domain)
    assert told in str(caught.value)
    assert "study.yaml:5" in str(caught.value)


def test_a_domain_of_which_something_can_be_is_left_to_the_trials(tmp_path):
    assert planned(tmp_path, "{integer: [1, 400]}")
