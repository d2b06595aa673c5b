"""What ``private.bfv`` calls sound decrypts on SEAL, and what it refuses for noise does not."""

from __future__ import annotations

import numpy as np
import pytest

from dse.core.batch import Batch
from dse_evaluators.private_inference.bfv import Bfv
from dse_evaluators.private_inference.bfv_run import BfvRun

SHAPES = (
    {"height": 8, "width": 8, "channels": 6, "filters": 5, "window": 3},
    {"height": 1, "width": 1, "channels": 40, "filters": 10},
    {"height": 16, "width": 16, "channels": 2, "filters": 4, "window": 3},
)
DOMAINS = {
    "ring": [2048, 4096, 8192],
    "data_primes": [1, 2, 3],
    "prime_bits": list(range(27, 55)),
    "plain_bits": list(range(15, 31)),
    "schedule": ["rotate-then-multiply", "multiply-then-rotate", "mixed"],
    "weights_in_ntt": [True, False],
}
WIDTHS = {"weight_bits": 3, "activation_bits": 4}


def _verdicts(rng, wanted):
    """Draw designs until as many are sound and as many refused for noise; read their budgets."""
    sound, noisy = [], []
    while len(sound) < wanted or len(noisy) < wanted:
        shape = SHAPES[rng.integers(len(SHAPES))]
        design = {name: rng.choice(domain).item() for name, domain in DOMAINS.items()}
        batch = Batch.of([{**design, **WIDTHS}])
        failure = Bfv(shape=shape).evaluate(batch).failures.get(0)
        into = sound if failure is None else noisy
        if len(into) == wanted or (failure and not failure.reason.startswith("noise")):
            continue
        found = BfvRun(shape=shape, repeats=1, seed=int(rng.integers(1000))).evaluate(batch)
        into.append(0.0 if found.failures else found.columns["noise_budget"][0])
    return np.array(sound), np.array(noisy)


@pytest.mark.proof
def test_two_hundred_sound_designs_decrypt_and_refused_ones_keep_under_two_bits():
    sound, noisy = _verdicts(np.random.default_rng(27), 200)
    assert (sound > 0).all()
    assert (noisy < 2).mean() >= 0.95
