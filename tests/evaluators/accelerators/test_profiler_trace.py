"""GEMMs of a trace: operators profiled for real on the CPU, with kernels of known times added."""

from __future__ import annotations

import gzip
import json

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from dse.errors import SpecError
from dse_evaluators.accelerators.devices.devices import device_of
from dse_evaluators.accelerators.devices.measured_gemms import read_measured_gemms
from dse_evaluators.accelerators.devices.profiler_trace import read_traced_gemms

MICROS = {(16, 64, 32): 10.0, (8, 64, 32): 4.0, (64, 64, 128): 30.0}
SHEET = device_of("h100-sxm")


@pytest.fixture(scope="module")
def cpu_trace(tmp_path_factory):
    """Events of PyTorch's profiler of two layers and a product, each run twice."""
    path = tmp_path_factory.mktemp("trace") / "trace.json"
    layer = torch.nn.Linear(32, 64, dtype=torch.bfloat16)
    left = torch.randn(64, 128, dtype=torch.bfloat16)
    profiler = profile(activities=[ProfilerActivity.CPU], record_shapes=True)
    with profiler, torch.inference_mode():
        for _ in range(2):
            layer(torch.randn(16, 32, dtype=torch.bfloat16))
            layer(torch.randn(8, 32, dtype=torch.bfloat16))
            torch.mm(left, torch.randn(128, 64, dtype=torch.bfloat16))
            torch.bmm(torch.randn(2, 4, 4), torch.randn(2, 4, 4))
    profiler.export_chrome_trace(str(path))
    return json.loads(path.read_text())


def with_kernels(trace, *, scale=1.0):
    """The trace as on a GPU: each GEMM launches the copy of a bias, and a kernel of known time."""
    events = list(trace["traceEvents"])
    operators = [
        event for event in events if event.get("name") in ("aten::mm", "aten::addmm", "aten::bmm")
    ]
    for at, event in enumerate(operators):
        left, right = event["args"]["Input Dims"][event["name"] == "aten::addmm" :][:2]
        micros = MICROS.get((left[-2], right[-1], left[-1]), 99.0) * scale
        kernels = (("void at::native::elementwise_kernel<128, 2>", 7.0), ("nvjet_tst_64x8", micros))
        for part, (name, took) in enumerate(kernels):
            place = {"pid": event["pid"], "tid": event["tid"], "ts": event["ts"] + part * 1e-3}
            launch = {"correlation": 2 * at + part}
            events.append(
                {"ph": "X", "cat": "cuda_runtime", "name": "l", "dur": 1e-3, "args": launch} | place
            )
            kernel = {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7}
            events.append(kernel | {"ts": event["ts"] + 50.0, "dur": took, "args": launch})
    return {**trace, "traceEvents": events}


def test_each_gemm_has_the_time_of_its_library_kernels(cpu_trace, tmp_path):
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(json.dumps(with_kernels(cpu_trace)).encode()))
    found = read_traced_gemms(path)
    assert {(one.m, one.n, one.k): one.seconds for one in found} == pytest.approx(
        {shape: micros * 1e-6 for shape, micros in MICROS.items()}
    )
    assert len(found) == 6
    assert {one.format for one in found} == {"bf16"}


def test_equal_gemms_of_a_trace_count_once(cpu_trace, tmp_path):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(with_kernels(cpu_trace)))
    (group,) = read_measured_gemms(path, SHEET)
    assert group.format == "bf16"
    assert sorted(zip(group.m, group.n, group.k, strict=True)) == sorted(MICROS)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda trace: trace, "none of its 6 GEMMs ran on a device"),
        (lambda trace: {"traceEvents": []}, "there is no GEMM in it"),
        (lambda trace: {"events": []}, "has no 'traceEvents'"),
        (lambda trace: with_kernels(trace, scale=1e-6), "times the peak bf16 rate of h100-sxm"),
        (lambda trace: with_kernels(trace, scale=1e6), "times the data sheet's roofline"),
    ],
)
def test_traces_without_times_of_a_device_are_refused(cpu_trace, tmp_path, change, problem):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(change(cpu_trace)))
    with pytest.raises(SpecError, match=problem) as caught:
        read_measured_gemms(path, SHEET)
    assert caught.value.hint


def test_a_trace_without_shapes_names_the_option(cpu_trace, tmp_path):
    bare = with_kernels(cpu_trace)
    for event in bare["traceEvents"]:
        event.get("args", {}).pop("Input Dims", None)
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(bare))
    with pytest.raises(SpecError, match="has no shapes") as caught:
        read_measured_gemms(path, SHEET)
    assert "record_shapes=True" in caught.value.hint


@pytest.mark.parametrize("data", [b"\x1f\x8b\x08broken", b'{"traceEvents": [', b"{" * 5000])
def test_a_damaged_trace_is_one_error(tmp_path, data):
    path = tmp_path / "trace.json"
    path.write_bytes(data)
    with pytest.raises(SpecError, match="cannot be read as a trace"):
        read_measured_gemms(path, SHEET)
