"""What a watchdog kills and removes when the process that started it ends."""

import gc
import json
import os
import pickle
import subprocess
import sys

import psutil
import pytest

from dse.system import process_tree
from dse.system.process_guard import Watchdog, WatchdogPool
from dse.system.process_tree import clean_up, descendants, end, read_start_time, runs

SLEEP = [sys.executable, "-S", "-c", "import time; print(flush=True); time.sleep(600)"]


@pytest.fixture
def sleeper():
    """Process in a session of its own that sleeps."""
    process = subprocess.Popen(SLEEP, stdout=subprocess.PIPE, start_new_session=True)
    process.stdout.readline()
    yield process
    process.kill()
    process.communicate()


def test_the_start_time_is_that_of_psutil(sleeper):
    since_boot_s = psutil.Process(sleeper.pid).create_time() - psutil.boot_time()
    ticks = since_boot_s * os.sysconf("SC_CLK_TCK")
    assert float(read_start_time(sleeper.pid)) == pytest.approx(ticks, abs=0.5)


def test_a_zombie_and_an_absent_process_have_no_start_time(sleeper):
    sleeper.kill()
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)
    assert (read_start_time(sleeper.pid), runs(sleeper.pid)) == ("", False)
    sleeper.wait()
    assert (descendants(sleeper.pid), runs(sleeper.pid)) == ([], False)


def test_only_the_process_with_the_id_and_the_start_time_is_killed(sleeper):
    clean_up(processes=[(sleeper.pid, "1")])
    assert runs(sleeper.pid)
    clean_up(processes=[(sleeper.pid, read_start_time(sleeper.pid))])
    assert sleeper.wait(60) == -9


def test_descendants_in_sessions_of_their_own_are_killed_with_a_process():
    inner = f"import subprocess; subprocess.Popen({SLEEP!r}, start_new_session=True).wait()"
    with subprocess.Popen([sys.executable, "-S", "-c", inner], stdout=subprocess.PIPE) as outer:
        outer.stdout.readline()
        (child,) = descendants(outer.pid)
        assert os.getsid(child) != os.getsid(outer.pid)
        end(outer.pid)
        process_tree.wait_until_gone([child], 60)
        assert not runs(child)


def test_a_closed_watchdog_ends_and_removes_what_it_was_given_last(sleeper, tmp_path):
    kept, removed = tmp_path / "kept", tmp_path / 'a "name"\nof two lines'
    for folder in (kept, removed):
        folder.mkdir()
    watchdog = Watchdog()
    watchdog.watch(folder=str(kept))
    watchdog.watch(folder=str(removed), processes=[sleeper.pid])
    watchdog.close()
    assert (sleeper.wait(60), kept.exists(), removed.exists()) == (-9, True, False)


def test_a_dismissed_watchdog_ends_nothing(sleeper):
    with Watchdog() as watchdog:
        watchdog.watch(group=sleeper.pid)
    assert runs(sleeper.pid)


def test_a_line_that_was_cut_off_leaves_the_one_before_it_in_force(sleeper, tmp_path):
    words = [sys.executable, "-I", "-S", process_tree.__file__]
    lines = f"{json.dumps({'folder': str(tmp_path)})}\n{json.dumps({'group': sleeper.pid})}"
    subprocess.run(words, input=lines, text=True, check=True)
    assert (runs(sleeper.pid), tmp_path.exists()) == (True, False)


def test_the_watchdog_starts_before_psutil_and_json_are_loaded():
    program = "import runpy, sys; runpy.run_path(sys.argv[1]); print(sorted(sys.modules))"
    words = [sys.executable, "-I", "-S", "-c", program, process_tree.__file__]
    loaded = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert not [
        name for name in ("psutil", "json", "pathlib", "subprocess") if f"'{name}'" in loaded
    ]


def test_a_pool_lends_one_watchdog_again_and_ends_it_with_itself():
    pool = WatchdogPool()
    with pool.lend() as first:
        pass
    with pool.lend() as second, pool.lend() as third:
        assert (second is first, third is first) == (True, False)
    assert pickle.loads(pickle.dumps(pool)) is not pool
    assert first.is_alive
    del pool
    gc.collect()
    assert not first.is_alive


def test_a_watchdog_that_was_killed_or_whose_program_failed_is_not_lent_again():
    pool = WatchdogPool()
    with pool.lend() as killed:
        pass
    killed.__exit__()
    with pytest.raises(KeyError), pool.lend() as failed:
        raise KeyError
    assert (killed.is_alive, failed.is_alive) == (False, False)
    with pool.lend() as fresh:
        assert fresh is not killed
        assert fresh is not failed


def test_a_kept_watchdog_ends_only_what_runs_when_its_process_dies(sleeper):
    """The pool's process starts and ends one program, then dies by SIGKILL."""
    script = f"""
import os, signal
from dse.system.process_guard import WatchdogPool
pool = WatchdogPool()
with pool.lend() as watchdog:
    watchdog.watch(group={sleeper.pid})
print(watchdog._process.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    process_tree.wait_until_gone([int(done.stdout)], 60)
    assert not runs(int(done.stdout))
    assert runs(sleeper.pid)


def test_a_forked_process_does_not_hide_the_death_of_its_parent(sleeper):
    script = f"""
import os, signal, time
from dse.system.process_guard import WatchdogPool
pool = WatchdogPool()
with pool.lend():
    pass
child = os.fork()
if child == 0:
    os.close(1)
    time.sleep(600)
print(child, flush=True)
with pool.lend() as watchdog:
    watchdog.watch(group={sleeper.pid})
    os.kill(os.getpid(), signal.SIGKILL)
"""
    words = [sys.executable, "-c", script]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False)
    try:
        assert sleeper.wait(60) == -9
    finally:
        end(int(done.stdout))
