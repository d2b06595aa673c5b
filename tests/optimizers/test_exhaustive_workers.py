"""Processes that share the search find what one finds, and fail in words."""

from dataclasses import replace
from operator import itemgetter
from pathlib import Path

import pytest

from dse.errors import PluginError, StudyError
from dse.optimizers.exact.exact_front import exact_front
from dse.optimizers.exact.worker_pool import portable
from dse.optimizers.exhaustive import Exhaustive
from dse.schema.study.plan import plan_of
from dse.testing.problems import tiny_codesign

STUDY = Path(__file__).parents[2] / "studies" / "systolic_exact.yaml"


@pytest.fixture(scope="module")
def problem():
    return plan_of(STUDY).problem


@pytest.mark.slow
def test_whoever_searches_the_front_is_the_same(problem, tmp_path):
    alone = exact_front(problem, workers=1, checkpoint=str(tmp_path / "a"))
    assert exact_front(problem, workers=3, checkpoint=str(tmp_path / "b"), chunk=70_001) == alone


@pytest.mark.slow
def test_what_fails_in_a_worker_is_told_in_words(problem):
    broken = replace(problem, model=itemgetter("nothing"), identity="")
    with pytest.raises(StudyError, match="KeyError: 'nothing'"):
        exact_front(broken, workers=2)


def test_a_model_that_no_other_process_can_load_is_searched_by_this_one():
    known = tiny_codesign("modelled")
    assert portable(known.problem) is None
    assert exact_front(known.problem, workers=2, chunk=100) == exact_front(known.problem)


def test_no_workers_are_refused():
    with pytest.raises(PluginError, match="0 workers"):
        Exhaustive(tiny_codesign().problem, workers=0)


def test_it_is_told_how_far_the_search_has_come():
    told = []
    optimizer = Exhaustive(tiny_codesign("modelled").problem)
    optimizer.on_progress = lambda *counts: told.append(counts)
    optimizer.ask(1)
    assert told == [(640, 640)]
