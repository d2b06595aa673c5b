"""``dse evaluate``: metrics and cost of one design, without storing a trial."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from dse.cli.options import JsonOrTableOption, OutputFormat, StudyFile, show_json, study_path
from dse.system.credentials import private_environment


def evaluate(
    study: StudyFile,
    *,
    values: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            "-s",
            help="parameter=value; parameters that are not set are drawn at random.",
            metavar="K=V",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random values.")] = 0,
    output: JsonOrTableOption = OutputFormat.TABLE,
) -> None:
    """Evaluate one design with all evaluators of a study; nothing is stored.

    Example: dse evaluate studies/quickstart.yaml --set chip.rows=16 --set chip.cols=16
    """
    from dse.cli.output import evaluated
    from dse.cli.settings import settings
    from dse.protocols import Task
    from dse.report.text.terminal_table import print_lines
    from dse.schema.study.designs import design_of
    from dse.schema.study.measured_baselines import with_modelled_baselines
    from dse.schema.study.plan import plan_of

    plan = with_modelled_baselines(plan_of(study_path(study)))
    space = plan.problem.space
    design = _draw_design(space, settings(values or [], space), seed)
    with private_environment():
        outcome = plan.pipeline([Task(number=0, design=design_of(design, space))])[0]
    if output is OutputFormat.JSON:
        show_json(evaluated.json(plan.problem, design, outcome))
    else:
        print_lines(evaluated.lines(plan.problem, design, outcome))
    if outcome.failure is not None:
        raise typer.Exit(1)


def _draw_design(space: Any, fixed: dict[str, Any], seed: int) -> Any:
    """Draw a legal design that has the given parameter values.

    Raises:
        DesignError: no legal design has these values; the hint lists rules that contradict one
            another.
    """
    import numpy as np

    from dse.core.inspection.rule_conflicts import contradiction
    from dse.errors import DesignError
    from dse.report.text.space_words import rule_text

    try:
        return space.fixed(fixed).sample(1, np.random.default_rng(seed)).design(0)
    except DesignError as error:
        against = [rule_text(space, rule) for rule in contradiction(space, fixed)]
        if not against:
            raise
        raise DesignError(
            "no legal design has these values",
            hint="these contradict one another: " + "; ".join(against),
        ) from error
