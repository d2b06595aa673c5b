"""Time of a request outside the iterations: network, tokenizer, scheduler."""

from __future__ import annotations

from pathlib import Path

from dse_evaluators.fits import fits_in

_FILE = Path(__file__).with_name("front_end.fits.json")

HARNESS_WAVES = 10
"""Requests of the benchmark for each client: InferenceMAX's scripts ask ten times as many as there
are clients (recalled). The mean time to a first token has its first, simultaneous wave in it."""


def overhead_s(clients: float) -> float:
    """Seconds of one request, where so many are on their way at once.

    Source:
        front_end.fits.json: a constant, and more for each client, fitted on Llama-3-70B on H200.
    """
    constants = fits_in(_FILE)["front end"].constants
    return constants["request_s"] + constants["client_s"] * clients
