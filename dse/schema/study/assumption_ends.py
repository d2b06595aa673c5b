"""Plans for a one-at-a-time sensitivity analysis of a study's assumptions.

Each plan sets one assumption to one end of its interval.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dse.errors import DseError, SpecError
from dse.schema.models import Scalar
from dse.schema.study.assumptions import Assumption, assumed_documents
from dse.schema.study.plan import Plan, plan_of
from dse.schema.yaml.files import Files


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Run of the sensitivity analysis: one assumption, set to one end of its interval.

    ``study`` is the name of the study that is run with the changed assumption.
    """

    assumption: Assumption
    end: Scalar
    study: str


def turns_of(plan: Plan, name: str) -> list[Turn]:
    """Return the runs of the sensitivity analysis: one per end of each assumption's interval.

    Args:
        plan: the study's plan.
        name: the study's name, the prefix of the names of the new studies.
    """
    return [
        Turn(assumption=one, end=end, study=f"{name}.assumes.{place}.{side}")
        for place, one in enumerate(plan.assumptions, 1)
        for side, end in enumerate(one.ends, 1)
    ]


def turned_plan(plan: Plan, turn: Turn) -> Plan:
    """Return the study's plan with one assumption set to an end of its interval.

    Raises:
        SpecErrors: the study is invalid with this value, for example because a baseline is
            infeasible.
    """
    files = Files(kept=plan.texts)
    spec = files.source(plan.path).value
    documents = turn.assumption.turned(assumed_documents(spec, plan.path, files), turn.end)
    return plan_of(
        plan.path,
        kept=plan.texts,
        seed=plan.problem.seed,
        optimizer=plan.optimizer,
        documents=documents,
        objects=plan.objects,
    )


def impossible_ends(plan: Plan) -> Iterator[SpecError]:
    """Yield an error for each end of an assumption's interval for which the study is invalid.

    Args:
        plan: the study's plan, with the texts of its files.
    """
    source = Files(kept=plan.texts).source(plan.path)
    for turn in turns_of(plan, plan.name):
        try:
            turned_plan(plan, turn)
        except DseError as error:
            place = plan.assumptions.index(turn.assumption)
            first = str(error).partition("\n")[0]
            yield SpecError(
                f"the study cannot be run where {turn.assumption.spec.name!r} is {turn.end!r}: "
                f"{first}",
                where=source.place(["assumes", place, "interval"]),
                hint="choose an end that the evaluator accepts and the space contains",
            )
