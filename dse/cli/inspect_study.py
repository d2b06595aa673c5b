"""``dse status``, ``dse front`` and ``dse trials``: what a study knows."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from dse.cli.options import (
    Format,
    FormatOption,
    NameArgument,
    OutputOption,
    StorageOption,
    format_of,
    say,
    show_json,
)
from dse.cli.results import write_result


def status(
    name: Annotated[str | None, typer.Argument(help="A study; without, all.")] = None,
    *,
    storage: StorageOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """How far a study is: trials by state, measurements, hypervolume, what happened.

    Example: dse status quickstart
    """
    from dse.study import DEFAULT_STORAGE, Study, opened_storage

    opened = opened_storage(storage or DEFAULT_STORAGE)
    names = [name] if name is not None else opened.studies()
    told = [_state(Study.load(one, opened)) for one in names]
    if output is Format.JSON:
        show_json(told[0] if name is not None else told)
        return
    if not told:
        say(f"no studies in {storage or DEFAULT_STORAGE}; begin one with: dse run STUDY.yaml")
    for one in told:
        _print_state(one)


def front(
    name: NameArgument,
    *,
    storage: StorageOption = None,
    output: FormatOption = Format.TABLE,
    file: OutputOption = None,
) -> None:
    """The designs that no other beats.

    Example: dse front quickstart --format json
    """
    from dse.analysis.membership import membership
    from dse.core.pareto import ParetoSet
    from dse.report import doubt, export, fidelity, scenarios, sheet, table
    from dse.study import Study

    study = Study.load(name, storage)
    output = format_of(output, file)
    finished = study.finished
    front = ParetoSet.of(study.problem, finished)
    contrast = study.contrast
    chances = membership(study.problem, finished)
    if output is Format.TABLE:
        table.front_table(front, finished, exact=study.exact)
        if contrast is not None:
            scenarios.contrast_table(contrast)
        typer.echo(doubt.doubt_words(chances), nl=bool(chances))
        fidelity.rungs_table(fidelity.rungs(study.problem, finished))
        return
    told = export.front_json(study.name, front, finished, exact=study.exact)
    if contrast is not None:
        told["scenarios"] = scenarios.contrast_json(contrast)
    if chances:
        told["membership"] = {str(number): chance for number, chance in chances.items()}
    if study.problem.ladders:
        told["fidelities"] = fidelity.rungs_json(fidelity.rungs(study.problem, finished))
    write_result(output, file, told, lambda: sheet.front_columns(front, finished))


def trials(
    name: NameArgument,
    *,
    storage: StorageOption = None,
    output: FormatOption = Format.TABLE,
    file: OutputOption = None,
) -> None:
    """All trials, with their state and the reason of each that failed.

    Example: dse trials quickstart --format csv -o trials.csv
    """
    from dse.report import export, sheet, table
    from dse.study import Study

    study = Study.load(name, storage)
    output = format_of(output, file)
    if output is Format.TABLE:
        table.trials_table(study.problem, study.trials)
        return
    told = export.trials_json(study.name, study.problem, study.trials)
    write_result(output, file, told, lambda: sheet.trials_columns(study.problem, study.trials))


def _state(study: Any) -> dict[str, Any]:
    from collections import Counter

    from dse.core.pareto import ParetoSet
    from dse.drivers.liveness import gone

    trials = study.trials
    front = ParetoSet.of(study.problem, trials.finished)
    return {
        "study": study.name,
        "question": study.plan.question,
        "trials": {state.value: count for state, count in trials.counts.items()},
        "measurements": int((trials.measured > 0).sum()),
        "seconds": float(trials.cost_s.sum()),
        "front": len(front.trials),
        "hypervolume": front.hypervolume,
        "exact": study.exact,
        "failures": dict(Counter(fault.kind for fault in trials.faults if fault is not None)),
        "events": [{"kind": e.kind, "text": e.text, "told": e.told} for e in study.events],
        "drivers": [
            {"id": one.id, "pid": one.pid, "left": one.left or gone(one), **one.provenance}
            for one in study.storage.drivers(study.name)
        ],
    }


def _print_state(state: dict[str, Any]) -> None:
    counts = ", ".join(f"{count} {kind}" for kind, count in state["trials"].items())
    volume = state["hypervolume"]
    shown = "-" if volume is None else f"{volume:.6g}"
    typer.echo(f"{state['study']}: {state['question']}")
    typer.echo(
        f"  trials: {counts or 'none'}; {state['measurements']} measured, {state['seconds']:.1f} s"
    )
    kind = "exact front" if state["exact"] else "front"
    typer.echo(f"  {kind}: {state['front']} designs, hypervolume {shown}")
    there = [one for one in state["drivers"] if not one["left"]]
    if there:
        words = ", ".join(f"process {one['pid']} of {one.get('host', '')}" for one in there)
        typer.echo(f"  at work, as far as is known: {words}")
    for kind, count in state["failures"].items():
        typer.echo(f"  failures: {count} {kind}")
    for event in state["events"]:
        typer.echo(f"  {event['kind']}: {event['text']}")
