"""Fit of roofline constants to measured GEMMs, and its relative error on held-out GEMMs."""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, fields, replace

import numpy as np
from scipy.optimize import least_squares

from dse.core.values import Array, Floats, Mask
from dse_evaluators.accelerators.devices.calibrations import (
    MOST_EXPONENT,
    MOST_SHARE,
    RANGES,
    is_plausible,
)
from dse_evaluators.accelerators.devices.devices import Device
from dse_evaluators.accelerators.devices.recipes import RECIPES
from dse_evaluators.accelerators.devices.roofline import KernelWork, RooflineConstants, times

FOLDS = 3
SCALE = 0.1
"""Residuals of the logarithm beyond this count as outliers (soft L1)."""

# Where a fit starts and how far (in the logarithm) it may go at the price of one point's residual
# of SCALE: one prior for all; a version's is what its framework's versions have together.
PRIOR = RooflineConstants(
    compute_share=0.7,
    memory_share=0.75,
    exponent=1.0,  # less 1: two roofs never add up to more than their sum
    launch_s=4e-6,
    chain_s=0.5e-9,
    conversion_bytes=3.0,
)
SPREAD = np.array([0.2, 0.2, 0.7, 0.7, 0.7, 0.5])
WIDE = 2.0

_NAMES = [field.name for field in fields(RooflineConstants)]


@dataclass(frozen=True, kw_only=True)
class MeasuredGemms:
    """Measured times of p GEMMs, (m, k) x (k, n), with one stack, on one device, in one format."""

    sheet: Device
    format: str
    framework: str
    version: str
    m: Floats  # (p,)
    n: Floats  # (p,)
    k: Floats  # (p,)
    seconds: Floats  # (p,)
    model: Array  # (p,), the network that a shape is of, where that is known

    @property
    def device(self) -> str:
        """Name of the device on which the GEMMs were measured."""
        return self.sheet.name

    @property
    def fold(self) -> Array:
        """Cross-validation fold of each GEMM, (p,); equal shapes always have the same fold."""
        shapes = zip(self.m, self.n, self.k, strict=True)
        return np.array([zlib.crc32(f"{m:g},{n:g},{k:g}".encode()) % FOLDS for m, n, k in shapes])

    def take(self, rows: Mask) -> MeasuredGemms:
        """Return the GEMMs where ``rows``, (p,), is true."""
        parts = {name: getattr(self, name)[rows] for name in ("m", "n", "k", "seconds", "model")}
        return replace(self, **parts)

    def work(self) -> KernelWork:
        """Return the flops and bytes of each GEMM."""
        recipe = RECIPES[self.format]
        operands = recipe.operand_bytes * (self.m * self.k + self.k * self.n)
        return KernelWork(
            flops=2 * self.m * self.n * self.k,
            moved_bytes=operands + recipe.result_bytes * self.m * self.n,
            chain=self.k,
            converted=self.m * self.k * recipe.converts,
        )

    def predict(self, constants: RooflineConstants) -> Floats:
        """Return the modelled seconds of each GEMM, (p,)."""
        rate = self.sheet.flops_per_s[RECIPES[self.format].rate]
        found = times(
            self.work(), constants, flops_per_s=rate, bytes_per_s=self.sheet.dram_bytes_per_s
        )
        return found.total_s

    def sheet_roofs(self) -> tuple[Floats, Floats]:
        """Return each GEMM's seconds at the data sheet's compute rate, and at its bandwidth."""
        work = self.work()
        rate = self.sheet.flops_per_s[RECIPES[self.format].rate]
        return work.flops / rate, work.moved_bytes / self.sheet.dram_bytes_per_s

    def naive(self) -> Floats:
        """Return the seconds of each GEMM under the data sheet's roofline, (p,)."""
        return np.maximum(*self.sheet_roofs())

    def naive_errors(self) -> Floats:
        """Return the relative error of the data sheet's roofline for each GEMM, (p,)."""
        return np.abs(self.naive() / self.seconds - 1)


FREE = np.full(len(_NAMES), np.inf)
POSSIBLE = np.log([MOST_SHARE, MOST_SHARE, MOST_EXPONENT - 1, *(np.inf,) * 3])
"""Upper bounds of the logarithms of plausible constants; ``FREE`` are those of any fit."""


def fit_constants(
    parts: Sequence[MeasuredGemms],
    prior: RooflineConstants = PRIOR,
    wide: float = WIDE,
    *,
    most: Floats = FREE,
) -> RooflineConstants:
    """Fit one set of roofline constants to GEMMs by robust least squares with a prior.

    Args:
        parts: the measured GEMMs.
        prior: mode of the prior; constants that the GEMMs do not determine stay near it.
        wide: width of the prior relative to ``SPREAD``.
        most: upper bounds of the logarithms of the constants; for the exponent n, of n - 1.
    """
    middle = np.minimum(np.log(astuple(prior)), most - 1e-6)

    def at(logs: Floats) -> RooflineConstants:
        constants = RooflineConstants(**dict(zip(_NAMES, np.exp(logs).tolist(), strict=True)))
        return replace(constants, exponent=1 + constants.exponent)

    def residuals(logs: Floats) -> Floats:
        off = [np.log(part.predict(at(logs)) / part.seconds) / SCALE for part in parts]
        return np.concatenate([*off, (logs - middle) / (SPREAD * wide)])

    bounds = (np.full_like(most, -np.inf), most)
    found = least_squares(residuals, middle, loss="soft_l1", max_nfev=60, bounds=bounds)
    return at(found.x)


def choose_bounds(family: list[MeasuredGemms], families: Sequence[list[MeasuredGemms]]) -> Floats:
    """Return upper bounds of the logarithms of the constants of all versions of a framework.

    If no version of any framework has plausible constants for this device and format, all are
    fitted within plausible bounds, since otherwise none of these measurements would be used. For
    example, if a cache keeps operands from one run to the next, the memory seems twice as fast as
    it is.
    """
    alike = [each for each in families if _key(each) == _key(family)]
    free = [constants for each in alike for constants in fit_versions(each)]
    return FREE if any(map(is_plausible, free)) else POSSIBLE


def _key(family: list[MeasuredGemms]) -> tuple[str, str]:
    return family[0].device, family[0].format


def fit_versions(parts: list[MeasuredGemms], most: Floats = FREE) -> list[RooflineConstants]:
    """Fit the constants of each version of a framework; the prior is the fit to all versions."""
    together = fit_constants(parts, most=most)
    if len(parts) == 1:
        return [together]
    prior = replace(together, exponent=np.maximum(together.exponent - 1, 1e-3))
    return [fit_constants([part], prior, wide=1.0, most=most) for part in parts]


def compute_held_out_errors(
    parts: list[MeasuredGemms], fold_of: Callable[[MeasuredGemms], Array], most: Floats = FREE
) -> list[Floats]:
    """Return the relative error of each GEMM under constants fitted without the GEMMs of its fold.

    Args:
        parts: versions of one framework.
        fold_of: function of measured GEMMs that returns the fold of each, (p,).
        most: upper bounds, as for :func:`fit_constants`.
    """
    off = [np.full(len(part.m), np.nan) for part in parts]
    for fold in np.unique(np.concatenate([fold_of(part) for part in parts])):
        seen = [part.take(fold_of(part) != fold) for part in parts]
        for part, errors, constants in zip(parts, off, fit_versions(seen, most), strict=True):
            rows = fold_of(part) == fold
            errors[rows] = np.abs(part.predict(constants) / part.seconds - 1)[rows]
    return off


def calibration_row(
    part: MeasuredGemms, constants: RooflineConstants, errors: Floats
) -> dict[str, object]:
    """Return a row of ``calibrations.csv``: constants, held-out errors and ranges of the sizes."""
    values = dict(zip(_NAMES, astuple(constants), strict=True))
    ends = (np.min if name.startswith("least") else np.max for name in RANGES)
    return {
        **{name: getattr(part, name) for name in ("device", "format", "framework", "version")},
        "points": len(part.m),
        **{name: f"{value:.4g}" for name, value in values.items()},
        "heldout_mape": f"{errors.mean():.3f}",
        "heldout_median": f"{np.median(errors):.3f}",
        "naive_mape": f"{part.naive_errors().mean():.3f}",
        **{
            name: f"{end(getattr(part, name[-1])):g}"
            for end, name in zip(ends, RANGES, strict=True)
        },
    }


def group_versions(parts: Sequence[MeasuredGemms]) -> list[list[MeasuredGemms]]:
    """Group measurements of one device and format by framework, as lists of versions."""
    groups = defaultdict[tuple[str, str, str], list[MeasuredGemms]](list)
    for part in parts:
        groups[part.device, part.format, part.framework].append(part)
    return list(groups.values())
