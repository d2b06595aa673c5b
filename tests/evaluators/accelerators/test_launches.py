"""Launches of kernels: queues by hand, real traces, and what is refused."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dse.core.batch import Batch
from dse.errors import DseError, SpecError
from dse_evaluators.accelerators.launches.kernel_launches import KernelLaunches
from dse_evaluators.accelerators.launches.launch_queue import Changes, replay, run_queue
from dse_evaluators.accelerators.launches.launch_trace import read_launches
from dse_evaluators.accelerators.launches.traced_launches import TracedLaunches

DATA = Path(__file__).parents[2] / "data"
HOST = {"host_time": "6 us", "launch_latency": "2 us"}


def call(ts, *, correlation=None, name="cudaLaunchKernel", dur=1.0):
    arguments = {} if correlation is None else {"args": {"correlation": correlation}}
    place = {"ph": "X", "cat": "cuda_runtime", "pid": 9, "tid": 9}
    return {**place, "name": name, "ts": ts, "dur": dur, **arguments}


def kernel(ts, dur, correlation, stream=7):
    place = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": stream}
    return {**place, "ts": ts, "dur": dur, "args": {"correlation": correlation}}


def written(folder, events):
    path = folder / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    return path


# Launches at 10, 20 and 30; the second kernel waits for the first, the third begins when it arrives.
QUEUED = [
    call(10, correlation=1),
    kernel(15, 20, 1),
    call(20, correlation=2),
    kernel(35, 2, 2),
    call(40, correlation=3),
    kernel(45, 3, 3),
]


def changes(**given):
    one = {"host_speed": 1.0, "device_speed": 1.0, "fused": 1.0, "graph": 0.0}
    return Changes(**{key: np.array([value]) for key, value in {**one, **given}.items()})


def test_metrics_of_a_trace_are_those_that_one_counts_by_hand(tmp_path):
    trace = read_launches(written(tmp_path, QUEUED))
    assert trace.launches == 3
    assert trace.launch_s == pytest.approx(5e-6)
    assert trace.tklqt_s == pytest.approx((5 + 15 + 5) * 1e-6)
    assert trace.kernel_s == pytest.approx(25e-6)
    assert trace.latency_s == pytest.approx(38e-6)


@pytest.mark.parametrize(
    ("given", "latency", "tklqt", "launches"),
    [
        ({}, 38, 25, 3),
        ({"device_speed": 2.0}, 36.5, 5 + 5 + 5, 3),
        ({"host_speed": 2.0}, 30, 5 + 20 + 12, 3),  # launches at 0, 5 and 15
        ({"fused": 2.0}, 30, 5 + 7, 2),  # the second is of the first, the third 20 us later
        ({"graph": 1.0}, 30, 5, 1),
    ],
)
def test_a_replay_is_the_queue_that_one_draws_by_hand(tmp_path, given, latency, tklqt, launches):
    found = replay(read_launches(written(tmp_path, QUEUED)), changes(**given))
    assert found.latency_s * 1e6 == pytest.approx(latency)
    assert found.tklqt_s * 1e6 == pytest.approx(tklqt)
    assert found.launches == launches


def test_a_host_that_waits_goes_on_when_the_kernel_has_ended(tmp_path):
    waits = call(12, name="cudaStreamSynchronize", dur=30)  # until 42, 2 us after the kernel
    events = [
        call(10, correlation=1),
        kernel(15, 25, 1),
        waits,
        call(45, correlation=2),
        kernel(50, 4, 2),
    ]
    trace = read_launches(written(tmp_path, events))
    assert replay(trace, changes()).latency_s * 1e6 == pytest.approx(44)
    assert replay(trace, changes(device_speed=5.0)).latency_s * 1e6 == pytest.approx(20.8)


def test_streams_run_beside_each_other(tmp_path):
    events = [
        call(10, correlation=1),
        kernel(15, 20, 1),
        call(12, correlation=2),
        kernel(17, 20, 2, stream=8),
    ]
    found = replay(read_launches(written(tmp_path, events)), changes())
    assert found.latency_s * 1e6 == pytest.approx(27)
    assert found.tklqt_s * 1e6 == pytest.approx(10)


def test_the_last_step_of_a_trace_counts(tmp_path):
    step = {"ph": "X", "cat": "user_annotation", "pid": 9, "tid": 9, "dur": 100.0}
    steps = [{**step, "name": f"ProfilerStep#{place}", "ts": 100.0 * place} for place in (0, 1, 2)]
    later = [call(110, correlation=4), kernel(115, 2, 4)]
    assert read_launches(written(tmp_path, [*steps, *QUEUED, *later])).launches == 1


@pytest.mark.parametrize(
    ("name", "launches", "latency_ms"),
    [("mi250_step_trace.json.gz", 16, 9.117), ("alexnet_trace.json.gz", 98, 43_348.556)],
)
def test_real_traces_are_replayed_to_their_own_latency(name, launches, latency_ms):
    trace = read_launches(DATA / name)
    assert trace.launches == launches
    assert trace.latency_s * 1e3 == pytest.approx(latency_ms, abs=0.01)
    assert replay(trace, changes()).latency_s == pytest.approx(trace.latency_s, rel=0.001)


@settings(max_examples=30, deadline=None)
@given(
    kernels=st.lists(st.floats(0, 1e-3), min_size=1, max_size=20),
    host=st.floats(0, 1e-3),
    launch=st.floats(0, 1e-3),
)
def test_the_closed_form_of_the_queue_is_the_loop(kernels, host, launch):
    end, tklqt = 0.0, 0.0
    for place, took in enumerate(kernels, start=1):
        start = max(place * host + launch, end)
        tklqt, end = tklqt + start - place * host, start + took
    one = np.ones(1)
    found = run_queue(np.array(kernels)[:, None], host * one, launch * one)
    assert found.latency_s == pytest.approx(end, abs=1e-12)
    assert found.tklqt_s == pytest.approx(tklqt, abs=1e-12)


def metrics_of(evaluator, **design):
    got = evaluator.evaluate(Batch.of([design]))
    assert not got.failures
    return {name: column.item() for name, column in got.columns.items()}


def test_many_launches_of_little_work_are_limited_by_the_host():
    evaluator = KernelLaunches(workload="bert-base:tokens=16", device="h100-sxm", **HOST)
    found = metrics_of(evaluator, batch=1)
    assert found["bound"] == 0
    assert found["launches"] == 12 * (4 * 4 + 1) + 4  # products and three kernels; the pooler
    assert found["latency"] > found["launches"] * 6e-6
    assert metrics_of(evaluator, batch=4096)["bound"] == 1


def test_a_graph_is_one_launch_of_the_same_kernels():
    evaluator = KernelLaunches(workload="bert-base:tokens=16", device="h100-sxm", **HOST)
    eager, graph = (metrics_of(evaluator, batch=1, graph=one) for one in (False, True))
    assert graph["launches"] == 1
    assert graph["kernel_time"] == pytest.approx(eager["kernel_time"])
    assert graph["latency"] == pytest.approx(graph["kernel_time"] + 8e-6)


def test_each_device_has_its_own_host():
    slow = {"host_time": "12 us", "launch_latency": "2 us"}
    hosts = {"h100-sxm": HOST, "a100-sxm-80gb": slow}
    evaluator = KernelLaunches(workload="bert-base:tokens=16", hosts=hosts)
    fast, late = (metrics_of(evaluator, device=name, batch=1)["latency"] for name in hosts)
    assert late == pytest.approx(2 * fast, rel=0.05)


def test_traces_are_chosen_by_name(tmp_path):
    path = written(tmp_path, QUEUED)
    packed = tmp_path / "b8.json.gz"
    packed.write_bytes(gzip.compress(path.read_bytes().replace(b'"dur": 20', b'"dur": 10')))
    evaluator = TracedLaunches(traces={"b1": str(path), "b8": str(packed)})
    found = metrics_of(evaluator, trace="b1")
    assert found["traced_latency"] == pytest.approx(38e-6)
    assert found["replay_error"] == pytest.approx(0, abs=1e-9)
    assert found["launch_time"] + found["queue_time"] == pytest.approx(found["tklqt"])
    assert metrics_of(evaluator, trace="b8")["kernel_time"] == pytest.approx(15e-6)


WRONG_TRACES = [
    ({"traceEvents": []}, "no launch has a kernel"),
    ({"events": []}, "has no 'traceEvents'"),
    (
        {"traceEvents": [{**call(1, correlation=1), "ts": "x"}, kernel(1, 1, 1)]},
        "wrong or missing time",
    ),
    (
        {"traceEvents": [call(1, correlation=1), {**kernel(1, 1, 1), "dur": None}]},
        "wrong or missing time",
    ),
]


@pytest.mark.parametrize(("content", "message"), WRONG_TRACES)
def test_a_trace_without_launches_is_refused(tmp_path, content, message):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(content))
    with pytest.raises(SpecError) as refused:
        TracedLaunches(traces={"b1": str(path)})
    assert message in f"{refused.value.problem} {refused.value.hint}"
    assert refused.value.part == ("traces", "b1")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hosts": {"h100-smx": HOST}}, "h100-sxm"),
        ({"hosts": {"h100-sxm": {"host_tim": 1}}}, "host_time"),
        ({"hosts": {"h100-sxm": {**HOST, "host_time": "6 B"}}}, "host_time"),
        ({"hosts": {"h100-sxm": HOST}, "host_time": "6 us"}, "has no effect beside hosts"),
        ({"hosts": {"h100-sxm": HOST}, "device": "a100-sxm-80gb"}, "has no host"),
        ({"device": "h100-smx", **HOST}, "h100-sxm"),
    ],
)
def test_a_wrong_host_names_the_mend(options, message):
    with pytest.raises(DseError) as refused:
        KernelLaunches(workload="bert-base", **options)
    assert message in f"{refused.value.problem} {refused.value.hint}"


def test_a_missing_trace_is_named():
    with pytest.raises(SpecError, match=r"there is no trace nowhere\.json"):
        TracedLaunches(traces={"b1": "nowhere.json"})
