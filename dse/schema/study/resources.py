"""Parsing and checks of the machine resources that a study file states for an evaluator."""

from __future__ import annotations

from dse.errors import SpecError
from dse.evaluation.bound_evaluator import Bound
from dse.schema.models import ResourcesSpec
from dse.schema.space.parameters.domains import amount


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
