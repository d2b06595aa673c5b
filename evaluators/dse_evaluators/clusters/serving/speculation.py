"""Speculative decoding: mean number of tokens per verification step."""

from __future__ import annotations

import numpy as np

from dse.core.values import Floats


def count_tokens(guesses: Floats, acceptance: float) -> Floats:
    """Return the mean number of tokens of one verification step, (n,).

    ``(1 - a^(k + 1)) / (1 - a)``: each of k draft tokens is accepted with probability a if all
    earlier ones were; the target model supplies the token after the last accepted one.

    Source:
        Leviathan, Kalman, Matias: Fast Inference from Transformers via Speculative Decoding, 2023,
        equation 1.
    """
    if acceptance == 1.0:
        return guesses + 1.0
    return (1.0 - np.power(acceptance, guesses + 1.0)) / (1.0 - acceptance)
