"""Evaluation of a batch of designs by an external program, one design at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dse.core.batch import Batch
from dse.core.design import nest_members
from dse.core.metric import Failure, Metrics
from dse.core.values import Value
from dse.errors import InfeasibleError
from dse_evaluators.generic.answer import Answer, columns_of
from dse_evaluators.outside.service import ExternalService


def evaluate_designs(
    batch: Batch,
    service: ExternalService,
    names: Sequence[str],
    shown: Callable[[Mapping[str, Value]], Mapping[str, Any]],
) -> Metrics:
    """Return the metrics of n designs that an external program evaluates.

    A failure of the program affects one design only.

    Args:
        batch: the designs.
        service: client of the program.
        names: the metrics that the program returns.
        shown: function from a design to the inputs to send to the program; a design for which it
            raises InfeasibleError is infeasible.
    """

    def answer(design: Mapping[str, Value]) -> Answer:
        try:
            request = shown(design)
        except InfeasibleError as error:
            return Failure(kind="infeasible", reason=error.problem)
        return service.answer(nest_members(request), names)

    return columns_of([answer(batch.row(row)) for row in range(len(batch))], names)
