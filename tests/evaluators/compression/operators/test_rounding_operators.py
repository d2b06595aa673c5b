"""Words chosen with the outputs in view err less there than the nearest words."""

from __future__ import annotations

import numpy as np
import pytest

from dse.errors import EvaluationError
from dse_evaluators.compression.operators.dense import Dense
from dse_evaluators.compression.operators.gptq import Gptq
from dse_evaluators.compression.operators.input_scaling import Awq, smooth_layer, smoothing
from dse_evaluators.compression.operators.inputs import output_error
from dse_evaluators.compression.operators.reading import restore_tensor
from dse_evaluators.compression.operators.rescaled import rescale_weights
from dse_evaluators.formats.names import format_of

FORMATS = ["int4:channel", "int3:group=32,asym", "int2:group=32,asym", "nf4", "mx:e2m1", "nvfp4"]


@pytest.mark.parametrize("text", [*FORMATS, "int4:tensor", "kmeans:3", "posit:6,1", "ternary"])
def test_gptq_errs_less_than_rounding_on_inputs_that_it_saw_and_did_not_see(network, layer, text):
    seen, unseen = (network.inputs("second", x) for x in (network.seen, network.images))
    nearest, chosen = restore_tensor(Dense(text)(layer)), restore_tensor(Gptq(text)(layer, seen))
    assert output_error(layer, chosen, seen) < output_error(layer, nearest, seen)
    assert output_error(layer, chosen, unseen) < output_error(layer, nearest, unseen)


@pytest.mark.parametrize("text", FORMATS)
def test_gptq_takes_no_more_bits_than_rounding(layer, inputs, text):
    assert Gptq(text)(layer, inputs).cost == Dense(text)(layer).cost


def test_gptq_rounds_to_the_nearest_where_inputs_have_nothing_in_common(layer):
    alone = np.eye(128, dtype=np.float32)
    text = "int4:channel"
    assert np.array_equal(
        restore_tensor(Gptq(text)(layer, alone)), restore_tensor(Dense(text)(layer))
    )


def test_gptq_bears_inputs_that_are_never_used(layer):
    assert np.isfinite(
        restore_tensor(Gptq("int4:channel")(layer, np.zeros((3, 128), np.float32)))
    ).all()


def test_gptq_by_hand():
    # Two inputs that are always equal: what the first loses, 0.4 of a step, goes to the second.
    # Steps are of one, since the third weight is the largest number of four bits.
    weight = np.array([[1.4, 1.3, 7.0]], dtype=np.float32)
    seen = np.array([[1, 1, 0], [0, 0, 1]], dtype=np.float32)
    given = restore_tensor(Gptq("int4:channel", damping=1e-9)(weight, seen))
    assert given.tolist() == [[1, 2, 7]]


@pytest.mark.parametrize("text", FORMATS)
def test_awq_errs_no_more_than_rounding_on_the_calibration_inputs(layer, inputs, text):
    nearest, chosen = restore_tensor(Dense(text)(layer)), restore_tensor(Awq(text)(layer, inputs))
    assert output_error(layer, chosen, inputs) <= output_error(layer, nearest, inputs)


def test_awq_errs_much_less_where_few_channels_see_large_inputs(layer, inputs):
    # A hundredth of the channels carries most of the outputs: the paper's premise.
    salient = inputs.copy()
    salient[:, [5, 77]] = 50 * np.random.default_rng(0).standard_normal((len(inputs), 2))
    text = "int3:group=64"
    nearest, chosen = restore_tensor(Dense(text)(layer)), restore_tensor(Awq(text)(layer, salient))
    assert output_error(layer, chosen, salient) < 0.5 * output_error(layer, nearest, salient)


def test_awq_keeps_a_factor_for_each_input_in_single_precision(layer, inputs):
    cost = Awq("int4:group=32")(layer, inputs).cost
    assert cost.fp32 == 32 * 128
    assert cost.payload == 4 * layer.size


def test_smoothing_gives_inputs_and_weights_the_same_largest_values(layer, inputs):
    live = inputs[:, np.abs(inputs).max(axis=0) > 0]
    weight = layer[:, np.abs(inputs).max(axis=0) > 0]
    factors = smoothing(weight, live, 0.5)
    signals, weights = np.abs(live / factors).max(axis=0), np.abs(weight * factors).max(axis=0)
    assert np.allclose(signals, weights, rtol=1e-4)


def _eight_bits(layer, inputs, factors):
    """Outputs with weights and inputs in 8 bits, one scale each."""
    form = format_of("int8:tensor")
    return form.quantize(inputs / factors) @ form.quantize(layer * factors).T


def test_eight_bits_for_weights_and_inputs_err_less_when_outliers_are_smoothed(layer, inputs):
    outliers = inputs.copy()
    outliers[:, inputs.max(axis=0).argmax()] *= 100
    wanted = outliers @ layer.T
    naive = _eight_bits(layer, outliers, np.ones(128, dtype=np.float32))
    smooth = _eight_bits(layer, outliers, smoothing(layer, outliers))
    assert ((smooth - wanted) ** 2).mean() < 0.25 * ((naive - wanted) ** 2).mean()


def test_smoothed_weights_in_single_precision_are_the_weights(layer, inputs):
    record = smooth_layer(layer, inputs, Dense("fp32"))
    assert np.allclose(restore_tensor(record), layer, rtol=1e-6)


def test_a_strength_beyond_one_is_refused(layer, inputs):
    with pytest.raises(EvaluationError, match="not in 0 to 1"):
        smoothing(layer, inputs, 1.5)


@pytest.mark.parametrize("factors", [np.ones(7, np.float32), np.zeros(128, np.float32)])
def test_factors_that_cannot_be_undone_are_refused(layer, factors):
    with pytest.raises(EvaluationError, match="as many positive factors"):
        rescale_weights(layer, factors, Dense("int8"))


@pytest.mark.parametrize("operator", [Gptq("int4:group=48"), Awq("int4:group=48")])
def test_groups_that_do_not_divide_are_refused(layer, inputs, operator):
    with pytest.raises(EvaluationError, match="no multiple of a block of 48"):
        operator(layer, inputs)


@pytest.mark.parametrize("operator", [Gptq("int4:channel"), Awq("int4:channel")])
def test_inputs_of_another_width_are_refused(layer, inputs, operator):
    with pytest.raises(EvaluationError, match="do not fit a layer of 128 inputs"):
        operator(layer, inputs[:, 1:])
