"""Every method that is more than a baseline beats random search on problems with known fronts."""

import numpy as np
import pytest

from dse import registry
from dse.testing.known import played
from dse.testing.problems import mixed_reals, tiny_codesign, zdt1

SEEDS = range(5)


def _median(make, name, budget, seeds=SEEDS):
    shares = []
    for seed in seeds:
        known = make().seeded(seed)
        optimizer = registry.make("optimizers", name, known.problem)
        shares.append(known.share(played(known, optimizer, budget)))
    return float(np.median(shares))


@pytest.mark.slow
@pytest.mark.parametrize("make", [zdt1, mixed_reals, tiny_codesign])
def test_nsga2_beats_random_search(make):
    assert _median(make, "nsga2", 240) > _median(make, "random", 240)


@pytest.mark.proof
@pytest.mark.parametrize("make", [zdt1, mixed_reals])
def test_qlognehvi_beats_random_search(make):
    assert _median(make, "qlognehvi", 18) > _median(make, "random", 18)


@pytest.mark.proof
def test_ax_beats_random_search():
    assert _median(zdt1, "ax", 14, seeds=range(3)) > _median(zdt1, "random", 14)
