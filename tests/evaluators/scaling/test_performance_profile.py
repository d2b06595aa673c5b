"""Scores of submissions over workloads: worked by hand, and what files are refused."""

import numpy as np
import pytest

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.scaling.recipes.performance_profile import (
    PerformanceProfile,
    integrate_profile,
)

HEAD = "submission,workload,time\n"
ROWS = HEAD + "adam,speech,100\nadam,images,250\nshampoo,speech,80\nshampoo,images,DNF\n"


def profile(folder, text, **options):
    path = folder / "times.csv"
    path.write_text(text)
    made = PerformanceProfile(file=str(path), **options)

    def score(submission):
        found = made.evaluate(Batch.of([{"submission": submission}])).columns
        return {name: float(column[0]) for name, column in found.items()}

    return score


def test_a_score_is_the_mean_share_of_workloads_over_the_factors(tmp_path):
    score = profile(tmp_path, ROWS)
    # speech: 100 / 80 = 1.25, which 2.75 of the three factors between 1 and 4 allow; images: 1
    assert score("adam")["score"] == pytest.approx((2.75 / 3 + 1) / 2)
    assert score("adam") | {"score": 0} == {"score": 0, "fastest": 0.5, "reached": 1}
    assert score("shampoo") == {"score": 0.5, "fastest": 0.5, "reached": 0.5}


def test_several_rows_of_a_workload_count_by_their_median(tmp_path):
    score = profile(tmp_path, HEAD + "a,w,10\nb,w,100\nb,w,20\nb,w,DNF\n", within=20)
    assert score("b")["score"] == pytest.approx(10 / 19)  # 100 is ten times as long


def test_times_above_the_largest_factor_are_not_reached(tmp_path):
    assert profile(tmp_path, HEAD + "a,w,10\nb,w,41\n")("b")["reached"] == 0
    assert profile(tmp_path, HEAD + "a,w,10\nb,w,40\n")("b") == {
        "score": 0,
        "fastest": 0,
        "reached": 1,
    }


def test_a_workload_does_not_count_if_its_variant_is_missed(tmp_path):
    text = (
        "submission,workload,held_out_of,time\na,w,,10\na,w-large,w,DNF\nb,w,,20\nb,w-large,w,9\n"
    )
    score = profile(tmp_path, text)
    assert score("a")["score"] == 0
    assert score("b")["score"] == 1  # the fastest of those that reached both


def test_a_workload_that_nobody_reaches_lowers_all_scores(tmp_path):
    assert profile(tmp_path, HEAD + "a,w,10\na,v,inf\n")("a")["score"] == 0.5


def test_the_trapezoidal_rule_approaches_the_integral():
    ratios = np.array([[1.0, 1.7, 3.2, np.inf]])
    exact = float(integrate_profile(ratios, 4.0)[0])
    assert exact == pytest.approx((3 + 2.3 + 0.8) / 12)
    assert integrate_profile(ratios, 4.0, 3001)[0] == pytest.approx(exact, abs=1e-3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("submision,workload,time\na,w,1\n", "times.csv:1: there is no column 'submission'"),
        (HEAD + "a,w,fast\n", "times.csv:2: time is 'fast'"),
        (HEAD + "a,w,1\na,v,-3\n", "times.csv:3: time is '-3'"),
        (HEAD + "a,,1\n", "times.csv:2: the cell of 'workload' is blank"),
        (HEAD, "no rows"),
        ("submission,workload,held_out_of,time\na,w,,1\na,x,W,1\n", "no workload 'W'"),
        ("submission,workload,held_out_of,time\na,w,,1\nb,w,x,1\n", "is a variant of x here"),
    ],
)
def test_files_that_cannot_be_used_are_refused_with_their_line(tmp_path, text, message):
    with pytest.raises(SpecError, match=message):
        profile(tmp_path, text)


def test_a_missing_file_and_factors_out_of_range_are_refused(tmp_path):
    with pytest.raises(SpecError, match="there is no file"):
        PerformanceProfile(file=str(tmp_path / "none.csv"))
    with pytest.raises(SpecError, match="within is a factor above 1"):
        profile(tmp_path, ROWS, within=1.0)
    with pytest.raises(SpecError, match="points are 2"):
        profile(tmp_path, ROWS, points=1)
