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
    import numpy as np

    from dse.protocols import Task
    from dse.schema.plan import design_of, plan_of
    from dse.units import shown

    plan = plan_of(study_path(study))
    space = plan.problem.space
    narrowed = space.fixed(_read(values or [], space))
    design = narrowed.sample(1, np.random.default_rng(seed)).design(0)
    outcome = plan.pipeline([Task(number=0, design=design_of(design, space))])[0]
    units = {name: metric.unit for name, metric in plan.problem.metrics.items()}
    if output is Format.JSON:
        show_json(
            {
                "design": dict(design),
                "state": outcome.state.value,
                "reason": outcome.fault.reason if outcome.fault else None,
                "metrics": {
                    name: {"value": value, "unit": units[name], "spread": outcome.spread.get(name)}
                    for name, value in outcome.metrics.items()
                },
                "cost_s": outcome.cost_s,
            }
        )
    else:
        for name, value in design.items():
            unit = space.by_name[name].unit
            typer.echo(f"  {name} = {shown(value, unit) if unit else value}")  # type: ignore[arg-type]
        for name, number in outcome.metrics.items():
            typer.echo(f"{name}: {shown(number, units[name])}")
        if outcome.fault is not None:
            typer.echo(f"{outcome.state.value} ({outcome.fault.kind}): {outcome.fault.reason}")
    if outcome.fault is not None:
        raise typer.Exit(1)


def _read(pairs: list[str], space: Any) -> dict[str, Any]:
    """The values of ``parameter=value`` words, each as its parameter's kind.

    Raises:
        SpecError: a word is no pair, or names no parameter; or a value cannot be read.
        DesignError: a value is not in its parameter's domain.
    """
    from dse.core.parameter import Choice, describe
    from dse.errors import DesignError, SpecError, nearest
    from dse.schema.domains import amount, literal

    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        parameter = space.by_name.get(name.strip())
        if not equals or parameter is None:
            raise SpecError(
                f"--set {pair!r}: expected parameter=value", hint=nearest(name, space.by_name)
            )
        if isinstance(parameter, Choice):
            known = {str(value): value for value in parameter.values}
            known |= {str(v).lower(): v for v in parameter.values if isinstance(v, bool)}
            found[parameter.name] = known.get(text, text)
        else:
            found[parameter.name] = amount(literal(text), parameter.unit).value
        if found[parameter.name] not in parameter:
            raise DesignError(f"{name} cannot be {text}", hint=f"legal: {describe(parameter)}")
    return found
