"""Nested paths of hybrid models: orders, means over the footprint, and steps."""

from __future__ import annotations

import numpy as np
import pytest

from dse.errors import SpecError
from dse_evaluators.compression import recipe_runner
from dse_evaluators.compression.replacement_path import ReplacementPath, average_over
from dse_evaluators.workloads.models import model_of
from dse_evaluators.workloads.workload import Signals

WIDE, NARROW = "format int8:channel", "format int2:channel"


def path(**design):
    found = ReplacementPath(model="digits-cnn", wide=WIDE, narrow=NARROW)
    return found._measure_path(design)


def pure(recipe):
    layers = model_of("digits-cnn").layers
    return recipe_runner.measure_recipes(
        "digits-cnn", dict.fromkeys(layers, recipe), "search", Signals()
    )


def test_the_mean_is_the_area_under_the_path_over_its_width():
    sizes, values = np.array([10.0, 7.0, 6.0]), np.array([1.0, 2.0, 4.0])
    assert average_over(sizes, values) == pytest.approx((3 * 1.5 + 1 * 3) / 4)
    assert average_over(sizes, np.ones(3)) == 1.0


@pytest.mark.proof
def test_steps_lead_from_one_pure_model_to_the_other():
    found, wide, narrow = path(order="model"), pure(WIDE), pure(NARROW)
    assert found["switch_step"] == wide["size"] - narrow["size"]
    assert found["storage"] == wide["size"] + narrow["size"]
    assert found["mean_step"] == pytest.approx(found["switch_step"] / 5)
    assert found["mean_step"] <= found["largest_step"] <= found["switch_step"]
    assert wide["deviation"] < found["deviation"] < narrow["deviation"]


@pytest.mark.proof
def test_the_least_sensitive_first_is_better_than_the_most_sensitive_first():
    by_order = {one: path(order=one)["deviation"] for one in ("sensitivity", "reverse", "model")}
    assert by_order["sensitivity"] < by_order["reverse"]
    assert by_order["sensitivity"] <= by_order["model"]


@pytest.mark.proof
def test_a_random_order_is_that_of_its_seed():
    one, again, other = (path(order="random", order_seed=seed) for seed in (1, 1, 2))
    assert one == again
    assert one["deviation"] != other["deviation"]


def test_a_recipe_that_does_not_exist_is_refused():
    with pytest.raises(SpecError, match="is no recipe"):
        ReplacementPath(model="digits-cnn", narrow="formt int3")
