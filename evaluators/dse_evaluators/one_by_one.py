"""Evaluation of designs one at a time, so that a result does not depend on the batch."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Failure, Metrics
from dse.core.values import Value
from dse.errors import DseError, InfeasibleError


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Measured metrics of one design, and the standard errors of those metrics that have one."""

    values: Mapping[str, float]
    errors: Mapping[str, float] = field(default_factory=dict)


def one_by_one(
    batch: Batch,
    provides: Collection[str],
    measured: Callable[[Mapping[str, Value]], Found | Mapping[str, float]],
    uncertain: Collection[str] = (),
) -> Metrics:
    """Measure each design of a batch separately; an error fails that design only.

    An InfeasibleError makes the design infeasible, any other DseError makes it fail with the kind
    ``raised``. Other exceptions propagate.

    Args:
        batch: the designs.
        provides: the names of the metrics.
        measured: measures one design and returns its metrics, as :class:`Found` if some have
            standard errors.
        uncertain: the names of the metrics that have a standard error.
    """
    columns = {name: np.full(len(batch), np.nan) for name in provides}
    spread = {name: np.full(len(batch), np.nan) for name in uncertain}
    failures: dict[int, Failure] = {}
    for row in range(len(batch)):
        try:
            answer = measured(batch.row(row))
        except InfeasibleError as error:
            failures[row] = Failure(kind="infeasible", reason=error.problem)
            continue
        except DseError as error:
            failures[row] = Failure(kind="raised", reason=str(error))
            continue
        found = answer if isinstance(answer, Found) else Found(values=answer)
        for name, value in found.values.items():
            columns[name][row] = value
        for name, error_of in found.errors.items():
            spread[name][row] = error_of
    return Metrics(columns=columns, spread=spread, failures=failures)
