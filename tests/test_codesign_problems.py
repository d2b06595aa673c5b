"""Our co-design problems: their parts make up the space, and their true front is the true one."""

import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from dse.core.pareto import nondominated
from dse.core.trial import Trial
from dse.schema.study.plan import plan_of

FOLDER = Path(__file__).parent.parent / "benchmarks/optimizers"
NAMES = ("edge-digits", "edge-per-layer", "vector-search")

SPACE = """
space: small
parameters:
  format: {choice: [int8, int4, int2]}
  group:  {ordinal: [32, 64], when: format == 'int4'}
  lanes:  {ordinal: [1, 2, 4, 8]}
  bank:   {ordinal: [1, 2, 3]}
  deep:   {boolean: true, when: bank > 1}
constraints:
  - format == 'int8' -> lanes <= 4
"""
STUDY = """
study: small
question: Which words on how many lanes?
space: space.yaml
evaluators:
  quality: {use: table, file: quality.csv, metrics: {error: ""}}
  chip:
    use: expression
    metrics:
      time: {formula: 24 / lanes + 3 / bank}
      area: {formula: lanes * (1 + 3 * (format == 'int8') + (format == 'int4')) + bank ** 2}
objectives:
  - minimize: quality.error
  - minimize: chip.time
  - minimize: chip.area
constraints:
  - chip.area <= 20
  - quality.error <= 5
unread: [deep]
reference: {quality.error: 5, chip.time: 30, chip.area: 20}
budget: {measurements: 3}
"""
QUALITY = "format,group,error\nint8,,1\nint4,32,2\nint4,64,2.5\nint2,,6\n"


@pytest.fixture
def module(monkeypatch):
    """A module of the benchmark by name; its folder is no package."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module


@pytest.fixture
def small(tmp_path, module):
    """A study small enough to compare every pair of designs."""
    (tmp_path / "space.yaml").write_text(SPACE)
    (tmp_path / "quality.csv").write_text(QUALITY)
    (tmp_path / "study.yaml").write_text(STUDY)
    plan = plan_of(tmp_path / "study.yaml")
    return module("codesign_readings").Study(plan=plan, cache=tmp_path / "cache")


def sizes(study):
    return [len(rows) * len(batch) for rows, batch in study.parts.groups()]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("edge-digits", marks=pytest.mark.proof),
        pytest.param("edge-per-layer", marks=pytest.mark.proof),
        pytest.param("vector-search", marks=pytest.mark.slow),
    ],
)
def test_the_measured_parts_with_their_remainders_are_the_whole_space(name, module, tmp_path):
    study = module("codesign").study(name, tmp_path)
    assert sum(sizes(study)) == study.plan.problem.space.count()


@pytest.mark.parametrize("name", NAMES)
def test_one_metric_is_measured_and_a_model_gives_a_limit(name, module, tmp_path):
    problem = module("codesign").study(name, tmp_path).plan.problem
    assert len(problem.measured) == 1
    assert any(not limit.slack.names & problem.measured for limit in problem.limits)


def test_parts_of_a_space_with_guards_and_a_rule_across_them_are_all_of_it(small):
    assert sum(sizes(small)) == small.plan.problem.space.count()


def test_the_true_front_is_what_comparing_all_designs_leaves(small, module):
    problem = small.plan.problem
    batch = next(problem.space.enumerate())
    outcomes = [module("codesign").measured_outcome(small, design) for design in batch.designs()]
    trials = [Trial(number=0, design=d).finished(o) for d, o in zip(batch, outcomes, strict=True)]
    losses = problem.trial_losses(trials)[problem.feasible(trials)]
    exact = module("codesign_truth").truth(small)
    expected = losses[nondominated(losses)]
    np.testing.assert_array_equal(np.sort(exact.losses, axis=0), np.sort(expected, axis=0))
    assert (exact.designs, exact.feasible) == (len(batch), len(losses))


def test_the_front_is_read_from_the_cache_where_it_is_there(small, module):
    first = module("codesign_truth").truth(small)
    again = module("codesign_truth").truth(small)
    assert again.hypervolume == first.hypervolume > 0


def test_every_part_is_measured_once_and_none_again(small):
    small.complete()
    (file,) = small.cache.glob("*.jsonl")
    lines = file.read_text().splitlines()
    small.complete()
    assert file.read_text().splitlines() == lines
    assert len({json.dumps(json.loads(line)["part"]) for line in lines}) == len(lines) == 4


def test_an_objective_that_mixes_measured_and_modelled_is_refused(small, module, tmp_path):
    mixed = STUDY.replace("- minimize: chip.time", "- minimize: chip.time * quality.error")
    (tmp_path / "study.yaml").write_text(
        mixed.replace(", chip.time: 30", "").replace("reference:", "#")
    )
    study = module("codesign_readings").Study(plan=plan_of(tmp_path / "study.yaml"), cache=tmp_path)
    with pytest.raises(ValueError, match="mixes what is measured"):
        module("codesign_truth").check_separate(study)


@pytest.mark.slow
def test_recall_grows_with_what_is_read_and_is_whole_when_all_is(module):
    pytest.importorskip("PIL")
    recall = module("codesign_search").recall
    coarse = {"cells": 16, "subspaces": 4, "code_bits": 4, "rotated": False}
    few = recall({**coarse, "probes": 1, "rerank": 10})["recall"]
    more = recall({**coarse, "probes": 8, "rerank": 200})["recall"]
    every = recall({**coarse, "probes": 16, "rerank": 8191})["recall"]
    assert few < more < every == 1


@pytest.mark.slow
def test_the_program_of_a_study_tells_what_its_function_does(module, monkeypatch, tmp_path):
    pytest.importorskip("PIL")
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")
    study = module("codesign").study("vector-search", tmp_path)
    values = {
        "cells": 16,
        "probes": 2,
        "subspaces": 4,
        "code_bits": 4,
        "rotated": True,
        "rerank": 20,
    }
    design = study.plan.problem.space.fixed(values).sample(1, np.random.default_rng(0)).design(0)
    told = module("codesign").measured_outcome(study, design)
    assert told.metrics["index.recall"] == study.measured(design)["index.recall"]


@pytest.mark.proof
def test_fewer_bits_leave_more_noise(module):
    pytest.importorskip("PIL")
    measured = module("codesign_denoising").measured
    noise = [measured(bits=(bits,) * 5, activation_bits=8)["psnr"] for bits in (2, 3, 8)]
    assert noise == sorted(noise)
