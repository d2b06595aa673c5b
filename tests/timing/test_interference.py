"""Other load on the machine, as the system reports it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dse.evaluation.timing.interference import (
    LoadSample,
    busy_by_cpu,
    sample_load,
    waited_ns,
)
from dse.evaluation.timing.pinning import pinned

STAT = """cpu  10 20 30 400 50 6 7 8 9 10
cpu0 1 2 3 40 5 6 7 8 9 10
cpu1 9 18 27 360 45 0 0 0 0 0
intr 5
"""


def test_busy_time_has_neither_idleness_nor_guests_twice(tmp_path: Path):
    (tmp_path / "stat").write_text(STAT)
    assert busy_by_cpu(tmp_path / "stat") == {0: 27, 1: 54}
    found = sample_load(tmp_path / "stat")
    assert found is not None
    assert found.busy_s == 81 / os.sysconf("SC_CLK_TCK")


def test_what_this_process_used_is_no_foreign_load():
    before = LoadSample(at_s=10.0, busy_s=100.0, own_s=5.0)
    after = LoadSample(at_s=12.0, busy_s=105.0, own_s=7.0)
    assert after.foreign_cores(before) == 1.5


def test_a_system_without_these_files_reports_nothing(tmp_path: Path):
    assert sample_load(tmp_path / "stat") is None
    assert waited_ns(tmp_path / "task") is None


def test_the_waits_of_all_threads_are_summed(tmp_path: Path):
    for thread, text in (("1", "100 30 2\n"), ("2", "50 12 1\n")):
        (tmp_path / thread).mkdir()
        (tmp_path / thread / "schedstat").write_text(text)
    (tmp_path / "3").mkdir()  # it has ended meanwhile
    assert waited_ns(tmp_path) == 42


def test_a_pinned_thread_has_one_processor_and_gets_the_others_back():
    before = os.sched_getaffinity(0)
    with pinned(1) as held:
        assert os.sched_getaffinity(0) == set(held)
    assert len(held) == 1
    assert os.sched_getaffinity(0) == before


@pytest.mark.skipif(waited_ns() is None, reason="the kernel keeps no statistics of its scheduler")
def test_a_thread_that_shares_its_processor_waits_for_it():
    with pinned(1) as held:
        words = f"import os; os.sched_setaffinity(0, {held})\nwhile True: pass"
        with subprocess.Popen([sys.executable, "-c", words]) as rival:
            try:
                before = waited_ns()
                while waited_ns() <= before + 1_000_000:  # hangs if waits are not seen
                    sum(range(1000))
            finally:
                rival.kill()
