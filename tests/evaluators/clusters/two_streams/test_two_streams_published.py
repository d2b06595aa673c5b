"""Recommenders, language and diffusion models against published rates, sizes and counts."""

from __future__ import annotations

import numpy as np
import pytest

from dse.core.batch import Batch
from dse_evaluators.clusters.two_streams.model_table import _FITS, model_of
from dse_evaluators.clusters.two_streams.two_streams import TwoStreams

# Pictures a second of the U-Net alone, by the side of a picture and the number of A100:
# mosaicml/diffusion (Apache-2.0), README.
MOSAIC = {
    256: {8: 1100, 16: 2180, 32: 4080, 64: 8530, 128: 11600},
    512: {8: 290, 16: 585, 32: 1195, 64: 2340, 128: 4590},
}


def metric(name, design, **options):
    one = TwoStreams(**options).evaluate(Batch.of([{"dense": "ddp", "nodes": 16} | design]))
    return float(one.columns[name][0]), one.failures.get(0)


# Hsia et al., ISCA 2024, sheets of the artifact: thousands of samples of DLRM-A a second, in the
# digits that it prints.
@pytest.mark.parametrize(
    ("system", "nodes", "dense", "printed"),
    [
        ("aws-p4d", 64, "fsdp", 670),
        ("aws-p4d", 64, "ddp", 980),
        ("aws-p4d", 64, "tp-ddp", 940),
        ("aws-p5", 64, "fsdp", 1390),
        ("aws-p5", 64, "ddp", 2080),
        ("aws-p5", 64, "tp-ddp", 1970),
        ("aws-p5", 8, "fsdp", 590),
        ("aws-p5", 8, "ddp", 760),
        ("aws-p5", 8, "tp-ddp", 640),
        ("aws-p5", 16, "fsdp", 1000),
        ("aws-p5", 16, "ddp", 1430),
        ("aws-p5", 16, "tp-ddp", 1240),
    ],
)
def test_the_artifacts_rates_on_rented_clusters_come_out(system, nodes, dense, printed):
    ours, failure = metric(
        "throughput", {"dense": dense, "nodes": nodes}, model="dlrm-a", system=system
    )
    assert failure is None
    assert ours / 1e3 == pytest.approx(printed, abs=5)


# The same, column of memory: gigabytes of weights on a device, three times which are needed.
@pytest.mark.parametrize(
    ("nodes", "dense", "printed"), [(64, "fsdp", 3.13), (64, "ddp", 4.40), (8, "fsdp", 25.05)]
)
def test_the_artifacts_memory_comes_out(nodes, dense, printed):
    design = {"dense": dense, "nodes": nodes}
    ours, _ = metric("memory", design, model="dlrm-a", system="aws-p5")
    assert ours / 3e9 == pytest.approx(printed, abs=0.005)


def test_data_parallelism_of_dlrm_a_does_not_fit_into_40_gigabytes_and_says_by_how_much():
    _, failure = metric("memory", {}, model="dlrm-a", system="zionex")
    assert failure.reason == "needs 38.5 GiB of memory, has 37.3 GiB: 1.2 GiB short"


# Peebles and Xie, ICCV 2023, table 1 (Gflops of a forward pass, where a multiplication and an
# addition are one) and section 4.
@pytest.mark.parametrize(
    ("model", "gigamacs", "digits"),
    [
        ("dit-b", 23.0, 0.05),
        ("dit-l", 80.7, 0.05),
        ("dit-xl", 118.6, 0.05),
        ("dit-xl-512", 524.6, 0.2),
    ],
)
def test_diffusion_transformers_have_the_operations_that_their_paper_prints(
    model, gigamacs, digits
):
    operations = sum(unit.operations for unit in model_of(model).units)
    assert operations / 2e9 == pytest.approx(gigamacs, abs=digits)


def pictures_off(side, devices):
    nodes = {"nodes": devices // 8}
    ours, _ = metric("throughput", nodes, model=f"sd-unet-{side}", system="zionex")
    return abs(ours / MOSAIC[side][devices] - 1)


@pytest.mark.parametrize("side", MOSAIC)
def test_the_share_of_the_peak_is_that_of_the_points_it_was_fitted_to(side):
    assert _FITS[f"sd-unet-{side}"].fitted_on == (f"{side}x{side}, 8 A100",)
    assert pictures_off(side, 8) < 1e-3


@pytest.mark.parametrize("side", MOSAIC)
def test_the_error_on_points_it_was_not_fitted_to_is_the_one_that_is_told(side):
    fit = _FITS[f"sd-unet-{side}"]
    judged = [devices for devices in MOSAIC[side] if devices > 8]
    errors = [pictures_off(side, devices) for devices in judged]
    assert fit.judged_on == tuple(f"{side}x{side}, {devices} A100" for devices in judged)
    assert np.mean(errors) == pytest.approx(fit.judged_mean, abs=5e-4)
    assert max(errors) == pytest.approx(fit.judged_max, abs=5e-4)
