"""What the executor ``ray`` does beside the laws: where tasks run, and what a lost node costs."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pytest

from dse.core.trial import Outcome, State
from dse.errors import PluginError
from dse.executors.ray import cluster as ray_cluster
from dse.executors.ray.cluster import RayCluster
from dse.executors.ray.head import RayHead, check_reachable
from dse.protocols import Needs, Task, Work
from dse.testing.executor_contract import LONG_S, collected
from dse.testing.work import Loaded, Needy, Unloadable, perform, task

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("ray_nodes")]

Start = Callable[..., RayCluster]
SPOT = Needs(custom={"spot": 1})


@pytest.fixture
def start() -> Iterator[Start]:
    with ExitStack() as stack:

        def begin(work: Work = perform, **options: Any) -> RayCluster:
            executor = RayCluster(work, **{"workers": 2, **options})
            stack.callback(executor.close)
            return executor

        yield begin


@pytest.fixture
def add(ray_nodes: Any) -> Iterator[Callable[..., Any]]:
    """Adds a node for the length of a test."""
    from ray import nodes

    def alive() -> int:
        return sum(node["Alive"] for node in nodes())

    before = alive()
    with ExitStack() as stack:

        def added(**offers: Any) -> Any:
            node = ray_nodes.add_node(**{"num_cpus": 1, **offers})
            stack.callback(lambda: node in ray_nodes.list_all_nodes() and kill(ray_nodes, node))
            return node

        yield added
    until(lambda: alive() == before)  # a dead node's room counts until Ray knows of it


def kill(cluster: Any, node: Any) -> None:
    cluster.remove_node(node, allow_graceful=False)


def outcome(executor: RayCluster, one: Task) -> Outcome:
    executor.submit(one)
    return collected(executor, 1)[one.number]


def reason(done: Outcome) -> str:
    assert done.failure is not None
    return done.failure.reason


def until(there: Callable[[], bool]) -> None:
    late = time.monotonic() + LONG_S
    while not there():
        assert time.monotonic() < late
        time.sleep(0.02)


def until_it_runs(path: Path) -> None:
    until(path.exists)


def test_the_reason_tells_how_a_worker_died(start: Start) -> None:
    assert reason(outcome(start(), task(0, "exit", 3))) == "its worker exited with status 3"


def test_work_is_unpickled_once_per_worker(start: Start) -> None:
    executor = start(Loaded())
    for number in range(10):
        executor.submit(task(number, "square", number))
    assert {done.metrics["loads"] for done in collected(executor, 10).values()} == {1}


def test_tasks_are_spread_over_workers(start: Start) -> None:
    executor = start()
    for number in range(2):
        executor.submit(task(number, "sleep", 2.0))
    assert len({done.metrics["pid"] for done in collected(executor, 2).values()}) == 2


def test_a_worker_has_a_thread_for_each_of_its_cpus(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    executor = start(Needy(Needs(cpu=2)), workers=1)
    assert outcome(executor, task(0, "environment", "OMP_NUM_THREADS")).metrics["value"] == 2


def test_a_worker_gets_neither_the_storage_nor_the_token_of_its_node(
    start: Start, add: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("DSE_STORAGE", "DSE_TOKEN", "MINE")
    for name in names:
        monkeypatch.setenv(name, "7")
    add(resources={"board": 1})  # a node that was started with them
    executor = start(Needy(Needs(custom={"board": 1})), workers=1)
    values = [
        outcome(executor, task(number, "environment", name)).metrics["value"]
        for number, name in enumerate(names)
    ]
    assert np.isnan(values[:2]).all()
    assert values[2] == 7


def test_without_a_number_there_are_as_many_workers_as_there_is_room(start: Start) -> None:
    assert start(Needy(Needs(cpu=0.5)), workers=None).capacity == 4


@pytest.mark.parametrize(
    ("needs", "told"),
    [
        (Needs(gpu=1), "no node offers cpu: 1, gpu: 1; the cluster has .*cpu: 2, memory: "),
        (Needs(cpu=64), "no node offers cpu: 64;"),
        (Needs(memory_bytes=2**50), "no node offers cpu: 1, memory: 1024 TiB;"),
        (Needs(custom={"board": 1}), "no node offers cpu: 1, board: 1;"),
    ],
)
def test_what_no_node_offers_is_refused_at_once(start: Start, needs: Needs, told: str) -> None:
    with pytest.raises(PluginError, match=told):
        start(Needy(needs))


def test_a_task_runs_where_there_is_what_it_needs(start: Start, add: Callable[..., Any]) -> None:
    add(num_gpus=1, resources={"board": 1})
    executor = start(Needy(Needs(gpu=1, custom={"board": 1})), workers=1)
    assert outcome(executor, task(0, "environment", "CUDA_VISIBLE_DEVICES")).metrics["value"] == 0


def test_a_task_whose_node_is_killed_is_lost_and_can_be_done_on_another(
    start: Start, add: Callable[..., Any], ray_nodes: Any, tmp_path: Path
) -> None:
    node = add(resources={"spot": 1})
    executor = start(Needy(SPOT), workers=1)
    executor.submit(task(0, "hang once", str(tmp_path / "runs")))
    until_it_runs(tmp_path / "runs")
    kill(ray_nodes, node)
    lost = collected(executor, 1)[0]
    assert lost.failure is not None
    assert lost.failure.kind == "lost"
    assert lost.failure.reason.startswith("its worker was lost on ")
    assert lost.cost_s > 0
    add(resources={"spot": 1})
    assert outcome(executor, task(0, "hang once", str(tmp_path / "runs"))).state is State.DONE


def test_a_lost_worker_is_replaced_as_soon_as_a_node_could_have_another(
    start: Start, add: Callable[..., Any], ray_nodes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_cluster, "_PATIENCE_S", 1.0)
    node = add(resources={"spot": 1})
    executor = start(Needy(SPOT), workers=1)
    assert outcome(executor, task(0, "square", 2)).metrics["square"] == 4
    worker = executor._workers[0]
    kill(ray_nodes, node)
    until(lambda: worker.lost)
    executor.submit(task(1, "square", 3))
    with pytest.raises(PluginError, match="no node offers cpu: 1, spot: 1"):
        executor.collect()
    add(resources={"spot": 1})
    assert collected(executor, 1)[1].metrics["square"] == 9
    told = [event.text for event in executor.events()]  # on a busy machine more may be lost
    assert any(text.startswith("a free worker was lost on ") for text in told)


def test_a_task_that_ray_ends_because_memory_is_short_says_so(
    start: Start, add: Callable[..., Any]
) -> None:
    # as rarely as a worker needs to start on a busy machine: it is its task that shall be ended
    short = {"RAY_memory_usage_threshold": "0.001", "RAY_memory_monitor_refresh_ms": "6000"}
    add(resources={"spot": 1}, env_vars=short)
    executor = start(Needy(SPOT), workers=1)
    failure = outcome(executor, task(0, "sleep", 600.0)).failure
    assert failure is not None
    assert failure.kind == "memory"


def test_workers_that_never_start_end_it_with_the_reason(
    start: Start, add: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "numpy.py").write_text("raise ImportError('it is not installed here')")
    add(resources={"spot": 1}, env_vars={"PYTHONPATH": str(tmp_path)})
    executor = start(Needy(SPOT), workers=1)
    executor.submit(task(0, "square", 3))
    with pytest.raises(PluginError, match=r"do not start on the cluster.* not installed here"):
        executor.collect()


def test_a_task_does_not_wait_for_a_worker_that_has_no_place(start: Start) -> None:
    executor = start(Needy(Needs(cpu=2)), workers=1)
    executor.capacity = 2  # as on a cluster where others took the room since
    for number in range(3):
        executor.submit(task(number, "square", number))
    assert len(collected(executor, 3)) == 3


def test_functions_of_a_notebook_travel_with_their_code(start: Start) -> None:
    def within(tasks: Sequence[Task]) -> list[Outcome]:
        return [Outcome(state=State.DONE, metrics={"count": len(tasks)}) for _ in tasks]

    assert outcome(start(within), task(0, "square", 3)).metrics == {"count": 1}


def test_work_that_cannot_be_sent_is_refused_with_a_hint(start: Start) -> None:
    lock = Lock()

    def within(tasks: Sequence[Task]) -> list[Outcome]:
        with lock:
            return perform(tasks)

    with pytest.raises(PluginError, match="cannot be sent to other machines") as caught:
        start(within)
    assert "locks" in caught.value.hint


def test_nobody_is_wished_for_while_the_head_does_not_answer(start: Start) -> None:
    executor = start()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        executor._door.head = RayHead(f"127.0.0.1:{port}")
    executor.submit(task(0, "square", 3))
    assert executor.collect(1.5) == {}
    assert executor._workers == []
    with socket.create_server(("127.0.0.1", port)):
        assert collected(executor, 1)[0].metrics["square"] == 9


def test_work_that_workers_cannot_load_fails_with_the_reason(start: Start) -> None:
    assert "no module named 'gone'" in reason(outcome(start(Unloadable()), task(0, "square", 3)))


@pytest.mark.parametrize("options", [{"workers": 0}, {"timeout_s": 0.0}, {"start_s": 0.0}])
def test_options_that_make_no_sense_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(PluginError, match="'ray'"):
        RayCluster(perform, **options)


def test_a_cluster_that_nobody_answers_for_is_told() -> None:
    with pytest.raises(PluginError, match=r"no response from ray://127\.0\.0\.1:1"):
        check_reachable("ray://127.0.0.1:1")


def test_a_process_that_has_joined_one_cluster_cannot_join_another(ray_nodes: Any) -> None:
    with pytest.raises(PluginError, match=f"{ray_nodes.address} and cannot join 127.0.0.1:1"):
        RayCluster(perform, address="127.0.0.1:1")


def test_without_ray_it_tells_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(PluginError, match="not installed") as caught:
        RayCluster(perform)
    assert "dse-engine[ray]" in caught.value.hint


def test_a_closed_executor_takes_nothing(start: Start) -> None:
    executor = start()
    executor.close()
    with pytest.raises(RuntimeError, match="closed"):
        executor.submit(task(0, "square", 1))


def test_closing_leaves_a_cluster_that_was_joined_before(start: Start) -> None:
    start().close()
    assert outcome(start(), task(0, "square", 3)).metrics["square"] == 9
