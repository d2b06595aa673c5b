"""Option ``thinking`` of a study's optimizer: its share of the cost of a measurement."""

from __future__ import annotations

from contextlib import suppress

from dse.core.problem import Problem
from dse.errors import DseError, SpecError
from dse.protocols import AdjustsEffort
from dse.registry import load, names
from dse.schema.models import OptimizerSpec
from dse.schema.space.parameters.domains import amount
from dse.schema.study.python_optimizers import Objects, knows_optimizer, load_optimizer

_KEY = "thinking"
_AUTO = "auto"


def thinking_of(spec: OptimizerSpec) -> float | None:
    """Return the greatest cost of a suggestion as a share of a measurement; ``None`` if not set.

    Raises:
        SpecError: it is no number above zero, or has a unit.
    """
    if spec.thinking is None:
        return None
    try:
        share = float(amount(spec.thinking, "1").value)
    except SpecError as error:
        problem = f"{spec.thinking!r} is no share of the cost of a measurement"
        raise SpecError(problem, hint="thinking: 10 %", part=[_KEY]) from error
    if not share > 0:
        problem = f"thinking is {spec.thinking}, but must be above zero"
        raise SpecError(problem, hint="thinking: 10 %", part=[_KEY])
    return share


def check_thinking(spec: OptimizerSpec, problem: Problem | None, objects: Objects) -> None:
    """Check that the option ``thinking`` is valid and has an effect.

    Args:
        spec: the optimizer's settings.
        problem: the study's problem; ``None`` if it has errors.
        objects: the study's Python objects.

    Raises:
        SpecError: it is no share, the optimizer has a single level of effort, or nothing is
            measured.
    """
    if thinking_of(spec) is None:
        return
    if spec.use != _AUTO and knows_optimizer(spec.use, objects):
        optimizer = load_optimizer(spec.use, objects)
        if not isinstance(optimizer, AdjustsEffort):
            raise SpecError(
                f"thinking has no effect with the optimizer {spec.use!r}, which has no cheaper way",
                hint=f"remove it, or use one of: {', '.join(_adjustable())}",
                part=[_KEY],
            )
    if problem is not None and not problem.measured:
        raise SpecError(
            "thinking has no effect: objectives and limits read no measured metric",
            hint="remove it",
            part=[_KEY],
        )


def _adjustable() -> list[str]:
    """Return the names of the installed optimizers that have several levels of effort."""
    found = [_AUTO]
    for name in sorted(names("optimizers")):
        with suppress(DseError):  # it cannot be loaded here
            found += [name] if isinstance(load("optimizers", name), AdjustsEffort) else []
    return found
