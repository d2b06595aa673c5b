"""Sections ``retries`` and ``resources`` of a study file: limits of retries, needs of machines."""

from __future__ import annotations

from collections.abc import Mapping

from dse.core.metric import FaultKind
from dse.errors import SpecError
from dse.evaluation.bound_evaluator import Bound
from dse.evaluation.retries import RETRIES
from dse.schema.models import Quantity, ResourcesSpec, RetriesSpec
from dse.schema.space.parameters.domains import amount
from dse.storage.patience import PATIENCE_S


def retries_of(spec: RetriesSpec) -> Mapping[FaultKind, int]:
    """Return the maximum number of retries for each kind of failure, stated or default."""
    stated: dict[FaultKind, int | None] = {
        "lost": spec.lost,
        "crashed": spec.crashed,
        "memory": spec.memory,
        "timeout": spec.timeout,
        "raised": spec.raised,
        "invalid": spec.invalid,
    }
    return {**RETRIES, **{kind: count for kind, count in stated.items() if count is not None}}


def patience_of(stated: Quantity | None) -> float:
    """Return the time in seconds for which a run waits for an unavailable storage.

    Args:
        stated: a time such as ``15 min``; a bare number is in seconds; 0 disables waiting.

    Raises:
        SpecError: the value is negative, or not a time.
    """
    if stated is None:
        return PATIENCE_S
    hint = "storage_patience: 15 min; 0 disables waiting"
    try:
        seconds = float(amount(stated, "s").value)
    except SpecError as error:
        raise SpecError(f"{stated!r} is no time to wait for a storage", hint=hint) from error
    if seconds < 0:
        raise SpecError(f"the time to wait for a storage is negative: {stated}", hint=hint)
    return seconds


def gpus_of(spec: ResourcesSpec) -> float:
    """Return the number of GPUs that an evaluator needs; below 1, the fraction of one GPU.

    Raises:
        SpecError: the number is above 1 and not whole.
    """
    gpu = spec.gpu or 0.0
    if gpu > 1 and gpu != int(gpu):
        raise SpecError(
            f"{gpu:g} GPUs cannot be given to one task",
            hint="state a fraction of one GPU, or a whole number",
        )
    return gpu


def memory_of(spec: ResourcesSpec) -> int:
    """Return the memory that an evaluator needs in bytes; 0 where none is stated.

    Raises:
        SpecError: the text is not a quantity in bytes, or not above zero.
    """
    if spec.memory is None:
        return 0
    try:
        memory = int(amount(spec.memory, "B").value)
    except SpecError as error:
        raise SpecError(f"{spec.memory!r} is not a memory size", hint="memory: 8 GiB") from error
    if memory <= 0:
        raise SpecError(f"{spec.memory!r} is not a positive memory size", hint="memory: 8 GiB")
    return memory


def check_exclusive(bound: Bound) -> None:
    """Raise SpecError if an exclusive evaluator is modelled.

    Only measurements can be disturbed by other processes.
    """
    if bound.evaluator.kind == "modelled":
        raise SpecError(
            f"{bound.name} is modelled: other programs cannot disturb its results",
            hint="remove 'exclusive'; it applies to measured evaluators",
        )
