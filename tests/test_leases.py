"""Who is lost, and what becomes of the trials that he held."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from dse.core.design import Design
from dse.core.trial import Ask, Driver, Outcome, State
from dse.storage.memory import MemoryStorage
from dse.study.claimed_trials import Lease
from dse.study.liveness import gone, here
from dse.system.process_tree import read_start_time

DESIGN = Design({"x": 1})


@pytest.fixture
def storage() -> MemoryStorage:
    storage = MemoryStorage()
    storage.create("s", {})
    return storage


@pytest.fixture
def ended() -> Iterator[Driver]:
    """A driver of this machine whose process has ended and is not yet waited for."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    driver = Driver(host=here(), pid=process.pid, started=read_start_time(process.pid))
    assert not gone(driver)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    yield driver
    process.communicate()


def test_a_process_that_lives_is_not_gone():
    assert not gone(Driver(host=here(), pid=os.getpid(), started=read_start_time(os.getpid())))


def test_a_process_that_was_killed_is_gone_before_its_parent_has_looked(ended):
    assert gone(ended)


def test_another_process_with_the_number_of_one_that_ended_is_another_one():
    assert gone(Driver(host=here(), pid=os.getpid(), started="1"))


def test_of_another_machine_nothing_is_known():
    assert not gone(Driver(host=here() + " elsewhere", pid=1 << 22, started="1"))


def test_a_driver_of_this_machine_that_was_killed_is_lost_at_once(storage, ended):
    dead = storage.enter("s", ended)
    with Lease(storage, "s") as lease:
        lease.look()
        assert lease.lost == {dead}


def test_a_driver_elsewhere_is_lost_when_its_beat_has_not_risen_for_a_lease(storage):
    elsewhere = storage.enter("s", Driver(host="elsewhere", pid=1))
    with Lease(storage, "s", lease_s=0.3) as lease:
        lease.look()
        early = lease.lost
        time.sleep(0.35)
        lease.look()
        assert (early, lease.lost) == (frozenset(), {elsewhere})


def test_a_driver_that_beats_again_is_lost_no_more(storage):
    elsewhere = storage.enter("s", Driver(host="elsewhere", pid=1))
    with Lease(storage, "s", lease_s=0.3) as lease:
        lease.look()
        time.sleep(0.35)
        storage.beat("s", elsewhere)
        lease.look()
        assert lease.lost == frozenset()


def test_a_driver_beats_while_its_process_is_busy(storage):
    with Lease(storage, "s", lease_s=0.15) as lease:
        until = time.monotonic() + 300
        while storage.drivers("s")[lease.id].beat < 3:
            assert time.monotonic() < until
            time.sleep(0.05)


def test_who_leaves_has_left_and_holds_nothing(storage):
    with Lease(storage, "s") as lease:
        storage.add("s", [DESIGN], Ask(worker=lease.id))
    assert storage.drivers("s")[lease.id].left
    assert storage.trials("s")[0].worker is None


def test_the_deletion_of_its_study_ends_the_beats_of_a_driver(storage):
    with Lease(storage, "s", lease_s=0.06) as lease:
        storage.delete("s")
        lease._thread.join(300)
        assert not lease._thread.is_alive()


def test_a_late_result_of_one_who_was_lost_is_taken_once(storage):
    slow = storage.enter("s", Driver(host="elsewhere", pid=1))
    storage.add("s", [DESIGN], Ask(worker=slow))
    first, late = (Outcome(state=State.DONE, metrics={"loss": x}) for x in (1.0, 2.0))
    with Lease(storage, "s", lease_s=0.1) as lease:
        lease.look()
        time.sleep(0.15)
        lease.look()
        assert [t.number for t in storage.claim("s", [0], lease.id, lease.lost)] == [0]
        taken = [storage.finish("s", {0: first}, worker=lease.id), storage.finish("s", {0: late})]
    assert taken == [[0], []]
    assert storage.trials("s")[0].metrics == replace(first).metrics
