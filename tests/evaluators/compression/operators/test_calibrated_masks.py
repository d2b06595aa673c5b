"""Wanda and SparseGPT, against the equations of the papers."""

from __future__ import annotations

import numpy as np
import pytest

from dse.errors import EvaluationError, SpecError
from dse_evaluators.compression.layer_fit import check_fit
from dse_evaluators.compression.operators.inputs import output_error
from dse_evaluators.compression.operators.reading import restore_tensor
from dse_evaluators.compression.operators.recipe import compress_layer, needs_calibration
from dse_evaluators.compression.operators.record import Record

INT4 = "int4:channel,scale=fp32"


def sparsegpt_by_equations(weight, inputs, *, density=0.5, group=None, scales=None):
    """Prune one input at a time by eq. 3 and 4 of SparseGPT, with an explicit inverse Hessian."""
    left = weight.astype(np.float64)
    count = left.shape[1]
    hessian = 2 * inputs.astype(np.float64).T @ inputs
    hessian += 0.01 * np.diag(hessian).mean() * np.eye(count)
    inverses = [np.linalg.inv(hessian[place:, place:]) for place in range(count)]
    first = np.array([inverse[0, 0] for inverse in inverses])
    span = group or 128
    given = np.zeros_like(left)
    for place in range(count):
        if place % span == 0:
            now = slice(place, place + span)
            errors = left[:, now] ** 2 / first[now]
            shape = (-1, span) if group else (1, -1)
            rows = errors.reshape(shape)
            dropped = np.argsort(rows, axis=1)[:, : rows.shape[1] - round(density * rows.shape[1])]
            mask = np.ones(rows.shape)
            np.put_along_axis(mask, dropped, 0, axis=1)
            mask = mask.reshape(errors.shape)
        values = left[:, place]
        if scales is not None:
            values = np.clip(np.rint(values / scales), -7, 7) * scales
        given[:, place] = values * mask[:, place % span]
        lost = (left[:, place] - given[:, place]) / first[place]
        left[:, place:] -= np.outer(lost, inverses[place][0])
    return given


@pytest.fixture(scope="module")
def layer():
    """Return weights (24, 160), and correlated inputs of different magnitudes, for two uses."""
    rng = np.random.default_rng(5)
    spread = rng.normal(size=(160, 160)) * np.exp(0.7 * rng.normal(size=160))
    weight = rng.normal(size=(24, 160)).astype(np.float32)
    seen, unseen = (rng.normal(size=(2, 500, 160)) @ spread).astype(np.float32)
    return weight, seen, unseen


def compress(recipe, layer):
    """Return the weights that a recipe gives, read back from bytes."""
    record = compress_layer(recipe, layer[0], layer[1])
    return restore_tensor(Record.from_bytes(record.to_bytes()))


def test_sparsegpt_of_half_the_weights_equals_the_equations(layer):
    given = compress("prune 0.5/sparsegpt > format fp32", layer)
    assert np.allclose(given, sparsegpt_by_equations(*layer[:2]), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("kept", "of"), [(2, 4), (1, 4), (5, 8), (4, 32)])
def test_sparsegpt_of_n_of_m_equals_the_equations(layer, kept, of):
    given = compress(f"n-of-m {kept}/{of}/sparsegpt > format fp32", layer)
    wanted = sparsegpt_by_equations(*layer[:2], density=kept / of, group=of)
    assert np.allclose(given, wanted, rtol=1e-5, atol=1e-5)
    assert ((given.reshape(-1, of) != 0).sum(axis=1) == kept).all()


def test_sparsegpt_with_gptq_quantizes_in_the_same_pass(layer):
    scales = np.abs(layer[0]).max(axis=1) / np.float32(7)
    given = compress(f"n-of-m 2/4/sparsegpt > gptq {INT4}", layer)
    wanted = sparsegpt_by_equations(*layer[:2], group=4, scales=scales)
    assert np.allclose(given, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("argument", "kept", "of"), [("prune 0.25", 40, 160), ("n-of-m 2/4", 2, 4)]
)
def test_wanda_keeps_the_largest_products_of_weight_and_input_norm(layer, argument, kept, of):
    weight, seen, _ = layer
    scores = np.abs(weight) * np.linalg.norm(seen.astype(np.float64), axis=0)
    ranks = np.argsort(np.argsort(-scores.reshape(-1, of), axis=1), axis=1)
    wanted = np.where(ranks.reshape(weight.shape) < kept, weight, 0)
    assert np.array_equal(compress(f"{argument}/wanda > format fp32", layer), wanted)


def test_methods_rank_as_in_the_papers_on_unseen_inputs(layer):
    error = {
        name: output_error(layer[0], compress(f"n-of-m 2/4/{name} > format fp32", layer), layer[2])
        for name in ("magnitude", "wanda", "sparsegpt")
    }
    assert error["sparsegpt"] < error["wanda"] < error["magnitude"]


def test_gptq_after_a_fixed_mask_compensates_pruning_and_rounding(layer):
    plain = compress("n-of-m 2/4/wanda > masked int4:group=32", layer)
    fitted = compress("n-of-m 2/4/wanda > gptq int4:group=32", layer)
    assert not fitted[plain == 0].any() or (fitted != 0).sum() <= plain.size / 2
    assert output_error(layer[0], fitted, layer[2]) < output_error(layer[0], plain, layer[2])


@pytest.mark.parametrize("method", ["magnitude", "wanda", "sparsegpt"])
@pytest.mark.parametrize("last", ["masked", "gptq"])
def test_size_of_2_of_4_in_int4_is_half_the_codes_two_bits_each_and_scales(layer, method, last):
    record = compress_layer(f"n-of-m 2/4/{method} > {last} int4:channel", *layer[:2])
    kept = layer[0].size // 2
    assert record.cost.payload == 4 * kept
    assert record.cost.metadata == 2 * kept + 16 * len(layer[0])
    assert record.cost.total == 8 * len(record.to_bytes())


def test_magnitude_is_the_method_where_none_is_named(layer):
    for text in ("prune 0.3", "n-of-m 1/2"):
        named = compress(f"{text}/magnitude > format fp16", layer)
        assert np.array_equal(compress(f"{text} > format fp16", layer), named)


@pytest.mark.parametrize(
    ("recipe", "words"),
    [
        ("n-of-m 2/4/wander > format fp16", "no pruning method is called 'wander'"),
        ("n-of-m 2/4/learned > format fp16", "no pruning method is called 'learned'"),
        ("prune 0.5 > prune 0.5/sparsegpt > format fp16", "sparsegpt changes weights"),
        ("masked int4:channel", "none is before it"),
        ("n-of-m 2/4/wanda > awq int4", "cannot follow a pruning operator"),
    ],
)
def test_mistakes_in_recipes_are_named(layer, recipe, words):
    with pytest.raises(SpecError, match=words):
        compress_layer(recipe, *layer[:2])


def test_masks_that_do_not_fit_or_have_no_inputs_are_refused(layer):
    with pytest.raises(EvaluationError, match="160 inputs are no multiple of 7"):
        compress_layer("n-of-m 2/7/wanda > format fp16", *layer[:2])
    with pytest.raises(EvaluationError, match="no multiple of 7"):
        check_fit("n-of-m 2/7/wanda > format fp16", (24, 160))
    with pytest.raises(EvaluationError, match="not in activation order"):
        compress_layer("n-of-m 2/4/sparsegpt > gptq-act-order int4:channel", *layer[:2])
    with pytest.raises(SpecError, match="'wanda' needs calibration inputs"):
        compress_layer("prune 0.5/wanda > format fp16", layer[0])


def test_recipes_that_need_calibration_are_known_by_their_text():
    assert needs_calibration("n-of-m 2/4/wanda > format fp16")
    assert needs_calibration("prune 0.5 > gptq int4:channel")
    assert not needs_calibration("n-of-m 2/4/magnitude > masked int4:channel")
