"""Constants fitted to measured services, and those assumed of a device."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dse_evaluators.fits import fits_in


@dataclass(frozen=True, slots=True, kw_only=True)
class Efficiency:
    """Shares of a device's rates that are reached, and what the host adds to a step."""

    memory: float
    """Of its memory's rate."""
    products: float = 0.7
    """Of its rate of products: assumed, of prompts alone."""
    attention: float = 0.42
    """Of that rate, in the attention of prompts: assumed, 0.6 of 0.7."""
    step_s: float
    sequence_s: float
    """For every text in a step."""


JUDGED_TEXTS = 25
"""The most in one step of a run that was held against a measured service."""


def load_efficiency() -> Efficiency:
    """Return the constants of ``apex.fits.json``."""
    told = fits_in(Path(__file__).with_name("apex.fits.json"))["vllm-0.6 on h100-sxm"].constants
    return Efficiency(
        memory=told["memory_share"], step_s=told["step_s"], sequence_s=told["sequence_s"]
    )
