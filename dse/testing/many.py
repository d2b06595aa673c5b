"""Scalable many-objective benchmark problem (DTLZ2), whose front is part of a sphere."""

from __future__ import annotations

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Kind, Metrics
from dse.core.parameter import Real
from dse.core.space import DesignSpace
from dse.testing.known import Known, problem_of

_SEEN = 2_000
"""Number of points that sample the front."""


def dtlz2(objectives: int = 6, extra: int = 4, kind: Kind = "measured") -> Known:
    """Return DTLZ2 over reals; on its front the squares of the losses sum to one.

    Args:
        objectives: number of objectives.
        extra: number of distance parameters, which are 0.5 on the front.
        kind: kind of all metrics.

    Source:
        Deb, Thiele, Laumanns, Zitzler: Scalable Test Problems for Evolutionary Multiobjective
        Optimization, 2005, eq. 9.
    """
    names = [f"x{place}" for place in range(objectives - 1 + extra)]
    losses = [f"f{place}" for place in range(objectives)]

    def truth(batch: Batch) -> Metrics:
        x = np.column_stack([batch[name] for name in names])
        angles = x[:, : objectives - 1] * np.pi / 2
        radius = 1 + ((x[:, objectives - 1 :] - 0.5) ** 2).sum(axis=1)
        columns = {}
        for place, name in enumerate(losses):
            last = objectives - 1 - place
            columns[name] = radius * np.cos(angles[:, :last]).prod(axis=1)
            if place:
                columns[name] = columns[name] * np.sin(angles[:, last])
        return Metrics(columns=columns)

    front = np.abs(np.random.default_rng(0).normal(size=(_SEEN, objectives)))
    return Known(
        problem=problem_of(
            DesignSpace(parameters=tuple(Real(name=name, low=0.0, high=1.0) for name in names)),
            dict.fromkeys(losses, kind),
            dict.fromkeys(losses, "minimize"),
            truth,
        ),
        truth=truth,
        front=front / np.linalg.norm(front, axis=1, keepdims=True),
        reference=np.full(objectives, 1.5),
    )
