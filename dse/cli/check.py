"""``dse check``: judge files without running what is measured."""

from __future__ import annotations

import re
from collections.abc import Sized
from pathlib import Path
from typing import Annotated, Any

import typer

from dse.cli.options import Format, FormatOption, show_json, study_path
from dse.cli.reproduce import reproduced

_PROBES = 64
_GETS = re.compile(r"dse assets install [\w.-]+")
"""What an evaluator says where a model's files are absent."""

ReproduceOption = Annotated[
    bool, typer.Option("--reproduce", help="Run the studies and judge the claims that they state.")
]
KeptIn = Annotated[
    str | None,
    typer.Option(
        "--storage",
        help="Keep the reproduced studies here, to go on with; else they are forgotten.",
        show_default=False,
    ),
]


def check(
    files: Annotated[list[str], typer.Argument(help="Study and space files.", show_default=False)],
    *,
    reproduce: ReproduceOption = False,
    storage: KeptIn = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Judge study and space files; every mistake is told with its line and how to mend it.

    With --reproduce the studies are run, and the claims of papers that they state are held against
    what comes out: exit code 1 if one does not hold.

    Example: dse check studies/quickstart.yaml spaces/edge_codesign.yaml
    """
    if reproduce:
        reproduced([study_path(file) for file in files], storage, output)
        return
    if storage is not None:
        raise typer.BadParameter("a plain check runs nothing: --storage goes with --reproduce")
    told = [_told_of(file) for file in files]
    if output is Format.JSON:
        show_json(told)
    else:
        _print(told)
    if not all(one["ok"] for one in told):
        raise typer.Exit(2)


def _print(told: list[dict[str, Any]]) -> None:
    for one in told:
        if one["ok"]:
            typer.echo(f"{one['file']}: ok. {one['summary']}")
    broken = [error for one in told for error in one.get("errors", [])]
    for error in broken:
        typer.echo(f"error: {error['message']}", err=True)
    if broken:
        typer.echo(f"{len(broken)} mistake{'s' if len(broken) > 1 else ''}", err=True)


def _told_of(file: str) -> dict[str, Any]:
    from dse.errors import DseError, SpecErrors

    try:
        return {"file": file, "ok": True, **_judged(study_path(file))}
    except DseError as error:
        errors = error.errors if isinstance(error, SpecErrors) else (error,)
        told = [
            {"problem": e.problem, "where": e.where, "hint": e.hint, "message": str(e)}
            for e in errors
        ]
        return {"file": file, "ok": False, "errors": told}


def _judged(path: Path) -> dict[str, Any]:
    from dse.schema.files import Files

    value = Files().source(path).value
    if "study" in value or "evaluators" in value or "objectives" in value:
        return _study(path)
    return _space(path)


def _space(path: Path) -> dict[str, Any]:
    from dse.schema.files import Files
    from dse.schema.space import space_of

    space = space_of(path, Files())
    count = space.count()
    return {
        "designs": count,
        "summary": f"{_counted(space.parameters, 'parameter')}, {_told(count)}",
    }


def _study(path: Path) -> dict[str, Any]:
    from dse.schema.plan import plan_of

    plan = plan_of(path)
    problem = plan.problem
    count = problem.space.count()
    kinds = {
        kind: [b.label for b in plan.pipeline.bound if b.evaluator.kind == kind]
        for kind in ("modelled", "measured")
    }
    notes = _probed(problem, path)
    summary = (
        f"{_counted(problem.space.parameters, 'parameter')}, {_told(count)}; "
        + "; ".join(f"{kind}: {', '.join(names)}" for kind, names in kinds.items() if names)
        + f"; {_counted(problem.objectives, 'objective')}"
        + f", {_counted(problem.limits, 'limit')}"
        + (f", {_counted(plan.claims, 'claim')}" if plan.claims else "")
        + notes
    )
    return {"designs": count, **kinds, "summary": summary}


def _probed(problem: Any, path: Path) -> str:
    """Run the modelled evaluators on a few designs: what they cannot read shows here."""
    from dse.errors import SpecError
    from dse.schema.source import shown

    metrics = problem.known(problem.space.sample(_PROBES, problem.rng(0)))
    broken = [fault for fault in metrics.faults.values() if fault.kind != "infeasible"]
    absent = next((_GETS.search(fault.reason) for fault in broken), None)
    if absent:  # no mistake of the study's, which may be run on another machine
        return f"; not tried before `{absent[0]}`"
    if broken:
        raise SpecError(
            f"a modelled evaluator fails on {len(broken)} of {_PROBES} random designs: "
            f"{broken[0].reason}",
            where=shown(path),
        )
    impossible = len(metrics.faults)
    return f"; {impossible} of {_PROBES} random designs are infeasible" if impossible else ""


def _counted(things: Sized, noun: str) -> str:
    return f"{len(things)} {noun}{'' if len(things) == 1 else 's'}"


def _told(count: int | None) -> str:
    if count is None:
        return "legal designs not countable"
    return f"{count:,} legal design{'' if count == 1 else 's'}"
