"""Time of collective operations, and its constants as measured within one node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np

from dse.core.values import Floats
from dse.errors import SpecError, nearest
from dse_evaluators.csv_files.csv_records import read_rows, record_of

Collective = Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv"]

COLLECTIVES: tuple[Collective, ...] = (
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "all_to_all",
    "send_recv",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveConstants:
    """Latency, bandwidth and pipelining of a collective among some ranks on a fabric.

    ``pipelining`` is the coefficient p of :func:`seconds`: 0 is latency plus transfer time alone, 1
    the cost of a pipeline with the optimal number of pieces.
    """

    latency_s: float
    bytes_per_s: float
    """Rate of a link, defined as NCCL's bus bandwidth."""
    pipelining: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstantColumns:
    """Constants of n collectives, as in :class:`CollectiveConstants`; every field is (n,)."""

    latency_s: Floats
    bytes_per_s: Floats
    pipelining: Floats

    @staticmethod
    def by_ranks(known: Sequence[CollectiveConstants]) -> ConstantColumns:
        """Return the constants for 0, 1, 2, ... ranks; ``known`` are the constants from 2 ranks on.

        With fewer than two ranks nothing is sent: latency 0 and infinite bandwidth.
        """
        return ConstantColumns(
            latency_s=np.array([0.0, 0.0, *(one.latency_s for one in known)]),
            bytes_per_s=np.array([np.inf, np.inf, *(one.bytes_per_s for one in known)]),
            pipelining=np.array([0.0, 0.0, *(one.pipelining for one in known)]),
        )

    def take(self, ranks: Floats) -> ConstantColumns:
        """Return the constants of a collective for each number of ranks, (n,)."""
        places = ranks.astype(np.intp)
        return ConstantColumns(
            latency_s=self.latency_s[places],
            bytes_per_s=self.bytes_per_s[places],
            pipelining=self.pipelining[places],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveCalibration:
    """Fitted constants of a collective, with the array sizes of the fit and of its validation."""

    constants: CollectiveConstants
    fitted_bytes: tuple[int, ...]
    judged_bytes: tuple[int, ...]
    judged_mape: float
    source: str


def compute_link_share(collective: Collective, ranks: Floats | int) -> Floats:
    """Return the bytes that a link carries in a collective, as a multiple of the array size.

    Source:
        Thakur, Rabenseifner, Gropp: Optimization of Collective Communication Operations in MPICH,
        2005, sections 3-4 (ring algorithms); NCCL tests, "bus bandwidth".
    """
    share = (np.asarray(ranks, dtype=np.float64) - 1.0) / ranks
    return {"all_reduce": 2.0 * share, "send_recv": np.ones_like(share)}.get(collective, share)


def seconds(
    collective: Collective,
    size_bytes: Floats,
    ranks: Floats | int,
    constants: CollectiveConstants | ConstantColumns,
) -> Floats:
    """Return the time [s] of a collective over an array of ``size_bytes``; 0 with one rank.

    The time is ``a + F S / B + 2 p sqrt(a F S / B)`` with latency a, link share F, size S,
    bandwidth B and pipelining p. With p = 1 the time is ``(sqrt(a) + sqrt(F S / B)) ** 2``, the
    cost of the optimal pipeline.

    Source:
        Johnsson, Ho: Optimum Broadcasting and Personalized Communication in Hypercubes, 1989,
        section 3 (the optimal packet size gives the root); Thakur 2005 for the rest.
    """
    moved_s = compute_link_share(collective, ranks) * size_bytes / constants.bytes_per_s
    piped_s = 2.0 * constants.pipelining * np.sqrt(constants.latency_s * moved_s)
    return np.where(np.asarray(ranks) > 1, constants.latency_s + moved_s + piped_s, 0.0)


@cache
def calibrations() -> Mapping[tuple[str, Collective, int], CollectiveCalibration]:
    """Return the fitted constants of collectives within one node.

    They are keyed by fabric, collective and number of ranks.
    """
    return {
        (row["fabric"], _collective(row["collective"]), int(row["ranks"])): CollectiveCalibration(
            constants=record_of(row, CollectiveConstants),
            fitted_bytes=tuple(map(int, row["fitted_bytes"].split())),
            judged_bytes=tuple(map(int, row["judged_bytes"].split())),
            judged_mape=float(row["judged_mape"]),
            source=row["source"],
        )
        for row in read_rows(Path(__file__).with_name("collectives.csv"))
    }


def has_measurement(fabric: str, collective: Collective) -> bool:
    """Return whether the collective was measured on the fabric."""
    return any(key[:2] == (fabric, collective) for key in calibrations())


def constants_of(fabric: str, collective: Collective, ranks: int) -> CollectiveConstants:
    """Return a collective's constants for the smallest measured rank count of at least ``ranks``.

    If all measured rank counts are smaller, return the constants of the largest.

    Raises:
        SpecError: the fabric has no measurements of this collective.
    """
    known = [key for key in calibrations() if key[:2] == (fabric, collective)]
    if not known:
        fabrics = {key[0] for key in calibrations()}
        raise SpecError(
            f"{collective} was not measured on the fabric {fabric!r}", hint=nearest(fabric, fabrics)
        )
    enough = [key for key in known if key[2] >= ranks]
    best = min(enough, key=_ranks) if enough else max(known, key=_ranks)
    return calibrations()[best].constants


def _ranks(key: tuple[str, Collective, int]) -> int:
    return key[2]


def _collective(word: str) -> Collective:
    return next(one for one in COLLECTIVES if one == word)
