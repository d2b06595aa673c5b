"""Wrong files of pass@k: one clear error each, with the line."""

from __future__ import annotations

import pytest

from dse.errors import SpecError
from dse_evaluators.reasoning.allocation import Allocation
from dse_evaluators.reasoning.pass_counts import read_pass_file

SHARES = "class,model,k,pass\n"
SAMPLED = "class,model,temperature,k,pass\n"
WRONG = {
    "falls": (SHARES + "a,m,1,.3\na,m,8,.2\n", 3, "below pass@1"),
    "above what equal problems give": (SHARES + "a,m,1,.01\na,m,4,.2\n", 3, "at most 0.0394"),
    "no answer is right": (SHARES + "a,m,1,0\na,m,8,.2\n", 3, "at most 0 of"),
    "all answers wrong": (SHARES + "a,m,1,0\na,m,8,0\n", 2, "no answer is right"),
    "every answer is right": (SHARES + "a,m,1,1\na,m,8,1\n", 2, "every answer is right"),
    "k above the samples": ("class,model,k,pass,n\na,m,1,.3,4\na,m,8,.5,4\n", 3, "from 4 answers"),
    "c above n": ("class,model,n,c\na,m,4,1\na,m,4,5\n", 3, "more than the 4 answers"),
    "all problems solved always": ("class,model,n,c\na,m,4,4\na,m,4,4\n", 2, "every answer"),
    "no pass column": ("class,model,k,pas\na,m,1,.3\n", 1, "no column 'pass'"),
    "no model column": ("class,k,pass\na,1,.3\n", 1, "no column 'model'"),
    "no pass@1": (SHARES + "a,m,2,.3\na,m,8,.4\n", 2, "no pass@1"),
    "twice": (SHARES + "a,m,1,.3\na,m,1,.3\n", 3, "pass@1 twice"),
    "percent": (SHARES + "a,m,1,30\n", 2, "write a share: 0.3"),
    "no number": (SHARES + "a,m,1,much\n", 2, "no number"),
    "decimal comma": (SHARES + 'a,m,1,"0,3"\n', 2, "write 0.3, with a point"),
    "semicolons": ("class;model;k;pass\na;m;1;.3\n", 1, "separate them by commas"),
    "shares and counts": ("class,model,k,pass,c\na,m,1,.3,3\n", 1, "leave one out"),
    "misspelt": ("class,model,temprature,k,pass\na,m,1,1,.3\n", 1, "did you mean 'temperature'"),
    "not finite": (SHARES + "a,m,1,nan\n", 2, "no number"),
    "half an answer": (SHARES + "a,m,1.5,.3\n", 2, "no whole number"),
    "too few cells": (SHARES + "a,m,1\n", 2, "number of cells"),
    "best of temperatures": (SAMPLED + "a,m,best,1,.3\na,m,best,8,.5\n", 2, "no single curve"),
    "no temperature": (SAMPLED + "a,m,-1,1,.3\n", 2, "temperature is -1"),
    "mixed temperatures": (
        SAMPLED + "a,m,.2,1,.3\na,m,.8,8,.5\na,m,.8,64,.7\n",
        3,
        "a of m at temperature 0.8 has no pass@1, which is stated of a of m at temperature 0.2",
    ),
    "no class": (SHARES + ",m,1,.3\n", 2, "class is empty"),
    "no rows": (SHARES, 2, "no rows"),
    "empty": ("", 1, "no column"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_file_is_refused_with_its_line(case, tmp_path):
    text, line, problem = WRONG[case]
    file = tmp_path / "pass.csv"
    file.write_text(text)
    with pytest.raises(SpecError) as caught:
        read_pass_file(file)
    assert caught.value.where == f"{file}:{line}"
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (SHARES + "a,m,1,.3\n", "1 k with pass@k below 1"),
        (SHARES + "a,m,1,.3\na,m,64,.3\n", "hardly more than pass@1"),
        (SHARES + "a,m,1,.3\na,m,64,1\n", "1 k with pass@k below 1"),
        (
            SHARES + "a,m,1,.3\na,m,4,.5\nb,other,1,.3\nb,other,4,.5\n",
            "no rows of class a for other",
        ),
        (SAMPLED + "a,m,.2,1,.3\na,m,.2,4,.5\na,m,,1,.3\na,m,,4,.5\n", "and without one"),
        (SHARES + "a-b,m,1,.3\na-b,m,4,.5\na b,m,1,.3\na b,m,4,.5\n", "samples_a_b"),
    ],
)
def test_a_file_that_no_difficulty_fits_is_refused(text, problem, tmp_path):
    file = tmp_path / "pass.csv"
    file.write_text(text)
    with pytest.raises(SpecError, match=problem):
        Allocation(file=str(file), price=1.0)


def test_the_rounding_of_a_small_pass_at_1_is_granted_at_every_k(tmp_path):
    file = tmp_path / "pass.csv"
    file.write_text(SHARES + "a,m,1,.001\na,m,16,.017\na,m,64,.067\n")  # 2 of 1,920, printed
    Allocation(file=str(file), price=1.0)
    file.write_text(SHARES + "a,m,1,.001\na,m,16,.03\n")
    with pytest.raises(SpecError, match=r"at most 0\.01588"):
        read_pass_file(file)


def test_columns_of_the_users_own_are_left_alone(tmp_path):
    file = tmp_path / "pass.csv"
    file.write_text("class,model,k,pass,run,notes\na,m,1,.3,x,y\na,m,8,.5,x,y\n")
    assert read_pass_file(file)[0].solved == {1: 0.3, 8: 0.5}


def test_a_file_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(SpecError, match="there is no file"):
        read_pass_file(tmp_path / "pass.csv")
