"""What the executor ``processes`` does beside the laws: reasons, threads, signals, orphans."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from dse.core.trial import Outcome, State
from dse.errors import PluginError
from dse.executors.processes import Processes
from dse.protocols import Task, Work
from dse.testing.executor_contract import LONG_S, collected
from dse.testing.isolation_contract import lives_on, written
from dse.testing.work import Loaded, Slow, Stillborn, Unloadable, perform, task

pytestmark = pytest.mark.slow

Start = Callable[..., Processes]

DRIVER = """
from dse.executors.processes import Processes
from dse.testing.work import perform, task

def main():
    executor = Processes(perform, workers=2)
    {act}
    executor.close()
{call}
"""
COLLECT = 'executor.submit(task(0, "square", 3)); print(executor.collect()[0].metrics["square"])'


@pytest.fixture
def start() -> Iterator[Start]:
    with ExitStack() as stack:

        def begin(work: Work = perform, **options: object) -> Processes:
            executor = Processes(work, **options)
            stack.callback(executor.close)
            return executor

        yield begin


def outcome(executor: Processes, one: Task) -> Outcome:
    executor.submit(one)
    return collected(executor, 1)[one.number]


def run(*command: str, **options: object) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=LONG_S, **options
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


DEATHS = {
    "status 3": (task(0, "exit", 3), "crashed", "exited with status 3"),
    "SIGSEGV": (task(0, "signal", int(signal.SIGSEGV)), "crashed", "was ended by SIGSEGV"),
    "SIGABRT": (task(0, "signal", int(signal.SIGABRT)), "crashed", "was ended by SIGABRT"),
    "SIGKILL": (
        task(0, "signal", int(signal.SIGKILL)),
        "lost",
        "was ended by SIGKILL; was memory short?",
    ),
    "SIGTERM": (task(0, "signal", int(signal.SIGTERM)), "lost", "was ended by SIGTERM"),
    "SIGHUP": (task(0, "signal", int(signal.SIGHUP)), "lost", "was ended by SIGHUP"),
}


@pytest.mark.parametrize(("crash", "kind", "reason"), DEATHS.values(), ids=DEATHS)
def test_only_what_a_worker_did_itself_is_a_crash(
    start: Start, crash: Task, kind: str, reason: str
) -> None:
    failure = outcome(start(), crash).failure
    assert failure is not None
    assert (failure.kind, failure.reason) == (kind, f"its worker {reason}")


def test_outcomes_tell_when_they_were_begun_and_ended(start: Start) -> None:
    executor, begun = start(), {}
    executor.on_begin = begun.__setitem__
    ends = [outcome(executor, task(0, "square", 3)), outcome(executor, task(1, "exit", 3))]
    assert list(begun) == [0, 1]
    for number, end in enumerate(ends):
        assert end.begun_at == begun[number]
        assert end.finished_at is not None
        assert begun[number] <= end.finished_at


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_a_task_whose_worker_dies_before_it_begins_waits_for_another_worker(
    start: Start, tmp_path: Path, number: signal.Signals
) -> None:
    executor = start(Stillborn(str(tmp_path / "births"), 2, number), workers=2)
    for place in range(3):
        executor.submit(task(place, "square", place))
    outcomes = collected(executor, 3)
    assert [outcomes[place].metrics["square"] for place in range(3)] == [0, 1, 4]
    (text,) = {event.text for event in executor.events()}
    assert text.startswith("a trial waits for another worker: its worker was ended by SIG")


def test_workers_that_never_start_end_the_run_and_not_the_designs(
    start: Start, tmp_path: Path
) -> None:
    executor = start(Stillborn(str(tmp_path / "births"), 99, signal.SIGKILL), workers=1)
    executor.submit(task(0, "square", 3))
    with pytest.raises(PluginError, match=r"workers do not start: .*SIGKILL"):
        executor.collect()
    assert (tmp_path / "births").read_text().count("born") == 4


def test_the_reason_tells_the_limit_that_a_task_ran_into(start: Start) -> None:
    failure = outcome(start(timeout_s=0.2), task(0, "sleep", 60.0)).failure
    assert failure is not None
    assert failure.reason == "no outcome after 0.2 s"


def test_starting_a_worker_takes_nothing_from_its_tasks_time(start: Start) -> None:
    assert outcome(start(Slow(), timeout_s=2.0), task(0, "square", 3)).state is State.DONE


def test_work_is_unpickled_once_per_worker(start: Start) -> None:
    executor = start(Loaded(), workers=2)
    for number in range(10):
        executor.submit(task(number, "square", number))
    assert {done.metrics["loads"] for done in collected(executor, 10).values()} == {1}


def test_tasks_are_spread_over_workers(start: Start) -> None:
    executor = start(workers=2)
    for number in range(2):
        executor.submit(task(number, "sleep", 0.3))
    assert len({done.metrics["pid"] for done in collected(executor, 2).values()}) == 2


def test_a_worker_is_used_again(start: Start) -> None:
    executor = start(workers=2)
    pids = {outcome(executor, task(number, "square", 1)).metrics["pid"] for number in range(4)}
    assert len(pids) == 1


def test_a_worker_uses_one_thread(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    executor = start()
    assert outcome(executor, task(0, "environment", "OMP_NUM_THREADS")).metrics["value"] == 1
    assert "OMP_NUM_THREADS" not in os.environ


def test_a_worker_uses_as_many_threads_as_the_user_says(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert outcome(start(), task(0, "environment", "OMP_NUM_THREADS")).metrics["value"] == 3


def test_a_worker_gets_neither_the_storage_nor_the_token(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("DSE_STORAGE", "DSE_TOKEN", "MINE")
    for name in names:
        monkeypatch.setenv(name, "7")
    executor = start()
    values = [
        outcome(executor, task(number, "environment", name)).metrics["value"]
        for number, name in enumerate(names)
    ]
    assert np.isnan(values[:2]).all()
    assert values[2] == 7
    assert all(os.environ[name] == "7" for name in names)


def test_a_worker_leaves_ctrl_c_to_the_driver(start: Start) -> None:
    done = outcome(start(), task(0, "survive", int(signal.SIGINT)))
    assert done.metrics["survived"] == 1


def test_a_worker_that_dies_while_it_is_free_is_replaced(start: Start) -> None:
    executor = start(workers=1)
    first = int(outcome(executor, task(0, "square", 1)).metrics["pid"])
    os.kill(first, signal.SIGKILL)
    executor._workers[0]._process.join(LONG_S)
    second = outcome(executor, task(1, "square", 2))
    assert second.state is State.DONE
    assert second.metrics["pid"] != first


def test_a_worker_that_dies_with_half_an_answer_out_stops_nobody(start: Start) -> None:
    executor = start(workers=2)
    pid = int(outcome(executor, task(0, "square", 1)).metrics["pid"])
    executor.submit(task(1, "large", 1_000_000))  # more than a pipe holds: it waits half way
    executor._workers[0]._pipe.poll(LONG_S)
    os.kill(pid, signal.SIGKILL)
    executor.submit(task(2, "square", 5))
    outcomes = collected(executor, 2)
    assert outcomes[1].failure is not None
    assert outcomes[1].failure.kind == "lost"
    assert outcomes[2].metrics["square"] == 25


@pytest.mark.parametrize("child", ["child", "stray child"])
def test_a_task_that_is_given_up_is_ended_with_its_children(
    start: Start, tmp_path: Path, child: str
) -> None:
    executor = start(timeout_s=5.0)
    executor.submit(task(0, child, str(tmp_path / "pids")))
    pids = written(tmp_path / "pids")
    assert collected(executor, 1)[0].state is State.FAILED
    assert [pid for pid in pids if lives_on(pid)] == []


@pytest.mark.parametrize("child", ["child", "stray child"])
def test_a_killed_driver_leaves_neither_workers_nor_their_children(
    tmp_path: Path, child: str
) -> None:
    path = tmp_path / "pids"
    act = f'executor.submit(task(0, "{child}", "{path}")); executor.collect()'
    driver = subprocess.Popen([sys.executable, "-c", DRIVER.format(act=act, call="main()")])
    pids = written(path)
    driver.kill()
    driver.wait(LONG_S)
    assert [pid for pid in pids if lives_on(pid)] == []


def test_ctrl_c_reaches_the_driver_and_its_workers_end_with_it(tmp_path: Path) -> None:
    path = tmp_path / "pids"
    act = f"""
    try:
        executor.submit(task(0, "child", "{path}")); executor.collect()
    except KeyboardInterrupt:
        print("interrupted")"""
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER.format(act=act, call="main()")],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    pids = written(path)
    os.killpg(driver.pid, signal.SIGINT)
    assert driver.communicate(timeout=LONG_S)[0] == "interrupted\n"
    assert [pid for pid in pids if lives_on(pid)] == []


def test_a_driver_that_forgets_to_close_ends_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "pids"
    act = f"""
    executor.submit(task(0, "child", "{path}"))
    from pathlib import Path
    from dse.testing.isolation_contract import written
    written(Path("{path}"))
    return"""
    run(sys.executable, "-c", DRIVER.format(act=act, call="main()"))
    assert [pid for pid in written(path) if lives_on(pid)] == []


def test_it_works_from_a_line_of_python() -> None:
    assert run(sys.executable, "-c", DRIVER.format(act=COLLECT, call="main()")) == "9.0\n"


def test_it_works_from_standard_input() -> None:
    assert run(sys.executable, "-", input=DRIVER.format(act=COLLECT, call="main()")) == "9.0\n"


def test_it_works_from_a_console_script(tmp_path: Path) -> None:
    (tmp_path / "entry.py").write_text(DRIVER.format(act=COLLECT, call=""))
    script = tmp_path / "dse"  # as installers write it
    script.write_text(
        f"#!{sys.executable}\nimport sys\nfrom entry import main\n"
        "if __name__ == '__main__':\n    sys.exit(main())\n"
    )
    script.chmod(0o755)
    assert run(str(script)) == "9.0\n"


def test_it_works_from_a_script_that_does_not_guard_its_main_part(tmp_path: Path) -> None:
    script = tmp_path / "naive.py"
    script.write_text(DRIVER.format(act=COLLECT, call="print('once')\nmain()"))
    assert run(sys.executable, str(script)) == "once\n9.0\n"


def test_work_of_the_main_script_is_found_by_its_workers(tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    text = DRIVER.format(act=COLLECT, call="if __name__ == '__main__':\n    main()")
    script.write_text(OWN + text.replace("(perform,", "(mine,"))
    assert run(sys.executable, str(script)) == "9.0\n"


OWN = """
def mine(tasks):
    return perform(tasks)
"""


def test_work_that_workers_cannot_load_fails_with_the_reason(start: Start) -> None:
    failure = outcome(start(Unloadable()), task(0, "square", 3)).failure
    assert failure is not None
    assert failure.kind == "raised"
    assert "no module named 'gone'" in failure.reason


def test_work_that_cannot_be_sent_is_refused_with_a_hint() -> None:
    def within(tasks: Sequence[Task]) -> list[Outcome]:
        return perform(tasks)

    with pytest.raises(PluginError, match="cannot be sent") as caught:
        Processes(within)
    assert "serial" in caught.value.hint


@pytest.mark.parametrize("options", [{"workers": 0}, {"timeout_s": 0.0}])
def test_options_that_make_no_sense_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(PluginError, match="processes"):
        Processes(perform, **options)


def test_a_closed_executor_takes_nothing(start: Start) -> None:
    executor = start()
    executor.close()
    with pytest.raises(RuntimeError, match="closed"):
        executor.submit(task(0, "square", 1))
