"""Efficiency constants of serving: fitted to measured services, or assumed of a device."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dse_evaluators.fits import fits_in


@dataclass(frozen=True, slots=True, kw_only=True)
class Efficiency:
    """Achieved shares of a device's peak rates, and the host's overhead per step."""

    memory: float
    """Share of the memory bandwidth."""
    products: float = 0.7
    """Share of the peak GEMM rate: assumed, from prefill alone."""
    attention: float = 0.42
    """Share of the peak GEMM rate in the attention of prompts: assumed, 0.6 of 0.7."""
    step_s: float
    sequence_s: float
    """Host overhead per sequence of a step."""


JUDGED_TEXTS = 25
"""Most sequences in one step of the runs that were validated against a measured service."""


def load_efficiency() -> Efficiency:
    """Return the efficiency constants fitted in ``apex.fits.json``."""
    told = fits_in(Path(__file__).with_name("apex.fits.json"))["vllm-0.6 on h100-sxm"].constants
    return Efficiency(
        memory=told["memory_share"], step_s=told["step_s"], sequence_s=told["sequence_s"]
    )
