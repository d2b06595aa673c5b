"""Declarations in a study file that a measured metric is about a sum of terms."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dse.core.problem import Problem
from dse.errors import SpecError, SpecErrors
from dse.schema.study.plan import plan_of

SPACE = """
space: s
parameters:
  bits: {each: 4, choice: [2, 3, 4, 8]}
  keep: {each: 4, choice: [1, 2]}
"""

STUDY = """
study: t
space: space.yaml
evaluators:
  noise:
    use: expression
    metrics: {noise: {formula: sum(4 ** -bits)}, size: {formula: sum(bits)}}
  quality:
    use: command
    run: [python, measure.py]
    reads: [bits, keep]
    metrics: {loss: "", seconds: s}
    parts: PARTS
objectives:
  - minimize: quality.loss
  - minimize: noise.size
"""

Read = Callable[[str], Problem]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def problem(parts: str) -> Problem:
        (tmp_path / "space.yaml").write_text(SPACE)
        path = tmp_path / "study.yaml"
        path.write_text(STUDY.replace("PARTS", parts))
        return plan_of(path).problem

    return problem


def groups(problem: Problem, metric: str = "quality.loss") -> list[list[str]]:
    separable = problem.sources[metric].separable
    assert separable is not None
    return [sorted(group) for group in separable.groups]


def test_each_member_of_a_list_is_a_part(read: Read) -> None:
    problem = read("{over: bits, by: noise}")
    assert groups(problem) == [[f"bits[{place}]"] for place in range(4)]
    assert problem.sources["quality.loss"].separable.by == "noise.noise"
    assert problem.sources["quality.seconds"].separable is not None
    assert problem.sources["noise.noise"].separable is None


def test_members_of_two_lists_make_one_part_together(read: Read) -> None:
    problem = read("{over: [[bits, keep]]}")
    assert groups(problem) == [[f"bits[{place}]", f"keep[{place}]"] for place in range(4)]


def test_metrics_may_be_declared_one_by_one(read: Read) -> None:
    problem = read("{loss: {over: bits, by: noise.noise, monotone: false}}")
    assert problem.sources["quality.loss"].separable.monotone is False
    assert problem.sources["quality.seconds"].separable is None


def test_a_formula_gives_the_feature_of_each_part(read: Read) -> None:
    problem = read("{over: [[bits, keep]], by: keep * 4 ** -bits}")
    design = {f"bits[{place}]": 2 + place % 2 for place in range(4)}
    design |= {f"keep[{place}]": 1 + place // 2 for place in range(4)}
    features = problem.sources["quality.loss"].separable.features
    assert features is not None
    found = features(problem.space.batch([design]))
    assert found[0] == pytest.approx(np.array([1, 1, 2, 2]) * 4.0 ** -np.array([2, 3, 2, 3]))


def test_an_empty_declaration_revokes(read: Read) -> None:
    assert read("{}").sources["quality.loss"].separable is None


@pytest.mark.parametrize(
    ("parts", "problem", "hint"),
    [
        ("{over: bitz}", "the space has no parameter 'bitz'", "did you mean 'bits'?"),
        ("{over: bits, by: noize}", "there is no modelled metric 'noize'", "noise"),
        ("{over: bits, by: quality.seconds}", "quality.seconds is measured, and", "noise.noise"),
        ("{over: bits, by: 4 ** -keep}", "'keep' is no parameter of the part", "bits"),
        ("{los: {over: bits}}", "quality has no metric 'los'", "did you mean 'loss'?"),
        ("{over: bits, bye: noise}", "there is no key 'bye' here", "did you mean 'by'?"),
        ("{over: [bits, bits]}", "'bits' is in two parts", ""),
        ("{over: 'bits[0]'}", "a sum needs two parts or more", "name a list"),
        ("{by: noise}", "the key 'over' is missing", "over"),
        ("3", "parts: expected a mapping, found 3", ""),
    ],
)
def test_a_mistake_is_reported_with_its_line_and_the_mend(
    read: Read, parts: str, problem: str, hint: str
) -> None:
    with pytest.raises((SpecError, SpecErrors)) as caught:
        read(parts)
    told = str(caught.value)
    assert problem in told
    assert hint in told
    assert "study.yaml:13" in told


def test_a_modelled_metric_has_no_parts(tmp_path: Path) -> None:
    text = STUDY.replace("    parts: PARTS\n", "").replace(
        "    use: expression\n", "    use: expression\n    parts: {over: bits}\n"
    )
    (tmp_path / "space.yaml").write_text(SPACE)
    (tmp_path / "study.yaml").write_text(text)
    with pytest.raises(SpecErrors, match="noise is modelled") as caught:
        plan_of(tmp_path / "study.yaml")
    assert "study.yaml:7" in str(caught.value)
