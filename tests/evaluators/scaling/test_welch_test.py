"""Welch's test of a table of runs: against SciPy, its rate of false findings, refused files."""

import math

import numpy as np
import pytest
from scipy import stats

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.scaling.recipes.welch_test import WelchTest, compare_means

HEAD = "setting,energy\n"
ROWS = HEAD + "fp32,10\nfp32,12\nfp32,14\nbf16,9\nbf16,11\nfp16,5\nfp16,6\n"


def evaluate(folder, text=ROWS, **options):
    path = folder / "runs.csv"
    path.write_text(text)
    made = WelchTest(file=str(path), **options)

    def compare(setting, against="fp32"):
        found = made.evaluate(Batch.of([{"setting": setting, "against": against}]))
        failure = found.failures.get(0)
        return failure or {name: float(column[0]) for name, column in found.columns.items()}

    return compare


def test_test_and_interval_are_those_of_scipy():
    rng = np.random.default_rng(1)
    first, second = rng.normal(3, 1, 6), rng.normal(1, 4, 9)
    found = compare_means(first, second)
    expected = stats.ttest_ind(first, second, equal_var=False)
    assert found.p_value == pytest.approx(expected.pvalue)
    assert found.interval(0.05) == pytest.approx(tuple(expected.confidence_interval(0.95)))


def test_equal_means_are_found_different_in_one_of_twenty_tables():
    """Deviations of 1 and 3 and sizes of 5 and 8, where the test of equal variances goes wrong."""
    rng = np.random.default_rng(0)
    draws = [(rng.normal(0, 1, 5), rng.normal(0, 3, 8)) for _ in range(2000)]
    found = np.mean([compare_means(*one).p_value < 0.05 for one in draws])
    assert found == pytest.approx(0.05, abs=0.01)


def test_a_detectable_difference_is_found_in_four_of_five_tables():
    rng = np.random.default_rng(0)
    truth = np.array([-1.0, 1.0]) / np.sqrt(2)  # means 0, deviation 1 with one degree of freedom
    sizes = np.tile(truth, 10) * np.sqrt(19 / 10)  # twenty values with a deviation of 1
    needed = compare_means(sizes, sizes).detectable(0.05)
    draws = [(rng.normal(needed, 1, 20), rng.normal(0, 1, 20)) for _ in range(1000)]
    assert np.mean([compare_means(*one).p_value < 0.05 for one in draws]) == pytest.approx(
        0.8, abs=0.04
    )


def test_metrics_of_a_file_by_hand(tmp_path):
    found = evaluate(tmp_path)("fp16")
    assert found["difference"] == 5.5 - 12
    assert found["share"] == pytest.approx(-6.5 / 12)
    assert found["stderr"] == pytest.approx(math.sqrt(4 / 3 + 0.5 / 2))
    assert found["low"] < found["difference"] < found["high"] < 0
    assert found["significant"] == 1
    assert evaluate(tmp_path)("bf16")["significant"] == 0


def test_columns_and_unit_are_those_of_the_user(tmp_path):
    text = "precision,power,gpu\na,1,x\na,2,x\nb,3,y\nb,4,y\n"
    made = evaluate(tmp_path, text, group="precision", value="power", unit="W")
    assert made("a", "b")["difference"] == -2
    made = WelchTest(
        file=str(tmp_path / "runs.csv"), group="precision", value="power", unit="W", against="b"
    )
    assert made.provides["difference"].unit == "W"
    assert made.reads == {"setting"}


def test_equal_runs_differ_for_certain_or_not_at_all(tmp_path):
    made = evaluate(tmp_path, HEAD + "a,2\na,2\nb,2\nb,2\nc,3\nc,3\n")
    assert made("a", "b")["p_value"] == 1
    assert made("c", "b")["p_value"] == 0


def test_a_setting_compared_with_itself_is_infeasible(tmp_path):
    assert evaluate(tmp_path)("fp32").reason == "fp32 is compared with itself"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seting,energy\na,1\n", "runs.csv:1: there is no column 'setting'"),
        (HEAD + "a,1\na,n/a\n", "runs.csv:3: energy is 'n/a'"),
        (HEAD + "a,1\na,2\n", "settings are a"),
        (HEAD + "a,1\na,2\nb,3\n", "b has one run"),
    ],
)
def test_files_that_cannot_be_used_are_refused(tmp_path, text, message):
    with pytest.raises(SpecError, match=message):
        evaluate(tmp_path, text)


def test_levels_units_and_settings_out_of_range_are_refused(tmp_path):
    with pytest.raises(SpecError, match="level is between"):
        evaluate(tmp_path, level=1.0)
    with pytest.raises(SpecError, match="joule_s"):
        evaluate(tmp_path, unit="joule_s")
    with pytest.raises(SpecError, match="fp8"):
        evaluate(tmp_path, against="fp8")
