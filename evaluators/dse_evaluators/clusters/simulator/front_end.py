"""Time of a request outside of iterations: network, tokenizer and scheduler."""

from __future__ import annotations

from pathlib import Path

from dse_evaluators.fits import fits_in

_FILE = Path(__file__).with_name("front_end.fits.json")

HARNESS_WAVES = 10
"""Requests per client in the InferenceMAX benchmark scripts (quoted from memory). Their mean time
to first token includes the first wave, in which all clients send at once."""


def overhead_s(clients: float) -> float:
    """Return the seconds of one request outside of iterations with ``clients`` concurrent clients.

    Source:
        front_end.fits.json: a constant plus a term per client, fitted on Llama-3-70B on H200.
    """
    constants = fits_in(_FILE)["front end"].constants
    return constants["request_s"] + constants["client_s"] * clients
