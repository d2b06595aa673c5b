"""What recipes do to weights, as a hint of what they do to outputs."""

import numpy as np
import pytest

from dse.core.batch import Batch
from dse_evaluators.compression.recipe_noise import Noise
from dse_evaluators.formats.names import format_of
from dse_evaluators.workloads.models import workload_of


@pytest.fixture
def weights() -> list[np.ndarray]:
    model = workload_of("digits-cnn")
    return [model.parameters[name] for name in model.compressible]


def off(weight: np.ndarray, text: str) -> float:
    lost = format_of(text).quantize(weight, tuple(range(1, weight.ndim))) - weight
    return float((lost.astype(float) ** 2).sum() / (weight.astype(float) ** 2).sum())


@pytest.mark.slow
def test_noise_is_the_mean_over_the_layers_of_what_each_is_off_by(weights):
    mixed = {"bits[0]": "int8", "bits[1]": "int4", "bits[2]": "fp:e2m1", "bits[3]": "int3"}
    mixed["bits[4]"] = "int6:channel"
    found = Noise(model="digits-cnn", recipe="format {bits}").evaluate(Batch.of([mixed]))
    pairs = zip(weights, mixed.values(), strict=True)
    wanted = np.mean([off(weight, text) for weight, text in pairs])
    assert found.columns["noise"][0] == pytest.approx(wanted, rel=1e-6)
    assert found.columns["sqnr_db"][0] == pytest.approx(-10 * np.log10(wanted), rel=1e-6)


@pytest.mark.slow
def test_more_bits_are_less_noise():
    batch = Batch.of([{"bits": text} for text in ("keep", "format int8", "format int4")])
    found = Noise(model="digits-cnn", recipe="{bits}").evaluate(batch).columns
    assert found["noise"][0] == 0
    assert (np.diff(found["noise"]) > 0).all()
    assert (np.diff(found["sqnr_db"]) < 0).all()
