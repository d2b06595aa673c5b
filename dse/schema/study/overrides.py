"""Overrides of a study's budget and executor for one run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from dse.errors import DseError, SpecError, SpecErrors
from dse.schema.models import BudgetSpec, PluginSpec, Quantity
from dse.schema.study.budget import Budget, change_budget
from dse.schema.study.plan import Plan
from dse.schema.study.plugin_checks import AUTO, check_workers
from dse.schema.yaml.python_source import source_of
from dse.schema.yaml.validation import model_of

_ALONE = "serial"
"""Default executor of measured Python functions: this process, with one worker."""


class BudgetOverrides(TypedDict, total=False):
    """Stopping criteria for one run; ``None`` keeps the criterion in the study file."""

    measurements: int | None
    trials: int | None
    time: Quantity | None
    cost: Quantity | None
    min_improvement: Quantity | None
    gap: Quantity | None
    confidence: Quantity | None


def stated_budget(plan: Plan, overrides: BudgetOverrides) -> Budget:
    """Return the plan's budget with the stopping criteria of one run in place of its own.

    Raises:
        SpecError: a number is not above zero or in another unit, or a cost is limited without a
            price.
        SpecErrors: a number of measurements or trials is not an integer above zero.
    """
    stated = {key: value for key, value in overrides.items() if value is not None}
    return change_budget(plan.budget, model_of(BudgetSpec, source_of(stated)))


def budget_of_words(plan: Plan, overrides: BudgetOverrides) -> Budget:
    """Return the plan's budget with the stopping criteria given as command-line options.

    This differs from :func:`stated_budget` only in the location of errors.

    Raises:
        DseError: a bound is invalid; the error's place is the option, such as ``--time``.
    """
    gap = overrides.get("gap")
    for key, value in overrides.items():
        own = {"gap": gap, key: value} if key == "confidence" else {key: value}
        try:
            stated_budget(plan, own)  # type: ignore[arg-type]
        except SpecErrors as errors:
            raise errors.errors[0].at(_option(key)) from errors
        except DseError as error:
            raise error.at(_option(key)) from error
    return stated_budget(plan, overrides)


def _option(key: str) -> str:
    return f"--{key.replace('_', '-')}"


def stated_executor(
    plan: Plan, given: str | Mapping[str, Any] | None, workers: int | None = None
) -> PluginSpec | None:
    """Return the executor for one run; ``None`` if nothing replaces the plan's executor.

    Args:
        plan: the study's plan; an executor of the same name keeps its options.
        given: an executor's name, or a mapping of ``use`` and all its options.
        workers: the number of concurrent evaluations; ``auto``, and the study's own ``serial``,
            become ``processes``.

    Raises:
        SpecError: the mapping names no executor.
    """
    if given is None and workers is None:
        return None
    if isinstance(given, Mapping):
        use, options = _parse_executor(given)
    else:
        use = given or plan.executor.use
        options = plan.executor.options if use == plan.executor.use else {}
    if workers is not None:
        if use == AUTO or (given is None and use == _ALONE):
            use, options = "processes", {k: v for k, v in options.items() if use == AUTO}
        options = {**options, "workers": workers}
    spec = PluginSpec(use=use, **options)
    check_workers(spec)
    return spec


def _parse_executor(given: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    use = given.get("use")
    if not isinstance(use, str):
        hint = 'write {"use": "processes", "workers": 4}'
        raise SpecError(f"{dict(given)!r} names no executor", hint=hint)
    return use, {key: value for key, value in given.items() if key != "use"}
