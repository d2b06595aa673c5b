"""Low rank: the least error that the rank allows, in the weights or on real inputs."""

from __future__ import annotations

import numpy as np
import pytest

from dse.errors import EvaluationError
from dse_evaluators.compression.operators import cp, sliced, svd, tucker
from dse_evaluators.compression.operators.corrected import correct_layer
from dse_evaluators.compression.operators.dense import FP32, Dense
from dse_evaluators.compression.operators.inputs import output_error
from dse_evaluators.compression.operators.reading import restore_tensor

ROUNDED = 1.0001  # factors are kept in single precision


def _filters(seed=0, shape=(12, 8, 3, 3)):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _of_rank(shape, rank):
    rng = np.random.default_rng(1)
    sides = [rng.standard_normal((length, rank)) for length in shape]
    return np.einsum("ar,br,cr,dr->abcd", *sides).astype(np.float32)


def test_the_error_of_an_svd_is_the_singular_values_left_out(layer):
    lost = layer - restore_tensor(svd.plain(layer, 10))
    values = np.linalg.svd(layer.astype(np.float64), compute_uv=False)
    assert (lost.astype(np.float64) ** 2).sum() == pytest.approx((values[10:] ** 2).sum(), rel=1e-4)


def test_an_svd_costs_its_rank_times_rows_and_columns(layer):
    cost = svd.plain(layer, 10).cost
    assert (cost.fp32, cost.payload, cost.metadata) == (32 * 10 * (64 + 128), 0, 0)


@pytest.mark.parametrize("rank", [1, 4, 10, 30, 63])
def test_a_whitened_svd_errs_less_on_the_inputs_than_a_plain_one(layer, inputs, rank):
    plain = output_error(layer, restore_tensor(svd.plain(layer, rank)), inputs)
    white = output_error(layer, restore_tensor(svd.whiten_weights(layer, inputs, rank)), inputs)
    assert white < plain


def test_no_matrix_of_the_rank_errs_less_than_the_whitened_one(layer, inputs):
    outputs = inputs.astype(np.float64) @ layer.T.astype(np.float64)
    left_out = np.linalg.svd(outputs, compute_uv=False)[10:]
    least = (left_out**2).sum() / outputs.size
    given = output_error(layer, restore_tensor(svd.whiten_weights(layer, inputs, 10)), inputs)
    assert least <= given * ROUNDED
    assert given <= least * ROUNDED


@pytest.mark.parametrize("rank", [0, 65])
def test_a_rank_that_the_matrix_has_not_is_refused(layer, rank):
    with pytest.raises(EvaluationError, match="not in 1 to 64"):
        svd.plain(layer, rank)


def test_inputs_of_another_layer_are_refused(layer, inputs):
    with pytest.raises(EvaluationError, match="do not fit a layer of 128 inputs"):
        svd.whiten_weights(layer, inputs[:, :-1], 4)


def test_tucker_of_full_rank_gives_the_filters_back():
    weight = _filters()
    assert np.allclose(restore_tensor(tucker.tucker_2(weight, 12, 8)), weight, atol=1e-5)


def test_tucker_finds_channels_that_are_mixtures_of_fewer():
    rng = np.random.default_rng(2)
    mix = np.einsum("oa,abhw->obhw", rng.standard_normal((12, 3)), _filters(3, (3, 8, 3, 3)))
    weight = mix.astype(np.float32)
    assert np.allclose(restore_tensor(tucker.tucker_2(weight, 3, 8)), weight, atol=1e-4)


def test_tucker_errs_less_with_more_channels():
    weight = _filters()
    errors = [
        float(((weight - restore_tensor(tucker.tucker_2(weight, out, into))) ** 2).sum())
        for out, into in ((2, 2), (4, 4), (8, 6), (12, 8))
    ]
    assert errors == sorted(errors, reverse=True)


def test_tucker_costs_a_core_and_two_tables():
    cost = tucker.tucker_2(_filters(), 4, 2).cost
    assert cost.fp32 == 32 * (4 * 12 + 2 * 8 + 4 * 2 * 9)


def test_cp_finds_the_vectors_that_filters_were_made_of():
    weight = _of_rank((12, 8, 3, 3), 3)
    lost = weight - restore_tensor(cp.cp(weight, 3))
    assert (lost**2).sum() < 1e-4 * (weight**2).sum()


def test_cp_costs_its_rank_times_all_sides():
    assert cp.cp(_filters(), 5).cost.fp32 == 32 * 5 * (12 + 8 + 3 + 3)


@pytest.mark.parametrize("made", [lambda w: cp.cp(w, 2), lambda w: tucker.tucker_2(w, 2, 2)])
def test_a_matrix_is_no_convolution(layer, made):
    with pytest.raises(EvaluationError, match="not a convolution"):
        made(layer)


def test_a_correction_errs_less_with_its_rank_and_nothing_with_all(layer, inputs):
    short = Dense("int2:group=32,asym")(layer)
    errors = [output_error(layer, restore_tensor(short), inputs)]
    errors += [
        output_error(
            layer,
            restore_tensor(
                correct_layer(layer, short, restore_tensor(short), rank, inputs=inputs, store=FP32)
            ),
            inputs,
        )
        for rank in (2, 8, 32, 64)
    ]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 1e-6 * errors[0]


def test_a_correction_for_the_inputs_errs_less_than_one_for_the_weights(layer, inputs):
    short = Dense("int2:group=32,asym")(layer)
    given = restore_tensor(short)
    blind = restore_tensor(correct_layer(layer, short, given, 8))
    seeing = restore_tensor(correct_layer(layer, short, given, 8, inputs=inputs))
    assert output_error(layer, seeing, inputs) < output_error(layer, blind, inputs)


def test_a_correction_costs_sixteen_bits_a_number_of_its_factors(layer):
    short = Dense("int2:group=32,asym")(layer)
    record = correct_layer(layer, short, restore_tensor(short), 8)
    assert record.cost.stored - short.cost.stored == 16 * 8 * (64 + 128)


def _rms(signal):
    return signal / np.sqrt((signal**2).mean(axis=1, keepdims=True))


def test_a_stream_in_all_its_directions_computes_what_it_did(layer, inputs):
    # A norm, a layer that reads the stream, one that writes it.
    directions = sliced.basis(inputs, 128)
    reads = restore_tensor(sliced.reading(layer, directions))
    writes = restore_tensor(sliced.writing(layer.T.copy(), directions))
    turned = inputs[100:200] @ directions
    plain = np.maximum(_rms(inputs[100:200]) @ layer.T, 0) @ layer
    assert np.allclose(np.maximum(_rms(turned) @ reads.T, 0) @ writes.T, plain @ directions, atol=1e-3)  # fmt: skip


def test_slicing_loses_the_weakest_directions_of_the_stream(inputs):
    directions = sliced.basis(inputs, 100)
    lost = inputs - inputs @ directions @ directions.T
    strengths = np.linalg.svd(inputs.astype(np.float64), compute_uv=False) ** 2
    assert (lost.astype(np.float64) ** 2).sum() == pytest.approx(strengths[100:].sum(), rel=1e-3)


def test_slicing_by_principal_directions_errs_less_than_dropping_inputs(layer, inputs):
    directions = sliced.basis(inputs, 64)
    sliced_layer = restore_tensor(sliced.reading(layer, directions)) @ directions.T
    dropped = layer.copy()
    dropped[:, np.argsort((inputs**2).sum(axis=0))[:64]] = 0
    by_slicing, by_dropping = (
        output_error(layer, given, inputs) for given in (sliced_layer, dropped)
    )
    assert by_slicing < by_dropping


def test_slicing_stores_really_smaller_tables(layer, inputs):
    directions = sliced.basis(inputs, 32)
    reads, writes = sliced.reading(layer, directions), sliced.writing(layer.T.copy(), directions)
    assert (reads.shape, writes.shape) == ((64, 32), (32, 64))
    assert reads.cost.fp32 == 32 * 64 * 32


def test_the_residual_crosses_from_one_blocks_directions_to_the_nexts(inputs):
    before, after = sliced.basis(inputs, 128), sliced.basis(inputs[:300], 40)
    crossed = inputs @ before @ restore_tensor(sliced.crossing(before, after)).T
    assert np.allclose(crossed, inputs @ after, atol=1e-3)


def test_directions_of_another_stream_are_refused(layer, inputs):
    with pytest.raises(EvaluationError, match="do not fit"):
        sliced.reading(layer, sliced.basis(inputs[:, :100], 10))
