"""What a recipe makes of drawn weights: bits counted, and what comes back."""

from __future__ import annotations

import math

import pytest

from dse.core.batch import Batch
from dse.errors import PluginError, SpecError
from dse_evaluators.compression.drawn_matrix import DrawnMatrix


def made(recipe: str, rows: int = 64, columns: int = 128, **design: float):
    matrix = DrawnMatrix(recipe=recipe, rows=rows, columns=columns)
    return matrix.evaluate(Batch.of([design]))


def of(metric: str, recipe: str, **design: float) -> float:
    return float(made(recipe, **design).columns[metric][0])


def test_single_precision_keeps_everything_in_thirty_two_bits():
    columns = made("format fp32").columns
    assert columns["bits_per_weight"][0] == 32
    assert columns["error"][0] == 0
    assert columns["density"][0] == 1


def test_plain_pruning_keeps_the_largest_magnitudes():
    recipe = "prune {kept} > format fp32"
    assert of("density", recipe, kept=0.25) == 0.25
    assert of("kept_magnitude", recipe, kept=0.25) == 1


def test_a_sign_and_one_scale_explain_two_over_pi_of_normal_weights():
    # The best scale is E|w|, and (E|w|)^2 = 2 / pi.
    assert of("error", "xor 32/32") == pytest.approx(1 - 2 / math.pi, abs=0.02)


def test_signs_come_back_right_whatever_the_gates_can_tell():
    assert of("wrong_signs", "prune 0.1 > xor 8/128") == 0


def test_a_mask_of_low_rank_takes_its_rank_times_rows_and_columns():
    bits = of("place_bits_per_weight", "low-rank-mask 4/0.1 > format fp16")
    assert bits * 64 * 128 == 4 * (64 + 128)


def test_codes_and_the_rest_are_all_bits():
    columns = made("prune 0.1 > huffman kmeans:4").columns
    parts = columns["payload_bits_per_weight"][0] + columns["place_bits_per_weight"][0]
    assert parts == pytest.approx(columns["bits_per_weight"][0])


def test_pruning_everything_leaves_nothing():
    assert of("kept_magnitude", "prune 0 > format fp32") == 0


def test_a_recipe_that_does_not_fit_the_matrix_is_a_fault_of_its_design():
    (failure,) = made("blocks 0.5/{side}x4 > format fp16", side=5).failures.values()
    assert failure.kind == "raised"


@pytest.mark.parametrize(
    ("sides", "told"),
    [((0, 4), "rows cannot be 0"), ((4, 1.5), "columns"), ((2**14, 2**13), "cannot be drawn")],
)
def test_a_matrix_that_is_too_small_or_too_large_is_refused(sides, told):
    with pytest.raises((PluginError, SpecError), match=told):
        DrawnMatrix(recipe="keep", rows=sides[0], columns=sides[1])


def test_an_operator_that_needs_inputs_is_told_before_the_run():
    with pytest.raises(SpecError, match="needs calibration inputs"):
        DrawnMatrix(recipe="gptq int4", rows=8, columns=8).check_values({})


def test_a_matrix_that_is_kept_takes_single_precision():
    assert made("keep").columns["bits_per_weight"] == 32


def test_a_text_that_is_no_recipe_is_refused_before_it_runs():
    matrix = DrawnMatrix(recipe="huffman {codes}", rows=8, columns=8)
    with pytest.raises(SpecError, match="no recipe"):
        matrix.check_values({"codes": ("kmeans:4", "kmens:4")})
