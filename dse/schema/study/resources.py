"""Resources that an evaluator needs of its machine: from the file's text to numbers."""

from __future__ import annotations

from dse.errors import SpecError
from dse.evaluation.bound_evaluator import Bound
from dse.schema.models import ResourcesSpec
from dse.schema.space.parameters.domains import amount


def gpus_of(spec: ResourcesSpec) -> float:
    """The GPUs, or the share of one.

    Raises:
        SpecError: it is a share of several.
    """
    gpu = spec.gpu or 0.0
    if gpu > 1 and gpu != int(gpu):
        raise SpecError(
            f"{gpu:g} GPUs cannot be given to one task", hint="a share of one, or whole ones"
        )
    return gpu


def memory_of(spec: ResourcesSpec) -> int:
    """Return the memory in bytes; 0 where none is stated.

    Raises:
        SpecError: it is no quantity of bytes.
    """
    if spec.memory is None:
        return 0
    try:
        memory = int(amount(spec.memory, "B").value)
    except SpecError as error:
        raise SpecError(f"{spec.memory!r} is no memory", hint="memory: 8 GiB") from error
    if memory <= 0:
        raise SpecError(f"{spec.memory!r} is no memory to run in", hint="memory: 8 GiB")
    return memory


def check_exclusive(bound: Bound) -> None:
    """Nothing, if it is measured. Raises SpecError where nothing is timed."""
    if bound.evaluator.kind == "modelled":
        raise SpecError(
            f"{bound.name} is modelled: nothing can disturb it",
            hint="leave 'exclusive' out; it is for what is measured",
        )
