"""Early exits at a voltage for the deadline: energies by hand, the table, and refused traces."""

import numpy as np
import pytest

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.edge.early_exit_dvfs import EarlyExitDvfs
from dse_evaluators.edge.exit_trace import ExitTable, ExitTrace

CHIP = {
    "layer_time": 1.0,
    "layer_energy": 2.0,
    "voltage": 0.8,
    "lowest_voltage": 0.4,
    "slowest": 0.25,
    "voltage_step": 0.0001,
}
HEADER = "split,entropy_1,entropy_2,entropy_3,hit_1,hit_2,hit_3\n"
ROWS = """\
search,0.1,0.1,0.1,1,1,1
search,0.6,0.5,0.1,0,0,1
test,0.1,0.1,0.1,1,1,1
test,0.6,0.5,0.1,0,0,1
"""


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "exits.csv"
    path.write_text(HEADER + ROWS)
    return path


def measure(trace, **design):
    made = EarlyExitDvfs(file=str(trace), split="test", **CHIP)
    found = made.evaluate(Batch.of([{"threshold": 0.3, "deadline": 5.0} | design]))
    assert not found.failures
    return {name: column[0] for name, column in found.columns.items()}


def test_without_exits_all_layers_run_at_the_highest_voltage(trace):
    found = measure(trace, policy="none")
    assert (found["energy"], found["saving"], found["latency"]) == (6.0, 1.0, 3.0)
    assert (found["accuracy"], found["depth"]) == (1.0, 3.0)


def test_exits_save_the_layers_behind_them(trace):
    found = measure(trace, policy="early-exit")
    assert found["depth"] == 2.0
    assert found["energy"] == 4.0
    assert found["latency"] == 2.0


def test_the_voltage_is_the_lowest_that_meets_the_deadline(trace):
    # two layers in the four seconds that are left: half the clock, which 0.4 + 0.4 / 3 V gives
    found = measure(trace, policy="dvfs")
    hard = 1 + 2 * ((0.4 + 0.4 / 3) / 0.8) ** 2
    assert found["energy"] == pytest.approx(2.0 * (1 + hard) / 2, rel=1e-3)
    assert found["latency"] == pytest.approx((1 + 5) / 2, rel=1e-3)
    assert found["missed"] == 0


def test_a_deadline_that_the_highest_voltage_cannot_meet_is_missed(trace):
    found = measure(trace, policy="dvfs", deadline=2.5)
    assert found["missed"] == 0.5
    assert found["energy"] == 4.0


def test_the_table_predicts_the_quantile_of_the_exits_of_each_bin():
    rng = np.random.default_rng(0)
    entropies = rng.uniform(size=(1000, 6))
    entropies[:, 1:] = np.where(entropies[:, :1] < 0.5, 0.0, 1.0)
    trace = ExitTrace(entropies=entropies, hits=np.ones((1000, 6)))
    table = ExitTable.of(trace, 0.01, 0.9)
    assert table.predict(np.array([0.02, 0.4, 0.6, 0.99])).tolist() == [2, 2, 6, 6]


def test_an_example_stops_at_its_prediction_at_the_latest(tmp_path):
    path = tmp_path / "exits.csv"
    path.write_text(HEADER + "search,0.6,0.1,0.1,1,1,1\ntest,0.6,0.5,0.1,0,0,1\n")
    found = measure(path, policy="dvfs")
    assert (found["depth"], found["accuracy"]) == (2.0, 0.0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("split,entropy_1,hit_1\nsearch,1,1\n", "fewer than two exits"),
        (HEADER.replace(",hit_3", "") + ROWS, "no column 'hit_3'"),
        (HEADER + ROWS.replace("0.6,0.5", "nan,0.5"), r"csv:3: entropy_1 is 'nan'"),
        (HEADER + ROWS.replace("0,0,1", "0,2,1"), r"csv:3: hit_2 is '2'"),
        (HEADER + ROWS.replace("test", "search"), "no example of the split 'test'"),
    ],
)
def test_traces_that_are_not_are_refused(tmp_path, text, words):
    path = tmp_path / "exits.csv"
    path.write_text(text)
    with pytest.raises(SpecError, match=words):
        EarlyExitDvfs(file=str(path))


def test_a_missing_file_and_swapped_voltages_are_refused(trace, tmp_path):
    with pytest.raises(SpecError, match="there is no file"):
        EarlyExitDvfs(file=str(tmp_path / "none.csv"))
    made = EarlyExitDvfs(file=str(trace), **(CHIP | {"lowest_voltage": 0.9}))
    failures = made.evaluate(Batch.of([{"threshold": 0.3, "deadline": 5.0}])).failures
    assert failures[0].reason == "the lowest voltage is above the highest"
