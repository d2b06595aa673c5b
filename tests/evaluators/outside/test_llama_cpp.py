"""The real server of llama.cpp: one start for all request-side inputs, and nothing left behind."""

from __future__ import annotations

import os
import signal

import psutil
import pytest

from dse.core.batch import Batch
from dse.errors import PluginError, SpecError
from dse_evaluators.outside.servers.llama_cpp import LlamaCpp
from dse_evaluators.outside.servers.random_gguf import shape_of, write_random_model

SHAPE = {"layers": 1, "width": 64, "heads": 4, "kv_heads": 2, "ffn": 128}
TRAFFIC = {"requests": 4, "prompt_tokens": [8, 32], "output_tokens": 6}


def servers() -> list[int]:
    own = psutil.Process().children(recursive=True)
    return [one.pid for one in own if any("llama_server.py" in word for word in one.cmdline())]


@pytest.fixture
def made():
    pytest.importorskip("xllamacpp")
    evaluator = LlamaCpp(model=SHAPE, traffic=TRAFFIC, repeats=2)
    yield evaluator
    evaluator.close()
    assert not servers()


def test_request_side_inputs_share_one_start(made):
    metrics = made.evaluate(
        Batch.of([{"clients": 1}, {"clients": 2}, {"clients": 2, "rate": 50.0}])
    )
    started = servers()
    assert not metrics.failures
    assert len(started) == 1
    for name in ("ttft", "tpot", "throughput", "memory"):
        assert (metrics.columns[name] > 0.0).all(), name
    assert (metrics.columns["ttft_p99"] >= metrics.columns["ttft_p50"]).all()
    assert metrics.spread["throughput"].min() >= 0.0
    made.evaluate(Batch.of([{"clients": 1, "ubatch": 16}]))
    assert len(servers()) == 1
    assert servers() != started


def test_what_cannot_be_served_is_infeasible_without_a_start(made):
    rows = [
        {"context": 64, "parallel": 2},
        {"ubatch": 64, "batch": 32},
        {"kv_type_v": "q8_0", "flash_attention": "off"},
    ]
    failures = made.evaluate(Batch.of(rows)).failures
    assert [failures[row].kind for row in range(3)] == ["infeasible"] * 3
    assert "32 tokens for each of 2 slots" in failures[0].reason
    assert not servers()


def test_a_killed_server_costs_at_most_one_design(made):
    made.evaluate(Batch.of([{"clients": 1}]))
    os.kill(servers()[0], signal.SIGKILL)
    first = made.evaluate(Batch.of([{"clients": 1}])).failures
    assert {failure.kind for failure in first.values()} <= {"lost"}, (
        "an engine repeats a lost trial"
    )
    assert not made.evaluate(Batch.of([{"clients": 1}])).failures


def test_a_damaged_file_is_one_failure_with_the_servers_last_words(tmp_path):
    pytest.importorskip("xllamacpp")
    (tmp_path / "broken.gguf").write_bytes(b"GGUF" + bytes(64))
    made = LlamaCpp(model=str(tmp_path / "broken.gguf"), traffic=TRAFFIC)
    failure = made.evaluate(Batch.of([{"clients": 1}])).failures[0]
    assert failure.kind == "crashed"
    assert "broken.gguf" in failure.reason
    assert not servers()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"model": "absent.gguf"}, "absent.gguf"),
        ({"model": {"layer": 1}}, "no 'layer'"),
        ({"model": {"width": 30}}, "heads do not divide"),
        ({"models": {"q8_0": "absent.gguf"}}, "models is 'absent.gguf'"),
        ({"models": {"q8_0": "a.gguf"}, "model": SHAPE}, "both model and models"),
        ({"models": {}}, "models is {}"),
        ({"traffic": {"promt_tokens": 3}}, "no 'promt_tokens'"),
        ({"traffic": {"file": "a.csv", "requests": 3}}, "'requests' has no effect"),
        ({"traffic": {"prompt_tokens": [9, 3]}}, "prompt_tokens is"),
        ({"inputs": {"thread": 1}}, "no input 'thread'"),
        ({"repeats": 0}, "repeats is 0"),
    ],
)
def test_a_bad_option_is_one_clear_error(options, words):
    with pytest.raises(PluginError, match=words):
        LlamaCpp(**options)


def test_a_bad_row_of_a_traffic_file_is_named_with_its_line(tmp_path):
    file = tmp_path / "lengths.csv"
    file.write_text("prompt_tokens,output_tokens\n8,4\n8,many\n")
    with pytest.raises(SpecError, match=r"lengths.csv:3: output_tokens is 'many'"):
        LlamaCpp(traffic={"file": str(file)})
    file.write_text("prompt_tokens,output_tokens\n8,4\n16,2\n")
    assert LlamaCpp(traffic={"file": str(file)})._traffic.longest == 18


def test_files_by_format_are_served_in_their_size(tmp_path):
    pytest.importorskip("xllamacpp")
    gguf = pytest.importorskip("gguf")
    files = {name: tmp_path / f"{name}.gguf" for name in ("f16", "q8_0")}
    for name, path in files.items():
        write_random_model(path, shape_of(SHAPE), weight_format=name)
    kinds = {
        name: {str(one.name): one.tensor_type.name for one in gguf.GGUFReader(path).tensors}
        for name, path in files.items()
    }
    assert kinds["f16"]["blk.0.ffn_up.weight"] == "F16"
    assert kinds["q8_0"]["blk.0.ffn_up.weight"] == "Q8_0"
    assert kinds["q8_0"]["output_norm.weight"] == "F32"
    models = {name: str(path) for name, path in files.items()}
    made = LlamaCpp(models=models, traffic=TRAFFIC, repeats=1)
    assert made.reads == {"weight_format"}
    metrics = made.evaluate(Batch.of([{"weight_format": name} for name in files]))
    made.close()
    assert not metrics.failures
    assert metrics.columns["model_size"].tolist() == [one.stat().st_size for one in files.values()]


def test_formats_in_blocks_need_widths_of_whole_blocks():
    made = LlamaCpp(model={**SHAPE, "width": 80, "heads": 4, "kv_heads": 2})
    with pytest.raises(SpecError, match="weight_format"):
        made.check_values({"weight_format": ["f16", "q4_0"]})
    LlamaCpp(model=SHAPE).check_values({"weight_format": ["f16", "q4_0"]})
