"""``dse evaluate``: what one design costs and yields, without a study."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from dse.cli.options import Format, FormatOption, StudyFile, show_json, study_path


def evaluate(
    study: StudyFile,
    *,
    values: Annotated[
        list[str] | None,
        typer.Option(
            "--set", "-s", help="parameter=value; what is not set is drawn.", metavar="K=V"
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="For what is not set.")] = 0,
    output: FormatOption = Format.TABLE,
) -> None:
    """Evaluate one design with all evaluators of a study; nothing is stored.

    Example: dse evaluate studies/quickstart.yaml --set chip.rows=16 --set chip.cols=16
    """
    from dse.cli.settings import settings
    from dse.protocols import Task
    from dse.report.words import metric_text, word_of
    from dse.schema.designs import design_of
    from dse.schema.plan import plan_of
    from dse.units import shown

    plan = plan_of(study_path(study))
    space = plan.problem.space
    design = _drawn(space, settings(values or [], space), seed)
    outcome = plan.pipeline([Task(number=0, design=design_of(design, space))])[0]
    broken = _broken(plan.problem, design, outcome)
    metrics = plan.problem.metrics
    if output is Format.JSON:
        show_json(
            {
                "design": dict(design),
                "state": outcome.state.value,
                "reason": outcome.fault.reason if outcome.fault else None,
                "metrics": {
                    name: {
                        "value": value,
                        "unit": metrics[name].unit,
                        "spread": outcome.spread.get(name),
                        "word": word_of(value, metrics[name]),
                    }
                    for name, value in outcome.metrics.items()
                },
                "broken_limits": broken,
                "cost_s": outcome.cost_s,
            }
        )
    else:
        for name, value in design.items():
            unit = space.by_name[name].unit
            typer.echo(f"  {name} = {shown(value, unit) if unit else value}")
        for name, number in outcome.metrics.items():
            typer.echo(f"{name}: {metric_text(number, metrics[name])}")
        for limit in broken:
            typer.echo(f"outside the limit: {limit}")
        if outcome.fault is not None:
            typer.echo(f"{outcome.state.value} ({outcome.fault.kind}): {outcome.fault.reason}")
    if outcome.fault is not None:
        raise typer.Exit(1)


def _broken(problem: Any, design: Any, outcome: Any) -> list[str]:
    """The limits of the study that the design is outside of."""
    from dse.core.trial import Trial
    from dse.report.answer import broken_limits

    return list(broken_limits(problem, [Trial(number=0, design=design).finished(outcome)])[0])


def _drawn(space: Any, fixed: dict[str, Any], seed: int) -> Any:
    """A legal design with these values.

    Raises:
        DesignError: there is none, with what contradicts what.
    """
    import numpy as np

    from dse.core.insight.explain import contradiction
    from dse.errors import DesignError

    try:
        return space.fixed(fixed).sample(1, np.random.default_rng(seed)).design(0)
    except DesignError as error:
        against = [f"{rule.text} ({rule.where or '--set'})" for rule in contradiction(space, fixed)]
        if not against:
            raise
        raise DesignError(
            "no legal design has these values",
            hint="these contradict one another: " + "; ".join(against),
        ) from error
