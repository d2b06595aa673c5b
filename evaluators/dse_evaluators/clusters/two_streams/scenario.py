"""Step times and memory of n parallelization plans for one model and one task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dse.core.batch import Batch
from dse.core.values import Floats
from dse.errors import SpecError, nearest
from dse_evaluators.alike import groups
from dse_evaluators.clusters.two_streams.iteration import memory_bytes, times
from dse_evaluators.clusters.two_streams.layer_units import TwoStreamsModel
from dse_evaluators.clusters.two_streams.layout_plan import TwoStreamsPlan
from dse_evaluators.clusters.two_streams.order import IterationTask, Order, order
from dse_evaluators.clusters.two_streams.strategies import DENSE, EMBEDDING
from dse_evaluators.clusters.two_streams.work_time import TwoStreamsJob

TASKS = ("pretrain", "finetune", "inference")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Model and training task, with a cache of step orders by parallel layout."""

    model: TwoStreamsModel
    task: IterationTask
    sharded_sums: bool = False
    orders: dict[tuple[str, str], Order] = field(default_factory=dict)

    def spent(self, batch: Batch, plan: TwoStreamsPlan) -> Mapping[str, Floats]:
        """Return iteration times [s], memory [B], data-parallel copies and levels by name, (n,)."""
        found: dict[str, Floats] = {}
        usual = {"dense": "", "embedding": self.model.tables}
        for (dense, embedding), rows in groups(batch, usual):
            for name, values in self._strategy(plan.take(rows), dense, embedding).items():
                found.setdefault(name, np.empty(len(batch)))[rows] = values
        return found

    def _strategy(self, plan: TwoStreamsPlan, dense: str, embedding: str) -> Mapping[str, Floats]:
        """Return times, memory and copies as :meth:`spent`, for plans with one parallel layout."""
        ways = DENSE[dense], EMBEDDING[embedding]
        if (dense, embedding) not in self.orders:
            self.orders[dense, embedding] = order(self.model, *ways, self.task)
        job = TwoStreamsJob(
            model=self.model,
            dense=plan.layout(ways[0]),
            embedding=plan.layout(ways[1]),
            rates=plan.rates,
            global_batch=plan.global_batch,
            sharded_sums=self.sharded_sums,
        )
        took = times(job, self.orders[dense, embedding])
        return {
            **{f"{name}_time": each for name, each in took.items()},
            **{f"{name}_memory": each for name, each in memory_bytes(job, self.task).items()},
            "copies": job.dense.copies,
            "table_copies": job.embedding.copies,
            "levels": np.full_like(plan.nodes, max(map(len, ways))),
        }


def task_of(
    model: TwoStreamsModel, name: str, frozen: Sequence[str] | None, *, ahead: bool
) -> IterationTask:
    """Return the task of a name; ``finetune`` without ``frozen`` freezes the embedding tables.

    Raises:
        SpecError: ``frozen`` has an unknown stack or all stacks, or the task is not fine-tuning.
    """
    if name != "finetune":
        if frozen:
            raise SpecError(
                f"frozen is {list(frozen)}, but the task is {name}", hint="task: finetune"
            )
        return IterationTask(learns=name != "inference", ahead=ahead)
    parts = (*model.stacks, *(("embedding",) if model.lookup_bytes else ()))
    frozen_parts = {"embedding"} & set(parts) if frozen is None else set(frozen)
    for one in sorted(frozen_parts - set(parts)):
        raise SpecError(f"frozen cannot be {one!r}", hint=nearest(one, parts))
    if frozen_parts == set(parts):
        raise SpecError("every part is frozen", hint=f"leave out one of: {', '.join(parts)}")
    return IterationTask(frozen=frozenset(frozen_parts), ahead=ahead)
