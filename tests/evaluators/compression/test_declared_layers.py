"""What `compression.recipe` declares: quality is about a sum over layers of their noise."""

import pytest

from dse.core.batch import Batch
from dse_evaluators.compression.recipe_evaluator import ByRecipe
from dse_evaluators.compression.recipe_noise import Noise


def test_each_layer_is_a_part_and_its_noise_the_feature() -> None:
    recipe = "format {bits}"
    measured = ByRecipe(model="digits-cnn", recipe=recipe)
    declared = measured.parts["accuracy"]
    layers = len(declared.groups)
    batch = Batch.of(
        [{f"bits[{place}]": "int4" if place % 2 else "int2" for place in range(layers)}]
    )
    features = declared.features(batch)
    total = Noise(model="digits-cnn", recipe=recipe).evaluate(batch).columns["noise"]
    assert features.shape == (1, layers)
    assert features.mean() == pytest.approx(total[0])
    assert "bits[0]" in declared.groups[0]


def test_the_size_is_no_quality() -> None:
    measured = ByRecipe(model="digits-cnn", recipe="format {bits}")
    assert not {"size", "bits_per_weight"} & measured.parts.keys()
