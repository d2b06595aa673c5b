"""Scaled networks have the parameters that their libraries count, and scale as the law states."""

import math

import pytest

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.architectures.scaling_rule import ScaledNetwork


def mbconv(depth, width, stride, kernel, ratio):
    sizes = {"depth": depth, "width": width, "stride": stride, "kernel": kernel, "ratio": ratio}
    return {"block": "mbconv", "squeeze": True, **sizes}


EFFICIENT_NET = [
    {"block": "conv", "width": 32, "stride": 2, "grows": False},
    mbconv(1, 16, 1, 3, 1),
    mbconv(2, 24, 2, 3, 6),
    mbconv(2, 40, 2, 5, 6),
    mbconv(3, 80, 2, 3, 6),
    mbconv(3, 112, 1, 5, 6),
    mbconv(4, 192, 2, 5, 6),
    mbconv(1, 320, 1, 3, 6),
    {"block": "conv", "width": 1280, "kernel": 1, "grows": False},
    {"block": "dense", "width": 1000, "scaled": False},
]


def resnet(depths):
    stages = [
        {"block": "bottleneck", "depth": depth, "width": 64 << place, "stride": 1 + (place > 0)}
        for place, depth in enumerate(depths)
    ]
    head = {"block": "dense", "width": 1000, "scaled": False}
    return [
        {"block": "conv", "width": 64, "kernel": 7, "stride": 2},
        {"block": "pool", "stride": 2},
        *stages,
        head,
    ]


@pytest.mark.parametrize(
    ("width", "depth", "resolution", "parameters"),
    [
        (1.0, 1.0, 224, 5_288_548),
        (1.0, 1.1, 240, 7_794_184),
        (1.1, 1.2, 260, 9_109_994),
        (1.2, 1.4, 300, 12_233_232),
        (1.4, 1.8, 380, 19_341_616),
        (1.6, 2.2, 456, 30_389_784),
        (1.8, 2.6, 528, 43_040_704),
        (2.0, 3.1, 600, 66_347_960),
    ],
)
def test_efficient_nets_have_the_parameters_that_torchvision_counts(
    width, depth, resolution, parameters
):
    design = {"width_scale": width, "depth_scale": depth, "resolution": resolution}
    found = ScaledNetwork(stages=EFFICIENT_NET).evaluate(Batch.of([design]))
    assert found.columns["parameters"][0] == parameters


@pytest.mark.parametrize(
    ("depths", "parameters", "macs"),
    [
        ((3, 4, 6, 3), 25_557_032, 4.09e9),
        ((3, 4, 23, 3), 44_549_160, 7.80e9),
        ((3, 8, 36, 3), 60_192_808, 11.51e9),
    ],
)
def test_resnets_have_the_parameters_and_the_work_that_torchvision_states(depths, parameters, macs):
    found = ScaledNetwork(stages=resnet(depths)).evaluate(Batch.of([{}])).columns
    assert found["parameters"][0] == parameters
    assert found["macs"][0] == pytest.approx(macs, abs=0.005e9)


@pytest.mark.parametrize(("share", "exponent"), [(1 / 3, 0.83), (0.8, 0.60), (1.0, 0.50)])
def test_activations_of_a_plain_network_grow_by_the_published_exponent(share, exponent):
    plain = [{"block": "conv", "depth": 50, "width": 64}]
    made = ScaledNetwork(stages=plain, channels=64, width_share=share)
    one, large = made.evaluate(Batch.of([{"scale": 1}, {"scale": 64}])).columns["activations"]
    assert math.log(large / one) / math.log(64) == pytest.approx(exponent, abs=0.01)


def test_a_stage_with_an_unknown_key_is_refused_with_the_nearest():
    with pytest.raises(SpecError, match="no 'widht'") as caught:
        ScaledNetwork(stages=[{"block": "conv", "widht": 3}])
    assert "width" in caught.value.hint
