"""A CSV file of GEMMs, timed by the roofline with constants that are known, and drawn noise."""

from __future__ import annotations

import csv
from itertools import product

import numpy as np

from dse_evaluators.accelerators.devices.devices import device_of
from dse_evaluators.accelerators.devices.roofline import RooflineConstants
from dse_evaluators.accelerators.devices.roofline_fit import MeasuredGemms

CONSTANTS = RooflineConstants(
    compute_share=0.6,
    memory_share=0.9,
    exponent=2.0,
    launch_s=8e-6,
    chain_s=5e-10,
    conversion_bytes=3.0,
)
NOISE = 0.03
"""Standard deviation of the logarithm of a time."""

SHAPES = tuple(product((1, 16, 256, 4096), (256, 4096, 16384), (256, 4096, 16384)))
FIELDS = ("m", "n", "k", "dtype", "time_us", "model")


def products(shapes=SHAPES, number_format="bf16"):
    """Rows of a CSV file, as texts by column."""
    m, n, k = np.array(shapes, dtype=float).T
    part = MeasuredGemms(
        sheet=device_of("h100-sxm"),
        format=number_format,
        framework="",
        version="",
        m=m,
        n=n,
        k=k,
        seconds=np.ones(len(m)),
        model=np.full(len(m), ""),
    )
    noise = np.exp(NOISE * np.random.default_rng(23).standard_normal(len(m)))
    seconds = part.predict(CONSTANTS) * noise
    return [
        {
            **{name: str(side) for name, side in zip("mnk", shape, strict=True)},
            "dtype": number_format,
            "time_us": f"{took * 1e6:.4f}",
            "model": f"net{place % 4}",
        }
        for place, (shape, took) in enumerate(zip(shapes, seconds, strict=True))
    ]


def write_products(path, rows=None, fields=FIELDS):
    """Write the rows to a file."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fields, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(products() if rows is None else rows)
