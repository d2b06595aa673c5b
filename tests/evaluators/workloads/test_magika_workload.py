"""Magika's bytes, files and network: the same as its package's own, and the same everywhere."""

from __future__ import annotations

import numpy as np
import pytest

from dse.errors import EvaluationError
from dse_evaluators.formats.names import format_of
from dse_evaluators.workloads.magika_files import PACKAGES, Window
from dse_evaluators.workloads.workload import Signals

WINDOW = Window(beginning=4, end=3, block_bytes=8, padding=256)


@pytest.fixture(scope="module")
def workload(asset):
    pytest.importorskip("onnxruntime", reason="needs the extra 'onnx'")
    pytest.importorskip("onnx", reason="needs the extra 'onnx'")
    folders = [asset(name) for name in PACKAGES]
    assert folders
    from dse_evaluators.workloads.magika import magika

    return magika()


@pytest.mark.parametrize(
    ("content", "seen"),
    [
        (b"abcdefgh", [97, 98, 99, 100, 102, 103, 104]),
        (b"  ab  ", [97, 98, 256, 256, 256, 97, 98]),
        (b"a", [97, 256, 256, 256, 256, 256, 97]),
        (b"0123456789abcdef", [48, 49, 50, 51, 100, 101, 102]),
        # of a file longer than a block, each end is stripped on its outer side alone
        (b" 2345678       9", [50, 51, 52, 53, 32, 32, 57]),
        (b"          12345 ", [256, 256, 256, 256, 51, 52, 53]),
    ],
    ids=["whole", "short", "one byte", "long", "inner space", "nothing at the beginning"],
)
def test_the_window_is_both_ends_without_outer_white_space(tmp_path, content, seen) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    assert WINDOW.of_file(path).tolist() == seen


def test_the_files_are_the_same_everywhere(workload) -> None:
    counts = {
        part: len(workload.examples(part).labels) for part in ("search", "test", "calibration")
    }
    assert counts == {"search": 70, "test": 66, "calibration": 33}


def test_no_file_is_in_two_parts(workload) -> None:
    parts = [workload.examples(part).tokens for part in ("search", "test", "calibration")]
    rows = np.concatenate(parts)
    assert len(np.unique(rows, axis=0)) == len(rows)


@pytest.mark.slow
def test_the_network_knows_nine_files_of_ten(workload) -> None:
    outputs = workload.outputs(workload.parameters, "search", Signals())
    told = workload.quality(outputs, outputs, "search")
    assert told["accuracy"] == pytest.approx(63 / 70)
    assert (told["divergence"], told["mismatch"]) == (0, 0)


@pytest.mark.slow
def test_other_weights_say_other_things(workload) -> None:
    rounded = dict(workload.parameters)
    rounded["conv.weight"] = format_of("int3:tensor").quantize(rounded["conv.weight"])
    whole = workload.outputs(workload.parameters, "test", Signals())
    told = workload.quality(workload.outputs(rounded, "test", Signals()), whole, "test")
    assert told["divergence"] > 0


def test_its_own_weights_put_back_are_the_same_model(workload) -> None:
    from dse_evaluators.workloads.onnx_runtime import all_initializers

    found = all_initializers(workload.with_parameters(workload.parameters))
    whole = all_initializers(workload.model)
    assert found.keys() == whole.keys()
    assert all(np.array_equal(found[name], whole[name]) for name in whole)


@pytest.mark.slow
def test_calibration_inputs_times_weights_are_the_layers_outputs(workload) -> None:
    from dse_evaluators.workloads.onnx_runtime import Session, with_outputs

    name = "jax2tf_get_logits_/pjit_get_logits_/MagikaV2/Dense_1/MatMul:0"
    session = Session(with_outputs(workload.model, [name]))
    tokens = workload.examples("calibration").tokens[:4]
    logits = np.concatenate([session.run(row[None])[0] for row in tokens])
    inputs = workload.calibration()["dense.weight"][:4]
    assert inputs @ workload.parameters["dense.weight"].T == pytest.approx(logits, abs=1e-4)


@pytest.mark.slow
def test_calibration_inputs_of_the_convolution_are_its_windows(workload) -> None:
    from dse_evaluators.workloads.onnx_runtime import Session, with_outputs

    name = "jax2tf_get_logits_/pjit_get_logits_/MagikaV2/Conv_0/Conv2D:0"
    session = Session(with_outputs(workload.model, [name]))
    signal = session.run(workload.examples("calibration").tokens[:1])[0].reshape(512, -1)
    inputs = workload.calibration()["conv.weight"][:16]
    found = inputs @ workload.parameters["conv.weight"].reshape(512, -1).T
    assert found == pytest.approx(signal[:, ::32][:, :16].T, abs=1e-3)


def test_rounded_activations_change_the_outputs_by_the_width_of_their_format(workload) -> None:
    whole = workload.outputs(workload.parameters, "search", Signals())
    errors = []
    for text in ("int8:channel", "int3:channel"):
        signals = Signals(activations=format_of(text))
        found = workload.outputs(workload.parameters, "search", signals)
        errors.append(np.abs(np.exp(found) - np.exp(whole)).mean())
    assert 0 < 10 * errors[0] < errors[1]


def test_cache_cannot_be_rounded(workload) -> None:
    with pytest.raises(EvaluationError, match="no attention"):
        workload.outputs(workload.parameters, "search", Signals(kv_cache=format_of("int8")))


def test_weights_of_another_shape_are_refused(workload) -> None:
    changed = {**workload.parameters, "dense.bias": np.zeros((1, 3), dtype=np.float32)}
    with pytest.raises(EvaluationError, match="cannot have the shape"):
        workload.outputs(changed, "search", Signals())
