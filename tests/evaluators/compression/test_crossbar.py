"""Networks on crossbars: cells and converters by hand, and training on a network of one's own."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.compression.crossbar.conductances import Cells
from dse_evaluators.compression.crossbar.converters import Converters
from dse_evaluators.compression.crossbar.crossbar import Crossbar
from tests.evaluators.compression.test_quantization_aware import examples, network


def crossbar(**options):
    return Crossbar(model=network(), data=examples(), quality="accuracy", **options)


def measure(evaluator, **design):
    return evaluator.evaluate(Batch.of([{"noise": 0.0, "adc_bits": 16} | design]))


def test_cells_have_their_levels_and_noise_of_the_largest_weight():
    weight = torch.linspace(-1, 2, 4001)
    chance = torch.Generator().manual_seed(0)
    stored = Cells(levels=5, noise=0).store(weight, chance)
    assert sorted(set(stored.tolist())) == [-1.0, 0.0, 1.0, 2.0]  # of -2, -1, 0, 1, 2
    noise = Cells(levels=0, noise=0.1).store(weight, chance) - weight
    assert float(noise.std()) == pytest.approx(0.2, rel=0.05)


def test_a_converter_rounds_each_crossbars_sums_and_counts_them():
    signal, weight = torch.eye(4)[None], torch.tensor([[0.9, 0.1, -0.2, 1.0]])
    converters = Converters(bits=2, rows=2)
    converters.watch([weight])
    with converters:
        found = functional.linear(signal, weight)
    # levels -0.75, -0.25, 0.25, 0.75; the crossbar without a signal gives the lowest positive one
    assert found.flatten().tolist() == pytest.approx([1.0, 0.5, 0.0, 1.0])
    assert converters.conversions == 8
    assert converters.find_missed({"weight": weight, "other": weight + 1}) == ["other"]


def test_a_convolution_of_groups_with_fine_converters_is_the_convolution():
    torch.manual_seed(0)
    net = nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2)
    signal = torch.rand(2, 4, 7, 7)
    converters = Converters(bits=16, rows=8)
    converters.watch([net.weight])
    with torch.inference_mode(), converters:
        found = net(signal)
    assert converters.conversions == 2 * 6 * 16 * 3  # images, filters, places, crossbars of 8 rows
    torch.testing.assert_close(found, net(signal), atol=1e-3, rtol=0)


def test_training_with_noise_helps_a_network_of_ones_own_on_noisy_cells():
    given = crossbar(draws=10, rate=0.02)
    noisy = {"noise": 0.2, "levels": 4, "adc_bits": 4}
    plain = measure(given, **noisy)
    trained = measure(given, **noisy, steps=40, training_noise=0.2)
    gain = trained.columns["accuracy"][0] - plain.columns["accuracy"][0]
    assert gain > 2 * max(plain.spread["accuracy"][0], trained.spread["accuracy"][0])
    assert plain.columns["conversion_steps"][0] == 16 * plain.columns["conversions"][0]


def test_exact_cells_and_fine_converters_keep_the_accuracy():
    found = measure(crossbar(draws=1)).columns["accuracy"][0]
    inputs, labels = (torch.tensor(one) for one in examples())
    assert found == pytest.approx(
        float((network()(inputs).argmax(1) == labels).float().mean()), abs=0.05
    )


class ByHand(nn.Module):
    """Network that multiplies by the weight of its first layer instead of calling it."""

    def __init__(self):
        super().__init__()
        self.first, self.head = nn.Linear(6, 4), nn.Linear(4, 4)

    def forward(self, signal):
        return self.head(signal @ self.first.weight.mT)


def test_a_layer_that_is_not_computed_as_one_is_named():
    given = {"model": ByHand(), "data": examples(), "quality": "accuracy", "draws": 1}
    failure = measure(Crossbar(**given)).failures[0]
    assert failure.reason.startswith("first.weight cannot run on a crossbar")
    assert not measure(Crossbar(**given, analog="head*")).failures


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"levels": 1}, "one level is constant"),
        ({"analog": "fc*"}, "no layer matches 'fc"),
        ({"adc_bits": 0}, "adc_bits cannot be 0"),
        ({"rate": 2.0}, "rate is 2"),
    ],
)
def test_options_that_mean_nothing_are_refused(options, message):
    with pytest.raises(SpecError, match=message):
        crossbar(**options)


@pytest.mark.parametrize("name", ["training_noise", "training_bits"])
def test_settings_of_a_training_that_no_design_has_are_refused(name):
    given = crossbar(**{name: 1})
    given.check_values({"steps": (0, 500)})
    with pytest.raises(SpecError, match=f"{name} has no effect without training"):
        given.check_values({"noise": (0.1,)})


def test_models_without_gradients_are_refused():
    with pytest.raises(SpecError, match=r"compression\.crossbar cannot train minilm"):
        Crossbar(model="minilm")
