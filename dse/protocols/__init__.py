"""Interfaces of the four kinds of plug-ins: evaluators, optimizers, executors and storages.

Each protocol lists laws: requirements that every implementation must meet. Each law has a contract
test in :mod:`dse.testing`.
"""

from dse.protocols.evaluator import COHERENT, EVERYTHING, Evaluator
from dse.protocols.executor import Executor, Needs, Task, Work
from dse.protocols.optimizer import Optimizer
from dse.protocols.storage import (
    NEW,
    PLAIN,
    Queueing,
    Storage,
    StudyReader,
    SupportsReading,
    SupportsSummaries,
)

__all__ = [
    "COHERENT",
    "EVERYTHING",
    "NEW",
    "PLAIN",
    "Evaluator",
    "Executor",
    "Needs",
    "Optimizer",
    "Queueing",
    "Storage",
    "StudyReader",
    "SupportsReading",
    "SupportsSummaries",
    "Task",
    "Work",
]
